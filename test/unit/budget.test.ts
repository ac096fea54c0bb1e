import { describe, expect, test } from "bun:test";
import { getEventListeners } from "node:events";
import { Fault } from "../../src/fault.ts";
import { ByteBudget } from "../../src/limit/budget.ts";

/** Lets everything that is ready run. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Asks for bytes and keeps the release once it is there. */
function ask(budget: ByteBudget, bytes: number, signal?: AbortSignal, deadlineMs?: number, holder = "one") {
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

describe("a byte budget", () => {
  test("is 64 MiB unless told otherwise, to the byte", async () => {
    const budget = new ByteBudget();
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
    expect(budget.bytesTaken).toBe(0);
  });

  test("serves first come first served: a small one does not overtake a large one that waits", async () => {
    const budget = new ByteBudget(10);
    const held = [await budget.acquire(3, "one"), await budget.acquire(3, "one")];
    const large = ask(budget, 8);
    const small = ask(budget, 1);
    const empty = ask(budget, 0);
    await settled();
    expect([large.release, small.release, empty.release]).toEqual([undefined, undefined, undefined]);
    held[0]?.release(); // now 7 are free, enough for the small one alone
    await settled();
    expect([large.release, small.release, empty.release]).toEqual([undefined, undefined, undefined]);
    held[1]?.release();
    await settled();
    expect(large.release).toBeFunction();
    expect(small.release).toBeFunction(); // 8 + 1 fit
    expect(budget.bytesTaken).toBe(9);
  });

  test("gives the bytes back once, however often the release is called", async () => {
    const budget = new ByteBudget(10);
    const first = await budget.acquire(5, "one");
    await budget.acquire(5, "one");
    first.release();
    first.release();
    first.release();
    expect(budget.bytesTaken).toBe(5);
    const more = ask(budget, 6);
    await settled();
    expect(more.release).toBeUndefined();
  });

  test("lets an aborted one leave the line, and those behind it move up", async () => {
    const budget = new ByteBudget(10);
    const held = await budget.acquire(6, "one");
    const controller = new AbortController();
    const large = ask(budget, 8, controller.signal);
    const small = ask(budget, 4);
    controller.abort();
    await settled();
    expect(large.fault).toBeInstanceOf(Fault);
    expect(large.fault).toMatchObject({ code: "unavailable" });
    expect(small.release).toBeFunction();
    held.release();
    small.release?.();
    expect(budget.bytesTaken).toBe(0); // the one that left took nothing
  });

  test("lets one whose time is over leave the line, and those behind it move up", async () => {
    const budget = new ByteBudget(10);
    await budget.acquire(6, "one");
    const late = await budget.acquire(8, "one", undefined, 1).catch((fault: unknown) => fault);
    expect(late).toBeInstanceOf(Fault);
    expect(late).toMatchObject({ code: "unavailable" });
    const large = ask(budget, 8, undefined, 1);
    await budget.acquire(4, "one"); // waits behind it, and passes when it has left
    expect(large.fault).toMatchObject({ code: "unavailable" });
    expect(budget.bytesTaken).toBe(10);
  });

  test("refuses one that is aborted before it asks, even where there is room", async () => {
    const budget = new ByteBudget(10);
    const asked = ask(budget, 1, AbortSignal.abort());
    await settled();
    expect(asked.fault).toMatchObject({ code: "unavailable" });
    expect(budget.bytesTaken).toBe(0);
  });

  test("does not take back what it granted: a later abort changes nothing", async () => {
    const budget = new ByteBudget(10);
    const held = await budget.acquire(10, "one");
    const controller = new AbortController();
    const waited = ask(budget, 10, controller.signal, 60_000);
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(1);
    held.release();
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(0); // nothing stays behind on a long-lived signal
    controller.abort(); // granted, and not yet awake
    await settled();
    expect(waited.fault).toBeUndefined();
    expect(budget.bytesTaken).toBe(10);
    waited.release?.();
    expect(budget.bytesTaken).toBe(0);
  });

  test("takes more than the whole, less than nothing and parts of bytes for the mistake they are", async () => {
    const budget = new ByteBudget(10);
    for (const bytes of [11, -1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      const asked = ask(budget, bytes);
      await settled();
      expect(asked.fault).toBeInstanceOf(RangeError);
    }
    expect(budget.bytesTaken).toBe(0);
    expect((await budget.acquire(10, "one")).bytes).toBe(10);
  });

  test("gives at once what is free, and nothing to one before whom somebody waits", async () => {
    const budget = new ByteBudget(10);
    const held = budget.take(6, "one");
    expect(budget.take(5, "two")).toBeUndefined();
    const waiting = ask(budget, 5, undefined, undefined, "two");
    expect(budget.take(1, "three")).toBeUndefined();
    expect(budget.bytesTaken).toBe(6);
    held?.release();
    await settled();
    expect(waiting.release).toBeFunction();
    expect(budget.take(5, "three")?.bytes).toBe(5);
    expect(budget.take(0, "three")?.bytes).toBe(0);
    expect(() => budget.take(11, "three")).toThrow(RangeError);
  });

  test("counts what is really held once that is known, even more than there is", async () => {
    const budget = new ByteBudget(10);
    const share = await budget.acquire(10, "one");
    const waiting = ask(budget, 6, undefined, undefined, "two");
    share.resize(4);
    await settled();
    expect(waiting.release).toBeFunction();
    expect([share.bytes, budget.bytesTaken]).toEqual([4, 10]);
    share.resize(9);
    expect([share.bytes, budget.bytesTaken]).toEqual([9, 15]);
    const next = ask(budget, 1, undefined, undefined, "three");
    waiting.release?.();
    await settled();
    expect(next.release).toBeFunction();
    share.release();
    share.resize(5); // it has ended
    expect([share.bytes, budget.bytesTaken]).toEqual([0, 1]);
  });

  test("gives one holder no more than its part, and whoever waits for his own holds up nobody else", async () => {
    const budget = new ByteBudget(10, 5);
    expect(() => budget.take(6, "greedy")).toThrow(RangeError);
    const [first, second] = [await budget.acquire(2, "greedy"), await budget.acquire(3, "greedy")];
    const large = ask(budget, 5, undefined, undefined, "greedy");
    const small = ask(budget, 1, undefined, undefined, "greedy");
    await settled();
    expect([large.release, small.release]).toEqual([undefined, undefined]);
    first.resize(1); // room for the small one, which comes after the large one all the same
    await settled();
    expect(small.release).toBeUndefined();
    const other = budget.take(4, "other");
    expect(other?.bytes).toBe(4);
    first.release();
    await settled();
    expect(small.release).toBeUndefined(); // there is room for it, but the large one came first
    second.release();
    await settled();
    expect(large.release).toBeFunction();
    expect(small.release).toBeUndefined();
    large.release?.();
    await settled();
    expect(small.release).toBeFunction();
    expect(budget.bytesTaken).toBe(5);
  });

  test("lets nobody line up for what he has himself: others who wait come first", async () => {
    const budget = new ByteBudget(10, 6);
    const first = await budget.acquire(6, "greedy");
    const again = [ask(budget, 6, undefined, undefined, "greedy"), ask(budget, 6, undefined, undefined, "greedy")];
    const other = ask(budget, 6, undefined, undefined, "other");
    first.release();
    await settled();
    expect([again[0]?.release, again[1]?.release]).toEqual([undefined, undefined]);
    expect(other.release).toBeFunction();
    other.release?.();
    await settled();
    expect(again[0]?.release).toBeFunction();
    expect(again[1]?.release).toBeUndefined();
  });

  test("tells a holder how long somebody waits for what he has, not for what another has", async () => {
    const budget = new ByteBudget(10, 6);
    const greedy = await budget.acquire(6, "greedy");
    const other = await budget.acquire(2, "other");
    expect([greedy.waitedForMs(), other.waitedForMs()]).toEqual([0, 0]);
    const own = ask(budget, 1, undefined, undefined, "greedy");
    await Bun.sleep(2); // time itself is what is told
    expect(greedy.waitedForMs()).toBeGreaterThan(0);
    expect(other.waitedForMs()).toBe(0);
    const stranger = ask(budget, 3, undefined, undefined, "stranger");
    await Bun.sleep(2);
    expect(other.waitedForMs()).toBeGreaterThan(0);
    greedy.release();
    await settled();
    expect([own.release, stranger.release]).toEqual([expect.any(Function), expect.any(Function)]);
    expect([greedy.waitedForMs(), other.waitedForMs()]).toEqual([0, 0]);
  });
});
