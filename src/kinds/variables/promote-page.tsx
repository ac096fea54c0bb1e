/** @jsxImportSource preact */
import type { VNode } from "preact";
import { may } from "../../access/rights.ts";
import { compareBytes, type Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { findProject, placeOf } from "../../desk/projects.ts";
import { carryOut } from "../../pages/carry-out.ts";
import {
  Box,
  type Cells,
  Change,
  Chooser,
  counted,
  Empty,
  Env,
  Field,
  Name,
  NameAgain,
  Table,
  There,
} from "../../pages/parts.tsx";
import { projectPagePath } from "../../pages/paths.ts";
import type { Answer } from "../../pages/route.ts";
import { seenFields, type Visit } from "../../pages/visit.ts";
import { requireSets, shownEnvironments } from "../../sets/open.ts";
import { variables } from "./entry.ts";
import { copy } from "./operations.ts";
import { diffVariables } from "./reveal.ts";

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
      {from !== to && (await choice(visit, from, to))}
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

/** The two environments side by side, with a box for each variable that can be copied. Those come first. */
async function choice({ admin, where }: Visit, from: Environment, to: Environment): Promise<VNode> {
  const project = await findProject(admin, where, "reveal", [from, to]);
  const mayCopy = may(admin.rights, "write", placeOf(project), to);
  const sets = await requireSets(admin, project, variables);
  const differences = new Map((await diffVariables(admin, where, from, to)).map(({ name, status }) => [name, status]));
  const changedIn = (side: Environment) =>
    new Map(sets.find(({ environment }) => environment === side)?.entries.map((one) => [one.key, one.updatedAt]));
  const [source, target] = [changedIn(from), changedIn(to)];
  const rows = [...new Set([...source.keys(), ...target.keys()])].sort(compareBytes).map((name): Promoted => {
    const difference = differences.get(name);
    const isNew = difference === "only" || difference === "differs";
    return { name, difference, isCopied: mayCopy && isNew, from: source.get(name), to: target.get(name) };
  });
  const copied = rows.filter(({ isCopied }) => isCopied);
  const table = (
    <Table
      caption={`Variables of ${from} and ${to}`}
      columns={columnsOf(from, to, admin.now())}
      rows={[...copied, ...rows.filter(({ isCopied }) => !isCopied)]}
      none="Neither has a variable. Choose other environments, or paste some text."
      filter="variables"
      isLong
    />
  );
  if (rows.length === 0 || !mayCopy) return table;
  if (copied.length === 0) {
    return (
      <>
        <p>{`${to} has everything that ${from} has, with the same values.`}</p>
        {table}
      </>
    );
  }
  const hidden = { from, to, ...seenFields(project, sets) };
  return (
    <Change action={projectPagePath(where, "variables/promote")} button={`Copy to ${to}`} hidden={hidden}>
      <p class="quiet">
        {counted(copied.length, "variable")} of {from} would be new or different in {to}. Values are copied unseen, and
        the audit records it.
      </p>
      <p>
        <label>
          <input type="checkbox" data-all="names" />
          Choose all that are shown
        </label>
      </p>
      {table}
      <output class="count" data-chosen="names" />
      {to === "production" && <NameAgain name={where} what="name of the project" />}
    </Change>
  );
}

/** A variable of one of the two environments, with when it changed in each. */
type Promoted = {
  readonly name: string;
  readonly difference: "only" | "differs" | "missing" | undefined;
  readonly isCopied: boolean;
  readonly from: number | undefined;
  readonly to: number | undefined;
};

function columnsOf(from: Environment, to: Environment, now: number): Cells<Promoted> {
  const words = { only: `missing in ${to}`, differs: "different", missing: `only in ${to}`, same: "same" };
  const box = (name: string) => (
    <Box name="names" value={name}>
      <Name>{name}</Name>
    </Box>
  );
  return {
    Name: ({ name, isCopied }) => (isCopied ? box(name) : <Name>{name}</Name>),
    [from]: (row) => <There at={row.from} now={now} />,
    [to]: (row) => <There at={row.to} now={now} />,
    Compared: ({ difference }) => words[difference ?? "same"],
  };
}

/** Copies what was chosen. @throws Refused `conflict` if source or target was written since the page was shown */
export async function promote(visit: Visit): Promise<Answer> {
  const { where, form } = visit;
  const [from, to] = [form.environment("from"), form.environment("to")];
  const names = form.all("names");
  if (from === to) throw new Refused("invalid", "Choose two different environments. Nothing was copied.");
  if (names.length === 0) throw new Refused("invalid", "No variable is chosen. Nothing was copied.");
  form.requireAgain(where, [to]);
  const given = {
    project: where,
    environment: from,
    to: where,
    toEnvironment: to,
    names: [...names],
    seen: { from: form.seen(from), to: form.seen(to) },
  };
  return carryOut(visit, copy, given, projectPagePath(where, "variables"));
}
