import { kindsByRead } from "../../src/kinds/kind.ts";
import { NewestCheckpoint } from "../../src/notary/newest-checkpoint.ts";
import { Notary } from "../../src/notary/notary.ts";
import { openSigners } from "../../src/notary/signers.ts";
import type { World } from "./world.ts";

/** Puts all that is on record into the tree, as a notary does in its first round. @returns the flaws that it found */
export async function notarize({ installation, admin }: World): Promise<number> {
  const database = installation.open("notary");
  const auditKey = admin.systemKeys.audit;
  const signers = await openSigners(database, installation.keyring, auditKey);
  const checkpoint = new NewestCheckpoint({ auditKey: auditKey, signers: async () => signers, file: undefined });
  const notary = new Notary({ kindsByRead, database, auditKey, signers, checkpoint, log: () => {}, now: Date.now });
  await notary.round().finally(() => database.close());
  return notary.flaws;
}
