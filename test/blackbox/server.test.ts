/** A running server: commands that change its data, its signals, its process and its log. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, chownSync, copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeVerifier, signerOf } from "../../src/record/note.ts";
import { ranMs } from "../support/clock.ts";
import { type Cut, type Outcome, startReaders } from "../support/connection.ts";
import { eventually } from "../support/eventually.ts";
import { binary, runBinary } from "../support/keyhole.ts";
import { kubernetes } from "../support/kubernetes.ts";
import {
  expectWithin,
  type Key,
  lockAudit,
  long,
  makeKeys,
  makeSite,
  onBoth,
  type Server,
  type Site,
  siteOf,
} from "../support/server.ts";

setDefaultTimeout(long ? 300_000 : 60_000);

const variables = "/projects/web/variables?environment=staging";
const files = "/files?project=web&environment=staging";

async function putFile(site: Site): Promise<void> {
  const file = join(site.folder, "file");
  writeFileSync(file, "content");
  await site.json(["file", "put", "acme/web", file, "--path", "a.txt", "--env", "staging"]);
}

const resources = "projects,variables,files";
const isSuccess = ({ status }: Outcome) => status === 200;

onBoth("a command beside a running server", (dialect) => {
  const site = siteOf(dialect, { staging: { NAME: "value" } });
  let server: Server;
  beforeAll(async () => {
    await putFile(site);
    server = await site.serve();
  });

  test("is obeyed by the very next request, time after time", async () => {
    const [{ id, key }] = await makeKeys(site, 1, resources);
    const path = "/projects/web/variables?environment=development";
    const found = async () => (await server.get(path, key)).json<{ variables: unknown }>().variables;
    for (const value of ["one", "two"]) {
      await site.here(["var", "set", "acme/web", "development", "NEW"], value);
      expect(await found()).toMatchObject([{ key: "NEW", value }]);
      await site.here(["var", "delete", "acme/web", "development", "NEW"]);
      expect(await found()).toEqual([]);
    }
    await site.here(["key", "revoke", id]);
    for (const one of [path, "/organization"]) expect((await server.get(one, key)).status).toBe(401);
  });
});

onBoth("a signal to end", (dialect) => {
  const site = siteOf(dialect, { staging: { NAME: "value" } });
  let keys: readonly Key[];
  beforeAll(async () => {
    await putFile(site);
    keys = await makeKeys(site, 4, resources);
  });
  const authorization = () => ({ Authorization: `Bearer ${keys[0]?.key}` });

  const rounds = long ? 20 : 2;
  test(`under some hundred requests a second, ${rounds} times, drops none and flushes the audit`, async () => {
    for (let round = 0; round < rounds; round++) {
      const server = await site.serve();
      const key = (client: number) => keys[client % keys.length]?.key ?? "";
      const ask = (client: number) => ({ path: files, key: key(client) });
      const readers = startReaders(24, () => server.origin, ask, 10);
      await readers.more(200, isSuccess);
      const askedAt = ranMs();
      server.signal("SIGTERM");
      // They go on asking for as long as it listens, and no longer: somebody else may be given its port.
      expect(await server.ended).toBe(0);
      const outcomes = await readers.stop();
      expectWithin(ranMs() - askedAt, 5000);
      // A connection that sends nothing is closed after 0.1 s, so this is right if this process stood still.
      const dropped = outcomes.filter(
        ({ status, received, stoodStillMs }) =>
          status !== 200 && status !== "refused" && !(status === "cut" && received === "" && stoodStillMs > 0),
      );
      const times = dropped.map(({ status, beganAt, endedAt }) => [status, beganAt - askedAt, endedAt - askedAt]);
      expect(times).toEqual([]);
      // While it drains it still answers, and says with each answer that the connection ends.
      const last = outcomes.filter(isSuccess).at(-1);
      expect(last?.answer?.headers.get("connection")).toBe("close");

      const entries = await site.audit();
      const recorded = new Set(entries.map((entry) => entry["request_id"]));
      expect(outcomes.filter((outcome) => isSuccess(outcome) && !recorded.has(outcome.requestId))).toEqual([]);
      const line = server
        .said()
        .stdout.split("\n")
        .findLast((line) => line.includes('"event":"checkpoint"'));
      const checkpoint = JSON.parse(line ?? "{}") as { lane?: string; seq?: number; mac?: string };
      const segments = await site.sql("select lane, last_seq, mac from audit_segments order by lane, first_seq");
      const newest = segments.filter((segment) => segment["lane"] === checkpoint.lane).at(-1);
      expect(Number(newest?.["last_seq"])).toBe(checkpoint.seq ?? 0);
      expect(Buffer.from(newest?.["mac"] as Uint8Array).toString("hex")).toBe(checkpoint.mac ?? "");
    }
  });

  test.each(["SIGTERM", "SIGINT"] as const)("as %s waits for what is under way", async (signal) => {
    const server = await site.serve();
    const connection = await server.connect();
    const unlock = await lockAudit(site);
    const reading = connection.get(`/api/v1${files}`, authorization());
    server.signal(signal);
    await server.says("finishing open requests");
    await unlock();
    const answer = await reading;
    expect(answer.status).toBe(200);
    expect(answer.json<{ files: unknown[] }>().files).toHaveLength(1);
    expect(await server.ended).toBe(0);
  });

  test("waits for no idle connection", async () => {
    const server = await site.serve({ env: { KEYHOLE_OPS_PORT: "0" } });
    const [idle, unused] = [await server.connect(), await server.connect()];
    expect((await idle.get(`/api/v1${files}`, authorization())).status).toBe(200);
    const askedAt = ranMs();
    server.signal("SIGTERM");
    expect(await server.ended).toBe(0);
    expectWithin(ranMs() - askedAt, 5000);
    for (const one of [idle, unused]) one.close();
  });

  test("given twice ends the process at once", async () => {
    const server = await site.serve();
    const unlock = await lockAudit(site);
    const connection = await server.connect();
    // A server that waited for this request would answer it: with a 503, once its audit entry is 2 s late.
    const received = connection.get(`/api/v1${files}`, authorization()).then(
      ({ status }) => `an answer ${status}`,
      ({ received }: Cut) => received.toString("latin1"),
    );
    server.signal("SIGTERM");
    await server.says("A second signal stops at once");
    server.signal("SIGTERM");
    expect(await server.ended).toBe(1);
    expect(await received).toBe("");
    connection.close();
    await unlock();
  });
});

if (process.platform === "linux") {
  describe("the process of a server, on Linux", () => {
    const isRoot = process.getuid?.() === 0;
    const nobody = { uid: 65534, gid: 65534 };
    /** An ordinary user: for root nothing of another process is out of sight. */
    const asUser = isRoot ? ["setpriv", `--reuid=${nobody.uid}`, `--regid=${nobody.gid}`, "--clear-groups"] : [];
    const rootKey = Buffer.alloc(32, "root key of this test").toString("base64");
    let site: Site;
    let server: Server;
    beforeAll(async () => {
      // A folder and a binary that this user can reach, wherever the checkout lies.
      site = await makeSite("sqlite");
      const program = join(site.folder, "keyhole");
      copyFileSync(binary, program);
      chmodSync(program, 0o755);
      if (isRoot) chownSync(site.folder, nobody.uid, nobody.gid);
      const env = { KEYHOLE_ROOT_KEY: rootKey, MARKER: "here", ...kubernetes };
      server = await site.serve({ as: asUser, program, env });
    });
    afterAll(() => site.remove());

    const reads = (file: string) => Bun.spawnSync([...asUser, "cat", `/proc/${server.pid}/${file}`]);

    test("shows its memory, environment and files to no process of the same user", () => {
      expect(reads("status").success).toBe(true);
      for (const file of ["environ", "mem", "maps", "auxv", "pagemap"]) {
        const { success, stdout, stderr } = reads(file);
        expect([file, success, stdout.toString()]).toEqual([file, false, ""]);
        expect(stderr.toString()).toContain("Permission denied");
      }
      expect(Bun.spawnSync([...asUser, "ls", `/proc/${server.pid}/fd/`]).success).toBe(false);
    });

    test("holds its root key in no environment that /proc shows, to root either", () => {
      if (!isRoot) return;
      const environment = readFileSync(`/proc/${server.pid}/environ`, "latin1");
      expect(environment).toContain("MARKER=here");
      expect(environment).not.toContain(rootKey);
    });

    const team = ["--origin", "https://secrets.example", "--issuer", "https://id.example", "--client-id", "keyhole"];
    test.each([
      ["KEYHOLE_CLIENT_SECRET", "client-secret-canary", ["dashboard", ...team]],
      ["KEYHOLE_API_KEY", `kh_${"0aZ".repeat(16)}9`, ["mcp", "--url", "http://127.0.0.1:9"]],
    ])("nor does another process hold %s there", async (name, secret, args) => {
      if (!isRoot) return;
      const env = { ...site.env, KEYHOLE_ROOT_KEY: rootKey, [name]: secret };
      const child = Bun.spawn([binary, ...args], { env, stdin: "pipe", stdout: "ignore", stderr: "ignore" });
      const environment = () => readFileSync(`/proc/${child.pid}/environ`, "latin1");
      await eventually(() => environment().includes(`${name}=***`));
      expect(environment()).not.toContain(secret);
      child.kill("SIGKILL");
      await child.exited;
    });
  });
}

