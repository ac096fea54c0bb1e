import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiRoot } from "../../src/http/app.ts";
import { strangerKeys } from "./keys.ts";
import type { Server } from "./processes.ts";
import { type Stock, variableName, variablesPerLarge, variablesPerProject } from "./seed.ts";
import { type Bucket, type DatabaseName, type RequestList, type Stand, workedKeysMax } from "./stand.ts";

/** One thing that is measured. */
export type Row = {
  /** As in `postgres/value-20`: how it is chosen, compared and found in the JSON. */
  readonly id: string;
  readonly title: string;
  /** None for a floor. */
  readonly database: DatabaseName | undefined;
  /** The floor it is set against, by id. */
  readonly floor: string | undefined;
  readonly bucket: Bucket;
  readonly list: RequestList;
  /** A good answer; every other one counts against the row. */
  readonly expected: "200" | "refusal";
  /** Bytes of body that each good answer has at least. */
  readonly bodyBytes: number;
  /** Megabytes an answer: not asked for by 256 at once, and measured apart, for the memory they leave behind. */
  readonly large: boolean;
  readonly server: () => Server;
  readonly stand: Stand | undefined;
  /** PostgreSQL's first process, where the row uses it and it runs here. */
  readonly postmaster: number | undefined;
  /** Brings the server to the state that the row measures, before each run. */
  readonly prepare?: () => Promise<void>;
};

/** How many keys are kept over their limit; the lists of all other rows end before them. */
const drainedKeys = 8;

/** What the rows below need to find in a database. */
export const rowsStock = {
  keys: workedKeysMax + drainedKeys,
  projects: 1000,
  large: 10,
  sizes: [],
  files: [
    { project: "files-one", count: 1, bytes: 8 * 1024 * 1024 },
    { project: "files-many", count: 100, bytes: 64 * 1024 },
  ],
} as const satisfies Stock;

/** How many keys that nobody has take turns. */
export const strangersCount = 200_000;
/** The rows of one database; the first lines of each are asked for and judged here. */
export async function rowsOf(stand: Stand): Promise<Row[]> {
  const { place, keys } = stand;
  const postgres = place.name === "PostgreSQL";
  const next = strangerKeys();
  const environment = "environment=production";
  const small = (query: string) => (index: number) =>
    `/projects/p${index % rowsStock.projects}/variables?${environment}${query}`;
  const large = (index: number) => `/projects/large-${index % rowsStock.large}/variables?${environment}`;
  const three = [3, 11, 17].map(variableName).join(",");
  const stranger = `${apiRoot}${small("")(0)} ${next()}`;
  const drained = keys.slice(-drainedKeys);
  const database = { database: place.name, stand, postmaster: postgres ? place.postmaster : undefined };
  const make = async (
    name: string,
    title: string,
    bucket: Bucket,
    list: RequestList,
    items: number | "refusal" | "text",
    more: Partial<Row> = {},
  ): Promise<Row> => ({
    id: `${postgres ? "postgres" : "sqlite"}/${name}`,
    title,
    ...database,
    floor: postgres && items !== "refusal" ? "floor/select-1" : "floor/fixed",
    bucket,
    list,
    expected: items === "refusal" ? "refusal" : "200",
    bodyBytes: items === "refusal" ? 0 : await judge(stand, bucket, list, items),
    large: false,
    server: () => stand.server,
    ...more,
  });
  return [
    await make("metadata", "metadata read", "metadata", stand.list(small("&metadata_only=true")), variablesPerProject),
    await make("value-20", "value read of 20", "value", stand.list(small("")), variablesPerProject),
    await make("value-1000", "value read of 1000", "value", stand.list(large), variablesPerLarge),
    await make("filtered", "filtered read, 3 of 20", "value", stand.list(small(`&keys=${three}`)), 3),
    await make("env", "format=env, 20", "value", stand.list(small("&format=env")), "text"),
    await make(
      "file-8m",
      "file of 8 MiB",
      "content",
      stand.list(() => `/files?project=files-one&${environment}`),
      1,
      { floor: "floor/file-8m", large: true },
    ),
    await make(
      "files-100",
      "100 files of 64 KiB",
      "content",
      stand.list(() => `/files?project=files-many&${environment}`),
      100,
      { floor: "floor/files-100", large: true },
    ),
    await make(
      "unknown",
      "unknown keys, each another",
      "unrecognized",
      stand.listOf(Array.from({ length: strangersCount }, (_, index) => `${apiRoot}${small("")(index)} ${next()}`)),
      "refusal",
    ),
    await make("unknown-again", "one unknown key, 429", "none", stand.listOf([stranger]), "refusal"),
    await make(
      "over-limit",
      "keys over their limit, 429",
      "none",
      stand.listOf(drained.map((key) => `${apiRoot}${small("")(0)} ${key}`)),
      "refusal",
      { prepare: () => drain(stand, drained, small("")(0)) },
    ),
  ];
}

