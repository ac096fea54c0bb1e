import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

/** Who imports whom. The linter says it while one types; this reads the sources itself, and sees through other files. */

type Sources = ReadonlyMap<string, string>;
type Import = { readonly from: string; readonly target: string };

const everyone = ["fault.ts", "held.ts", "names.ts", "path.ts"];

/** Files and folders of src, and all they may import besides themselves and the runtime. Packages are listed too. */
const mayImport: Readonly<Record<string, readonly string[]>> = {
  "fault.ts": [],
  "held.ts": [],
  "names.ts": [],
  "problem.ts": [],
  "path.ts": ["fault.ts", "held.ts", "names.ts"],
  "whole-file.ts": ["problem.ts"],
  access: everyone,
  limit: everyone,
  seal: everyone,
  audit: everyone,
  render: everyone,
  // What machines run shares only these with the server.
  fetch: [...everyone, "problem.ts", "whole-file.ts", "render", "dotenv", "package.json"],
};

/** What a folder cannot reach, directly or through any number of other files. */
const cannotReach: Readonly<Record<string, readonly string[]>> = {
  seal: ["store"],
  store: ["seal", "read", "http", "admin", "server", "cli"],
  read: ["http", "admin", "server", "cli"],
  http: ["admin", "server", "cli"], // read-only is a property of the import graph
  admin: ["http", "server", "cli"],
  server: ["cli"],
};

const real = readSources(join(import.meta.dir, "../../src"));

describe("the house", () => {
  test("is where this test looks for it", () => {
    expect([...real.keys()]).toContain("src/fault.ts");
    expect(importsOf("src/access/x.ts", 'import { Fault } from "../fault.ts";')).toEqual([
      { from: "src/access/x.ts", target: "src/fault.ts" },
    ]);
  });
  test("has imports that can be read: each names its module, relative or a package", () => {
    expect(unreadable(real)).toEqual([]);
  });
  test.each(Object.keys(mayImport))("%s imports only what it may", (place) => {
    expect(forbiddenImports(real, place)).toEqual([]);
  });
  test.each(Object.keys(cannotReach))("%s cannot reach what it must not know", (place) => {
    expect(forbiddenPaths(real, place)).toEqual([]);
  });
  test("lets only main.ts import cli, only main.ts and cli import server, only cli import fetch", () => {
    expect(wrongCallers(real)).toEqual([]);
  });
  test("lets only audit/release.ts name what opens a Held", () => {
    expect(openers(real)).toEqual([]);
  });
  test("has no index.ts: one imports from the file that defines the thing", () => {
    expect([...real.keys()].filter((file) => posix.basename(file) === "index.ts")).toEqual([]);
  });
});

describe("a house that breaks a rule is seen", () => {
  const broken: {
    what: string;
    judge: (sources: Sources) => string[];
    files: Record<string, string>;
    seen: string[];
  }[] = [
    {
      what: "a leaf that imports",
      judge: (sources) => forbiddenImports(sources, "fault.ts"),
      files: { "src/fault.ts": 'import { slugPattern } from "./names.ts";' },
      seen: ["src/fault.ts imports src/names.ts"],
    },
    {
      what: "access that asks the store, though only for a type",
      judge: (sources) => forbiddenImports(sources, "access"),
      files: { "src/access/grant.ts": 'import type {\n  KeyRow,\n} from "../store/keys.ts";' },
      seen: ["src/access/grant.ts imports src/store/keys.ts"],
    },
    {
      what: "a type taken in passing",
      judge: (sources) => forbiddenImports(sources, "audit"),
      files: { "src/audit/entry.ts": 'type Row = import("../store/keys.ts").KeyRow;' },
      seen: ["src/audit/entry.ts imports src/store/keys.ts"],
    },
    {
      what: "a re-export",
      judge: (sources) => forbiddenImports(sources, "limit"),
      files: { "src/limit/limiter.ts": 'export * from "../http/app.ts";' },
      seen: ["src/limit/limiter.ts imports src/http/app.ts"],
    },
    {
      what: "seal that speaks SQL",
      judge: (sources) => forbiddenImports(sources, "seal"),
      files: {
        "src/seal/keyring.ts":
          'import { hkdfSync } from "node:crypto";\nimport { Database } from "bun:sqlite";\nimport { sql } from "drizzle-orm/pg-core";',
      },
      seen: ["src/seal/keyring.ts imports bun:sqlite", "src/seal/keyring.ts imports drizzle-orm/pg-core"],
    },
    {
      what: "http that reaches admin through read, at run time only",
      judge: (sources) => forbiddenPaths(sources, "http"),
      files: {
        "src/http/app.ts": 'import { readFiles } from "../read/files.ts";',
        "src/read/files.ts": 'import "./late.ts";',
        "src/read/late.ts": 'const late = await import("../admin/keys.ts");',
      },
      seen: ["src/http/app.ts > src/read/files.ts > src/read/late.ts > src/admin/keys.ts"],
    },
    {
      what: "a worker started from a file",
      judge: (sources) => forbiddenPaths(sources, "store"),
      files: { "src/store/journal.ts": 'new Worker(new URL("../seal/envelope.ts", import.meta.url));' },
      seen: ["src/store/journal.ts > src/seal/envelope.ts"],
    },
    {
      what: "another caller of cli or fetch",
      judge: wrongCallers,
      files: {
        "src/main.ts": 'import { run } from "./cli/command.ts";',
        "src/config.ts": 'import { run } from "./cli/command.ts";',
        "src/cli/serve.ts": 'import "../main.ts";\nimport { words } from "./terminal.ts";',
        "src/http/app.ts": 'import { Client } from "../fetch/client.ts";',
      },
      seen: [
        "src/config.ts imports src/cli/command.ts",
        "src/cli/serve.ts imports src/main.ts",
        "src/http/app.ts imports src/fetch/client.ts",
      ],
    },
    {
      what: "another caller of server, though only for a type",
      judge: wrongCallers,
      files: {
        "src/cli/serve.ts": 'import { startServer } from "../server/serve.ts";',
        "src/server/serve.ts": 'import type { Log } from "./log.ts";',
        "src/deadline.ts": 'import type { Log } from "./server/log.ts";',
      },
      seen: ["src/deadline.ts imports src/server/log.ts"],
    },
    {
      what: "a Held opened elsewhere, by whatever name",
      judge: openers,
      files: { "src/held.ts": "letGo", "src/audit/release.ts": "letGo", "src/http/app.ts": "Held.letGo(held)" },
      seen: ["src/http/app.ts"],
    },
    {
      what: "an import that cannot be read",
      judge: unreadable,
      files: {
        "src/a.ts": "await import(name)",
        "src/b.ts": 'const b = require("./admin/keys.ts")',
        "src/c.ts": 'import "#admin"',
        "src/d.ts": 'import "/src/admin/keys.ts"',
        "src/e.ts": 'import "./admin/keys.ts"',
      },
      seen: ["src/a.ts", "src/b.ts", "src/c.ts", "src/d.ts"],
    },
  ];
  test.each(broken)("$what", ({ judge, files, seen }) => {
    expect(judge(new Map(Object.entries(files)))).toEqual(seen);
  });
});

