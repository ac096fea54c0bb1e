/** The first start of the program, and starts with wrong settings. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { shellWord } from "../../src/core/words/shell.ts";
import { ask } from "../support/connection.ts";
import { binary, runBinary } from "../support/keyhole.ts";
import { clusterOwner } from "../support/postgres.ts";
import { type Ran, startProgram } from "../support/program.ts";
import { findProgram } from "../support/programs.ts";
import { makeSite, onBoth, type Site, siteOf } from "../support/server.ts";

/** The end of a program that stopped with one sentence for a person: nothing on stdout, no stack, no secret. */
function expectSentence(ran: Ran, exitCode: number, names: string | RegExp): void {
  expect(ran.stdout).toBe("");
  expect(ran.stderr).toMatch(/^keyhole: [^\n]+[.)`]\n$/);
  expect(ran.stderr).toMatch(names);
  expect(ran.exitCode).toBe(exitCode);
}

/** Runs the program in the site's folder with these settings instead of the site's. */
const run = (site: Pick<Site, "folder">, args: readonly string[], env: Record<string, string>) =>
  runBinary(args, { cwd: site.folder, env });

/** What a program writes up to and with this text. */
async function readUntil(stream: AsyncIterable<Uint8Array>, text: string): Promise<string> {
  let all = "";
  for await (const bytes of stream) {
    all += Buffer.from(bytes).toString("utf8");
    if (all.includes(text)) return all;
  }
  throw new Error(`it ended, and what it wrote does not hold ${text}: ${all}`);
}

/** How to start a program that starts others, which end with it. */
const inGroup: SpawnOptions = { detached: true, stdio: ["ignore", "pipe", "ignore"] };

/** The line of the demo that opens the dashboard. */
const dashboardLine = (shown: string) => /\n {2}(.*KEYHOLE_DATA=\S+ .* dashboard)\n/.exec(shown)?.[1] ?? "";

/** Runs a line that starts the dashboard, and opens the link that it prints. @returns the page of all projects */
async function projectsPage(line: string, folder: string, env: Record<string, string>): Promise<string> {
  const child = spawn("/bin/sh", ["-c", line], { ...inGroup, cwd: folder, env });
  try {
    const said = await readUntil(child.stdout as Readable, "\n");
    const [, origin = "", host = "", port = "", code = ""] = /((?:http:\/\/)([^/]+:(\d+)))\/#(\S+)/.exec(said) ?? [];
    const at = (path: string) => `http://127.0.0.1:${port}${path}`;
    const headers = { host, origin, "sec-fetch-site": "same-origin" };
    const form = { method: "POST", body: new URLSearchParams({ code }), redirect: "manual" } as const;
    const opened = await fetch(at("/unlock"), { ...form, headers });
    const cookie = opened.headers.get("set-cookie")?.split(";")[0] ?? "";
    return await (await fetch(at("/projects"), { headers: { host, cookie } })).text();
  } finally {
    process.kill(-(child.pid as number), "SIGTERM");
  }
}

const checkout = join(import.meta.dir, "../..");

/** Listens on a port of its own. */
const takePort = () => Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });

