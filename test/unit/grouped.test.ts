import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { grouped } from "../../src/store/grouped.ts";

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/**
 * A grouped function whose groups are answered by hand, each ask with its double.
 * @param patienceMs - longer than the usual one where a pause of the machine must not end the wait
 */
function byHand(patienceMs?: number, atOnce = false) {
  const groups: { asks: readonly number[]; answer: () => void; fail: (reason: Error) => void }[] = [];
  const ask = grouped<number, number>(
    (asks) => {
      const { promise, resolve, reject } = Promise.withResolvers<number[]>();
      groups.push({ asks, answer: () => resolve(asks.map((n) => n * 2)), fail: reject });
      return promise;
    },
    patienceMs,
    atOnce,
  );
  return { ask, groups, sizes: () => groups.map(({ asks }) => asks.length) };
}

describe("asks", () => {
  test("of one turn are one group, also where each comes in a step of its own", async () => {
    const { ask, groups, sizes } = byHand();
    const answers: Promise<number>[] = [];
    for (let n = 0; n < 10; n++) {
      answers.push(ask(n));
      await Promise.resolve();
    }
    expect(sizes()).toEqual([]);
    await turn();
    expect(sizes()).toEqual([10]);
    groups[0]?.answer();
    expect(await Promise.all(answers)).toEqual(Array.from({ length: 10 }, (_, n) => n * 2));
  });

  test("that come while a group is under way are the next, which goes out when that is back", async () => {
    const { ask, groups, sizes } = byHand(60_000);
    const answers = [ask(0)];
    for (let n = 1; n <= 5; n++) {
      await turn();
      answers.push(ask(n));
    }
    expect(sizes()).toEqual([1]);
    groups[0]?.answer();
    await turn();
    expect(sizes()).toEqual([1, 5]);
    groups[1]?.answer();
    expect(await Promise.all(answers)).toEqual([0, 2, 4, 6, 8, 10]);
  });

  test("may go at once after a group of one, and many of one turn are a group all the same", async () => {
    const { ask, groups, sizes } = byHand(60_000, true);
    const answer = async () => {
      groups.at(-1)?.answer();
      await Promise.resolve();
      await Promise.resolve();
    };
    void ask(0);
    await turn();
    await answer();
    void ask(1);
    expect(sizes()).toEqual([1, 1]);
    for (let n = 2; n < 20; n++) {
      await answer();
      void ask(n);
    }
    await turn();
    expect(sizes().at(-1)).toBeGreaterThan(9);
    expect(sizes().reduce((sum, size) => sum + size)).toBe(20);
  });

  test("wait no longer than 50 ms for a group that does not come back", async () => {
    const { ask, groups } = byHand();
    const beganAt = performance.now(); // before the group is sent, from which on the 50 ms count
    void ask(0);
    await turn();
    const second = ask(1);
    while (groups.length < 2) await turn();
    expect(performance.now() - beganAt).toBeGreaterThan(40);
    groups[1]?.answer();
    expect(await second).toBe(2);
  });

  test("that one group did not hold wait no longer for it than others", async () => {
    const { ask, sizes } = byHand();
    for (let n = 0; n < 300; n++) void ask(n);
    while (sizes().length < 2) await turn();
    expect(sizes()).toEqual([256, 44]);
  });
});

test("every ask has its own answer, from a group of at most 256 that began after it came", async () => {
  const step = fc.oneof(
    fc.record({ asks: fc.integer({ min: 1, max: 300 }) }),
    fc.record({ end: fc.constantFrom("answer", "fail"), which: fc.nat(3) }),
    fc.constant("turn" as const),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const { ask, groups } = byHand();
      const ended = new Map<number, number | string>();
      const failed = new Set<number>();
      /** How many groups had begun when each came. */
      const cameAt: number[] = [];
      const end = (index: number, how: string) => {
        const group = groups[index];
        if (!group) return;
        if (how === "answer") return group.answer();
        for (const n of group.asks) if (!ended.has(n)) failed.add(n);
        group.fail(new Error("failed"));
      };
      const over = new Set<number>();
      for (const step of steps) {
        if (step === "turn") await turn();
        else if ("asks" in step) {
          for (let i = 0; i < step.asks; i++) {
            const n = cameAt.push(groups.length) - 1;
            ask(n).then(
              (answer) => ended.set(n, answer),
              () => ended.set(n, "failed"),
            );
          }
        } else {
          const open = groups.map((_, index) => index).filter((index) => !over.has(index));
          const index = open[step.which % Math.max(1, open.length)];
          if (index === undefined) continue;
          over.add(index);
          end(index, step.end);
          await turn();
        }
      }
      while (ended.size < cameAt.length) {
        await turn();
        for (const index of groups.keys()) if (!over.has(index)) end(index, "answer");
      }
      expect([...ended].filter(([n, answer]) => answer !== (failed.has(n) ? "failed" : n * 2))).toEqual([]);
      expect(groups.flatMap(({ asks }) => asks)).toEqual(cameAt.map((_, n) => n));
      for (const [index, { asks }] of groups.entries()) {
        expect(asks.length).toBeWithin(1, 257);
        for (const n of asks) expect(cameAt[n]).toBeLessThanOrEqual(index);
      }
    }),
  );
});
