import { expect } from "bun:test";
import { isUtf8 } from "node:buffer";
import { type Environment, environments } from "../../src/core/names.ts";
import { setAccount } from "../../src/kinds/accounts/write.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { setVariables } from "../../src/kinds/variables/write.ts";
import { RememberedSets } from "../../src/sets/remembered.ts";
import { type Dice, unlimited, verdictOf } from "./attack.ts";
import { canary } from "./canary.ts";
import { deleteAccount, deleteFile, deleteVariable } from "./delete.ts";
import type { Kind } from "./kinds.ts";

import type { Client, Key, Placed, Row, World } from "./world.ts";

/*
 * What the tests of `tamper.test.ts` share: a world of three projects, every question that its keys can ask, what each
 * answer depends on, and ways to edit rows.
 */

/** It is in every value, so that none can leave unnoticed. */
const secretOf = (...parts: readonly string[]) => `${canary}-${parts.join("-")}`;
export const setColumns = ["version", "generation", "listing", "listing_mac", "sealed"] as const;
/** The tables that the tests edit. */
const tables = ["organizations", "projects", "data_keys", "sets", "set_versions", "file_contents", "api_keys"] as const;

/**
 * What a question's answer depends on, in words: `listing web files staging` and `values web accounts staging` of a
 * set, `content web a.txt` and `bytes web a.txt` of a file. What an edit damages is a pattern of such words.
 */
type Question = { readonly key: Key; readonly path: string; readonly needs: readonly string[] };

/** A column of a row, and what is damaged when it changes. */
type Target = {
  readonly table: (typeof tables)[number];
  readonly column: string;
  readonly where: string;
  readonly at: readonly unknown[];
  readonly damages: RegExp;
};

export type Stage = {
  readonly world: World;
  /** One app remembers sets where the database allows it, as a server does; the other remembers none. */
  readonly clients: readonly [Client, Client];
  readonly web: Placed;
  readonly api: Placed;
  readonly foreign: Placed;
  readonly alphaId: string;
  readonly betaId: string;
  /** Every project of alpha; production of alpha/web; every project of beta. */
  readonly every: Key;
  readonly narrow: Key;
  readonly stranger: Key;
  readonly questions: readonly Question[];
  /** The bodies before anything was edited. */
  readonly truth: ReadonlyMap<Question, string>;
  /** Puts every row back. */
  readonly restore: () => Promise<void>;
};

export const wholeProduction = "/projects/web/variables?environment=production";
export const nothing = /^$/;
let turns = 0;

export async function setUp(world: World): Promise<Stage> {
  if (world.dialect === "sqlite") await world.run("PRAGMA synchronous = OFF"); // of this connection: it only edits
  const [alpha, beta] = [await world.organization(), await world.organization()];
  const content = (label: string) => ({
    variables: Object.fromEntries(
      environments.map((at) => [at, { FIRST: secretOf(label, at, "FIRST"), SECOND: secretOf(label, at, "SECOND") }]),
    ),
    accounts: [
      ...environments.map((at) => ({ name: `own ${at}`, environments: [at], values: { token: secretOf(label, at) } })),
      { name: "registry", environments: ["development", "production"] as const, values: { u: secretOf(label, "u") } },
    ],
    files: [
      { path: "a.txt", environments: ["production"], content: secretOf(label, "a") },
      { path: "b/c.txt", environments: ["development", "staging"], content: secretOf(label, "c") },
      { path: "d.json", environments: ["production"], content: secretOf(label, "d") },
      ...(label === "web" ? [{ path: "medium.bin", environments: ["staging"], content: canary.repeat(1024) }] : []),
      ...(label === "api" ? [{ path: "large.bin", environments: ["staging"], content: canary.repeat(75 * 1024) }] : []),
    ],
  });
  const web = await world.project(alpha, "web", content("web"));
  const api = await world.project(alpha, "api", content("api"));
  const foreign = await world.project(beta, "web", content("foreign"));
  const wide = { surfaces: ["rest_api", "ci_action"], resources: ["projects", "variables", "accounts", "files"] };
  const every = await world.key(alpha, wide);
  const reach = { projects: ["web"], environments: ["production"], expiresInMs: 3_600_000 };
  const narrow = await world.key(alpha, { ...wide, ...reach });
  const stranger = await world.key(beta, wide);
  const forgetful = unlimited(world, ({ source }) => ({ source: { ...source, remembered: new RememberedSets(0) } }));
  const questions = [
    ...questionsOf(every, "web", "web", environments),
    ...questionsOf(every, "api", "api", environments),
    ...questionsOf(stranger, "foreign", "web", environments),
    ...questionsOf(narrow, "web", "web", ["production"]),
  ];
  // Someone who can write to the database can drop its rules as well.
  if (world.dialect === "postgres") {
    const rules = await world.run("select conrelid::regclass::text as owner, conname, contype from pg_constraint");
    for (const { owner, conname, contype } of rules) {
      if (!/[cf]/.test(String(contype)) || !(tables as readonly unknown[]).includes(owner)) continue;
      await world.run(`alter table ${owner} drop constraint ${conname}`);
    }
  } else {
    await world.run("pragma ignore_check_constraints = on");
  }
  for (const table of tables) await world.run(`create table kept_${table} as select * from ${table}`);
  const back = (table: string) => [`delete from ${table}`, `insert into ${table} select * from kept_${table}`];
  const statements = tables.flatMap(back);
  const restore = async () => {
    // PostgreSQL runs several statements of one text as one transaction. SQLite runs the first alone.
    for (const text of world.dialect === "postgres" ? [statements.join("; ")] : statements) await world.run(text);
  };
  const base = { world, clients: [unlimited(world), forgetful] as const, web, api, foreign, every, narrow, stranger };
  const stage = { ...base, alphaId: alpha.id, betaId: beta.id, questions, truth: new Map<Question, string>(), restore };
  for (const row of await world.run("select * from sets where kind = 'files'")) {
    for (const { id, path } of JSON.parse(row["listing"] as string))
      contentIds.set(`${world.dialect} ${projectOf(stage, row)} ${path}`, id);
  }
  return { ...stage, truth: await truthOf(stage, questions) };
}

