import { expect, test } from "bun:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { KeyUses, writeIntervalMs } from "../../src/serve/access/key-uses.ts";

const start = 1_800_000_000_000;

function openUses() {
  /** How long before its write each use was. */
  const written: Record<string, number>[] = [];
  const database = { failing: false };
  const uses = new KeyUses(async (due) => {
    if (database.failing) throw new Error("the database is down");
    written.push(Object.fromEntries(due));
  });
  return { uses, written, database };
}

test("a key's first use is written by the next flush, and later ones once a minute", async () => {
  const { uses, written } = openUses();
  const flushes: number[] = [];
  for (let second = 0; second <= 130; second++) {
    const before = written.length;
    uses.note("key", start + second * 1000 - 300);
    await uses.flush(start + second * 1000);
    if (written.length > before) flushes.push(second * 1000);
  }
  expect(flushes).toEqual([0, writeIntervalMs, 2 * writeIntervalMs]);
  expect(written).toEqual([{ key: 300 }, { key: 300 }, { key: 300 }]);
});

test("a use held back is written when the minute is over, or at the end", async () => {
  const { uses, written } = openUses();
  uses.note("key", start);
  await uses.flush(start);
  uses.note("key", start + 5000);
  await uses.flush(start + 6000);
  expect(written).toEqual([{ key: 0 }]);
  await uses.flush(start + writeIntervalMs);
  expect(written.at(-1)).toEqual({ key: writeIntervalMs - 5000 });
  uses.note("key", start + writeIntervalMs + 1000);
  uses.note("other", start + writeIntervalMs + 2000);
  await uses.close(
    () => start + writeIntervalMs + 3000,
    () => Promise.reject(new Error("nothing failed")),
  );
  expect(written.at(-1)).toEqual({ key: 2000, other: 1000 });
});

test("nothing is written if there was no use, and a use that could not be written is written later", async () => {
  const { uses, written, database } = openUses();
  await uses.flush(start);
  database.failing = true;
  uses.note("key", start);
  uses.note("other", start);
  await uses.flush(start);
  uses.note("key", start + 1000);
  database.failing = false;
  await uses.flush(start + 1000);
  expect(written).toEqual([{ key: 0, other: 1000 }]);
});

test("the end waits for what is being written, and tries again for a second while the lock is held", async () => {
  const writes: PromiseWithResolvers<void>[] = [];
  const uses = new KeyUses(() => {
    writes.push(Promise.withResolvers<void>());
    return (writes.at(-1) as PromiseWithResolvers<void>).promise;
  });
  uses.note("key", start);
  void uses.flush(start);
  let nowMs = 0;
  let isOver = false;
  const pause = async () => {
    nowMs += 600;
  };
  const last = uses
    .close(() => nowMs, pause)
    .then(() => {
      isOver = true;
    });
  for (const failing of [0, 1, 2]) {
    await nextTurn();
    expect([writes.length, isOver]).toEqual([failing + 1, false]);
    writes[failing]?.reject(new Error("the lock is held"));
  }
  await nextTurn();
  expect([writes.length, isOver]).toEqual([4, false]);
  writes[3]?.reject(new Error("the lock is held"));
  await last;
});
