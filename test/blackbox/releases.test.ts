import { Database as SqliteFile } from "bun:sqlite";
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { bodyOf, type Expected, earlierRootKey, loadDump, releaseFile, tokenOf } from "../releases/release.ts";
import { fromSource, makeNewer, type Program } from "../support/from-source.ts";
import { binary, runBinary, runJson } from "../support/keyhole.ts";
import { type Dialect, makeSite, onBoth, type Site } from "../support/server.ts";

/* Every database of a release opens in this version and in later ones, whole, for ever: see `test/releases/make.ts`. */

setDefaultTimeout(120_000);

const root = join(import.meta.dir, "../..");
const releases = join(root, "test/releases");
const versions = readdirSync(releases, { withFileTypes: true }).flatMap((one) => (one.isDirectory() ? one.name : []));
const tenYearsMs = 10 * 365 * 86_400_000;

let newer: string;
beforeAll(() => {
  newer = makeNewer("ALTER TABLE organizations ADD COLUMN later text");
});
afterAll(() => rmSync(newer, { recursive: true, force: true }));

test("this version has left a database for later ones, once it is released", async () => {
  const { version } = await Bun.file(join(root, "package.json")).json();
  expect([...versions, "0.3.0-dev"]).toContain(version);
});

for (const version of versions) {
  onBoth(`a database of ${version}`, (dialect) => {
    test("holds a row in every table", async () => {
      await using site = await restored(version, dialect);
      const tables = await site.sql(
        dialect === "sqlite"
          ? "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'"
          : "select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition",
      );
      expect(tables.length).toBeGreaterThan(10);
      // After a flaw, or with a witness.
      const special = ["audit_exceptions", "audit_cosignatures"];
      for (const { name } of tables.filter(({ name }) => !special.includes(String(name)))) {
        expect([name, await site.sql(`select 1 as row from ${name} limit 1`)]).toEqual([name, [{ row: 1 }]]);
      }
    });

    test("was made by migrations that stand in drizzle/ unchanged", async () => {
      await using site = await restored(version, dialect);
      const table = dialect === "sqlite" ? "__drizzle_migrations" : "drizzle.__drizzle_migrations";
      const applied = await site.sql(`select hash, created_at as at from ${table} order by created_at`);
      const folder = join(root, "drizzle", dialect);
      const { entries } = await Bun.file(join(folder, "meta/_journal.json")).json();
      const ours = (entries as { tag: string; when: number }[]).map(({ tag, when }) => {
        const text = readFileSync(join(folder, `${tag}.sql`));
        return { hash: new Bun.CryptoHasher("sha256").update(text).digest("hex"), at: when };
      });
      expect(applied.length).toBeGreaterThan(0);
      expect(applied.map(({ hash, at }) => ({ hash, at: Number(at) }))).toEqual(ours.slice(0, applied.length));
    });

    // The seals that came after 0.2.0.
    if (version === "0.2.0") {
      test("is sealed by its upgrade, and only then: what is put back afterwards is refused", async () => {
        await using site = await restored(version, dialect);
        const asHex = dialect === "sqlite" ? "hex(wrapped)" : "encode(wrapped, 'hex')";
        const [old] = await site.sql(`select ${asHex} as hex from system_keys where purpose = 'grant'`);
        expect(await site.keyhole(["org", "list"])).toMatchObject({ exitCode: 6, stdout: "" });
        expect(await site.json(["db", "upgrade"])).toMatchObject({ from: 1 });
        const organizations = (await site.json(["org", "list"])) as { slug: string }[];
        const slug = organizations[0]?.slug ?? "";
        const projects = (await site.json(["project", "list", slug])) as { environments: unknown }[];
        for (const { environments } of projects) expect(environments).toEqual(["development", "staging", "production"]);
        expect(await site.sql("select id from organizations where seal is null")).toEqual([]);
        expect(await site.sql("select version from set_versions where listing_mac is null")).toEqual([]);
        expect(await site.sql("select lane from audit_heads where seal is null")).toEqual([]);
        await site.json(["person", "add", "ana", "--org", slug]);

        await site.sql("update organizations set seal = null");
        for (const args of [
          ["project", "list", slug],
          ["project", "create", `${slug}/more`],
        ]) {
          const { exitCode, stderr } = await site.keyhole(args);
          expect([exitCode, stderr]).toEqual([1, expect.stringContaining("was changed by other means than Keyhole")]);
        }
        expect(await site.sql("select id from organizations where seal is not null")).toEqual([]);
        const bytes = dialect === "sqlite" ? `x'${old?.["hex"]}'` : `'\\x${old?.["hex"]}'`;
        await site.sql(`update system_keys set wrapped = ${bytes} where purpose = 'grant'`);
        const { exitCode, stderr } = await site.keyhole(["org", "list"]);
        expect([exitCode, stderr]).toEqual([expect.any(Number), expect.stringContaining("of different ages")]);
        expect(exitCode).not.toBe(0);
      });
    }

    test("opens whole in this version", () => expectWhole(version, dialect, { as: [], program: binary, env: {} }, 0));

    test("opens whole in a newer one, ten years from now", () =>
      expectWhole(version, dialect, fromSource(newer, tenYearsMs), tenYearsMs));
  });
}

/*
 * Builds before 0.3.0 had tables that no release has. f841f4c wrote this, with a variable in two versions, an account, a
 * file, a person, a read and a signed head. Its root key is of no use elsewhere.
 */
