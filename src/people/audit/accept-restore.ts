import { Refused } from "../../core/refused.ts";
import { counted } from "../../core/words/text.ts";
import { kindsByRead } from "../../kinds/kind.ts";
import { Notary } from "../../record/notary/notary.ts";
import { openSigners } from "../../record/notary/signers.ts";
import { commandsLane, decodeEntries } from "../../record/segment.ts";
import { chainOf } from "../../record/store/chain.ts";
import { beginAgain } from "../../record/store/last-reads.ts";
import { segmentsByLane } from "../../record/store/segments.ts";
import { type SignedHead, treeEnd } from "../../record/store/tree-end.ts";
import { lastTaken } from "../../record/store/tree-search.ts";
import { openTreeHead } from "../../record/tree-note.ts";
import { AuditWalk } from "../../record/verify.ts";
import type { Database } from "../../store/database.ts";
import { lockCommands } from "../desk/changes.ts";
import { type AdminContext, writing } from "../desk/context.ts";
import { operation } from "../desk/operation.ts";
import { done, type Outcome } from "../desk/outcome.ts";
import { Permit, rightTo } from "../desk/permit.ts";

const action = "audit.accept-restore";
const changedSince = "The database has changed since it was shown, and nothing was done: run this again.";

/**
 * Puts on record that the database may be as it is, and signs that: a notary's round, whose heads have the moment. So
 * every host that has seen more learns of it, and nobody can make it up in SQL. Of several at once, one is on record.
 */
export const acceptRestore = operation({
  path: "audit accept-restore",
  about: "Accept a database that was put back to an earlier state, so that it is served again.",
  examples: ["keyhole audit accept-restore"],
  right: rightTo("audit.accept-restore"),
  asks: "needs --yes",
  isLong: true,
  inputs: {},
  plan: async (admin) => {
    Permit.operator(admin);
    const { checkpoint, database, now, startedAt } = admin;
    const { size, head, signed: shown, commands, isPart } = await checkpoint.compare(database);
    const acceptedAt = shown?.acceptedAt ?? 0;
    const seen = { segments: size, commands: commands?.seq ?? 0, acceptedAt };
    // Of several that were started at once, one is done already. What was put back after that, nobody has accepted.
    const isAtOnce = acceptedAt > startedAt && acceptedAt <= now();
    if (checkpoint.putBack === undefined && isAtOnce) {
      const already = acceptedAlready(head);
      return { seen, document: { size }, sentence: already.sentence, apply: async () => already };
    }
    if (isPart) throw new Refused("conflict", checkpoint.putBack ?? "");
    const deed = `accept the database as it is, with ${counted(size, "leaf", "leaves")} in its tree. What was written after them is lost: keys that were revoked and persons who were removed since then are back`;
    return { deed, seen, document: { size }, apply: () => accept(admin, seen) };
  },
});

type RestoredDatabase = { readonly segments: number; readonly commands: number; readonly acceptedAt: number };

async function accept(admin: AdminContext, { segments: size, commands, acceptedAt }: RestoredDatabase) {
  const permit = Permit.operator(admin);
  const { checkpoint, database, keyring, systemKeys, now } = admin;
  const before = counted(size, "leaf", "leaves");
  const { signers } = await openSigners(database, keyring, systemKeys.audit);
  const change = { action, organization: null, names: [String(size)] } as const;
  await writing(admin, permit, async (admin) => {
    // From here nobody else can accept. Checks that the database is still as it was shown.
    await lockCommands(admin);
    const { database: inside } = admin;
    const end = await treeEnd(inside);
    const isSigned = (openTreeHead(end.head?.note ?? "", signers)?.acceptedAt ?? 0) > acceptedAt;
    if (isSigned || (await isOnRecord(inside, systemKeys.audit, end.size))) return [undefined, []];
    if (end.size !== size || (end.commands?.seq ?? 0) !== commands) throw new Refused("conflict", changedSince);
    await beginAgain(inside, now());
    return [undefined, [change]];
  });
  const isAccepted = async () => {
    const compared = await checkpoint.compare(database);
    return (compared.signed?.acceptedAt ?? 0) > acceptedAt ? acceptedAlready(compared.head) : undefined;
  };
  const already = await isAccepted();
  if (already !== undefined) return already;
  let signed: { size: number; note: string } | undefined;
  let flaw = "Another notary signed the tree at the same moment: run this again.";
  const notary = new Notary({
    database,
    auditKey: systemKeys.audit,
    signers,
    kindsByRead,
    checkpoint,
    accepts: true,
    now,
    log: (event) => {
      if (event.event === "signed_checkpoint") signed = event as unknown as typeof signed;
      else if (signed === undefined && typeof event["flaw"] === "string") flaw = event["flaw"];
    },
  });
  await notary.round();
  const meanwhile = signed ?? (await isAccepted());
  if (meanwhile === undefined) throw new Refused("conflict", flaw);
  if ("sentence" in meanwhile) return meanwhile;
  const warnings = checkpoint.unwritten === undefined ? [] : [checkpoint.unwritten];
  const sentence = `The database is accepted as it is: what was revoked or removed after its newest entry is back. Its tree goes on after ${before}; servers answer again within 10 s.`;
  return { ...done({ ...meanwhile }, sentence), warnings };
}

function acceptedAlready(head: Pick<SignedHead, "size" | "note"> | undefined): Outcome {
  return done(
    { size: head?.size, note: head?.note },
    "The database was accepted already, at the same moment: nothing is left to do.",
  );
}

/** Whether somebody has put on record that they accept a tree of this size, and nobody has signed that yet. */
async function isOnRecord(database: Database, auditKey: Uint8Array, size: number): Promise<boolean> {
  const walk = new AuditWalk(auditKey, chainOf(database));
  const start = { lane: commandsLane, seq: (await lastTaken(database, commandsLane)) + 1 };
  for await (const segment of segmentsByLane(database, {}, start)) {
    const isInOrder = await walk.pass(segment);
    const entries = decodeEntries(segment) ?? [];
    if (isInOrder && entries.some((one) => one.action === action && one.names[0] === String(size))) return true;
  }
  return false;
}
