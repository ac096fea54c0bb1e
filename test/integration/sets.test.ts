import { expect, test } from "bun:test";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../../src/core/names.ts";
import { revealAccount } from "../../src/kinds/accounts/reveal.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import type { VariableEntry } from "../../src/kinds/variables/entry.ts";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { openEverything } from "../../src/people/backup/verify.ts";
import { type AdminContext, within } from "../../src/people/desk/context.ts";
import { findProject, type LockedProject, lockProject } from "../../src/people/desk/projects.ts";
import { createProject } from "../../src/people/projects/projects.ts";
import { sealSet } from "../../src/seal/new-set.ts";
import { setBytesMax } from "../../src/serve/sets/kind.ts";
import { VerifiedSet } from "../../src/serve/sets/verified-set.ts";
import { below } from "../support/answer.ts";
import { deleteAccount, deleteFile, deleteVariable } from "../support/delete.ts";
import { settingsOf } from "../support/door.ts";
import { itemsOf, type Kind, kinds, ofKind } from "../support/kinds.ts";
import {
  deleteOrganization,
  deleteProject,
  planRollback,
  renameProject,
  rollBack,
  setAccount,
  setVariables,
} from "../support/plans.ts";
import { insertAccounts, insertFiles, numbered, withAdmins } from "../support/rows.ts";
import {
  describeBoth,
  describeOnce,
  everything,
  type Key,
  type Placed,
  type Row,
  type World,
} from "../support/world.ts";

/** A project with items of every kind in staging and production, a key that reads it, and ways to write and read. */
async function furnished(w: World) {
  const some = ["staging", "production"] as const;
  const { organization, project, key } = await w.place({
    variables: { staging: { A: "1", B: "2" }, production: { A: "1" } },
    accounts: ["a", "b"].map((name) => ({ name, environments: some, values: { a: name } })),
    files: ["a", "b"].map((path) => ({ path, environments: some, content: path })),
    key: everything,
  });
  const read = readersOf(w, key);
  // A listing of every environment that its key reaches is part of each answer with files or accounts.
  const narrow = async (environment: Environment) =>
    readersOf(w, await w.key(organization, { ...everything, environments: [environment] }));
  return { w, project, key, read, narrow, ...writersOf(w, project) };
}

function writersOf(w: World, { where }: Placed, admin: AdminContext = w.admin) {
  return {
    setVariable: (name: string, value: string, environment: Environment = "staging") =>
      setVariables(admin, where, environment, [{ name, value }]),
    setAccount: (name: string, a: string, ...environments: Environment[]) =>
      setAccount(admin, where, name, environments, { a }),
    putFile: (path: string, content: string, ...environments: Environment[]) =>
      putFile(admin, where, { path, environments, content: Buffer.from(content) }),
  };
}

/** What a client reads of each kind in one environment, as `name=value` pairs, or the status of the refusal. */
function readersOf(w: World, key: Key): Record<Kind, (environment: Environment) => Promise<string | number>> {
  const reader = (kind: Kind) => async (environment: Environment) => {
    const { path, name, textOf } = ofKind[kind];
    const { status, json } = await w.client().ask(path(environment), { key });
    if (status !== 200) return status;
    return itemsOf(kind, json)
      .map((item) => `${item[name]}=${textOf(item)}`)
      .join();
  };
  return { variables: reader("variables"), accounts: reader("accounts"), files: reader("files") };
}

async function versionOf(w: World, { id }: Placed, kind: Kind, environment: Environment): Promise<unknown> {
  const [row] = await w.sql`select version from sets
    where project_id = ${id} and kind = ${kind} and environment = ${environment}`;
  return row?.["version"];
}

/** Every row that belongs to a project. */
async function rowsOf(w: World, { id }: Placed): Promise<Row[][]> {
  return [
    await w.sql`select * from projects where id = ${id}`,
    await w.sql`select * from data_keys where project_id = ${id} order by generation`,
    await w.sql`select * from sets where project_id = ${id} order by kind, environment`,
    await w.sql`select * from set_versions where project_id = ${id} order by kind, environment, version`,
    await w.sql`select * from file_contents where project_id = ${id} order by id`,
  ];
}

