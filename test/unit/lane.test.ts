import { describe, expect, test } from "bun:test";
import { Fault } from "../../src/fault.ts";
import { Lane } from "../../src/limit/lane.ts";

/** Work that waits to be told, and says when it has begun. */
function gated(begun: number[], id: number) {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const work = () => {
    begun.push(id);
    return promise;
  };
  return { work, finish: () => resolve(id), fail: (error: Error) => reject(error) };
}

let keys = 0;
/** A key that no other work has. */
const another = () => `key ${keys++}`;

/** Lets everything that is ready run. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("a lane", () => {
  test("runs four at once and the next when one is done, first come first served", async () => {
    const lane = new Lane();
    const begun: number[] = [];
    const works = Array.from({ length: 8 }, (_, id) => gated(begun, id));
    const runs = works.map(({ work }) => lane.run(another(), work));
    await settled();
    expect(begun).toEqual([0, 1, 2, 3]);
    works[2]?.finish();
    expect(await runs[2]).toBe(2);
    await settled();
    expect(begun).toEqual([0, 1, 2, 3, 4]);
    works[4]?.finish();
    works[0]?.finish();
    await settled();
    expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6]);
    for (const { finish } of works) finish();
    expect(await Promise.all(runs)).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  });

  test("refuses the 69th at once, without beginning its work, and has room again when one is done", async () => {
    const lane = new Lane();
    const begun: number[] = [];
    const works = Array.from({ length: 70 }, (_, id) => gated(begun, id));
    const runs = works.slice(0, 68).map(({ work }) => lane.run(another(), work));
    const refusal = await lane
      .run(another(), works[68]?.work as () => Promise<number>)
      .catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(Fault);
    expect(refusal).toMatchObject({ code: "rate_limited", detail: { retryAfterS: 1 } });
    expect(begun).not.toContain(68);
    works[0]?.finish();
    await runs[0];
    const late = lane.run(another(), works[69]?.work as () => Promise<number>);
    for (const { finish } of works) finish();
    expect(await late).toBe(69);
    await Promise.all(runs);
  });

  test("hands on a failure and frees its place, whether the work rejects or throws", async () => {
    const lane = new Lane(1, 0);
    for (let i = 0; i < 10; i++) {
      await expect(lane.run(another(), () => Promise.reject(new Error("rejected")))).rejects.toThrow("rejected");
      const throws = () => {
        throw new Error("thrown");
      };
      await expect(lane.run(another(), throws)).rejects.toThrow("thrown");
    }
    expect(await lane.run(another(), async () => "free")).toBe("free");
  });

  test("runs the next in line when one fails", async () => {
    const lane = new Lane(1, 2);
    const begun: number[] = [];
    const works = [gated(begun, 0), gated(begun, 1)];
    const runs = works.map(({ work }) => lane.run(another(), work));
    works[0]?.fail(new Error("failed"));
    await expect(runs[0]).rejects.toThrow("failed");
    expect(begun).toEqual([0, 1]);
    works[1]?.finish();
    expect(await runs[1]).toBe(1);
  });

  test("lets no newcomer in between one that ends and one that waits", async () => {
    const lane = new Lane(1, 2);
    const order: string[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const first = lane.run(another(), () => promise);
    const waiting = lane.run(another(), async () => void order.push("waiting"));
    // Comes in the very moment after the place is given up, before the one that waits has woken.
    const newcomer = promise.then(() => lane.run(another(), async () => void order.push("newcomer")));
    resolve();
    await Promise.all([first, waiting, newcomer]);
    expect(order).toEqual(["waiting", "newcomer"]);
  });

  test("never runs more than its width, whatever comes and goes", async () => {
    const lane = new Lane(3, 100);
    let running = 0;
    let most = 0;
    const work = async (turns: number) => {
      most = Math.max(most, ++running);
      for (let i = 0; i < turns; i++) await Promise.resolve();
      running--;
      if (turns % 5 === 0) throw new Error("some fail");
    };
    const runs = Array.from({ length: 100 }, (_, i) => lane.run(another(), () => work((i * 7) % 11)));
    await Promise.allSettled(runs);
    expect(most).toBe(3);
    expect(running).toBe(0);
  });

  test("gives all work for one key one place, which is free again when the last of it is done", async () => {
    const lane = new Lane(1, 1);
    const begun: number[] = [];
    const works = Array.from({ length: 300 }, (_, id) => gated(begun, id));
    const runs = works.map(({ work }) => lane.run("one", work));
    const waiting = lane.run("two", async () => "two");
    await expect(lane.run("three", async () => "three")).rejects.toMatchObject({ code: "rate_limited" });
    await settled();
    expect(begun.length).toBe(300);
    for (const { finish } of works.slice(1)) finish();
    await Promise.all(runs.slice(1));
    await expect(lane.run("three", async () => "three")).rejects.toMatchObject({ code: "rate_limited" });
    works[0]?.finish();
    expect(await waiting).toBe("two");
    expect(await lane.run("three", async () => "three")).toBe("three");
  });
});
