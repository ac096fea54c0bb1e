/** The pages that begin with an empty PostgreSQL, and the units that they install. */
import { afterAll, afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newFolder } from "../support/folder.ts";
import { binary } from "../support/keyhole.ts";
import { blockOf } from "../support/markdown.ts";
import { adapt, makeBin, runPage } from "../support/page.ts";
import { freePort } from "../support/port.ts";
import { type Replica, startPrimary } from "../support/postgres.ts";
import { noteMissing, whereInstalled } from "../support/programs.ts";

setDefaultTimeout(120_000);

const docs = join(import.meta.dir, "../../docs");
const units = readdirSync(join(docs, "deploy")).filter((name) => /\.(service|timer)$/.test(name));

/** What each page takes for granted. */
const scenes: Readonly<Record<string, string>> = {
  "docs/least-privilege.md": "mkdir /etc/keyhole; (umask 077; openssl rand -base64 32 > /etc/keyhole/root.key)",
  "docs/production.md": "",
};

/** Programs that would change this machine, by others that do the same below a folder. `FOLDER` is put in. */
const standIns: Readonly<Record<string, string>> = {
  "apt-get": "exit 0",
  journalctl: "cat FOLDER/journal",
  runuser: 'shift 3; export PGHOST=HOST PGPORT=NUMBER PGUSER=USER PGPASSWORD=PASSWORD PGDATABASE=postgres; exec "$@"',
  "systemd-creds": 'if [ "$1" = encrypt ]; then openssl base64 -in "$3" -out "$4"; else openssl base64 -d -in "$3"; fi',
  // Starts what a unit of ours says, in the environment that it says.
  systemctl: `
name=\${!#}
case $name in *.timer) [ -f "FOLDER/etc/systemd/system/$name" ]; exit ;; keyhole*) ;; *) exit 0 ;; esac
[ "\${CLEAN:-}" ] || exec env -i CLEAN=1 PATH="$PATH" PORT=SERVED "$0" "$@"
umask 077
credentials=$(mktemp -d FOLDER/credentials-XXXXXX)
started=()
while IFS== read -r key value; do
  case $key in
    EnvironmentFile) set -a; . "$value"; set +a ;;
    Environment) export "\${value//%d/$credentials}" ;;
    StateDirectory) mkdir -p "FOLDER/var/lib/$value" ;;
    LoadCredentialEncrypted) systemd-creds decrypt --name=x "\${value#*:}" - > "$credentials/\${value%%:*}" ;;
    ExecStart) started+=("$value") ;;
  esac
done < "FOLDER/etc/systemd/system/$name.service"
for command in "\${started[@]}"; do
  case $command in
    *" serve") $command >> FOLDER/journal 2>&1 & echo $! >> FOLDER/pids ;;
    *" notary") $command >> FOLDER/journal 2>&1 & echo $! >> FOLDER/pids
      until grep -q '"event":"signed_checkpoint"' FOLDER/journal; do kill -0 $!; sleep 0.1; done ;;
    *) eval "$command" ;;
  esac
done`,
};

const cluster = await startPrimary();
if (cluster) describe("on an empty PostgreSQL, every command of", () => onPostgres(cluster));
else noteMissing(["pg_basebackup"], "the pages that begin with an empty PostgreSQL");

