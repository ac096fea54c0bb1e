/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { type Environment, environments } from "../../core/names.ts";
import { Collapsed, changesOf, Envs, joined, Moment, Name, Word } from "../../dashboard/parts/parts.tsx";
import { projectPagePath } from "../../dashboard/parts/paths.ts";
import { everyRight, type Right } from "../../serve/access/rights.ts";
import type { PersonAccess, RightsInPlace } from "./persons.ts";

/* Rights in words: what a person has alike in several places or environments is said once. */

/** Rights that somebody has alike, in each of these places and environments. */
type Alike = {
  readonly name: string;
  readonly rights: readonly Right[];
  /** Paths of projects, or such as `acme/*` for all of an organization. */
  readonly places: readonly string[];
  readonly environments: readonly Environment[];
  /** In epoch milliseconds; null if they never end. */
  readonly until: number | null;
  readonly by: string | null;
};

type OfProject = PersonAccess & { readonly where: string };

/** What a person has: what their record says, and what it does not say of each project. Nothing that has ended. */
export function rightsInForceOf(
  name: string,
  held: readonly RightsInPlace[],
  rows: readonly OfProject[] = [],
): Alike[] {
  const recorded = held.flatMap(({ ended, organization, project, ...one }) =>
    ended ? [] : oneByOne({ ...one, name, places: [`${organization}/${project ?? "*"}`] }),
  );
  const found = rows.flatMap(({ where, rightsIn, endsIn }) =>
    environments.flatMap((environment) =>
      (rightsIn[environment] ?? []).map((right): Alike => {
        const until = endsIn[environment]?.[right] ?? null;
        return { name, rights: [right], places: [where], environments: [environment], until, by: null };
      }),
    ),
  );
  const unitOf = (where: string, { rights, environments }: Alike) => [where, rights, environments].join();
  const said = new Set(recorded.map((one) => unitOf(one.places[0] ?? "", one)));
  const isSaid = (one: Alike) => {
    const [where = ""] = one.places;
    return [where, where.replace(/\/.*/, "/*")].some((place) => said.has(unitOf(place, one)));
  };
  return merged(withSee([...recorded, ...found.filter((one) => !isSaid(one))]));
}

/** Who has `reveal` for a time, and `see` for no shorter one, reads for that time. @param units - as for `merged` */
function withSee(units: readonly Alike[]): readonly Alike[] {
  const seen = new Map<string, number>();
  for (const { rights, places, environments, until } of units) {
    const unit = [places, environments].join();
    if (rights[0] === "see") seen.set(unit, Math.max(seen.get(unit) ?? 0, until ?? Number.POSITIVE_INFINITY));
  }
  return units.flatMap((one) => {
    const where = one.places.join();
    const ends = [where, where.replace(/\/.*/, "/*")].map((place) => seen.get([place, one.environments].join()) ?? 0);
    const reads = one.rights[0] === "reveal" && Math.max(...ends) >= (one.until ?? Number.POSITIVE_INFINITY);
    return reads ? [one, { ...one, rights: ["see"] }] : [one];
  });
}

/** The same rights, one in one environment each. */
function oneByOne(all: Alike): Alike[] {
  return all.environments.flatMap((environment) =>
    all.rights.map((right) => ({ ...all, rights: [right], environments: [environment] })),
  );
}

/** @param all - with one right in one environment of one place each */
function merged(all: readonly Alike[]): Alike[] {
  return (["rights", "environments", "places"] as const).reduce<readonly Alike[]>((all, part) => {
    const alike = Map.groupBy(all, ({ [part]: _, ...rest }) => JSON.stringify(rest));
    return [...alike.values()].map((those) => {
      const values: readonly string[] = those.flatMap((one): readonly string[] => one[part]);
      return { ...(those[0] as Alike), [part]: inOrder[part]?.filter((one) => values.includes(one)) ?? values };
    });
  }, all) as Alike[];
}

const inOrder: Readonly<Record<string, readonly string[]>> = { rights: everyRight, environments };

/**
 * A line for each group of rights.
 * @param all - a place of "" is not named, because the page is about it
 * @param name - of the person whose page it is on, which is not said again
 * @param linked - paths of projects whose pages are there
 */
export function rightsLines(all: readonly Alike[], name: string, linked: readonly string[] = []): VNode[] {
  return all.map(({ places, environments: among, ...one }) => (
    <>
      {one.name !== name && [<Word>{one.name}</Word>, ", "]}
      {places[0] !== "" && [<Collapsed items={places.map((where) => placeOf(where, linked))} max={12} />, ": "]}
      {wordsOf(one.rights)}
      <InEnvironments among={among} />
      {one.until !== null && [" until ", <Moment at={one.until} />]}
      {one.by !== null && [", given by ", <Word>{one.by}</Word>]}
    </>
  ));
}