describe("demo", () => {
  const site = siteOf("sqlite");
  const demo = (...args: string[]) => run(site, ["demo", ...args], { ...site.env, PORT: "0" });

  test("serves until it is stopped, every line that it shows works, and a second one beside it is refused", async () => {
    const child = Bun.spawn([binary, "demo"], { cwd: site.folder, env: { ...site.env, PORT: "0" }, stderr: "ignore" });
    try {
      const shown = await readUntil(child.stdout, "answered 200:");
      const asks = String.raw`curl -s -H "Authorization: Bearer \$KEY" 'http://127\.0\.0\.1:\d+/api/v1/organization'`;
      expect(shown).toMatch(new RegExp(`\n {2}${asks}\n`));
      const key = /KEY=(kh_\w+)/.exec(shown)?.[1] ?? "";
      const lines = [...shown.matchAll(/Bearer \$KEY" '([^']+)'/g)].map(([, url = ""]) => url);
      const answers = await Promise.all(lines.map((url) => ask(url, { Authorization: `Bearer ${key}` })));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 403, 200, 200]);
      expect(await projectsPage(dashboardLine(shown), site.folder, {})).toContain("demo/web");
      expectSentence(await demo("--once"), 6, /another Keyhole serves/i);
      // The refused one changed nothing: the key of the one that runs is still good.
      expect((await ask(lines[0] ?? "", { Authorization: `Bearer ${key}` })).status).toBe(200);
    } finally {
      child.kill("SIGINT");
      expect(await child.exited).toBe(0);
    }
  });

  const npx = `npx --yes --allow-scripts=bun bun@${Bun.version} run`;
  const bun = shellWord(process.execPath);
  test.each([
    ["the README's npx", `${npx} demo`, `${npx} keyhole`],
    ["the path of a Bun", `${bun} run demo`, bun.includes("/_npx/") ? `${npx} keyhole` : `${bun} run keyhole`],
    ["the built program's name", "keyhole demo", "keyhole"],
  ])("started by %s, without a Bun in PATH, shows a line that opens the dashboard there", async (_, started, shown) => {
    // What npx does: its own Bun is first in the PATH of what it runs.
    const folder = mkdtempSync(join(site.folder, "outside-"));
    const bin = join(folder, "_npx/0/node_modules/.bin");
    mkdirSync(bin, { recursive: true });
    copyFileSync(process.execPath, join(bin, "bun"));
    const npx = `#!/bin/sh\nwhile [ "$1" != bun@${Bun.version} ]; do shift; done\nshift\nPATH="${bin}:$PATH" exec bun "$@"\n`;
    writeFileSync(join(folder, "npx"), npx, { mode: 0o755 });
    for (const name of ["sh", "env"]) symlinkSync(findProgram(name) ?? name, join(folder, name));
    symlinkSync(binary, join(folder, "keyhole"));
    const production = {
      ...{ DATABASE_URL: "postgres://of-production.invalid/keyhole", DATABASE_PASSWORD_FILE: "/of/production" },
      ...{ KEYHOLE_CHECKPOINT_FILE: "/of/production", KEYHOLE_WITNESS: "https://of-production.invalid" },
    };
    const env = { PATH: folder, HOME: site.folder, ...production };
    const child = spawn(join(folder, "sh"), ["-c", started], {
      ...inGroup,
      cwd: checkout,
      env: { ...env, PORT: "0", KEYHOLE_DATA: site.data },
    });
    try {
      const line = dashboardLine(await readUntil(child.stdout as Readable, "answered 200:"));
      expect(line).toEndWith(`' ${shown} dashboard`);
      expect(await projectsPage(line, checkout, env)).toContain("demo/web");
    } finally {
      process.kill(-(child.pid as number), "SIGINT");
      // When the last of its processes has ended.
      await once(child, "close");
    }
  });

  test("takes another port where its own is taken", async () => {
    const taken = takePort();
    const ran = await run(site, ["demo", "--once", "--json"], { ...site.env, PORT: String(taken.port) });
    await taken.stop(true);
    expect(ran.exitCode).toBe(0);
    const shown = JSON.parse(ran.stdout) as { origin: string };
    expect(shown).toMatchObject({ status: 200, origin: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) });
    expect(shown.origin).not.toBe(`http://127.0.0.1:${taken.port}`);
  });
});