function onPostgres(cluster: Replica): void {
  const { hostname, port, username, password } = new URL(cluster.url);
  const address = `${hostname}:${port}`;
  let folder: string;

  beforeEach(() => {
    folder = newFolder();
  });
  afterEach(() => {
    const pids = join(folder, "pids");
    for (const pid of existsSync(pids) ? readFileSync(pids, "utf8").trim().split("\n") : []) {
      // The end of the page's terminal may have ended its server already.
      if (existsSync(`/proc/${pid}`)) process.kill(Number(pid));
    }
    const psql = [join(cluster.origin, "psql"), "--quiet", cluster.url];
    const drops = [
      ...["", "_check", "_restored"].map((name) => `DATABASE IF EXISTS keyhole${name} WITH (FORCE)`),
      "ROLE IF EXISTS keyhole_owner, keyhole_serve, keyhole_notary, keyhole_people",
    ];
    for (const what of drops) Bun.spawnSync([...psql, "-c", `DROP ${what}`]);
  });
  afterAll(() => cluster.stop());

  test.each(Object.keys(scenes))("%s", async (page) => {
    const served = String(freePort());
    const ops = String(freePort());
    const bin = makeBin(folder);
    const base = { HOME: folder, PATH: bin, TMPDIR: folder, KEYHOLE_ACTOR: "ann@laptop" };
    const env = { ...base, PORT: served, KEYHOLE_OPS_PORT: ops };
    const words = {
      "postgres://postgres@db.example.com/postgres": cluster.url,
      "db.example.com": address,
      "127.0.0.1:5432": address,
      "https://keyhole.example.com": `http://127.0.0.1:${served}`,
      "KEYHOLE_OPS_PORT=4101": `KEYHOLE_OPS_PORT=${ops}`,
      "KEYHOLE_OPS_PORT=4102": `KEYHOLE_OPS_PORT=${freePort()}`,
    };
    const scene = { folder, env, words, before: scenes[page] ?? "" };
    for (const name of ["psql", "pg_dump", "pg_restore", "createdb", "dropdb"]) {
      symlinkSync(join(cluster.origin, name), join(bin, name));
    }
    symlinkSync(binary, join(bin, "keyhole"));
    const own = { FOLDER: folder, HOST: hostname, NUMBER: port, USER: username, PASSWORD: password, SERVED: served };
    for (const [name, text] of Object.entries(standIns)) {
      const words = /\b(FOLDER|HOST|NUMBER|USER|PASSWORD|SERVED)\b/g;
      const filled = text.replace(words, (word) => own[word as keyof typeof own]);
      writeFileSync(join(bin, name), `#!${join(bin, "bash")}\nset -euo pipefail\n${filled}\n`, { mode: 0o755 });
    }
    for (const name of ["etc", "dist", "var"]) mkdirSync(join(folder, name));
    symlinkSync(binary, join(folder, "dist/keyhole"));
    for (const name of ["deploy", "prometheus"])
      cpSync(join(docs, name), join(folder, "docs", name), { recursive: true });
    for (const name of [...units, "keyhole-backup.sh"]) {
      const file = join(folder, "docs/deploy", name);
      writeFileSync(file, adapt(readFileSync(file, "utf8"), scene));
    }

    const day = () => new Date().toISOString().slice(0, 10);
    const before = day();
    const screen = await runPage(page, scene);
    const journal = existsSync(join(folder, "journal")) ? readFileSync(join(folder, "journal"), "utf8") : "";
    expect(`${screen}${journal}`).not.toContain("WARNING: the database role");
    if (page !== "docs/production.md") return;
    expect(screen).toContain('"status":"ready"');
    expect(screen).toContain("variables.read");
    expect(journal).toContain('"event":"signed_checkpoint"');
    expect(/\S+(?=\.dump)/.exec(screen)?.[0]).toMatch(new RegExp(`${before}|${day()}`)); // midnight may be between
    expect(screen).toContain("Every entry is unchanged");
    expect(readdirSync(join(folder, "etc/keyhole")).sort()).toEqual([
      ...["admin.env", "keyhole.env", "notary.env", "root.key.cred"],
    ]);

    const admin = join(folder, "etc/keyhole/admin.env");
    const [, owned = "", named = ""] = /^DATABASE_URL=(\S+@)(\S+)$/m.exec(readFileSync(admin, "utf8")) ?? [];
    const asOwner = (url: string, script: string) => {
      const words = `set -ea; . '${admin}'; DATABASE_URL='${url}'\n${script}`;
      return Bun.spawnSync([join(bin, "bash"), "-c", words], { cwd: folder, env });
    };
    const backups = join(folder, "var/backups/keyhole");
    /** @returns whether the script succeeded, and how many dumps it left */
    const backUp = (url: string) => {
      for (const dump of readdirSync(backups)) rmSync(join(backups, dump));
      const { success } = asOwner(url, `exec '${folder}/usr/local/sbin/keyhole-backup'`);
      return [success, readdirSync(backups).filter((name) => name.endsWith(".dump")).length];
    };
    const parameters = `host=${hostname}&port=${port}&sslmode=disable&application_name=nightly/backup`;
    expect(backUp(`${owned}/keyhole?${parameters}`)).toEqual([true, 1]);
    expect(backUp(`${owned}${address}`)).toEqual([false, 0]); // it names no database

    // Where PostgreSQL is a standby, nothing is dumped and nothing fails.
    const standby = await cluster.startStandby();
    const runuser = join(bin, "runuser");
    const onPrimary = readFileSync(runuser, "utf8");
    writeFileSync(runuser, onPrimary.replace(`PGPORT=${port}`, `PGPORT=${new URL(standby.url).port}`));
    expect(backUp(`${owned}${named}`)).toEqual([true, 0]);
    writeFileSync(runuser, onPrimary);
    await standby.stop();

    const blocks = ["pg_dump", "createdb"].map((word) => blockOf("docs/backup.md", "sh", word)).join("\n");
    const log = join(folder, "journal");
    const stood = { "postgres://keyhole_owner@db": `${owned}${address}`, "/var/log/keyhole.log": log };
    const superuser = `PGHOST=${hostname} PGPORT=${port} PGUSER=${username} PGPASSWORD=${password}\n`;
    const restored = asOwner(`${owned}${named}`, superuser + adapt(blocks, { ...scene, words: stood }));
    expect(restored.stderr.toString()).toContain("Every entry is unchanged");
    expect(restored.exitCode).toBe(0);

    // A dump that does not open is no backup.
    const damage = "UPDATE sets SET sealed = sealed || '\\x00' WHERE sealed IS NOT NULL";
    const psql = [join(bin, "runuser"), "-u", "postgres", "--", "psql", "keyhole", "-c", damage];
    expect(Bun.spawnSync(psql, { env }).exitCode).toBe(0);
    expect(backUp(`${owned}${named}`)).toEqual([false, 0]);
  });
}

