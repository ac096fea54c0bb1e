/** docs/upgrade.md on PostgreSQL as it is printed: up from 0.2.0, up to a newer version, and back from that. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bodyOf, type Expected, loadDump, releaseFile } from "../releases/release.ts";
import { ask } from "../support/connection.ts";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { fromSource, makeNewer } from "../support/from-source.ts";
import { binary } from "../support/keyhole.ts";
import { blockOf, readPage } from "../support/markdown.ts";
import { adapt, makeBin } from "../support/page.ts";
import { freePort } from "../support/port.ts";
import { type Postgres, runOn, startPrimary } from "../support/postgres.ts";
import { run, startProgram } from "../support/program.ts";
import { skipWithout } from "../support/programs.ts";

setDefaultTimeout(240_000);

const name = "an upgrade on PostgreSQL, as the page prints it";
const cluster = await startPrimary();
if (cluster === undefined) skipWithout(["pg_basebackup"], name);
else describe(name, () => withCluster(cluster));

function withCluster(cluster: Postgres): void {
  const { host, hostname, port, username, password } = new URL(cluster.url);
  const urlOf = (role: string) => `postgres://keyhole_${role}:of-a-test@${host}/keyhole`;
  const { reads } = (JSON.parse(releaseFile("0.2.0/expected.json")) as { postgres: Expected }).postgres;
  const read = reads.find(({ path, status }) => path.includes("/variables?") && status === 200);
  let folder: string;
  let newer: string;
  let bin: string;

  beforeAll(async () => {
    folder = newFolder();
    newer = makeNewer("CREATE TABLE later (id text)");
    bin = makeBin(folder);
    for (const one of ["psql", "pg_dump", "pg_restore", "createdb"])
      symlinkSync(join(cluster.origin, one), join(bin, one));
    writeFileSync(join(bin, "systemctl"), `#!${join(bin, "bash")}\necho "$@" >> '${folder}/systemctl'\n`, {
      mode: 0o755,
    });
    mkdirSync(join(folder, "usr/local/bin"), { recursive: true });
    for (const role of ["owner", "serve", "notary"]) {
      await runOn(cluster.url, `create role keyhole_${role} login password 'of-a-test'`);
    }
    await runOn(cluster.url, "create database keyhole owner keyhole_owner encoding 'UTF8' template template0");
    await loadDump(urlOf("owner"), "0.2.0/keyhole.sql");
    await runOn(urlOf("owner"), "grant insert on audit_segments to keyhole_serve"); // as `db grants` of 0.2.0 did
  });
  afterAll(async () => {
    await cluster.stop();
    for (const one of [folder, newer]) rmSync(one, { recursive: true, force: true });
  });

  const settings = () => ({
    PATH: `${folder}/usr/local/bin:${bin}`,
    HOME: folder,
    KEYHOLE_ROOT_KEY: releaseFile("0.2.0/root-key").trim(),
  });
  /** Pastes the block of the page that has this, as the owner of the tables and with a superuser's settings. */
  const paste = async (part: string) => {
    const env = { ...settings(), PGHOST: hostname, PGPORT: port, PGUSER: username, PGPASSWORD: password };
    const script = `set -e\n${adapt(blockOf("docs/upgrade.md", "", part), { folder, env })}`;
    const owned = { ...env, DATABASE_URL: urlOf("owner") };
    const { exitCode, stderr } = await run([join(bin, "bash"), "-c", script], { cwd: folder, env: owned });
    expect([stderr, exitCode]).toEqual([stderr, 0]);
  };
  const installable = (file: string, command: readonly string[]) => {
    const words = command.map((word) => `'${word}'`).join(" ");
    writeFileSync(join(folder, file), `#!${join(bin, "bash")}\nexec ${words} "$@"\n`, { mode: 0o755 });
  };
  const keyhole = (...words: string[]) =>
    run([join(folder, "usr/local/bin/keyhole"), ...words], {
      cwd: folder,
      env: { ...settings(), DATABASE_URL: urlOf("owner") },
    });
  /** Serves and signs with what is installed now, until a value of 0.2.0 is read and its entry is below a signed head. */
  const works = async () => {
    const start = (command: string, role: string, ops: number, ...words: string[]) =>
      startProgram([join(folder, "usr/local/bin/keyhole"), command, ...words], {
        cwd: folder,
        env: {
          ...settings(),
          DATABASE_URL: urlOf(role),
          KEYHOLE_OPS_PORT: String(ops),
          KEYHOLE_CHECKPOINT_FILE: join(folder, `seen-by-${role}`),
        },
      });
    const [api, ops] = [freePort(), freePort()];
    const server = start("serve", "serve", ops, "--port", String(api));
    try {
      await eventually(
        async () => (await fetch(`http://127.0.0.1:${ops}/readyz`).catch(() => undefined))?.status === 200,
      );
      const { key = "", path = "", status, body } = read ?? {};
      const answer = await ask(`http://127.0.0.1:${api}/api/v1${path}`, { Authorization: `Bearer ${key}` });
      expect([answer.status, bodyOf(answer)]).toEqual([status, body]);
      const notary = start("notary", "notary", freePort());
      await notary.says('"event":"signed_checkpoint"').finally(() => notary.stop());
    } finally {
      await server.stop();
    }
    expect(await keyhole("audit", "verify")).toMatchObject({ exitCode: 0 });
  };

  test("comes from 0.2.0, after which the notary gets its rights", async () => {
    installable("keyhole-new", [binary]);
    await paste("pg_dump");
    expect(readPage("CHANGELOG.md").replaceAll(/\s+/g, " ")).toContain(
      "`keyhole_notary` with `keyhole db grants --for notary --apply`",
    );
    expect(await keyhole("db", "grants", "--for", "notary", "--apply")).toMatchObject({ exitCode: 0 });
    await works();
  });

  test("goes to a newer version, and back to the end", async () => {
    const { as, program, env } = fromSource(newer);
    installable("keyhole-new", ["env", ...Object.entries(env).map((one) => one.join("=")), ...as, program]);
    await paste("pg_dump");
    await works();

    installable("usr/local/bin/keyhole", [binary]);
    expect(await keyhole("org", "list")).toMatchObject({ exitCode: 6 });
    await paste("createdb");
    await paste("accept-restore");
    await works();
    const [restart, again, start] = readFileSync(join(folder, "systemctl"), "utf8").trim().split("\n");
    const both = "keyhole keyhole-notary";
    expect([restart, again, start]).toEqual([`restart ${both}`, `restart ${both}`, `start ${both}`]);
    expect(await runOn(cluster.url, "select from pg_database where datname = 'keyhole_newer'")).toHaveLength(1);
  });
}
