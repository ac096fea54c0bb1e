import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runBinary } from "../support/keyhole.ts";
import { freePort } from "../support/port.ts";
import { clusterOwner } from "../support/postgres.ts";
import { withPrograms } from "../support/programs.ts";
import { eventually, onPostgres, siteOf } from "../support/server.ts";

/** The settings that the server asks for when a session begins; a pooler can be told to drop them. */
const settings =
  "statement_timeout, default_transaction_read_only, enable_seqscan, enable_hashjoin, enable_mergejoin, enable_material, enable_bitmapscan, enable_memoize, jit, max_parallel_workers_per_gather, plan_cache_mode, synchronous_commit, search_path";

onPostgres("PgBouncer before the database", () => {
  withPrograms(["pgbouncer"], "is not served through", (pgbouncer) => {
    const site = siteOf("postgres");
    const folder = mkdtempSync(join(tmpdir(), "keyhole-pooler-"));
    const poolers: Bun.Subprocess[] = [];
    beforeAll(() => site.json(["org", "create", "acme"]));
    afterAll(() => {
      for (const pooler of poolers) pooler.kill("SIGKILL");
      rmSync(folder, { recursive: true });
    });

    test.each([
      ["that refuses the settings of a session", ""],
      ["that drops them", `ignore_startup_parameters = ${settings}`],
    ])("one %s", async (_, line) => {
      const server = new URL(site.env["DATABASE_URL"] ?? "");
      const { hostname, username, password, pathname } = server;
      const port = freePort();
      const file = join(folder, `${port}.ini`);
      const target = `host=${hostname} port=${server.port} user=${username} password=${password}`;
      const lines = [
        `[databases]\n${pathname.slice(1)} = ${target}`,
        `[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =\nauth_type = any\n${line}\n`,
      ];
      writeFileSync(file, lines.join("\n"));
      // PgBouncer refuses to run as root.
      chmodSync(folder, 0o755);
      const options = { stdin: "ignore", stdout: "ignore", stderr: "ignore" } as const;
      poolers.push(Bun.spawn([pgbouncer ?? "", file], { ...options, ...clusterOwner()?.ids }));
      server.port = String(port);
      const ran = await eventually(async () => {
        const env = { ...site.env, DATABASE_URL: server.href };
        const tried = await runBinary(["serve", "--port", "0"], { cwd: site.folder, env });
        return tried.exitCode === 6 ? undefined : tried; // PgBouncer does not listen yet
      });
      expect(ran).toEqual({
        exitCode: 2,
        stdout: "",
        stderr: "keyhole: DATABASE_URL leads to a connection pooler such as PgBouncer: name PostgreSQL itself.\n",
      });
    });
  });
});