whereInstalled(["systemd-analyze"], "the units of docs/deploy", (analyze) => {
  test("have nothing wrong, says systemd", () => {
    const system = newFolder();
    for (const path of ["etc/systemd/system", "usr/lib/systemd/system", "usr/local/bin", "usr/local/sbin", "bin"]) {
      mkdirSync(join(system, path), { recursive: true });
    }
    for (const unit of units) cpSync(join(docs, "deploy", unit), join(system, "etc/systemd/system", unit));
    for (const target of "sysinit basic multi-user network-online shutdown timers time-set time-sync".split(" ")) {
      writeFileSync(join(system, `usr/lib/systemd/system/${target}.target`), "[Unit]\nDescription=empty\n");
    }
    writeFileSync(join(system, "usr/lib/systemd/system/-.slice"), "[Unit]\nDescription=empty\n");
    for (const program of ["bin/keyhole", "sbin/keyhole-backup", "sbin/keyhole-follow", "sbin/keyhole-report"]) {
      writeFileSync(join(system, "usr/local", program), "", { mode: 0o755 });
    }
    writeFileSync(join(system, "bin/sh"), "", { mode: 0o755 });
    const verified = Bun.spawnSync([analyze, "verify", "--man=no", `--root=${system}`, ...units]);
    expect({ exitCode: verified.exitCode, said: verified.stderr.toString() }).toEqual({ exitCode: 0, said: "" });
  });
});
