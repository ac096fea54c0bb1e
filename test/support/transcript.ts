import { afterAll, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { parse } from "node:path";
import { editingAlone } from "./editing.ts";
import { runProgram, runScript } from "./here.ts";
import { withPrograms } from "./programs.ts";
import { type Dialect, furnish, makeSite, onPostgres, type Server, type Site } from "./server.ts";

/*
 * A transcript is a text of commands and what they print, and reads as a manual:
 *
 *     # Title                      Then sentences. One of them may say "PostgreSQL" (default: SQLite only) and
 *     # ...                        "acme/web" (default: nothing is installed), and one "a server", whose
 *                                  address is KEYHOLE_URL.
 *
 *     ## A promise                 A test of this name. It runs the sections before it first, so it can run alone. A
 *                                  title that ends in "on SQLite" or "on PostgreSQL" is a test there alone.
 *     Ana reads the list.          Sentences. "A week passes." dates every key and its last use a
 *                                  week back, and starts the server again.
 *
 *     $ keyhole org list           A shell runs it, in a folder of its own.
 *     ana$ keyhole org list        The same, typed by ana@laptop instead of ann@laptop.
 *     SLUG  NAME                   What it prints on stdout. A line without its line break ends in %.
 *     2> keyhole: There is ...     What it prints on stderr.
 *     [4]                          Its exit code, unless that is 0.
 *
 * In what is printed, <id>, <short>, <time>, <day>, <ms> and <key> stand for an id, the beginning of one, and so on.
 * <id ci> also gives it the name ci, and from there on <ci> is that id, in commands too. Three dots stand for any text,
 * and two blanks for two or more. TRANSCRIBE=1 writes what was printed into the file. In a page, the commands of a
 * section are one block of code.
 */

type Step = { readonly person: string; readonly command: string; readonly printed: readonly string[] };
type Played = readonly [shown: string, expected: string];
type Section = { readonly title: string; readonly prose: string; readonly steps: readonly Step[] };

const patterns: Readonly<Record<string, string>> = {
  id: "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
  short: "[0-9a-f-]{8,35}",
  time: "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ",
  day: "\\d{4}-\\d\\d-\\d\\d",
  ms: "\\d{13}",
  key: "kh_[0-9A-Za-z]{49}",
};

/**
 * Makes a test of each section of a transcript.
 * @param how - the built program runs every command on each of its databases, or {@link runScript} on SQLite
 */
export function testTranscript(path: string, how: "built" | "here"): void {
  const text = readTranscript(path);
  const [head = "", ...rest] = text.split(/^## /m);
  const all = rest.map(readSection);
  const suite = (dialect: Dialect) => {
    const sections = all.filter(({ title }) => !title.endsWith(dialect === "sqlite" ? "on PostgreSQL" : "on SQLite"));
    let stage: Promise<Stage> | undefined;
    const names = new Map<string, string>();
    const played: Promise<Played>[] = [];
    const playOnce = (at: number): Promise<Played> => {
      played[at] ??= play(at);
      return played[at];
    };
    const play = async (at: number): Promise<Played> => {
      if (at > 0) await playOnce(at - 1).catch(() => {});
      stage ??= setStage(dialect, head);
      const { prose, steps } = sections[at] as Section;
      if (prose.includes("A week passes.")) stage = stage.then(passWeek);
      const shown: string[] = [];
      const on = await stage;
      const playSteps = async () => {
        for (const step of steps) shown.push(...(await run(on, step, names, how)));
      };
      const edits = steps.some(({ command }) => command.includes("keyhole var edit"));
      await (edits ? editingAlone(playSteps) : playSteps());
      const expected = steps.flatMap(({ person, command, printed }) => [`${person}$ ${command}`, ...printed]);
      return [shown.join("\n"), expected.join("\n")];
    };
    afterAll(async () => {
      if (process.env["TRANSCRIBE"] === "1" && played.length > 0) await record(path, sections, played);
      await (await stage)?.site.remove();
    });
    test.each(sections.map(({ title }, at) => [title, at] as const))("%s", async (_, at) => {
      const [shown, expected] = await playOnce(at);
      expect(shown).toBe(expected);
    });
  };
  const { name } = parse(path);
  // A base system has no curl.
  withPrograms(/\bcurl /.test(text) ? ["curl"] : [], name, () => suite("sqlite"));
  if (head.includes("PostgreSQL") && how === "built") onPostgres(name, () => suite("postgres"));
}

/** Where a transcript is played. */
type Stage = { readonly site: Site; readonly server?: Server };

async function setStage(dialect: Dialect, head: string): Promise<Stage> {
  const site = await makeSite(dialect);
  if (head.includes("acme/web")) await furnish(site);
  return head.includes("a server") ? { site, server: await site.serve() } : { site };
}

/** When a key expires is sealed, and stays. A server that ends writes when keys were last used. */
async function passWeek({ site, server }: Stage): Promise<Stage> {
  await server?.stop();
  const weekMs = 7 * 86_400_000;
  await site.sql("update api_keys set created_at = created_at - ?", [weekMs]);
  await site.sql("update key_uses set last_used_at = last_used_at - ?", [weekMs]);
  return server ? { site, server: await site.serve() } : { site };
}

function readTranscript(path: string): string {
  return readFileSync(path, "utf8").replace(/^```.*\n/gm, "");
}

function readSection(text: string): Section {
  const [heading = "", ...steps] = text.split(/^(?=[a-z]*\$ )/m);
  const [title = "", ...prose] = heading.trim().split("\n");
  return { title, prose: prose.join("\n").trim(), steps: steps.map(readStep) };
}

function readStep(text: string): Step {
  const [typed = "", ...lines] = text.trimEnd().split("\n");
  const [person = ""] = typed.split("$", 1);
  const more = lines.findIndex((line) => !line.startsWith("> "));
  const own = lines.slice(0, more === -1 ? lines.length : more);
  return { person, command: [typed.slice(person.length + 2), ...own].join("\n"), printed: lines.slice(own.length) };
}

/** Runs a command, and returns the step as it went: a line that fits the expected one is shown as that. */
async function run(stage: Stage, step: Step, names: Map<string, string>, how: "built" | "here"): Promise<string[]> {
  const { site, server } = stage;
  const { person, command, printed } = step;
  const script = command.replace(/\n> /g, "\n").replace(/<(\w+)>/g, (whole, name: string) => names.get(name) ?? whole);
  const origin = server && { KEYHOLE_URL: server.origin };
  const env = { ...site.env, KEYHOLE_ACTOR: `${person || "ann"}@laptop`, ...origin };
  const ran = await (how === "here" ? runScript : runProgram)(script, { cwd: site.folder, env });
  const errors = linesOf(ran.stderr).map((line) => `2> ${line}`);
  const lines = [...linesOf(ran.stdout), ...errors, ...(ran.exitCode === 0 ? [] : [`[${ran.exitCode}]`])];
  const shown = lines.map((line, at) => (fits(line, printed[at] ?? "", names) ? (printed[at] ?? "") : line));
  return [`${person}$ ${command}`, ...shown];
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

/** Writes the sections that were played into the file, and leaves all others alone. */
async function record(path: string, sections: readonly Section[], played: readonly Promise<Played>[]): Promise<void> {
  // In a table, what stands for a time is as wide as the time.
  const generalized = (text: string) =>
    Object.entries({ ...patterns, short: "(?<=^)[0-9a-f]{8}(?:-[0-9a-f]{1,4}){1,4}(?=  )" }).reduce(
      (all, [type, pattern]) =>
        all.replace(new RegExp(`\\b${pattern}\\b( {2})?`, "g"), (found, gap) =>
          gap === undefined ? `<${type}>` : `<${type}>`.padEnd(found.length),
        ),
      text,
    );
  const [head = "", ...texts] = readTranscript(path).split(/^## /m);
  for (const [at, { title, prose }] of sections.entries()) {
    const [shown] = (await played[at]) ?? [];
    if (shown === undefined) continue;
    const lines = shown.split("\n").map((line) => (/^([a-z]*\$|>) /.test(line) ? line : generalized(line)));
    const own = texts.findIndex((text) => text.startsWith(`${title}\n`));
    texts[own] = `${[title, ...(prose === "" ? [] : [prose])].join("\n")}\n\n${lines.join("\n")}\n`;
  }
  const asPage = (text: string) => {
    const { title, prose } = readSection(text);
    const steps = text.slice(text.search(/^[a-z]*\$ /m)).trimEnd();
    return [title, prose, `\`\`\`text\n${steps}\n\`\`\``].join("\n\n");
  };
  const written = [head, ...(path.endsWith(".md") ? texts.map(asPage) : texts)];
  writeFileSync(path, `${written.map((text) => text.trimEnd()).join("\n\n## ")}\n`);
}
