import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { binary, runBinary } from "./keyhole.ts";
import { type Dialect, furnish, makeSite, onPostgres, type Site } from "./server.ts";

/*
 * A transcript is a text of commands and what they print, and reads as a manual:
 *
 *     # Title                      Then sentences. One of them may say "PostgreSQL" (default: SQLite only) and
 *     # ...                        "acme/web" (default: nothing is installed).
 *
 *     ## A promise                 A test of this name. It runs the sections before it first, so it can run alone.
 *
 *     $ keyhole org list           A shell runs it, in a folder of its own.
 *     SLUG  NAME                   What it prints on stdout. A line without its line break ends in %.
 *     2> keyhole: There is ...     What it prints on stderr.
 *     [4]                          Its exit code, unless that is 0.
 *
 * In what is printed, <id>, <short>, <time>, <ms> and <key> stand for an id, the beginning of one, and so on. <id ci>
 * also gives it the name ci, and from there on <ci> is that id, in commands too. Three dots stand for any text, and two
 * blanks for two or more. TRANSCRIBE=1 writes what was printed into the file.
 */

type Step = { readonly command: string; readonly printed: readonly string[] };
type Played = readonly [shown: string, expected: string];
type Section = { readonly title: string; readonly steps: readonly Step[] };

const patterns: Readonly<Record<string, string>> = {
  id: "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
  short: "[0-9a-f-]{8,35}",
  time: "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ",
  ms: "\\d{13}",
  key: "kh_[0-9A-Za-z]{49}",
};

/** Makes a test of each section of a transcript, on each of its databases. */
export function testTranscript(path: string): void {
  const text = readFileSync(path, "utf8");
  const [head = "", ...rest] = text.split(/^## /m);
  const sections = rest.map(readSection);
  const suite = (dialect: Dialect) => {
    let site: Promise<Site> | undefined;
    const names = new Map<string, string>();
    const played: Promise<Played>[] = [];
    const playOnce = (at: number): Promise<Played> => {
      played[at] ??= play(at);
      return played[at];
    };
    const play = async (at: number): Promise<Played> => {
      if (at > 0) await playOnce(at - 1).catch(() => {});
      site ??= makeSite(dialect).then((made) => (head.includes("acme/web") ? furnish(made) : made));
      const { steps } = sections[at] as Section;
      const shown: string[] = [];
      for (const step of steps) shown.push(...(await run(await site, step, names)));
      return [shown.join("\n"), steps.flatMap(({ command, printed }) => [`$ ${command}`, ...printed]).join("\n")];
    };
    afterAll(async () => {
      if (process.env["TRANSCRIBE"] === "1" && played.length > 0) await record(path, head, sections, played);
      await (await site)?.remove();
    });
    test.each(sections.map(({ title }, at) => [title, at] as const))("%s", async (_, at) => {
      const [shown, expected] = await playOnce(at);
      expect(shown).toBe(expected);
    });
  };
  const name = basename(path, ".txt");
  describe(name, () => suite("sqlite"));
  if (head.includes("PostgreSQL")) onPostgres(name, () => suite("postgres"));
}

function readSection(text: string): Section {
  const [title = "", ...steps] = text.split(/^\$ /m);
  const read = (step: string): Step => {
    const [command = "", ...lines] = step.trimEnd().split("\n");
    const more = lines.findIndex((line) => !line.startsWith("> "));
    const own = lines.slice(0, more === -1 ? lines.length : more);
    return { command: [command, ...own].join("\n"), printed: lines.slice(own.length) };
  };
  return { title: title.trim(), steps: steps.map(read) };
}

/** Runs a command, and returns the step as it went: a line that fits the expected one is shown as that. */
async function run(site: Site, { command, printed }: Step, names: Map<string, string>): Promise<string[]> {
  const script = command.replace(/\n> /g, "\n").replace(/<(\w+)>/g, (whole, name: string) => names.get(name) ?? whole);
  const env = { ...site.env, KEYHOLE_ACTOR: "ann@laptop", PATH: `${dirname(binary)}:${process.env["PATH"]}` };
  const ran = await runBinary(["-c", script], { program: "bash", cwd: site.folder, env });
  const lines = [
    ...linesOf(ran.stdout),
    ...linesOf(ran.stderr).map((line) => `2> ${line}`),
    ...(ran.exitCode === 0 ? [] : [`[${ran.exitCode}]`]),
  ];
  return [
    `$ ${command}`,
    ...lines.map((line, at) => (fits(line, printed[at] ?? "", names) ? (printed[at] ?? "") : line)),
  ];
}

function linesOf(text: string): string[] {
  if (text === "") return [];
  return text.endsWith("\n") ? text.slice(0, -1).split("\n") : `${text}%`.split("\n");
}

/** Whether a printed line is the expected one. Ids that the expected one names are kept. */
function fits(line: string, expected: string, names: Map<string, string>): boolean {
  if (line === expected) return true;
  const captured: string[] = [];
  const source = expected
    .replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
    .replaceAll("\\.\\.\\.", ".*")
    .replace(/ {2,}/g, " {2,}")
    .replace(/<(\w+)(?: (\w+))?>/g, (whole, type: string, name?: string) => {
      if (name !== undefined) captured.push(name);
      const known = names.get(type) ?? patterns[type];
      return known === undefined ? whole : `(${name === undefined ? "?:" : ""}${known})`;
    });
  const found = new RegExp(`^${source}$`).exec(line);
  for (const [at, name] of captured.entries()) if (found) names.set(name, found[at + 1] ?? "");
  return found !== null;
}

async function record(
  path: string,
  head: string,
  sections: readonly Section[],
  played: readonly Promise<Played>[],
): Promise<void> {
  // In a table, what stands for a time is as wide as the time.
  const generalized = (text: string) =>
    Object.entries({ ...patterns, short: "(?<=^)[0-9a-f]{8}(?:-[0-9a-f]{1,4}){1,4}(?=  )" }).reduce(
      (all, [type, pattern]) =>
        all.replace(new RegExp(`\\b${pattern}\\b( {2})?`, "g"), (found, gap) =>
          gap === undefined ? `<${type}>` : `<${type}>`.padEnd(found.length),
        ),
      text,
    );
  const texts = await Promise.all(
    sections.map(async ({ title }, at) => {
      const [shown = ""] = (await played[at]) ?? [];
      const lines = shown.split("\n").map((line) => (/^[$>] /.test(line) ? line : generalized(line)));
      return `## ${title}\n\n${lines.join("\n")}\n`;
    }),
  );
  writeFileSync(path, `${head.trimEnd()}\n\n${texts.join("\n")}`);
}
