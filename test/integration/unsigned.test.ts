/** Entries that no notary signs: a server says so, and answers all the same. */
import { expect, test } from "bun:test";
import { NewestCheckpoint } from "../../src/record/notary/newest-checkpoint.ts";
import { findVerifiers } from "../../src/record/notary/signers.ts";
import { openKeyhole } from "../../src/serve/process/compose.ts";
import { summed } from "../../src/serve/process/metrics.ts";
import type { Database } from "../../src/store/database.ts";
import { notarize } from "../support/notarize.ts";
import { visitorOf } from "../support/pages.ts";
import { clientOf, describeBoth, everything, type LogEvent } from "../support/world.ts";

const path = "/projects/web/variables?environment=staging";
const minuteMs = 60_000;

describeBoth("an installation without a notary", (w) => {
  /** A server whose clock is this one, and what it says. */
  const opened = async (clock: { ms: number }) => {
    const { installation } = w;
    const auditKey = installation.systemKeys.audit;
    const signers = async (of: Database) => (await findVerifiers(of, installation.keyring, auditKey)).signers;
    const checkpoint = new NewestCheckpoint({ auditKey, signers, file: undefined, nowMs: () => clock.ms });
    const log: LogEvent[] = [];
    const open = () => openKeyhole({ ...installation, checkpoint }, (event) => log.push(event), { metered: true });
    const said = async (keyhole: Awaited<ReturnType<typeof open>>) => {
      const { ready, checks, reason } = await keyhole.readiness();
      const text = await summed([(await keyhole.metrics?.scrape()) ?? []], await keyhole.readiness());
      const metric = (name: string) => Number(new RegExp(`^${name} (.+)$`, "m").exec(text)?.[1]);
      const seconds = metric("keyhole_audit_unsigned_age_seconds");
      return { ready, notary: checks["notary"], reason, seconds, leaves: metric("keyhole_audit_signed_leaves") };
    };
    return { checkpoint, log, open, said };
  };
  const events = (log: readonly LogEvent[]) => log.filter(({ event }) => /^audit_(un)?signed$/.test(String(event)));

  test("says so after ten minutes, and goes on to answer; with one, all is well at its next look", async () => {
    const { key } = await w.place({ variables: { staging: { TOKEN: "of-the-unsigned" } }, key: everything });
    const clock = { ms: 0 };
    const { checkpoint, log, open, said } = await opened(clock);
    const keyhole = await open();
    clock.ms = 10 * minuteMs;
    expect(await said(keyhole)).toMatchObject({
      ready: true,
      notary: true,
      reason: undefined,
      seconds: 600,
      leaves: 0,
    });
    clock.ms += 1;
    const found = await said(keyhole);
    expect(found).toMatchObject({ ready: true, notary: false, seconds: 600.001 });
    expect(found.reason).toStartWith("Entries that are older than ten minutes are in no signed head; there is none.");
    expect((await clientOf(keyhole).ask(path, { key })).status).toBe(200);
    await keyhole.close();
    const again = await open();
    expect(events(log)).toEqual([{ event: "audit_unsigned", reason: found.reason }]);
    await notarize(w);
    await checkpoint.look(w.admin.database);
    const { size } = (await w.run("select max(size) as size from audit_checkpoints_signed"))[0] ?? {};
    expect(await said(again)).toMatchObject({ notary: true, seconds: 0, leaves: Number(size) });
    await again.close();
  });

  test("is noticed by what a server itself wrote, too", async () => {
    const { key } = await w.place({ variables: { staging: { TOKEN: "of-the-unsigned" } }, key: everything });
    await notarize(w);
    const clock = { ms: 0 };
    const { checkpoint, open, said } = await opened(clock);
    const keyhole = await open();
    clock.ms = 20 * minuteMs;
    expect(await said(keyhole)).toMatchObject({ notary: true, seconds: 0 });
    expect((await clientOf(keyhole).ask(path, { key })).status).toBe(200);
    clock.ms = 31 * minuteMs;
    const { notary, seconds } = await said(keyhole);
    expect(notary).toBe(false);
    expect(seconds).toBeGreaterThanOrEqual(660);
    await notarize(w);
    await checkpoint.look(w.admin.database);
    expect(await said(keyhole)).toMatchObject({ notary: true, seconds: 0 });
    await keyhole.close();
  });

  test("is a line on Today and on Audit for operators, once entries are older than ten minutes", async () => {
    await w.place({ variables: { staging: { TOKEN: "of-the-unsigned" } } });
    await notarize(w);
    await w.organization();
    const line = "Entries that are older than ten minutes are in no signed head";
    const visitor = await visitorOf(w);
    const shown = async () =>
      Promise.all(["/", "/audit"].map(async (page) => (await visitor.page(page)).html.includes(line)));
    expect(await shown()).toEqual([false, false]);
    for (const table of ["audit_segments", "audit_checkpoints_signed"]) {
      await w.run(`update ${table} set at = at - 660000`);
    }
    expect(await shown()).toEqual([true, true]);
    await w.run("update audit_segments set at = at + 660000");
    await notarize(w);
    expect(await shown()).toEqual([false, false]);
  });
});
