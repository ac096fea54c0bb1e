/** @jsxImportSource preact */

import type { VNode } from "preact";
import { type Environment, environments } from "../core/names.ts";
import { Refused } from "../core/refused.ts";
import { findProject } from "../desk/projects.ts";
import { descriptorOf } from "../kinds/kind.ts";
import { kindPages } from "../kinds/pages.ts";
import { Actions, Ago, Change, Env, joined, Lead, Listed, Name, Operators, There, Word } from "../pages/parts.tsx";
import { projectPagePath, withQuery } from "../pages/paths.ts";
import type { Answer } from "../pages/route.ts";
import { seenFields, type Visit } from "../pages/visit.ts";
import { listAudit } from "../people/audit.ts";
import { compareEnvironments, type ItemsAcross } from "../people/comparison.ts";
import { keyNames, listAccess } from "../people/keys.ts";
import { personsWithAccess } from "../people/persons.ts";
import { type Gets, personGets } from "../people/readers.ts";
import { comparison, requireKind } from "./grid.tsx";
import { unlessRefused } from "./refusal.ts";
import { actorOf } from "./sentence.tsx";

/** One item: where it is, its value on request, who read it last, and who can. */
export async function itemPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const kind = requireKind(visit.param("kind"));
  const { form, reveal: isShown } = kindPages[kind] ?? {};
  const name = visit.query("name") ?? "";
  const { items, environments: seen } = await compareEnvironments(admin, where, kind);
  const found = items.find((one) => one.name === name);
  if (found === undefined)
    throw new Refused("not_found", `There is no ${JSON.stringify(name)} among the ${kind} of ${where}.`);
  const shown = seenFields(await findProject(admin, where, "see"));
  const revealed = isShown ? await visit.reached("reveal") : [];
  const mayChange = form !== undefined && (await visit.reached("write")).length > 0;
  const mayAudit = (await visit.reached("audit")).length > 0;
  const main = (
    <>
      <p class="quiet">{comparison(found)}</p>
      {mayChange && <Actions items={{ Change: projectPagePath(where, `${kind}/set`, { name }) }} />}
      <div class="cards">
        {seen.map((environment) => (
          <section>
            <h2>
              <Env value={environment} />
            </h2>
            <p>
              {found.environments[environment] && "Changed "}
              <There at={found.environments[environment]?.updatedAt} now={admin.now()} />
            </p>
            {found.environments[environment] && revealed.includes(environment) && (
              <Reveal action={projectPagePath(where, `${kind}/reveal`)} hidden={{ ...shown, name, environment }} />
            )}
          </section>
        ))}
      </div>
      {mayAudit && (await lastReads(visit, kind, name))}
      {await readers(visit, kind, found)}
    </>
  );
  return { title: `${name} · ${where}`, heading: <Name>{name}</Name>, main };
}

/** Buttons that ask for a value. */
function Reveal(props: {
  readonly action: string;
  readonly hidden: Readonly<Record<string, string | number>> & { readonly environment: Environment };
}) {
  const { action, hidden } = props;
  const buttons = { shown: "Reveal", copied: "Copy" } as const;
  return (
    <div class="actions">
      {(["shown", "copied"] as const).map((how) => (
        <Change
          action={action}
          button={buttons[how]}
          label={`${buttons[how]} the value in ${hidden.environment}`}
          secret={how}
          hidden={hidden}
          quiet
        />
      ))}
    </div>
  );
}

/** The newest reads, however many changes came after them. */
async function lastReads({ admin, where }: Visit, kind: string, name: string): Promise<VNode> {
  const actions = descriptorOf(kind).actions.filter((action) => /\.(?:read|reveal)$/.test(action));
  const found = listAudit(admin, { project: where, name, actions, limit: 5 });
  const reads = await unlessRefused(found, ["not_found"], () => []); // no entry names it
  const names = await keyNames(admin);
  return (
    <Listed
      title="Who read it last"
      none="Nobody, as far as the audit goes back."
      items={reads.toReversed().map((one) => (
        <>
          <Ago at={one.time} now={admin.now()} />: <Word>{actorOf(one, names)}</Word> {one.environment},{" "}
          <code>{one.action}</code>
        </>
      ))}
    >
      <Lead to={withQuery("/audit", { project: where, name })}>Everything about it in the audit</Lead>
    </Listed>
  );
}

/** Who gets the value, in each environment that has it, production first; and who only sees that it is there. */
async function readers({ admin, where }: Visit, kind: string, item: ItemsAcross["items"][number]): Promise<VNode> {
  const there = environments.filter((environment) => item.environments[environment] !== undefined).reverse();
  const persons = await personsWithAccess(admin, where);
  const keys = await listAccess(admin, where);
  const who = (environment: Environment, what: Gets) => [
    ...persons
      .filter(({ rightsIn }) => personGets(rightsIn[environment]) === what)
      .map(({ name, signIn }) => [
        <Word>{name}</Word>,
        signIn !== null && "group" in signIn ? ", a group of people" : ", a person",
      ]),
    ...keys
      .filter(({ environments: reach, gets }) => reach?.includes(environment) !== false && gets[kind] === what)
      .map(({ id, name, type }) => [<Word to={`/keys/${id}`}>{name}</Word>, `, a ${type}`]),
  ];
  return (
    <>
      {there.map((environment) => {
        const names = who(environment, "names");
        return (
          <Listed
            title={["Who can read it in ", <Env value={environment} />]}
            none="Nobody but operators."
            items={who(environment, "values")}
          >
            {names.length > 0 && <p class="quiet">Only see its name: {joined(names, "; ")}</p>}
          </Listed>
        );
      })}
      <Operators />
    </>
  );
}

/** The value of an item, on record before it is shown. */
export async function reveal(visit: Visit): Promise<Answer> {
  visit.form.requireProject(await findProject(visit.admin, visit.where, "reveal"));
  const kind = requireKind(visit.param("kind"));
  const read = kindPages[kind]?.reveal;
  if (read === undefined) throw new Refused("not_found", `The ${kind} are not shown here.`);
  return { secret: await read(visit, visit.form.environment(), visit.form.read("name")) };
}