onBoth("a database of a build before 0.3.0", (dialect) => {
  const key = {
    sqlite: "kh_GiCb7fb67XiizsSK4y3CWVVf5Xj1oIqwA4HhzXMokVa2sitUK",
    postgres: "kh_VHw67cbj4cIOMNpvqLnQqksG0od3X11s4mftQZTHxQm3kG01L",
  }[dialect];

  test.each(["this version", "a newer one"])("is upgraded and opens whole in %s", async (which) => {
    const program = which === "this version" ? { as: [], program: binary, env: {} } : fromSource(newer);
    const made = await makeSite(dialect, undefined, { KEYHOLE_ROOT_KEY: earlierRootKey });
    await using site = { ...made, [Symbol.asyncDispose]: made.remove };
    if (dialect === "postgres") await loadDump(site.env["DATABASE_URL"] ?? "", "f841f4c.postgres.sql");
    else {
      mkdirSync(site.data, { mode: 0o700 });
      using file = new SqliteFile(join(site.data, "keyhole.db"));
      file.exec(releaseFile("f841f4c.sqlite.sql"));
    }
    const options = { ...program, cwd: site.folder, env: { ...site.env, ...program.env } };
    const before = await runBinary(["org", "list"], options);
    const { from, to } = (await runJson(["db", "upgrade"], options)) as { from: number; to: number };
    expect([from, before.exitCode]).toEqual([8, from < to ? 6 : 0]);
    expect(await runJson(["audit", "verify"], options)).toMatchObject({ verified: true, entries: 10 });
    expect(await runJson(["person", "show", "ana"], options)).toMatchObject({ name: "ana" });
    const server = await site.serve(options);
    const read = async (path: string) => bodyOf(await server.get(path, key)) as Record<string, object[]>;
    const variables = async () => (await read("/projects/web/variables?environment=production"))["variables"];
    expect(await variables()).toMatchObject([{ key: "TOKEN", value: "second" }]);
    const { accounts } = await read("/projects/web/accounts");
    expect(accounts).toMatchObject([{ values: { user: "shop@example.com" } }]);
    const content = Buffer.from("made up\n").toString("base64");
    expect((await read("/files?project=web&environment=production"))["files"]).toMatchObject([{ content }]);
    await runJson(["rollback", "acme/web", "production", "variables", "--to", "2", "--yes"], options);
    expect(await variables()).toMatchObject([{ key: "TOKEN", value: "first" }]);
    expect(await server.stop()).toBe(0);
  });
});

/** A site with a copy of this database. */
async function restored(version: string, dialect: Dialect): Promise<Site & AsyncDisposable> {
  const folder = join(releases, version);
  const rootKey = releaseFile(`${version}/root-key`).trim();
  const site = await makeSite(dialect, undefined, { KEYHOLE_ROOT_KEY: rootKey });
  if (dialect === "sqlite") {
    mkdirSync(site.data, { mode: 0o700 });
    copyFileSync(join(folder, "keyhole.db"), join(site.data, "keyhole.db"));
  } else {
    await loadDump(site.env["DATABASE_URL"] ?? "", `${version}/keyhole.sql`);
  }
  return { ...site, [Symbol.asyncDispose]: site.remove };
}

/** Lists, reads and verifies all of it, rolls each kind of item back, and seals everything under new data keys. */
async function expectWhole(version: string, dialect: Dialect, program: Program, clockMovedMs: number): Promise<void> {
  await using site = await restored(version, dialect);
  const all = await Bun.file(join(releases, version, "expected.json")).json();
  const { commands, reads, trusted, rollbacks } = all[dialect] as Expected;
  const options = { ...program, cwd: site.folder, env: { ...site.env, ...program.env } };
  if (dialect === "sqlite") {
    expect(await runBinary(["backup", "before.db"], options)).toMatchObject({ exitCode: 0 });
    expect(await runBinary(["backup", "verify", "before.db"], options)).toMatchObject({ exitCode: 0 });
  }
  expect(await runBinary(["db", "upgrade"], options)).toMatchObject({ exitCode: 0 });
  const verifyAudit = async () => expect(await runJson(["audit", "verify"], options)).toMatchObject({ verified: true });

  await Promise.all(
    commands.map(async ({ args, printed }) => {
      expect([args, await runJson(args, options)]).toMatchObject([args, printed]);
    }),
  );
  await verifyAudit();
  if (dialect === "sqlite") {
    expect(await runBinary(["backup", "copy.db"], options)).toMatchObject({ exitCode: 0 });
    expect(await runBinary(["backup", "verify", "copy.db"], options)).toMatchObject({ exitCode: 0 });
  }
  const server = await site.serve(options);
  const token = { key: tokenOf(trusted, clockMovedMs), path: trusted.path, status: 200, body: trusted.body };
  for (const { key, path, ...answer } of [...reads, token]) {
    const found = await server.get(path, key);
    expect({ path, status: found.status, body: bodyOf(found) }).toMatchObject({ path, ...answer });
  }
  for (const { args, read } of rollbacks) {
    expect(await runJson(args, options)).toMatchObject({ warnings: [] });
    expect(bodyOf(await server.get(read.path, read.key))).toMatchObject(read.body as object);
  }
  expect(await runJson(["rotate", "data"], options)).toMatchObject({ broken: [] });
  for (const { read } of rollbacks) {
    expect(bodyOf(await server.get(read.path, read.key))).toMatchObject(read.body as object);
  }
  expect(await server.stop()).toBe(0);
  await verifyAudit();
}