/** Content ids by dialect, project and path. */
const contentIds = new Map<string, string>();

/** Everything a key can ask of a project, with what the answers depend on. */
export function questionsOf(key: Key, label: string, slug: string, reach: readonly Environment[]): Question[] {
  const large = label === "foreign" ? [] : [label === "web" ? "medium.bin" : "large.bin"];
  const pathsOf = (at: Environment) =>
    at === "production" ? ["a.txt", "d.json"] : ["b/c.txt", ...(at === "staging" ? large : [])];
  const listings = (kind: string) => reach.map((at) => `listing ${label} ${kind} ${at}`);
  const contents = (paths: readonly string[]) => paths.map((path) => `content ${label} ${path}`);
  const bytes = (paths: readonly string[]) => [...contents(paths), ...paths.map((path) => `bytes ${label} ${path}`)];
  const asked = reach.flatMap((at): [path: string, needs: string[]][] => {
    const variables = `/projects/${slug}/variables?environment=${at}`;
    const accounts = `/projects/${slug}/accounts?environment=${at}`;
    const files = `/files?project=${slug}&environment=${at}`;
    const listing = `listing ${label} variables ${at}`;
    const values = [listing, `values ${label} variables ${at}`];
    const [first = ""] = pathsOf(at);
    return [
      [variables, values],
      [`${variables}&format=env`, values],
      [`${variables}&keys=FIRST,SECOND`, values],
      [`${variables}&prefix=S`, values],
      [`/secrets?project=${slug}&environment=${at}`, values],
      [`${variables}&metadata_only=true`, [listing]],
      [accounts, [...listings("accounts"), `values ${label} accounts ${at}`]],
      [`${accounts}&metadata_only=true`, listings("accounts")],
      [files, [...listings("files"), ...bytes(pathsOf(at))]],
      [`${files}&path=${first}`, [...listings("files"), ...bytes([first])]],
      [`${files}&metadataOnly=true`, [...listings("files"), ...contents(pathsOf(at))]],
    ];
  });
  asked.push(
    [`/projects/${slug}/variables?metadata_only=true`, listings("variables")],
    [`/projects/${slug}/accounts`, [...listings("accounts"), ...reach.map((at) => `values ${label} accounts ${at}`)]],
    [`/projects/${slug}/accounts?metadata_only=true`, listings("accounts")],
  );
  return asked.map(([path, needs]) => ({ key, path, needs }));
}

export async function truthOf({ clients }: Pick<Stage, "clients">, questions: readonly Question[]) {
  const truth = new Map<Question, string>();
  for (const question of questions) {
    const answer = await clients[1].ask(question.path, { key: question.key });
    expect([question.path, verdictOf(answer)]).toEqual([question.path, "200"]);
    truth.set(question, answer.text);
  }
  return truth;
}

/** How one app answers, each in turn: "200" for the truth only. */
export async function ask(stage: Stage, question: Question, truth = stage.truth): Promise<string> {
  const answer = await (stage.clients[turns++ % 2] as Client).ask(question.path, { key: question.key });
  const verdict = verdictOf(answer);
  if (verdict === "200") return answer.text === truth.get(question) ? "200" : `LIES ${answer.text}`;
  return answer.text.includes(canary) ? `LEAKS ${answer.text}` : verdict;
}

export const isHit = ({ needs }: Question, damaged: RegExp) => needs.some((need) => damaged.test(need));

