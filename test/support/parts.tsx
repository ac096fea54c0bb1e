/** @jsxImportSource preact */

import type { ComponentChildren } from "preact";
import { Cut } from "../../src/core/cut.ts";
import { dayMs, environments } from "../../src/core/names.ts";
import {
  Actions,
  Ago,
  Alike,
  Box,
  Boxes,
  Change,
  Changed,
  Chips,
  ChooseAll,
  Chooser,
  Collapsed,
  Empty,
  Env,
  Envs,
  environmentColumns,
  Facts,
  Field,
  Filter,
  FirstFew,
  Listed,
  LoneLink,
  MachinesOnly,
  MachinesOnlyNote,
  Moment,
  Name,
  NameAgain,
  Named,
  NewName,
  Operators,
  Prose,
  ShellLines,
  ShowTyped,
  SignInAgain,
  Steers,
  Stored,
  Table,
  thereClass,
  Warnings,
  Word,
} from "../../src/dashboard/parts/parts.tsx";
import type { Shown } from "../../src/dashboard/parts/route.ts";
import { Chart } from "../../src/people/audit/audit-counts.tsx";
import { AuditCounts, spanOf } from "../../src/people/audit/reads.ts";
import { CopyInRows } from "../../src/people/projects/grid.tsx";
import { Reveal } from "../../src/people/projects/item.tsx";

/* Every part of the dashboard in every state, for whoever restyles it. Nothing of the installation is on it. */

const where = "parts/parts";
const project = { id: "0" };

/** Where the forms of the page go. */
export const partsPaths = ["/parts", `/p/${where}/variables/reveal`];

/** The answer to a form, so that the script shows what it shows then. */
export function answerOfParts(form: URLSearchParams): Response {
  const error = "This name is taken. Nothing was written: choose another one.";
  if (form.has("refuse")) return Response.json({ error, field: "name", again: "/", unlessSeen: {} }, { status: 409 });
  const use = {
    words: "Read with it:",
    lines: "curl -H 'Authorization: Bearer kh_…' https://secrets.example/projects",
  };
  return Response.json({ secret: "postgres://web:s3cret@db.example/web\n", to: "/parts", notice: "Shown once.", use });
}

/** A part, under its name and in its states. */
function Part({ of, children }: { readonly of: string; readonly children: ComponentChildren }) {
  return (
    <section>
      <h2>{of}</h2>
      {children}
    </section>
  );
}

const long = `a-name-of-${"many-".repeat(30)}letters`;
const things = [
  { id: "aaaa1111", name: "web-prod" },
  { id: "bbbb2222", name: "web\u2011prod" },
];
const marks = new Map(things.map(({ id }) => [id, id.slice(0, 4)]));
const sixty = Array.from({ length: 60 }, (_, at) => `VARIABLE_${at + 1}`);

