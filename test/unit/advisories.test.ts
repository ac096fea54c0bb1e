/**
 * Faults that were found in other projects, tried on this one. docs/maintainers/proofs-advisories.md lists the
 * advisories with their tests; these need no database.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { sql } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";
import { createClient } from "../../src/client/npm/client.ts";
import { guardedFetch } from "../../src/core/guarded-fetch.ts";
import { requestJson } from "../../src/core/json-request.ts";
import { slugPattern } from "../../src/core/names.ts";
import { Refused } from "../../src/core/refused.ts";
import { parseFiles } from "../../src/kinds/files/query.ts";
import { parseImport } from "../../src/kinds/variables/import-text.ts";
import { parseVariables } from "../../src/kinds/variables/query.ts";
import { parseKeySet, readToken, verifyToken } from "../../src/serve/access/token.ts";
import { defectOf } from "../../src/serve/api/problem.ts";
import { audience, compact, newSigningKey, publicJwk, usualClaims } from "../support/issuer.ts";
import { startUnasked } from "../support/unasked.ts";

const root = join(import.meta.dir, "../..");
const textOf = (path: string) => readFileSync(join(root, path), "utf8");

test("each of the thirty advisories has a test, or a sentence why it needs none", () => {
  const rows = textOf("docs/maintainers/proofs-advisories.md").match(/^\| .*\d.*$/gm) ?? [];
  expect(rows).toHaveLength(30);
  for (const row of rows) expect(row).toMatch(/ \| (`\w+\/[\w-]+`: "|Does not apply: )/);
});

describe("CVE-2026-39356, CVE-2026-39946: SQL without escaping", () => {
  /** What becomes SQL or a name as it stands, and is no literal. */
  const known = [
    "people/backup/grants.ts: sql.raw(statement)", // quotes roles: integration/grants runs it with a hostile one
    "record/store/audit-months.ts: sql.identifier(defaultPartition)", // a constant
    "record/store/audit-months.ts: sql.identifier(name)", // a year and a month
    "record/store/audit-months.ts: sql.raw(`from ($fromAt) to ($toAt)`)", // two numbers
    "record/store/audit-months.ts: sql.raw(roles)", // quoted by PostgreSQL's quote_ident
    "store/database.ts: sql.raw(String(value))", // a number
    "store/lookups.ts: sql.identifier(name)", // a column
    "store/lookups.ts: sql.raw(`'$kind'`)", // of the registry
    "store/migrate.ts: sql.raw(`in ('keyhole_migrations', $names)`)", // of the schema's tables
    "store/migrate.ts: sql.raw(statement)", // of the migrations
    "store/postgres.ts: sql.raw(ofTransaction)", // a constant
    "store/postgres.ts: sql.raw(postgresAdditions(use))", // constants
    "store/postgres.ts: sql.raw(serverStart)", // a constant
    "store/projects.ts: sql.identifier(name)", // a column
    "store/reach.ts: sql.raw(cases)", // constants
    "store/tables.ts: sql.raw(rule)", // rules of the tables
  ];
  test("only literals and these expressions become SQL as they stand", () => {
    const files = [...new Bun.Glob("**/*.{ts,tsx}").scanSync(join(root, "src"))];
    const found = files.flatMap((file) =>
      [...textOf(`src/${file}`).matchAll(/\b(sql\.(?:raw|identifier)|\.as)\(((?:[^()]|\([^()]*\))*)\)/g)]
        .filter(([, , argument = ""]) => !/^(?:"[^"]*"|`[^`$]*`)?$/.test(argument))
        .map(([call]) => `${file}: ${call.replaceAll(/[{}]/g, "")}`),
    );
    expect([...new Set(found)].sort()).toEqual(known);
  });

  test("drizzle quotes a name", () => {
    const dialect = new PgDialect();
    const name = 'a"b"; drop table sets; --';
    const quoted = '"a""b""; drop table sets; --"';
    expect(dialect.sqlToQuery(sql`select 1 as ${sql.identifier(name)}`).sql).toBe(`select 1 as ${quoted}`);
    expect(dialect.sqlToQuery(sql`select ${sql`1`.as(name)}`).sql).toContain(quoted);
  });
});

