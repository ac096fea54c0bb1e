import { expect, test } from "bun:test";
import { getEventListeners } from "node:events";
import type { KeyholeError } from "../../src/client/npm/error.ts";
import { watchVariables } from "../../src/client/npm/follow.ts";
import { questionsOf } from "../../src/client/npm/questions.ts";
import { type FakeKeyhole, fakeKeyhole } from "../../src/client/testing.ts";
import { ask, realClock } from "../../src/client/wire.ts";

/* What `watch` of the npm client does while its server is well, slow, lying, limited, restarted, or revokes the key. */

type Step = (server: { readonly fake: FakeKeyhole; answers: typeof fetch | undefined; atMs: number }) => unknown;

const lie = async () => Response.json({ environment: "staging", variables: [{ key: "A", value: "x", updatedAt: 1 }] });
const away = () => Promise.reject(new TypeError("fetch failed"));
const notFromKeyhole = async () => new Response("<html>", { status: 401 });
/** @param ms - how long each answer takes */
const slow = (server: Parameters<Step>[0], ms: number) =>
  Object.assign(server, {
    answers: async (url: string, init?: RequestInit) => {
      server.atMs += ms;
      return atOnce(server.fake)(url, init);
    },
  });
const hour = 3_600_000;

/** Each step comes before a look; then `current()` says this, and the next pause is as long. */
const lives: readonly (readonly [
  what: string,
  steps: readonly (readonly [step: Step, said: string, pauseMs: number])[],
])[] = [
  [
    "shows what changed, and nothing else",
    [
      [() => {}, "A=1", 30_000],
      [({ fake }) => fake.set("web", "production", "A", "2"), "A=2 changed", 30_000],
      [({ fake }) => fake.set("web", "production", "A", "2"), "A=2", 30_000], // the same at another time
      [({ fake }) => fake.set("web", "production", "B", "3"), "A=2,B=3 changed", 30_000],
      [({ fake }) => fake.set("web", "production", "A"), "B=3 changed", 30_000],
    ],
  ],
  [
    "forgets the values once the key is revoked, and finds those of another key",
    [
      [({ fake }) => fake.revoke(), "unauthorized", 30_000],
      [() => {}, "unauthorized", 60_000],
      [(server) => Object.assign(server, { answers: away }), "unauthorized", 60_000],
      [(server) => Object.assign(server, { answers: atOnce(fakeKeyhole(world)) }), "A=1 changed", 1000],
    ],
  ],
  [
    "forgets the values of a project that is gone, and of an environment that the key may not read any more",
    [
      [({ fake }) => fake.fail("project_not_found"), "project_not_found", 30_000],
      [({ fake }) => fake.fail(), "A=1 changed", 1000],
      [({ fake }) => fake.fail("environment_not_in_scope"), "environment_not_in_scope", 30_000],
    ],
  ],
  [
    "goes on with the last values while the server is away, says since when, and stops at the bound",
    [
      [(server) => Object.assign(server, { answers: away }), "A=1 stale since 0", 30_000],
      ...Array(5).fill([() => {}, "A=1 stale since 0", 60_000]),
      [() => {}, "too_old", 60_000],
      [(server) => Object.assign(server, { answers: undefined }), "A=1", 1000],
    ],
  ],
  [
    "believes no lie, and no refusal that is not Keyhole's",
    [
      [(server) => Object.assign(server, { answers: lie }), "A=1 stale since 0", 30_000],
      [(server) => Object.assign(server, { answers: notFromKeyhole }), "A=1 stale since 0", 60_000],
      [({ fake }) => fake.fail("decryption_failed"), "A=1 stale since 0", 60_000],
      [(server) => Object.assign(server, { answers: undefined }), "A=1 stale since 0", 60_000],
      [({ fake }) => fake.fail(), "A=1", 1000],
    ],
  ],
  [
    "waits as long as a limit says, and no longer than an hour",
    [
      [({ fake }) => fake.fail("rate_limited", 120), "A=1 stale since 0", 120_000],
      [({ fake }) => fake.fail("rate_limited", 1), "A=1 stale since 0", 60_000],
      [({ fake }) => fake.fail("unavailable", 1e9), "A=1 stale since 0", hour],
      [({ fake }) => fake.fail(), "A=1", 1000],
    ],
  ],
  [
    "counts the age of values from the moment that it asked, also if the machine slept",
    [
      [(server) => slow(server, 40_000), "A=1 stale since 1000", 30_000],
      [(server) => slow(server, hour), "too_old", 30_000],
      [(server) => Object.assign(server, { answers: undefined }), "A=1", 30_000],
    ],
  ],
  [
    "asks a server again at once that waits, and takes an answer for one of the moment that it came, in time",
    [
      [(server) => waiting(server, 25_000), "A=1", 0],
      [({ fake }) => fake.set("web", "production", "A", "2"), "A=2 changed", 0],
      ...Array(20).fill([() => {}, "A=2", 0]),
      [(server) => waiting(server, 63_001), "A=2 stale since 576000", 0],
      [(server) => waiting(server, hour), "too_old", 0],
      [(server) => waiting(server, 0), "A=2", 1000],
      [({ fake }) => fake.revoke(), "unauthorized", 30_000],
    ],
  ],
];

