/** What the alarms of canaries and of keys from elsewhere leave: integration/canaries and integration/elsewhere. */
import { expect, test } from "bun:test";
import { type AuditEntry, overuseAction } from "../../src/record/entry.ts";
import { Alarms } from "../../src/serve/gates/alarms.ts";
import { entry } from "../support/journal.ts";

test("a key that sounded no alarm is not counted when the limiter refuses it", () => {
  const alarms = new Alarms(
    async () => {},
    () => {},
  );
  alarms.noteLimited("digest of a stranger");
  expect([alarms.canaries, alarms.elsewhere]).toEqual([{ key: 0, read: 0 }, 0]);
});

test("each request of a job that had its answers is counted, and on record if the limiter lets it pass", async () => {
  const recorded: AuditEntry[] = [];
  const events: unknown[] = [];
  const alarms = new Alarms(
    async (entries) => void recorded.push(...entries),
    ({ event }) => events.push(event),
  );
  const overuse: AuditEntry = { ...entry, action: overuseAction, names: ["jti=1"] };
  for (const passed of [true, false, false]) alarms.noteOveruse(overuse, passed);
  await alarms.flush();
  expect([alarms.overuses, recorded, events]).toEqual([3, [overuse], ["trust_overused"]]);
});
