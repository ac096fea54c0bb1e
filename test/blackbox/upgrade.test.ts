import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fromSource, makeNewer } from "../support/from-source.ts";
import { runBinary } from "../support/keyhole.ts";
import { furnish, type Key, makeSite, onBoth, type Server, type Site } from "../support/server.ts";

/* What docs/upgrade.md says, done with the built program and a newer one that has a migration more. */

const root = join(import.meta.dir, "../..");
const variables = "/projects/web/variables?environment=production";
const refusal = "keyhole: The database was migrated by a newer Keyhole: start that version, or a newer one.\n";

onBoth("an upgrade", (dialect) => {
  let newer: string;
  let failing: string;
  let site: Site;
  let key: Key;
  let server: Server;
  const role = `keyhole_serve_${randomBytes(6).toString("hex")}`;

  beforeAll(async () => {
    const later = "ALTER TABLE organizations ADD COLUMN later text";
    newer = makeNewer(later);
    failing = makeNewer(`${later}; --> statement-breakpoint ALTER TABLE nowhere ADD COLUMN later text`);
    site = await furnish(await makeSite(dialect), { production: { TOKEN: "kept" } });
    key = await site.key("--org", "acme");
    server = await site.serve({ env: { KEYHOLE_OPS_PORT: "0" } });
  });
  afterAll(async () => {
    if (dialect === "postgres") await site?.sql(`drop owned by ${role}`).then(() => site.sql(`drop role ${role}`));
    await site?.remove();
    for (const folder of [newer, failing]) rmSync(folder, { recursive: true, force: true });
  });

  const run = (folder: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) => {
    const program = fromSource(folder);
    return runBinary(args, { ...program, cwd: site.folder, env: { ...program.env, ...site.env, ...env } });
  };
  const said =
    /^The tables were brought from version \d+ to version \d+, for Keyhole \S+: older programs cannot open this database any more\.\n$/;
  const failed = async () => ((await (await fetch(`${server.ops()}/readyz`)).json()) as { failed: string[] }).failed;
  const answers = async () => (await server.get(variables, key.key)).json<{ variables: object[] }>().variables;
  const kept = [expect.objectContaining({ key: "TOKEN", value: "kept" })];

  test("that fails changes nothing, and the older version goes on", async () => {
    expect((await run(failing, ["org", "list"])).exitCode).toBe(1);
    expect(await failed()).toEqual([]);
    expect(await answers()).toEqual(kept);
    expect(await site.keyhole(["org", "list"])).toMatchObject({ exitCode: 0 });
  });

  if (dialect === "postgres") {
    test("needs the owner of the tables", async () => {
      await site.sql(`create role ${role} login password 'of-a-test'`);
      await site.json(["db", "grants", "--role", role, "--apply"]);
      const url = new URL(site.env["DATABASE_URL"] ?? "");
      Object.assign(url, { username: role, password: "of-a-test" });
      const ran = await run(newer, ["serve", "--port", "0"], { DATABASE_URL: url.href });
      expect(ran).toMatchObject({ exitCode: 3, stdout: "" });
      expect(ran.stderr).toContain("lacks a right in the database");
      expect(await failed()).toEqual([]);
    });
  } else {
    test("can be rehearsed with a backup", async () => {
      expect(await site.keyhole(["backup", "before.db"])).toMatchObject({ exitCode: 0 });
      const verified = await run(newer, ["backup", "verify", "before.db"]);
      expect([verified.exitCode, said.test(verified.stderr)]).toEqual([0, false]);
      expect(await failed()).toEqual([]);
    });
  }

  test("is done by any command, beside a server that answers on and says that it is not ready", async () => {
    const { exitCode, stderr } = await run(newer, ["org", "list"]);
    expect([exitCode, stderr]).toEqual([0, expect.stringMatching(said)]);
    expect(await run(newer, ["org", "list"])).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await failed()).toEqual(["migrations"]);
    expect(await answers()).toEqual(kept);
    expect(await server.stop()).toBe(0);
  });

  test("has no way back but the backup", async () => {
    expect(readFileSync(join(root, "docs/upgrade.md"), "utf8")).toContain(`    ${refusal}`);
    for (const args of [
      ["org", "list"],
      ["serve", "--port", "0"],
    ]) {
      expect(await site.keyhole(args)).toEqual({ exitCode: 2, stdout: "", stderr: refusal });
    }
    if (dialect === "postgres") return;
    expect(await site.keyhole(["restore", "before.db", "--force", "--yes"])).toMatchObject({ exitCode: 0 });
    server = await site.serve();
    expect(await answers()).toEqual(kept);
    expect(await server.stop()).toBe(0);
  });
});
