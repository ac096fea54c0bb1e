import { and, desc, eq, gt, isNotNull, lt, lte, max, min, type SQL, sql } from "drizzle-orm";
import { dayMs } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import type { KindDescriptor } from "../../serve/sets/kind.ts";
import type { AdminContext } from "../desk/context.ts";
import { arrayOf } from "../desk/validate.ts";
import { isOfSet, type SetName } from "./version-records.ts";

/* How long versions are kept: by age, by number and by bytes. */

/** How long a version is kept after it was replaced, and how many are kept in any case if the bytes allow it. */
const keptMs = 90 * dayMs;
const keptMin = 20;
/** How many are kept whatever their bytes. */
const keptAlways = 2;
/** For this long after a version was replaced, only an operator can remove it. */
const sparedMs = dayMs;

/** The versions of a set, as a transaction sees them. */
type SetVersions = {
  readonly admin: Pick<AdminContext, "database" | "historyBytesMax" | "rights">;
  readonly set: SetName & { readonly descriptor: KindDescriptor };
  /** The version that is in force. */
  readonly current: { readonly version: number; readonly entries: readonly unknown[] };
};

/**
 * Removes the versions before the current one that are too old or have no room, with their records.
 * @returns whether a removed one named a file's content that the current one does not: it may be unused now
 * @throws Refused `bound` if a person's write leaves no room for a version that was in force within the last day: a
 *   person who may write must not remove earlier values
 */
export async function pruneVersions(versions: SetVersions, now: number): Promise<boolean> {
  const { admin, set, current } = versions;
  const { db } = admin.database;
  const { setVersions: v } = admin.database.tables;
  const ofVersions = isOfSet(v, set);
  // A version is kept for 90 days from when it was replaced: when the next one was written. A version dated too early
  // must not expire the ones before it.
  const lastBefore = (at: number) => {
    const recent = db
      .select({ version: min(v.version) })
      .from(v)
      .where(and(ofVersions, gt(v.at, at)));
    return db
      .select({ version: max(v.version) })
      .from(v)
      .where(and(ofVersions, lt(v.version, sql`${recent}`)));
  };
  const remove = (which: SQL | undefined) =>
    db.delete(v).where(and(ofVersions, which)).returning({ listing: v.listing });
  const aged = await remove(
    and(lt(v.version, current.version - keptMin), lt(v.version, sql`${lastBefore(now - keptMs)}`)),
  );
  const beyond = await firstBeyond(versions);
  if (beyond !== undefined && admin.rights !== "operator" && admin.historyBytesMax > 0) {
    const [spared] = await lastBefore(now - sparedMs);
    if (beyond >= (spared?.version ?? 0)) {
      const words = `Nothing was written: earlier versions of the ${set.descriptor.kind} in ${set.environment} take all of their ${admin.historyBytesMax / 1024 / 1024} MiB, and one that was in force today would be lost. Wait a day, or ask an operator, who may write it or remove earlier versions with \`keyhole history purge\`.`;
      throw new Refused("bound", words);
    }
  }
  const excess = beyond === undefined ? [] : await remove(lte(v.version, beyond));
  if (set.descriptor.hasValues) return false;
  const named = new Set(current.entries.map(contentOf));
  return [...aged, ...excess].some(({ listing }) =>
    arrayOf(listing ?? "").some((entry) => !named.has(contentOf(entry))),
  );
}

/** The id of the content that an entry of a listing of files names. */
function contentOf(entry: unknown): unknown {
  return (entry as { readonly id?: unknown } | null)?.id;
}

/** The newest version that has no room; undefined if all have room. */
async function firstBeyond(versions: SetVersions): Promise<number | undefined> {
  const { admin, set } = versions;
  const { db } = admin.database;
  const among = (sizes: readonly Size[], moreBytes = 0) => {
    let bytes = moreBytes;
    return sizes.find((kept, index) => {
      bytes += kept.bytes;
      return index >= keptAlways && bytes > admin.historyBytesMax;
    })?.version;
  };
  const rows = await keptRows(versions);
  const atLeast = among(rows);
  if (set.descriptor.hasValues) return atLeast;
  // There may be hundreds of long kept listings: they are read only if the contents stored for history matter.
  const { fileContents: c, sets: s } = admin.database.tables;
  const [stored] = await db
    .select({ bytes: sql`coalesce(sum(${c.size}), 0)`.mapWith(Number) })
    .from(c)
    .where(eq(c.projectId, set.project.id));
  const listings = await db
    .select({ listing: s.listing })
    .from(s)
    .where(and(eq(s.projectId, set.project.id), eq(s.kind, set.descriptor.kind)));
  const named = new Set<unknown>();
  const inUse = listings.reduce((sum, { listing }) => sum + contentBytes(arrayOf(listing), named), 0);
  if (among(rows, Math.max(0, (stored?.bytes ?? 0) - inUse)) === atLeast) return atLeast;
  return among(await keptSizes(versions));
}

/** How many bytes a kept version takes. */
type Size = { readonly version: number; readonly bytes: number };

/**
 * How many bytes each kept version takes, newest first: of files with the contents that no newer version names. The
 * rows are believed without verification, since only room depends on them.
 */
export async function keptSizes(versions: SetVersions): Promise<readonly Size[]> {
  const { admin, set, current } = versions;
  const { db } = admin.database;
  const { setVersions: v } = admin.database.tables;
  const kept = await keptRows(versions);
  if (set.descriptor.hasValues) return kept;
  const named = new Set<unknown>();
  contentBytes(current.entries, named);
  const sizes: Size[] = [];
  for (const { version, bytes } of kept) {
    const [row] = await db
      .select({ listing: v.listing })
      .from(v)
      .where(and(isOfSet(v, set), eq(v.version, version)));
    sizes.push({ version, bytes: bytes + contentBytes(arrayOf(row?.listing ?? ""), named) });
  }
  return sizes;
}

/** The kept versions before the current one, newest first, with the bytes of their rows. */
function keptRows({ admin, set, current }: SetVersions): Promise<Size[]> {
  const { setVersions: v } = admin.database.tables;
  const isKept = and(isOfSet(v, set), isNotNull(v.listing), lt(v.version, current.version));
  const bytes = sql`octet_length(${v.listing}) + coalesce(octet_length(${v.sealed}), 0)`.mapWith(Number);
  return admin.database.db.select({ version: v.version, bytes }).from(v).where(isKept).orderBy(desc(v.version));
}

/** The bytes of the contents that `named` does not have yet. Adds them to it. */
function contentBytes(entries: readonly unknown[], named: Set<unknown>): number {
  let bytes = 0;
  for (const entry of entries as readonly ({ readonly id?: unknown; readonly size?: unknown } | null)[]) {
    if (named.has(entry?.id)) continue;
    named.add(entry?.id);
    bytes += Number(entry?.size) || 0;
  }
  return bytes;
}
