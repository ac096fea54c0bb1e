import { contentBytesMax } from "../names.ts";
import type { FetchedFile, FileRecord } from "./answers.ts";
import { pathParameter, queryBytesMax } from "./client.ts";
import { answer, counted, exits, noun, Problem, type Surroundings, usageProblem } from "./command.ts";
import { atMachine, type Machine, machineVerb, setOptions } from "./machine.ts";
import { Root, type Standing } from "./place.ts";
import { Interrupted, jsonLine, progressOn, write } from "./terminal.ts";

/** `keyhole files …` */
export function filesCommand(here: Surroundings) {
  const pull = machineVerb(
    "pull",
    "Put the secret files of an environment in place: all of them or none.",
    "keyhole files pull -p web -e production",
    "keyhole files pull -p web -e production --root /run/secrets/web",
    "keyhole files pull -p web -e staging --path config/tls.p12 --path .ssh/id_ed25519",
    "keyhole files pull -p web -e production --check",
  )
    .option("--root <folder>", "the folder that they are put below (default: the current one)")
    .option(
      "--path <path>",
      "only the file with this path; may be repeated",
      (path, paths) => [...paths, path],
      [] as string[],
    )
    .option("--check", "write nothing: compare, and name on stdout every file that is not as it should be")
    .addOption(setOptions.allowEmpty())
    .action(async ({ root = ".", path: paths, check, allowEmpty, ...options }) => {
      await atMachine(here, options, async (machine) => {
        const ask = { root, paths, allowEmpty };
        if (check) return checkFiles(here, machine, ask);
        const fetched = await fetchFiles(here, machine, ask);
        const document = await placeFiles(here, fetched);
        await answer(here, { ...machine.asked, ...document }, summaryOf(machine, document));
      });
    });

  return noun("files", "Secret files, fetched by machines.").addCommand(pull);
}

/** Which files, and where to. */
export type FilesAsk = {
  readonly root: string;
  /** All where it is empty. */
  readonly paths: readonly string[];
  readonly allowEmpty?: true | undefined;
};

/** Files in hand: whatever can be refused has been, and nothing is written yet. */
export type Fetched = {
  readonly root: Root;
  readonly folder: string;
  readonly files: readonly FetchedFile[];
  readonly unchanged: number;
};

/** What became of the files, as programs read it. */
export type Placed = { readonly root: string; readonly written: readonly string[]; readonly unchanged: number };

/**
 * Fetches what is not in place already: what is known of all files first, then the content of those alone that differ.
 * The caller closes `root`, or has {@link placeFiles} do it.
 * @throws Problem
 */
export async function fetchFiles(here: Surroundings, machine: Machine, ask: FilesAsk): Promise<Fetched> {
  const root = new Root(ask.root);
  try {
    const { listed, wanted } = await list(machine, ask);
    const standing = wanted.map((record) => ({ record, standing: root.compare(record) }));
    const inHand = standing.flatMap(({ record, standing }) =>
      standing.state === "mode" ? [{ ...record, content: standing.content }] : [],
    );
    const stale = standing.filter(({ standing }) => isStale(standing)).map(({ record }) => record);
    const bytes = stale.reduce((sum, { size }) => sum + size, 0);
    if (bytes > pullBytesMax) {
      const words = `The files to fetch hold ${bytes} bytes, more than 1 GiB: take fewer at a time with --path.`;
      throw new Problem(exits.refused, "too_much", words);
    }
    const progress = progressOn(here.terminal.stderr, "Fetching", "files");
    const fetched: FetchedFile[] = [];
    try {
      for (const { records, all } of planRequests(stale, listed)) {
        progress.report(fetched.length, stale.length);
        fetched.push(...(await machine.client.fetchFiles(machine.asked, records, all)));
      }
    } finally {
      progress.clear();
    }
    const files = [...inHand, ...fetched];
    return { root, folder: ask.root, files, unchanged: wanted.length - files.length };
  } catch (error) {
    root.close();
    throw error;
  }
}

/** Everything is in memory until it is written. */
const pullBytesMax = 1024 * 1024 * 1024;

/**
 * Puts the files in place, all of them or none, and closes the root.
 * @throws Problem, or Interrupted where a signal came in time to leave everything as it was
 */
