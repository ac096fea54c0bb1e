import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { Deadline } from "../../src/core/deadline.ts";

setDefaultTimeout(60_000);

const refusal = new Error("too late");
const never = new Promise<never>(() => {});

test("work that ends in time passes on its result or its error", async () => {
  const deadline = new Deadline(60_000, () => refusal, 1);
  expect(await deadline.of(Promise.resolve(7))).toBe(7);
  expect(deadline.of(Promise.reject(new Error("its own")))).rejects.toThrow("its own");
});

test("work that takes longer is refused, in the order in which it began", async () => {
  const deadline = new Deadline(5, () => refusal, 1);
  const ended: number[] = [];
  const waits = Array.from({ length: 20 }, (_, index) =>
    deadline.of(never).catch((error) => {
      expect(error).toBe(refusal);
      ended.push(index);
    }),
  );
  await Promise.all(waits);
  expect(ended).toEqual(Array.from({ length: 20 }, (_, index) => index));
  expect(deadline.of(never)).rejects.toBe(refusal); // the timer starts again
});

test("`late` is called once, and only for a refusal", async () => {
  const deadline = new Deadline(5, () => refusal, 1);
  let late = 0;
  const wait = deadline.of(never, () => late++);
  await deadline.of(Promise.resolve(7), () => late++);
  await wait.catch(() => {});
  await Bun.sleep(20);
  expect(late).toBe(1);
});

test("a wait that ends in time does not end another", async () => {
  const deadline = new Deadline(20, () => refusal, 1);
  const { promise, resolve } = Promise.withResolvers<string>();
  const quick = deadline.of(promise);
  const slow = deadline.of(never);
  resolve("done");
  expect(await quick).toBe("done");
  expect(slow).rejects.toBe(refusal);
  await slow.catch(() => {});
});

describe("if the process itself stood still", () => {
  test("an answer that arrived in that time counts", async () => {
    // Long enough for a slow start of the child, and for the news of its end.
    const deadline = new Deadline(700, () => refusal, 10);
    const child = Bun.spawn(["sleep", "0.05"]);
    const answer = deadline.of(child.exited);
    await Bun.sleep(20);
    Bun.sleepSync(1300);
    expect(await answer).toBe(0);
  });

  test("work without an answer is refused", async () => {
    const deadline = new Deadline(100, () => refusal, 10);
    const wait = deadline.of(never);
    Bun.sleepSync(300);
    expect(wait).rejects.toBe(refusal);
    await wait.catch(() => {});
  });

  test.each([50, 700])("work that keeps it busy for %p ms at a time extends no wait for ever", async (ms) => {
    const deadline = new Deadline(200, () => refusal, 10);
    let times = 0;
    const busy = setInterval(() => {
      times += 1;
      for (const beganAt = performance.now(); performance.now() - beganAt < ms; );
    }, 1);
    expect(deadline.of(never)).rejects.toBe(refusal);
    await deadline.of(never).catch(() => {});
    clearInterval(busy);
    expect(times).toBeLessThan(20);
  });
});
