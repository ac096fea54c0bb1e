import { expect, test } from "bun:test";
import { join } from "node:path";
import { makeFile, openSqlite } from "../../src/store/sqlite.ts";
import { retryBusy } from "../../src/store/sqlite-file.ts";
import { newFolder } from "../support/folder.ts";

/** A lock that others hold until `freeAtMs`, on a clock that only sleeping moves; the third sleep is this much longer. */
function heldUntil(freeAtMs: number, { code = "SQLITE_BUSY", lostMs = 0 } = {}) {
  let nowMs = 0;
  const pauses: number[] = [];
  const outcome = () =>
    retryBusy(
      () => {
        if (nowMs < freeAtMs) throw Object.assign(new Error("the database is locked"), { code });
        return "written";
      },
      (ms) => {
        pauses.push(ms);
        nowMs += ms + (pauses.length === 3 ? lostMs : 0);
      },
      () => nowMs,
    );
  return { outcome, pauses };
}

test("a free lock is taken at once", () => {
  const { outcome, pauses } = heldUntil(0);
  expect(outcome()).toBe("written");
  expect(pauses).toEqual([]);
});

test("a lock that is held is asked for at short, growing intervals, so that no other writer waits less", () => {
  const { outcome, pauses } = heldUntil(30);
  expect(outcome()).toBe("written");
  expect(pauses).toEqual([1, 2, 3, 4, 5, 5, 5, 5]);
});

test("after 1.8 s the write fails", () => {
  const { outcome, pauses } = heldUntil(Number.POSITIVE_INFINITY);
  expect(outcome).toThrow("the database is locked");
  const waitedMs = pauses.reduce((sum, ms) => sum + ms, 0);
  expect(waitedMs).toBeWithin(1795, 1801);
});

test("the time in which the process stood still does not count", () => {
  const { outcome, pauses } = heldUntil(2400, { lostMs: 2300 });
  expect(outcome()).toBe("written");
  expect(pauses.length).toBeGreaterThan(10);
});

test("any other failure is final", () => {
  const { outcome, pauses } = heldUntil(30, { code: "SQLITE_FULL" });
  expect(outcome).toThrow("the database is locked");
  expect(pauses).toEqual([]);
});

test("a read transaction that cannot begin is a Fault that says so, not a defect", async () => {
  const path = join(newFolder(), "keyhole.db");
  makeFile(path);
  const database = openSqlite(path, "admin");
  // SQLite refuses a transaction inside another.
  const nested = () => database.inOneRead(() => database.inOneRead(() => 1));
  expect(nested).toThrow(expect.objectContaining({ name: "Fault", code: "unavailable" }));
  expect(database.inOneRead(() => 1)).toBe(1);
  await database.close();
});
