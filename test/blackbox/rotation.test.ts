import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { readConfig } from "../../src/core/settings/settings.ts";
import { openInstallation } from "../../src/installation/installation.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { adminContextOf, operator } from "../../src/people/desk/context.ts";
import { createKey } from "../../src/people/keys/keys.ts";
import { createOrganization } from "../../src/people/projects/organizations.ts";
import { createProject } from "../../src/people/projects/projects.ts";
import { newKey } from "../../src/seal/keyring.ts";
import { moment } from "../support/clock.ts";
import { connect } from "../support/connection.ts";
import { eventually } from "../support/eventually.ts";
import { binary } from "../support/keyhole.ts";
import { setAccount, setVariables } from "../support/plans.ts";
import { type Key, makeSite, onBoth, type Server, type Site } from "../support/server.ts";

/*
 * Rotation beside a server that 64 clients read from without a pause: whatever is rotated, and whoever is killed while
 * rotating, every answer is the same 200.
 */

setDefaultTimeout(120_000);

const projectCount = 24;
/** Fewer than a full bucket of value reads: the limiter must not refuse any. */
const readsPerKey = 28;
/** Between two reads of one of the 64 clients. */
const pauseMs = 300;
/** As many as the clients use up in the minute in which a bucket fills again. */
const keyCount = 500;
const large = Buffer.alloc(300 * 1024, "large ");

type Ask = { readonly path: string; readonly text: string };

/** Fills the site without a process for each key. @returns the keys; each reads everything */
async function stock(site: Site): Promise<Key[]> {
  const admin = adminContextOf(await openInstallation(readConfig(site.env), () => {}), operator("ann@host"));
  await createOrganization(admin, { slug: "acme" });
  for (let n = 0; n < projectCount; n++) {
    const where = `acme/p${n}`;
    await createProject(admin, where, {});
    const entries = Array.from({ length: 30 }, (_, at) => ({ name: `NAME_${at}`, value: `value ${at} of ${n}` }));
    for (const environment of ["staging", "production"]) await setVariables(admin, where, environment, entries);
    await setAccount(admin, where, "ci", ["production"], { username: "ci", password: `password of ${n}` });
    await putFile(admin, where, { path: "large.bin", environments: ["production"], content: large });
  }
  const keys: Key[] = [];
  for (let n = 0; n < keyCount; n++) {
    const resources = ["projects", "variables", "accounts", "files"];
    keys.push(await createKey(admin, { name: `key ${n}`, resources, projects: null, environments: null }));
  }
  await admin.close();
  return keys;
}

/** 64 clients that read until they are told to stop. */
async function startLoad(server: Server, keys: readonly Key[]) {
  const answered = { count: 0 };
  const failures: string[] = [];
  let over = false;
  let used = 0;
  const asks: Ask[] = [];
  const spare = keys[0]?.key ?? "";
  for (let n = 0; n < projectCount; n += 5) {
    for (const path of [
      `/projects/p${n}/variables?environment=production`,
      `/projects/p${n}/variables?environment=production&keys=NAME_1,NAME_2`,
      `/projects/p${n}/accounts?environment=production`,
      `/files?project=p${n}&environment=production`,
    ]) {
      const { status, body } = await server.get(path, spare);
      expect(status).toBe(200);
      asks.push({ path, text: body.toString("utf8") });
    }
  }
  const client = async (from: number) => {
    const connection = await connect(server.origin);
    for (let at = from; !over; at++) {
      const key = keys[1 + (Math.floor(used++ / readsPerKey) % (keys.length - 1))] as Key;
      const { path, text } = asks[at % asks.length] as Ask;
      try {
        const { status, body } = await connection.get(`/api/v1${path}`, { Authorization: `Bearer ${key.key}` });
        if (status !== 200) failures.push(`${path} ${status} ${body}`);
        else if (body.toString("utf8") !== text) failures.push(`${path} answered something else`);
      } catch (error) {
        failures.push(`${path} ${error}`);
      }
      answered.count += 1;
      await moment(pauseMs);
    }
    connection.close();
  };
  const clients = Array.from({ length: 64 }, (_, n) => client(n));
  return {
    answered,
    failures,
    stop: async () => {
      over = true;
      await Promise.all(clients);
    },
  };
}

