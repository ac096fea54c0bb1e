import { timingSafeEqual } from "node:crypto";
import { and, asc, count, eq, gt, type SQL } from "drizzle-orm";
import { sealGrant } from "../access/grant.ts";
import type { Flaw } from "../audit/verify.ts";
import { type EnvironmentMask, environmentMask, environments, itemsMax } from "../names.ts";
import { holdAgainstItemSet } from "../read/item-sets.ts";
import { DataKeys } from "../read/source.ts";
import { noListing, variablesArray } from "../render/variables-json.ts";
import { generationOf, open } from "../seal/envelope.ts";
import {
  accountEntry,
  fileEntry,
  type ItemEntry,
  type ItemKind,
  itemListing,
  variableEntry,
} from "../seal/item-set.ts";
import { accountPlace, filePlace, setPlace, variablePlace } from "../seal/place.ts";
import { verifyAudit } from "./audit-chain.ts";
import type { Desk } from "./desk.ts";

/** How much of everything was opened. */
export type Opened = {
  projects: number;
  variables: number;
  accounts: number;
  files: number;
  /** Of variables. */
  sets: number;
  keys: number;
  auditEntries: number;
};

/** The first item that is not what was stored, in words that hold no value. */
export class DoesNotOpen extends Error {
  override readonly name = "DoesNotOpen";
}

/**
 * Opens every item of a database as a request would, one after the other and nothing of it kept, holds each environment's
 * variables, accounts and files against its sets, checks every key's grant seal and walks the audit chain.
 *
 * @param progress - told how many of how many items have been opened
 * @throws DoesNotOpen
 */
export async function openEveryItem(
  desk: Desk,
  progress: (done: number, total: number) => void = () => {},
): Promise<Opened> {
  const { db, tables: t } = desk.database;
  const opened: Opened = { projects: 0, variables: 0, accounts: 0, files: 0, sets: 0, keys: 0, auditEntries: 0 };
  let total = 0;
  for (const table of [t.variables, t.accounts, t.files, t.auditEntries]) {
    total += (await db.select({ rows: count() }).from(table))[0]?.rows ?? 0;
  }
  const done = () => opened.variables + opened.accounts + opened.files + opened.auditEntries;
  const rows = pages((after: { project: { id: string } } | undefined) =>
    db
      .select({ project: t.projects, organization: t.organizations })
      .from(t.projects)
      .innerJoin(t.organizations, eq(t.organizations.id, t.projects.organizationId))
      .where(after && gt(t.projects.id, after.project.id))
      .orderBy(asc(t.projects.id))
      .limit(rowsPerPage),
  );
  for await (const { project, organization } of rows) {
    const place = { id: project.id, organizationId: organization.id, slug: project.slug };
    const where = `${organization.slug}/${project.slug}`;
    const wrapped = await db.select().from(t.dataKeys).where(eq(t.dataKeys.projectId, project.id));
    const dataKeys = new DataKeys(
      desk.keyring,
      place,
      wrapped.map((row) => ({ id: row.rootId, number: row.generation, bytes: row.wrapped })),
    );
    for (const { generation } of wrapped) {
      judged(`data key ${generation} of ${where}`, () => dataKeys.of(generation));
    }
    await openVariables(desk, dataKeys, project.id, where, opened, () => progress(done(), total));
    await openAccounts(desk, dataKeys, project.id, where, opened);
    await openFiles(desk, dataKeys, project.id, where, opened, () => progress(done(), total));
    opened.projects += 1;
    progress(done(), total);
  }
  await checkGrants(desk, opened);
  const before = done();
  const audit = await verifyAudit(desk, undefined, (entries) => progress(before + entries, total));
  if ("what" in audit) throw new DoesNotOpen(`The audit entry ${audit.seq} of lane ${audit.lane} was ${did(audit)}.`);
  opened.auditEntries = audit.entries;
  return opened;
}

const rowsPerPage = 500;

async function openVariables(
  desk: Desk,
  dataKeys: DataKeys,
  projectId: string,
  where: string,
  opened: Opened,
  progress: () => void,
): Promise<void> {
  const { db, tables } = desk.database;
  const { variables: v, variableSets: s } = tables;
  for (const environment of environments) {
    const here = and(eq(v.projectId, projectId), eq(v.environment, environment)) as SQL;
    const members: { name: string; value: string; updatedAt: number }[] = [];
    const entries: ItemEntry[] = [];
    let over = false;
    const rows = pages((after: typeof v.$inferSelect | undefined) =>
      db
        .select()
        .from(v)
        .where(and(here, after && gt(v.name, after.name)))
        .orderBy(asc(v.name))
        .limit(rowsPerPage),
    );
    for await (const row of rows) {
      const { id, name, version, sealed, updatedAt } = row;
      const value = judged(`the variable ${name} of ${where}, ${environment}`, () => {
        const place = variablePlace({ projectId, environment, variableId: id, version, name });
        const plaintext = open(dataKeys.of(generationOf(sealed)).subkey("variable"), place, sealed);
        const text = plaintext.toString("utf8");
        plaintext.fill(0);
        entries.push(variableEntry(projectId, environment, row));
        return text;
      });
      opened.variables += 1;
      if (opened.variables % rowsPerPage === 0) progress();
      over ||= members.length === itemsMax;
      if (over) members.length = 0;
      else members.push({ name, value, updatedAt });
    }
    const [set] = await db
      .select()
      .from(s)
      .where(and(eq(s.projectId, projectId), eq(s.environment, environment)));
    judged(`the set of variables of ${where}, ${environment}`, () => {
      if (!set || generationOf(set.sealed) !== set.generation) throw new Error("no set of this generation");
      const { revision, listing, sealed } = set;
      const place = setPlace({ projectId, environment, revision, listing });
      const plaintext = open(dataKeys.of(set.generation).subkey("set"), place, sealed);
      const text = listing === noListing ? itemListing(entries) : variablesArray(members);
      const same = plaintext.toString("utf8") === text;
      plaintext.fill(0);
      if (!same || (over && listing !== noListing)) throw new Error("rows and set differ");
      opened.sets += 1;
    });
  }
}

