import type { Environment } from "../../src/core/names.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { deleteAccount, deleteFile, deleteVariable } from "./delete.ts";
import { setAccount, setVariables } from "./plans.ts";
import { insertAccounts, insertFiles } from "./rows.ts";
import type { Placed, World } from "./world.ts";

export const kinds = ["variables", "accounts", "files"] as const;
export type Kind = (typeof kinds)[number];

/** An item as every read of its kind shows it. */
type Item = Readonly<Record<string, unknown>>;

/** How one kind is written by people and read by machines, so that one test can hold for all. */
type KindOfTest = {
  /** The path of a read of one environment of `web`. */
  readonly path: (environment: Environment) => string;
  /** Paths that ask for all environments that the key reaches. */
  readonly pathsOfAll: readonly string[];
  /** What makes a read of values a read of names alone. */
  readonly namesOnly: string;
  /** What narrows a read of values to these names; null if nothing does. */
  readonly only: ((names: readonly string[]) => string) | null;
  /** The field of an item that holds its name, and the one that holds its value. */
  readonly name: "key" | "name" | "path";
  readonly value: "value" | "values" | "content";
  /** The value of an item as it was written. */
  readonly textOf: (item: Item) => string;
  /** The names of items in the order of an answer, by their bytes. */
  readonly ordered: readonly string[];
  /** What a read of an empty environment answers. */
  readonly empty: (environment: Environment) => string;
  /** The audit entries of a read: its action, and the names in each entry. */
  readonly action: string;
  readonly entriesOf: (names: readonly string[]) => readonly (readonly string[])[];
  readonly bucket: "value" | "content";
  readonly write: (w: World, where: string, at: Environment, name: string, value: string) => Promise<unknown>;
  readonly remove: (w: World, where: string, at: Environment, name: string) => Promise<unknown>;
  /** Writes many at once, in one write if the kind can; without `valueFor` the value of each has its name in it. */
  readonly insert: (
    w: World,
    project: Placed,
    names: readonly string[],
    at: Environment,
    valueFor?: (name: string) => string,
  ) => Promise<unknown>;
};

const words = (text: string) => text.split("|");

/** What is the same for each kind is tested for all of them: `describe.each(everyKind)`. */
export const ofKind: Readonly<Record<Kind, KindOfTest>> = {
  variables: {
    path: (environment) => `/projects/web/variables?environment=${environment}`,
    pathsOfAll: ["/projects/web/variables?metadata_only=true"],
    namesOnly: "&metadata_only=true",
    only: (names) => `&keys=${names.join()}`,
    name: "key",
    value: "value",
    textOf: ({ value }) => String(value),
    ordered: words("A|A0|A9|AA|AZ|A_|A_0|A__|Aa|Az|B|Z|_0|_A|__|_a|a|a0|aA|a_|aa|z"),
    empty: (environment) => `{"environment":"${environment}","variables":[]}`,
    action: "variables.read",
    entriesOf: (names) => [names],
    bucket: "value",
    write: (w, where, at, name, value) => setVariables(w.admin, where, at, [{ name, value }]),
    remove: (w, where, at, name) => deleteVariable(w.admin, where, at, name),
    insert: (w, { where }, names, at, valueFor = (name) => `${name} has a value`) => {
      const entries = names.map((name) => ({ name, value: valueFor(name) }));
      return setVariables(w.admin, where, at, entries);
    },
  },
  accounts: {
    path: (environment) => `/projects/web/accounts?environment=${environment}`,
    pathsOfAll: ["/projects/web/accounts", "/projects/web/accounts?metadata_only=true"],
    namesOnly: "&metadata_only=true",
    only: null,
    name: "name",
    value: "values",
    textOf: ({ values }) => (values as { a: string }).a,
    ordered: words(
      "  x|!|#1|0|10|9|A|B|Z|_|a|a b|aB|ab|a\u0308|z|~|Ä|É|ß|ä|ё|あ|日本|\ue000|\uff21|\ufffd|𐀀|🦔|🦔a|\u{10fffd}",
    ),
    empty: (environment) => `{"environment":"${environment}","accounts":[]}`,
    action: "accounts.read",
    entriesOf: (names) => [names],
    bucket: "value",
    write: (w, where, at, name, value) => setAccount(w.admin, where, name, [at], { a: value }),
    remove: (w, where, _, name) => deleteAccount(w.admin, where, name),
    insert: (w, project, names, at, valueFor) => insertAccounts(w, project, names, [at], valueFor),
  },
  files: {
    path: (environment) => `/files?project=web&environment=${environment}`,
    pathsOfAll: [],
    namesOnly: "&metadataOnly=1",
    only: (paths) => paths.map((path) => `&path=${encodeURIComponent(path)}`).join(""),
    name: "path",
    value: "content",
    textOf: ({ content }) => Buffer.from(String(content), "base64").toString(),
    ordered: words(
      "!|#x|0|10|9|A|B/a|B0|Z|_|a b|a+/c|a-/c|a.b|a/b|a/b.c|a0|aa|z|~|É|ß|ё|あ|日本/x|\uff21x|\ufffd|𐀀|🦔|🦔a",
    ),
    empty: (environment) => `{"project":{"slug":"web"},"environment":"${environment}","files":[]}`,
    action: "file.read",
    entriesOf: (names) => names.map((name) => [name]),
    bucket: "content",
    write: (w, where, at, path, content) =>
      putFile(w.admin, where, { path, environments: [at], content: Buffer.from(content) }),
    remove: (w, where, at, path) => deleteFile(w.admin, where, path, [at]),
    insert: (w, project, names, at, valueFor) => insertFiles(w, project, names, [at], valueFor),
  },
};

/** The items of an answer of a kind. */
export function itemsOf(kind: Kind, json: unknown): readonly Item[] {
  return (json as Record<Kind, Item[]>)[kind];
}

/** The names in an answer of a kind, in its order. */
export function namesOf(kind: Kind, json: unknown): string[] {
  return itemsOf(kind, json).map((item) => String(item[ofKind[kind].name]));
}