/** Every question that needs what is damaged is refused, and every other one answered as before. */
export async function expectAll(
  stage: Stage,
  damaged: RegExp,
  questions = stage.questions,
  truth = stage.truth,
): Promise<void> {
  const found = await Promise.all(
    questions.map(async ({ path }, n) => [path, await ask(stage, questions[n] as Question, truth)]),
  );
  const expected = questions.map((question) => [question.path, isHit(question, damaged) ? "decryption_failed" : "200"]);
  expect(found).toEqual(expected);
}

/** The same of one question that is hit and sometimes of one that is not, each in turn. */
export async function expectSome(stage: Stage, damaged: RegExp, what: string): Promise<void> {
  const hit = stage.questions.filter((question) => isHit(question, damaged));
  const question = hit[turns % hit.length] as Question;
  expect([what, question.path, await ask(stage, question)]).toEqual([what, question.path, "decryption_failed"]);
  if (turns % 8 !== 0) return;
  const other = stage.questions[turns % stage.questions.length] as Question;
  const expected = isHit(other, damaged) ? "decryption_failed" : "200";
  expect([what, other.path, await ask(stage, other)]).toEqual([what, other.path, expected]);
}

/** @param bits - which to flip, or one of how many */
export async function refusesEachFlip(stage: Stage, target: Target, bits: readonly number[] | number): Promise<void> {
  const value = await read(stage, target);
  const width = typeof value === "number" ? (target.column === "version" ? 63 : 31) : value.length * 8;
  const all = Array.from({ length: width }, (_, bit) => bit);
  const chosen = typeof bits === "number" ? all.filter((bit) => width < 64 || bit % bits === (bit % 7) % bits) : bits;
  for (const bit of chosen) {
    const changed = typeof value === "number" ? BigInt(value) ^ (1n << BigInt(bit)) : flipped(value, bit);
    if (!(await write(stage, target, changed))) continue;
    await expectSome(stage, target.damages, `bit ${bit} of ${target.table}.${target.column}`);
  }
  await stage.restore();
  await expectAll(stage, nothing);
}

export function setTarget(
  stage: Stage,
  label: "web" | "api",
  kind: string,
  at: Environment,
  column: (typeof setColumns)[number],
): Target {
  const part = column === "sealed" ? "values" : "listing";
  return {
    table: "sets",
    column,
    where: "project_id = ? and kind = ? and environment = ?",
    at: [stage[label].id, kind, at],
    damages: new RegExp(`^${part} ${label} ${kind} ${at}$`),
  };
}

export function dataKeyTarget({ web }: Stage, column: string): Target {
  return { table: "data_keys", column, where: "project_id = ?", at: [web.id], damages: /^(values|bytes) web / };
}

export function contentTarget(stage: Stage, label: "web" | "api", path: string, column: string): Target {
  const part = column === "sealed" || column === "generation" ? "bytes" : "content";
  const at = [contentId(stage, label, path)];
  return { table: "file_contents", column, where: "id = ?", at, damages: new RegExp(`^${part} ${label} ${path}$`) };
}

export async function read({ world }: Stage, { table, column, where, at }: Target): Promise<Buffer | number> {
  const [row] = await world.run(`select ${column} as value from ${table} where ${where}`, at);
  const value = row?.["value"] as Buffer | number | string;
  return typeof value === "string" ? Buffer.from(value) : value;
}

/** @returns whether the database takes the value */
export async function write({ world }: Stage, target: Target, value: Buffer | number | bigint): Promise<boolean> {
  const { table, column, where, at } = target;
  const isText = ["listing", "root_id", "project_id"].includes(column);
  if (!isText || !Buffer.isBuffer(value)) {
    await world.run(`update ${table} set ${column} = ? where ${where}`, [value, ...at]);
  } else if (world.dialect === "sqlite") {
    await world.run(`update ${table} set ${column} = cast(? as text) where ${where}`, [value, ...at]);
  } else {
    // PostgreSQL stores no text that is not UTF-8.
    if (!isUtf8(value) || value.includes(0)) return false;
    await world.run(`update ${table} set ${column} = ? where ${where}`, [value.toString(), ...at]);
  }
  return true;
}

export function projectOf(stage: Stage, row: Row): "web" | "api" | "foreign" {
  return (["web", "api", "foreign"] as const).find((label) => stage[label].id === row["project_id"]) ?? "foreign";
}

export function labelOf(stage: Stage, row: Row): string {
  return `${projectOf(stage, row)} ${row["kind"]} ${row["environment"]}`;
}

export function contentId({ world }: Stage, label: string, path: string): string {
  return contentIds.get(`${world.dialect} ${label} ${path}`) as string;
}

