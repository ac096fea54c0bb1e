import { afterEach, expect, setSystemTime, test } from "bun:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Fault } from "../../src/core/fault.ts";
import { Waits } from "../../src/serve/api/waits.ts";
import type { ApiParts } from "../../src/serve/gates/api-parts.ts";
import type { Exchange } from "../../src/serve/gates/exchange.ts";
import { appliedHeader } from "../../src/serve/gates/prefer.ts";
import { moment } from "../support/clock.ts";
import { eventually } from "../support/eventually.ts";

/* Waits without a server: what judges a request is a function of the test. How they fit the gates: integration/told. */

afterEach(() => {
  setSystemTime();
});

type Judge = (parts: ApiParts, count: number) => Promise<Response>;

const unchanged = () => new Response(null, { status: 304, headers: { [appliedHeader]: "wait=60" } });
const changed = async () => new Response("new");
const frozen = () => 0;

/** Answers a request of this key. `count` is how often it was judged before. */
function asking(waits: Waits, keyId: string, judge: Judge = async () => unchanged(), waitS = 60, startedAtMs = 0) {
  const leaving = new AbortController();
  const exchange = { waitS, keyId, startedAtMs, signal: () => leaving.signal, stages: undefined, closing: false };
  let count = 0;
  const take = () => ({ allowed: true });
  const parts = { gate: { limiter: { take } } } as unknown as ApiParts;
  const answer = waits.answer(parts, exchange as unknown as Exchange, (own) => judge(own, count++));
  return { answer, leave: () => leaving.abort(), exchange };
}

test("10,000 wait in a process, and the next one is answered at once, and does not say that it waited", async () => {
  const waits = new Waits(async () => "", frozen);
  const answers = Array.from({ length: 10_000 }, (_, at) => asking(waits, `key ${at % 200}`).answer);
  await nextTurn();
  expect(waits.size).toBe(10_000);
  const more = await asking(waits, "another key").answer;
  expect([more.status, more.headers.get(appliedHeader)]).toEqual([304, null]);
  waits.end();
  for (const answer of await Promise.all(answers)) expect(answer.headers.get("connection")).toBe("close");
  expect(waits.size).toBe(0);
});

test("a change is not missed that comes while a request is judged for the first time", async () => {
  let end = "one";
  let looks = 0;
  const waits = new Waits(async () => {
    looks += 1;
    return end;
  }, frozen);
  const other = asking(waits, "other");
  await eventually(() => looks > 1);
  const first = Promise.withResolvers<Response>();
  const { answer } = asking(waits, "key", (_, count) => (count === 0 ? first.promise : changed()));
  end = "two";
  const seen = looks + 1;
  await eventually(() => looks > seen);
  first.resolve(unchanged());
  expect((await answer).status).toBe(200);
  other.leave();
});

test("a server that stops ends its waits at once, whatever looks find", async () => {
  let looks = 0;
  const waits = new Waits(async () => String(looks++ > 99), frozen);
  const { answer } = asking(waits, "key");
  await eventually(() => looks > 1);
  waits.end();
  expect((await answer).headers.get("connection")).toBe("close");
});

test("the database is asked while somebody waits, and not before or after", async () => {
  let looks = 0;
  const waits = new Waits(async () => String(looks++ > 99), frozen);
  await moment(1200);
  expect(looks).toBe(0);
  for (const _ of [1, 2]) {
    const before = looks;
    const { answer, leave } = asking(waits, "key");
    await eventually(() => looks > before + 1);
    leave();
    await answer;
    const after = looks;
    await moment(2200);
    expect(looks).toBe(after);
  }
});

test("thousands are judged in steps", async () => {
  let judged = 0;
  const judge: Judge = async (_, count) => {
    if (count > 0) judged += 1;
    return count > 0 ? changed() : unchanged();
  };
  const waits = new Waits(async () => "end", frozen);
  const answers = Array.from({ length: 640 }, (_, at) => asking(waits, `key ${at % 10}`, judge).answer);
  const counts = new Set<number>();
  while (judged < 640) {
    await nextTurn();
    counts.add(judged);
  }
  expect(counts.size).toBeGreaterThan(5);
  await Promise.all(answers);
});

test("a look that fails ends no wait", async () => {
  let looks = 0;
  const failing = async () => {
    looks += 1;
    if (looks < 3) throw new Error("the database is away");
    return "end";
  };
  const { answer } = asking(new Waits(failing, frozen), "key", async (_, count) =>
    count > 0 ? changed() : unchanged(),
  );
  expect((await answer).status).toBe(200);
  expect(looks).toBe(3);
});

test("a database that is away ends no wait, and another refusal does", async () => {
  let looks = 0;
  const waits = () => new Waits(async () => String(looks++), frozen);
  const judge = (code: "unavailable" | "plan_required"): Judge => {
    return async (_, count) => {
      if (count === 1) throw new Fault(code, "as the test asks");
      return count > 0 ? changed() : unchanged();
    };
  };
  expect((await asking(waits(), "key", judge("unavailable")).answer).status).toBe(200);
  const refused = asking(waits(), "key", judge("plan_required")).answer;
  expect(await refused.catch(({ code }: Fault) => code)).toBe("plan_required");
});

test("a wait ends in time if nothing answers its last judgement, but what it began to read is answered", async () => {
  const now = () => performance.now();
  const waits = new Waits(async () => "end", now);
  const silent: Judge = async (_, count) => (count === 0 ? unchanged() : new Promise<Response>(() => {}));
  const reading: Judge = async ({ gate }, count) => {
    if (count === 0) await gate.shared?.take({} as never, "metadata", 0);
    if (count === 0) return unchanged();
    await gate.shared?.take({} as never, "value", 0);
    await moment(2500);
    return changed();
  };
  const [late, read] = [silent, reading].map((judge) => asking(waits, "key", judge, 1, now()).answer);
  expect(await late?.catch(({ code }: Fault) => code)).toBe("unavailable");
  expect((await read)?.status).toBe(200);
});

test("neither a clock that steps nor a wait counts as the time that an answer took", async () => {
  const now = () => performance.now();
  const { answer, exchange } = asking(new Waits(async () => "end", now), "key", undefined, 1, now());
  setSystemTime(new Date(Date.now() + 3_600_000));
  const beganAtMs = exchange.startedAtMs;
  expect((await answer).status).toBe(304);
  expect(exchange.startedAtMs).toBeGreaterThanOrEqual(beganAtMs + 999);
});