const issuer = "https://issuer.example";
const key = newSigningKey("ES256");
const pinned = parseKeySet({ keys: [publicJwk("one", key)] });
const accepts = async (asked: string, said: unknown) => {
  const terms = { issuer, audience, claims: { sub: asked }, jwks: "" };
  const token = readToken(compact({ alg: key.alg, kid: "one" }, usualClaims(issuer, { sub: said }), key));
  const trust = { id: "t", digest: new Uint8Array(), terms, pinned };
  return verifyToken(token, [trust], undefined, Date.now()).then(
    () => true,
    () => false,
  );
};
const nested = { sub: "a" };
const texts = [
  ...["*|a", "a|*", "repo:acme/*|repo:acme/web", "repo:acme/web|repo:acme/*", "a+|aa", "a|a/../a", "a|a,b", "a|a\0"],
  ...["a\0b|a", "a|a ", "a|A", "|a", ".|a", "é|e\u0301", "ﬁ|fi", "\ufffd|\ud800", "a|а"],
].map((pair) => pair.split("|") as [asked: string, said: unknown]);
const others = { a: ["a"], "[object Object]": nested, 1: 1, true: true, null: null, undefined };
const claims = [...texts, ["a", nested], ...Object.entries(others)] as typeof texts;
test.each(claims)(
  "GHSA-59w7-v8rr-pr4p: a claim that becomes a wildcard: a trust for %j does not take %j",
  async (asked, said) => {
    expect([await accepts(asked, said), await accepts(asked, asked)]).toEqual([false, true]);
  },
);

test("CVE-2025-64761, CVE-2025-5999: names that are equal to a database and not to a person: a slug is one spelling: others are refused, not made equal", () => {
  expect(slugPattern.test("root")).toBe(true);
  for (const name of [
    ...["Root", "root ", " root", "root\n", "ｒｏｏｔ", "rооt", "root\u200b", "root.", "rooṫ", "root\0"],
  ])
    expect([name, slugPattern.test(name)]).toEqual([name, false]);
});

test("CVE-2025-62513, CVE-2025-62705: a secret in a form that nobody thought of: the line in the log about a crash has nothing of the error's message", () => {
  for (const message of ["canary", "x\n    at canary (a.ts:1:2)\n", "$&\n at canary", "\n  at canary\n  at canary"]) {
    const errors = [new Error(message), new TypeError(message, { cause: new Error(message) }), message, [message]];
    for (const error of errors) expect(JSON.stringify(defectOf(error))).not.toContain("canary");
    expect(defectOf(new Error(message)).at).toContain("advisories.test.ts");
  }
});

describe("CVE-2026-24910: a dependency from elsewhere", () => {
  const locks = ["bun.lock", "docs/.vitepress/bun.lock"];
  test.each(locks)("every entry of %s comes from the registry, with a hash", (path) => {
    const { packages, trustedDependencies } = Bun.JSONC.parse(textOf(path)) as {
      packages: Record<string, unknown[]>;
      trustedDependencies?: string[];
    };
    // NAME@VERSION, no other registry, what it needs, its hash: what comes from elsewhere has another form.
    const isGood = ([what, registry, , hash, ...more]: unknown[]) =>
      /^(@[\w.-]+\/)?[\w.-]+@\d+\.\d+\.\d+[\w.+-]*$/.test(String(what)) &&
      registry === "" &&
      /^sha512-[\w+/]{86}==$/.test(String(hash)) &&
      more.length === 0;
    expect(Object.keys(packages).length).toBeGreaterThan(100);
    expect(Object.entries(packages).filter(([, entry]) => !isGood(entry))).toEqual([]);
    expect(trustedDependencies ?? []).toEqual([]);
  });

  test("no package may run a script when it is installed", () => {
    for (const path of ["package.json", "docs/.vitepress/package.json"]) {
      const { trustedDependencies, scripts = {} } = JSON.parse(textOf(path));
      expect([path, trustedDependencies]).toEqual([path, []]);
      expect(Object.keys(scripts).filter((name) => /^(pre|post)?(install|prepare|publish)/.test(name))).toEqual([]);
    }
  });
});

