import { afterAll, beforeAll, expect, setSystemTime, test } from "bun:test";
import { applyGrants, grantStatements, renewGrants } from "../../src/people/backup/grants.ts";
import { createKey, revokeKey } from "../../src/people/keys/keys.ts";
import { Overused } from "../../src/record/job-reads.ts";
import { auditPartitions, makeAuditMonths, monthOf, monthsAhead } from "../../src/record/store/audit-months.ts";
import { type OpenKeyhole, openKeyhole } from "../../src/serve/process/compose.ts";
import { summed } from "../../src/serve/process/metrics.ts";
import { pruneJobReads } from "../../src/store/expiry.ts";
import { rightsBeyondServing } from "../../src/store/rights.ts";
import { entry } from "../support/journal.ts";
import { connectAgent } from "../support/mcp.ts";
import { notarize } from "../support/notarize.ts";
import { rejectRequest, setVariables } from "../support/plans.ts";
import { withPostgres } from "../support/postgres.ts";
import { forbidden, roleOf } from "../support/role.ts";
import { type Client, clientOf, everything, type Key, type Placed } from "../support/world.ts";

/** The clock stands: else a month might end between two tests. */
const now = Date.now();
beforeAll(() => void setSystemTime(now));
afterAll(() => void setSystemTime());
const month = monthOf(now).name;

