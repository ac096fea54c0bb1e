/** What a server does when the audit is blocked, processes are killed or the database is gone. */

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { moment, ranMs } from "../support/clock.ts";
import { type Answer, type Outcome, type Readers, startReaders } from "../support/connection.ts";
import { eventually } from "../support/eventually.ts";
import { freeze, signalIfThere } from "../support/freeze.ts";
import { binary, startOnTerminal } from "../support/keyhole.ts";
import {
  connectTo,
  createDatabase,
  type Postgres,
  postgresUrl,
  readyPid,
  startPostgres,
  type TestDatabase,
} from "../support/postgres.ts";
import { startProgram } from "../support/program.ts";
import { startProxy } from "../support/proxy.ts";
import {
  expectWithin,
  furnish,
  type Key,
  lockAudit,
  long,
  makeKeys,
  makeSite,
  onBoth,
  onPostgres,
  type Server,
  type Site,
  siteOf,
} from "../support/server.ts";

setDefaultTimeout(long ? 600_000 : 180_000);

/** How every secret value of these tests begins, and nothing else does. */
const canary = `canary-${randomBytes(12).toString("hex")}`;
/** The canary as it stands in an answer: as it is, or in a file's base64. */
const secret = /canary|Y2FuYXJ5/;
const variables = "/projects/web/variables?environment=staging";
const files = "/files?project=web&environment=staging";

/** A server over two variables, an account and a file in staging, and one variable in production; and keys to them. */
type Filled = { readonly site: Site; server: Server; readonly keys: readonly [Key, ...Key[]] };

async function fill(site: Site, keys = 1, start = site.serve): Promise<Filled> {
  await furnish(site, {
    staging: { FIRST: `${canary} first`, SECOND: `${canary} second` },
    production: { THIRD: `${canary} third` },
  });
  await site.json(["account", "set", "acme/web", "registry", "--env", "staging"], `{"password":"${canary}"}`);
  const file = join(site.folder, "file");
  writeFileSync(file, `${canary} file`);
  await site.json(["file", "put", "acme/web", file, "--path", "a.txt", "--env", "staging"]);
  return { site, keys: await makeKeys(site, keys, "projects,variables,accounts,files"), server: await start() };
}

/** Reads of values, some four fifths of them of files, whose bucket is the large one. */
function valueReads({ keys }: Filled) {
  return (client: number, request: number) => ({
    path: request % 50 === 7 ? variables : files,
    key: (keys[client % keys.length] as Key).key,
  });
}

/** A 503 with its constant body and nothing else. */
function expectRefusal(answer: Answer, code: string): void {
  expect([answer.status, answer.json<{ code: string }>().code]).toEqual([503, code]);
  expect(answer.body.length).toBeLessThanOrEqual(200);
  expect(answer.body.toString("latin1")).not.toMatch(secret);
}

/** Every whole answer is right: a 200 exact, anything else without a byte of a value. */
function expectRight(
  outcomes: readonly Outcome[],
  right: ReadonlyMap<string, Buffer>,
  allowed: Outcome["status"][],
): void {
  for (const { status, answer, path } of outcomes) {
    expect(allowed).toContain(status);
    if (status === 200) expect(answer?.body.equals(right.get(path) as Buffer)).toBe(true);
    else if (answer !== undefined) expect(answer.body.toString("latin1")).not.toMatch(secret);
  }
}

/** The right answer to each read. */
async function rightAnswers(filled: Filled): Promise<Map<string, Buffer>> {
  const right = new Map<string, Buffer>();
  for (const path of [variables, files]) {
    const answer = await filled.server.get(path, filled.keys[0].key);
    expect(answer.status).toBe(200);
    expect(answer.body.toString("latin1")).toMatch(secret);
    right.set(path, answer.body);
  }
  return right;
}

/**
 * Every complete 200, and every value of which a part left, stands in the audit with what it gave out; and no lane of
 * the audit has a gap or a fork.
 */
async function expectAudited(site: Site, outcomes: readonly Outcome[]): Promise<void> {
  const rows = await site.audit();
  const lanes = Map.groupBy(rows, ({ lane }) => lane);
  for (const lane of lanes.values()) expect(lane.map(({ seq }) => Number(seq))).toEqual(lane.map((_, n) => n + 1));
  const entries = new Map(rows.map((entry) => [entry["request_id"], entry]));
  const released = outcomes.filter(({ status, received }) => status === 200 || secret.test(received));
  expect(released.filter(({ requestId }) => !entries.has(requestId))).toEqual([]);
  for (const { requestId, path } of released) {
    const names = path === files ? ["a.txt"] : ["FIRST", "SECOND"];
    expect(entries.get(requestId)?.["names"]).toBe(JSON.stringify(names));
  }
}