const apiKey = `kh_${"k".repeat(49)}`;
const { fetch } = globalThis;
const asks: Record<string, (root: string) => Promise<unknown>> = {
  "the server, which asks issuers and identity providers": async (root) => (await guardedFetch(root, {})).json(),
  "whoever asks for JSON": async (root) => {
    const reply = await requestJson(root, { headers: {}, timeoutMs: 60_000, bytesMax: 1000, fetch });
    return "body" in reply && "json" in reply.body ? reply.body.json : reply;
  },
  "keyhole/client": (url) => createClient({ url, apiKey }).organization(),
};
test.each(Object.entries(asks))(
  "CVE-2026-48931: an answer that nobody asked for is not taken for the next one by %s",
  async (_, ask) => {
    using server = await startUnasked();
    for (const root of [`${server.origin}/joined/api/v1`, `${server.origin}/api/v1`]) {
      for (let n = 0; n < 100; n++) expect(await ask(root)).toMatchObject({ slug: "asked" });
    }
  },
);

describe("CVE-2026-53550, CVE-2026-45822: a text that costs a parser more than its length", () => {
  const lines = (count: number, line: (at: number) => string) =>
    Array.from({ length: count }, (_, at) => line(at)).join("");
  // A test that hangs ends by its timeout.
  test.each([
    ["100,000 aliases", `A: &a one\n${lines(100_000, (at) => `B${at}: *a\n`)}`],
    ["a list of 100,000 aliases", `A: &a [x]\nB: [${"*a, ".repeat(100_000)}]\n`],
    ["aliases that double 30 times", `A: &a0 [x]\n${lines(30, (at) => `B${at}: &a${at + 1} [*a${at}, *a${at}]\n`)}`],
    ["10,000 merge keys", `A: &a {x: y}\n${lines(10_000, (at) => `B${at}: {<<: *a}\n`)}`],
    ["a merge of 10,000", `A: &a {x: y}\n<<: [${"*a, ".repeat(10_000)}]\n`],
    ["maps, nested 3,000 deep", lines(3000, (at) => `${" ".repeat(at)}A:\n`)],
    ["maps in braces, nested 10,000 deep", `A: ${"{a: ".repeat(10_000)}`],
    ["lists, nested 10,000 deep", `A: ${"[".repeat(10_000)}${"]".repeat(10_000)}`],
    ["dashes, nested 10,000 deep", "- ".repeat(10_000)],
    ["keys, nested 10,000 deep", "? ".repeat(10_000)],
  ])("an import of %s is refused, and is no failure", (_, text) => {
    for (const format of ["yaml", "json"] as const) {
      let problems: readonly string[] = [];
      try {
        problems = parseImport(format, text).problems;
      } catch (error) {
        expect(error).toBeInstanceOf(Refused);
        problems = [String(error)];
      }
      expect(problems.length).toBeGreaterThan(0);
    }
  });

  test("a query of percent signs is a fault of its caller", () => {
    for (const text of ["%", "%e", "%25", "%c3", "%f0%9f", "+%", "%%2"]) {
      const query = text.repeat(16_384 / text.length);
      expect(() => parseVariables(`environment=${query}`, "web")).toThrow("query parameter");
      expect(() => parseFiles(`project=web&environment=staging&path=a&${query}=`)).toThrow("query parameter");
    }
  });
});