/** The page. @param now - epoch milliseconds */
export function partsPage(now: number): Shown {
  const hoursAgo = (hours: number) => now - hours * 3_600_000 - 60_000;
  return {
    title: "Parts",
    main: (
      <>
        <Part of="Names">
          <ul>
            <li>
              <Word>a word</Word>, <Word to="/parts">one that leads on</Word>, <Word>{"with \u202e and \u200b"}</Word>,{" "}
              <Word>{long}</Word>, <Stored>{long}</Stored>
            </li>
            <li>
              <Name>NAME</Name>, <Name to="/parts">LEADS_ON</Name>, <Name>{"stri\u0440e"}</Name>, <Name>{long}</Name>
            </li>
            <li>
              <Named thing={{ id: "cccc", name: "alone" }} type="key" to="/parts" />;{" "}
              {things.map((thing) => (
                <>
                  <Named thing={thing} type="key" marks={marks} />;{" "}
                </>
              ))}
              <Named thing={{ id: "ana", name: "ana" }} marks={new Map([["ana", "ana"]])} />; ben
              <Alike />
            </li>
            <li>
              <Name>LD_PRELOAD</Name>
              <Steers name="LD_PRELOAD" />
            </li>
            <li>
              <Prose>A sentence with `code` in it.</Prose>
            </li>
            <li>
              <Envs values={environments} />, <Env value="production" />
            </li>
            <li>
              <FirstFew items={["one", "two"]} />; <FirstFew items={["one", "two", "three", "four", "five"]} />
            </li>
            <li>
              <Ago at={hoursAgo(3)} now={now} />, <Ago at={hoursAgo(-72)} now={now} />, <Ago at={null} now={now} />,{" "}
              <Moment at={now} />
            </li>
          </ul>
        </Part>
        <Part of="Links and actions">
          <LoneLink to="/parts">A link that stands alone</LoneLink>
          <SignInAgain to="compare production" />
          <Actions items={{ Change: "/parts", Paste: "/parts", Promote: "/parts" }} />
          <Actions items={{ "A quiet one": "/parts" }} quiet />
          <Chips
            label="Parts of the variables"
            items={[
              { words: "All", count: 1234, to: "/parts", isHere: true },
              { words: "Missing in production", count: 7, to: "/parts", isHere: false },
              { words: "Different", count: 0, to: "/parts", isHere: false },
            ]}
          >
            <small>The same letter: the same value</small>
          </Chips>
          <Chooser button="Choose">
            <Field name="org" label="Organization" options={["acme", "globex"]} value="globex" />
          </Chooser>
          <Filter what="names" name="part" />
        </Part>
        <Part of="What is said">
          <Warnings items={["One warning with `code`.", <>{long} is a long one.</>]} />
          <Empty>acme/web has no variables yet. Paste them.</Empty>
          <Operators />
          <MachinesOnlyNote />
          <p class="missing">missing</p>
          <p class="quiet">quiet</p>
        </Part>
        <Part of="Facts and lists">
          <Facts
            facts={{
              Note: "Made at the provider, rotated by ops.",
              "Who can read it": <Named thing={{ id: "c", name: "ci" }} type="key" />,
              "A long one": long,
            }}
          />
          <Listed
            title="A list"
            none="None."
            items={new Cut(["one", "two", "three"]).first(2)}
            more="There are more."
          />
          <Listed title="An empty list" none="Nothing is in it." items={new Cut([])} more="" />
          <Listed title="A damaged list" none="" items={new Cut([])} more="" unread={["A part of it is damaged."]} />
          <Changed names={{ added: ["ADDED"], changed: sixty, deleted: ["GONE", "GONE_TOO"] }} />
          <Collapsed items={sixty} max={4} between="; " />
          <ShellLines id="lines">{"keyhole pull --project web --env staging\nkeyhole run -- ./server"}</ShellLines>
        </Part>
        <Part of="Charts">
          <Chart counts={counted(now)} isOfAll />
          <Chart counts={new AuditCounts(spanOf(now, {}))} isOfAll={false} />
        </Part>
        <Part of="Tables">
          <Table
            caption="Keys"
            columns={{
              Name: (at: number) => <Word to="/parts">{at === 3 ? long : `key-${at}`}</Word>,
              Where: () => "acme",
              "Last used": (at) => <Ago at={at === 2 ? null : hoursAgo(at)} now={now} />,
              Reads: (at) => at * 1111,
            }}
            rows={[1, 2, 3]}
            none=""
            filter="keys"
            tools={<Actions items={{ "New key": "/parts" }} />}
          />
          <Table caption="Nothing" columns={{ Name: () => "" }} rows={[]} none="There are no keys yet." />
          <Table
            caption="The variables of acme/web by environment"
            columns={{
              Name: (name: string) => <Name to={`/parts?name=${name}`}>{name}</Name>,
              ...environmentColumns<string>(environments, (name, environment) =>
                isMissing(name, environment) ? "missing" : <Ago at={hoursAgo(name.length)} now={now} />,
              ),
            }}
            classOf={(name, environment) =>
              thereClass(!isMissing(name, environment), environment, environment === "staging" ? 2 : 1)
            }
            rows={["DATABASE_URL", "LOG_LEVEL", "ONLY_IN_PRODUCTION", "TOKEN"]}
            none=""
            filter="variables"
            tools={<ChooseAll name="names" />}
            isLong
          />
          <CopyInRows where={where} kind="variables" project={project} from={environments} />
        </Part>
        <Part of="Forms">
          <Reveal where={where} kind="variables" name="TOKEN" environment="staging" project={{ project: "0" }} />
          <Change action="/parts" button="Save" hidden={{ refuse: "yes" }}>
            <NewName help="Letters, digits and _, such as DATABASE_URL." />
            <Field name="text" label="A text" help="Of several lines." rows={3} value={"one\ntwo"} />
            <Field name="value.staging" label="A value" rows={1} />
            <Field name="day" label="A day" type="date" value="2030-01-31" />
            <Field name="choice" label="A choice" options={["acme", "globex"]} any="any" />
            <Boxes legend="Environments" name="environments" options={environments} checked={["staging"]} />
            <Boxes legend="Others" name="others" options={["a", "b"]} words={{ a: "with `code`", b: "without" }} />
            <Box name="box">A box</Box>
            <ShowTyped />
            <MachinesOnly />
            <NameAgain name="NAME" what="name" />
          </Change>
          <Change action="/parts" button="Delete" danger hidden={{ refuse: "yes" }} />
          <Change action="/parts" button="Refresh" quiet hidden={{ refuse: "yes" }} />
          <Change action="/parts" button="Write in" choice={{ name: "in", options: environments, value: "staging" }} />
          <Change action="/parts" button="Make a key" secret="once">
            <p class="quiet">The script puts a secret in place of this form.</p>
          </Change>
        </Part>
      </>
    ),
  };
}

function isMissing(name: string, environment: string): boolean {
  return name.startsWith("ONLY") && environment !== "production";
}

/** Reads of a month: the same on each day of it, but for a few. */
function counted(now: number) {
  const sinceAt = now - 30 * dayMs;
  const counts = new AuditCounts(spanOf(now, { sinceAt }));
  const entry = { action: "variables.read", names: [], actor: { type: "key", id: "0" } };
  for (let day = 29; day > 0; day -= 1) {
    for (let read = 0; read < ((day * 7) % 5) + 1; read += 1) {
      counts.add({ ...entry, time: sinceAt + day * dayMs } as never);
    }
  }
  return counts;
}