export async function placeFiles(here: Surroundings, { root, folder, files, unchanged }: Fetched): Promise<Placed> {
  const progress = progressOn(here.terminal.stderr, "Writing", "files");
  let signal: number | undefined;
  const listeners = Object.entries({ SIGHUP: 1, SIGINT: 2, SIGTERM: 15 }).map(([name, number]) => {
    const listener = () => {
      signal = number;
    };
    process.on(name, listener);
    return () => process.off(name, listener);
  });
  const check = () => {
    if (signal !== undefined) throw new Interrupted(signal);
  };
  try {
    await root.place(files, { report: progress.report, check });
    return { root: folder, written: files.map(({ path }) => path).sort(), unchanged };
  } finally {
    for (const remove of listeners) remove();
    progress.clear();
    root.close();
  }
}

/** A request for content: these files, which may be all that the environment has. */
export type ContentRequest = { readonly records: readonly FileRecord[]; readonly all: boolean };

/**
 * As few requests as 8 MiB of content and the length of a query allow: the largest file first, each into the first
 * request that still has room for it.
 *
 * @param wanted - the files to fetch
 * @param listed - how many files the environment has: where all of them are wanted, their paths need not be sent
 */
export function planRequests(wanted: readonly FileRecord[], listed: number): ContentRequest[] {
  const total = wanted.reduce((sum, { size }) => sum + size, 0);
  if (wanted.length > 0 && wanted.length === listed && total <= contentBytesMax)
    return [{ records: wanted, all: true }];
  const requests: { records: FileRecord[]; all: false; bytes: number; queryBytes: number }[] = [];
  for (const record of [...wanted].sort((a, b) => b.size - a.size)) {
    const queryBytes = pathParameter(record).length;
    let request = requests.find(
      (one) => one.bytes + record.size <= contentBytesMax && one.queryBytes + queryBytes <= queryBytesMax,
    );
    if (request === undefined) {
      request = { records: [], all: false, bytes: 0, queryBytes: 200 }; // project and environment
      requests.push(request);
    }
    request.records.push(record);
    request.bytes += record.size;
    request.queryBytes += queryBytes;
  }
  return requests.map(({ records, all }) => ({ records, all }));
}

/** What the server has, and of that what is asked for. */
async function list(
  { asked, client }: Machine,
  { paths, allowEmpty }: FilesAsk,
): Promise<{ listed: number; wanted: FileRecord[] }> {
  if (paths.includes("")) throw usageProblem("--path is empty.");
  const records = await client.listFiles(asked);
  const where = `${asked.project}, ${asked.environment}`;
  const missing = paths.filter((path) => !records.some((record) => record.path === path));
  if (missing.length > 0) {
    throw new Problem(exits.notFound, "missing_files", `Not there in ${where}: ${missing.join(", ")}.`);
  }
  if (records.length === 0 && !allowEmpty) {
    const words = `There are no files in ${where}; --allow-empty makes that no error.`;
    throw new Problem(exits.notFound, "empty_set", words);
  }
  const wanted = paths.length === 0 ? records : records.filter(({ path }) => paths.includes(path));
  return { listed: records.length, wanted };
}

async function checkFiles(here: Surroundings, machine: Machine, ask: FilesAsk): Promise<void> {
  const { wanted } = await list(machine, ask);
  const root = new Root(ask.root);
  const drift: { path: string; state: string }[] = [];
  try {
    for (const record of wanted) {
      const state = stateOf(root, record);
      if (state !== "same") drift.push({ path: record.path, state });
    }
  } finally {
    root.close();
  }
  const { stdout } = here.terminal;
  if (here.json) {
    await write(stdout, jsonLine({ ...machine.asked, root: ask.root, files: wanted.length, drift }));
  } else await write(stdout, drift.map(({ path }) => `${path}\n`).join(""));
  if (drift.length > 0) {
    const words = `Out of step: ${drift.length} of ${counted(wanted.length, "file")}.`;
    throw new Problem(exits.failed, "drift", words);
  }
  if (!here.json) here.say(`In step: ${counted(wanted.length, "file")}.`);
}

function stateOf(root: Root, record: FileRecord): string {
  try {
    return root.compare(record).state;
  } catch (error) {
    if (error instanceof Problem && error.code === "obstructed") return "obstructed";
    throw error;
  }
}

function isStale({ state }: Standing): boolean {
  return state === "missing" || state === "other";
}

function summaryOf({ asked }: Machine, { root, written, unchanged }: Placed): string {
  const total = written.length + unchanged;
  return `${asked.project}, ${asked.environment}: ${counted(total, "file")} below ${root}, ${written.length} written, ${unchanged} already in place.`;
}
