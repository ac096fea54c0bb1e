/** @jsxImportSource preact */
import { type Environment, environments } from "../core/names.ts";
import { Refused } from "../core/refused.ts";
import { everyKind } from "../kinds/kind.ts";
import { kindPages } from "../kinds/pages.ts";
import { Ago, type Column, Empty, Filter, Name, Table } from "../pages/parts.tsx";
import { projectPagePath } from "../pages/paths.ts";
import type { Answer, Route } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { compareEnvironments, type ItemsAcross } from "../people/comparison.ts";

type Compared = ItemsAcross["items"][number];

export const gridRoutes: readonly Route[] = [
  { method: "GET", path: "/p/:org/:project/:kind", right: "see", answer: grid },
];

/** The names of one kind by environment: there, missing, the same, different. */
async function grid(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const kind = requireKind(visit.param("kind"));
  const pages = kindPages[kind];
  const { items, environments: seen } = await compareEnvironments(admin, where, kind);
  const now = admin.now();
  const mayWrite = (await visit.reached("write")).length > 0;
  const columns: readonly Column<Compared>[] = [
    {
      heading: "Name",
      cell: ({ name }) => (
        <a href={projectPagePath(where, `${kind}/item`, { name })}>
          <Name>{name}</Name>
        </a>
      ),
      isSorted: true,
    },
    ...seen.map((environment): Column<Compared> => {
      return {
        heading: environment,
        cell: (one) => <Cell of={one} environment={environment} now={now} />,
        isSorted: true,
      };
    }),
    { heading: "Compared", cell: comparison, isSorted: true },
  ];
  const main = (
    <>
      <h1>{kind[0]?.toUpperCase() + kind.slice(1)}</h1>
      <p class="actions">
        {(mayWrite ? (pages?.actions ?? []) : []).map(({ page, label }) => (
          <a class="button" href={projectPagePath(where, page)}>
            {label}
          </a>
        ))}
      </p>
      {items.length === 0 ? (
        <Empty>
          {where} has no {kind} yet. {mayWrite && pages?.firstStep}
        </Empty>
      ) : (
        <>
          <Filter table="grid" what={kind} />
          <Table caption={`The ${kind} of ${where} by environment`} id="grid" columns={columns} rows={items} isLong />
        </>
      )}
    </>
  );
  return {
    title: `${where} ${kind}`,
    project: visit.inProject(kind),
    main,
  };
}

/** The kind in a path. @throws Refused `not_found` */
export function requireKind(text: string): string {
  const found = everyKind.find(({ kind }) => kind === text);
  if (found === undefined) throw new Refused("not_found", "There is no such page.");
  return found.kind;
}

function Cell({
  of,
  environment,
  now,
}: {
  readonly of: Compared;
  readonly environment: Environment;
  readonly now: number;
}) {
  const there = of.environments[environment];
  if (there === undefined) return <span class="missing">missing</span>;
  return (
    <span class="there">
      <Ago at={there.updatedAt} now={now} />
    </span>
  );
}

/** What a row says about the values that are there, such as `same` or `production differs`. */
export function comparison({ environments: found }: Compared): string {
  const there = environments.flatMap((environment) => {
    const one = found[environment];
    return one === undefined ? [] : [{ environment, group: one.group }];
  });
  if (there.length < 2) return `only ${there[0]?.environment}`;
  if (there.some(({ group }) => group === null)) return `in ${there.map(({ environment }) => environment).join(", ")}`;
  const groups = new Set(there.map(({ group }) => group));
  if (groups.size === 1) return "same";
  if (groups.size === there.length) return there.length === 2 ? "different" : "all different";
  const odd = there.find(({ group }) => there.filter((other) => other.group === group).length === 1);
  return `${odd?.environment} differs`;
}
