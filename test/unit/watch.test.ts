import { describe, expect, test } from "bun:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "../../src/client/client.ts";
import { pullFiles } from "../../src/client/files-pull.ts";
import { looksFor, prepare } from "../../src/client/recipe.ts";
import { type Command, supervise } from "../../src/client/run.ts";
import { askVariables, type VariableOptions } from "../../src/client/variables.ts";
import { watchFor } from "../../src/client/watch.ts";
import type { Clock } from "../../src/client/wire.ts";
import { exits, Problem } from "../../src/core/problem.ts";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { honestly, liarStarter, type Question, type Reply, refusal } from "../support/liar.ts";

const startLiar = liarStarter();

describe("a watch", () => {
  test.each([
    [0, 1000, 30_000],
    [0.5, 1250, 31_500],
    [0.999, 1500, 32_997],
  ])(
    "asks a server soon that may wait, and others after its interval and up to a tenth more: chance %d, %d and %d ms",
    async (chance, soonMs, expectedMs) => {
      const { watch, slept } = watching([undefined, undefined, undefined, "new"], chance);
      expect(await watch.next()).toBe("new");
      expect(slept).toEqual([soonMs, soonMs, expectedMs, expectedMs]);
    },
  );

  test("asks a server that waits again at once, but never sooner than a second after it asked", async () => {
    const told: Looked[] = [[0], [400], [25_000], [1000], [0, "no"], [0], [0, "no"], [0, "no"], [0]];
    const { watch, slept, waits } = watching([
      ...told.map(([tookMs, no]) => ({ tookMs, waited: no === undefined })),
      "new",
    ]);
    expect(await watch.next()).toBe("new");
    expect(slept).toEqual([1000, 1000, 600, 0, 0, 1000, 1000, 1000, 30_000, 1000]);
    expect(new Set(waits)).toEqual(new Set([25]));
  });

  test("lets an answer wait for less after a wait that was cut", async () => {
    const looks = [25_000, 20_000, 10_000].map((tookMs) => ({ tookMs, waited: tookMs !== 20_000 }));
    const { watch, waits } = watching([...looks, "new"]);
    await watch.next();
    expect(waits).toEqual([25, 25, 10, 10]);
  });

  test.each([
    [1000, 1],
    [1999, 1],
    [24_000, 24],
    [86_400_000, 25],
  ])("that looks every %d ms lets an answer wait %d s", async (everyMs, waitS) => {
    const { watch, waits } = watching(["new"], 0, everyMs);
    await watch.next();
    expect(waits).toEqual([waitS]);
  });

  test("goes on after a failure, and says what it is until it is another or over", async () => {
    const revoked = new Problem(exits.unauthorized, "unauthorized", "The server answered unauthorized.");
    const busy = new Problem(exits.refused, "rate_limited", "Busy.");
    const hint = new Problem(exits.refused, "rate_limited", "Busy. To try again, add --wait 60s.", { cause: busy });
    const hinting = Object.assign(hint, { retryAfter: 90 });
    const secret = new Error("it quotes a secret");
    const looks = [revoked, revoked, hinting, secret, undefined, undefined, undefined, revoked, "new", "newer"];
    const { watch, said, slept } = watching(looks);
    expect(await watch.next()).toBe("new");
    expect(await watch.next()).toBe("newer");
    expect(slept).toEqual([1000, 30_000, 60_000, 90_000, 60_000, 1000, 30_000, 30_000, 30_000, 1000]);
    const begin = "Not watched for now, and the command runs on:";
    expect(said).toEqual([
      `${begin} The server answered unauthorized.`,
      `${begin} Busy.`,
      `${begin} an error inside Keyhole. Please report it.`,
      "The command is watched again.",
      `${begin} The server answered unauthorized.`,
      "The command is watched again.",
    ]);
  });
});

