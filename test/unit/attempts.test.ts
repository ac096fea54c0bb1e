import { expect, test } from "bun:test";
import { Attempts } from "../../src/dashboard/attempts.ts";

const attempt = (n: number, startedAt: number) => {
  return { state: `state ${n}`, nonce: "n", verifier: "v", again: false, session: undefined, page: "/", startedAt };
};

test("an attempt is open for ten minutes, and is used once", async () => {
  const clock = { now: 0 };
  const attempts = new Attempts(() => clock.now);
  const cookie = await attempts.seal(attempt(1, 0));
  expect(await attempts.open(cookie)).toEqual(attempt(1, 0));
  expect([attempts.use(attempt(1, 0)), attempts.use(attempt(1, 0))]).toEqual([true, false]);
  clock.now = 599_999;
  expect([await attempts.open(cookie), attempts.use(attempt(1, 0))]).toEqual([attempt(1, 0), false]);
  clock.now = 600_000;
  expect(await attempts.open(cookie)).toBeUndefined();
  expect([attempts.use(attempt(1, 0)), attempts.use(attempt(2, 0))]).toEqual([false, false]);
});

test("attempts that are used take bounded memory: the oldest is forgotten", () => {
  const attempts = new Attempts(() => 0);
  for (let n = 0; n < 10_000; n++) expect(attempts.use(attempt(n, 0))).toBe(true);
  expect(attempts.use(attempt(0, 0))).toBe(false);
  expect(attempts.use(attempt(10_000, 0))).toBe(true);
  expect([attempts.use(attempt(1, 0)), attempts.use(attempt(0, 0))]).toEqual([false, true]);
});
