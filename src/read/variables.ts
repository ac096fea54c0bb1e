import type { Caller, Target } from "../access/authenticate.ts";
import { placeOf } from "../access/grant.ts";
import { Fault } from "../fault.ts";
import { Held } from "../held.ts";
import { compareBytes, type Environment, environmentsOf, itemsMax } from "../names.ts";
import { noListing, variablesArray, variablesListing, variablesPieces } from "../render/variables-json.ts";
import { generationOf, open } from "../seal/envelope.ts";
import { itemListing, variableEntry } from "../seal/item-set.ts";
import { variablePlace } from "../seal/place.ts";
import type { PartRow } from "../store/place.ts";
import type { Selection } from "../store/variables.ts";
import { claim, readRows, type Share, smallReadBytesMax, takeAtOnce } from "./memory.ts";
import { SealedSet } from "./sets.ts";
import { DataKeys, type Source } from "./source.ts";
import { opened as noteOpened, passed, type Stages } from "./stages.ts";
import { judgeStanding, type ReadProject } from "./standing.ts";

export type Variable = { readonly name: string; readonly value: string; readonly updatedAt: number };
export type VariableName = { readonly name: string; readonly updatedAt: number };

/** Opened variables, in the spellings that answers need; each is made when it is asked for. */
export type OpenedVariables = {
  /** A JSON array of `{"key","value","updatedAt"}`, as text, or as UTF-8 that is the taker's to zero. */
  readonly array: () => string | Buffer;
  /** The same piece by piece, for what is large. */
  readonly pieces: () => Iterable<string | Uint8Array>;
  readonly list: () => readonly Variable[];
};

/** Opened variables with what may be said of them before their release. */
export type ReadVariables = {
  readonly project: ReadProject;
  /** In byte order. */
  readonly names: readonly string[];
  readonly held: Held<OpenedVariables>;
  /** The memory that these take; to be given back when the last byte has left or nothing will. */
  readonly share: Share;
};

/**
 * Gates 7 to 9 for values: all of the selected variables, opened, or a Fault. A whole environment comes from its sealed
 * set, one look-up and one opening, where that is current.
 * @throws Fault `project_not_found`, `too_many_items`, `decryption_failed`, `unavailable`; or what a key that lost its
 *   standing meanwhile is owed
 */
export async function readVariables(
  source: Source,
  caller: Caller,
  slug: string,
  environment: Environment,
  selection: Selection,
  signal: () => AbortSignal,
  stages?: Stages,
): Promise<ReadVariables> {
  const { grant } = caller;
  passed(stages, "readFromMs");
  const ofSet = selection.by === "all" && (await readSet(source, caller, slug, environment, signal, stages));
  if (ofSet) return ofSet;
  const place = { keyId: grant.keyId, ...placeOf(grant, slug) };
  const { rows, share } = await readRows(source.memory, caller, signal, (bytesMax) =>
    source.variables.values(place, environment, selection, bytesMax),
  );
  try {
    passed(stages, "readToMs");
    const project = { id: standing(rows), organizationId: grant.organizationId, slug };
    const items = rows.filter(isItem);
    if (items.length > itemsMax) throw new Fault("too_many_items", `over ${itemsMax} variables in ${project.id}`);
    items.sort(byName);
    const dataKeys = new DataKeys(source.keyring, project, rows.filter(isDataKey).map(wrappedKey));
    const opened = items.map((row) => openVariable(dataKeys, project.id, environment, row));
    if (selection.by === "all") holdAgainstSet(dataKeys, project, environment, rows, opened);
    noteOpened(stages, "variable", items.length);
    return { project, names: items.map((row) => row.name), held: new Held(openedRows(opened)), share };
  } catch (error) {
    share.release();
    throw error;
  }
}

/** A whole environment from its sealed set; undefined where rows must be read. */
async function readSet(
  source: Source,
  caller: Caller,
  slug: string,
  environment: Environment,
  signal: () => AbortSignal,
  stages: Stages | undefined,
): Promise<ReadVariables | undefined> {
  const { target } = caller;
  if (target === null) return undefined;
  const remembered = source.sets.remembered(caller, target, slug, environment);
  // Remembered or not: once it is opened it takes as much again, until the answer has left.
  let bytes = remembered?.stored.sealed.length ?? smallReadBytesMax;
  for (let tries = 0; tries < setTriesMax; tries++) {
    const claimed = claim(source.memory, bytes, caller, signal);
    const waited = claimed instanceof Promise;
    const share = waited ? await claimed : claimed;
    try {
      // After a wait the key is judged again, with the set as it is then.
      const known = waited || tries > 0 ? undefined : remembered;
      const set = known ?? (await source.sets.fetch(caller, slug, environment, bytes));
      if (typeof set === "object") {
        passed(stages, "readToMs");
        share.resize(set.stored.sealed.length);
        const array = set.open();
        noteOpened(stages, "set", 1);
        return { project: set.project, names: set.names, held: new Held(openedSet(array)), share };
      }
      share.release();
      if (set === undefined) return undefined;
      bytes = set;
    } catch (error) {
      share.release();
      throw error;
    }
  }
  throw new Fault("unavailable", "the set grew each time it was read");
}

/** A set is asked for as a small one, then as large as it is; more often only where it is written meanwhile. */
const setTriesMax = 4;