export function labelOfContent(stage: Stage, { id }: Row): string {
  const [found = ""] = [...contentIds].find(([, content]) => content === id) ?? [];
  return found.slice(stage.world.dialect.length + 1);
}

const primaryKeys = {
  sets: ["project_id", "kind", "environment"],
  file_contents: ["id"],
  data_keys: ["project_id", "generation"],
  projects: ["id"],
} as const;
type Keyed = keyof typeof primaryKeys;

export function pick(row: Row, columns: readonly string[]): Row {
  return Object.fromEntries(columns.map((column) => [column, row[column]]));
}

export async function update(world: World, table: Keyed, row: Row, change: Row): Promise<void> {
  const [where, values] = keyed(table, row);
  const set = Object.keys(change).map((name) => `${name} = ?`);
  await world.run(`update ${table} set ${set} where ${where}`, [...Object.values(change), ...values]);
}

/** Deletes a row and returns it. */
export async function take(world: World, table: Keyed, row: Row): Promise<Row> {
  const [where, values] = keyed(table, row);
  const [taken] = await world.run(`delete from ${table} where ${where} returning *`, values);
  return taken as Row;
}

function keyed(table: Keyed, row: Row): [where: string, values: unknown[]] {
  const keys: readonly string[] = primaryKeys[table];
  return [keys.map((name) => `${name} = ?`).join(" and "), keys.map((name) => row[name])];
}

export async function insert(world: World, table: Keyed, row: Row): Promise<void> {
  const names = Object.keys(row);
  const [columns, places] = [names.join(", "), names.map(() => "?").join(", ")];
  await world.run(`insert into ${table} (${columns}) values (${places})`, Object.values(row));
}

/** Exchanges a column of two rows, by way of a third value: unique indexes allow no other. */
export async function exchange({ world }: Stage, table: string, column: string, ...[one, other]: [string, string]) {
  const rows = await world.run(`select id, ${column} as value from ${table}`);
  const [first, second] = [one, other].map((id) => rows.find((row) => row["id"] === id)?.["value"]);
  const put = (value: unknown, id: string) => world.run(`update ${table} set ${column} = ? where id = ?`, [value, id]);
  await put(Buffer.isBuffer(first) ? Buffer.alloc(32) : "aside", one);
  await put(first, other);
  await put(second, column === "id" ? "aside" : one);
}

/** Takes two rows of one table and gives the first some columns of the second, or exchanges them. */
export async function crossRows({ world }: Stage, dice: Dice): Promise<string> {
  const table = dice.pick(Object.keys(primaryKeys) as Keyed[]);
  const small = table === "file_contents" ? "where size < 1000" : "";
  const rows = await world.run(`select * from ${table} ${small} order by ${primaryKeys[table].join(", ")}`);
  if (rows.length === 0) return "nothing";
  const [one, two] = [dice.pick(rows), dice.pick(rows)];
  const names = dice.some(Object.keys(one));
  const exchange = dice.chance(0.5);
  const after = [{ ...one, ...pick(two, names) }, exchange ? { ...two, ...pick(one, names) } : two];
  for (const row of new Set([one, two])) await take(world, table, row);
  for (const row of dice.chance(0.2) ? after.slice(0, 1) : after) {
    // A row that a unique index refuses is left out: the rest is still a mixture worth trying.
    await insert(world, table, row).catch(() => {});
  }
  return `${exchange ? "exchanged" : "copied"} ${names.join(", ")} in ${table}`;
}

/** Writes to each kind in production of alpha/web, each of which must open its set. */
export function writesTo({ world: { admin }, web: { where } }: Stage, kind: Kind) {
  const content = Buffer.from("newer");
  const both = ["FIRST", "SECOND"].map((name) => ({ name, value: "newer" }));
  return {
    variables: [
      () => setVariables(admin, where, "production", both),
      () => deleteVariable(admin, where, "production", "SECOND"),
    ],
    accounts: [
      () => setAccount(admin, where, "own production", ["production"], { token: "newer" }),
      () => deleteAccount(admin, where, "registry"),
    ],
    files: [
      () => putFile(admin, where, { path: "a.txt", environments: ["production"], content }),
      () => deleteFile(admin, where, "d.json", ["production"]),
    ],
  }[kind] as readonly (() => Promise<unknown>)[];
}

/** Everything that a write could change. */
export async function dump(world: World) {
  const rows = async (table: Keyed) => world.run(`select * from ${table} order by ${primaryKeys[table].join(", ")}`);
  return {
    sets: await rows("sets"),
    contents: await rows("file_contents"),
    dataKeys: await rows("data_keys"),
    projects: await rows("projects"),
  };
}

export function isAt(row: Row, { at }: Target): boolean {
  return primaryKeys.sets.every((name, index) => row[name] === at[index]);
}

export function flipped(bytes: Buffer, bit: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
  return changed;
}
