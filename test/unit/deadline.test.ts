import { describe, expect, test } from "bun:test";
import { atMost, Deadline } from "../../src/core/deadline.ts";

const refusal = new Error("too late");
const never = new Promise<never>(() => {});

test("work that ends in time passes on its result or its error", async () => {
  const deadline = new Deadline(60_000, () => refusal, 1);
  expect(await deadline.of(Promise.resolve(7))).toBe(7);
  expect(deadline.of(Promise.reject(new Error("its own")))).rejects.toThrow("its own");
});

test("work that goes on by itself is waited for at most so long", async () => {
  expect(await atMost(60_000, Promise.resolve(7))).toBe(7);
  expect(atMost(60_000, Promise.reject(new Error("its own")))).rejects.toThrow("its own");
  expect(await atMost(1, never)).toBeUndefined();
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

test("a wait that began earlier ends earlier", async () => {
  const deadline = new Deadline(60_000, () => refusal, 1);
  await expect(deadline.of(never, undefined, performance.now() - 60_000)).rejects.toBe(refusal);
  expect(await deadline.of(Promise.resolve(7), undefined, performance.now() - 60_000)).toBe(7);
});

test("`late` is called once, and only for a refusal", async () => {
  const deadline = new Deadline(5, () => refusal, 1);
  let late = 0;
  const wait = deadline.of(never, () => late++);
  await deadline.of(Promise.resolve(7), () => late++);
  await wait.catch(() => {});
  await deadline.of(never).catch(() => {}); // it went on looking
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
    // A thread that answers 1.3 s after this one stands still, and then lets it go on.
    const script = `onmessage = ({ data: gate }) => {
      postMessage("begun");
      Atomics.wait(gate, 0, 0);
      Atomics.wait(gate, 0, 1, 1300);
      postMessage("an answer");
      Atomics.store(gate, 0, 2);
      Atomics.notify(gate, 0);
    };`;
    const worker = new Worker(URL.createObjectURL(new Blob([script])));
    const next = () => new Promise((resolve) => worker.addEventListener("message", resolve, { once: true }));
    const gate = new Int32Array(new SharedArrayBuffer(4));
    worker.postMessage(gate);
    await next();
    const answer = new Deadline(700, () => refusal, 10).of(next());
    Atomics.store(gate, 0, 1);
    Atomics.notify(gate, 0);
    Atomics.wait(gate, 0, 1);
    expect(await answer).toMatchObject({ data: "an answer" });
    worker.terminate();
  });

  test("an answer that arrived while another one was read counts, however short that was", async () => {
    // A thread that first answers on one connection. Once that is being read, it answers on the other, past the deadline.
    const script = `onmessage = ({ data: gate }) => {
      const sockets = [];
      const open = (socket) => sockets.push(socket);
      const data = () => {
        sockets[0].write("read slowly");
        Atomics.wait(gate, 0, 0);
        Atomics.wait(gate, 0, 1, 200);
        sockets[1].write("an answer");
        Atomics.store(gate, 0, 2);
        Atomics.notify(gate, 0);
      };
      postMessage(Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { open, data } }).port);
    };`;
    const worker = new Worker(URL.createObjectURL(new Blob([script])));
    const gate = new Int32Array(new SharedArrayBuffer(4));
    const listens = new Promise<number>((resolve) => {
      worker.addEventListener("message", ({ data }) => resolve(data), { once: true });
    });
    worker.postMessage(gate);
    const at = { hostname: "127.0.0.1", port: await listens };
    const readSlowly = () => {
      Atomics.store(gate, 0, 1);
      Atomics.notify(gate, 0);
      Atomics.wait(gate, 0, 1);
    };
    const { promise, resolve } = Promise.withResolvers<string>();
    const slow = await Bun.connect({ ...at, socket: { data: readSlowly } });
    const other = await Bun.connect({ ...at, socket: { data: (_, bytes) => resolve(bytes.toString()) } });
    const answer = new Deadline(100, () => refusal, 10).of(promise);
    other.write("a question");
    expect(await answer).toBe("an answer");
    slow.end();
    other.end();
    worker.terminate();
  });

  test("work that stood still with it has the rest of its time", async () => {
    const answer = new Deadline(1000, () => refusal, 10).of(Bun.sleep(1600).then(() => "an answer"));
    Bun.sleepSync(1500);
    expect(await answer).toBe("an answer");
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