describeBoth("writers of sets", (w, _, once) => {
  test("lose nothing when 20 write one set at once, and its version rises by one for each", async () => {
    const { project, read } = await furnished(w);
    const names = numbered("NAME_", 20);
    await withAdmins(w, 20, (admins) =>
      Promise.all(
        names.map((name, n) => writersOf(w, project, admins[n]).setVariable(name, `of ${name}`, "development")),
      ),
    );
    expect(await read.variables("development")).toBe(names.map((name) => `${name}=of ${name}`).join());
    expect(await versionOf(w, project, "variables", "development")).toBe(21);
    await openEverything(w.admin);
  });

  once("lose nothing when four processes write at once", async () => {
    const { project, read } = await furnished(w);
    const source = (path: string) => JSON.stringify(join(import.meta.dir, "../../src", path));
    const program = `
      const { adminContextOf, operator } = await import(${source("people/desk/context.ts")});
      const { openInstallation } = await import(${source("installation/installation.ts")});
      const { readConfig } = await import(${source("core/settings/settings.ts")});
      const { setVariables } = await import(${source("../test/support/plans.ts")});
      const admin = adminContextOf(await openInstallation(readConfig(process.env), () => {}), operator("ann@host"));
      process.stdout.write("ready");
      await Bun.stdin.text();
      const names = process.argv.at(-1).split(",");
      await Promise.all(names.map((name) => setVariables(admin, "${project.where}", "staging", [{ name, value: name }])));
      process.exit(0);`;
    const names = numbered("P_", 16);
    const run = [process.execPath, "--no-env-file", "--no-install", "-e", program];
    const env = { ...settingsOf(w), PATH: process.env["PATH"], HOME: tmpdir() };
    const processes = [0, 4, 8, 12].map((at) => {
      const own = names.slice(at, at + 4).join();
      return Bun.spawn([...run, own], { env, stdin: "pipe", stdout: "pipe", stderr: "inherit" });
    });
    for (const { stdout } of processes) await stdout.getReader().read();
    for (const { stdin } of processes) await stdin.end();
    expect(await Promise.all(processes.map(({ exited }) => exited))).toEqual([0, 0, 0, 0]);
    expect(await read.variables("staging")).toBe(["A=1", "B=2", ...names.map((name) => `${name}=${name}`)].join());
    expect(await versionOf(w, project, "variables", "staging")).toBe(18);
    await openEverything(w.admin);
  });

  once("refuse more than 10,000 items in a set, of variables and of accounts", async () => {
    const { project, setVariable, setAccount, read } = await furnished(w);
    const names = numbered("NAME_", 10_000);
    const entries = names.map((name) => ({ name, value: "" }));
    await setVariables(w.admin, project.where, "development", entries);
    await insertAccounts(w, project, names, ["development"]);
    const before = await rowsOf(w, project);
    const refusal = (kind: Kind) => ({ kind: "bound", message: expect.stringContaining(`would hold 10001 ${kind}`) });
    await expect(setVariable("MORE", "", "development")).rejects.toMatchObject(refusal("variables"));
    await expect(setAccount("more", "", "development")).rejects.toMatchObject(refusal("accounts"));
    expect(await rowsOf(w, project)).toEqual(before);
    // One of those that are there can still be replaced.
    await setVariable("NAME_9999", "x", "development");
    expect(await read.variables("development")).toBe(422);
  });

  once("refuse more than 8 MiB of values in a set, to the byte", async () => {
    const { project } = await furnished(w);
    const largest = 64 * 1024;
    const write = (name: string, bytes: number) =>
      setVariables(w.admin, project.where, "development", [{ name, value: "x".repeat(bytes) }]);
    const entries = numbered("N", 127).map((name) => ({ name, value: "x".repeat(largest) }));
    await setVariables(w.admin, project.where, "development", entries);
    const overhead = JSON.stringify({ key: "N0000", value: "", updatedAt: Date.now() }).length + 1;
    const left = setBytesMax - 127 * (largest + overhead) - overhead;
    const full = { kind: "bound", message: expect.stringContaining("8388608 bytes") };
    await expect(write("LAST_", left + 1)).rejects.toMatchObject(full);
    expect(await versionOf(w, project, "variables", "development")).toBe(2);
    await write("LAST_", left);
    expect(await versionOf(w, project, "variables", "development")).toBe(3);
  });

  once("refuse more than 1000 files in a project, and leave no content of the refused one", async () => {
    const { project, putFile } = await furnished(w);
    await insertFiles(w, project, numbered("f/", 997), ["development"], 1);
    await putFile("last", "1000", "production");
    const before = await rowsOf(w, project);
    await expect(putFile("more", "1001", "staging")).rejects.toMatchObject({ kind: "bound" });
    await expect(putFile("last", "1001", "staging")).rejects.toMatchObject({ kind: "bound" });
    expect(await rowsOf(w, project)).toEqual(before);
    await putFile("last", "still 1000", "production");
  });

  test("leave everything as it was if a write fails", async () => {
    const { project, setVariable, setAccount, putFile } = await furnished(w);
    const before = await rowsOf(w, project);
    const missing = { kind: "not_found" };
    await expect(putFile("a/b", "x", "development", "staging")).rejects.toMatchObject({ kind: "invalid" });
    await expect(deleteFile(w.admin, project.where, "a", ["development", "staging"])).rejects.toMatchObject(missing);
    await expect(deleteVariable(w.admin, project.where, "production", "B")).rejects.toMatchObject(missing);
    expect(await rowsOf(w, project)).toEqual(before);
    // The last statement of a write, which brings the project's counts along, fails.
    const table = "alter table projects";
    const [refuse, allow] =
      w.dialect === "postgres"
        ? [`${table} add constraint never check (false) not valid`, `${table} drop constraint never`]
        : ["create trigger never before update on projects begin select raise(abort, 'no'); end", "drop trigger never"];
    await w.run(refuse);
    try {
      await expect(setVariable("A", "2")).rejects.toThrow();
      await expect(setAccount("a", "2", "staging")).rejects.toThrow();
      await expect(putFile("a", "2", "staging")).rejects.toThrow();
    } finally {
      await w.run(allow);
    }
    expect(await rowsOf(w, project)).toEqual(before);
  });
});