describe("run --watch", () => {
  test("reads and starts again what changed, once for each change, and nothing else", async () => {
    const { lives } = await watched({ keys: ["A"] });
    const events = await lives([
      () => {},
      () => {},
      (server) => server.variables.set("A", "two"),
      () => {},
      (server) => server.variables.set("A", "two"), // the same value at another time
      () => {},
      (server) => server.variables.set("A", "one"),
    ]);
    expect(events).toEqual(["304", "304", "200 runs two", "304", "200", "304", "200 runs one"]);
  });

  test("puts changed files in place first, and loses no change to a look that fails", async () => {
    const { lives, folder } = await watched({}, true);
    const inTheWay = join(folder, "late");
    const events = await lives([
      (server) => server.files.set("conf", "second"),
      (server) => {
        writeFileSync(inTheWay, "in the way");
        server.files.set("late/file", "x");
        server.variables.set("A", "two");
      },
      (server) => {
        rmSync(inTheWay);
        server.waits = true; // the next look asks without
      },
    ]);
    expect(events).toEqual([
      "304 304 200 200 runs one: second",
      "304 200 200 says 'late' is not a folder.",
      "304 304 304 200 says The command is watched again. runs two: second",
    ]);
    expect(readFileSync(join(inTheWay, "file"), "utf8")).toBe("x");
  });

  test("reads a change once that it cannot use, and asks in vain until there is another", async () => {
    const { lives } = await watched({ require: ["A"] });
    const events = await lives([
      (server) => server.variables.set("NODE_OPTIONS", "--inspect"),
      () => {},
      (server) => server.variables.delete("A"),
      () => {},
      (server) => server.variables.set("A", "two"),
      (server) => server.variables.delete("NODE_OPTIONS"),
    ]);
    const refused =
      "Refused, because loaders, shells or CI runners act on them: NODE_OPTIONS. If you want that: --allow-name NODE_OPTIONS.";
    expect(events).toEqual([
      `200 says ${refused}`,
      "304",
      "200 says Not found in web, staging: A.",
      "304",
      `200 says ${refused}`,
      "200 says The command is watched again. runs two",
    ]);
  });

  test("goes on once its key is revoked, says so once, and reads nothing more", async () => {
    const { lives } = await watched({});
    const events = await lives([
      (server) => {
        server.revoked = true;
        server.variables.set("A", "unseen");
      },
      () => {},
      () => {},
    ]);
    expect(events).toEqual([
      "401 401 says The server answered unauthorized: No. This one may have expired, been revoked, or belong to another server.",
      "401",
      "401",
    ]);
  });
});

test("a command that another takes the place of gets SIGTERM, and SIGKILL after 10 s, and only after its end the other one begins", async () => {
  const file = join(newFolder(), "log");
  const log = (text: string) => `echo ${text} >> ${file}`;
  const deaf = shell(`trap '${log("deaf")}' TERM; ${log("began")}; while :; do sleep 0.02; done`);
  const polite = shell(`trap '${log("polite")}; exit 0' TERM; ${log("second")}; while :; do sleep 0.02; done`);
  const last = shell(`${log("last")}; exit 3`);
  const said: string[] = [];
  const following = Object.entries({ began: polite, second: last });
  const written = () => readFileSync(file, { encoding: "utf8", flag: "a+" });
  const until = async (text: string) => void (await eventually(() => written().includes(text)));
  const next = async () => {
    const change = following.shift();
    if (change === undefined) return new Promise<Command>(() => {});
    await until(change[0]);
    return change[1];
  };
  const waits: number[] = [];
  // The first wait is over once the deaf one has heard SIGTERM, and the second one never.
  const sleep = (durationMs: number) => (waits.push(durationMs) === 1 ? until("deaf") : new Promise<void>(() => {}));
  const changes = { next, say: (line: string) => said.push(line) };
  const clock = { nowMs: () => 0, dateMs: () => 0, random: () => 0, sleep };
  expect(await supervise(deaf, { onTerminal: false, changes, clock })).toBe(3);
  expect(waits).toEqual([10_000, 10_000]);
  expect(written()).toBe("began\ndeaf\nsecond\npolite\nlast\n");
  expect(said).toEqual(Array(2).fill("Something changed: the command is started again."));
});

function shell(script: string): Command {
  return { path: "/bin/sh", argv: ["sh", "-c", script], env: [`PATH=${process.env["PATH"]}`] };
}

/** How long a look takes, and whether its answer says that the server waits. */
type Looked = readonly [tookMs: number, no?: "no"];

/** A watch whose looks give these, one after another, and whose clock takes no time. */
function watching(looks: readonly unknown[], chance = 0, everyMs = 30_000) {
  const slept: number[] = [];
  const waits: number[] = [];
  let atMs = 0;
  const said: string[] = [];
  const sleep = async (durationMs: number) => void slept.push(durationMs);
  const clock: Clock = { nowMs: () => atMs, dateMs: () => 0, sleep, random: () => chance };
  const left = [...looks];
  const look = async (waitS: number) => {
    waits.push(waitS);
    const found = left.shift();
    if (found instanceof Error) throw found;
    if (typeof found !== "object") return { found: found as string | undefined, waited: false };
    const { tookMs, waited } = found as { readonly tookMs: number; readonly waited: boolean };
    atMs += tookMs;
    return { found: undefined, waited };
  };
  return { watch: watchFor(everyMs, look, (line) => said.push(line), clock), slept, said, waits };
}

