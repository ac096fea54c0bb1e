import { parseTests } from "./report.ts";

/*
 * Proofs that are not data yet: docs/maintainers/proofs-by-hand.md names the tests that fail without a defence, as
 * `folder/file`: "name". Of a long name it says a part, with … for the rest.
 */

/**
 * @param name - of the page, such as `docs/maintainers/proofs-by-hand.md`
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

/** Words that a patch puts in, and that the sources do not have. */
const putIn =
  /^(?:pbkdf2Sync|json_extract|decodeJwt|cooldownDuration|skipSubjectCheck|error_description|ssl_ciphers|gte)$/;

/**
 * @param sources - the text of each file by its path, such as `src/core/held.ts`
 * @returns a sentence for each name in a patch that is nowhere, or in none of the files that the patch names beside it
 */
export function stalePatches(name: string, page: string, sources: ReadonlyMap<string, string>): string[] {
  const stale: string[] = [];
  for (const row of page.split("\n").filter((line) => /^\| (?!defence )/.test(line))) {
    for (const clause of (row.split(/(?<!\\)\|/).at(-3) ?? "").split("; ")) {
      const words = [...clause.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word);
      const files = words.filter((word) => /^[\w@./-]+\.(?:tsx?|js|css|sql|patch)$/.test(word));
      const texts = files.map((file) => [...sources].filter(([path]) => `/${path}`.endsWith(`/${file}`)));
      for (const [at, found] of texts.entries()) if (found.length === 0) stale.push(`${name}: no file ${files[at]}`);
      const among = files.length === 0 || clause.includes("*") ? [...sources] : texts.flat();
      for (const word of words.filter((one) => /^[a-z_]\w*[A-Z_]\w*$|^\w+[A-Z]\w+$/.test(one) && !putIn.test(one))) {
        const isThere = new RegExp(`(?<!\\w)${word}(?!\\w)`);
        if (!among.some(([, text]) => isThere.test(text)))
          stale.push(`${name}: no ${word} in ${files.join(", ") || "any file"}`);
      }
    }
  }
  return stale;
}
