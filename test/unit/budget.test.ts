import { describe, expect, test } from "bun:test";
import { getEventListeners } from "node:events";
import { Fault } from "../../src/core/fault.ts";
import { Budget, entriesRoom, MemoryBudget, type Share, smallBytesMax } from "../../src/serve/limit/budget.ts";
import { eventually } from "../support/eventually.ts";

/** Lets everything that is ready run. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Asks for bytes, and keeps the release once they are granted. */
function ask(budget: Budget, bytes: number, signal?: AbortSignal, deadlineMs?: number, holder = "one") {
  const asked: { release?: () => void; fault?: unknown } = {};
  budget.acquire(bytes, holder, signal, deadlineMs).then(
    ({ release }) => {
      asked.release = release;
    },
    (fault: unknown) => {
      asked.fault = fault;
    },
  );
  return asked;
}

/* The order of waiters and the parts of holders: property/limit.test.ts. */

describe("a budget", () => {
  test("gives as much as it has, to the byte", async () => {
    const budget = new Budget(64 * 1024 * 1024);
    const almost = await budget.acquire(64 * 1024 * 1024 - 1, "one");
    const last = await budget.acquire(1, "one");
    const more = ask(budget, 1);
    await settled();
    expect(more.release).toBeUndefined();
    almost.release();
    await settled();
    expect(more.release).toBeFunction();
    last.release();
    more.release?.();
    expect(budget.taken).toBe(0);
  });

  test("drops a waiter after its deadline and serves those behind it", async () => {
    const budget = new Budget(10);
    await budget.acquire(6, "one");
    const late = await budget.acquire(8, "one", undefined, 1).catch((fault: unknown) => fault);
    expect(late).toBeInstanceOf(Fault);
    expect(late).toMatchObject({ code: "unavailable" });
    const large = ask(budget, 8, undefined, 1);
    await budget.acquire(4, "one"); // waits behind it, and is served when it has left
    expect(large.fault).toMatchObject({ code: "unavailable" });
    expect(budget.taken).toBe(10);
  });

  test("tells a holder that waited for its own part in vain when to come again, and others that there is no room", async () => {
    const budget = new Budget(10, 6, 3);
    await budget.acquire(6, "greedy");
    const other = await budget.acquire(3, "other");
    const inVain = (holder: string, amount: number) => budget.acquire(amount, holder, undefined, 1).catch((one) => one);
    const [own, whole] = await Promise.all([inVain("greedy", 1), inVain("third", 2)]);
    const ofOwn = "time ran out while waiting for 1 of the part of greedy";
    const ofWhole = "time ran out while waiting for 2 of the budget";
    expect(own).toMatchObject({ code: "rate_limited", message: ofOwn, detail: { retryAfterS: 3 } });
    expect(whole).toMatchObject({ code: "unavailable", message: ofWhole, detail: {} });
    const aborted = ask(budget, 1, AbortSignal.abort(), undefined, "greedy");
    await settled();
    expect(aborted.fault).toMatchObject({ code: "unavailable" });
    // If nobody knows when, it is not told.
    const unknown = new Budget(10, 6);
    await unknown.acquire(6, "greedy");
    expect(await unknown.acquire(1, "greedy", undefined, 1).catch((one) => one)).toMatchObject({ code: "unavailable" });
    other.release();
  });

  test("refuses a request that was aborted before it asked, even if there is room", async () => {
    const budget = new Budget(10);
    const asked = ask(budget, 1, AbortSignal.abort());
    await settled();
    expect(asked.fault).toMatchObject({ code: "unavailable" });
    expect(budget.taken).toBe(0);
  });

  test("keeps what it granted: a later abort changes nothing", async () => {
    const budget = new Budget(10);
    const held = await budget.acquire(10, "one");
    const controller = new AbortController();
    const waited = ask(budget, 10, controller.signal, 60_000);
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(1);
    held.release();
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(0); // a long-lived signal keeps no listener
    controller.abort(); // granted, but not yet resolved
    await settled();
    expect(waited.fault).toBeUndefined();
    expect(budget.taken).toBe(10);
    waited.release?.();
    expect(budget.taken).toBe(0);
  });

  test("throws for more than the whole, for less than nothing and for fractions", async () => {
    const budget = new Budget(10);
    for (const bytes of [11, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      const asked = ask(budget, bytes);
      await settled();
      expect(asked.fault).toBeInstanceOf(RangeError);
    }
    expect(budget.taken).toBe(0);
    expect((await budget.acquire(10, "one")).amount).toBe(10);
    expect(() => new Budget(10, 5).take(6, "more than a holder's part")).toThrow(RangeError);
  });

  test("counts what is really held, even if that is more than the whole", async () => {
    const budget = new Budget(10);
    const share = await budget.acquire(10, "one");
    const waiting = ask(budget, 6, undefined, undefined, "two");
    share.resize(4);
    await settled();
    expect(waiting.release).toBeFunction();
    expect([share.amount, budget.taken]).toEqual([4, 10]);
    share.resize(9);
    expect([share.amount, budget.taken]).toEqual([9, 15]);
    const next = ask(budget, 1, undefined, undefined, "three");
    waiting.release?.();
    await settled();
    expect(next.release).toBeFunction();
    share.release();
    share.resize(5); // after its release nothing changes
    expect([share.amount, budget.taken]).toEqual([0, 1]);
  });

  test("tells a holder how long somebody has waited for its bytes, not for another's", async () => {
    const budget = new Budget(10, 6);
    const greedy = await budget.acquire(6, "greedy");
    const other = await budget.acquire(2, "other");
    expect([greedy.waitedForMs(), other.waitedForMs()]).toEqual([0, 0]);
    const own = ask(budget, 1, undefined, undefined, "greedy");
    await eventually(() => greedy.waitedForMs() > 0);
    expect(other.waitedForMs()).toBe(0);
    const stranger = ask(budget, 3, undefined, undefined, "stranger");
    await eventually(() => other.waitedForMs() > 0);
    greedy.release();
    await settled();
    expect([own.release, stranger.release]).toEqual([expect.any(Function), expect.any(Function)]);
    expect([greedy.waitedForMs(), other.waitedForMs()]).toEqual([0, 0]);
  });
});

describe("memory", () => {
  test("for small reads is free while all of the memory for large ones is taken, and the other way round", () => {
    const memory = new MemoryBudget(2 * smallBytesMax, smallBytesMax + 1, smallBytesMax + 1);
    expect(memory.take(smallBytesMax + 1, "one")).toMatchObject({ amount: smallBytesMax + 1 });
    expect(memory.take(smallBytesMax, "one")).toMatchObject({ amount: smallBytesMax });
    expect(memory.take(smallBytesMax, "two")).toMatchObject({ amount: smallBytesMax });
    expect(memory.bytesTaken).toEqual({ small: 2 * smallBytesMax, large: smallBytesMax + 1 });
  });

  test("is 64 MiB for small and 30 MiB for large reads by default, of which one key gets 25", () => {
    const memory = new MemoryBudget();
    const mebibyte = 1024 * 1024;
    const greedy = memory.take(20 * mebibyte, "greedy");
    expect(greedy).toMatchObject({ amount: 20 * mebibyte });
    expect(memory.take(6 * mebibyte, "greedy")).toBeUndefined();
    expect(memory.take(5 * mebibyte, "greedy")).toMatchObject({ amount: 5 * mebibyte });
    expect(memory.take(5 * mebibyte, "other")).toMatchObject({ amount: 5 * mebibyte });
    expect(memory.bytesTaken).toEqual({ small: 0, large: 30 * mebibyte });
  });

  test("for a read that is larger than one key's part is all of that part", () => {
    const memory = new MemoryBudget(undefined, 2_000_000, 1_000_000);
    expect(memory.take(3_000_000, "one")).toMatchObject({ amount: 1_000_000 });
  });
});

test("one key gets half of the room for audit entries, and waits for more for half of the deadline", async () => {
  const claim = entriesRoom(10, 2);
  expect((claim(6, "greedy") as Share).amount).toBe(5);
  await expect(claim(1, "greedy")).rejects.toMatchObject({ code: "rate_limited", detail: { retryAfterS: 1 } });
  expect((claim(5, "other") as Share).amount).toBe(5);
});
