import { describe } from "bun:test";

/** Finds an installed program. Servers may be where only root looks. */
export function findProgram(name: string): string | undefined {
  return Bun.which(name, { PATH: `${process.env["PATH"]}:/usr/sbin` }) ?? undefined;
}

/** Runs a suite with these programs. If one is not installed, the suite is skipped under a name that says so. */
export function withPrograms(names: readonly string[], name: string, suite: (...programs: string[]) => void): void {
  const found = names.map(findProgram);
  const missing = names.filter((_, at) => found[at] === undefined);
  if (missing.length === 0) describe(name, () => suite(...(found as string[])));
  else describe.skip(`${name}, SKIPPED: not installed: ${missing.join(", ")}`, () => suite(...names));
}

/** The same for languages that only examples need: without one, a line on stderr says what is not tested. */
export function whereInstalled(names: readonly string[], name: string, suite: (...programs: string[]) => void): void {
  const missing = names.filter((one) => findProgram(one) === undefined);
  if (missing.length === 0) withPrograms(names, name, suite);
  else console.error(`${missing.join(" and ")} is not installed: "${name}" is not tested.`);
}