async function openAccounts(
  desk: Desk,
  dataKeys: DataKeys,
  projectId: string,
  where: string,
  opened: Opened,
): Promise<void> {
  const { db, tables } = desk.database;
  const { accounts: a } = tables;
  const rows = pages((after: typeof a.$inferSelect | undefined) =>
    db
      .select()
      .from(a)
      .where(and(eq(a.projectId, projectId), after && gt(a.name, after.name)))
      .orderBy(asc(a.name))
      .limit(rowsPerPage),
  );
  const stored: Stored[] = [];
  for await (const row of rows) {
    const { id, name, version, environments: mask, sealed } = row;
    judged(`the account ${JSON.stringify(name)} of ${where}`, () => {
      const place = accountPlace({ projectId, accountId: id, version, environments: mask, name });
      const plaintext = open(dataKeys.of(generationOf(sealed)).subkey("account"), place, sealed);
      JSON.parse(plaintext.toString("utf8"));
      plaintext.fill(0);
      stored.push({ mask, entry: accountEntry(projectId, row) });
    });
    opened.accounts += 1;
  }
  await holdAgainstSets(desk, dataKeys, projectId, "accounts", where, stored);
}

async function openFiles(
  desk: Desk,
  dataKeys: DataKeys,
  projectId: string,
  where: string,
  opened: Opened,
  progress: () => void,
): Promise<void> {
  const { db, tables } = desk.database;
  const { files: f } = tables;
  const ids = await db.select({ id: f.id }).from(f).where(eq(f.projectId, projectId)).orderBy(asc(f.path), asc(f.id));
  const stored: Stored[] = [];
  for (const { id } of ids) {
    // One at a time: each may have 8 MiB.
    const [row] = await db.select().from(f).where(eq(f.id, id));
    if (!row) continue;
    judged(`the file ${JSON.stringify(row.path)} of ${where}`, () => {
      const place = filePlace({ ...row, projectId, fileId: row.id });
      const content = open(dataKeys.of(generationOf(row.sealed)).subkey("file"), place, row.sealed);
      const sha256 = new Bun.CryptoHasher("sha256").update(content).digest("hex");
      if (content.length !== row.size || sha256 !== row.sha256) throw new Error("size or SHA-256 differ");
      content.fill(0);
      stored.push({ mask: row.environments, entry: fileEntry(projectId, row) });
    });
    opened.files += 1;
    progress();
  }
  await holdAgainstSets(desk, dataKeys, projectId, "files", where, stored);
}

/** An account or a file as its sets have it, and where it stands. */
type Stored = { readonly mask: EnvironmentMask; readonly entry: ItemEntry };

async function holdAgainstSets(
  desk: Desk,
  dataKeys: DataKeys,
  projectId: string,
  kind: ItemKind,
  where: string,
  stored: readonly Stored[],
): Promise<void> {
  const { db, tables } = desk.database;
  const { itemSets: s } = tables;
  const sets = await db
    .select({ environment: s.environment, sealed: s.sealed, listing: s.listing })
    .from(s)
    .where(and(eq(s.projectId, projectId), eq(s.kind, kind)));
  for (const environment of environments) {
    const here = stored.filter(({ mask }) => mask & environmentMask(environment)).map(({ entry }) => entry);
    const set = sets.find((row) => row.environment === environment);
    judged(`the set of ${kind} of ${where}, ${environment}`, () => {
      holdAgainstItemSet(dataKeys, { projectId, kind, environment }, set?.sealed, here);
      if (set?.listing !== itemListing(here)) throw new Error("the seal fits the rows, and not the listing");
    });
  }
}

async function checkGrants(desk: Desk, opened: Opened): Promise<void> {
  const { db, tables } = desk.database;
  const { apiKeys: k } = tables;
  const rows = pages((after: typeof k.$inferSelect | undefined) =>
    db
      .select()
      .from(k)
      .where(after && gt(k.id, after.id))
      .orderBy(asc(k.id))
      .limit(rowsPerPage),
  );
  for await (const row of rows) {
    judged(`the grant of key ${row.id}`, () => {
      if (row.revokedAt !== null) return; // its seal went with its revocation
      const seal = sealGrant(desk.systemKeys.grant, row.digest, { ...row, keyId: row.id });
      if (seal.length !== row.grantSeal.length || !timingSafeEqual(seal, row.grantSeal)) throw new Error("other seal");
    });
    opened.keys += 1;
  }
}

/** Rows of pages, each asked for by the last row of the one before. */
async function* pages<Row>(page: (after: Row | undefined) => PromiseLike<Row[]>): AsyncGenerator<Row> {
  let after: Row | undefined;
  for (;;) {
    const rows = await page(after);
    yield* rows;
    after = rows.at(-1);
    if (rows.length < rowsPerPage) return;
  }
}

function judged<T>(what: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw new DoesNotOpen(`${what[0]?.toUpperCase()}${what.slice(1)} does not open.`, { cause: error });
  }
}

function did({ what }: Flaw): string {
  return what === "reordered" ? "put elsewhere" : what;
}
