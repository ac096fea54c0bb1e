/** @jsxImportSource preact */
import { compareBytes, type Environment, environments } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { findProject } from "../../desk/projects.ts";
import { Change, type Column, counted, Empty, Env, Name, NameAgain, Select, Table, There } from "../../pages/parts.tsx";
import { projectPagePath } from "../../pages/paths.ts";
import type { Answer } from "../../pages/route.ts";
import { type Visit, versionFields } from "../../pages/visit.ts";
import { requireSets } from "../../sets/open.ts";
import { variables } from "./entry.ts";
import { diffVariables } from "./reveal.ts";
import { copyVariables } from "./write.ts";

/** A variable of one of the two environments, with when it changed in each. */
type Promoted = {
  readonly name: string;
  readonly status: "missing" | "different" | "same" | "extra";
  readonly from: number | undefined;
  readonly to: number | undefined;
};

/** What the page shows of the two environments. */
type Compared = {
  readonly from: Environment;
  readonly to: Environment;
  /** Those that can be copied come first. */
  readonly rows: readonly Promoted[];
  readonly copied: number;
  readonly versions: Readonly<Record<string, number>>;
  readonly now: number;
};

/** Two environments side by side, to copy variables from one to the other with their values unseen. */
export async function promotePage(visit: Visit): Promise<Answer> {
  const { where } = visit;
  const from = visit.environment("from") ?? "staging";
  const to = visit.environment("to") ?? "production";
  const main = (
    <>
      <form class="actions">
        {(["from", "to"] as const).map((side) => (
          <label>
            {side === "from" ? "From " : "To "}
            <Select name={side} of={environments} chosen={side === "from" ? from : to} />
          </label>
        ))}
        <button type="submit" class="quiet">
          Compare
        </button>
      </form>
      {from === to ? (
        <Empty>Choose two different environments.</Empty>
      ) : (
        <Choice where={where} of={await comparedFor(visit, from, to)} />
      )}
    </>
  );
  return {
    title: `Promote from ${from} to ${to}`,
    heading: ["Promote from ", <Env of={from} />, " to ", <Env of={to} />],
    main,
  };
}

async function comparedFor({ admin, where }: Visit, from: Environment, to: Environment): Promise<Compared> {
  const project = await findProject(admin, where, "reveal", [from, to]);
  const sets = await requireSets(admin, project, variables);
  const [source, target] = [from, to].map((environment) => sets.find((set) => set.environment === environment));
  const [sourceAt, targetAt] = [source, target].map(
    (set) => new Map(set?.entries.map(({ key, updatedAt }) => [key, updatedAt])),
  );
  const differing = new Map((await diffVariables(admin, where, from, to)).map(({ name, status }) => [name, status]));
  const names = new Set([...(sourceAt?.keys() ?? []), ...(targetAt?.keys() ?? [])]);
  const rows = [...names].sort(compareBytes).map((name): Promoted => {
    const status = statuses[differing.get(name) ?? "same"];
    return { name, status, from: sourceAt?.get(name), to: targetAt?.get(name) };
  });
  const isCopied = ({ status }: Promoted) => status === "missing" || status === "different";
  return {
    from,
    to,
    rows: [...rows.filter(isCopied), ...rows.filter((row) => !isCopied(row))],
    copied: rows.filter(isCopied).length,
    versions: versionFields(sets),
    now: admin.now(),
  };
}

/** What a difference means for whoever copies to the target. */
const statuses = { only: "missing", differs: "different", missing: "extra", same: "same" } as const;

/** The two environments side by side, with a box for each variable that can be copied. */
function Choice({ where, of }: { readonly where: string; readonly of: Compared }) {
  const { from, to, rows, copied, versions } = of;
  const table = (
    <>
      {copied > 0 && (
        <p>
          <label>
            <input type="checkbox" data-all="names" />
            Choose all that are shown
          </label>
        </p>
      )}
      <Table
        caption={`Variables of ${from} and ${to}`}
        columns={columnsOf(of)}
        rows={rows}
        none="Neither has a variable. Choose other environments, or paste some text."
        filter="variables"
        isLong
      />
    </>
  );
  if (copied === 0) {
    return (
      <>
        {rows.length > 0 && <p>{`${to} has everything that ${from} has, with the same values.`}</p>}
        {table}
      </>
    );
  }
  const hidden = { from, to, ...versions };
  return (
    <Change action={projectPagePath(where, "variables/promote")} button={`Copy to ${to}`} hidden={hidden}>
      <p class="quiet">
        {counted(copied, "variable")} of {from} would be new or different in {to}. Values are copied unseen, and the
        audit records it.
      </p>
      {table}
      <output class="count" data-chosen="names" />
      {to === "production" && <NameAgain name={where} what="name of the project" />}
    </Change>
  );
}

function columnsOf({ from, to, now }: Compared): readonly Column<Promoted>[] {
  const words = {
    missing: `missing in ${to}`,
    different: "different",
    same: "same",
    extra: `only in ${to}`,
  } as const;
  return [
    {
      heading: "Name",
      cell: ({ name, status }) =>
        status === "missing" || status === "different" ? (
          <label>
            <input type="checkbox" name="names" value={name} />
            <Name>{name}</Name>
          </label>
        ) : (
          <Name>{name}</Name>
        ),
    },
    { heading: from, cell: (row) => <There at={row.from} now={now} /> },
    { heading: to, cell: (row) => <There at={row.to} now={now} /> },
    { heading: "Compared", cell: ({ status }) => words[status] },
  ];
}

/** Copies what was chosen. @throws Refused `conflict` if somebody wrote the source or the target since the page was shown */
export async function promote({ admin, where, form }: Visit): Promise<Answer> {
  const [from, to] = [form.environment("from"), form.environment("to")];
  const names = form.all("names");
  if (from === to) throw new Refused("invalid", "Choose two different environments. Nothing was copied.");
  if (names.length === 0) throw new Refused("invalid", "No variable is chosen. Nothing was copied.");
  form.requireAgain(where, [to]);
  const seen = form.versions([from, to]);
  const versions = { from: seen.get(from) as number, to: seen.get(to) as number };
  const place = (environment: Environment) => ({ project: where, environment });
  const { added, changed, warnings } = await copyVariables(admin, place(from), place(to), names, versions);
  const notice = `Copied ${counted(added.length + changed.length, "variable")} from ${from} to ${to}.`;
  return { to: projectPagePath(where, "variables"), notice: [notice, ...warnings].join(" ") };
}
