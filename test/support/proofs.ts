import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Edit, Proof } from "../proofs/proof.ts";
import { parseTests } from "./report.ts";

/**
 * What came of a proof. It holds if its test passed with the defence and failed without it. `hung` holds if the proof
 * says so.
 */
export type Verdict = "failed" | "hung" | "survived" | "fails anyway" | "does not apply" | "did not run";

/** How a proof is tried. */
export type Trial = {
  /** The copy of the repository. */
  readonly folder: string;
  /** Ends what hangs, and nothing that is only slow. */
  readonly limitMs: number;
  readonly databaseUrl?: string | undefined;
  /** The program as the sources are, so that only an edit of these builds one. */
  readonly program?: string | undefined;
};

export function holds({ hangs }: Proof, verdict: Verdict): boolean {
  return verdict === "failed" || (verdict === "hung" && hangs === true);
}

/** Removes the defence from a copy of the repository, runs the test, and puts the defence back. */
export async function tryProof(proof: Proof, trial: Trial): Promise<Verdict> {
  const before = new Map(proof.edits.map(([file]) => [file, textOf(trial.folder, file)]));
  const edited = withEdits(before, proof.edits);
  if (edited === undefined) return "does not apply";
  const write = (texts: ReadonlyMap<string, string>) => {
    for (const [file, text] of texts) writeFileSync(join(trial.folder, file), text);
  };
  write(edited);
  try {
    const isBuilt = proof.edits.some(([path]) => /^(src|drizzle|node_modules)\//.test(path));
    const outcome = await runTest(proof, isBuilt ? { ...trial, program: undefined } : trial);
    return outcome === "passed" ? "survived" : outcome;
  } finally {
    write(before);
  }
}

/** How the named test ends as things are. It is an error in the suite, not in the test, if none ran. */
export async function runTest({ fails: [file, title] }: Proof, { folder, limitMs, databaseUrl, program }: Trial) {
  const report = join(folder, "proofs-report.xml");
  writeFileSync(report, "");
  rmSync(join(folder, "dist"), { recursive: true, force: true });
  if (program !== undefined) mkdirSync(join(folder, "dist"));
  if (program !== undefined) copyFileSync(program, join(folder, "dist/keyhole")); // newer than every source
  const kept = Object.entries(process.env).filter(([name]) => !/^(KEYHOLE_|.*DATABASE_URL$|PG[A-Z]+$|CI$)/.test(name));
  const command = [process.execPath, "test", "--no-orphans", "--timeout=60000", `test/${file}.test.ts`];
  command.push("--bail", "-t", patternOf(title).source, "--reporter=junit", `--reporter-outfile=${report}`);
  const tests = Bun.spawn(command, {
    cwd: folder,
    env: { ...Object.fromEntries(kept), ...(databaseUrl && { KEYHOLE_TEST_DATABASE_URL: databaseUrl }) },
    stdio: ["ignore", "ignore", "ignore"],
    detached: true, // a group of its own, which is killed as one
  });
  let killed = false;
  const kill = () => {
    killed = true;
    process.kill(-tests.pid, "SIGKILL");
  };
  const limit = setTimeout(kill, limitMs);
  await tests.exited;
  clearTimeout(limit);
  const xml = readFileSync(report, "utf8");
  if (killed || xml.includes('type="TimeoutError"')) return "hung";
  const ran = parseTests(xml).filter(({ name, outcome }) => outcome !== "skipped" && patternOf(title).test(name));
  if (ran.length === 0) return "did not run";
  return ran.some(({ outcome }) => outcome === "failed") ? "failed" : "passed";
}

/** A sentence for each edit that does not apply to the files as they are, and for a test that cannot be there. */
export function staleParts({ promise, edits, fails: [file, title] }: Proof, root: string): string[] {
  const stale = edits
    .filter(([path, text]) => textOf(root, path).split(text).length !== 2)
    .map(([path, text]) => `${promise}: not exactly once in ${path}: ${text}`);
  const source = textOf(root, `test/${file}.test.ts`) + headingsIn(root, `test/${file.replace(/-here$/, "")}`);
  if (!mayHave(source, title)) stale.push(`${promise}: no test of test/${file}.test.ts is called ${title}`);
  return stale;
}

/** A sentence for each proof whose test did not run. @param report - of `bun test` over the whole suite, as JUnit */
export function untriedProofs(proofs: readonly Proof[], report: string): string[] {
  const names = Map.groupBy(parseTests(report), ({ file }) => file);
  const isThere = ({ fails: [file, title] }: Proof) =>
    names.get(`test/${file}.test.ts`)?.some(({ name }) => patternOf(title).test(name));
  return proofs.filter((one) => !isThere(one)).map(({ promise, fails }) => `${promise}: no test ${fails.join(": ")}`);
}

/** Matches the name of a test, with those of its suites before it. A suite may say its database. */
function patternOf(title: string): RegExp {
  const parts = title.split(/\s*…\s*/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(parts.join(".*").replaceAll(" ", "(?:, on \\w+)? "));
}

/** Transcripts name their tests by their headings. */
function headingsIn(root: string, folder: string): string {
  const names = existsSync(join(root, folder)) ? readdirSync(join(root, folder)) : [];
  const headings = names.flatMap((name) => [...textOf(root, `${folder}/${name}`).matchAll(/^#+ (.*)$/gm)]);
  return headings.map(([, heading]) => JSON.stringify(heading)).join("\n");
}

/** A title is made of texts of its file. What its rows put in is not looked for. */
function mayHave(source: string, title: string): boolean {
  const texts = [...source.matchAll(/"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`/g)].map(
    ([, one, two]) => one ?? two ?? "",
  );
  const parts = title
    .split("…")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  return parts.every((part) =>
    texts.some((text) => {
      const plain = text.replaceAll(/\\(.)/g, "$1");
      const fixed = plain.split(/%\w|\$\{[^}]*\}|\$\w+/).map((piece) => piece.trim());
      return plain.includes(part) || fixed.some((piece) => piece.length > 6 && part.includes(piece));
    }),
  );
}

/** The texts after the edits; undefined if one of them does not stand there exactly once. */
function withEdits(texts: ReadonlyMap<string, string>, edits: readonly Edit[]): Map<string, string> | undefined {
  const edited = new Map(texts);
  for (const [file, text, put] of edits) {
    const [before, after, ...more] = (edited.get(file) ?? "").split(text);
    if (before === undefined || after === undefined || more.length > 0) return undefined;
    edited.set(file, before + put + after);
  }
  return edited;
}

function textOf(root: string, file: string): string {
  const path = join(root, file);
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}
