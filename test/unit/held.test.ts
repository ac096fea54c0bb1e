import { beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import { serialize } from "node:v8";
import { Fault } from "../../src/core/fault.ts";
import { type Body, Held, Render } from "../../src/core/held.ts";
import { accountsJson, type OpenedAccounts } from "../../src/kinds/accounts/render.ts";
import { filesJson } from "../../src/kinds/files/render.ts";
import { variablesDotenv, variablesJson } from "../../src/kinds/variables/render.ts";
import type { AuditEntry } from "../../src/record/entry.ts";
import { release } from "../../src/record/release.ts";
import { newFolder } from "../support/folder.ts";
import { entry } from "../support/journal.ts";

/** Ways to get a value out before it is on record. Who may import what is house.test.ts. */

const canary = "CANARY-0f1e2d";

describe("a Held", () => {
  const held = new Held({ value: canary, bytes: Buffer.from(canary) });
  const ways: [string, () => unknown][] = [
    ["as a string", () => `${held} ${held as never as string}`],
    ["as JSON", () => JSON.stringify({ held, list: [held] })],
    ["on the console", () => Bun.inspect({ held, map: new Map([[held, held]]) }, { depth: 9 })],
    ["with inspect that ignores our hook", () => inspect(held, { customInspect: false, showHidden: true, depth: 9 })],
    ["in an error", () => Bun.inspect(new Error("with a cause", { cause: held }))],
    ["as a clone", () => Bun.inspect(structuredClone({ held }), { depth: 9 })],
    ["serialized", () => serialize(held).toString("latin1")],
    ["spread", () => JSON.stringify({ ...held })],
    ["by its keys and symbols", () => JSON.stringify(Reflect.ownKeys(held))],
    ["as a body", () => new Response(held as never as string).text()],
    ["to a subclass", () => Bun.inspect(new (class extends Held<string> {})(canary))],
  ];
  test.each(ways)("shows nothing %s", async (_, show) => expect(String(await show())).not.toContain(canary));
  test("equals any other: a guess is not confirmed", () => {
    expect(Bun.deepEquals(new Held(canary), new Held("guess"))).toBe(true);
  });
});

describe("release", () => {
  const render = new Render((value: string): Body => ({ content: value, contentType: "text/plain" }));
  const held = new Held(canary);
  const untouched = { record: () => Promise.reject(new Error("something was recorded")) };

  test("renders, waits for the record, and only then returns the body, whose pieces nobody has made", async () => {
    const events: string[] = [];
    const recorded = Promise.withResolvers<void>();
    function* pieces(value: string) {
      events.push("first piece");
      yield value;
    }
    const lazy = new Render((value: string): Body => {
      events.push("rendered");
      return { content: pieces(value), contentType: "text/plain" };
    });
    const record = async (entries: readonly AuditEntry[]) => {
      events.push(`recording ${entries.length}`);
      await recorded.promise;
      events.push("recorded");
      return "lane:7";
    };
    const released = release({ record }, [entry], held, lazy).then((body) => {
      events.push("returned");
      return body;
    });
    await new Promise(setImmediate);
    expect(events).toEqual(["rendered", "recording 1"]);
    recorded.resolve();
    const { content, headers } = await released;
    expect(headers).toEqual({ "Keyhole-Audit": "lane:7" });
    expect(events).toEqual(["rendered", "recording 1", "recorded", "returned"]);
    expect([...content]).toEqual([canary]);
  });

  test("returns no body, and makes no piece of one, if the journal refuses", async () => {
    let made = 0;
    const lazy = new Render((value: string): Body => {
      const content = {
        *[Symbol.iterator]() {
          made++;
          yield value;
        },
      };
      return { content, contentType: "text/plain" };
    });
    const refusal = new Fault("unavailable", "refused");
    const journal = { record: () => Promise.reject(refusal) };
    const outcome = await release(journal, [entry], held, lazy).catch((error: unknown) => error);
    expect(outcome).toBe(refusal);
    expect(inspect(outcome, { showHidden: true, depth: 9 })).not.toContain(canary);
    expect(made).toBe(0);
  });

  test("records nothing if the render refuses", async () => {
    const unrepresentable = Buffer.from(JSON.stringify({ key: "A", value: `${canary}\u0000`, updatedAt: 1 }));
    const released = release(untouched, [entry], new Held({ objects: unrepresentable }), variablesDotenv);
    expect(await released.catch((error: unknown) => error)).toMatchObject({ code: "env_unrepresentable" });
  });

  const file = { json: "{}", base64: [canary] };
  const rows: [string, (entries: AuditEntry[]) => Promise<Body>, needed: number][] = [
    ["no variable", (e) => release(accepting, e, new Held({ objects: Buffer.alloc(0) }), variablesJson("x")), 1],
    ["no account", (e) => release(accepting, e, new Held<OpenedAccounts>([]), accountsJson(null)), 1],
    ["no file", (e) => release(accepting, e, new Held([]), filesJson("web", "x")), 0],
    ["two files", (e) => release(accepting, e, new Held([file, file]), filesJson("web", "x")), 2],
  ];
  let recordedCount = 0;
  const accepting = {
    record: async (entries: readonly AuditEntry[]) => {
      recordedCount += entries.length;
      return undefined;
    },
  };
  test.each(rows)("refuses a forgotten entry: %s", async (_, releaseWith, needed) => {
    for (const count of [0, 1, 2, 3]) {
      recordedCount = 0;
      const outcome = await releaseWith(Array(count).fill(entry)).catch((error: unknown) => error);
      expect(outcome instanceof Error).toBe(count !== needed);
      expect(recordedCount).toBe(count === needed ? needed : 0);
    }
  });

  const impostors: [string, unknown, unknown][] = [
    ["something that looks like a Held", { value: canary, toString: () => "", toJSON: () => "" }, render],
    ["a proxy of a Held", new Proxy(held, {}), render],
    ["an heir of a Held", Object.create(held), render],
    ["a function for a Render", held, (value: string) => ({ content: value, contentType: "" })],
    ["something that looks like a Render", held, Object.create(Render.prototype)],
  ];
  test.each(impostors)("does not take %s", async (_, someHeld, someRender) => {
    const released = release(untouched, [entry], someHeld as Held<string>, someRender as Render<string>);
    expect(await released.catch((error: unknown) => error)).toBeInstanceOf(TypeError);
  });
});

const src = join(import.meta.dir, "../../src");
const kinds = readdirSync(join(src, "kinds")).filter((name) => !name.includes("."));
const renders = kinds.map((kind) => `kinds/${kind}/render.ts`);
/** What the API reads through. It cannot import what opens sets: house.test.ts. */
const reads = [
  ...kinds.map((kind) => `kinds/${kind}/read.ts`),
  "serve/api/read-projects.ts",
  "serve/api/read-requests.ts",
];

/** What the snippets below have at hand: as much as an endpoint. */
const scope = `
import { release } from "${src}/record/release.ts";
import type { AuditEntry } from "${src}/record/entry.ts";
import { type Body, Held, Render, renderHeld } from "${src}/core/held.ts";
import { answer } from "${src}/serve/gates/body.ts";
import { type Exchange, json } from "${src}/serve/gates/exchange.ts";
import type { ApiParts } from "${src}/serve/gates/api-parts.ts";
import { released } from "${src}/serve/gates/record.ts";
import type { Share } from "${src}/serve/limit/budget.ts";
import { accountsJson } from "${src}/kinds/accounts/render.ts";
import { type OpenedVariables, variablesDotenv } from "${src}/kinds/variables/render.ts";
import type { OpenedItems } from "${src}/seal/set.ts";
declare const parts: ApiParts;
declare const exchange: Exchange;
declare const entries: AuditEntry[];
declare const held: Held<OpenedVariables>;
declare const share: Share;
declare const opened: OpenedItems;
/** The functions of a module whose results hold bytes outside a Held. */
type Leaks<M> = { [K in keyof M]: M[K] extends (...args: never[]) => infer R ? Bytes<Awaited<R>, K> : never }[keyof M];
type Bytes<T, K> = T extends Held<unknown> ? never : T extends Uint8Array ? K
  : T extends (...args: never[]) => unknown ? never : T extends readonly (infer E)[] ? Bytes<E, K>
  : T extends object ? { [P in keyof T]-?: Bytes<T[P], K> }[keyof T] : never;
/** The makers of renders in a module that take more than text: a callback could keep the value. */
type Hooks<M> = { [K in keyof M]: M[K] extends typeof Render ? K : M[K] extends (...args: infer A) => Render<never>
  ? A extends readonly (string | null)[] ? never : K : never }[keyof M];
`;

const refused: [what: string, code: string, reason: RegExp][] = [
  ["a Held as JSON text", "json(exchange, held);", /'Held<OpenedVariables>' is not assignable to .* 'string'/],
  ["a Held as a response", "new Response(held);", /'Held<OpenedVariables>' is not assignable/],
  ["a Held as a body", 'answer(parts, exchange, held, share, "");', /'Held<OpenedVariables>' is missing .* 'Body'/],
  ["its private field", "held.#value;", /'#value' is not accessible outside class 'Held'/],
  ["its private field in a subclass", "class Open extends Held<1> { peek() { return this.#value; } }", /not accessibl/],
  ["a lookalike", 'release(parts.journal, entries, { toJSON: () => "" }, variablesDotenv);', /'#value' is missing/],
  [
    "opened items instead of a Held",
    'released(parts, exchange, caller, entries, { held: opened, share }, variablesDotenv, "");',
    /'OpenedItems' is .*'Held</,
  ],
  [
    "a journal that does not wait",
    "release({ record: () => {} }, entries, held, variablesDotenv);",
    /'void' is not assignable to type 'Promise<string \| undefined>'/,
  ],
  ["the body early", "const body: Body = release(parts.journal, entries, held, variablesDotenv);", /'Promise<Body>'/],
  ["another render", "release(parts.journal, entries, held, accountsJson(null));", /assignable to .*'(Held|Render)</],
  ["a render that returns its input", "new Render((value: OpenedVariables) => value);", /not assignable to .* Body/],
  ["a render without the count of entries", "renderHeld(held, variablesDotenv);", /Expected 3 arguments/],
  ["bytes of a read", "const none: Leaks<{ peek(): Promise<{ all: Buffer }> }> = 1;", /assignable to type '"peek"'/],
  ["a render's class from a render.ts", "const none: Hooks<{ Own: typeof Render }> = 1;", /to type '"Own"'/],
  ["a render with a hook", "const none: Hooks<{ leak(take: (v: unknown) => void): Render<1> }> = 1;", /type '"leak"'/],
];
const accepted: [what: string, code: string][] = [
  ["the right way", "const body: Promise<Body> = release(parts.journal, entries, held, variablesDotenv);"],
  ...reads.map((file): [string, string] => [
    `no function of ${file} returns bytes outside a Held`,
    `const none: [Leaks<typeof import("${src}/${file}")>] extends [never] ? true : false = true;`,
  ]),
  ...renders.map((file): [string, string] => [
    `no maker of a render in ${file} takes more than text`,
    `const none: [Hooks<typeof import("${src}/${file}")>] extends [never] ? true : false = true;`,
  ]),
];

/** Files with an example of what they export. */
const documented = [
  "core/held.ts",
  "people/desk/permit.ts",
  "people/desk/context.ts",
  "people/desk/operation.ts",
  "client/npm/client.ts",
];
const exampleScope = `
import type { ProjectPlace } from "${src}/serve/access/rights.ts";
import type { Change } from "${src}/people/desk/changes.ts";
import { type AdminContext, writing } from "${src}/people/desk/context.ts";
import { input, project } from "${src}/people/desk/inputs.ts";
import { operation } from "${src}/people/desk/operation.ts";
import { done } from "${src}/people/desk/outcome.ts";
import { Permit, rightTo } from "${src}/people/desk/permit.ts";
import { planRename } from "${src}/people/projects/projects.ts";
import { variablesJson } from "${src}/kinds/variables/render.ts";
import { createClient } from "${src}/client/npm/client.ts";
declare const admin: AdminContext;
declare const place: ProjectPlace;
declare const change: Change;
declare const apiKey: string;
declare const work: (admin: AdminContext) => Promise<number>;
export const example = async (journal: ApiParts["journal"], opened: OpenedVariables) => {
`;

describe("the compiler", () => {
  let errors: ReadonlyMap<string, string>;
  const folder = newFolder();
  const examples = documented.flatMap((file) => examplesOf(file));
  beforeAll(() => {
    errors = compile(folder, [...refused, ...accepted, ...examples]);
  });

  test.each(refused)("refuses %s", (what, _, reason) => expect(errors.get(what) ?? "").toMatch(reason));
  test.each([...accepted, ...examples])("accepts: %s", (what) => expect(errors.get(what)).toBeUndefined());
  test("finds the example of each of these files", () => {
    expect(examples.map(([what]) => what)).toEqual(documented.map((file) => `the example in ${file}`));
  });
});

/** The examples in the comments of a file, with what they have at hand. */
function examplesOf(file: string): [what: string, code: string][] {
  const examples = readFileSync(join(src, file), "utf8").matchAll(/^ \* @example\n((?: \* .*\n)+) \*\/$/gm);
  const scoped = (lines: string) => `${exampleScope}${lines.replace(/^ \* /gm, "")}}`;
  return [...examples].map(([, lines = ""]) => [`the example in ${file}`, scoped(lines)]);
}

/** Compiles each snippet as a module of its own, all in one run. Returns the errors, by what the snippet is. */
function compile(folder: string, snippets: readonly (readonly [what: string, code: string, ...unknown[]])[]) {
  const root = join(src, "..");
  const types = [join(root, "node_modules/bun-types")];
  const compilerOptions = { types, noUnusedLocals: false, noUnusedParameters: false };
  const include = [folder, join(src, "core/modules.d.ts")];
  const tsconfig = { extends: join(root, "tsconfig.json"), compilerOptions, include };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(tsconfig));
  for (const [index, [, code]] of snippets.entries()) writeFileSync(join(folder, `${index}.ts`), scope + code);
  const tsc = [process.execPath, join(root, "node_modules/typescript/bin/tsc"), "--pretty", "false", "-p", folder];
  const printed = Bun.spawnSync(tsc, { cwd: folder }).stdout.toString().trim();
  const errors = new Map<string, string>();
  // An error begins with its file; lines that explain it further are indented.
  for (const error of printed.split(/\n(?=\S)/)) {
    const index = /^(\d+)\.ts\(/.exec(error)?.[1];
    const what = snippets[Number(index)]?.[0] ?? "something else";
    errors.set(what, `${errors.get(what) ?? ""}${error}\n`);
  }
  expect(errors.get("something else")).toBeUndefined();
  return errors;
}