/** What holds while no entry can be written, and afterwards. */
async function expectFailClosed(filled: Filled, shut: () => Promise<() => Promise<void>>): Promise<void> {
  const { server, site } = filled;
  const { key } = filled.keys[0];
  const right = await rightAnswers(filled);
  const open = await shut();
  const asked = [variables, files, "/projects/web/accounts", `${variables}&format=env`, variables, files, files, files];
  const beganAt = ranMs();
  const answers = await Promise.all(asked.map((path) => server.get(path, key)));
  expectWithin(ranMs() - beganAt, 3000);
  for (const answer of answers) expectRefusal(answer, "unavailable");
  expect((await server.get("/projects", key)).status).toBe(200);
  await open();
  const openedAt = ranMs();
  const outcomes: Outcome[] = [];
  await eventually(async () => {
    const requestId = crypto.randomUUID();
    const answer = await server.get(files, key, { "x-request-id": requestId });
    if (answer.status !== 200) return undefined;
    expect(answer.body.equals(right.get(files) as Buffer)).toBe(true);
    const moments = { beganAt: 0, endedAt: 0, stoodStillMs: 0 };
    outcomes.push({ requestId, path: files, ...moments, status: 200, answer, received: "" });
    return true;
  });
  expectWithin(ranMs() - openedAt, 3000);
  await expectAudited(site, outcomes);
}

onBoth("an audit that cannot be written", (dialect) => {
  let filled: Filled;
  beforeAll(async () => {
    filled = await fill(await makeSite(dialect));
  });
  afterAll(() => filled.site.remove());

  test("is a 503 within 3 s without a byte of a value while it is locked, and recovers", () =>
    expectFailClosed(filled, () => lockAudit(filled.site)));

  test("holds up no metadata", async () => {
    const { server, keys, site } = filled;
    const [{ key }] = keys;
    const unlock = await lockAudit(site);
    // If the event loop waited for the lock, metadata would come after the refusal, however often it is asked for.
    await eventually(async () => {
      let isRefused = false;
      const refused = server.get(files, key).then((answer) => {
        isRefused = true;
        return answer;
      });
      expect((await server.get("/projects", key)).status).toBe(200);
      const wasFirst = !isRefused;
      expectRefusal(await refused, "unavailable");
      return wasFirst;
    });
    await unlock();
  });
});

onBoth("a server that stood still", (dialect) => {
  test("longer than any deadline has what was answered meanwhile, and refuses nothing", async () => {
    const site = await makeSite(dialect);
    try {
      const filled = await fill(site, 4);
      const { server } = filled;
      const right = await rightAnswers(filled);
      const readers = startReaders(16, () => server.origin, valueReads(filled), 2);
      await readers.more(30, ({ status }) => status === 200);
      server.signal("SIGSTOP");
      await moment(2300);
      server.signal("SIGCONT");
      await readers.more(30, ({ status }) => status === 200);
      expectRight(await readers.stop(), right, [200, 429]);
      expect(await server.stop()).toBe(0);
    } finally {
      await site.remove();
    }
  });
});

