import { afterEach, describe, expect, setSystemTime, test } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { complete } from "../../src/cli/completion.ts";
import { frame, pathOf } from "../../src/cli/terminal/command.ts";
import { complain, holdNotes, toProblem } from "../../src/cli/terminal/failure.ts";
import { startedAs } from "../../src/cli/terminal/verb.ts";
import { Fault } from "../../src/core/fault.ts";
import { configProblem, interrupted, Problem } from "../../src/core/problem.ts";
import { Refused } from "../../src/core/refused.ts";
import { parseChoices, parseList } from "../../src/core/words/lists.ts";
import { didYouMean } from "../../src/core/words/nearest.ts";
import { parseCount } from "../../src/core/words/parse.ts";
import { parseSpiffeId } from "../../src/core/words/spiffe.ts";
import { parseDuration, parseMoment } from "../../src/core/words/times.ts";
import { buildProgram } from "../../src/main.ts";
import { failureFor } from "../../src/people/desk/failure.ts";
import type { NamesAsked } from "../../src/people/keys/names-in-use.ts";
import { contextOf } from "../support/context.ts";
import { newFolder } from "../support/folder.ts";

const nowhere = contextOf();

/** The commands that do something. */
function leaves(command: CommandUnknownOpts): CommandUnknownOpts[] {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(leaves);
}

/** All of them, with the groups. */
function every(command: CommandUnknownOpts): CommandUnknownOpts[] {
  return [command, ...command.commands.flatMap(every)];
}

const withBun = newFolder();
mkdirSync(join(withBun, "node_modules/.bin"), { recursive: true });
for (const folder of [".", "node_modules/.bin"]) writeFileSync(join(withBun, folder, "bun"), "", { mode: 0o755 });

const npxBun = "/home/ana/.npm/_npx/dd07e0cb0c3b3e38/node_modules/bun/bin/bun.exe";

test.each([
  // built?, argv0, the file of the process, PATH, how another terminal starts it
  [true, "keyhole", "/usr/bin/keyhole", "/usr/bin", "keyhole"],
  [true, "dist/keyhole", "/home/ana/keyhole/dist/keyhole", "/usr/bin", "/home/ana/keyhole/dist/keyhole"],
  [true, "./keyhole", "/home/ana/my tools/keyhole", "/usr/bin", "'/home/ana/my tools/keyhole'"],
  [false, "bun", "/opt/bun", `/usr/bin:${withBun}`, "bun run keyhole"],
  [false, "bun", "/opt/my bun/bun", `${withBun}/node_modules/.bin:/usr`, "'/opt/my bun/bun' run keyhole"],
  [false, "bun", npxBun, withBun, `npx --yes --allow-scripts=bun bun@${Bun.version} run keyhole`],
])("a hint starts the program as it was started: built %p, %s, %s, %s", (built, argv0, execPath, PATH, shown) => {
  expect(startedAs({ argv0, execPath, env: { PATH } }, built)).toBe(shown);
});

/** What the shell puts in place of `$(cat keyhole.pub)`. From https://pkg.go.dev/golang.org/x/mod/sumdb/note */
const verifierKey = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";

