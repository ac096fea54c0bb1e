import { expect, test } from "bun:test";
import { eventually } from "../support/eventually.ts";
import { binary } from "../support/keyhole.ts";
import { startNotary, unsigned } from "../support/notary.ts";
import { keyOf, lockAudit, makeSite, onBoth, siteOf } from "../support/server.ts";

const values = "/projects/web/variables?environment=staging";

onBoth("the notary", (dialect) => {
  const site = siteOf(dialect, { staging: { TOKEN: "canary-of-the-notary" } });
  const key = keyOf(site, "--org", "acme");
  const revoked = keyOf(site, "--org", "acme");
  const size = async () => {
    const [row] = await site.sql("select max(size) as size from audit_checkpoints_signed");
    return Number(row?.["size"] ?? 0);
  };
  test("takes in what is there when it starts, and signs it, and says so in its log", async () => {
    const server = await site.serve();
    for (let at = 0; at < 5; at++) expect((await server.get(values, key.key)).status).toBe(200);
    expect(await server.stop()).toBe(0);
    const notary = await startNotary(site);
    // With SQLite, the notary of the server before may have been first.
    const signed = (newest: number) =>
      `${server.said().stdout}${notary.said()}`
        .split("\n")
        .filter((line) => line.includes("signed_checkpoint"))
        .map((line) => JSON.parse(line) as { readonly note: string; readonly size: number })
        .find((one) => one.size === newest);
    await eventually(async () => (await site.sql(unsigned)).length === 0 && signed(await size()) !== undefined);
    expect(await notary.stop()).toBe(0);
    const { note = "" } = signed(await size()) ?? {};
    expect(note).toMatch(
      /^keyhole\/[0-9a-f]{16}\n\d+\n[^\n]{44}\naudit\.commands \d+\n\n— keyhole\/[0-9a-f]{16} \S+\n$/,
    );
    expect(notary.said()).not.toContain("canary");
  });

  test("names a row of its keys that somebody made up, and finds a key that was put back all the same", async () => {
    const { id, key: text } = revoked;
    await site.sql(`create table saved as select * from api_keys where id = '${id}'`);
    const putBack = async (from: string) => {
      await site.sql(`delete from api_keys where id = '${id}'`);
      await site.sql(`insert into api_keys select * from ${from}`);
    };
    await site.json(["key", "revoke", id]);
    await site.sql(`create table revoked as select * from api_keys where id = '${id}'`);
    await site.sql(`insert into audit_signers (generation, public_key, root_id, wrapped, created_at)
      select 2, public_key, root_id, wrapped, created_at from audit_signers`);
    await site.sql("delete from audit_signers where generation = 1");
    await putBack("saved");
    const notary = await startNotary(site);
    await notary.says("Row 2 of audit_signers was changed or made up: it does not open.");
    await notary.says(`key:${id} was put back or changed by other means`);
    expect(await notary.stop()).toBe(0);
    const server = await site.serve();
    expect((await server.get(values, text)).status).toBe(401);
    expect(await server.stop()).toBe(0);
    expect(await site.sql("select generation from audit_signers order by 1")).toEqual([
      ...[{ generation: 1 }, { generation: 2 }],
    ]);
    await putBack("revoked");
    for (const table of ["saved", "revoked"]) await site.sql(`drop table ${table}`);
    for (const rows of ["audit_exceptions", "audit_signers where generation = 2"])
      await site.sql(`delete from ${rows}`);
  });

  test("counts what is not in order in a metric", async () => {
    const flaws = async (ops: string) =>
      /^keyhole_audit_flaws (\d+)$/m.exec(await (await fetch(`${ops}/metrics`)).text())?.[1];
    const notary = await startNotary(site);
    expect(await flaws(notary.ops)).toBe("0");
    expect(await notary.stop()).toBe(0);
    await site.sql("update audit_segments set at = at + 1 where lane = 'commands' and first_seq = 2");
    await site.sql("delete from audit_leaves");
    await site.sql("delete from audit_checkpoints_signed");
    const again = await startNotary(site);
    await eventually(async () => (await flaws(again.ops)) === "1");
    await again.says("Lane commands: the chain breaks at entry 2.");
    expect(await again.stop()).toBe(0);
  });
});

test("the command refuses the embedded database, which has its notary in serve", async () => {
  const ran = Bun.spawnSync([binary, "notary"], { env: {}, cwd: "/tmp" });
  expect({ exitCode: ran.exitCode, stdout: ran.stdout.toString() }).toEqual({ exitCode: 2, stdout: "" });
  expect(ran.stderr.toString()).toContain("needs PostgreSQL (DATABASE_URL)");
});

test("its first start waits for nobody: it makes its key once the database can be written", async () => {
  const site = await makeSite("sqlite");
  await site.json(["org", "create", "acme"]);
  const unlock = await lockAudit(site);
  const server = await site.serve();
  await server.says('"event":"notary_failed","reason":"Another process keeps the embedded database locked');
  await unlock();
  await server.says("signed_checkpoint");
  expect(server.said().stdout.match(/notary_failed/g)).toHaveLength(1);
  expect(await server.stop()).toBe(0);
  await site.remove();
});