/**
 * The set seal, where it is not current: somebody wrote to the rows or the set by other means. If both still say the
 * same, nothing is lost; a row that was deleted, added or put back makes them differ.
 * @throws Fault `decryption_failed`
 */
function holdAgainstSet(
  dataKeys: DataKeys,
  project: ReadProject,
  environment: Environment,
  rows: readonly PartRow[],
  opened: readonly Variable[],
): void {
  const row = rows.find(({ part }) => part === 3);
  if (!row) throw new Fault("decryption_failed", `the set of ${project.id} ${environment} is gone`);
  const { rootId, wrapped } = dataKeys.row(row.environments);
  const listing = row.id ?? noListing;
  const stored = { revision: row.number, generation: row.environments, rootId, wrapped, listing };
  const set = new SealedSet(dataKeys.keyring, project, environment, { ...stored, sealed: row.sealed as Buffer }).open();
  // A set that is too large to be kept holds the listing of its rows.
  const array =
    listing === noListing
      ? itemListing(rows.filter(isItem).map((item) => variableEntry(project.id, environment, storedOf(item))))
      : variablesArray(opened);
  const text = set.toString("utf8");
  set.fill(0);
  if (text !== array) {
    throw new Fault("decryption_failed", `the rows of ${project.id} ${environment} are not those of its set`);
  }
}

function isItem(row: PartRow): boolean {
  return row.part === 2;
}

function storedOf(row: PartRow) {
  return { ...row, id: row.id as string, version: row.number, sealed: row.sealed as Buffer };
}

function openedSet(array: Buffer): OpenedVariables {
  return {
    array: () => array,
    pieces: () => [array],
    list: () => {
      const text = array.toString("utf8");
      array.fill(0);
      const variables = JSON.parse(text) as { key: string; value: string; updatedAt: number }[];
      return variables.map(({ key, ...variable }) => ({ name: key, ...variable }));
    },
  };
}

function openedRows(list: readonly Variable[]): OpenedVariables {
  return { array: () => variablesArray(list), pieces: () => variablesPieces(list), list: () => list };
}

/**
 * Gates 7 and 8 for names: those of one environment, or the distinct ones of every environment the key reaches with
 * their latest change. Nothing is decrypted.
 * @returns a JSON array of `{"key","updatedAt"}`
 * @throws Fault as {@link readVariables} but `decryption_failed`
 */
export async function listVariableNames(
  source: Source,
  caller: Caller,
  slug: string,
  environment: Environment | null,
  selection: Selection,
  stages?: Stages,
): Promise<string> {
  const { grant, target } = caller;
  passed(stages, "readFromMs");
  if (environment !== null && selection.by === "all" && target !== null) {
    const set = await findSetAtOnce(source, caller, target, slug, environment);
    if (set) {
      passed(stages, "readToMs");
      return set.stored.listing;
    }
  }
  const reach = environment === null ? environmentsOf(grant.environments) : [environment];
  const rows = await source.variables.names({ keyId: grant.keyId, ...placeOf(grant, slug) }, reach, selection);
  passed(stages, "readToMs");
  const projectId = standing(rows);
  const latest = new Map<string, number>();
  for (const row of rows) {
    if (row.part === 2) latest.set(row.name, Math.max(latest.get(row.name) ?? 0, row.updatedAt));
  }
  if (latest.size > itemsMax) throw new Fault("too_many_items", `over ${itemsMax} variable names in ${projectId}`);
  return variablesListing([...latest].map(([name, updatedAt]) => ({ name, updatedAt })).sort(byName));
}

/** The set for its listing; undefined, too, where it is large and must be fetched: nobody waits here. */
async function findSetAtOnce(
  source: Source,
  caller: Caller,
  target: Target,
  slug: string,
  environment: Environment,
): Promise<SealedSet | undefined> {
  const remembered = source.sets.remembered(caller, target, slug, environment);
  if (remembered) return remembered;
  const share = takeAtOnce(source.memory, smallReadBytesMax, caller);
  try {
    const set = share && (await source.sets.fetch(caller, slug, environment, smallReadBytesMax));
    return typeof set === "object" ? set : undefined;
  } finally {
    share?.release();
  }
}

function openVariable(dataKeys: DataKeys, projectId: string, environment: Environment, row: PartRow): Variable {
  const sealed = row.sealed as Buffer;
  const place = variablePlace({
    projectId,
    environment,
    variableId: row.id as string,
    version: row.number,
    name: row.name,
  });
  const plaintext = open(dataKeys.of(generationOf(sealed)).subkey("variable"), place, sealed);
  const value = plaintext.toString("utf8");
  plaintext.fill(0);
  return { name: row.name, value, updatedAt: row.updatedAt };
}

/** The project's id. @throws Fault as {@link judgeStanding} */
export function standing(rows: readonly PartRow[]): string {
  const row = rows.find(({ part }) => part === 0);
  return judgeStanding(row && { live: row.number, plan: row.name, projectId: row.id });
}

export function isDataKey(row: PartRow): boolean {
  return row.part === 1;
}

export function wrappedKey(row: PartRow): { id: string | null; number: number; bytes: Buffer | null } {
  return { id: row.id, number: row.number, bytes: row.sealed };
}

export function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return compareBytes(a.name, b.name);
}