onBoth("kill -9 of the server", (dialect) => {
  const rounds = long ? 20 : 3;
  test(`${rounds} times, during reads and writes: nothing acknowledged is lost, every complete 200 is on record`, async () => {
    const filled = await fill(await makeSite(dialect), 4);
    const { site } = filled;
    try {
      await site.json(["project", "create", "acme/live"]);
      const right = await rightAnswers(filled);
      const written = new Map<string, string>();
      const outcomes: Outcome[] = [];
      const batch = join(site.folder, "batch.env");
      let writes = 0;
      let reading = 0;
      for (let round = 0; round < rounds; round++) {
        const { server } = filled;
        let killed = false;
        const readers = startReaders(8, () => server.origin, valueReads(filled));
        const writing = (async () => {
          while (!killed) {
            const [name, value] = [`NAME_${writes % 40}`, `value ${writes++}`];
            const { exitCode, stderr } = await site.keyhole(["var", "set", "acme/live", "staging", name], value);
            expect([exitCode, stderr.includes("keyhole: ")]).toEqual([0, false]);
            written.set(name, value);
          }
        })();
        // A writer that is killed as well: what it had not acknowledged is there whole or not at all.
        writeFileSync(batch, Array.from({ length: 100 }, (_, n) => `BATCH_${n}=${round}\n`).join(""));
        await readers.more(20 + round * 3, ({ status }) => status === 200);
        const importing = startProgram([binary, "var", "import", "acme/live", "production", batch], site);
        await readers.more(5 + round);
        // On a slow machine a round may be over before its first write.
        if (round === rounds - 1) await eventually(() => writes > rounds);
        importing.signal("SIGKILL");
        await server.stop("SIGKILL");
        killed = true;
        const all = await readers.stop(); // at once: somebody else may be given the port
        await Promise.all([writing, importing.ended]);
        outcomes.push(...all);
        reading += all.filter(({ status }) => status === 200).length;
        filled.server = await site.serve();
      }
      expectRight(outcomes, right, [200, 429, "cut", "refused"]);
      // Otherwise nothing was tried: reads were cut short, and writes went on beside them.
      expect(reading).toBeGreaterThan(rounds * 20);
      expect(outcomes.some(({ status }) => status === "cut")).toBe(true);
      expect(writes).toBeGreaterThan(rounds);

      const { key } = filled.keys[0];
      const valuesOf = async (environment: string) => {
        const answer = await filled.server.get(`/projects/live/variables?environment=${environment}`, key);
        expect(answer.status).toBe(200);
        const found = answer.json<{ variables: { key: string; value: string }[] }>().variables;
        return new Map(found.map((one) => [one.key, one.value]));
      };
      expect(await valuesOf("staging")).toEqual(written);
      const imported = await valuesOf("production");
      expect([0, 100]).toContain(imported.size);
      expect(new Set(imported.values()).size).toBeLessThanOrEqual(1);
      await expectAudited(site, outcomes);
    } finally {
      await site.remove();
    }
  });
});

onBoth("kill -9 of a command", (dialect) => {
  const sweeps = long ? 20 : 3;
  test(`later and later, ${sweeps} times over: no change without its entry, and no entry without its change`, async () => {
    const site = await furnish(await makeSite(dialect), { staging: { START: "1" } });
    try {
      for (let sweep = 0; sweep < sweeps; sweep++) {
        // From its start until it ends by itself, each time later, and not at the moments of the last sweep.
        for (let afterMs = 5 * 1.3 ** (sweep / sweeps), killed = true; killed; afterMs *= 1.3) {
          const words = ["var", "set", "acme/web", "staging", "KILLED", "--value", String(afterMs)];
          const child = startProgram([binary, ...words], site);
          await moment(afterMs);
          killed = (await child.stop("SIGKILL")) !== 0;
        }
      }
      const [set] = await site.sql("select version from sets where kind = 'variables' and environment = 'staging'");
      const entries = await site.sql("select added, changed from audit_entries where action = 'variables.write'");
      // Every write raises the version by one, from the first, which is empty.
      expect(Number(set?.["version"])).toBe(1 + entries.length);
      expect(entries.length).toBeGreaterThanOrEqual(1 + sweeps);
      expect(await site.json(["audit", "verify"])).toMatchObject({ verified: true });
    } finally {
      await site.remove();
    }
  });
});

onPostgres("a command that follows the audit", () => {
  const site = siteOf("postgres", {});

  test("audit list --follow survives lost connections, and neither repeats nor drops an entry", async () => {
    const proxy = await startProxy(new URL(site.env["DATABASE_URL"] ?? ""));
    const url = new URL(site.env["DATABASE_URL"] ?? "");
    url.port = String(proxy.port);
    const env = { ...site.env, DATABASE_URL: url.href };
    const args = ["audit", "list", "--follow", "--limit", "1", "--action", "organization.create"];
    const child = startOnTerminal([binary, ...args], 200, site.folder, env);
    const make = (slug: string) => site.json(["org", "create", slug]);
    try {
      await child.shows("organization.create");
      await make("before");
      await child.shows("before");
      proxy.cut();
      await child.shows("The connection to the database was lost.");
      await make("meanwhile");
      proxy.mend();
      await child.shows("The database is connected again.");
      await child.shows("meanwhile");
      proxy.mute();
      await make("in-silence");
      await child.shows("in-silence");
      child.kill("SIGINT");
      const { exitCode, screen } = await child.ended;
      expect(exitCode).toBe(0);
      const lines = screen.trimEnd().split("\r\n");
      const slugs = lines.map((line) => /before|meanwhile|in-silence|lost|again/.exec(line)?.[0]);
      expect(slugs.slice(1)).toEqual(["before", "lost", "again", "meanwhile", "lost", "again", "in-silence"]);
    } finally {
      await proxy.stop();
    }
  });
});

