import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { Deadline } from "../../src/core/deadline.ts";

setDefaultTimeout(60_000);

const refusal = new Error("too late");
const never = new Promise<never>(() => {});

test("work that ends in time is answered with what it came to", async () => {
  const deadline = new Deadline(60_000, () => refusal, 1);
  expect(await deadline.of(Promise.resolve(7))).toBe(7);
  expect(deadline.of(Promise.reject(new Error("its own")))).rejects.toThrow("its own");
});

test("work that does not is refused, in the order of its beginning", async () => {
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
  expect(deadline.of(never)).rejects.toBe(refusal); // the timer starts anew
});

test("who is told of a refusal is told once, and of nothing else", async () => {
  const deadline = new Deadline(5, () => refusal, 1);
  let late = 0;
  const wait = deadline.of(never, () => late++);
  await deadline.of(Promise.resolve(7), () => late++);
  await wait.catch(() => {});
  await Bun.sleep(20);
  expect(late).toBe(1);
});

test("one that ends in time does not keep another from its end", async () => {
  const deadline = new Deadline(20, () => refusal, 1);
  const { promise, resolve } = Promise.withResolvers<string>();
  const quick = deadline.of(promise);
  const slow = deadline.of(never);
  resolve("done");
  expect(await quick).toBe("done");
  expect(slow).rejects.toBe(refusal);
  await slow.catch(() => {});
});

describe("where the process itself stood still", () => {
  test("what was answered meanwhile counts", async () => {
    // Beside the standstill there is time for a slow start of the child, and for the news of its end.
    const deadline = new Deadline(1500, () => refusal, 10);
    const child = Bun.spawn(["sleep", "0.05"]);
    const answer = deadline.of(child.exited);
    await Bun.sleep(20);
    Bun.sleepSync(2000);
    expect(await answer).toBe(0);
  });

  test("what was not answered is refused all the same", async () => {
    const deadline = new Deadline(100, () => refusal, 10);
    const wait = deadline.of(never);
    Bun.sleepSync(300);
    expect(wait).rejects.toBe(refusal);
    await wait.catch(() => {});
  });

  test.each([50, 700])("what keeps it busy for %p ms at a time counts: nothing waits for ever", async (ms) => {
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