describe("the tree of commands", async () => {
  let shown = "";
  const program = await buildProgram(nowhere);
  frame(program, (text) => {
    shown += text;
  });
  afterEach(() => void setSystemTime());
  const helpOf = (command: CommandUnknownOpts) => {
    shown = "";
    command.outputHelp();
    return shown;
  };

  const everyLeaf = leaves(program).map((leaf) => [pathOf(leaf), leaf] as const);
  test.each(everyLeaf)("%s has help with an example", (path, leaf) => {
    expect(leaf.description()).toMatch(/^[A-Z].*\.$/s);
    expect(helpOf(leaf)).toMatch(new RegExp(`\nExamples?:\n(?:.*\n)*?.*${path}`));
    expect(helpOf(leaf)).not.toContain("[]");
  });

  test("has every command and option that a message or a comment tells people to run", () => {
    const src = join(import.meta.dir, "../../src");
    const texts = [...new Bun.Glob("**/*.{ts,tsx}").scanSync(src)].map((file) => readFileSync(join(src, file), "utf8"));
    const named = texts.flatMap((text) => [...text.matchAll(/(?:`|\b(?:run|for) )keyhole ([a-z][^`\\"]*)/g)]);
    const lines = named.map(([, line = ""]) => line).filter((line) => !/\bv1\b|^help |--help/.test(line)); // labels of MACs
    const unknown = lines.filter((line) => {
      let command: CommandUnknownOpts = program;
      for (const word of line.split(/\s+/)) {
        const next = command.commands.find((one) => one.name() === word);
        if (next === undefined) break;
        command = next;
      }
      const options = line.match(/(?<= )--[a-z-]+/g) ?? [];
      return command === program || options.some((name) => !command.options.some(({ long }) => long === name));
    });
    expect(unknown).toEqual([]);
    expect(lines.length).toBeGreaterThan(60);
  });

  test.each(everyLeaf)("%s takes its own examples", async (path, leaf) => {
    const examples =
      helpOf(leaf)
        .split(/\nExamples?:\n/)[1]
        ?.trimEnd()
        .replace(/ \\\n +/g, " ")
        .split("\n") ?? [];
    expect(examples.length).toBeGreaterThan(0);
    setSystemTime(Date.parse("2026-12-01")); // some name a day that must not be past
    for (const written of examples) {
      const example = written.replace('"$(cat keyhole.pub)"', verifierKey);
      // Its own program, since options keep what a parse has found.
      const own = await buildProgram(nowhere);
      frame(own, () => {});
      const ran: string[] = [];
      for (const one of leaves(own)) one.action(() => void ran.push(pathOf(one)));
      const [, line = ""] = /(?:^|[\s(])keyhole ([^|<>)]*)/.exec(example) ?? [];
      const words = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
      await own.parseAsync(words, { from: "user" });
      expect(ran).toEqual([path]);
    }
  });

  test("has help of at most 80 columns, with the commands in groups", () => {
    for (const command of every(program)) {
      for (const line of helpOf(command).split("\n")) {
        // What cannot be broken, such as a URL, may be wider.
        if (/^ *\S+(?: \\)?$/.test(line)) continue;
        expect(line.length, line).toBeLessThanOrEqual(80);
      }
    }
    const headings = ["Options", "People, in the database", "Machines, over the API", "Operators"];
    const found = helpOf(program).match(/^\S[^:\n]*(?=:$)/gm);
    expect(found).toEqual([...headings, "Examples", "Settings (environment)"] as never);
  });

  test("takes --json at every level", () => {
    for (const command of every(program)) expect(command.options.map(({ long }) => long)).toContain("--json");
  });

  test.each([
    ["key list -", "--json --org --wide --unused --never-expires --limit --help"],
    ["key create --env ", "development staging production"],
    ["key create --env staging,p", ""],
    ["file put web x --mode ", "0600 0400"],
    ["var import web staging ", ""],
    ["key create --name ", ""],
    ["run -- ke", ""],
  ])("completes %j to %j", async (line, candidates) => {
    const found = await complete(program, line.split(" "), async () => []);
    expect(found.map(({ word }) => word).join(" ")).toBe(candidates);
  });

  const inUse: Record<NamesAsked["of"], string[]> = {
    organizations: ["acme"],
    projects: ["acme/shop", "acme/web"],
    keys: ["0199a3c4-1"],
    trusts: ["0199a3c4-2"],
    keysAndTrusts: ["0199a3c4-1", "0199a3c4-2"],
    requests: ["0199a3c4-3"],
    variables: ["TOKEN", "URL"],
    accounts: ["ci", "$(touch ran)", "-x", "a b", "`id`", "a;b", "*", "a\nb", "a=b"],
    files: ["etc/a.pem"],
  };
  test.each<[line: string, asked: NamesAsked | undefined, candidates: string[]]>([
    ["org plan ", { of: "organizations" }, ["acme"]],
    ["org create ", undefined, []],
    ["audit list --org ", { of: "organizations" }, ["acme"]],
    ["audit list --project acme/w", { of: "projects" }, ["acme/web"]],
    ["project delete ", { of: "projects" }, ["shop", "web"]],
    ["project rename web ", undefined, []],
    ["key create --project s", { of: "projects" }, ["shop"]],
    ["key revoke 0199", { of: "keys" }, ["0199a3c4-1"]],
    ["trust revoke 0199", { of: "trusts" }, ["0199a3c4-2"]],
    ["request approve 0199", { of: "requests" }, ["0199a3c4-3"]],
    ["audit list --key ", { of: "keysAndTrusts" }, ["0199a3c4-1", "0199a3c4-2"]],
    ["var get web staging T", { of: "variables", project: "web", environment: "staging" }, ["TOKEN"]],
    ["var get web staging -", undefined, ["--json", "--version", "--help"]],
    ["account get acme/web ", { of: "accounts", project: "acme/web", environment: undefined }, ["ci"]],
    ["file delete web ", { of: "files", project: "web", environment: undefined }, ["etc/a.pem"]],
    ["run --project ", undefined, []],
  ])("completes %j with names of %j", async (line, asked, candidates) => {
    let found: NamesAsked | undefined;
    const offered = await complete(program, line.split(" "), async (one) => {
      found = one;
      return (inUse[one.of] ?? []).map((word) => ({ word }));
    });
    expect([found, offered.map(({ word }) => word)]).toEqual([asked, candidates]);
  });
});

/* Wrong usage as a whole: blackbox/transcripts/program.txt. */

describe("what a person types for a time, a list or a number", () => {
  test.each([
    ["30s", 30_000],
    ["15m", 900_000],
    ["24h", 86_400_000],
    ["90d", 7_776_000_000],
    ["36500d", 3_153_600_000_000],
  ])("%s is %p ms", (text, durationMs) => expect(parseDuration(text)).toBe(durationMs));
  const durations = [
    "",
    "0s",
    "00d",
    "1",
    "d",
    "1w",
    "1.5h",
    "-1d",
    " 1d",
    "1d ",
    "1d1h",
    "36501d",
    "9999999999s",
    "١d",
  ];
  test.each(durations)("%j is no duration", (text) => expect(() => parseDuration(text)).toThrow("takes a duration"));

  test.each([
    "spiffe://example.org/ns/web/sa/web",
    "spiffe://trust_domain-1.example/A.b_c-9",
    "spiffe://10.0.0.1/...",
    `spiffe://${"x".repeat(255)}/web`,
    `spiffe://example.org/${"x".repeat(2048 - 21)}`,
  ])("%s is the id of a workload", (text) => expect(parseSpiffeId(text)).toBe(text));
  test.each([
    ...["", "spiffe://", "spiffe:///web", "SPIFFE://example.org/web", "https://example.org/web"],
    ...[" spiffe://example.org/web", "spiffe://example.org/web\n", "spiffe://Example.org/web"],
    ...["spiffe://exämple.org/web", "spiffe://example.org:8443/web", "spiffe://user@example.org/web"],
    ...["spiffe://[::1]/web", "spiffe://ex%61mple.org/web", "spiffe://example.org/web/", "spiffe://example.org//web"],
    ...["spiffe://example.org/./web", "spiffe://example.org/web/..", "spiffe://example.org/w%65b"],
    ...["spiffe://example.org/wéb", "spiffe://example.org/*", "spiffe://example.org/web?a=b"],
    "spiffe://example.org/web#a",
    `spiffe://${"x".repeat(256)}/web`,
    `spiffe://example.org/${"x".repeat(2049 - 21)}`,
  ])("%j is no SPIFFE ID", (text) => expect(() => parseSpiffeId(text)).toThrow("takes a SPIFFE ID"));
  test("spiffe://example.org is the id of no workload", () => {
    expect(() => parseSpiffeId("spiffe://example.org")).toThrow("names a trust domain");
  });

  const nowMs = Date.parse("2026-03-01T12:00:00Z");
  test.each([
    ["24h", "2026-02-28T12:00:00Z"],
    ["2026-02-28", "2026-02-28T00:00:00Z"],
    ["2026-02-28T10:11Z", "2026-02-28T10:11:00Z"],
    ["2026-02-28T10:11:12.345Z", "2026-02-28T10:11:12.345Z"],
    ["2026-02-28T10:11:12+02:00", "2026-02-28T08:11:12Z"],
  ])("--since %s is %s", (text, moment) => expect(parseMoment(text, nowMs)).toBe(Date.parse(moment)));
  // The last two say nothing of their offset, or of their day.
  test.each([
    ...["", "yesterday", "2026-02-30", "2026-13-01", "26-02-28", "2026-02-28T25:00Z", "2026-02-28T10:11", "10:11Z"],
  ])("--since %j is no moment", (text) => expect(() => parseMoment(text, nowMs)).toThrow("takes a duration ago"));

  const noList = "takes a comma-separated list without empty or repeated members.";
  test.each([
    // what is typed, why it is refused, and which member if one can be named
    ["", noList, undefined],
    ["a,,b,,c", noList, undefined],
    ["a,b,a", noList, "a"],
    ["see,reveel", "takes a list of see, reveal.", "reveel"],
  ])("%j is no list", (text, message, member) => {
    const parse = text.startsWith("see") ? parseChoices(["see", "reveal"]) : parseList;
    expect(() => parse(text)).toThrow(expect.objectContaining({ message, member }));
  });

  test.each<[word: string | string[], names: string[], said: string]>([
    ["GREETNG", ["GREETING", "TOKEN"], " Did you mean GREETING?"],
    ["wbe", ["shop", "web"], " Did you mean web?"], // two that changed places are one difference
    ["Token", ["TOKEN"], " Did you mean TOKEN?"],
    ["KEY_4", ["KEY_1", "KEY_2", "KEYS_4"], " Did you mean one of KEY_1, KEY_2, KEYS_4?"],
    ["prod", ["production"], ""],
    ["abc", ["abd", "xyz", "a"], " Did you mean abd?"],
    ["ab", ["cd", "xb", ""], " Did you mean xb?"],
    ["x".repeat(101), ["x".repeat(100)], ""],
    ["axbxcxdx", ["abcd", "axbxcxdxyyy"], " Did you mean axbxcxdxyyy?"],
    [["aa1", "bb2", "cc3", "dd4", "GREETNG"], ["GREETING"], " Did you mean GREETING?"],
    [["aa1", "bb2", "cc3", "dd4", "ee5", "GREETNG"], ["GREETING"], ""], // thousands would keep others waiting
  ])("%s among %j is answered with%s", (word, names, said) => expect(didYouMean(word, names)).toBe(said));

  test.each(["0", "-1", "1.5", "", "01", "1e3", "9999999999"])("--limit %j is no count", (text) => {
    expect(() => parseCount(text)).toThrow("takes a whole number of at least 1.");
  });
});

describe("a failure", () => {
  const coded = (code: string) => Object.assign(new Error("with s3cret parameters"), { code });

  test.each<[what: string, thrown: unknown, exitCode: number, code: string]>([
    ["an invalid name", new Refused("invalid", "No."), 2, "invalid"],
    ["a project in one of several organizations", new Refused("ambiguous", "No."), 2, "ambiguous"],
    ["a missing project", new Refused("not_found", "No."), 4, "not_found"],
    ["a name that is taken", new Refused("exists", "No."), 1, "exists"],
    ["a bound", new Refused("bound", "No."), 5, "bound"],
    ["a database that is away", new Refused("unavailable", "No."), 6, "unavailable"],
    ["a database that does not answer", new Fault("unavailable", "no answer from s3cret"), 6, "unavailable"],
    ["a value that does not open", new Fault("decryption_failed", "row s3cret"), 1, "decryption_failed"],
    ["a wrong setting", configProblem("No."), 2, "invalid_configuration"],
    ["Ctrl-C", interrupted(2), 130, "interrupted"],
    ["a refused connection", coded("ECONNREFUSED"), 6, "unavailable"],
    ["a wrong password for the database", coded("28P01"), 6, "unavailable"],
    ["a missing database", new Fault("unavailable", "no", {}, { cause: coded("3D000") }), 6, "unavailable"],
    ["a role without a right", coded("42501"), 3, "unauthorized"],
    ["a full disk", coded("SQLITE_FULL"), 6, "unavailable"],
    ["a locked database file", new Error("query", { cause: coded("SQLITE_BUSY") }), 6, "unavailable"],
    ["a file that is no database", coded("SQLITE_NOTADB"), 1, "database_damaged"],
    ["a broken rule of the database", coded("23505"), 1, "internal_error"],
    ["a defect", new TypeError("s3cret is undefined"), 1, "internal_error"],
    ["anything else", "s3cret", 1, "internal_error"],
  ])("such as %s has its exit code and code, and says no secret", (_, thrown, exitCode, code) => {
    const problem = toProblem(thrown, {});
    expect(problem).toMatchObject({ exitCode, code, requestId: null });
    expect(problem.message).not.toContain("s3cret");
    expect(problem.message).toMatch(/\.$/);
  });

  test("is told in words that fit a page, too", () => {
    const codes = ["3D000", "28P01", "42501", "ECONNREFUSED", "SQLITE_FULL", "SQLITE_BUSY", "SQLITE_IOERR", "EPERM"];
    const faults = [new Fault("unavailable", "no"), new Fault("decryption_failed", "no"), new Error("no")];
    for (const thrown of [...codes.map(coded), coded("SQLITE_CORRUPT"), ...faults]) {
      expect(failureFor("operator", thrown).message).not.toMatch(/command|option|--|exit/);
    }
  });

  test("of the embedded database says nothing of DATABASE_URL", () => {
    for (const code of ["SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_READONLY", "SQLITE_BUSY", "SQLITE_CANTOPEN"]) {
      expect(toProblem(coded(code), {}).message).not.toContain("DATABASE_URL");
    }
  });

  /** What stderr is sent. */
  async function complaint(json: boolean, problem: Problem): Promise<string> {
    let said = "";
    const stderr = {
      write: (text: string, done: () => void) => {
        said += text;
        done();
      },
    } as unknown as NodeJS.WriteStream;
    await complain({ ...nowhere, json, terminal: { ...nowhere.terminal, stderr } }, problem);
    return said;
  }

  test("is one sentence for people, with nothing raw in it", async () => {
    const problem = new Problem(4, "not_found", "There is no project \x1b[2J\u202e.");
    expect(await complaint(false, problem)).toBe("keyhole: There is no project \\u001b[2J\\u202e.\n");
  });
  test("names the request where an answer of the API was the failure", async () => {
    const problem = new Problem(3, "unauthorized", "A valid API key is required.", { requestId: "r-1" });
    expect(await complaint(false, problem)).toBe("keyhole: A valid API key is required. (request r-1)\n");
    const told = { error: "A valid API key is required.", code: "unauthorized", requestId: "r-1" };
    expect(JSON.parse(await complaint(true, problem))).toEqual(told);
  });
  test("is one line of JSON for programs, with the words that were due before it", async () => {
    const failed = holdNotes({ ...nowhere, json: true }, async (say) => {
      say("A NEW ROOT KEY was made.");
      throw new Refused("not_found", "No \x9b such thing.");
    });
    const said = await complaint(true, await failed.catch((problem) => problem));
    expect(said).toBe(
      '{"error":"No \\u009b such thing.","code":"not_found","requestId":null,"notes":["A NEW ROOT KEY was made."]}\n',
    );
  });
});
