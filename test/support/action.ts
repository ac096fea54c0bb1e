/** The action as GitHub's runner runs it: its steps, the files between them, and what the runner remembers. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse as parseYaml } from "yaml";
import { findProgram } from "./programs.ts";

const root = join(import.meta.dir, "../..");
const bash = findProgram("bash") ?? "";

export type Step = { name: string; id?: string; shell: string; env?: Record<string, string>; run: string };
export type Action = {
  inputs: Record<string, { description: string; required?: boolean; default?: string }>;
  outputs: Record<string, { value: string }>;
  runs: { using: string; steps: Step[] };
};
export const action = parseYaml(readFileSync(join(root, "action.yml"), "utf8")) as Action;

export type Job = {
  readonly workspace: string;
  /** The step that failed. */
  readonly failed: string | undefined;
  readonly env: Record<string, string>;
  readonly path: string[];
  /** What the steps told the runner: variables, outputs and masks. It keeps them in its memory to the job's end. */
  readonly memory: string;
  readonly outputs: Record<string, string>;
  /** What the steps printed, both streams, and the same as the runner would show it. */
  readonly raw: string;
  readonly log: string;
};

/** What a job has besides this action. */
type Around = {
  readonly of?: Action;
  /** A folder in front of PATH. */
  readonly tools?: string;
  /** What every step gets. */
  readonly env?: Readonly<Record<string, string>>;
  readonly before?: readonly Step[];
  /** They run also after a failure, as a step with `if: always()` does. */
  readonly after?: readonly Step[];
};

/** A job with this action: its files are made, read and applied between steps as the runner does. */
export async function runAction(
  { folder }: { readonly folder: string },
  given: Record<string, string>,
  { of = action, tools = "", env: runner = {}, before = [], after = [] }: Around = {},
): Promise<Job> {
  const home = mkdtempSync(join(folder, "job-"));
  const workspace = join(home, "workspace");
  mkdirSync(workspace);
  const defaults = Object.entries(action.inputs).map(([name, input]) => [name, input.default ?? ""]);
  const inputs = { ...Object.fromEntries(defaults), ...given };
  const env: Record<string, string> = {};
  const path: string[] = [];
  const stepOutputs: Record<string, Record<string, string>> = {};
  const masks: string[] = [];
  let memory = "";
  let raw = "";
  let failed: string | undefined;
  for (const [at, step] of [...before, ...of.runs.steps, ...after].entries()) {
    if (failed !== undefined && !after.includes(step)) continue;
    const file = (name: string) => join(home, `${name}-${at}`);
    for (const name of ["env", "path", "output"]) writeFileSync(file(name), "");
    writeFileSync(file("script"), step.run);
    const child = Bun.spawn([bash, "--noprofile", "--norc", "-e", "-o", "pipefail", file("script")], {
      cwd: workspace,
      env: {
        ...env,
        ...Object.fromEntries(
          Object.entries(step.env ?? {}).map(([name, text]) => [name, evaluate(text, inputs, stepOutputs)]),
        ),
        PATH: [...path.toReversed(), tools, process.env["PATH"] ?? ""].filter(Boolean).join(":"),
        HOME: home,
        CI: "true",
        GITHUB_ACTIONS: "true",
        GITHUB_WORKSPACE: workspace,
        GITHUB_ENV: file("env"),
        GITHUB_PATH: file("path"),
        GITHUB_OUTPUT: file("output"),
        RUNNER_OS: "Linux",
        RUNNER_ARCH: process.arch.toUpperCase(),
        RUNNER_TEMP: home,
        ...runner,
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    raw += stdout + stderr;
    for (const line of stdout.split("\n")) if (line.startsWith("::add-mask::")) masks.push(...maskedBy(line));
    const [ofEnv, ofPath, ofOutput] = ["env", "path", "output"].map((name) => {
      const text = readFileSync(file(name), "utf8");
      rmSync(file(name)); // as the runner does
      return text;
    }) as [string, string, string];
    memory += ofEnv + ofOutput;
    if ((await child.exited) !== 0) {
      failed ??= step.name;
      continue;
    }
    Object.assign(env, pairsOf(ofEnv));
    path.push(...ofPath.split("\n").filter(Boolean));
    if (step.id !== undefined) stepOutputs[step.id] = pairsOf(ofOutput);
  }
  const outputs = Object.fromEntries(
    Object.entries(action.outputs).map(([name, { value }]) => [name, evaluate(value, inputs, stepOutputs)]),
  );
  const shown = raw
    .split("\n")
    .filter((line) => !line.startsWith("::add-mask::")) // the runner shows none of these
    .join("\n");
  const log = masks.toSorted((a, b) => b.length - a.length).reduce((text, mask) => text.replaceAll(mask, "***"), shown);
  return { workspace, failed, env, path, memory: [memory, ...masks].join("\n"), outputs, raw, log };
}

/** The kinds of expression that the file has. */
function evaluate(text: string, inputs: Record<string, string>, steps: Record<string, Record<string, string>>): string {
  if (/^\$\{\{ toJSON\(inputs\) \}\}$/.test(text)) return JSON.stringify(inputs, null, 2);
  return text.replace(/\$\{\{ (?:inputs\.([\w-]+)|steps\.(\w+)\.outputs\.(\w+)) \}\}/g, (_, input, step, output) => {
    if (input === undefined) return steps[step]?.[output] ?? "";
    const value = inputs[input];
    if (value === undefined) throw new Error(`there is no input ${input}`);
    return value;
  });
}

/** What a mask hides: the text and each of its lines. @see the sources named in test/property/formats.test.ts */
function maskedBy(line: string): string[] {
  const data = line.slice("::add-mask::".length).replaceAll("%0D", "\r").replaceAll("%0A", "\n").replaceAll("%25", "%");
  return [data, ...data.split(/[\r\n]/)].map((text) => text.trim()).filter(Boolean);
}

/** `NAME<<DELIMITER` and `NAME=value`, as the runner on Linux reads them. */
function pairsOf(text: string): Record<string, string> {
  const pairs: Record<string, string> = {};
  const lines = text.split("\n");
  if (lines.pop() !== "") throw new Error("the file does not end with a line end");
  while (lines.length > 0) {
    const line = lines.shift() ?? "";
    if (line === "") continue;
    const [, name = "", delimiter] = /^([^=]+?)<<(.+)$/.exec(line) ?? [];
    if (delimiter === undefined) {
      pairs[line.slice(0, line.indexOf("="))] = line.slice(line.indexOf("=") + 1);
      continue;
    }
    const end = lines.indexOf(delimiter);
    if (end < 0) throw new Error("a delimiter is missing");
    pairs[name] = lines
      .splice(0, end + 1)
      .slice(0, -1)
      .join("\n");
  }
  return pairs;
}