describeOnce("a damaged set", (w) => {
  test.each(["", "[null]", "[1]", "[{}]", '[{"key":1}]', "{}", "null", "x"])(
    "with the listing %s does not stop a write to another environment, and its contents are kept",
    async (listing) => {
      const { project, narrow, setVariable, putFile } = await furnished(w);
      const ofFiles = `project_id = '${project.id}' and kind = 'files' and environment = 'production'`;
      const [kept] = await w.run(`select listing from sets where ${ofFiles}`);
      await w.sql`update sets set listing = ${listing} where project_id = ${project.id} and environment = 'production'`;
      await setVariable("A", "2");
      await putFile("a", "newer", "staging");
      const { variables, files } = await narrow("staging");
      expect([await variables("staging"), await files("staging")]).toEqual(["A=2,B=2", "a=newer,b=b"]);
      // Put back as it was, it finds its contents.
      await w.run(`update sets set listing = ? where ${ofFiles}`, [kept?.["listing"]]);
      expect(await (await narrow("production")).files("production")).toBe("a=a,b=b");
    },
  );

  test("of a project whose counts or times are no JSON is written, which mends them", async () => {
    const { project, setVariable, key } = await furnished(w);
    for (const damaged of ["x", "null", "[1]"]) {
      await w.sql`update projects set variable_counts = ${damaged}, changed_at = ${damaged} where id = ${project.id}`;
      expect((await w.client().ask("/projects/web", { key })).status).toBe(503);
      await setVariable("A", "2");
      const { json } = await w.client().ask("/projects/web", { key });
      expect(json).toMatchObject({ variableCount: 2 });
    }
  });
});

