import { Refused } from "../core/refused.ts";
import { counted } from "../core/text.ts";
import { lockCommands } from "../desk/changes.ts";
import { writing } from "../desk/context.ts";
import { operation } from "../desk/operation.ts";
import { done } from "../desk/outcome.ts";
import { Permit } from "../desk/permit.ts";
import { openSigners } from "../installation/signers.ts";
import { Notary } from "../server/notary.ts";
import { beginAgain } from "../store/last-reads.ts";
import { treeEnd } from "../store/tree.ts";

const changedSince = "The database has changed since it was shown, and nothing was done: run this again.";

/**
 * Puts on record that the database may be as it is, and signs that: a notary's round, whose heads have the moment. So
 * every host that has seen more learns of it, and nobody can make it up in SQL.
 */
export const acceptRestore = operation({
  path: "audit accept-restore",
  about: "Accept a database that was put back to an earlier state, so that it is served again.",
  examples: ["keyhole audit accept-restore"],
  right: "operator",
  asks: "needs --yes",
  inputs: {},
  run: async (admin, _, { agree }) => {
    const permit = Permit.operator(admin);
    const { checkpoint, database, keyring, systemKeys, now } = admin;
    const { size, commands, isPart } = await checkpoint.compare(database);
    const before = counted(size, "segment");
    if (isPart) throw new Refused("conflict", checkpoint.refusal ?? "");
    await agree(
      `accept the database as it is, with ${before} in its tree. What was written after them is lost: keys that were revoked and persons who were removed since then are back`,
    );
    const change = { action: "audit.accept-restore", organization: null, names: [String(size)] } as const;
    await writing(admin, permit, async (db) => {
      // Nobody else accepts from here on, and what was shown is still so.
      await lockCommands(admin, db);
      const end = await treeEnd({ ...database, db });
      if (end.size !== size || (end.commands?.seq ?? 0) !== (commands?.seq ?? 0))
        throw new Refused("conflict", changedSince);
      await beginAgain({ ...database, db }, now());
      return [undefined, [change]];
    });
    let signed: { size: number; note: string } | undefined;
    let flaw = "Another notary signed the tree at the same moment: run this again.";
    const notary = new Notary({
      database,
      auditKey: systemKeys.audit,
      signers: await openSigners(database, keyring, systemKeys.audit),
      checkpoint,
      accepts: true,
      now,
      log: (event) => {
        if (event.event === "signed_checkpoint") signed = event as unknown as typeof signed;
        else if (signed === undefined && typeof event["flaw"] === "string") flaw = event["flaw"];
      },
    });
    await notary.round();
    if (signed === undefined) throw new Refused("conflict", flaw);
    const warnings = checkpoint.unwritten === undefined ? [] : [checkpoint.unwritten];
    const sentence = `The database is accepted as it is. Its tree goes on after ${before}; servers answer again within 10 s.`;
    return { ...done({ ...signed }, sentence), warnings };
  },
});
