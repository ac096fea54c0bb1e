import { expect, test } from "bun:test";
import { KeyUses, usesStandForMs } from "../../src/access/key-uses.ts";

const start = 1_800_000_000_000;

function noting() {
  const written: Record<string, number>[] = [];
  const state = { failing: false };
  const uses = new KeyUses(async (due) => {
    if (state.failing) throw new Error("the database is away");
    written.push(Object.fromEntries(due));
  });
  return { uses, written, state };
}

test("a key's first use is written with the next flush, its later ones once a minute", async () => {
  const { uses, written } = noting();
  for (let second = 0; second <= 130; second++) {
    uses.note("key", start + second * 1000);
    await uses.flush(start + second * 1000);
  }
  expect(written).toEqual([{ key: start }, { key: start + usesStandForMs }, { key: start + 2 * usesStandForMs }]);
});

test("what was held back is written by the last flush, and once its minute is over without another use", async () => {
  const { uses, written } = noting();
  uses.note("key", start);
  await uses.flush(start);
  uses.note("key", start + 5000);
  await uses.flush(start + 6000);
  expect(written).toEqual([{ key: start }]);
  await uses.flush(start + usesStandForMs);
  expect(written.at(-1)).toEqual({ key: start + 5000 });
  uses.note("key", start + usesStandForMs + 1000);
  uses.note("other", start + usesStandForMs + 2000);
  await uses.flush(start + usesStandForMs + 3000, true);
  expect(written.at(-1)).toEqual({ key: start + usesStandForMs + 1000, other: start + usesStandForMs + 2000 });
});

test("nothing is written where nothing was noted, and a write that fails stands for nothing", async () => {
  const { uses, written, state } = noting();
  await uses.flush(start);
  state.failing = true;
  uses.note("key", start);
  await uses.flush(start);
  state.failing = false;
  uses.note("key", start + 1000);
  await uses.flush(start + 1000);
  expect(written).toEqual([{ key: start + 1000 }]);
});
