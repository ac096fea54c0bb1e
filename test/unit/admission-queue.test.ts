import { describe, expect, test } from "bun:test";
import { Fault } from "../../src/core/fault.ts";
import { AdmissionQueue } from "../../src/serve/limit/admission-queue.ts";

/** Work that ends when the test says so, and notes when it has started. */
function controlledWork(started: number[], id: number) {
  const { promise, resolve } = Promise.withResolvers<number>();
  const work = () => {
    started.push(id);
    return promise;
  };
  return { work, finish: () => resolve(id) };
}

let keys = 0;
/** A key that no other work has. */
const newKey = () => `key ${keys++}`;

/** Lets everything that is ready run. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("an admission queue", () => {
  test("runs four at once, and the next in FIFO order when one ends", async () => {
    const queue = new AdmissionQueue();
    const started: number[] = [];
    const works = Array.from({ length: 8 }, (_, id) => controlledWork(started, id));
    const runs = works.map(({ work }) => queue.run(newKey(), work));
    await settled();
    expect(started).toEqual([0, 1, 2, 3]);
    works[2]?.finish();
    expect(await runs[2]).toBe(2);
    await settled();
    expect(started).toEqual([0, 1, 2, 3, 4]);
    works[4]?.finish();
    works[0]?.finish();
    await settled();
    expect(started).toEqual([0, 1, 2, 3, 4, 5, 6]);
    for (const { finish } of works) finish();
    expect(await Promise.all(runs)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test("refuses the 69th at once without starting its work, and has room again when one ends", async () => {
    const queue = new AdmissionQueue();
    const started: number[] = [];
    const works = Array.from({ length: 69 }, (_, id) => controlledWork(started, id));
    const runs = works.slice(0, 68).map(({ work }) => queue.run(newKey(), work));
    const last = works[68]?.work as () => Promise<number>;
    const refusal = await queue.run(newKey(), last).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(Fault);
    expect(refusal).toMatchObject({ code: "rate_limited", detail: { retryAfterS: 1 } });
    expect(queue.refused).toBe(1);
    expect(started).not.toContain(68);
    works[0]?.finish();
    await runs[0];
    const retry = queue.run(newKey(), last);
    for (const { finish } of works) finish();
    expect(await retry).toBe(68);
    await Promise.all(runs);
  });

  test("passes on a failure and frees the slot, whether the work rejects or throws", async () => {
    const queue = new AdmissionQueue(1, 1);
    for (let i = 0; i < 10; i++) {
      const rejects = queue.run(newKey(), () => Promise.reject(new Error("rejected")));
      const throws = queue.run(newKey(), () => {
        throw new Error("thrown");
      });
      const reasons = (await Promise.allSettled([rejects, throws])).map((run) => "reason" in run && run.reason.message);
      expect(reasons).toEqual(["rejected", "thrown"]);
    }
    expect(await queue.run(newKey(), async () => "free")).toBe("free");
  });

  test("gives a free slot to the first waiter, not to a newcomer", async () => {
    const queue = new AdmissionQueue(1, 2);
    const order: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const first = queue.run(newKey(), () => promise);
    const waiter = queue.run(newKey(), async () => void order.push("waiter"));
    // Arrives after the slot was released and before the waiter runs.
    const newcomer = promise.then(() => queue.run(newKey(), async () => void order.push("newcomer")));
    resolve();
    await Promise.all([first, waiter, newcomer]);
    expect(order).toEqual(["waiter", "newcomer"]);
  });

  test("never runs more at once than it may, even if some work fails", async () => {
    const queue = new AdmissionQueue(3, 100);
    let running = 0;
    let most = 0;
    const work = async (turns: number) => {
      most = Math.max(most, ++running);
      for (let i = 0; i < turns; i++) await Promise.resolve();
      running--;
      if (turns % 5 === 0) throw new Error("some fail");
    };
    const runs = Array.from({ length: 100 }, (_, i) => queue.run(newKey(), () => work((i * 7) % 11)));
    await Promise.allSettled(runs);
    expect(most).toBe(3);
    expect(running).toBe(0);
  });

  test("gives all work for one key one slot, which is free when the last of it ends", async () => {
    const queue = new AdmissionQueue(1, 1);
    const started: number[] = [];
    const works = Array.from({ length: 300 }, (_, id) => controlledWork(started, id));
    const runs = works.map(({ work }) => queue.run("one", work));
    const waiter = queue.run("two", async () => "two");
    await expect(queue.run("three", async () => "three")).rejects.toMatchObject({ code: "rate_limited" });
    await settled();
    expect(started.length).toBe(300);
    for (const { finish } of works.slice(1)) finish();
    await Promise.all(runs.slice(1));
    await expect(queue.run("three", async () => "three")).rejects.toMatchObject({ code: "rate_limited" });
    works[0]?.finish();
    expect(await waiter).toBe("two");
    expect(await queue.run("three", async () => "three")).toBe("three");
  });
});
