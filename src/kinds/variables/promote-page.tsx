import { type Environment, environments } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { findProject } from "../../desk/projects.ts";
import { Change, type Column, counted, Empty, Env, Filter, Name, NameAgain, Table } from "../../pages/parts.tsx";
import { projectPagePath } from "../../pages/paths.ts";
import type { Answer, Route } from "../../pages/route.ts";
import type { Visit } from "../../pages/visit.ts";
import { requireSet } from "../../sets/open.ts";
import { variables } from "./entry.ts";
import { diffVariables } from "./reveal.ts";
import { copyVariables } from "./write.ts";

/** Copying variables from one environment to another, with their values unseen. */
export const promoteRoutes: readonly Route[] = [
  { method: "GET", path: "/p/:org/:project/variables/promote", right: "reveal", answer: promotePage },
  { method: "POST", path: "/p/:org/:project/variables/promote", right: "reveal", answer: promote },
];

/** A variable of the source, and what copying it would do. */
type Promoted = { readonly name: string; readonly status: "new" | "different" | "same" };

const words = { new: "missing there", different: "different there", same: "the same there" } as const;

async function promotePage(visit: Visit): Promise<Answer> {
  const { where } = visit;
  const from = visit.environment("from") ?? "staging";
  const to = visit.environment("to") ?? "production";
  const main = (
    <>
      <h1>
        Promote from <Env of={from} /> to <Env of={to} />
      </h1>
      <form class="actions">
        {(["from", "to"] as const).map((side) => (
          <label>
            {side === "from" ? "From " : "To "}
            <select name={side}>
              {environments.map((environment) => (
                <option value={environment} selected={environment === (side === "from" ? from : to)}>
                  {environment}
                </option>
              ))}
            </select>
          </label>
        ))}
        <button type="submit" class="quiet">
          Compare
        </button>
      </form>
      {from === to ? (
        <Empty>Choose two different environments.</Empty>
      ) : (
        <Choice {...(await comparedFor(visit, from, to))} where={where} from={from} to={to} />
      )}
    </>
  );
  return { title: `Promote from ${from} to ${to}`, project: visit.inProject("variables"), main };
}

async function comparedFor({ admin, where }: Visit, from: Environment, to: Environment) {
  const project = await findProject(admin, where);
  const [source, target] = await Promise.all(
    [from, to].map((environment) => requireSet(admin, { project, descriptor: variables, environment })),
  );
  const statuses = new Map((await diffVariables(admin, where, from, to)).map(({ name, status }) => [name, status]));
  const rows = (source?.entries ?? []).map(({ key: name }): Promoted => {
    const status = statuses.get(name);
    return { name, status: status === undefined ? "same" : status === "only" ? "new" : "different" };
  });
  return { rows, versions: { fromVersion: source?.stored.version ?? 0, toVersion: target?.stored.version ?? 0 } };
}

/** The variables of the source, with a box for each. */
function Choice(props: {
  readonly where: string;
  readonly from: Environment;
  readonly to: Environment;
  readonly rows: readonly Promoted[];
  readonly versions: Readonly<Record<string, number>>;
}) {
  const { where, from, to, rows, versions } = props;
  const news = rows.filter(({ status }) => status !== "same");
  if (rows.length === 0) return <Empty>There are no variables in {from}. Choose another environment.</Empty>;
  const columns: readonly Column<Promoted>[] = [
    {
      heading: "Name",
      cell: ({ name, status }) => (
        <label>
          <input type="checkbox" name="names" value={name} disabled={status === "same"} />
          <Name>{name}</Name>
        </label>
      ),
      isSorted: true,
    },
    { heading: `In ${to}`, cell: ({ status }) => <span class={status}>{words[status]}</span>, isSorted: true },
  ];
  return (
    <Change
      action={projectPagePath(where, "variables/promote")}
      button={`Copy to ${to}`}
      hidden={{ from, to, ...versions }}
    >
      <p class="quiet">
        {news.length === 0
          ? `${to} has everything that ${from} has, with the same values.`
          : `${counted(news.length, "variable")} of ${from} would be new or different in ${to}. Values are copied unseen, and the audit records it.`}
      </p>
      <Filter table="promote" what="variables" />
      <label>
        <input type="checkbox" data-all="names" />
        Choose all that are shown
      </label>
      <Table
        caption={`The variables of ${from}`}
        id="promote"
        columns={columns}
        rows={[...news, ...rows.filter((row) => !news.includes(row))]}
        isLong
      />
      {to === "production" && <NameAgain name={where} what="project" />}
    </Change>
  );
}

/** Copies what was chosen. @throws Refused `conflict` if somebody wrote the source or the target since the page was shown */
async function promote({ admin, where, form }: Visit): Promise<Answer> {
  const [from, to] = [form.environment("from"), form.environment("to")];
  const names = form.all("names");
  if (names.length === 0) throw new Refused("invalid", "No variable is chosen. Nothing was copied.");
  form.requireAgain(where, [to]);
  const versions = { from: form.number("fromVersion"), to: form.number("toVersion") };
  const place = (environment: Environment) => ({ project: where, environment });
  const { added, changed, warnings } = await copyVariables(admin, place(from), place(to), names, versions);
  const notice = `Copied ${counted(added.length + changed.length, "variable")} from ${from} to ${to}.`;
  return { to: projectPagePath(where, "variables"), notice: [notice, ...warnings].join(" ") };
}
