import { createHmac, randomBytes } from "node:crypto";
import { asc, eq } from "drizzle-orm";
import { isTelling } from "../../core/formats/github.ts";
import type { Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { everyKind } from "../../kinds/kind.ts";
import { searchAction } from "../../record/entry.ts";
import { hasSomewhere } from "../../serve/access/rights.ts";
import { type AdminContext, mayCompare, writing } from "../desk/context.ts";
import { ofOrganization } from "../desk/organizations.ts";
import { Permit } from "../desk/permit.ts";
import { type FoundProject, placeOf, projectColumns, projectPath } from "../desk/projects.ts";
import { namesContent, showContent } from "../editing/contents.ts";
import { openSet } from "../editing/open.ts";
import { Matcher, type Spot } from "./matcher.ts";
import { type Text, type Unread, whyNot } from "./texts.ts";

/* All values that somebody may read, compared: with texts, or with each other. No value leaves this file. */

/** Where a value is stored. */
export type ValuePlace = {
  /** `ORG/PROJECT`. */
  readonly project: string;
  readonly environment: Environment;
  /** What it is, such as `variable`. */
  readonly type: string;
  readonly name: string;
  /** Of an account. */
  readonly field?: string;
};
type SearchedValue = { readonly bytes: Buffer; readonly places: ValuePlace[] };
type SearchedPlace = { readonly project: FoundProject; readonly environment: Environment };

/** Which values are compared: of one organization or all, and no more than so many bytes. */
type Among = { readonly organization?: string | undefined; readonly bytesMax?: number };

/**
 * @throws Refused `conflict` for a set or content that does not open: nothing is compared in part; `forbidden` for
 * somebody who may read values nowhere; `bound` for values and contents that take more than memory is for
 * @returns each value once, where they are from, and how many are left out: they are too short or too common to tell
 *   anything, or for machines only
 */
async function valuesOf(
  admin: AdminContext,
  { organization, bytesMax = comparedBytesMax }: Among,
  opensContents: boolean,
) {
  if (!hasSomewhere(admin.rights, "reveal")) {
    throw new Refused("forbidden", "To compare values takes the right `reveal`.");
  }
  // Values are the same if their hashes under this key are, which nobody ever has.
  const key = randomBytes(32);
  const values = new Map<string, SearchedValue>();
  const places = await placesOf(admin, organization);
  let [held, leftOut] = [0, 0];
  const add = (place: ValuePlace, whole: Buffer) => {
    // In a log or a file, another line break may follow, or none.
    let end = whole.length;
    while (whole[end - 1] === 10 || whole[end - 1] === 13) end -= 1;
    const bytes = whole.subarray(0, end);
    if (bytes.length < leastBytes || !isTelling(bytes.toString("latin1"))) {
      leftOut += 1;
      return;
    }
    note(createHmac("sha256", key).update(bytes).digest("latin1"), place, bytes);
  };
  const note = (hash: string, place: ValuePlace, bytes: Buffer) => {
    values.getOrInsertComputed(hash, () => ({ bytes, places: [] })).places.push(place);
  };
  const hold = (bytes: number) => {
    held += bytes;
    if (held <= bytesMax) return;
    const words = `The values and files that you may read take more than ${bytesMax / 2 ** 20} MiB. Nothing was compared.`;
    throw new Refused("bound", `${words} Compare those of one organization, or let people with fewer projects do it.`);
  };
  for (const { project, environment } of places) {
    for (const descriptor of everyKind) {
      const { items } = await openSet(admin, { project, environment, descriptor });
      for (const [name, { entry, value, isHidden }] of items) {
        if (isHidden) {
          leftOut += 1;
          continue;
        }
        const place = { project: projectPath(project), environment, type: descriptor.item, name };
        if (namesContent(descriptor, entry)) {
          if (!opensContents) {
            note(entry.sha256, place, Buffer.alloc(0));
            continue;
          }
          hold(entry.size);
          const content = await showContent(admin, project.id, { entry, isHidden });
          if (content === undefined)
            throw new Refused("conflict", `The content of ${JSON.stringify(name)} does not open.`);
          add(place, content);
          continue;
        }
        const texts = descriptor.textsOf?.(JSON.parse(value?.shown() ?? "{}") as never) ?? {};
        for (const [field, text] of Object.entries(texts)) {
          hold(text.length);
          add({ ...place, ...(field !== "" && { field }) }, Buffer.from(text));
        }
      }
      for (const { value } of items.values()) value?.zero();
    }
  }
  return { values: [...values.values()], places, leftOut };
}

const leastBytes = 8;
/** They are in memory at once, on the host of the door for who comes by it. */
const comparedBytesMax = 512 * 1024 * 1024;

/** Every environment whose values somebody may compare, by the bytes of organization and slug. */
async function placesOf(admin: AdminContext, organization: string | undefined): Promise<SearchedPlace[]> {
  const { projects: p, organizations: o } = admin.database.tables;
  const rows = await admin.database.db
    .select({ own: projectColumns(admin), organization: o })
    .from(p)
    .innerJoin(o, eq(o.id, p.organizationId))
    .where(await ofOrganization(admin, p, organization))
    .orderBy(asc(o.slug), asc(p.slug));
  return rows.flatMap(({ own, organization }) => {
    const place = placeOf({ ...own, organization });
    const permit = Permit.find(admin, ["reveal"], place);
    if (permit === undefined) return [];
    const project = { ...own, organization, permit };
    return permit.environments
      .filter((environment) => mayCompare(admin, place, environment))
      .map((environment) => ({ project, environment }));
  });
}

/** Puts on record that all values of these places were compared, and which names that told. */
async function record(admin: AdminContext, places: readonly SearchedPlace[], found: readonly ValuePlace[]) {
  for (let at = 0; at < places.length; at += entriesAtOnce) {
    const some = places.slice(at, at + entriesAtOnce);
    const changes = some.map(({ project, environment }) => {
      const here = found.filter((one) => one.project === projectPath(project) && one.environment === environment);
      const { id, slug, organization } = project;
      const names = [...new Set(here.map(({ name }) => name))].sort();
      return { action: searchAction, organization, project: { id, slug }, environment, names } as const;
    });
    await writing(
      admin,
      some.map(({ project }) => project.permit),
      async () => [undefined, changes],
    );
  }
}

const entriesAtOnce = 500;

/** A value that stands in a text. */
export type Leak = ValuePlace & Omit<Spot, "value"> & { readonly file: string };

/** What {@link findLeaks} found, and what it looked at. */
export type Leaks = Awaited<ReturnType<typeof findLeaks>>;

/**
 * Where values stand in texts. That is on record once this resolves, for each environment.
 * @param report - called with the MiB so far
 * @throws Refused as {@link valuesOf}
 */
export async function findLeaks(
  admin: AdminContext,
  texts: AsyncIterable<Text>,
  report: (done: number) => void,
  among: Among = {},
) {
  const { values, places, leftOut } = await valuesOf(admin, among, true);
  const matcher = new Matcher(values.map(({ bytes }) => bytes));
  const [found, unread]: [Leak[], Unread[]] = [[], []];
  let [count, bytes] = [0, 0];
  const add = (file: string, { value, ...spot }: Spot) => {
    count += 1;
    for (const place of values[value]?.places ?? [])
      if (found.length < foundMax) found.push({ ...place, file, ...spot });
  };
  for await (const text of texts) {
    const { name } = text;
    if ("unread" in text) {
      unread.push({ name, why: text.unread });
      continue;
    }
    // Of a value that stands there as a whole, its lines are no news; of another one, the first is enough.
    const whole = new Set<number>();
    const lines = new Map<number, Spot>();
    const note = (spot: Spot) => {
      if (spot.form !== "a line") add(name, spot);
      if (spot.form !== "a line") whole.add(spot.value);
      else if (!lines.has(spot.value)) lines.set(spot.value, spot);
    };
    try {
      bytes += await matcher.scan(text.chunks, note);
    } catch (error) {
      unread.push({ name, why: whyNot(error as NodeJS.ErrnoException, name) });
    }
    for (const [value, spot] of lines) if (!whole.has(value)) add(name, spot);
    report(Math.floor(bytes / 2 ** 20));
  }
  for (const { bytes } of values) bytes.fill(0);
  await record(admin, places, found);
  return { found, count, unread, bytes, values: values.length, leftOut, environments: places.length };
}

/** The most places that are named. The others are counted. */
const foundMax = 10_000;

/** A value that is stored more than once. */
export type Reused = { readonly isBeyondProduction: boolean; readonly places: readonly ValuePlace[] };

/**
 * Which values are stored more than once: production's in other environments first, then by how often. That is on record
 * once this resolves.
 */
export async function findReuse(admin: AdminContext, organization?: string): Promise<Reused[]> {
  const { values, places: all } = await valuesOf(admin, { organization }, false);
  const reused = values.flatMap(({ places, bytes }): Reused[] => {
    bytes.fill(0);
    const inProduction = places.filter(({ environment }) => environment === "production");
    const isBeyondProduction = inProduction.length > 0 && inProduction.length < places.length;
    return places.length > 1 ? [{ isBeyondProduction, places }] : [];
  });
  await record(
    admin,
    all,
    reused.flatMap(({ places }) => places),
  );
  const rank = ({ isBeyondProduction, places }: Reused) => (isBeyondProduction ? 1e9 : 0) + places.length;
  return reused.sort((a, b) => rank(b) - rank(a));
}
