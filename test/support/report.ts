/** What a run of tests says of itself: its progress, what failed and how to run that again, and what was slow. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";

/** One test, as the JUnit report of `bun test` has it. */
export type Tested = {
  /** From the root of the repository. */
  readonly file: string;
  /** With the names of its suites before it, the outermost first, as `--test-name-pattern` compares it. */
  readonly name: string;
  readonly outcome: "passed" | "failed" | "skipped";
};

/** Every test of a report. @param xml - of `bun test --reporter=junit` */
export function parseTests(xml: string): Tested[] {
  const cases = xml.matchAll(
    /<testcase name="([^"]*)" classname="([^"]*)"[^>]*? file="([^"]*)"[^>]*?(?:\/>|>([\s\S]*?)<\/testcase>)/g,
  );
  return [...cases].map(([, name = "", suites = "", file = "", inside = ""]) => ({
    file,
    name: [...decode(suites).split(" > ").reverse(), decode(name)].filter(Boolean).join(" "),
    outcome: inside.includes("<failure") ? "failed" : inside.includes("<skipped") ? "skipped" : "passed",
  }));
}

/** The seconds that each file took, the slowest first. */
export function slowestFiles(xml: string): [file: string, seconds: number][] {
  const files = xml.matchAll(/^ {2}<testsuite name="([^"]*)"[^>]*? time="([\d.]+)"/gm);
  return [...files]
    .map(([, file = "", seconds]): [string, number] => [file, Number(seconds)])
    .sort(([, one], [, other]) => other - one);
}

/**
 * The command that runs this test alone, for a shell.
 * @param agent - `npm_config_user_agent`, which says whether npx started the run
 * @param seed - of the run's random choices, if it is not the usual one
 */
export function commandFor({ file, name }: Tested, agent = "", seed?: string): string {
  const bun = agent.startsWith("npm/") ? "npx --yes --allow-scripts=bun bun@1.4.5" : "bun";
  const pattern = name.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll("'", ".");
  return `${seed === undefined ? "" : `KEYHOLE_TEST_SEED=${seed} `}${bun} run test ${file} -t '${pattern}'`;
}

/** Called in the process of each file, by the preload: tells the run that the file begins or has ended. */
export function noteFile(moment: "begins" | "ended", file: string): void {
  const list = process.env["KEYHOLE_TEST_PROGRESS"];
  if (list) appendFileSync(list, `${moment} ${Date.now()} ${file}\n`);
}

/**
 * A line such as `64 of 210 files in 71 s; now unit/lies (12 s), unit/watch (4 s).`
 * @param notes - what {@link noteFile} has written, which may not exist yet
 */
export function progressLine(notes: string, count: number, startedAtMs: number, nowMs: number): string {
  const running = new Map<string, number>();
  let ended = 0;
  for (const line of existsSync(notes) ? readFileSync(notes, "utf8").split("\n") : []) {
    const [moment, atMs, ...path] = line.split(" ");
    const file = path.join(" ").replace(/^.*?test\/(.*)\.test\.ts$/, "$1");
    if (moment === "begins") running.set(file, Number(atMs));
    if (moment === "ended" && running.delete(file)) ended += 1;
  }
  const seconds = (sinceMs: number) => `${Math.round((nowMs - sinceMs) / 1000)} s`;
  const now = [...running].map(([file, atMs]) => `${file} (${seconds(atMs)})`).join(", ");
  return `${ended} of ${count} files in ${seconds(startedAtMs)}${now === "" ? "" : `; now ${now}`}.`;
}

function decode(text: string): string {
  const entities: Record<string, string> = { quot: '"', apos: "'", lt: "<", gt: ">", amp: "&" };
  return text.replace(/&(\w+);/g, (whole, entity: string) => entities[entity] ?? whole);
}