onBoth("what a server writes", (dialect) => {
  const site = siteOf(dialect, { staging: { NAME: "value" } });

  test("holds no API key, no root key, no password of its database and no value", async () => {
    await putFile(site);
    const server = await site.serve();
    const { key } = await site.key("--org", "acme", "--resource", "projects,variables,files");
    const unknown = `${key.slice(0, -7)}${key.endsWith("0") ? "1" : "0"}`;
    await site.json(["var", "set", "acme/web", "production", "SECRET"], "canary-of-this-test");
    for (const text of [key, unknown, `${key}x`, "kh_", ""]) {
      for (const path of [variables, files, "/projects/web/variables?environment=production", "/nowhere"]) {
        await server.get(path, text);
        await server.get(`${path}&access_token=${text}&x=${text}`, text);
      }
    }
    await site.sql("update sets set sealed = ? where kind = 'variables'", [Buffer.from("damaged")]);
    expect((await server.get(variables, key)).status).toBe(503);
    expect(await server.stop()).toBe(0);
    const rootKey =
      dialect === "sqlite" ? readFileSync(join(site.data, "root.key"), "utf8").trim() : site.env["KEYHOLE_ROOT_KEY"];
    const password = new URL(site.env["DATABASE_URL"] ?? "http://x").password;
    const { stdout, stderr } = server.said();
    expect(stdout).toContain('"event":"request"');
    for (const secret of [key, unknown, key.slice(3, 40), rootKey ?? "", password, "canary-of-this-test"]) {
      if (secret !== "") expect((stdout + stderr).includes(secret)).toBe(false);
    }
  });
});

test("a misspelt setting stops what would go on without it, and other commands warn", async () => {
  const log = encodeVerifier(signerOf("keyhole/0123456789abcdef", new Uint8Array(32)));
  const env = { KEYHOLE_CHECKPOINT_FILES: "/var/lib/keyhole/checkpoint" };
  const sentence = "KEYHOLE_CHECKPOINT_FILES is not a setting of Keyhole. Did you mean KEYHOLE_CHECKPOINT_FILE?\n";
  for (const args of [["serve"], ["notary"], ["witness", "--log", log], ["dashboard"], ["door", "--person", "ana"]]) {
    const ran = await runBinary(args, { env });
    expect([args, ran]).toEqual([args, { exitCode: 2, stdout: "", stderr: `keyhole: ${sentence}` }]);
  }
  const warned = await runBinary(["version"], { env });
  expect(warned).toMatchObject({ exitCode: 0, stderr: `WARNING: ${sentence}` });
});