function forbiddenImports(sources: Sources, place: string): string[] {
  const allowed = [place, ...(mayImport[place] ?? [])];
  return graph(sources)
    .filter(({ from, target }) => placeOf(from) === place && !allowed.includes(placeOf(target)) && !isRuntime(target))
    .map(told);
}

/** The shortest way from each file of a place to each thing it cannot reach. */
function forbiddenPaths(sources: Sources, place: string): string[] {
  const imports = Map.groupBy(graph(sources), ({ from }) => from);
  const forbidden = cannotReach[place] ?? [];
  return [...sources.keys()]
    .filter((file) => placeOf(file) === place)
    .flatMap((start) => {
      const ways = new Map([[start, [start]]]);
      for (const [file, way] of ways) {
        for (const { target } of imports.get(file) ?? []) if (!ways.has(target)) ways.set(target, [...way, target]);
      }
      const ends = [...ways].filter(([file]) => forbidden.includes(placeOf(file)));
      return ends.map(([, way]) => way.join(" > "));
    });
}

function wrongCallers(sources: Sources): string[] {
  const callers: Readonly<Record<string, readonly string[]>> = {
    "main.ts": [],
    cli: ["main.ts", "cli"],
    server: ["main.ts", "cli", "server"],
    fetch: ["cli", "fetch"],
  };
  return graph(sources)
    .filter(({ from, target }) => callers[placeOf(target)]?.includes(placeOf(from)) === false)
    .map(told);
}

/** By the word alone, comments included: `Held.letGo`, a namespace or a new name for it are ways around an import rule. */
function openers(sources: Sources): string[] {
  const may = ["src/held.ts", "src/audit/release.ts"];
  return [...sources].filter(([file, text]) => !may.includes(file) && /letGo/.test(text)).map(([file]) => file);
}

function unreadable(sources: Sources): string[] {
  const computed = /\bimport\((?!\s*["'])|\brequire\(/;
  return [...sources]
    .filter(([file, text]) => computed.test(text) || importsOf(file, text).some(({ target }) => /^[#/]/.test(target)))
    .map(([file]) => file);
}

function told({ from, target }: Import): string {
  return `${from} imports ${target}`;
}

function isRuntime(target: string): boolean {
  return target.startsWith("node:") || target === "bun" || target === "bun:jsc";
}

/** The file or folder right under src; of anything else its whole name, which no rule takes for one of those. */
function placeOf(file: string): string {
  return /^src\/([^/]+)/.exec(file)?.[1] ?? file;
}

function graph(sources: Sources): Import[] {
  return [...sources].flatMap(([file, text]) => importsOf(file, text));
}

/** Every import of a file, types as well: targets are paths from the checkout's root, or a package as it is named. */
function importsOf(from: string, text: string): Import[] {
  const forms = [
    /^\s*(?:import|export)\b(?:[^"'`;(]*?\bfrom)?\s*["']([^"']+)["']/gm,
    /\bimport\(\s*["']([^"']+)["']/g,
    /\bnew URL\(\s*["'](\.[^"']+)["']\s*,\s*import\.meta/g,
  ];
  return forms
    .flatMap((form) => [...text.matchAll(form)].map((match) => match[1] ?? ""))
    .map((name) => ({ from, target: name.startsWith(".") ? posix.join(posix.dirname(from), name) : name }));
}

function readSources(folder: string): Sources {
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
    /\.[cm]?[jt]sx?$/.test(file),
  );
  return new Map(
    files.sort().map((file) => [`src/${file.replaceAll("\\", "/")}`, readFileSync(join(folder, file), "utf8")]),
  );
}
