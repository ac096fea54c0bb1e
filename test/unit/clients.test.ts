import { afterEach, expect, jest, spyOn, test } from "bun:test";
import { Clients } from "../../src/store/database.ts";

afterEach(() => {
  jest.restoreAllMocks();
});

/** Clients that are numbered as they are made. */
function numbered() {
  let made = 0;
  return new Clients(() => ({ number: made++, end: async () => {} }));
}

const failure = Object.assign(new Error("statement"), { code: "42P01" });

test("what fails is told to who asked, and the next one asks a new client", async () => {
  const clients = numbered();
  const failing = clients.ask(3, async () => {
    throw failure;
  }).answer;
  expect(await failing.catch((error: unknown) => error)).toBe(failure);
  expect(await clients.ask(3, async ({ number }) => number).answer).toBe(1);
});

test("a timer that wakes too early uses up no attempt", async () => {
  const sleep = Bun.sleep;
  spyOn(Bun, "sleep").mockImplementation((ms) => sleep(Math.max(0, Number(ms) - 3)));
  const clients = numbered();
  for (let renewals = 0; renewals < 3; renewals++) {
    const failing = clients.ask(1, async () => {
      throw failure;
    }).answer;
    expect(await failing.catch((error: unknown) => error)).toBe(failure);
  }
  expect(await clients.ask(1, async ({ number }) => number).answer).toBe(3);
});

test("what is given up is not asked again, and what it was asked of is not trusted any more", async () => {
  const clients = numbered();
  const asked: number[] = [];
  const { promise: never, reject: fail } = Promise.withResolvers<never>();
  const { answer, giveUp } = clients.ask(3, ({ number }) => {
    asked.push(number);
    return never;
  });
  giveUp();
  expect(await clients.ask(3, async ({ number }) => number).answer).toBe(1);
  fail(Object.assign(new Error("canceling statement due to statement timeout"), { code: "57014" }));
  await expect(answer).rejects.toThrow();
  expect(asked).toEqual([0]);
});

test("what is given up says nothing of a client that took its client's place", async () => {
  const clients = numbered();
  const never = new Promise<never>(() => {});
  const given = [clients.ask(3, () => never), clients.ask(3, () => never)];
  given[0]?.giveUp();
  expect(await clients.ask(3, async ({ number }) => number).answer).toBe(1);
  given[1]?.giveUp();
  expect(await clients.ask(3, async ({ number }) => number).answer).toBe(1);
});