describeOnce("an envelope with one item more than its listing", (w) => {
  test.each(["variables", "accounts"] as const)("is refused by reads and writes: %s", async (kind) => {
    const { project, read, setVariable, setAccount } = await furnished(w);
    const { where } = project;
    const found = await findProject(w.admin, where, "write");
    const [version, field] = [7, kind === "variables" ? "key" : "name"];
    const sealed = await within(w.admin, async (admin) => {
      const { dataKey } = (await lockProject(admin, found)) as LockedProject;
      const identity = { organizationId: found.organization.id, projectId: found.id, slug: "web", kind };
      const listing = JSON.stringify([{ [field]: "A", updatedAt: 1, version }]);
      const value = (key: string) =>
        Buffer.from(JSON.stringify(kind === "variables" ? { key, value: "1", updatedAt: 1 } : { key }));
      const set = { ...identity, environment: "staging", version } as const;
      return sealSet(w.admin.systemKeys.listing, set, listing, { items: [value("A"), value("HIDDEN")], dataKey });
    });
    const store = (table: string, condition = "") =>
      w.run(
        `update ${table} set version = ?, generation = ?, listing_mac = ?, listing = ?, sealed = ?
          where project_id = ? and environment = 'staging' and kind = ? ${condition}`,
        [version, sealed.generation, sealed.listingMac, sealed.listing, sealed.sealed, project.id, kind],
      );
    await store("set_versions", "and version = 1");
    await expect(planRollback(w.admin, { where, environment: "staging", kind }, version)).rejects.toMatchObject({
      kind: "conflict",
    });
    await store("sets");
    expect(await read[kind]("staging")).toBe(503);
    const write = kind === "variables" ? setVariable("B", "2") : setAccount("B", "2", "staging");
    await expect(write).rejects.toMatchObject({ kind: "conflict" });
    const reveal =
      kind === "variables"
        ? revealVariable(w.admin, where, "staging", "A")
        : revealAccount(w.admin, where, "A", "staging");
    await expect(reveal).rejects.toMatchObject({ kind: "conflict" });
    await expect(openEverything(w.admin)).rejects.toThrow();
    await deleteProject(w.admin, where);
  });
});

describeBoth("the sets of a project that takes another slug", (w, _, once) => {
  test("are served under the new one alone, with the same items, and everything opens", async () => {
    const { project, key, read } = await furnished(w);
    const [, slug] = project.where.split("/");
    await renameProject(w.admin, project.where, { slug: "shop" });
    expect(await versionOf(w, project, "variables", "staging")).toBe(2);
    for (const kind of kinds) expect(await read[kind]("staging")).toBe(404);
    const ask = async (path: string) => (await w.client().ask(path, { key })).json;
    expect(await ask("/projects/shop/variables?environment=staging")).toMatchObject({
      variables: [{ value: "1" }, { value: "2" }],
    });
    expect(await ask("/projects/shop/accounts")).toMatchObject({ accounts: [{ name: "a" }, { name: "b" }] });
    expect(await ask("/files?project=shop&environment=production")).toMatchObject({
      files: [{ content: Buffer.from("a").toString("base64") }, { content: Buffer.from("b").toString("base64") }],
    });
    expect(await ask("/projects")).toMatchObject({ projects: [{ slug: "shop", variableCount: 2 }] });
    await openEverything(w.admin);
    // A project that takes the old slug is another one.
    await createProject(w.admin, project.where, {});
    expect(await ask(`/projects/${slug}`)).toMatchObject({ variableCount: 0 });
  });

  test("are out of reach for a key that lists the old slug, in a list of projects too", async () => {
    const { project } = await furnished(w);
    const listing = await w.key({ slug: project.organization } as never, { ...everything, projects: ["web"] });
    await renameProject(w.admin, project.where, { slug: "shop" });
    const ask = async (path: string) => w.client().ask(path, { key: listing });
    expect(await ask("/projects")).toMatchObject({ status: 200, text: '{"projects":[]}' });
    for (const path of ["/projects/web", "/projects/shop", "/projects/shop/variables?environment=staging"]) {
      expect(await ask(path)).toMatchObject({ status: 404 });
    }
    // Nor does it reach a project that takes the old slug.
    await createProject(w.admin, project.where, {});
    expect(await ask("/projects/web")).toMatchObject({ status: 404 });
  });

  once("stay as they were if one of them is damaged, or if the slug is taken", async () => {
    const { project, read } = await furnished(w);
    await createProject(w.admin, `${project.organization}/taken`, {});
    const before = await rowsOf(w, project);
    await expect(renameProject(w.admin, project.where, { slug: "taken" })).rejects.toThrow("exists already");
    await expect(renameProject(w.admin, project.where, { slug: "-" })).rejects.toThrow("is not a valid project slug");
    expect(await rowsOf(w, project)).toEqual(before);
    await w.sql`update sets set listing = '[ ]' where project_id = ${project.id} and kind = 'files'
      and environment = 'development'`;
    const damaged = await rowsOf(w, project);
    await expect(renameProject(w.admin, project.where, { slug: "shop" })).rejects.toThrow("were deleted or changed");
    // Another display name alone seals nothing.
    const [, slug = ""] = project.where.split("/");
    expect(await renameProject(w.admin, project.where, { slug, name: "Shop" })).toMatchObject({ slug, name: "Shop" });
    expect((await rowsOf(w, project)).slice(1)).toEqual(damaged.slice(1));
    expect(await read.variables("staging")).toBe("A=1,B=2");
    await deleteProject(w.admin, project.where); // everything is opened by a later test
  });
});

