/** @jsxImportSource preact */
import type { VNode } from "preact";
import type { Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import {
  Ago,
  Box,
  type Cells,
  Change,
  ChooseAll,
  Chooser,
  counted,
  Empty,
  Env,
  Field,
  Name,
  Table,
} from "../../dashboard/parts/parts.tsx";
import { projectPagePath } from "../../dashboard/parts/paths.ts";
import type { Answer } from "../../dashboard/parts/route.ts";
import type { Visit } from "../../dashboard/parts/visit.ts";
import { findProject, placeOf } from "../../people/desk/projects.ts";
import { requireSets, shownEnvironments } from "../../people/editing/open.ts";
import { may } from "../../serve/access/rights.ts";
import { drafted, keepDraft } from "../plan-page.tsx";
import { variables } from "./entry.ts";
import { copy } from "./operations.ts";
import { type Difference, diffVariables } from "./reveal.ts";

/** Two environments side by side, to copy variables from one to the other with their values unseen. */
export async function promotePage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const project = await findProject(admin, where, "reveal");
  const shown = shownEnvironments(project, await requireSets(admin, project, variables));
  const to = visit.environment("to") ?? shown.at(-1) ?? "production";
  const from = visit.environment("from") ?? shown.at(-2) ?? to;
  const main = (
    <>
      <Chooser button="Compare">
        <Field label="From" name="from" options={shown} value={from} />
        <Field label="To" name="to" options={shown} value={to} />
      </Chooser>
      {from !== to && visit.query("from") && visit.query("to") && (await choice(visit, from, to))}
      {from === to && (
        <Empty>
          {shown.length > 1
            ? "Choose two different environments."
            : `${from} is the only one in use whose values you may read: there is no other to compare it with.`}
        </Empty>
      )}
    </>
  );
  return {
    title: `Promote from ${from} to ${to}`,
    heading: ["Promote from ", <Env value={from} />, " to ", <Env value={to} />],
    main,
  };
}

/** What the target lacks, to be copied at once; and what it has with another value, closed, to be chosen one by one. */
async function choice({ admin, where }: Visit, from: Environment, to: Environment): Promise<VNode> {
  const project = await findProject(admin, where, "reveal", [from, to]);
  const mayCopy = may(admin.rights, "write", placeOf(project), to);
  const sets = await requireSets(admin, project, variables);
  const differences = await diffVariables(admin, where, from, to);
  const changedIn = (side: Environment) =>
    new Map(sets.find(({ environment }) => environment === side)?.entries.map((one) => [one.key, one.updatedAt]));
  const [source, target] = [changedIn(from), changedIn(to)];
  const namesOf = (...wanted: readonly Difference["status"][]) =>
    differences.flatMap(({ name, status }) => (wanted.includes(status) ? [{ name, at: source.get(name) }] : []));
  const [lacking, differing, extra] = [namesOf("only"), namesOf("differs", "hidden"), namesOf("missing").length];
  const same = source.size - lacking.length - differing.length;
  const column = (side: Environment, changed: ReadonlyMap<string, number>): Cells<Promoted> => ({
    [side]: ({ name }) => <Ago at={changed.get(name) ?? null} now={admin.now()} />,
  });
  const name: Cells<Promoted> = {
    Name: ({ name }) => {
      const shown = <Name>{name}</Name>;
      return mayCopy ? <Box name="names" value={name} children={shown} /> : shown;
    },
  };
  const rest = [
    ...(same > 0 ? [`${counted(same, "variable has", "variables have")} the same value in both.`] : []),
    ...(extra > 0 ? [`${counted(extra, "is", "are")} only in ${to}.`] : []),
  ];
  const tables = (
    <>
      {lacking.length > 0 && (
        <section data-count="copy # new">
          <h2>
            Missing in {to} ({lacking.length})
          </h2>
          <Table
            caption={`Variables of ${from} that ${to} does not have`}
            columns={{ ...name, ...column(from, source) }}
            rows={lacking}
            none=""
            filter="new variables"
            tools={mayCopy && <ChooseAll name="names" />}
            isLong
          />
        </section>
      )}
      {differing.length > 0 && (
        <details data-count="overwrite #">
          <summary>
            Different{mayCopy && ": would overwrite"} ({differing.length})
          </summary>
          <Table
            caption={`Variables that have other values in ${to}, or are for machines only and not compared`}
            columns={{ ...name, ...column(from, source), ...column(to, target) }}
            rows={differing}
            none=""
            filter="different variables"
            isLong
          />
        </details>
      )}
      {rest.length > 0 && <p class="quiet">{rest.join(" ")}</p>}
    </>
  );
  if (lacking.length + differing.length === 0) {
    return (
      <>
        <Empty>
          {source.size === 0
            ? `${from} has no variable. Choose other environments, or paste some text.`
            : `${to} has everything that ${from} has, with the same values.`}
        </Empty>
        {rest.length > 0 && <p class="quiet">{rest.join(" ")}</p>}
      </>
    );
  }
  if (!mayCopy) return tables;
  return (
    <Change action={projectPagePath(where, "variables/promote")} button="Copy what is chosen" hidden={{ from, to }}>
      <p class="quiet">You see what would change before anything is written. Values are copied unseen, on record.</p>
      {tables}
    </Change>
  );
}

/** A variable of the source. */
type Promoted = { readonly name: string };

/** Finds out what copying the chosen variables would do, and keeps it. Nothing is written yet. */
export async function promote(visit: Visit): Promise<Answer> {
  const { where, form } = visit;
  const [from, to] = [form.environment("from"), form.environment("to")];
  const names = [...form.all("names")];
  if (from === to) throw new Refused("invalid", "Choose two different environments. Nothing was copied.");
  if (names.length === 0) {
    throw new Refused("invalid", "No variable is chosen. Nothing was copied.", { field: "names" });
  }
  const copies = { project: where, environment: from, to: where, toEnvironment: to, names };
  const again = ["Choose others", projectPagePath(where, "variables/promote", { from, to })] as const;
  const draft = { where, kind: "variables", environment: to, again, ...drafted(copy, copies) };
  return keepDraft(visit, projectPagePath(where, "variables/promote"), draft);
}