withPostgres("the role that serve runs under", () => {
  let keyhole: OpenKeyhole;
  let client: Client;
  let key: Key;
  let project: Placed;
  /** The partitions for entries. There is one more if the database was made in the month before. */
  let months: readonly string[];
  // CVE-2026-39946: a name that must be quoted.
  const as = roleOf("serve", () => keyhole?.close(), 'k"Rôle"; drop table sets; --');
  const { w, name: role, quoted, installation, run } = as;

  beforeAll(async () => {
    months = (await auditPartitions(w.admin.database)).parts.map(({ name }) => name);
    const organization = await w.organization();
    project = await w.project(organization, "web", {
      variables: { production: { TOKEN: "a-token-of-grants" } },
      accounts: [{ name: "admin", environments: ["production"], values: { user: "root" } }],
      files: [{ path: "a.pem", environments: ["production"], content: "a-file-of-grants" }],
    });
    key = await w.key(organization, { ...everything });
    keyhole = await openKeyhole(installation, (event) => w.log.push(event), { mcpOrigins: [] });
    client = clientOf(keyhole);
  });

  test("is that role and no other", async () => expect(await run("select current_user as role")).toEqual([{ role }]));

  test("gets what an upgrade brings, and keeps what else it has; a role of somebody else gets nothing", async () => {
    const readers = `${role.slice(-8)}_readers`;
    await w.run(`create role "${readers}"`);
    await w.run(`grant select on audit_segments to "${readers}"`);
    await w.run(`revoke select on audit_exceptions, audit_leaves from ${quoted}`);
    await w.run(`revoke insert on key_uses from ${quoted}`);
    await w.run(`grant select on audit_cosignatures to ${quoted}`);
    expect(await renewGrants(w.admin)).toEqual([{ role, use: "serve" }]);
    const may = (who: string, table: string, right: string) =>
      w.sql`select has_table_privilege(${who}, ${table}, ${right}) as may`.then(([row]) => row?.["may"]);
    for (const table of ["audit_exceptions", "audit_leaves", "audit_cosignatures"]) {
      expect([table, await may(role, table, "SELECT")]).toEqual([table, true]);
    }
    expect(await may(role, "key_uses", "INSERT")).toBe(true);
    expect(await may(readers, "audit_exceptions", "SELECT")).toBe(false);
    await w.run(`revoke select on audit_cosignatures from ${quoted}`);
    await w.run(`drop owned by "${readers}"`);
    await w.run(`drop role "${readers}"`);
  });

  test("must be able to prove that a commit waited for its standby: else nothing in doubt counts as stored", async () => {
    const store = installation.openJournal();
    const batch = { lane: "of-the-grants", firstSeq: 1, lastSeq: 1, at: Date.now(), mac: Buffer.alloc(32) };
    const append = (again: boolean) => store.append({ ...batch, texts: "[]", entries: "{}" }, again);
    expect(await append(false)).toEqual({ outcome: "durable" });
    await w.run("revoke execute on function pg_logical_emit_message(boolean, text, text) from public");
    const reason = expect.stringContaining("may not call pg_logical_emit_message");
    expect(await append(true)).toEqual({ outcome: "unknown", reason });
    await w.run("grant execute on function pg_logical_emit_message(boolean, text, text) to public");
    expect(await append(true)).toEqual({ outcome: "durable" });
    await store.close();
    await w.run("delete from audit_segments where lane = 'of-the-grants'");
  });

  test("answers every endpoint", async () => {
    const where = "project=web&environment=production";
    for (const path of [
      ...["/organization", "/projects", "/projects/web", "/projects/web/variables?environment=production"],
      ...["/projects/web/variables?environment=production&keys=TOKEN", "/projects/web/variables?metadata_only=true"],
      ...["/projects/web/accounts?environment=production", "/projects/web/accounts?metadata_only=true"],
      `/files?${where}`,
      `/files?${where}&metadataOnly=true`,
      `/secrets?${where}`,
    ]) {
      expect({ path, status: (await client.ask(path, { key })).status }).toEqual({ path, status: 200 });
    }
    expect((await client.ask("/projects/none", { key })).status).toBe(404);
  });

  test("is ready by every check", async () => {
    const { ready, checks } = await keyhole.readiness();
    expect({ ready, checks }).toMatchObject({ ready: true, checks: { database: true, audit: true } });
  });

  test("compares the tree with what this host has seen, and reads no entry of the audit", async () => {
    await notarize(w);
    const { size, signed } = await installation.checkpoint.compare(keyhole.database);
    expect(size).toBeGreaterThan(0);
    expect([signed?.size, installation.checkpoint.refusal]).toEqual([size, undefined]);
    await expect(run("select 1 from audit_segments")).rejects.toMatchObject(forbidden);
    await expect(run("delete from audit_leaves")).rejects.toMatchObject(forbidden);
  });

  test("counts the reads of jobs, and forgets those that are not needed", async () => {
    const read = { trustId: "trust-1", job: "00", readsMax: 1, keptMs: -1 };
    expect(await keyhole.journal.record([entry], read)).toBeString();
    await expect(keyhole.journal.record([entry], read)).rejects.toBeInstanceOf(Overused);
    const background = installation.open("journal");
    await pruneJobReads(background);
    await background.close();
    expect(await w.sql`select 1 as one from job_reads`).toEqual([]);
  });

  test("records what left, and when the key was last used", async () => {
    const answer = await client.ask("/projects/web/variables?environment=production", { key });
    expect(answer.json).toMatchObject({ variables: [{ key: "TOKEN", value: "a-token-of-grants" }] });
    expect((await w.audit(key)).at(-1)).toMatchObject({ names: ["TOKEN"], actor: { id: key.id } });
    // Another process notes a later use of the same key: the role may change a row, too.
    const other = await openKeyhole(installation, () => {});
    await w.sql`insert into key_uses (key_id, last_used_at) values (${key.id}, 1)
      on conflict (key_id) do update set last_used_at = 1`;
    await clientOf(other).ask("/organization", { key });
    await other.close();
    const [use] = await w.sql`select last_used_at as at from key_uses where key_id = ${key.id}`;
    expect(use?.["at"]).toBeGreaterThan(1_700_000_000_000);
  });

  test("may look for what expires next", async () => {
    const all = { projects: null, environments: null };
    await createKey(w.admin, { organization: project.organization, ...all, expiresInMs: 1e9 });
    const variable = { name: "MARKED", value: "1", rotateBy: "2099-01-31" };
    await setVariables(w.admin, project.where, "staging", [variable]);
    const metered = await openKeyhole(installation, () => {}, { metered: true });
    const text = await summed([(await metered.metrics?.scrape()) ?? []], await metered.readiness());
    await metered.close();
    for (const kind of ["key", "variable"]) expect(text).toContain(`keyhole_next_expiry_days{kind="${kind}"} `);
  });

  test("files the request of an agent, and tells what became of it", async () => {
    const { call } = await connectAgent(client, key);
    const asked = { project: "web", environment: "production", name: "NEW", reason: "a test" };
    const { id } = (await call("request_variable", asked)).found as { id: string };
    await rejectRequest(w.admin, id, "not needed");
    expect((await call("get_request", { id })).found).toEqual({ id, status: "rejected", reason: "not needed" });
    expect((await w.audit(key)).at(-1)).toMatchObject({ action: "request.file", names: [id, "NEW"] });
  });

  test("sees a revocation on the next request", async () => {
    const short = await w.key({ slug: project.organization } as never);
    expect((await client.ask("/organization", { key: short })).status).toBe(200);
    await revokeKey(w.admin, short.id);
    expect((await client.ask("/organization", { key: short })).status).toBe(401);
  });

  test("has exactly these rights in the database", async () => {
    expect(await as.rights()).toEqual({
      ...Object.fromEntries(
        [
          ...["api_keys", "audit_checkpoints_signed", "audit_exceptions", "audit_heads", "audit_leaves"],
          ...["audit_signers", "data_keys", "file_contents", "organizations", "projects", "sets", "system_keys"],
          "keyhole_migrations",
        ].map((name) => [name, "SELECT"]),
      ),
      audit_segments: "INSERT",
      ...Object.fromEntries(months.map((name) => [name, "INSERT"])),
      job_reads: "DELETE INSERT SELECT UPDATE",
      key_uses: "INSERT SELECT UPDATE",
      variable_requests: "INSERT SELECT",
    });
    const [schema] = await run(`select has_schema_privilege('public', 'CREATE') as makes,
      has_column_privilege('key_uses', 'key_id', 'UPDATE') as renames`);
    expect(schema).toEqual({ makes: false, renames: false });
    // And it owns nothing.
    for (const statement of ["drop table sets", "alter table sets disable trigger all"]) {
      await expect(run(statement)).rejects.toMatchObject(forbidden);
    }
  });

  test("appends to each month that is made, and without that right no value leaves and no server starts", async () => {
    const read = () => client.ask("/projects/web/variables?environment=production", { key });
    const start = () => openKeyhole(installation, () => {}).then((started) => started.close());
    await makeAuditMonths(w.admin.database, Date.UTC(2039, 0));
    await start();
    await w.run(`revoke insert on ${month} from ${quoted}`);
    const [refused, failed] = [await read(), await start().catch((error: unknown) => error)];
    expect([refused.status, refused.json]).toMatchObject([503, { code: "unavailable" }]);
    expect(JSON.stringify(w.log.at(-1))).toContain("run `keyhole db grants --role NAME --apply`");
    const how = `run \`keyhole db grants --role ${role} --apply\``;
    expect(String(failed)).toContain(`may not append to ${month}: ${how}`);
    await renewGrants(w.admin);
    expect((await read()).status).toBe(200);
    await start();
    await w.run(`drop table ${Array.from({ length: monthsAhead + 1 }, (_, at) => monthOf(Date.UTC(2039, at)).name)}`);
  });

  test("passes the check of its rights, and makes no months", async () => {
    expect(await rightsBeyondServing(keyhole.database)).toEqual({ role, beyond: [] });
    expect(await makeAuditMonths(keyhole.database, Date.UTC(2040, 1, 1))).toEqual([]);
  });

  test("fails the check if it can do more, and granting again narrows it", async () => {
    const beyond = async () => (await rightsBeyondServing(keyhole.database)).beyond;
    await w.run(`grant update (sealed) on sets to ${quoted}`);
    await w.run(`grant insert on api_keys to ${quoted}`);
    expect(await beyond()).toEqual(["may change api_keys, sets"]);
    await w.run(`grant update (status) on variable_requests to ${quoted}`);
    expect(await beyond()).toEqual(["may change api_keys, sets, variable_requests"]);
    await w.run(`revoke update (status) on variable_requests from ${quoted}`);
    await w.run(`grant delete on audit_segments to ${quoted}`);
    await w.run(`grant select on audit_entries to ${quoted}`);
    expect(await beyond()).toEqual(["may change api_keys, audit_segments, sets"]);
    await applyGrants(w.admin, role);
    expect(await beyond()).toEqual([]);
    await expect(run("select * from audit_entries")).rejects.toMatchObject(forbidden);
    await w.run(`grant delete on audit_segments_default to ${quoted}`);
    expect(await beyond()).toEqual(["may change audit_segments"]);
    await w.run(`revoke delete on audit_segments_default from ${quoted}`);
    await w.run(`alter role ${quoted} createrole`);
    expect(await beyond()).toEqual(["may make roles"]);
    await w.run(`alter role ${quoted} nocreaterole superuser`);
    expect(await beyond()).toEqual(["is a superuser"]);
    await expect(applyGrants(w.admin, role)).rejects.toThrow("is a superuser, which no grant can restrict");
    await w.run(`alter role ${quoted} nosuperuser`);
    expect(await beyond()).toEqual([]);
  });

  test("prints the statements that it applies, and does not make a role", async () => {
    const statements = await grantStatements(w.admin, 'of "Ann"');
    const appended = ["audit_segments", "variable_requests", ...months].map((name) => `public."${name}"`).join(", ");
    expect(statements.at(-3)).toBe(`GRANT INSERT ON ${appended} TO "of ""Ann""";`);
    const absent = 'There is no role "nobody here": create it first';
    await expect(applyGrants(w.admin, "nobody here")).rejects.toThrow(absent);
    await expect(grantStatements(w.admin, "")).rejects.toThrow("A role name must have 1 to 63 bytes");
    await expect(grantStatements(w.admin, 'a"\0')).rejects.toThrow("no control characters");
    await expect(grantStatements(w.admin, "é".repeat(32))).rejects.toThrow("A role name must have 1 to 63 bytes");
  });
});