onBoth("rotation under 64 clients", (dialect) => {
  let site: Site;
  let keys: Key[];
  let env: Readonly<Record<string, string>>;
  let server: Server;
  let load: Awaited<ReturnType<typeof startLoad>>;

  const start = (args: readonly string[]) =>
    Bun.spawn([binary, ...args, "--json"], { cwd: site.folder, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const done = async (args: readonly string[]): Promise<unknown> => {
    const child = start(args);
    const [exitCode, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.not.stringMatching(/error/) });
    return JSON.parse(stdout);
  };
  /** The load goes on, and every answer is the same as before. */
  const undisturbed = async () => {
    const before = load.answered.count;
    await eventually(() => load.answered.count >= before + 128);
    expect(load.failures).toEqual([]);
  };
  const dataKeys = async () => {
    const keys = "select project_id, max(generation) as newest, count(*) as n from data_keys group by 1";
    const rows = await site.sql(keys);
    return rows.map(({ newest, n }) => `${n} up to ${newest}`);
  };

  beforeAll(async () => {
    site = await makeSite(dialect);
    keys = await stock(site);
    const older = site.env["KEYHOLE_ROOT_KEY"];
    const newer = Buffer.from(newKey()).toString("base64");
    // The embedded database's server runs with the one root key that it began with; the other has both, the old in
    // front.
    env = older === undefined ? site.env : { ...site.env, KEYHOLE_ROOT_KEY: `${newer},${older}` };
    server = await site.serve({ env: older === undefined ? {} : { KEYHOLE_ROOT_KEY: `${older},${newer}` } });
    load = await startLoad(server, keys);
  });
  afterAll(async () => {
    await load?.stop();
    await site?.remove();
  });

  test("rotate root: no request fails", async () => {
    await undisturbed();
    // The notary of the embedded database's server has a key of its own.
    const systemKeys = dialect === "sqlite" ? 5 : 4;
    expect(await done(["rotate", "root"])).toMatchObject({ systemKeys, dataKeys: projectCount });
    await undisturbed();
    if (dialect === "sqlite") {
      await done(["rotate", "root", "--finish", "--yes"]);
      expect(readFileSync(join(site.data, "root.key"), "utf8").trimEnd().split("\n")).toHaveLength(1);
      await undisturbed();
    }
  });

  test("rotate data, killed in the middle, then finished by the next run: no request fails", async () => {
    let generation = 1;
    let first: ReturnType<typeof start>;
    do {
      generation += 1;
      first = start(["rotate", "data"]);
      await eventually(async () => {
        const rotated = "select count(distinct project_id) as n from sets where generation = ?";
        const [row] = await site.sql(rotated, [generation]);
        return Number(row?.["n"]) >= 3;
      });
      first.kill("SIGKILL");
      await first.exited;
      // If it was done before that was seen, the next one is tried.
    } while (!(await dataKeys()).includes(`2 up to ${generation}`) && generation <= 5);
    expect(first.signalCode).toBe("SIGKILL");
    expect(await dataKeys()).toContain(`2 up to ${generation}`);
    await undisturbed();
    const finished = (await done(["rotate", "data"])) as { projects: number; resumed: number };
    expect(finished.resumed).toBe(finished.projects);
    expect(finished.projects).toBeGreaterThan(0);
    expect(new Set(await dataKeys())).toEqual(new Set([`1 up to ${generation}`]));
    await undisturbed();
  });

  test("rotate data, twice at once: no request and no write fails, and one data key is left to each project", async () => {
    const names = ["FIRST", "SECOND", "THIRD"];
    const writing = names.map((name) => done(["var", "set", "acme/p23", "production", name, "--value", `of ${name}`]));
    await Promise.all([done(["rotate", "data"]), done(["rotate", "data"]), ...writing]);
    const path = `/projects/p23/variables?environment=production&keys=${names}`;
    const { variables } = (await server.get(path, keys[0]?.key ?? "")).json<{ variables: { value: string }[] }>();
    expect(variables.map(({ value }) => value)).toEqual(names.map((name) => `of ${name}`));
    const left = await dataKeys();
    expect(left).toHaveLength(projectCount);
    for (const words of left) expect(words).toStartWith("1 up to ");
    await undisturbed();
  });

  test("a server that starts afterwards, with the new root key alone, reads the same", async () => {
    await load.stop();
    await server.stop();
    const after = await site.serve({
      env: dialect === "sqlite" ? {} : { KEYHOLE_ROOT_KEY: (env["KEYHOLE_ROOT_KEY"] ?? "").slice(0, 44) },
    });
    const { body } = await after.get("/projects/p23/variables?environment=production&keys=NAME_7", keys[0]?.key ?? "");
    expect(body.toString("utf8")).toContain('"value":"value 7 of 23"');
    expect(load.failures).toEqual([]);
    expect(load.answered.count).toBeGreaterThan(500);
  });
});
