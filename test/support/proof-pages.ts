import { parseTests } from "./report.ts";

/*
 * docs/maintainers/proofs-advisories.md names the tests of faults of others as `folder/file`: "name". Of a long name it
 * says a part, with … for the rest.
 */

/**
 * @param name - of the page, such as `docs/maintainers/proofs-advisories.md`
 * @param page - its text
 * @param report - of `bun test` over the whole suite, as JUnit
 * @returns a sentence for each test that the page names and that did not run
 */
export function missingProofs(name: string, page: string, report: string): string[] {
  const names = Map.groupBy(parseTests(report), ({ file }) => /^test\/(.*)\.test\.ts$/.exec(file)?.[1] ?? file);
  const missing: string[] = [];
  for (const row of page.split("\n").filter((line) => line.startsWith("|"))) {
    const cell = row.split(/(?<!\\)\|/).at(-2) ?? "";
    let file = "";
    for (const [, named, quoted = ""] of cell.matchAll(
      /`((?:unit|property|integration|blackbox)\/[\w-]+|[\w-]+)`(?=[:,])|"([^"]+)"/g,
    )) {
      if (named !== undefined) file = named.includes("/") ? named : `property/${named}`;
      if (named !== undefined || file === "") continue;
      const parts = quoted
        .replaceAll("\\|", "|")
        .replaceAll(" > ", " ")
        .split(/\s*…\s*/);
      const pattern = new RegExp(parts.map((part) => RegExp.escape(part)).join(".*"));
      if (!names.get(file)?.some(({ name }) => pattern.test(name.replaceAll(/, on (?:SQLite|PostgreSQL)/g, "")))) {
        missing.push(`${name} names a test that did not run: ${file}: "${quoted}"`);
      }
    }
  }
  return missing;
}
