import { and, eq, getTableColumns, isNotNull } from "drizzle-orm";
import { isSameMac } from "../core/hash.ts";
import { version } from "../core/version.ts";
import { isNext, type PeopleHead, rosterAction, sealHead } from "../record/head.ts";
import { commandsLane, decodeEntries } from "../record/segment.ts";
import { segmentsByLane } from "../record/store/segments.ts";
import { generationOf, orUndefined } from "../seal/envelope.ts";
import { type Keyring, type SystemKeyPurpose, sealFormat } from "../seal/keyring.ts";
import { versionMac, versionMacOf020 } from "../seal/set.ts";
import { sealOrganization } from "../serve/access/grant.ts";
import { foundByOf } from "../serve/access/token.ts";
import { readTrust } from "../serve/access/trust-directory.ts";
import type { Database, Db } from "../store/database.ts";
import { migrate, type Versions } from "../store/migrate.ts";
import type { SystemKeys } from "./system-keys.ts";

/**
 * Upgrades the database of an earlier version: changes its tables, files its trusts and seals what that version did not,
 * in one transaction.
 */
export function upgrade(database: Database, keyring: Keyring, systemKeys: SystemKeys): Promise<Versions> {
  return migrate(database, (db) => bringUp(database, db, keyring, systemKeys));
}

/** What to tell a person about an upgrade. */
export function upgradedMessage({ from, to }: Versions): string {
  return `The database was upgraded from version ${from} to version ${to}, for Keyhole ${version}. Older programs cannot open it any more.`;
}

/**
 * Seals, once, what earlier versions did not: the head of the lane of commands, and in a database of 0.2.0 the rows of
 * organizations and of each version's record the mac of its listing, as they are. The system keys are wrapped again,
 * with a format that nobody can take back without the root key. From then on a row without its seal is refused.
 */
async function bringUp(database: Database, db: Db, keyring: Keyring, systemKeys: SystemKeys): Promise<void> {
  await fileTrusts(database, db, systemKeys.grant);
  const { systemKeys: k } = database.tables;
  const rows = await database.locked(db.select().from(k));
  // Another process may have been first.
  const formats = rows.map(({ wrapped }) => generationOf(wrapped));
  if (formats.includes(sealFormat)) return;
  if (formats.includes(0)) {
    await sealOrganizations(database, db, systemKeys);
    await sealRecords(database, db, systemKeys);
  }
  await sealCommands({ ...database, db }, systemKeys.audit);
  for (const row of rows) {
    const purpose = row.purpose as SystemKeyPurpose;
    const wrapped = keyring.wrapSystemKey(purpose, systemKeys[purpose], row.rootId);
    await db.update(k).set(wrapped).where(eq(k.purpose, purpose));
  }
}

/**
 * Seals the head of the lane of commands with the roster that the lane names last. If the lane does not end there, or
 * is broken after a change of the roster, the head stays unsealed and no roster is trusted.
 */
async function sealCommands(database: Database, auditKey: Uint8Array): Promise<void> {
  const { auditHeads: h, auditCheckpoints: c } = database.tables;
  const [dropped] = await database.db.select().from(c).where(eq(c.lane, commandsLane));
  let last: Omit<PeopleHead, "roster"> = { lane: commandsLane, seq: 0, mac: Buffer.alloc(0), ...dropped, at: 0 };
  let roster: string | null | undefined = null;
  for await (const one of segmentsByLane(database, {}, { lane: commandsLane, seq: last.seq + 1 })) {
    const named = decodeEntries(one)?.findLast(({ action }) => action === rosterAction)?.names[0];
    if (isNext(auditKey, last, one)) roster = named ?? roster;
    else if (roster !== null || named !== undefined) roster = undefined;
    last = { lane: one.lane, seq: one.lastSeq, at: one.at, mac: one.mac };
  }
  if (roster === undefined) return;
  const head = { ...last, roster };
  const isHere = and(eq(h.lane, last.lane), eq(h.seq, last.seq), eq(h.mac, last.mac));
  await database.db
    .update(h)
    .set({ ...head, seal: sealHead(auditKey, head) })
    .where(isHere);
}

/** Files the trusts of earlier versions under what a token finds them by. One that is damaged stays unfound. */
async function fileTrusts({ tables }: Database, db: Db, grantKey: Uint8Array): Promise<void> {
  const { apiKeys: k } = tables;
  for (const row of await db.select().from(k).where(isNotNull(k.trust))) {
    const trust = readTrust({ ...row, keyId: row.id }, grantKey);
    const foundBy = trust && foundByOf(trust.terms);
    if (foundBy) await db.update(k).set({ foundBy }).where(eq(k.id, row.id));
  }
}

async function sealOrganizations({ tables }: Database, db: Db, systemKeys: SystemKeys): Promise<void> {
  const { organizations: o } = tables;
  for (const { id, slug } of await db.select({ id: o.id, slug: o.slug }).from(o)) {
    const seal = sealOrganization(systemKeys.grant, { id, slug });
    await db.update(o).set({ seal }).where(eq(o.id, id));
  }
}

/** A record that does not verify stays as it is. One project at a time: names may take some megabytes. */
async function sealRecords({ tables }: Database, db: Db, { listing: key }: SystemKeys): Promise<void> {
  const { projects: p, sets: s, setVersions: v } = tables;
  const { generation: _, listing: __, sealed: ___, ...columns } = getTableColumns(v);
  for (const { id } of await db.select({ id: p.id }).from(p)) {
    const isCurrent = and(
      eq(s.projectId, v.projectId),
      eq(s.kind, v.kind),
      eq(s.environment, v.environment),
      eq(s.version, v.version),
    );
    const rows = await db
      .select({ record: columns, current: s.listingMac })
      .from(v)
      .leftJoin(s, isCurrent)
      .where(eq(v.projectId, id));
    for (const { record, current } of rows) {
      const { kind, environment, version } = record;
      const was = orUndefined(() => versionMacOf020(key, record));
      if (!isSameMac(was, record.mac)) continue;
      const listingMac = record.listingMac ?? current;
      const mac = versionMac(key, { ...record, listingMac });
      const isThis = and(eq(v.projectId, id), eq(v.kind, kind), eq(v.environment, environment), eq(v.version, version));
      await db.update(v).set({ listingMac, mac }).where(isThis);
    }
  }
}
