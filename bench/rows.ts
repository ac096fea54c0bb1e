import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { apiRoot } from "../src/serve/api/app.ts";
import { unknownKeySource } from "./keys.ts";
import type { Server } from "./processes.ts";
import { type Bucket, type DatabaseName, drainedKeys, type RequestList, type Rig, workedKeysMax } from "./rig.ts";
import { type Stock, variableName, variablesPerLarge, variablesPerProject } from "./seed.ts";

/** One thing to measure. */
export type Row = {
  /** Such as `postgres/value-20`. Identifies the row in `--only`, in comparisons and in the JSON. */
  readonly id: string;
  readonly title: string;
  /** Undefined for a floor. */
  readonly database: DatabaseName | undefined;
  /** Id of the floor that it is compared with. */
  readonly floor: string | undefined;
  readonly bucket: Bucket;
  readonly list: RequestList;
  /** The correct answer; any other makes the run invalid. */
  readonly expected: "200" | "304" | "refusal";
  /** The minimum body size of a correct answer. */
  readonly bodyBytes: number;
  /** Whether answers have megabytes. For their memory, such rows are measured last, and not at 256 connections. */
  readonly large: boolean;
  readonly server: () => Server;
  readonly rig: Rig | undefined;
  /** PostgreSQL's main process, if the row uses it and it runs here. */
  readonly postmaster: number | undefined;
  /** Prepares the server before each run. */
  readonly prepare?: () => Promise<void>;
};

/** The content of the database that the rows need. */
export const rowsStock = {
  keys: workedKeysMax + drainedKeys,
  projects: 1000,
  large: 10,
  sizes: [],
  files: [
    { project: "files-one", count: 1, bytes: 8 * 1024 * 1024 },
    { project: "files-small", count: 10, bytes: 4 * 1024 },
    { project: "files-many", count: 100, bytes: 64 * 1024 },
    { project: "files-large", count: 60, bytes: 8 * 1024 * 1024 },
  ],
} as const satisfies Stock;

/** How many unknown keys take turns. */
export const unknownKeysCount = 200_000;

/** The rows of one database, or some of them. Checks the answer to the first line of each list. */
export async function rowsOf(rig: Rig, isWanted = (_name: string) => true): Promise<Row[]> {
  const { backend, stock, drained } = rig;
  const postgres = backend.name === "PostgreSQL";
  const next = unknownKeySource();
  const environment = "environment=production";
  const small = (query: string) => (index: number) =>
    `/projects/p${index % stock.projects}/variables?${environment}${query}`;
  const accounts = (index: number) => `/projects/p${index % stock.projects}/accounts?${environment}`;
  const large = (index: number) => `/projects/large-${index % stock.large}/variables?${environment}`;
  const list = (path: (index: number) => string) => () => rig.list(path);
  const files = (project: string, query = "") => list(() => `/files?project=files-${project}&${environment}${query}`);
  const three = [3, 11, 17].map(variableName).join(",");
  const unknownKey = `${apiRoot}${small("")(0)} ${next()}`;
  const database = { database: backend.name, rig, postmaster: postgres ? backend.postmaster : undefined };
  const made: Row[] = [];
  const make = async (
    name: string,
    title: string,
    bucket: Bucket,
    listOf: () => RequestList | Promise<RequestList>,
    items: number | "refusal" | "text" | "unchanged",
    more: Partial<Row> = {},
  ) => {
    if (!isWanted(name)) return;
    const list = await listOf();
    made.push({
      id: `${postgres ? "postgres" : "sqlite"}/${name}`,
      title,
      ...database,
      floor: postgres && items !== "refusal" ? "floor/select-1" : "floor/fixed",
      bucket,
      list,
      expected: items === "refusal" ? "refusal" : items === "unchanged" ? "304" : "200",
      bodyBytes: items === "refusal" ? 0 : await check(rig, bucket, list, items),
      large: false,
      server: () => rig.server,
      ...more,
    });
  };
  await make("metadata", "metadata read", "metadata", list(small("&metadata_only=true")), variablesPerProject);
  await make("value-20", "value read of 20", "value", list(small("")), variablesPerProject);
  // Here each key asks ten times in turn, as a client does that looks again and again.
  const again = () =>
    rig.listOf(rig.worked.flatMap((key, index) => Array<string>(10).fill(`${apiRoot}${small("")(index)} ${key}`)));
  await make("value-20-again", "value read of 20, ten of each key", "value", again, variablesPerProject);
  await make(
    "unchanged-20",
    "unchanged value read of 20, 304",
    "metadata",
    () => withTags(rig, rig.list(small(""))),
    "unchanged",
  );
  await make("value-1000", "value read of 1000", "value", list(large), variablesPerLarge);
  await make("filtered", "filtered read, 3 of 20", "value", list(small(`&keys=${three}`)), 3);
  await make("env", "format=env, 20", "value", list(small("&format=env")), "text");
  await make("accounts", "account read of 20", "value", list(accounts), variablesPerProject);
  await make("files-10", "10 files of 4 KiB", "content", files("small"), 10);
  await make("files-60-metadata", "60 files of 8 MiB, metadata", "metadata", files("large", "&metadataOnly=1"), 60);
  await make("file-8m", "file of 8 MiB", "content", files("one"), 1, { floor: "floor/file-8m", large: true });
  await make("files-100", "100 files of 64 KiB", "content", files("many"), 100, {
    floor: "floor/files-100",
    large: true,
  });
  await make(
    "unknown",
    "unknown keys, all different",
    "unrecognized",
    () => rig.listOf(Array.from({ length: unknownKeysCount }, (_, index) => `${apiRoot}${small("")(index)} ${next()}`)),
    "refusal",
  );
  await make("unknown-again", "one unknown key, 429", "none", () => rig.listOf([unknownKey]), "refusal");
  await make(
    "over-limit",
    "keys over their limit, 429",
    "none",
    () => rig.listOf(drained.map((key) => `${apiRoot}${small("")(0)} ${key}`)),
    "refusal",
    { prepare: () => drain(rig, drained, small("")(0)) },
  );
  return made;
}

