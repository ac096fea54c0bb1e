import { and, eq } from "drizzle-orm";
import { sealOrganization } from "../access/grant.ts";
import { generationOf } from "../seal/envelope.ts";
import { type Keyring, type SystemKeyPurpose, sealFormat } from "../seal/keyring.ts";
import { versionMac, versionMacOf020 } from "../seal/set.ts";
import type { Database, Db } from "../store/database.ts";
import { isOfSet, isVerified, recordColumns } from "./version-records.ts";

type SystemKeys = Readonly<Record<SystemKeyPurpose, Uint8Array>>;

/**
 * Seals what 0.2.0 did not: the rows of organizations, and of each version's record the mac of its listing. It takes
 * them as they are, once: the system keys are wrapped again in the same transaction, with a format that nobody can take
 * back without the root key. From then on a row without its seal is refused.
 */
export async function sealAllOf020(database: Database, keyring: Keyring, systemKeys: SystemKeys): Promise<void> {
  const { systemKeys: k } = database.tables;
  await database.transaction(async (db) => {
    const query = db.select().from(k);
    const rows = await (database.dialect === "postgres" ? query.for("update") : query);
    // Another process may have been first.
    if (rows.some(({ wrapped }) => generationOf(wrapped) === sealFormat)) return;
    await sealOrganizations(database, db, systemKeys);
    await sealRecords(database, db, systemKeys);
    for (const row of rows) {
      const purpose = row.purpose as SystemKeyPurpose;
      const wrapped = keyring.wrapSystemKey(purpose, systemKeys[purpose], row.rootId);
      await db.update(k).set(wrapped).where(eq(k.purpose, purpose));
    }
  });
}

async function sealOrganizations({ tables }: Database, db: Db, systemKeys: SystemKeys): Promise<void> {
  const { organizations: o } = tables;
  for (const { id, slug } of await db.select({ id: o.id, slug: o.slug }).from(o)) {
    const seal = sealOrganization(systemKeys.grant, { id, slug });
    await db.update(o).set({ seal }).where(eq(o.id, id));
  }
}

/** A record that does not verify stays as it is. One project at a time: names may take some megabytes. */
async function sealRecords(database: Database, db: Db, systemKeys: SystemKeys): Promise<void> {
  const { projects: p, sets: s, setVersions: v } = database.tables;
  for (const project of await db.select({ id: p.id }).from(p)) {
    const rows = await db
      .select({ record: recordColumns({ database }), current: s.listingMac })
      .from(v)
      .leftJoin(
        s,
        and(
          eq(s.projectId, v.projectId),
          eq(s.kind, v.kind),
          eq(s.environment, v.environment),
          eq(s.version, v.version),
        ),
      )
      .where(eq(v.projectId, project.id));
    for (const { record, current } of rows) {
      if (!isVerified({ systemKeys }, record, versionMacOf020)) continue;
      const listingMac = record.listingMac ?? current;
      const mac = versionMac(systemKeys.listing, { ...record, listingMac });
      await db
        .update(v)
        .set({ listingMac, mac })
        .where(
          and(
            isOfSet(v, { project, descriptor: record, environment: record.environment }),
            eq(v.version, record.version),
          ),
        );
    }
  }
}