/** In which environments: " in staging", or ", everywhere". */
export function InEnvironments({ among }: { readonly among: readonly Environment[] }) {
  return <>{among.length < environments.length ? [" in ", <Envs values={among} />] : ", everywhere"}</>;
}

function placeOf(where: string, linked: readonly string[]): ComponentChildren {
  const [organization = "", project] = where.split("/");
  if (project === "*") return ["all projects of ", <Name>{organization}</Name>];
  return <Name to={linked.includes(where) ? projectPagePath(where, "access") : undefined}>{where}</Name>;
}

/** A list of rights, or a sentence if there are none. */
export function RightsList({ lines, none = "" }: { readonly lines: readonly VNode[]; readonly none?: string }) {
  if (lines.length === 0) return none === "" ? null : <p class="quiet">{none}</p>;
  return (
    <ul>
      {lines.map((line) => (
        <li>{line}</li>
      ))}
    </ul>
  );
}

/** The rights that an entry of the audit added or deleted. A line that is not a right is shown as the entry has it. */
export function RightsChanged(props: { readonly names: Parameters<typeof changesOf>[0]; readonly name: string }) {
  const { names, name } = props;
  const lines = changesOf(names).flatMap(([what, lines]) =>
    changedLines(lines, name).map((line) => (
      <>
        {what === "deleted" ? <span class="missing">deleted</span> : what} {line}
      </>
    )),
  );
  return <RightsList lines={lines} />;
}

/** Lines of an entry, such as `ben see acme/web staging until 2026-11-29T22:03:00Z by ana`. */
function changedLines(lines: readonly string[], name: string): readonly VNode[] {
  const parsed = lines.map(parseLine);
  const others = lines.filter((_, at) => parsed[at] === undefined);
  return [
    ...others.map((line) => <Name>{line}</Name>),
    ...rightsLines(merged(parsed.filter((one) => one !== undefined)), name),
  ];
}

function parseLine(line: string): Alike | undefined {
  const [, name = "", asked, where = "", among, until, by = null] = lineOfRight.exec(line) ?? [];
  const right = everyRight.find((one) => one === asked);
  const environment = environments.find((one) => one === among);
  if (right === undefined || environment === undefined) return undefined;
  const ends = until === undefined ? null : Date.parse(until);
  return { name, rights: [right], places: [where], environments: [environment], until: ends, by };
}

const lineOfRight = /^(\S+) (\w+) (\S+\/\S+) (\w+)(?: until (\S+))?(?: by (\S+))?$/;

/** Rights that many people have together, the most first. */
const known: readonly (readonly [words: string, rights: readonly Right[]])[] = [
  ["● all rights", everyRight],
  ["● reads and writes", ["see", "reveal", "write"]],
  ["● reads", ["see", "reveal"]],
  ["○ names", ["see"]],
];

/** What rights are together. */
export function wordsOf(held: readonly Right[]): string {
  const [words = "", rights = []] = known.find(([, rights]) => rights.every((one) => held.includes(one))) ?? [];
  const others = everyRight.filter((right) => held.includes(right) && !rights.includes(right));
  return [...(words === "" ? [] : [words]), ...others].join(", ");
}

/** What a person may do in one environment: first what lasts. */
export function rightsCell({ rightsIn, endsIn }: PersonAccess, environment: Environment): ComponentChildren {
  const endOf = (right: Right) => endsIn[environment]?.[right] ?? null;
  const held = rightsIn[environment] ?? [];
  const sees = held.includes("see") ? (endOf("see") ?? Number.POSITIVE_INFINITY) : 0;
  const ends = Map.groupBy(held, endOf);
  const lastingFirst = [...ends].sort(([a], [b]) => (a ?? 0) - (b ?? 0));
  return joined(
    lastingFirst.map(([until, rights]) => [
      wordsOf(rights.includes("reveal") && sees >= (until ?? Number.POSITIVE_INFINITY) ? ["see", ...rights] : rights),
      until !== null && (
        <span>
          {" "}
          until <Moment at={until} />
        </span>
      ),
    ]),
  );
}

/** Explains the words. */
export function RightsInWords() {
  return (
    <p class="quiet">
      Who reads has the rights see and reveal; who reads and writes, also write; all rights are these with keys, decide,
      audit and grant.
    </p>
  );
}