describe("the data folder", () => {
  const site = siteOf("sqlite");
  const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

  test("is made 0700, every file in it 0600, and keeps out of repositories", async () => {
    const server = await site.serve();
    expect(server.said().stderr).toContain(`A NEW ROOT KEY was made: ${join(site.data, "root.key")}`);
    await server.says("In another terminal, in this folder, begin with:");
    const key = "key create --org acme --name ci --project web --env production";
    await server.says(key);
    for (const command of ["org create acme", "project create acme/web", key]) {
      expect(server.said().stderr).toContain(`\n  ${binary} ${command}\n`);
      expect(await site.keyhole(command.split(" "))).toMatchObject({ exitCode: 0 });
    }
    expect(modeOf(site.data)).toBe("700");
    const files = readdirSync(site.data);
    expect(files).toContain("root.key");
    expect(files).toContain("keyhole.db-wal");
    for (const file of files) expect([file, modeOf(join(site.data, file))]).toEqual([file, "600"]);
    expect(readFileSync(join(site.data, ".gitignore"), "utf8")).toBe("*\n");

    const second = await site.keyhole(["serve", "--port", "0"]);
    expectSentence(second, 6, /another Keyhole serves/i);
    expect(await server.stop()).toBe(0);
    const third = await site.serve();
    expect(third.said().stderr).not.toContain("A NEW ROOT KEY");
    await third.stop("SIGKILL");
    // A killed server's lock is gone with it.
    const fourth = await site.serve();
    expect(await fourth.stop()).toBe(0);
  });
});

describe.skipIf(process.platform !== "linux")("a data folder that cannot be written", () => {
  let site: Site;
  beforeEach(async () => {
    site = await makeSite("sqlite");
    copyFileSync(binary, join(site.folder, "keyhole"));
  });
  afterEach(() => site.remove());
  /** Runs a script in the site's folder, in which ./keyhole is the program. */
  const script = (as: readonly string[], text: string) =>
    runBinary([], { cwd: site.folder, env: { PATH: process.env["PATH"], ...site.env }, as: [...as, "sh", "-c", text] });

  test("by this user is named, with what to do", async () => {
    const isRoot = process.getuid?.() === 0;
    if (isRoot) chownSync(site.folder, 65534, 65534);
    const asUser = isRoot ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : [];
    const make = './keyhole org create acme && rm -f "$KEYHOLE_DATA"/*.migrating && chmod 500 "$KEYHOLE_DATA"';
    expect((await script(asUser, make)).exitCode).toBe(0);
    const ran = await script(asUser, "./keyhole org list");
    await script(asUser, 'chmod 700 "$KEYHOLE_DATA"');
    expectSentence(ran, 2, `KEYHOLE_DATA ${site.data} cannot be used (this user may not write keyhole.db`);
    expect(ran.stderr.split(site.data)).toHaveLength(2);
    expect(ran.stderr).not.toContain("report");
  });

  const unshare = ["unshare", "--user", "--map-root-user", "--mount"];
  // Some systems keep ordinary users from making a file system of their own, which is what can be full here.
  const mayMount = findProgram("unshare") && findProgram("mount") && Bun.spawnSync([...unshare, "true"]).success;
  if (mayMount) {
    test("since its disk is full says so, and not a word of PostgreSQL", async () => {
      const fill =
        'mkdir "$KEYHOLE_DATA" && mount -t tmpfs -o size=300k none "$KEYHOLE_DATA" && ./keyhole org create acme 2> made && cat /dev/zero 2> full > "$KEYHOLE_DATA/zeros"';
      const ran = await script(unshare, `${fill}; ./keyhole project create web`);
      expectSentence(ran, 6, `The disk of the data folder ${site.data} is full`);
    });

    test("since its disk has no room for a backup does not call the backup unreadable", async () => {
      const made = "KEYHOLE_DATA=other ./keyhole org create acme && KEYHOLE_DATA=other ./keyhole backup b.db";
      const mounted = 'mkdir "$KEYHOLE_DATA" && mount -t tmpfs -o size=64k none "$KEYHOLE_DATA"';
      const ran = await script(unshare, `(${made} && ${mounted}) 2> log; ./keyhole restore b.db --yes`);
      expectSentence(ran, 6, "The disk is full: it has no room for a copy of b.db.");
    });
  }
});

