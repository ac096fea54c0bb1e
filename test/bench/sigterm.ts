/**
 * `bun test/bench/sigterm.ts`: sends SIGTERM at 500 value reads a second, 20 times. Every read on an accepted connection
 * must be answered completely; connections may be refused once the port is closed. Uses dist/keyhole with the embedded
 * database and, if TEST_DATABASE_URL is set, with PostgreSQL in one process and with workers.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import postgres from "postgres";
import { createDatabase } from "../postgres.ts";

const { values: flags } = parseArgs({
  options: {
    times: { type: "string", default: "20" },
    rate: { type: "string", default: "500" },
    workers: { type: "string", default: "2" },
  },
});
const times = Number(flags.times);
const perSecond = Number(flags.rate);
const loadMs = 700;
const connectionsKept = 16;
// 30 reads each, and some more for the time until the port is closed.
const keysCount = Math.ceil(((loadMs + 1500) / 1000) * (perSecond / 30)) + 4;
const binary = join(import.meta.dir, "../../dist/keyhole");
const path = "/api/v1/projects/web/variables?environment=staging";

type Round = { sent: number; answered: number; other: number; dropped: string[]; exitCode: number | null; ms: number };
type Backend = { readonly name: string; readonly env: Record<string, string>; readonly args: readonly string[] };

const folder = mkdtempSync(join(tmpdir(), "keyhole-sigterm-"));
const given = process.env["TEST_DATABASE_URL"];
const database = given === undefined ? undefined : await createDatabase(given);
const settings = database && {
  DATABASE_URL: database.url,
  KEYHOLE_ROOT_KEY: Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64"),
};
const backends: Backend[] = [
  { name: "SQLite", env: { KEYHOLE_DATA: join(folder, "data") }, args: [] },
  ...(settings
    ? [
        { name: "PostgreSQL", env: settings, args: [] },
        { name: `PostgreSQL, ${flags.workers} workers`, env: settings, args: ["--workers", flags.workers] },
      ]
    : []),
];
let failed = false;
const keysOf = new Map<object, readonly string[]>();
try {
  for (const backend of backends) {
    const keys = keysOf.get(backend.env) ?? stock(backend.env);
    keysOf.set(backend.env, keys);
    const rounds: Round[] = [];
    for (let time = 0; time < times; time++) rounds.push(await round(backend, keys));
    const sum = (of: (round: Round) => number) => rounds.reduce((total, one) => total + of(one), 0);
    const dropped = rounds.flatMap((one) => one.dropped);
    const exits = rounds.filter(({ exitCode }) => exitCode !== 0).length;
    say(
      `${backend.name}: ${times} × SIGTERM at ${perSecond}/s: ${sum((one) => one.sent)} sent, ${sum((one) => one.answered)} answered 200, ` +
        `${sum((one) => one.other)} otherwise, ${dropped.length} dropped, ${exits} exits not 0, ` +
        `${Math.max(...rounds.map(({ ms }) => ms))} ms from signal to end at most`,
    );
    for (const reason of new Set(dropped)) say(`  dropped: ${reason}`);
    failed ||= dropped.length > 0 || exits > 0 || sum((one) => one.answered) === 0;
  }
  if (settings) {
    const sql = postgres(settings.DATABASE_URL, { max: 1, fetch_types: false });
    const [row] = await sql<{ n: number }[]>`select count(*)::int as n from audit_entries`;
    say(`${row?.n} audit entries on PostgreSQL.`);
    await sql.end();
  }
} finally {
  await database?.drop();
  rmSync(folder, { recursive: true, force: true });
}
process.exit(failed ? 1 : 0);

function stock(env: Record<string, string>): string[] {
  const run = (...args: string[]) => {
    const ran = Bun.spawnSync([binary, ...args, "--json"], { env, cwd: folder, stderr: "pipe" });
    if (ran.exitCode !== 0) throw new Error(`keyhole ${args[0]} ${args[1]}: ${ran.stderr}`);
    return JSON.parse(ran.stdout.toString()) as { key: string };
  };
  run("org", "create", "acme");
  run("project", "create", "web");
  run("var", "set", "web", "staging", "TOKEN", "--value", "v");
  return Array.from({ length: keysCount }, () => run("key", "create", "--org", "acme", "--env", "staging").key);
}

async function round({ env, args }: Backend, keys: readonly string[]): Promise<Round> {
  const child = Bun.spawn([binary, "serve", "--port", "0", ...args], {
    env,
    cwd: folder,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const port = await portOf(child.stderr);
  const result: Round = { sent: 0, answered: 0, other: 0, dropped: [], exitCode: null, ms: 0 };
  const idle: Socket[] = [];
  const underWay = new Set<Promise<void>>();
  let gone = false;
  const beganAt = performance.now();
  let signalledAt = 0;
  const ended = child.exited;
  while (!gone) {
    const due = Math.floor(((performance.now() - beganAt) / 1000) * perSecond);
    while (result.sent + Number(gone) <= due && !gone && underWay.size < 200) {
      const asking: Promise<void> = ask(port, keys[result.sent % keys.length] as string, idle).then((outcome) => {
        underWay.delete(asking);
        if (outcome === "refused") {
          gone = true;
          result.sent -= 1;
        } else if (outcome === 200) result.answered += 1;
        else if (typeof outcome === "number") result.other += 1;
        else result.dropped.push(outcome);
      });
      underWay.add(asking);
      result.sent += 1;
    }
    if (signalledAt === 0 && performance.now() - beganAt > loadMs) {
      signalledAt = performance.now();
      child.kill("SIGTERM");
    }
    if (signalledAt > 0 && performance.now() - signalledAt > 10_000) throw new Error("the port was not closed in 10 s");
    await Bun.sleep(2);
  }
  await Promise.all(underWay);
  result.exitCode = await ended;
  result.ms = Math.round(performance.now() - signalledAt);
  return result;
}

/** @returns the status, `refused` if nobody listens, or what went wrong with an accepted connection */
async function ask(port: number, key: string, idle: Socket[]): Promise<number | string> {
  const kept = idle.shift();
  const socket = kept ?? opened(port, idle);
  const { promise, resolve } = Promise.withResolvers<number | string>();
  let text = "";
  let connected = kept !== undefined;
  const onData = (bytes: Buffer) => {
    text += bytes.toString("latin1");
    const end = text.indexOf("\r\n\r\n");
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(text)?.[1]);
    if (end >= 0 && text.length >= end + 4 + length) resolve(Number(text.slice(9, 12)));
  };
  const onError = (error: NodeJS.ErrnoException) =>
    resolve(
      !connected && error.code === "ECONNREFUSED" ? "refused" : `${error.code}${kept ? ", kept connection" : ""}`,
    );
  const onClose = () => resolve(`closed after ${text.length} bytes${kept ? ", kept connection" : ""}`);
  const send = () => {
    connected = true;
    socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  };
  socket.on("data", onData).on("error", onError).on("close", onClose);
  if (kept) send();
  else socket.once("connect", send);
  const outcome = await promise;
  socket.off("data", onData).off("error", onError).off("close", onClose);
  if (typeof outcome === "number" && !/\r\nconnection: close\r\n/i.test(text) && idle.length < connectionsKept) {
    idle.push(socket);
  } else socket.destroy();
  return outcome;
}

function opened(port: number, idle: Socket[]): Socket {
  const socket = connect({ host: "127.0.0.1", port });
  socket.on("error", () => {});
  socket.once("close", () => {
    const at = idle.indexOf(socket);
    if (at >= 0) idle.splice(at, 1);
  });
  return socket;
}

async function portOf(stderr: ReadableStream<Uint8Array>): Promise<number> {
  const reader = stderr.getReader();
  let output = "";
  for (;;) {
    const { value, done } = await reader.read();
    output += Buffer.from(value ?? []).toString();
    const port = /listens on http:\/\/127\.0\.0\.1:(\d+)\//.exec(output)?.[1];
    if (port !== undefined) {
      void (async () => {
        while (!(await reader.read()).done);
      })();
      return Number(port);
    }
    if (done) throw new Error(`serve ended: ${output}`);
  }
}

function say(sentence: string): void {
  process.stdout.write(`${sentence}\n`);
}
