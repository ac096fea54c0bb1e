import { kindsByRead } from "../../src/kinds/kind.ts";
import { NewestCheckpoint } from "../../src/record/notary/newest-checkpoint.ts";
import { Notary } from "../../src/record/notary/notary.ts";
import { findVerifiers, openSigners } from "../../src/record/notary/signers.ts";
import type { World } from "./world.ts";

type Options = Partial<ConstructorParameters<typeof Notary>[0]> & { readonly file?: string | undefined };

/** A notary of a world. @param own - what it has in place of the admin's connection, a silent log and no memory */
export async function notaryOf({ installation, admin }: World, { file, ...own }: Options = {}): Promise<Notary> {
  const { database = admin.database } = own;
  const auditKey = admin.systemKeys.audit;
  const signers = own.signers ?? (await openSigners(database, installation.keyring, auditKey)).signers;
  const damaged = async () => (await findVerifiers(database, installation.keyring, auditKey)).flaws;
  const checkpoint = new NewestCheckpoint({ auditKey, signers: async () => signers, file });
  const options = { kindsByRead, database, auditKey, signers, damaged, checkpoint, log: () => {}, now: Date.now };
  return new Notary({ ...options, ...own });
}

/** Puts all that is on record into the tree, as a notary does in its first round. @returns the flaws that it found */
export async function notarize(w: World): Promise<number> {
  const database = w.installation.open("notary");
  const notary = await notaryOf(w, { database });
  await notary.round().finally(() => database.close());
  return notary.flaws;
}
