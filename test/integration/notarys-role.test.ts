import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { randomBytes } from "node:crypto";
import postgres from "postgres";
import { type Installation, openInstallation } from "../../src/installation/installation.ts";
import { kindsByRead } from "../../src/kinds/kind.ts";
import { Notary } from "../../src/notary/notary.ts";
import { openSigners } from "../../src/notary/signers.ts";
import { applyGrants } from "../../src/people/grants.ts";
import { parsePostgresUrl } from "../../src/settings/postgres-url.ts";
import { rightsIn, withPostgres } from "../support/postgres.ts";
import { openWorld, type World } from "../support/world.ts";

setDefaultTimeout(60_000);

withPostgres("the role of the notary", () => {
  let w: World;
  let installation: Installation;
  let raw: postgres.Sql;
  const role = `keyhole notary ${randomBytes(4).toString("hex")}`;

  beforeAll(async () => {
    w = await openWorld("postgres");
    const organization = await w.organization();
    await w.project(organization, "web", { variables: { production: { TOKEN: "a-token-that-no-notary-reads" } } });
    await w.run(`create role "${role}" login password 'of-a-test'`);
    await applyGrants(w.admin, role, "notary");
    const url = new URL(w.databaseUrl as string);
    url.username = encodeURIComponent(role);
    url.password = "of-a-test";
    installation = await openInstallation({ ...w.config, postgres: parsePostgresUrl(url.href, {}) }, () => {});
    raw = postgres(url.href, { max: 1, fetch_types: false, onnotice: () => {} });
  });
  afterAll(async () => {
    await raw?.end({ timeout: 1 });
    await w?.run(`drop owned by "${role}"`);
    await w?.run(`drop role "${role}"`);
    await w?.close();
  });

  test("does all that a notary does", async () => {
    const { keyring, systemKeys, checkpoint } = installation;
    const database = installation.open("notary");
    const signers = await openSigners(database, keyring, systemKeys.audit);
    const events: unknown[] = [];
    const log = ({ event }: { event?: unknown }) => events.push(event);
    const notary = new Notary({
      kindsByRead,
      database,
      auditKey: systemKeys.audit,
      signers,
      checkpoint,
      log,
      now: Date.now,
    });
    await notary.round();
    const organization = await w.organization();
    const { id } = await w.project(organization, "api", { variables: { production: { TOKEN: "another-token" } } });
    const key = await w.key(organization, {});
    await w.ask("/projects/api/variables?environment=production&keys=TOKEN", { key });
    await notary.round();
    await database.close();
    expect(await w.run("select name from last_reads where project_id = ?", [id])).toEqual([{ name: "TOKEN" }]);
    expect(events).toEqual(["signed_checkpoint", "signed_checkpoint"]);
    expect(notary.flaws).toBe(0);
  });

  test("has exactly these rights in the database", async () => {
    expect(await rightsIn(raw)).toEqual({
      // Of these four only what it compares with the record: see the next tests.
      api_keys: "SELECT",
      audit_checkpoints: "SELECT",
      audit_checkpoints_signed: "INSERT SELECT",
      audit_cosignatures: "INSERT SELECT",
      audit_exceptions: "INSERT SELECT",
      audit_heads: "SELECT",
      audit_leaves: "INSERT SELECT",
      audit_segments: "SELECT",
      audit_signers: "INSERT SELECT",
      last_reads: "INSERT SELECT UPDATE",
      last_reads_known: "INSERT SELECT UPDATE",
      organizations: "SELECT",
      projects: "SELECT",
      sets: "SELECT",
      system_keys: "SELECT",
      "drizzle.__drizzle_migrations": "SELECT",
    });
  });

  test.each([
    ["read a secret", "select * from sets"],
    ["read a key", "select * from api_keys"],
    ["read a value that is sealed", "select sealed from sets"],
    ["read the names of a set", "select listing from sets"],
    ["read a key's digest", "select digest from api_keys"],
    ["read what a key may do", "select projects from api_keys"],
    ["end an exception", "delete from audit_exceptions"],
    ["change an exception", "update audit_exceptions set found = 'x'"],
    ["change an audit entry", "update audit_segments set entries = 'x'"],
    ["add an audit entry", "insert into audit_segments select * from audit_segments"],
    ["change a leaf", "update audit_leaves set hashes = ''"],
    ["delete a leaf", "delete from audit_leaves"],
    ["delete a signed head", "delete from audit_checkpoints_signed"],
    ["delete a witness's signature", "delete from audit_cosignatures"],
    ["delete a last read", "delete from last_reads"],
    ["forget what it has read", "delete from last_reads_known"],
    ["take back a key", "delete from audit_signers"],
    ["empty the tree", "truncate audit_leaves"],
    ["change the installation's keys", "update system_keys set root_id = 'x'"],
    ["make a table", "create table more (a int)"],
  ])("may not %s", async (_, statement) => {
    await expect(raw.unsafe(statement)).rejects.toMatchObject({ code: "42501" });
  });
});
