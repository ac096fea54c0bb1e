/** @jsxImportSource preact */
import type { VNode } from "preact";
import { environments } from "../../core/names.ts";
import { Refused, unlessRefused } from "../../core/refused.ts";
import { parseEnd } from "../../core/words/times.ts";
import { carryOut, type Filled, planned } from "../../dashboard/parts/carry-out.ts";
import { rowsMax } from "../../dashboard/parts/paged.tsx";
import { Boxes, Change, Field, NameAgain, Prose, ShellLines, SignInAgain, Word } from "../../dashboard/parts/parts.tsx";
import type { Answer } from "../../dashboard/parts/route.ts";
import { Form, type Visit } from "../../dashboard/parts/visit.ts";
import { everyRight, reached } from "../../serve/access/rights.ts";
import { commandLine } from "../desk/command-line.ts";
import { isFresh } from "../desk/context.ts";
import type { Inputs } from "../desk/inputs.ts";
import type { Planned } from "../desk/operation.ts";
import { requireMembers } from "../desk/validate.ts";
import { listOrganizations } from "../projects/organizations.ts";
import { pathOf } from "../projects/page.tsx";
import { listProjects } from "../projects/projects.ts";
import { grant, revoke } from "./operations.ts";
import { type PersonRecord, showPerson } from "./persons.ts";
import { RightsList, rightsInForceOf, rightsLines, wordsOf } from "./rights-words.tsx";

export function personPath(name: string): string {
  return `/persons/${name}`;
}

/** For how long a right is given, as commands say it. */
const lasting: Readonly<Record<string, string | undefined>> = {
  "for good": undefined,
  "for 1 hour": "1h",
  "for 4 hours": "4h",
  "for 1 day": "1d",
  "for 7 days": "7d",
  "for 30 days": "30d",
};

/** What is done, by the words of its button. */
const deeds = { give: "Give", take: "Take away", remove: "Remove" } as const;

/** What becomes of what somebody gave and can give no longer. */
const ofGiven = { "leave it, as given by you": { keepGiven: true }, "take it away, too": { withGiven: true } } as const;
type OfGiven = { readonly keepGiven?: true; readonly withGiven?: true };

/** A change that somebody asks for, and the fields of the form that asks for it. @throws Refused `invalid` */
function askedIn(visit: Visit, form: Form) {
  const name = visit.param("name");
  const button = form.choice("deed", deeds);
  const deed = form.read("deed");
  const acting = <I extends Inputs>(operation: Planned<I>, given: Filled<I>) => ({
    plan: (more: OfGiven = {}) => planned(visit, operation, { ...given, ...more }),
    run: (more: OfGiven) => carryOut(visit, operation, { ...given, ...more }, personPath(name)),
  });
  if (deed === "remove") {
    const asked = { deed, button, fields: { deed }, isOfProduction: false, command: commandLine(revoke, { name }) };
    return { ...asked, notice: {}, ...acting(revoke, { name }) };
  }
  const place = form.read("place").trim();
  const among = form.environments("environments");
  if (!form.has("rights") || among.length === 0 || place === "") {
    throw new Refused("invalid", "Choose at least one right, a place and an environment.");
  }
  const rights = requireMembers("right", everyRight, form.all("rights"));
  const where = place.includes("/") ? { projects: [place] } : { organization: place, allProjects: true as const };
  const words = { name, rights, ...where, environments: among };
  const fields = { deed, rights, place, environments: among, lasts: form.read("lasts") };
  const within = among.length === environments.length ? "everywhere" : among.join(", ");
  const what = `${wordsOf(rights)} in ${place}, ${within}`;
  const notice = deed === "take" ? `Taken from ${name}: ${what}.` : `Given to ${name}: ${what}, ${fields.lasts}.`;
  const asked = { deed, button, fields, notice: { notice }, isOfProduction: among.includes("production") };
  if (deed === "take") {
    return { ...asked, command: commandLine(revoke, words), ...acting(revoke, words) };
  }
  const end = form.choice("lasts", lasting);
  const given = { ...words, endFrom: end === undefined ? undefined : parseEnd(end) };
  const command = commandLine(grant, { ...words, endFrom: end });
  return { ...asked, command, ...acting(grant, given) };
}

