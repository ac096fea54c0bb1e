import { and, desc, eq, getTableColumns, gt, lte } from "drizzle-orm";
import { isSameMac } from "../../core/hash.ts";
import type { Environment } from "../../core/names.ts";
import type { StoredSet } from "../../core/set-rows.ts";
import { type NamesWritten, type PersonActor, personText } from "../../record/entry.ts";
import { orUndefined } from "../../seal/envelope.ts";
import { type SetVersion, versionMac } from "../../seal/set.ts";
import type { Database, Tables } from "../../store/database.ts";

/*
 * The records of a set's versions: who wrote each, when, and which names. The mac of a record covers that of the
 * listing too, so that nobody can be blamed for other content. A record that does not verify is never believed.
 */

type Keys = { readonly systemKeys: { readonly listing: Uint8Array } };
type Admin = Keys & { readonly database: Database };

export type SetName = {
  readonly project: { readonly id: string };
  readonly descriptor: { readonly kind: string };
  readonly environment: Environment;
};

/** A condition: which rows of a table are of this set. */
export function isOfSet(table: Tables["sets"] | Tables["setVersions"], { project, descriptor, environment }: SetName) {
  return and(eq(table.projectId, project.id), eq(table.kind, descriptor.kind), eq(table.environment, environment));
}

/** Stores the record of the version that has just become current. A forged record of that number is replaced. */
export async function insertRecord(
  admin: Admin & { readonly actor: PersonActor },
  { projectId, kind, environment, version, listingMac }: Tables["sets"]["$inferSelect"],
  at: number,
  names: NamesWritten,
): Promise<void> {
  const { setVersions: v } = admin.database.tables;
  const identity = { projectId, kind, environment, version };
  const record = { ...identity, at, actor: personText(admin.actor), names: JSON.stringify(names), listingMac };
  const row = { ...record, mac: versionMac(admin.systemKeys.listing, record) };
  await admin.database.db
    .insert(v)
    .values(row)
    .onConflictDoUpdate({
      target: [v.projectId, v.kind, v.environment, v.version],
      set: { ...row, generation: null, listing: null, sealed: null },
    });
}

export function recordColumns({ database }: Pick<Admin, "database">) {
  const { setVersions: v } = database.tables;
  const { generation: _, listing: __, sealed: ___, ...columns } = getTableColumns(v);
  return columns;
}

/** Whether Keyhole wrote a record. */
export function isVerified({ systemKeys }: Keys, record: SetVersion & { readonly mac: Uint8Array }): boolean {
  const mac = orUndefined(() => versionMac(systemKeys.listing, record));
  return isSameMac(mac, record.mac);
}

/**
 * The number of the version that follows the current one. If SQL put the set back to an earlier version, it follows
 * the newest record: no number is given twice.
 */
export async function nextVersion(admin: Admin, of: SetName, version: number): Promise<number> {
  const { setVersions: v } = admin.database.tables;
  const newer = await admin.database.db
    .select(recordColumns(admin))
    .from(v)
    .where(and(isOfSet(v, of), gt(v.version, version)))
    .orderBy(desc(v.version));
  return (newer.find((record) => isVerified(admin, record))?.version ?? version) + 1;
}

/**
 * Who wrote a set after a version, when, and which names, newest first.
 * @returns undefined unless the record of every version since is there and verified
 */
export async function writtenSince(admin: Admin, of: SetName & { readonly version: number }, seen: number) {
  const { setVersions: v } = admin.database.tables;
  const rows = await admin.database.db
    .select(recordColumns(admin))
    .from(v)
    .where(and(isOfSet(v, of), gt(v.version, seen), lte(v.version, of.version)))
    .orderBy(desc(v.version));
  const records = rows.filter((row) => isVerified(admin, row));
  if (records.length === 0 || records.length !== of.version - seen) return undefined;
  return records.map(({ version, at, actor: by, names }) => ({
    version,
    at,
    by,
    ...(JSON.parse(names) as NamesWritten),
  }));
}

/**
 * New macs for the record of a version that is sealed again unchanged; undefined if the record is not verified, or of
 * other content.
 */
export async function resealedRecord(admin: Admin, of: SetName, stored: StoredSet, listingMac: Buffer) {
  const { setVersions: v } = admin.database.tables;
  const [record] = await admin.database.db
    .select(recordColumns(admin))
    .from(v)
    .where(and(isOfSet(v, of), eq(v.version, stored.version)));
  if (!(record && isVerified(admin, record) && isRecordOf(record, stored))) return undefined;
  return { listingMac, mac: versionMac(admin.systemKeys.listing, { ...record, listingMac }) };
}

/** Whether a record is that of this content. */
export function isRecordOf(
  record: { readonly listingMac: Buffer | null },
  stored: { readonly listingMac: Buffer | null },
): boolean {
  const { listingMac } = record;
  return listingMac !== null && stored.listingMac !== null && listingMac.equals(stored.listingMac);
}
