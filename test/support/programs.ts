import { describe, test } from "bun:test";
import { appendFileSync } from "node:fs";
import { delimiter } from "node:path";

/** Finds the first of these programs that is installed. Servers may be in the `sbin` beside a `bin` of PATH. */
export function findProgram(...names: readonly string[]): string | undefined {
  const folders = pathFolders();
  const PATH = [...folders, ...folders.map((folder) => folder.replace(/\bbin$/, "sbin"))].join(delimiter);
  for (const name of names) {
    const found = Bun.which(name, { PATH });
    if (found !== null) return found;
  }
  return undefined;
}

/** Finds the first Python that has these modules: itself, since a version manager's stand-in needs more environment. */
export function findPython(modules: string): string | undefined {
  for (const folder of pathFolders()) {
    const python = Bun.which("python3", { PATH: folder });
    if (python === null) continue;
    const command = [python, "-c", `import sys, ${modules}; print(sys.executable)`];
    const { success, stdout } = Bun.spawnSync(command, { stdin: "ignore", stderr: "ignore" });
    if (success) return stdout.toString().trim();
  }
  return undefined;
}

/**
 * Runs a suite with these programs. If one is not installed, the suite is skipped under a name that says so, and the
 * end of the run says what to install.
 *
 * @param names - of programs; `a|b` is either
 */
export function withPrograms(names: readonly string[], name: string, suite: (...programs: string[]) => void): void {
  const found = names.map((one) => findProgram(...one.split("|")));
  const missing = names.filter((_, at) => found[at] === undefined);
  if (missing.length === 0) describe(name, () => suite(...(found as string[])));
  else skipWithout(missing, name);
}

/** The same for programs that CI has no use for: without one, nothing counts as skipped. */
export function whereInstalled(names: readonly string[], name: string, suite: (...programs: string[]) => void): void {
  const missing = names.filter((one) => findProgram(...one.split("|")) === undefined);
  if (missing.length === 0) withPrograms(names, name, suite);
  else noteMissing(missing, name);
}

/** Something that is not tested, and the programs that are missing for it. */
export type Untested = { readonly programs: readonly string[]; readonly what: string };
const untested: Untested[] = [];

/** In place of a suite: one skipped test whose name says which programs are missing. */
export function skipWithout(programs: readonly string[], name: string): void {
  noteMissing(programs, name);
  test.skip(`${name}, SKIPPED: not installed: ${programs.join(", ")}`, () => {});
}

/** Notes what is not tested because programs are missing, for the end of the run. */
export function noteMissing(programs: readonly string[], what: string): void {
  untested.push({ programs, what });
}

/** At the end of a file of tests: hands the notes to `test/run.ts`, or prints them if plain `bun test` runs. */
export function reportMissing(): void {
  const notes = untested.splice(0);
  const list = process.env["KEYHOLE_TEST_MISSING"];
  if (list !== undefined) appendFileSync(list, notes.map((note) => `${JSON.stringify(note)}\n`).join(""));
  else for (const line of missingLines(notes)) console.error(line);
}

/** What is not tested for each missing program, and how Debian installs those that it has. */
export function missingLines(notes: readonly Untested[]): string[] {
  const missing = [...new Set(notes.flatMap(({ programs }) => programs))].sort();
  if (missing.length === 0) return [];
  const lines = missing.map((program) => {
    const suites = [...new Set(notes.filter(({ programs }) => programs.includes(program)).map(({ what }) => what))];
    const more = suites.length > 3 ? `; and ${suites.length - 3} more` : "";
    return `  ${program.replaceAll("|", " or ")}: ${suites.slice(0, 3).join("; ")}${more}`;
  });
  const packages = [...new Set(missing.flatMap((name) => debianPackages[name] ?? []))];
  const install = packages.length === 0 ? [] : [`On Debian: apt-get install ${packages.join(" ")}`];
  return ["Not tested, because these programs are not installed:", ...lines, ...install];
}

function pathFolders(): string[] {
  return (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);
}

/** The packages of the programs that suites name. Node and npm are there, or the tests would not run. */
const debianPackages: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    "bash busybox caddy chromium curl dash direnv docker-compose fish git haproxy jq minisign nginx openssl pgbouncer python3"
      .concat(" python3-dotenv ruby ruby-dotenv umoci zsh")
      .split(" ")
      .map((name) => [name, name]),
  ),
  ...{ bwrap: "bubblewrap", "firefox-esr|firefox": "firefox-esr", go: "golang-go", gofmt: "golang-go", gpg: "gnupg" },
  ...{
    etcd: "etcd-server",
    patroni: "patroni",
    patronictl: "patroni",
    pg_basebackup: "postgresql",
    promtool: "prometheus",
    psql: "postgresql-client",
  },
  ...{ "systemd-analyze": "systemd", "systemd-creds": "systemd", "valkey-server|redis-server": "redis-server" },
};