// These kill PostgreSQL, so it is one of their own.
const ownPostgres = postgresUrl === undefined ? undefined : await startPostgres();
afterAll(() => ownPostgres?.stop());

onPostgres("a PostgreSQL that fails", () => {
  const cluster = killable(ownPostgres);
  let database: TestDatabase;
  let filled: Filled;
  let right: Map<string, Buffer>;
  beforeAll(async () => {
    database = await createDatabase(cluster.url);
    filled = await fill(await makeSite("postgres", database.url), 8);
    right = await rightAnswers(filled);
  });
  afterAll(async () => {
    await filled.site.remove();
    await cluster.stop();
  });

  /** Load of some 200 requests a second, and what must hold of it whatever was broken meanwhile. */
  const underLoad = async (breakIt: (readers: Readers) => Promise<void>, answeredWithinMs = 3000) => {
    const { server } = filled;
    const readers = startReaders(16, () => server.origin, valueReads(filled), 60);
    const working = async () => {
      await readers.more(30, ({ status }) => status === 200);
      await breakIt(readers);
      await readers.more(30, ({ status }) => status === 200);
    };
    const ended = server.ended.then((code) => {
      const { stdout, stderr } = server.said();
      throw new Error(`the server ended with ${code}: ${stderr.slice(-500)}${stdout.slice(-1000)}`);
    });
    await Promise.race([working(), ended]).finally(() => readers.stop());
    const { outcomes } = readers;
    expectRight(outcomes, right, [200, 429, 503]);
    expectWithin(Math.max(...outcomes.map(({ beganAt, endedAt }) => endedAt - beganAt)), answeredWithinMs);
    await expectAudited(filled.site, outcomes);
    return outcomes;
  };
  /** Every connection of the server, those it seldom needs too, works again, and at once. */
  const expectAllConnectionsWork = async () => {
    const asked = filled.keys.flatMap(({ key }) => Array.from({ length: 8 }, () => key));
    const beganAt = ranMs();
    const answers = await Promise.all(asked.map((key) => filled.server.get("/projects/web", key)));
    expect(answers.map(({ status }) => status)).toEqual(asked.map(() => 200));
    expectWithin(ranMs() - beganAt, 1500);
  };
  const firstSuccessAfter = (outcomes: readonly Outcome[], moment: number) =>
    Math.min(
      ...outcomes
        .filter(({ status, endedAt }) => status === 200 && endedAt >= moment)
        .map(({ endedAt }) => endedAt - moment),
    );

  test("whose backends are terminated at whatever moment, again and again, does not end the server", async () => {
    const lost = () => filled.server.said().stdout.split('"event":"connection_lost"').length;
    const before = lost();
    await underLoad(async (readers) => {
      const client = connectTo(database.url);
      for (let times = 0; times < (long ? 300 : 20); times++) {
        await client`select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and application_name like 'keyhole %' and (pid + ${times}) % 3 <> 0`;
        await moment(10 + ((times * 37) % 100));
      }
      await client.end({ timeout: 5 });
      const leftAloneAt = ranMs();
      await readers.more(16, ({ beganAt, status }) => beganAt > leftAloneAt && status === 200);
    }, 6000);
    expect(lost()).toBeGreaterThan(before);
    await expectAllConnectionsWork();
  });

  test("whose backends are killed with -9 starts anew, and gives no answer that is wrong or unaudited", async () => {
    await underLoad(async (readers) => {
      for (let times = 0; times < (long ? 10 : 2); times++) {
        const rows = await filled.site.sql(
          "select pid from pg_stat_activity where datname = current_database() and application_name like 'keyhole %'",
        );
        for (const { pid } of rows) signalIfThere(pid as number, "SIGKILL");
        const killedAt = ranMs();
        await readers.more(3, ({ beganAt, status }) => beganAt > killedAt && status === 200);
      }
    });
    await expectAllConnectionsWork();
  });

  test("whose postmaster is killed with -9 answers 503 within 3 s, and serves within 2 s of its return", async () => {
    for (let times = 0; times < (long ? 5 : 1); times++) {
      let backAt = 0;
      const outcomes = await underLoad(async (readers) => {
        cluster.kill();
        await readers.more(40, ({ status }) => status === 503);
        backAt = await cluster.restart();
      });
      expectWithin(firstSuccessAfter(outcomes, backAt), 2000);
      await expectAllConnectionsWork();
    }
  });

  test("that stands still for 3.5 s is a 503 within 3 s, and serves within 2 s of going on", async () => {
    let backAt = 0;
    const outcomes = await underLoad(async (readers) => {
      const goOn = cluster.freeze();
      const frozenAt = ranMs();
      await readers.more(16, ({ beganAt, status }) => beganAt > frozenAt && status === 503);
      await moment(3500 - (ranMs() - frozenAt));
      goOn();
      backAt = ranMs();
    });
    expectWithin(firstSuccessAfter(outcomes, backAt), 2000);
    await expectAllConnectionsWork();
  });

  test("of which a table is locked is not asked for more and more connections", async () => {
    const client = connectTo(database.url);
    await client`select 1`; // as in lockAudit
    const session = await client.reserve();
    await session`begin`;
    await session`lock table file_contents in access exclusive mode`;
    const answers: Promise<Answer>[] = [];
    let most = 0;
    for (let times = 0; times < 90; times++) {
      await moment(50);
      const { key } = filled.keys[times % filled.keys.length] as Key;
      answers.push(filled.server.get(files, key));
      const [row] = await filled.site.sql(
        "select count(*) as n from pg_stat_activity where datname = current_database() and application_name like 'keyhole %'",
      );
      most = Math.max(most, Number(row?.["n"]));
    }
    for (const answer of await Promise.all(answers.slice(0, 20))) expectRefusal(answer, "unavailable");
    await session`rollback`;
    session.release();
    await client.end({ timeout: 5 });
    await Promise.all(answers);
    // As many as ever, and as many again whose statements PostgreSQL ends a second after their time.
    expect(most).toBeLessThan(45);
    await eventually(async () => (await filled.server.get(files, filled.keys[0].key)).status === 200);
    await expectAllConnectionsWork();
  });

  test("whose connections die without a word is asked on new ones", async () => {
    const proxy = await startProxy(new URL(database.url));
    const url = new URL(database.url);
    url.host = `127.0.0.1:${proxy.port}`;
    const direct = filled.server;
    filled.server = await filled.site.serve({ env: { DATABASE_URL: url.href } });
    try {
      let mutedAt = 0;
      const outcomes = await underLoad(async (readers) => {
        proxy.mute();
        mutedAt = ranMs();
        await readers.more(16, ({ beganAt, status }) => beganAt > mutedAt && status === 200);
      });
      // Lookups, files and the audit have connections of their own: each finds out at its own deadline of 2 s.
      expectWithin(firstSuccessAfter(outcomes, mutedAt + 50), 8000);
      // None of these reads needed the connections for metadata, so those find out now.
      await eventually(async () => (await filled.server.get("/projects/web", filled.keys[0].key)).status === 200);
      await expectAllConnectionsWork();
    } finally {
      await filled.server.stop("SIGKILL");
      filled.server = direct;
      await proxy.stop();
    }
  });
});