const reader = process.getuid?.() === 0 ? clusterOwner()?.ids : undefined;
describe.skipIf(reader === undefined)("a data folder of another user", () => {
  test("is not taken for one without a Keyhole", async () => {
    const site = await makeSite("sqlite");
    try {
      await site.json(["org", "create", "acme"]);
      chmodSync(site.folder, 0o755);
      const as = ["setpriv", `--reuid=${reader?.uid}`, `--regid=${reader?.gid}`, "--clear-groups"];
      const refusal = async (args: readonly string[], data = site.data) => {
        const env = { ...site.env, PATH: "/usr/bin:/bin", KEYHOLE_DATA: data };
        const ran = await runBinary(args, { cwd: "/", env, as });
        expect(ran).toMatchObject({ exitCode: 2, stdout: "" });
        return ran.stderr;
      };
      const end = "belongs to root, and this user may not read it: is sudo missing?\n";
      for (const words of ["org list", "serve", "backup /tmp/none.db", "backup verify /tmp/none.db"]) {
        expect(await refusal(words.split(" "))).toBe(`keyhole: KEYHOLE_DATA ${site.data} ${end}`);
      }
      const inside = join(site.data, "more", "data");
      const within = `keyhole: KEYHOLE_DATA ${inside} lies in ${site.data}, which ${end}`;
      expect(await refusal(["org", "list"], inside)).toBe(within);
    } finally {
      await site.remove();
    }
  });
});

describe("a server that cannot serve begins no installation", () => {
  const site = siteOf("sqlite");
  const begun = () => existsSync(site.data) && readdirSync(site.data);

  test.each(["PORT", "KEYHOLE_OPS_PORT"])("if %s is in use, which one sentence says", async (setting) => {
    const taken = takePort();
    const port = String(taken.port);
    const ran = await run(site, ["serve"], { ...site.env, PORT: "0", [setting]: port });
    await taken.stop(true);
    expectSentence(ran, 6, new RegExp(`127\\.0\\.0\\.1:${port} is in use`));
    expect(begun()).toBe(false);
  });

  test("where KEYHOLE_SSH names another host, unless it is told to", async () => {
    const env = { ...site.env, PORT: "0", KEYHOLE_SSH: "keyhole@bastion" };
    expectSentence(await run(site, ["serve"], env), 2, "KEYHOLE_SSH names keyhole@bastion");
    expect(begun()).toBe(false);
    const server = startProgram([binary, "serve", "--here"], { cwd: site.folder, env });
    await server.says("Keyhole listens on");
    expect(await server.stop()).toBe(0);
    expect(begun()).toContain("root.key");
  });
});

onBoth("where nothing has begun", (dialect) => {
  const site = siteOf(dialect);
  const expectNothing = async () => {
    expect(readdirSync(site.folder)).toEqual([]);
    if (dialect === "sqlite") return;
    expect(await site.sql("select 1 from pg_tables where schemaname = 'public'")).toEqual([]);
  };

  test.each([
    ...["org list", "org plan acme pro", "org delete acme --yes", "project create acme/web", "project list"],
    ...["var set acme/web staging NAME --value x", "account list acme/web", "file list acme/web", "key list"],
    ...["audit list", "audit verify", "audit export", "audit prune --yes", "rotate data", "db grants"],
  ])("%s says where it looked, ends with 4 and makes nothing", async (words) => {
    const where = dialect === "sqlite" ? site.data : "the database at DATABASE_URL";
    expectSentence(await site.keyhole(words.split(" ")), 4, `There is no Keyhole in ${where}`);
    await expectNothing();
  });

  const refused: [slug: string, options: string[]][] = [
    ["Acme", []],
    ["acme", ["--name", ""]],
  ];
  test.each(refused)("org create that is refused makes nothing: %s %p", async (slug, options) => {
    expectSentence(await site.keyhole(["org", "create", slug, ...options]), 2, "organization");
    await expectNothing();
  });

  test("org create begins, and what begins later finds it", async () => {
    expect(await site.json(["org", "create", "acme"])).toMatchObject({ slug: "acme" });
    expect(await site.json(["org", "list"])).toHaveLength(1);
  });
});

/** Many processes on an empty PostgreSQL are in integration/migrate. */
describe("a first start of many at once", () => {
  const site = siteOf("sqlite");

  test("makes one database, in which everything works", async () => {
    const serving = site.serve();
    const slugs = ["one", "two", "three", "four", "five", "six"];
    const made = await Promise.all(slugs.map((slug) => site.keyhole(["org", "create", slug])));
    expect(made.map(({ exitCode, stderr }) => (exitCode === 0 ? 0 : stderr))).toEqual(slugs.map(() => 0));
    const listed = (await site.json(["org", "list"])) as { slug: string }[];
    expect(listed.map(({ slug }) => slug).sort()).toEqual([...slugs].sort());
    const { key } = await site.key("--org", "three");
    const server = await serving;
    expect((await server.get("/organization", key)).json()).toMatchObject({ slug: "three" });
    expect(await server.stop()).toBe(0);
  });
});

