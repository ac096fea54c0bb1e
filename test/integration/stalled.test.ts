/** Whatever keeps the record from going on shows in time, reads go on as the pages say, and all is well afterwards. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type postgres from "postgres";
import type { Installation } from "../../src/installation/installation.ts";
import { NewestCheckpoint } from "../../src/record/notary/newest-checkpoint.ts";
import { findVerifiers, openSigners } from "../../src/record/notary/signers.ts";
import { openKeyhole } from "../../src/serve/process/compose.ts";
import { isInTime } from "../../src/serve/process/health.ts";
import type { Database } from "../../src/store/database.ts";
import { whileLocked, whileStanding } from "../support/locks.ts";
import { notaryOf } from "../support/notarize.ts";
import { connectTo, withPostgres } from "../support/postgres.ts";
import { roleOf } from "../support/role.ts";
import { clientOf, describePostgres, everything, type World } from "../support/world.ts";

const path = "/projects/web/variables?environment=staging";
const minuteMs = 60_000;

/** What comes of it: of reads of values, of the notary's rounds, and whether heads are signed all the same. */
type Outcome = { readonly reads: 200 | 503; readonly fails: boolean; readonly signs: boolean };
const nothingNew: Outcome = { reads: 200, fails: true, signs: false };
const nothing: Outcome = { reads: 200, fails: false, signs: true };
const noReads: Outcome = { reads: 503, fails: true, signs: false };

/** @param stop - keeps the record from going on while `work` runs */
async function stands(
  w: World,
  ofNotary: Pick<Installation, "open">,
  stop: (work: () => Promise<void>) => Promise<void>,
  { reads, fails, signs }: Outcome,
): Promise<void> {
  const { key } = await w.place({ variables: { staging: { TOKEN: "of-the-stalled" } }, key: everything });
  const { installation } = w;
  const { keyring, systemKeys } = installation;
  const found = (of: Database) => findVerifiers(of, keyring, systemKeys.audit);
  const clock = { ms: 0 };
  const knowing = (nowMs?: () => number) =>
    new NewestCheckpoint({
      ...{ auditKey: systemKeys.audit, file: undefined, ...(nowMs && { nowMs }) },
      signers: async (of) => (await found(of)).signers,
    });
  const checkpoint = knowing(() => clock.ms);
  const [database, watch] = [ofNotary.open("notary"), installation.open("watch")];
  const { signers } = await openSigners(database, keyring, systemKeys.audit);
  const damaged = async () => (await found(database)).flaws;
  const notary = await notaryOf(w, { database, signers, damaged, checkpoint: knowing() });
  await notary.round();
  const keyhole = await openKeyhole({ ...installation, checkpoint }, () => {});
  const read = async () => (await clientOf(keyhole).ask(path, { key })).status;
  const passes = async () => (await keyhole.readiness()).checks["notary"];

  expect(await read()).toBe(200);
  const before = notary.completeAt;
  await stop(async () => {
    const failure = await notary.round().then(() => undefined, String);
    expect([failure !== undefined, notary.completeAt === before]).toEqual([fails, fails]);
    expect(isInTime(notary, fails ? before + 4 * minuteMs : Date.now())).toBe(!fails);
    expect(await read()).toBe(reads);
    clock.ms = 11 * minuteMs;
    await checkpoint.look(watch);
    expect(await passes()).toBe(signs);
  });
  await notary.round();
  expect([isInTime(notary), notary.flaws]).toEqual([true, 0]);
  await checkpoint.look(watch);
  expect([checkpoint.failure, checkpoint.refusal, await passes()]).toEqual([undefined, undefined, true]);
  expect(await read()).toBe(200);
  await Promise.all([keyhole, database, watch].map((one) => one.close()));
}

describePostgres("the record, while somebody holds a lock", (w) => {
  let holder: postgres.Sql;
  beforeAll(() => {
    holder = connectTo(w.databaseUrl ?? "");
  });
  afterAll(() => holder.end({ timeout: 5 }));

  const tables: readonly (readonly [table: string, outcome: Outcome])[] = [
    ["audit_leaves", nothingNew],
    ["audit_checkpoints_signed", nothingNew],
    ["audit_signers", nothingNew],
    ["last_reads", nothingNew],
    ["last_reads_known", nothingNew],
    ["audit_checkpoints", nothing],
    ["audit_cosignatures", nothing],
    ["audit_segments", noReads],
    ["audit_heads", noReads],
    ["audit_exceptions", { ...noReads, signs: true }],
  ];
  test.each(tables)(
    "on %s, is late within four minutes, or goes on",
    async (table, outcome) => {
      await stands(w, w.installation, (work) => whileLocked(holder, table, "access exclusive", work), outcome);
    },
    120_000,
  );

  test("as a notary that stands still in its transaction has one, is late within four minutes", async () => {
    // Its row has the number that the next leaf is to have.
    const next =
      "insert into audit_leaves (leaf, lane, first_seq, last_seq, hashes) select max(leaf) + 1, '', 1, 1, '' from audit_leaves";
    await stands(w, w.installation, (work) => whileStanding(holder, next, work), nothingNew);
  });
});

withPostgres("the record, while the notary's role lacks a right", () => {
  const { w, quoted, installation } = roleOf("notary");
  test.each([
    ["insert on audit_leaves", nothingNew],
    ["select on audit_segments", nothingNew],
    ["insert on audit_checkpoints_signed", nothingNew],
    ["select on api_keys", { ...nothingNew, signs: true }],
  ] as const)("to %s, is late within four minutes", async (right, outcome) => {
    const stop = async (work: () => Promise<void>) => {
      await w.run(`revoke ${right} from ${quoted}`);
      await work().finally(() => w.run(`grant ${right} to ${quoted}`));
    };
    await stands(w, installation, stop, outcome);
  });
});