/** A cluster of our own, to break and to mend. */
type Killable = {
  readonly url: string;
  /** Stops it and every process of it where they stand; what it returns lets them go on. */
  readonly freeze: () => () => void;
  /** SIGKILL to the postmaster. */
  readonly kill: () => void;
  /** Starts it again on its folder and port. Returns the moment from which it takes connections. */
  readonly restart: () => Promise<number>;
  readonly stop: () => Promise<void>;
};

function killable(cluster: Postgres | undefined): Killable {
  const { url, pid, pgdata } = cluster ?? {};
  if (!url || !pid || !pgdata) {
    const absent = () => {
      throw new Error("there is no PostgreSQL of our own to kill");
    };
    return { url: url ?? "", freeze: absent, kill: absent, restart: absent, stop: async () => {} };
  }
  const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
  const owner = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1]);
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const ids = { uid: owner("Uid"), gid: owner("Gid") };
  let current = pid;
  let again: Bun.Subprocess | undefined;
  return {
    url,
    freeze: () => freeze(current),
    kill: () => process.kill(current, "SIGKILL"),
    restart: async () => {
      // As long as a backend of the killed one has not noticed, the shared memory is in use.
      for (;;) {
        const stdio = ["ignore", "ignore", "ignore"] as const;
        const started = Bun.spawn(command, { ...ids, cwd: pgdata, env: { LC_ALL: "C" }, stdio: [...stdio] });
        again = started;
        current = started.pid;
        const ready = await eventually(() =>
          started.exitCode !== null ? "no" : readyPid(pgdata) === started.pid && "yes",
        );
        if (ready === "yes") return ranMs();
      }
    },
    stop: async () => {
      again?.kill("SIGQUIT");
      await again?.exited;
    },
  };
}
