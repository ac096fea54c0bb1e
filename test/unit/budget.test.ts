import { describe, expect, test } from "bun:test";
import { getEventListeners } from "node:events";
import { Fault } from "../../src/fault.ts";
import { ByteBudget } from "../../src/limit/budget.ts";

/** Lets everything that is ready run. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Asks for bytes and keeps the release once it is there. */
function ask(budget: ByteBudget, bytes: number, signal?: AbortSignal, deadlineMs?: number) {
  const asked: { release?: () => void; fault?: unknown } = {};
  budget.acquire(bytes, signal, deadlineMs).then(
    (release) => {
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
    const almost = await budget.acquire(64 * 1024 * 1024 - 1);
    const last = await budget.acquire(1);
    const more = ask(budget, 1);
    await settled();
    expect(more.release).toBeUndefined();
    almost();
    await settled();
    expect(more.release).toBeFunction();
    last();
    more.release?.();
    expect(budget.bytesTaken).toBe(0);
  });

  test("serves first come first served: a small one does not overtake a large one that waits", async () => {
    const budget = new ByteBudget(10);
    const held = [await budget.acquire(3), await budget.acquire(3)];
    const large = ask(budget, 8);
    const small = ask(budget, 1);
    const empty = ask(budget, 0);
    await settled();
    expect([large.release, small.release, empty.release]).toEqual([undefined, undefined, undefined]);
    held[0]?.(); // now 7 are free, enough for the small one alone
    await settled();
    expect([large.release, small.release, empty.release]).toEqual([undefined, undefined, undefined]);
    held[1]?.();
    await settled();
    expect(large.release).toBeFunction();
    expect(small.release).toBeFunction(); // 8 + 1 fit
    expect(budget.bytesTaken).toBe(9);
  });

  test("gives the bytes back once, however often the release is called", async () => {
    const budget = new ByteBudget(10);
    const first = await budget.acquire(5);
    await budget.acquire(5);
    first();
    first();
    first();
    expect(budget.bytesTaken).toBe(5);
    const more = ask(budget, 6);
    await settled();
    expect(more.release).toBeUndefined();
  });

  test("lets an aborted one leave the line, and those behind it move up", async () => {
    const budget = new ByteBudget(10);
    const held = await budget.acquire(6);
    const controller = new AbortController();
    const large = ask(budget, 8, controller.signal);
    const small = ask(budget, 4);
    controller.abort();
    await settled();
    expect(large.fault).toBeInstanceOf(Fault);
    expect(large.fault).toMatchObject({ code: "unavailable" });
    expect(small.release).toBeFunction();
    held();
    small.release?.();
    expect(budget.bytesTaken).toBe(0); // the one that left took nothing
  });

  test("lets one whose time is over leave the line, and those behind it move up", async () => {
    const budget = new ByteBudget(10);
    await budget.acquire(6);
    const late = await budget.acquire(8, undefined, 1).catch((fault: unknown) => fault);
    expect(late).toBeInstanceOf(Fault);
    expect(late).toMatchObject({ code: "unavailable" });
    const large = ask(budget, 8, undefined, 1);
    await budget.acquire(4); // waits behind it, and passes when it has left
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
    const held = await budget.acquire(10);
    const controller = new AbortController();
    const waited = ask(budget, 10, controller.signal, 60_000);
    expect(getEventListeners(controller.signal, "abort")).toHaveLength(1);
    held();
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
    expect(await budget.acquire(10)).toBeFunction();
  });
});