/** An older server, which does not wait. */
function atOnce(fake: FakeKeyhole): FakeKeyhole["fetch"] {
  return (url, init) => {
    const headers = new Headers(init?.headers);
    headers.delete("Prefer");
    return fake.fetch(url, { ...init, headers });
  };
}

/** A server that says that it waits. @param ms - how long each answer takes */
function waiting(server: Parameters<Step>[0], ms: number) {
  const answers = async (url: string, init?: RequestInit) => {
    server.atMs += ms;
    const answer = await atOnce(server.fake)(url, init);
    answer.headers.set("Preference-Applied", "wait=25");
    return answer;
  };
  return Object.assign(server, { answers });
}

/** The client's question about the variables of the world, for a watch. */
function asking(fetch: FakeKeyhole["fetch"], apiKey: string): Parameters<typeof watchVariables>[1] {
  const wire = { credential: async () => apiKey, timeoutMs: 30_000, waitMs: 0, mayPass: () => false, fetch };
  const question = questionsOf("https://keyhole.test/api/v1").variables("web", "production", {});
  return (more) => ask({ ...wire, clock: realClock }, { ...question, ...more });
}

const world = { web: { production: { A: "1" } } };

test.each(lives)("a watch of the client: %s", async (_, steps) => {
  const pauses: number[] = [];
  const said: string[] = [];
  const over = Promise.withResolvers<void>();
  const fake = fakeKeyhole(world);
  const server = { fake, answers: undefined as typeof fetch | undefined, atMs: 0 };
  const clock = {
    nowMs: () => server.atMs,
    dateMs: () => server.atMs,
    random: () => 0,
    sleep: async (pauseMs: number) => {
      if (pauses.length > 0) said.push(now());
      const step = steps[pauses.push(pauseMs) - 1];
      if (step === undefined) {
        over.resolve();
        return new Promise<void>(() => {});
      }
      server.atMs += pauseMs;
      step[0](server);
    },
  };
  let changed = "";
  const now = () => {
    const mark = changed;
    changed = "";
    try {
      const values = Object.entries(watch.current()).map(([name, value]) => `${name}=${value}`);
      return `${values.join()}${mark}${watch.staleSince === undefined ? "" : ` stale since ${watch.staleSince}`}`;
    } catch (error) {
      return (error as KeyholeError).code;
    }
  };
  const answered = (url: string, init?: RequestInit) => (server.answers ?? atOnce(fake))(url, init);
  const watch = watchVariables({}, asking(answered, fake.apiKey), clock);
  watch.onChange(() => {
    changed = " changed";
  });
  await watch.ready;
  changed = "";
  await over.promise;
  expect(said).toEqual(steps.map(([, expected]) => expected));
  expect(pauses).toEqual([1000, ...steps.map(([, , pauseMs]) => pauseMs)]);
  watch.close();
});

test("a listener that throws, now or later, ends neither the program nor the watch, and others are called", async () => {
  const fake = fakeKeyhole(world);
  const looks = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const { nowMs, dateMs, random } = { nowMs: () => 0, dateMs: () => 0, random: () => 0 };
  let pauses = 0;
  const sleep = () => looks[pauses++]?.promise ?? new Promise<void>(() => {});
  const watch = watchVariables({}, asking(atOnce(fake), fake.apiKey), { nowMs, dateMs, random, sleep });
  await watch.ready;
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on("unhandledRejection", note);
  watch.onChange(() => {
    throw new Error("now");
  });
  watch.onChange(async () => {
    throw new Error("later");
  });
  try {
    for (const [at, { resolve }] of looks.entries()) {
      const { promise, resolve: called } = Promise.withResolvers<unknown>();
      const stop = watch.onChange(called);
      fake.set("web", "production", "A", `changed ${at}`);
      resolve();
      expect(await promise).toEqual({ A: `changed ${at}` });
      stop();
    }
    await new Promise<void>((resolve) => setImmediate(resolve)); // after all that a rejection may set off
    expect(unhandled).toEqual([]);
  } finally {
    process.off("unhandledRejection", note);
    watch.close();
  }
});

test("a watch that is closed at its first look is not ready any more, whatever it waits for", async () => {
  const watch = watchVariables({}, () => new Promise<never>(() => {}));
  watch.close();
  expect(await watch.ready.catch(({ code }: KeyholeError) => code)).toBe("closed");
});

test("a pause leaves nothing behind at the signal that could have ended it", async () => {
  const { signal } = new AbortController();
  const pauses = [0, 0].map((ms) => realClock.sleep(ms, signal));
  expect(getEventListeners(signal, "abort")).toHaveLength(2);
  await Promise.all(pauses);
  expect(getEventListeners(signal, "abort")).toEqual([]);
});
