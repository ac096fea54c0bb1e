/** Every wait for PostgreSQL has an end, whichever way a statement came, and says why in words. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { getTableName, sql } from "drizzle-orm";
import type postgres from "postgres";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { NewestCheckpoint } from "../../src/record/notary/newest-checkpoint.ts";
import { findVerifiers } from "../../src/record/notary/signers.ts";
import { readNodes, treeEnd } from "../../src/record/store/tree-end.ts";
import { type Database, warm } from "../../src/store/database.ts";
import { whyFailed } from "../../src/store/failures.ts";
import { servingRights } from "../../src/store/rights.ts";
import { postgresTables } from "../../src/store/tables.ts";
import { newFolder } from "../support/folder.ts";
import { whileLocked as whileLockedBy } from "../support/locks.ts";
import { notarize, notaryOf } from "../support/notarize.ts";
import { connectTo } from "../support/postgres.ts";
import { savedTables } from "../support/saved.ts";
import { describePostgres, everything, type LogEvent } from "../support/world.ts";

const served: ReadonlySet<string> = new Set([
  ...[servingRights.read, servingRights.append, servingRights.count].flat(),
]);
const path = "/projects/web/variables?environment=staging";

describePostgres("somebody who holds a lock", (w) => {
  let holder: postgres.Sql;
  beforeAll(() => {
    holder = connectTo(w.databaseUrl ?? "");
  });
  afterAll(() => holder.end({ timeout: 5 }));

  const whileLocked = <T>(table: string, mode: string, work: () => Promise<T>) =>
    whileLockedBy(holder, table, mode, work);
  const opened = async <T>(use: "serve" | "watch" | "notary", work: (database: Database) => Promise<T>) => {
    const database = w.installation.open(use);
    return work(database).finally(() => database.close());
  };
  const reasonOf = (work: Promise<unknown>) => work.then(() => "it was done", whyFailed);

  const others = Object.values(postgresTables).map(getTableName);
  test.each(others.filter((name) => !served.has(name)))(
    "of %s, which serving does not use, holds up no server",
    async (table) => {
      await whileLocked(table, "access exclusive", async () => {
        for (const use of ["serve", "watch"] as const) await opened(use, warm);
      });
    },
  );

  test("of the audit's tree holds up no read, and no server for longer than its deadline", async () => {
    const { key } = await w.place({ variables: { staging: { TOKEN: "of-the-locked" } }, key: everything });
    await notarize(w);
    await whileLocked("audit_leaves", "access exclusive", async () => {
      const reasons = await opened("watch", async (database) => [
        await reasonOf(treeEnd(database)),
        await reasonOf(readNodes(database, [{ level: 0, at: 0 }])),
      ]);
      for (const reason of reasons) expect(reason).toBe("The database did not answer within 2 s.");
      expect((await w.ask(path, { key })).status).toBe(200);
    });
  });

  test("fails a round of the notary, which says so in words and goes on afterwards", async () => {
    await w.organization();
    const database = w.installation.open("notary");
    const log: LogEvent[] = [];
    const told = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    const notary = await notaryOf(w, { database, log: (event) => log.push(event), told: () => told[0].resolve() });
    const before = notary.completeAt;
    await whileLocked("audit_leaves", "share", async () => {
      notary.run();
      await told[0].promise;
    });
    const reason =
      "The server of DATABASE_URL has a lock that somebody else holds: pg_locks and pg_stat_activity there say who.";
    expect(log).toEqual([{ event: "notary_failed", reason }]);
    expect([notary.failure, notary.completeAt]).toEqual([reason, before]);
    await notary.round();
    expect(notary.completeAt).toBeGreaterThan(before);
    expect(log.at(-1)).toMatchObject({ event: "signed_checkpoint" });
    await notary.stop();
  });

  test("of a table of the tree keeps no key that was put back from being found", async () => {
    const { key } = await w.place({ key: {} });
    const live = await savedTables(w, ["api_keys"]);
    await revokeKey(w.admin, key.id);
    const revoked = await savedTables(w, ["api_keys"]);
    const database = w.installation.open("notary");
    const log: LogEvent[] = [];
    const notary = await notaryOf(w, { database, log: (event) => log.push(event) });
    await notary.round();
    await live();
    const failure = await whileLocked("audit_leaves", "access exclusive", () => reasonOf(notary.round()));
    expect(failure).toContain("has a lock that somebody else holds");
    const flaw = `key:${key.id} was put back or changed by other means: it is live, and the record says revoked.`;
    expect(log.filter(({ event }) => event === "audit_flaw")).toEqual([{ event: "audit_flaw", flaw }]);
    expect((await w.ask("/organization", { key })).status).toBe(401);
    await revoked();
    await w.run("delete from audit_exceptions");
    await database.close();
  });

  test("cannot keep the notary's sessions for long, nor can the notary keep others", async () => {
    const settings = await opened("notary", (database) =>
      database.query<{ name: string; setting: string }>(
        sql`select name, setting from pg_settings where name like '%lock_timeout' or name = 'statement_timeout'
          or name = 'idle_in_transaction_session_timeout' order by name`,
      )({}),
    );
    expect(settings.map(({ name, setting }) => [name, Number(setting)])).toEqual([
      ["deadlock_timeout", expect.any(Number)],
      ["idle_in_transaction_session_timeout", 30_000],
      ["lock_timeout", 5000],
      ["statement_timeout", 60_000],
    ]);
  });

  test("of the tree makes no server refuse, unless a file or a witness is set: and then for another reason", async () => {
    await w.organization();
    await notarize(w);
    const signers = async (of: Database) =>
      (await findVerifiers(of, w.installation.keyring, w.installation.systemKeys.audit)).signers;
    const knowing = (file?: string) =>
      new NewestCheckpoint({ auditKey: w.installation.systemKeys.audit, signers, file, lateAfterMs: 0 });
    const [blind, host] = [knowing(), knowing(`${newFolder()}/checkpoint`)];
    for (const one of [blind, host]) {
      await opened("watch", async (database) => {
        expect(await one.look(database)).toBe(true);
        await whileLocked("audit_leaves", "access exclusive", () => one.look(database));
      });
      expect([one.putBack, one.failure]).toEqual([undefined, "The database did not answer within 2 s."]);
    }
    expect([blind.refusal, blind.isUncompared]).toEqual([undefined, false]);
    expect([host.refusal, host.isUncompared]).toEqual([expect.stringContaining("cannot be compared"), true]);
    await opened("watch", (database) => host.look(database));
    expect([host.refusal, host.isUncompared, host.failure]).toEqual([undefined, false, undefined]);
  });
});