describeBoth("an organization that is deleted", (w) => {
  test("takes its projects and keys along, and nothing of another", async () => {
    const { project, key } = await furnished(w);
    const other = await furnished(w);
    expect(await deleteOrganization(w.admin, project.organization)).toEqual({ projects: 1, keys: 1, trusts: 0 });
    expect(await rowsOf(w, project)).toEqual([[], [], [], [], []]);
    expect((await w.client().ask("/organization", { key })).status).toBe(401);
    expect(await other.read.variables("staging")).toBe("A=1,B=2");
    await expect(deleteOrganization(w.admin, project.organization)).rejects.toThrow("There is no organization");
  });
});

/** What `work` opens: the values of each set, in the order of their opening. */
async function openedBy(work: () => Promise<unknown>): Promise<Buffer[]> {
  const { open } = VerifiedSet.prototype;
  const opened: Buffer[] = [];
  VerifiedSet.prototype.open = function (this: VerifiedSet<VariableEntry>) {
    const items = open.call(this);
    opened.push(items.all);
    return items;
  };
  try {
    await work();
  } finally {
    VerifiedSet.prototype.open = open;
  }
  return opened;
}

describeOnce("the values of a set", (w) => {
  test("are zeroed once an answer was made of them, in every format, small or not", async () => {
    const { key, setVariable, setAccount } = await furnished(w);
    for (const length of [1, 20_000]) {
      await setVariable("A", "x".repeat(length));
      await setAccount("a", "x".repeat(length), "staging");
      const opened = await openedBy(async () => {
        for (const path of [
          ...below("/projects/web/variables?environment=staging", "", "&format=env", "&keys=A"),
          ...below("/secrets?project=web&environment=staging", "", "&format=env"),
          "/projects/web/accounts?environment=staging",
        ]) {
          const answer = await w.client().ask(path, { key });
          expect(answer).toMatchObject({ status: 200, text: expect.stringContaining("x".repeat(length)) });
        }
      });
      expect(opened).toHaveLength(6);
      for (const bytes of opened) expect(bytes.every((byte) => byte === 0)).toBe(true);
    }
  });

  test("are opened once by a write to it, and not by a write to another one", async () => {
    const { project, setVariable, setAccount, putFile } = await furnished(w);
    const { where } = project;
    const openings: [what: string, work: () => Promise<unknown>, sets: number][] = [
      ["a variable", () => setVariable("A", "3"), 1],
      ["a deleted variable", () => deleteVariable(w.admin, where, "staging", "B"), 1],
      ["an account in two environments", () => setAccount("a", "other", "staging", "production"), 2],
      ["an account that leaves one of them", () => setAccount("a", "other", "staging"), 2],
      ["a deleted account", () => deleteAccount(w.admin, where, "a"), 1],
      ["a file", () => putFile("a", "other", "staging"), 0],
    ];
    for (const [what, work, sets] of openings) expect([what, (await openedBy(work)).length]).toEqual([what, sets]);
    const set = { where, environment: "staging", kind: "variables" } as const;
    const plan = await planRollback(w.admin, set, 1);
    expect(await openedBy(() => rollBack(w.admin, set, plan))).toHaveLength(2);
  });
});
