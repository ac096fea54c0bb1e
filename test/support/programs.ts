import { describe } from "bun:test";
import { appendFileSync } from "node:fs";

/** Finds an installed program, the first of several that would do. Servers may be where only root looks. */
export function findProgram(...names: readonly string[]): string | undefined {
  for (const name of names) {
    const found = Bun.which(name, { PATH: `${process.env["PATH"]}:/usr/sbin` });
    if (found !== null) return found;
  }
  return undefined;
}

/**
 * Runs a suite with these programs. If one is not installed, the suite is skipped under a name that says so, and the end
 * of `bun run test` says what to install.
 *
 * @param names - of programs; `a|b` is either
 */
export function withPrograms(names: readonly string[], name: string, suite: (...programs: string[]) => void): void {
  const found = names.map((one) => findProgram(...one.split("|")));
  const missing = names.filter((_, at) => found[at] === undefined);
  if (missing.length === 0) describe(name, () => suite(...(found as string[])));
  else {
    noteMissing(missing, name);
    describe.skip(`${name}, SKIPPED: not installed: ${missing.join(", ")}`, () => suite(...names));
  }
}

/** The same for programs that CI has no use for: without one, nothing counts as skipped. */
export function whereInstalled(names: readonly string[], name: string, suite: (...programs: string[]) => void): void {
  const missing = names.filter((one) => findProgram(...one.split("|")) === undefined);
  if (missing.length === 0) withPrograms(names, name, suite);
  else noteMissing(missing, name);
}

/** Says what is not tested because programs are missing: on stderr, and at the end of `bun run test`. */
export function noteMissing(programs: readonly string[], untested: string): void {
  console.error(`${programs.join(" and ")} is not installed: "${untested}" is not tested.`);
  const list = process.env["KEYHOLE_TEST_MISSING"];
  if (list !== undefined) appendFileSync(list, programs.map((program) => `${program}\n`).join(""));
}

/** A sentence on missing programs, and how Debian installs those that it has; undefined if none is missing. */
export function missingSentence(programs: readonly string[]): string | undefined {
  const missing = [...new Set(programs)].sort();
  if (missing.length === 0) return undefined;
  const packages = missing.flatMap((name) => debianPackages[name] ?? []);
  const install = packages.length === 0 ? "" : ` On Debian: apt-get install ${[...new Set(packages)].join(" ")}`;
  return `Some suites were left out, because these programs are not installed: ${missing.join(", ")}.${install}`;
}

/** The packages of the programs that suites name. Node and npm are there, or the tests would not run. */
const debianPackages: Readonly<Record<string, string>> = {
  bash: "bash",
  busybox: "busybox",
  bwrap: "bubblewrap",
  caddy: "caddy",
  chromium: "chromium",
  curl: "curl",
  dash: "dash",
  fish: "fish",
  git: "git",
  go: "golang-go",
  gofmt: "golang-go",
  haproxy: "haproxy",
  nginx: "nginx",
  openssl: "openssl",
  pgbouncer: "pgbouncer",
  promtool: "prometheus",
  psql: "postgresql-client",
  python3: "python3",
  "python3-dotenv": "python3-dotenv",
  "systemd-analyze": "systemd",
  umoci: "umoci",
  "valkey-server|redis-server": "redis-server",
  zsh: "zsh",
};