/** Reads of all kinds of variables in turn, for a long run. It is no row of the table. */
export function mixedRow(stand: Stand, rows: readonly Row[]): Row {
  const kinds = ["metadata", "value-20", "filtered", "env"];
  const of = kinds.map((name) => rows.find((row) => row.stand === stand && row.id.endsWith(`/${name}`)) as Row);
  const lists = of.map((row) => readFileSync(row.list.file, "utf8").split("\n"));
  const lines = stand.worked.map((_, index) => lists[index % kinds.length]?.[index] as string);
  // Charged as value reads: the metadata reads among them have more to spend.
  return { ...(of[1] as Row), id: "mixed", list: stand.listOf(lines), bodyBytes: 0 };
}

/** Bodies and header fields of real answers, for the floors to send. @returns the row of each floor */
export async function floorsOf(
  stand: Stand,
  rows: readonly Row[],
  folder: string,
  start: (folder: string) => Promise<Server>,
): Promise<Row[]> {
  const made: [name: string, title: string, body: string, path: string, large: boolean][] = [
    ["fixed", "bare Bun.serve, fixed bytes", "value-20", "ready", false],
    ["select-1", "bare Bun.serve and one `select 1`", "value-20", "select-1", false],
    ["select-1-defaults", "… with the driver's defaults", "value-20", "select-1-defaults", false],
    ["file-8m", "bare Bun.serve, the file's body", "file-8m", "ready", true],
    ["files-100", "bare Bun.serve, the files' body", "files-100", "ready", true],
  ];
  const sizes = new Map<string, number>();
  for (const body of new Set(made.map(([, , name]) => name))) {
    const row = rows.find(({ id }) => id.endsWith(`/${body}`)) as Row;
    const response = await ask(stand.server, row.list.first);
    const text = await response.text();
    sizes.set(body, Buffer.byteLength(text));
    const headers = Object.fromEntries([...response.headers].filter(([name]) => !hopByHop.has(name)));
    writeFileSync(join(folder, `${body}.body`), text);
    writeFileSync(join(folder, `${body}.json`), JSON.stringify(headers));
    stand.sent(row.bucket, 1);
  }
  const server = await start(folder);
  return made.map(([name, title, body, path, large]) => ({
    id: `floor/${name}`,
    title,
    database: undefined,
    floor: undefined,
    bucket: "none",
    list: stand.listOf(stand.worked.map((key) => `/${path}/${body} ${key}`)),
    expected: "200",
    bodyBytes: sizes.get(body) as number,
    large,
    server: () => server,
    stand: undefined,
    postmaster: name.startsWith("select-1") ? stand.place.postmaster : undefined,
  }));
}

const hopByHop = new Set(["content-length", "transfer-encoding", "connection", "date"]);

/** Asks for a list's first line and holds the answer against what it should be. @returns the length of its body */
async function judge(stand: Stand, bucket: Bucket, list: RequestList, items: number | "text"): Promise<number> {
  const response = await ask(stand.server, list.first);
  stand.sent(bucket, 1);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${list.first.split(" ")[0]} was answered with ${response.status}`);
  const found = items === "text" ? text.split("\n").filter((line) => line.startsWith(variableName(0).slice(0, 8))) : [];
  const count = items === "text" ? found.length : itemsOf(JSON.parse(text) as Record<string, unknown>);
  if (count !== (items === "text" ? variablesPerProject : items)) {
    throw new Error(`${list.first.split(" ")[0]} was answered with ${count} items, not ${items}`);
  }
  return Buffer.byteLength(text);
}

function itemsOf(body: Readonly<Record<string, unknown>>): number {
  const items = body["variables"] ?? body["files"];
  return Array.isArray(items) ? items.length : 0;
}

/** Uses up a few keys' allowance of value reads. */
async function drain(stand: Stand, keys: readonly string[], path: string): Promise<void> {
  for (const key of keys) {
    const line = `${apiRoot}${path} ${key}`;
    let status = 200;
    while (status === 200) {
      const response = await ask(stand.server, line);
      await response.arrayBuffer();
      status = response.status;
    }
    if (status !== 429) throw new Error(`a key that used up its allowance was answered with ${status}`);
  }
}

function ask(server: Server, line: string): Promise<Response> {
  const [path, key] = line.split(" ");
  return fetch(`${server.origin}${path}`, { headers: { authorization: `Bearer ${key}` } });
}