/** A row that mixes all reads of variables, for a long run. It is not part of the table. */
export function mixedRow(rig: Rig, rows: readonly Row[]): Row {
  const kinds = ["metadata", "value-20", "filtered", "env"];
  const of = kinds.map((name) => rows.find((row) => row.rig === rig && row.id.endsWith(`/${name}`)) as Row);
  const lists = of.map((row) => readFileSync(row.list.file, "utf8").split("\n"));
  const lines = rig.worked.map((_, index) => lists[index % kinds.length]?.[index] as string);
  // Charged as value reads; the metadata reads have more tokens.
  return { ...(of[1] as Row), id: "mixed", list: rig.listOf(lines), bodyBytes: 0 };
}

/** Writes real answers, starts the server that sends them as floors, and returns the floors' rows. */
export async function floorsOf(
  rig: Rig,
  rows: readonly Row[],
  folder: string,
  start: (folder: string) => Promise<Server>,
): Promise<Row[]> {
  const made: [name: string, title: string, body: string, path: string, large: boolean][] = [
    ["fixed", "bare Bun.serve, fixed bytes", "value-20", "ready", false],
    ["select-1", "bare Bun.serve and one `select 1`", "value-20", "select-1", false],
    ["file-8m", "bare Bun.serve, the file's body", "file-8m", "ready", true],
    ["files-100", "bare Bun.serve, the files' body", "files-100", "ready", true],
  ];
  const sizes = new Map<string, number>();
  for (const body of new Set(made.map(([, , name]) => name))) {
    const row = rows.find(({ id }) => id.endsWith(`/${body}`)) as Row;
    const response = await ask(rig.server, row.list.first);
    const text = await response.text();
    sizes.set(body, Buffer.byteLength(text));
    const headers = Object.fromEntries([...response.headers].filter(([name]) => !hopByHop.has(name)));
    writeFileSync(join(folder, `${body}.body`), text);
    writeFileSync(join(folder, `${body}.json`), JSON.stringify(headers));
    rig.sent(row.bucket, 1);
  }
  const server = await start(folder);
  return made.map(([name, title, body, path, large]) => ({
    id: `floor/${name}`,
    title,
    database: undefined,
    floor: undefined,
    bucket: "none",
    list: rig.listOf(rig.worked.map((key) => `/${path}/${body} ${key}`)),
    expected: "200",
    bodyBytes: sizes.get(body) as number,
    large,
    server: () => server,
    rig: undefined,
    postmaster: name === "select-1" ? rig.backend.postmaster : undefined,
  }));
}

const hopByHop = new Set(["content-length", "transfer-encoding", "connection", "date"]);

/** A list of value reads with the tag of each answer, so that each becomes a 304. */
async function withTags(rig: Rig, list: RequestList): Promise<RequestList> {
  const lines = readFileSync(list.file, "utf8").trimEnd().split("\n");
  const tagged: string[] = [];
  while (tagged.length < lines.length) {
    const group = lines.slice(tagged.length, tagged.length + askedAtOnce);
    const tags = await Promise.all(
      group.map(async (line) => {
        const response = await ask(rig.server, line);
        await response.arrayBuffer();
        return `${line} ${response.headers.get("etag")}`;
      }),
    );
    tagged.push(...tags);
  }
  rig.sent("value", lines.length);
  return rig.listOf(tagged);
}

const askedAtOnce = 32;

/** Sends the first line of a list and checks the answer. @returns the length of its body */
async function check(
  rig: Rig,
  bucket: Bucket,
  list: RequestList,
  items: number | "text" | "unchanged",
): Promise<number> {
  const response = await ask(rig.server, list.first);
  rig.sent(bucket, 1);
  const text = await response.text();
  if (items === "unchanged" && response.status === 304) return 0;
  if (response.status !== 200) throw new Error(`${list.first.split(" ")[0]} was answered with ${response.status}`);
  const found = items === "text" ? text.split("\n").filter((line) => line.startsWith(variableName(0).slice(0, 8))) : [];
  const count = items === "text" ? found.length : itemsOf(JSON.parse(text) as Record<string, unknown>);
  if (count !== (items === "text" ? variablesPerProject : items)) {
    throw new Error(`${list.first.split(" ")[0]} was answered with ${count} items, not ${items}`);
  }
  return Buffer.byteLength(text);
}

function itemsOf(body: Readonly<Record<string, unknown>>): number {
  const items = body["variables"] ?? body["accounts"] ?? body["files"];
  return Array.isArray(items) ? items.length : 0;
}

/** Takes all value tokens of a few keys. */
async function drain(rig: Rig, keys: readonly string[], path: string): Promise<void> {
  for (const key of keys) {
    const line = `${apiRoot}${path} ${key}`;
    let status = 200;
    while (status === 200) {
      const response = await ask(rig.server, line);
      await response.arrayBuffer();
      status = response.status;
    }
    if (status !== 429) throw new Error(`a key over its limit was answered with ${status}`);
  }
}

/** Sends one line of a list. */
export function ask(server: Server, line: string): Promise<Response> {
  const [path, key, tag] = line.split(" ");
  const condition = tag !== undefined && { "if-none-match": tag };
  return fetch(`${server.origin}${path}`, { headers: { authorization: `Bearer ${key}`, ...condition } });
}
