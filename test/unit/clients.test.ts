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
  });
  expect(await failing.catch((error: unknown) => error)).toBe(failure);
  expect(await clients.ask(3, async ({ number }) => number)).toBe(1);
});

test("a timer that wakes too early uses up no attempt", async () => {
  const sleep = Bun.sleep;
  spyOn(Bun, "sleep").mockImplementation((ms) => sleep(Math.max(0, Number(ms) - 3)));
  const clients = numbered();
  for (let renewals = 0; renewals < 3; renewals++) {
    const failing = clients.ask(1, async () => {
      throw failure;
    });
    expect(await failing.catch((error: unknown) => error)).toBe(failure);
  }
  expect(await clients.ask(1, async ({ number }) => number)).toBe(3);
});