/** What the server of {@link watched} has. Writing a variable changes the answer, also with the same value. */
type Server = { readonly variables: Map<string, string>; readonly files: Map<string, string> } & {
  revoked: boolean;
  /** It waits for a change, for as long as it takes. */
  waits: boolean;
};

/**
 * A command with the variables of a server, where A is one; and with its files, where conf is first.
 * @returns `lives` looks once after each of these steps, and tells what came of each look: the statuses of the answers,
 * what was said, and what runs from then on: the value of A, and the file at that moment
 */
async function watched(options: VariableOptions, withFiles = false) {
  const folder = newFolder();
  let writes = 0;
  class Written extends Map<string, string> {
    override set(name: string, value: string) {
      writes += 1;
      return super.set(name, value);
    }
  }
  const server: Server = { variables: new Written(), files: new Map(), revoked: false, waits: false };
  server.variables.set("A", "one");
  server.files.set("conf", "first");
  const events: string[][] = [];
  const liar = await startLiar((question) => {
    const reply = answer(question);
    events.at(-1)?.push(String(reply.status));
    return reply;
  });
  const answer = (question: Question): Reply & { status: number } => {
    if (server.revoked) return { status: 401, ...refusal(401, "unauthorized", "No.") };
    const files = [...server.files].map(([path, text]) => ({ path, content: Buffer.from(text) }));
    const variables = Object.fromEntries(server.variables);
    const { body } = honestly({ ...asked, variables, files }, question);
    const isContent = question.path === "/files" && !question.query.has("metadataOnly");
    const of = question.path === "/files" ? JSON.stringify(body) : JSON.stringify([body, writes]);
    const etag = `"${new Bun.CryptoHasher("sha256").update(of).digest("base64url")}"`;
    const isSame = question.headers.get("if-none-match") === etag;
    if (isSame && server.waits && question.headers.has("prefer")) return { status: 0, silent: true };
    if (isSame) return { status: 304, headers: { ETag: etag } };
    return { status: 200, body, headers: isContent ? {} : { ETag: etag } };
  };
  const say = (line: string) => {
    events.at(-1)?.push("says", line.replace("Not watched for now, and the command runs on: ", ""));
  };
  const api = { root: `${liar.origin}/api/v1`, credential: async () => key, timeoutMs: 60_000, waitMs: 0, say };
  const source = { asked, client: new Client(api) };
  const own = [`PATH=${process.env["PATH"]}`];
  const recipe = { ...options, argv: ["true"] as const, own, inherit: true, preserve: undefined };
  const ask = { root: folder, paths: [], memory: { unwritten: new Map<string, Uint8Array>() } };
  const silently = { fetching: () => {}, writing: () => {}, modes: () => {} };
  const pull = withFiles ? async () => (await pullFiles(source, ask, silently)).written : undefined;
  const first = prepare(source, await askVariables(source, options), recipe);
  await pull?.();
  const lives = async (steps: readonly ((server: Server) => unknown)[]): Promise<string[]> => {
    const over = Promise.withResolvers<void>();
    const left = [...steps];
    const sleep = async () => {
      const step = left.shift();
      if (step === undefined) {
        over.resolve();
        return new Promise<void>(() => {});
      }
      events.push([]);
      step(server);
    };
    const clock = { nowMs: () => 0, dateMs: () => 0, random: () => 0, sleep };
    const changes = watchFor(1000, looksFor(source, recipe, first, pull), say, clock);
    const running = (async () => {
      for (;;) {
        const { env } = await changes.next();
        const value = env.find((entry) => entry.startsWith("A="))?.slice(2);
        const file = withFiles ? `: ${readFileSync(join(folder, "conf"), "utf8")}` : "";
        events.at(-1)?.push(`runs ${value}${file}`);
      }
    })();
    await Promise.race([over.promise, running]);
    // What is asked together is answered in any order.
    const isStatus = (event: string) => /^\d+$/.test(event);
    return events.map((one) =>
      [...one.filter(isStatus).sort().reverse(), ...one.filter((event) => !isStatus(event))].join(" "),
    );
  };
  return { folder, lives };
}

const asked = { project: "web", environment: "staging" } as const;
const key = `kh_${"k".repeat(49)}`;
