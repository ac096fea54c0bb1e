import { beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { wordsOf } from "../../src/core/words/shell.ts";
import { binary } from "../support/keyhole.ts";
import { signAll } from "../support/notary.ts";
import { run } from "../support/program.ts";
import { keyOf, onPostgres, siteOf } from "../support/server.ts";

const canary = `canary-${randomBytes(8).toString("hex")}`;
const variables = "/projects/web/variables?environment=production";

/** On SQLite: integration/audit-list and audit-verify ask both. What commands print: transcripts/audit.txt. */
describe("the record of what left", () => {
  const site = siteOf("sqlite", { production: { TOKEN: canary } });
  const key = keyOf(site, "--org", "acme");
  let log: string;

  beforeAll(async () => {
    const server = await site.serve();
    for (let at = 0; at < 7; at++) await server.get(variables, key.key);
    const { id } = await site.key("--org", "acme", "--name", "gone");
    await site.sql("create table saved as select * from audit_heads");
    expect(await server.stop()).toBe(0);
    // So that the entry that is lost is a leaf of its own, whenever a server's notary made its rounds.
    await signAll(site);
    const next = await site.serve();
    await site.json(["key", "revoke", id]);
    expect(await next.stop()).toBe(0);
    log = join(site.folder, "keyhole.log");
    writeFileSync(log, server.said().stdout + next.said().stdout);
  });

  test("audit list --follow prints what is new as it comes, and Ctrl-C ends it well", async () => {
    const server = await site.serve();
    const child = site.onTerminal(["audit", "list", "--follow", "--limit", "1", "--key", key.id], 200);
    await child.shows("variables.read");
    await server.get(variables, key.key, { "x-request-id": "while-followed", "User-Agent": "\u00e9vil" });
    await child.shows("while-followed");
    child.kill("SIGINT");
    const { exitCode, screen } = await child.ended;
    expect(exitCode).toBe(0);
    expect(screen.trimEnd().split("\n")).toHaveLength(2);
    expect(await server.stop()).toBe(0);
  });

  const outputs = ["audit export", "audit export --format csv", "audit list", "audit list --follow", "org list --json"];
  test.each(outputs)("%s ends quietly if its reader has gone", async (args) => {
    // The program starts once nobody reads: `true` may be slow to end, and the pipe would hold what is written
    // before.
    const gone = "trap '' PIPE; while printf . 2>/dev/null; do :; done; trap - PIPE";
    const script = `{ ${gone}; exec "${binary}" ${args}; } | true; exit "\${PIPESTATUS[0]}"`;
    const ran = await run(["bash", "-c", script], { cwd: site.folder, env: site.env });
    expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
  });

  test("audit verify holds a log against the audit, and prints the line that accepts what is lost", async () => {
    await signAll(site);
    const [served] = await site.sql("select lane from audit_segments where lane <> 'commands' and first_seq = 7");
    const lane = served?.["lane"] as string;
    await site.sql("delete from audit_segments where lane = ? or (lane = 'commands' and first_seq > 5)", [lane]);
    await site.sql("delete from audit_heads");
    await site.sql("insert into audit_heads select * from saved");
    for (const slug of ["later", "last"]) await site.json(["org", "create", slug]);
    const server = await site.serve();
    await server.stop();
    const logs = [readFileSync(log), Buffer.from(`\n${server.said().stdout}`)];
    const verifyLog = (...args: readonly string[]) =>
      site.keyhole(["audit", "verify", "--checkpoint", "-", ...args], Buffer.concat(logs));
    type Flaw = { readonly lane: string; readonly seq: number; readonly lastSeq: number };
    const printed = await verifyLog();
    const [first, ...others] = printed.stderr.trimEnd().split("\n");
    expect(first).toBe("keyhole: Lane commands: entry 6 differs from the log's checkpoint.");
    expect(others).toEqual([
      `Lane ${lane}: entries 1 to 7 differ from the log's checkpoint.`,
      "If you know of these losses, such as from a failover, record that:",
      `  keyhole audit verify --checkpoint - --accept ${lane}:1-7`,
    ]);
    await site.sql("update audit_segments set entries = '{}' where first_seq = 3");
    const gaps = (JSON.parse((await verifyLog("--json")).stdout).flaws as Flaw[])
      .map((one) => `${one.lane}:${one.seq}-${one.lastSeq}`)
      .filter((gap) => !gap.startsWith("commands"));
    // Another entry is in the place of the one that the tree has: that is no loss.
    for (const changed of ["commands:3-3", "commands:6-6"])
      expect(await verifyLog("--accept", changed)).toMatchObject({ exitCode: 1, stdout: "" });
    expect(await verifyLog("--accept", "commands:4-4")).toMatchObject({ exitCode: 4, stdout: "" });
    const [, ...line] = wordsOf((await verifyLog()).stderr.split("\n").at(-2) ?? "") ?? [];
    expect(line).toEqual(["audit", "verify", "--checkpoint", "-", "--accept", gaps.join()]);
    const accepted = await site.keyhole(line, Buffer.concat(logs));
    expect(accepted).toMatchObject({ exitCode: 1, stdout: "" });
    expect(accepted.stderr).toBe(
      `keyhole: Lane commands: the chain breaks at entry 3.\n${first?.replace("keyhole: ", "")}\nAccepted as known losses: ${gaps.join(", ")}.\n`,
    );
    const listed = (await site.json(["audit", "list", "--action", "audit.accept"])) as { names: string[] }[];
    expect(listed.map(({ names }) => names[0])).toEqual(gaps);
  });
});

describe("backup and restore of the embedded database", () => {
  const site = siteOf("sqlite", { production: { TOKEN: canary } });

  test("a backup never replaces the database or the root key that it is made of", async () => {
    symlinkSync(site.data, join(site.folder, "link"));
    const retired = "root.key.retired-f92e5325b32739ff";
    writeFileSync(join(site.data, retired), "made up");
    const server = await site.serve();
    // Until then its notary writes, too.
    await server.says("signed_checkpoint");
    for (const own of ["keyhole.db", "keyhole.db-wal", "root.key", retired, "link/keyhole.db"]) {
      const path = own.startsWith("link/") ? own : join(site.data, own);
      const before = readFileSync(join(site.data, own.replace("link/", "")));
      const refused = await site.keyhole(["backup", path, "--force"]);
      expect(refused).toMatchObject({ exitCode: 2, stdout: "" });
      expect(refused.stderr).toEndWith("name another file for the backup.\n");
      expect(readFileSync(join(site.data, own.replace("link/", "")))).toEqual(before);
    }
    expect(await server.stop()).toBe(0);
    rmSync(join(site.data, retired));
  });
});

onPostgres("beside PostgreSQL", () => {
  const site = siteOf("postgres", {});

  test("a server under a role that can do more than serving needs says so", async () => {
    const server = await site.serve();
    await server.says("WARNING: the database role ");
    expect(server.said().stderr).toMatch(
      /WARNING: the database role \S+ can do more than serving needs: it .*\. `keyhole db grants` prints what is enough\.\n/,
    );
    expect(await server.stop()).toBe(0);
  });
});