/** Chooses rights to give or to take away. What that would do is shown first, below it. */
export async function RightsForm(visit: Visit, name: string): Promise<VNode> {
  const { admin } = visit;
  const typed = new Form(visit.url.search.slice(1));
  const projects = (await listProjects(admin)).map(pathOf);
  const places = [...projects, ...(await listOrganizations(admin)).map(({ slug }) => slug)];
  const isOperator = admin.rights === "operator";
  const mayGive = visit.may("grant");
  const seesAll =
    isOperator || admin.rights.every((one) => !one.rights.includes("grant") || reached(admin.rights, ["see"], one)[0]);
  return (
    <section>
      <h2>Give or take rights</h2>
      {mayGive && !isFresh(admin) && <SignInAgain to="change rights in production" />}
      <form action={`${personPath(name)}#then`}>
        <Boxes
          legend="Rights"
          name="rights"
          options={everyRight.filter((right) => isOperator || right !== "grant")}
          checked={typed.all("rights")}
        />
        <Field
          name="place"
          label="Where"
          help="A project, or an organization: all its projects, those created later too."
          {...(places.length <= rowsMax && seesAll && { options: places })}
          value={typed.find("place")}
        />
        <Boxes legend="In" name="environments" options={environments} checked={typed.all("environments")} />
        <Field name="lasts" label="For how long" options={Object.keys(lasting)} value={typed.find("lasts")} />
        <div class="send">
          <button type="submit" name="deed" value="give">
            {deeds.give}
          </button>
          <button type="submit" class="quiet" name="deed" value="take">
            {deeds.take}
          </button>
          {isOperator && <a href={`${personPath(name)}?deed=remove#then`}>Remove the person</a>}
        </div>
        <p class="quiet">
          {mayGive ? "You first see what they could do." : "You get the command for somebody who may give rights."}
        </p>
      </form>
      {typed.has("deed") && <div id="then">{await unlessRefused(Then(visit, typed), ["invalid"], Refusal)}</div>}
    </section>
  );
}

function Refusal({ message }: Refused): VNode {
  return (
    <p class="refusal">
      <Prose>{message}</Prose>
    </p>
  );
}

/** What the person could do then, and the form that makes it so; or the command for somebody who may. */
async function Then(visit: Visit, typed: Form): Promise<VNode> {
  const name = visit.param("name");
  const { plan, deed, button, fields, isOfProduction, command } = askedIn(visit, typed);
  const tried = (given?: OfGiven) => unlessRefused(plan(given), ["invalid", "forbidden", "not_found"], (no) => no);
  const first = await tried();
  const isAboutGiven = first instanceof Refused && first.form.field === "given";
  const all = await Array.fromAsync(isAboutGiven ? Object.entries(ofGiven) : [], async ([words, given]) => ({
    words,
    plan: await tried(given),
  }));
  const ways = all.filter(({ plan }) => !(plan instanceof Refused));
  const then = ways[0]?.plan ?? first;
  if (then instanceof Refused) {
    return (
      <>
        {Refusal(then)}
        <ShellLines id="command">{command}</ShellLines>
      </>
    );
  }
  const { rights = [] } = then.document as Partial<PersonRecord>;
  return (
    <>
      {isAboutGiven && Refusal(first)}
      {deed === "remove" ? (
        <p>
          <Word>{name}</Word> would be removed with all rights.
        </p>
      ) : (
        <>
          <p>
            <Word>{name}</Word> could then:
          </p>
          <RightsList lines={rightsLines(rightsInForceOf(name, rights), name)} none="Nothing." />
        </>
      )}
      <Change
        action={`${personPath(name)}/rights`}
        button={isAboutGiven ? `${button}. What ${name} gave:` : button}
        danger={deed !== "give"}
        hidden={{ ...fields, ...then.seen }}
        {...(isAboutGiven && { choice: { name: "given", options: ways.map(({ words }) => words) } })}
      >
        {isOfProduction && <NameAgain name={name} what="person's name" />}
        {deed === "remove" && <Field name="again" label={["Type the name again: ", <Word>{name}</Word>]} required />}
      </Change>
    </>
  );
}

/** Does what the page showed. @throws Refused `conflict` if what gives or leaves a right is no longer as it was shown */
export async function changePerson(visit: Visit): Promise<Answer> {
  const { form } = visit;
  const name = visit.param("name");
  const { deed, notice, isOfProduction, run } = askedIn(visit, form);
  if (deed === "remove") form.requireTyped(name, "To remove them");
  form.requireAgain(name, isOfProduction ? ["production"] : []);
  const done = await run(form.has("given") ? form.choice<OfGiven>("given", ofGiven) : {});
  // Somebody without rights there is shown no more to whoever took the last one.
  const isShown = await unlessRefused(showPerson(visit.admin, name).then(Boolean), ["not_found"], () => false);
  return { ...done, ...notice, ...(!isShown && { to: "/persons" }) };
}
