/**
 * `bun bench/sigterm.ts`: sends SIGTERM at some 500 value reads a second, 20 times. Every read on an accepted
 * connection must be answered completely; connections may be refused once the port is closed. Uses dist/keyhole with
 * the embedded database and, if TEST_DATABASE_URL is set, with PostgreSQL in one process and with workers.
 */
import { parseArgs } from "node:util";
import { ranMs } from "../test/support/clock.ts";
import { startReaders } from "../test/support/connection.ts";
import { createDatabase } from "../test/support/postgres.ts";
import { furnish, makeSite, type Site } from "../test/support/server.ts";

const { values: flags } = parseArgs({
  options: {
    times: { type: "string", default: "20" },
    rate: { type: "string", default: "500" },
    workers: { type: "string", default: "2" },
  },
});
const [times, perSecond] = [Number(flags.times), Number(flags.rate)];
const loadMs = 700;
const clients = 16;
// 30 reads each, and some more for the time until the port is closed.
const keysCount = Math.ceil(((loadMs + 1500) / 1000) * (perSecond / 30)) + 4;
const path = "/projects/web/variables?environment=staging";

const given = process.env["TEST_DATABASE_URL"];
const database = given === undefined ? undefined : await createDatabase(given);
const sites: Site[] = [];
let failed = false;
try {
  await measure("SQLite", await makeSite("sqlite"), [[]]);
  const args = [[], ["--workers", flags.workers]];
  if (database) await measure("PostgreSQL", await makeSite("postgres", database.url), args);
} finally {
  for (const site of sites) await site.remove();
  await database?.drop();
}
process.exit(failed ? 1 : 0);

async function measure(name: string, site: Site, commands: readonly (readonly string[])[]): Promise<void> {
  sites.push(site);
  await furnish(site, { staging: { TOKEN: "v" } });
  const keys: string[] = [];
  while (keys.length < keysCount) keys.push((await site.key("--org", "acme", "--env", "staging")).key);
  for (const args of commands) {
    const rounds = [];
    for (let time = 0; time < times; time++) rounds.push(await round(site, keys, args));
    const outcomes = rounds.flatMap((one) => one.outcomes.filter(({ status }) => status !== "refused"));
    const answered = outcomes.filter(({ status }) => status === 200).length;
    // A connection that sends nothing is closed after 0.1 s, so this is right if this process stood still.
    const dropped = outcomes.filter(
      ({ status, received, stoodStillMs }) => status === "cut" && !(received === "" && stoodStillMs > 0),
    );
    const exits = rounds.filter(({ exitCode }) => exitCode !== 0).length;
    const others = outcomes.length - answered - dropped.length;
    console.log(
      `${[name, ...args].join(" ")}: ${times} × SIGTERM at ${perSecond}/s: ${outcomes.length} sent, ${answered} answered 200, ` +
        `${others} otherwise, ${dropped.length} dropped, ${exits} exits not 0, ` +
        `${Math.round(Math.max(...rounds.map(({ ms }) => ms)))} ms from signal to end at most`,
    );
    for (const { received } of dropped) console.log(`  dropped after ${received.length} bytes`);
    failed ||= dropped.length > 0 || exits > 0 || answered === 0;
  }
  const [row] = await site.sql("select count(*) as n from audit_entries");
  console.log(`${row?.["n"]} audit entries on ${name}.`);
}

async function round(site: Site, keys: readonly string[], args: readonly string[]) {
  const server = await site.serve({ args });
  const next = (client: number, request: number) => ({
    path,
    key: keys[(client + request * clients) % keys.length] ?? "",
  });
  const readers = startReaders(clients, () => server.origin, next, (clients / perSecond) * 1000);
  await Bun.sleep(loadMs);
  const signalledAt = ranMs();
  const exitCode = await server.stop();
  const ms = ranMs() - signalledAt;
  return { outcomes: await readers.stop(), exitCode, ms };
}
