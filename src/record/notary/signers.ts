import { desc } from "drizzle-orm";
import { attempt } from "../../core/attempt.ts";
import { excerpt } from "../../core/visible.ts";
import { firstNotarySeed, installationId, type Keyring } from "../../seal/keyring.ts";
import type { Database } from "../../store/database.ts";
import { brokenBy, type Flaw } from "../flaw.ts";
import { type Signer, signerOf, type Verifier } from "../note.ts";

/** A key that signs the audit's tree, and the 32 bytes that it is made of. */
export type OpenedSigner = Signer & { readonly seed: Uint8Array };

/** Keys that may have signed, the one that signs first, and what is wrong with rows that were passed over. */
type FoundSigners<Key> = {
  readonly signers: readonly [Key, ...Key[]];
  readonly flaws: readonly Flaw[];
};

/**
 * The keys that sign the heads of the audit's tree, the newest first. The row of the first one is made if it is missing:
 * that key needs no row to be known.
 */
export async function openSigners(
  database: Database,
  keyring: Keyring,
  auditKey: Uint8Array,
): Promise<FoundSigners<OpenedSigner>> {
  const { auditSigners: s } = database.tables;
  const { generations, ...found } = await findSigners(database, keyring, auditKey);
  if (!generations.includes(1)) {
    const { publicKey, seed } = firstSigner(auditKey);
    const row = { generation: 1, publicKey, createdAt: Date.now(), ...keyring.wrapSystemKey("notary 1", seed) };
    // Of several notaries that start at once, all use the same key.
    await database.transaction(async (db) => {
      await db.insert(s).values(row).onConflictDoNothing();
    });
  }
  return found;
}

/** The same keys, to verify with. Nothing is stored. */
export async function findVerifiers(
  database: Database,
  keyring: Keyring,
  auditKey: Uint8Array,
): Promise<FoundSigners<Verifier>> {
  return findSigners(database, keyring, auditKey);
}

/** The key that the first notary makes: nobody needs a database to know it. */
export function firstSigner(auditKey: Uint8Array): OpenedSigner {
  const seed = firstNotarySeed(auditKey);
  return { ...signerOf(nameOf(auditKey), seed), seed };
}

/** What opens with the root key was not made up. A row that does not open keeps nobody from using the others. */
async function findSigners(database: Database, keyring: Keyring, auditKey: Uint8Array) {
  const { auditSigners: s } = database.tables;
  const rows = await database.db.select().from(s).orderBy(desc(s.generation));
  const flaws: Flaw[] = [];
  const opened = rows.flatMap(({ generation, publicKey, rootId, wrapped }): OpenedSigner[] => {
    const seed = attempt(() => keyring.unwrapSystemKey(`notary ${generation}`, rootId, wrapped));
    const signer = seed && { ...signerOf(nameOf(auditKey), seed), seed };
    if (signer?.publicKey.equals(publicKey)) return [signer];
    if (signer === undefined && !keyring.rootIds.includes(rootId)) {
      const where = `is under the root key ${excerpt(rootId)}, which is not given here`;
      flaws.push(brokenBy(`Row ${generation} of audit_signers ${where}.`));
    } else {
      const why = signer === undefined ? "it does not open" : "its keys do not belong together";
      flaws.push(brokenBy(`Row ${generation} of audit_signers was changed or made up: ${why}. ${advice}`));
    }
    return [];
  });
  const first = firstSigner(auditKey);
  const older = opened.filter(({ publicKey: key }) => !key.equals(first.publicKey));
  const [newest = first, ...others] = [...older, first];
  const signers: readonly [OpenedSigner, ...OpenedSigner[]] = [newest, ...others];
  return { signers, flaws, generations: rows.map(({ generation }) => generation) };
}

const advice = "Restore it from a backup, or delete it: a notary that starts makes row 1 again.";

function nameOf(auditKey: Uint8Array): string {
  return `keyhole/${installationId(auditKey)}`;
}
