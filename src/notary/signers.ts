import { desc } from "drizzle-orm";
import { type Signer, signerOf, type Verifier } from "../audit/note.ts";
import { attempt } from "../core/attempt.ts";
import { HostRefused } from "../core/refused.ts";
import { firstNotarySeed, installationId, type Keyring } from "../seal/keyring.ts";
import type { Database } from "../store/database.ts";
import { treeEnd } from "../store/tree-end.ts";

/** A key that signs the audit's tree, and the 32 bytes that it is made of. */
export type OpenedSigner = Signer & { readonly seed: Uint8Array };

/**
 * The keys that sign the heads of the audit's tree, the newest first. The first notary makes one.
 * @throws HostRefused `conflict` if a row was changed, or no key is left of those that have signed
 */
export async function openSigners(
  database: Database,
  keyring: Keyring,
  auditKey: Uint8Array,
): Promise<readonly [OpenedSigner, ...OpenedSigner[]]> {
  const { auditSigners: s } = database.tables;
  const find = () => findSigners(database, keyring, auditKey);
  if ((await find()).length === 0) {
    if ((await treeEnd(database)).head) throw damaged("The keys that signed the audit's tree are gone.");
    const { publicKey, seed } = firstSigner(auditKey);
    const row = { generation: 1, publicKey, createdAt: Date.now(), ...keyring.wrapSystemKey("notary 1", seed) };
    // Of several notaries that start at once, all use the key of the first.
    await database.transaction(async (db) => {
      await db.insert(s).values(row).onConflictDoNothing();
    });
  }
  const [first, ...older] = await find();
  if (first === undefined) throw new Error("the new signer is not there");
  return [first, ...older];
}

/**
 * The keys that sign, for whoever only verifies. Before the first notary, and if its key was taken out of the database,
 * that is the key that the first notary makes.
 * @throws HostRefused `conflict` if a row was changed
 */
export async function findVerifiers(
  database: Database,
  keyring: Keyring,
  auditKey: Uint8Array,
): Promise<readonly [Verifier, ...Verifier[]]> {
  const [first = firstSigner(auditKey), ...older] = await findSigners(database, keyring, auditKey);
  return [first, ...older];
}

/** The key that the first notary makes: nobody needs a database to know it. */
export function firstSigner(auditKey: Uint8Array): OpenedSigner {
  const seed = firstNotarySeed(auditKey);
  return { ...signerOf(nameOf(auditKey), seed), seed };
}

/** What opens with the root key was not made up. */
async function findSigners(database: Database, keyring: Keyring, auditKey: Uint8Array): Promise<OpenedSigner[]> {
  const { auditSigners: s } = database.tables;
  const rows = await database.db.select().from(s).orderBy(desc(s.generation));
  return rows.map(({ generation, publicKey, rootId, wrapped }) => {
    const seed = attempt(() => keyring.unwrapSystemKey(`notary ${generation}`, rootId, wrapped));
    if (seed === undefined) throw damaged("A row of audit_signers was changed: it does not open.");
    const signer = signerOf(nameOf(auditKey), seed);
    if (signer.publicKey.equals(publicKey)) return { ...signer, seed };
    throw damaged("A row of audit_signers was changed: its keys do not belong together.");
  });
}

function damaged(what: string): HostRefused {
  return new HostRefused("conflict", `${what} Restore the table audit_signers from a backup.`);
}

function nameOf(auditKey: Uint8Array): string {
  return `keyhole/${installationId(auditKey)}`;
}