describe("the folder that it is started in", () => {
  /** What a hostile repository could hold. */
  const plant = (folder: string) => {
    const holds = {
      ".env": "KEYHOLE_DATA=stolen\nPORT=x\nDATABASE_URL=mysql://stolen\nKEYHOLE_ROOT_KEY=stolen\n",
      ...{ ".env.local": "PORT=x\n", ".env.production": "PORT=x\n" },
      "preload.ts": `require("node:fs").writeFileSync(${JSON.stringify(join(folder, "RAN"))}, "");\n`,
      "bunfig.toml": 'preload = ["./preload.ts"]\n[run]\npreload = ["./preload.ts"]\n',
    };
    for (const [name, text] of Object.entries(holds)) writeFileSync(join(folder, name), text);
  };

  test("has no say in the binary: its .env and bunfig.toml are not read", async () => {
    const site = await makeSite("sqlite");
    plant(site.folder);
    writeFileSync(join(site.folder, "tsconfig.json"), '{"compilerOptions":{"paths":{"*":["./preload.ts"]}}}\n');
    writeFileSync(join(site.folder, "package.json"), '{"name":"hostile"}\n');
    const server = await site.serve();
    expect(await server.stop()).toBe(0);
    expect(await site.json(["org", "list"])).toEqual([]);
    expect(existsSync(join(site.folder, "RAN"))).toBe(false);
    expect(existsSync(join(site.folder, "stolen"))).toBe(false);
    await site.remove();
  });

  test("has no say in a checkout: `bun run start` and `bun run keyhole` read neither as well", async () => {
    const copy = mkdtempSync(join(tmpdir(), "keyhole-checkout-"));
    try {
      for (const name of ["src", "drizzle", "package.json", "bun.lock", "bunfig.toml", "tsconfig.json"]) {
        cpSync(join(checkout, name), join(copy, name), { recursive: true });
      }
      // The checkout's own bunfig.toml is Keyhole's; one of a folder in it is whoever's.
      const within = join(copy, "within");
      mkdirSync(within);
      plant(within);
      writeFileSync(join(copy, ".env"), readFileSync(join(within, ".env")));
      writeFileSync(join(copy, ".env.local"), "PORT=x\n");
      // Of the caller's environment only what bun needs to find its packages.
      const kept = ["PATH", "HOME", "BUN_INSTALL", "BUN_INSTALL_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR"];
      const env = Object.fromEntries(kept.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
      for (const cwd of [copy, within]) {
        const slug = cwd === within ? "one" : "two";
        const command = [process.execPath, "run", "--silent", "keyhole", "org", "create", slug, "--json"];
        const { exitCode, stdout, stderr } = Bun.spawnSync(command, { cwd, env });
        expect([exitCode, String(exitCode === 0 ? stdout : stderr)]).toEqual([0, expect.stringContaining(slug)]);
      }
      expect(existsSync(join(within, "RAN"))).toBe(false);
      const start = [process.execPath, "run", "start", "--port", "0"];
      const started = startProgram(start, { cwd: copy, env });
      try {
        await started.says("/api/v1\n");
        const [, origin] =
          /Keyhole listens on (http:\/\/127\.0\.0\.1:\d+)\/api\/v1\n/.exec(started.said().stderr) ?? [];
        expect((await ask(`${origin}/api/v1/organization`)).status).toBe(401);
      } finally {
        await started.stop();
      }
      expect(existsSync(join(copy, ".keyhole", "keyhole.db"))).toBe(true);
      expect(existsSync(join(copy, "stolen"))).toBe(false);
    } finally {
      rmSync(copy, { recursive: true, force: true });
    }
  });
});
