import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parse, stringify } from "yaml";
import { renderYaml } from "../../src/core/formats/lines.ts";
import { itemsMax, variableValueBytesMax } from "../../src/core/names.ts";
import { type ImportFormat, parseImport } from "../../src/kinds/variables/import-text.ts";
import { cpuMsOf } from "../support/cpu.ts";
import { nastyValue, nastyValues } from "../support/readers/nasty.ts";

const values = (format: ImportFormat, text: string) => {
  const { variables, problems } = parseImport(format, text);
  expect(problems).toEqual([]);
  return Object.fromEntries(variables.map(({ name, value }) => [name, value]));
};
const problems = (format: ImportFormat, text: string) => parseImport(format, text).problems;

describe("a value is the text that is written:", () => {
  const scalars = ["1.10", "1e3", "-0", "1E400", "0.1000000000000000055", "12345678901234567890", "true", "false"];
  test.each(scalars)("%s, in JSON and in YAML", (text) => {
    expect(values("json", `{"A":${text},\n\t"B" :\r\n\t${text}\r}`)).toEqual({ A: text, B: text });
    expect(values("yaml", `A: ${text}\nB: "${text}"\n`)).toEqual({ A: text, B: text });
  });

  test.each([
    ...["yes", "0o17", "0x1F", "1_000", ".inf", "2030-01-31", "a#b"].map((one): [string, string] => [`A: ${one}`, one]),
    ["A: True # a comment", "True"],
    ["A: ''", ""],
    ["A: 'it''s'", "it's"],
    ['A: "a\\tb\\u00e9"', "a\tb\u00e9"],
    ["A: |\n  one\n  two\n", "one\ntwo\n"],
    ["A: >-\n  one\n  two\n", "one two"],
    ["A: !!str 1.10", "1.10"],
    ["A: !!str null", "null"],
    ["A: &anchor one", "one"],
    ["%YAML 1.1\n---\nA: on\n", "on"],
    ["{A: one}", "one"],
    ["\uFEFFA: one", "one"],
    ["A: one\r\n", "one"],
  ])("%j", (text, value) => expect(values("yaml", text)).toEqual({ A: value }));

  test.each([
    ["env", "# one\n  #two\nA=1\n", "one two"],
    ["env", "# of the file\n\n# one\nexport A=1\n", "one"],
    ...["# one\n", "# ------\n#", "# one\n# OLD=secret", "B='\n# in a value\n'"].map(
      (before) => ["env", `${before}\nA=1 # after\n`, undefined] as const,
    ),
    ["yaml", "# of the file\n\n# one\n# two\nA: 1\n", "one two"],
    ["yaml", "B: 2 # after\n# one\nA: 1 # after\n", "one"],
    ["yaml", '# "OLD": secret\nA: 1\n', undefined],
    ...["## OLD=s", "#- OLD=s", "# 'OLD' = s", "# set OLD=s", "# $env:OLD=s", "# was: OLD=s", "# OLD+=s"].flatMap(
      (comment) => [
        ["env", `${comment}\nA=1\n`, undefined] as const,
        ["yaml", `${comment}\nA: 1\n`, undefined] as const,
      ],
    ),
    ...[
      "# K2 := s",
      '# "K": "s"',
      "# 'k':'s'",
      "# VAR: s",
      "## OLD: s",
      "# - OLD: s",
      "# old: s",
      "# old:s",
      "# OLD => s",
      "# OLD -> s",
      "# set K3 s",
      "# setx K3 s",
      "# setenv K3 s",
      "# ENV K3 s",
      "# ask ann\n# -----BEGIN PRIVATE KEY-----\n# c2hvcnQ=\n# -----END PRIVATE KEY-----",
      "# MIIEvQIBADANBgkqhkiG9w0BAQEFAASC",
      "# kept: https://ann:s@a.example/",
      "# https://ann:s@a.example/",
      "# postgres://ann:s@a.example/db",
      "# was 0a1b2c3d4e5f60718293",
    ].flatMap((comment) => [
      ["env", `${comment}\nA=1\n`, undefined] as const,
      ["yaml", `${comment}\nA: 1\n`, undefined] as const,
    ]),
    ...[
      "Set by finance, never by hand",
      "settings of ACME in Europe",
      "Made at Stripe (test mode); finance rotates it",
      "see https://a.example:8443/keys/0a1b2c3d4e5f60718293 first",
    ].flatMap((note) => [["env", `# ${note}\nA=1\n`, note] as const, ["yaml", `# ${note}\nA: 1\n`, note] as const]),
    ["env", "# see https://a.example/keys?of=web&in=eu\nA=1\n", "see https://a.example/keys?of=web&in=eu"],
  ] as const)("in %s, the comment above a line is its note, unless it may hold a value: %j", (format, text, note) => {
    const { variables } = parseImport(format, text);
    expect(
      variables
        .find(({ name }) => name === "A")
        ?.note?.replace(/\s+/g, " ")
        .trim(),
    ).toBe(note as string);
  });

  test("a comment that is one long line is read once, and not once for each of its characters", () => {
    const line = `${"-".repeat(400_000)}x`;
    expect(parseImport("yaml", `#${line}\nA: 1\n`).variables[0]?.note === line).toBe(true);
  });

  test("a JSON text is one, with every kind of white space between its tokens", () => {
    const blanks = ' \t\r\n{\t\r\n\t"A"\r:\n"one"\t,\r"B"\n\t:\t"two"\r\n}\t\r\n';
    expect(values("json", blanks)).toEqual({ A: "one", B: "two" });
    expect(values("json", '\uFEFF{"A":"\\ud83d\\udd11 \\/ \\u2028 \u2028 \u0085 \u007f \ufeff"}')).toEqual({
      A: "🔑 / \u2028 \u2028 \u0085 \u007f \ufeff",
    });
    expect(values("json", "{}")).toEqual({});
    expect(values("yaml", "")).toEqual({});
    expect(values("yaml", "# nothing\n")).toEqual({});
  });
});

describe("what an import refuses, by line and name:", () => {
  test.each([
    ['{"A":null}', "line 1: A is null"],
    ['{\n"A":[]}', "line 2: A is a list"],
    ['{"A":{"B":"one"}}', "line 1: A is an object"],
    ['{"A":"one",\n"A":"two"}', "line 2: A is already set on line 1"],
    ['{"A":"one",\n"\\u0041":"two"}', "line 2: A is already set on line 1"],
    ['{"A-B":"one"}', "line 1: A-B is not a valid variable name"],
    ['{"a secret":"one"}', "line 1: what stands for a name here is not a valid variable name"],
    ['{"__proto__":"one"}', "line 1: __proto__ is not a valid variable name"],
    ['{"A":"\\u0000"}', "line 1: A holds a NUL"],
    ['{"A":"\\ud800"}', "line 1: A holds half a surrogate pair"],
    [`{"A":"${"x".repeat(variableValueBytesMax + 1)}"}`, "line 1: A is longer than 65536 bytes"],
    ...["[]", '"A"', "null"].map((text): [string, string] => [text, "this is not an object"]),
    ...["", "{'A': 'one'}", '{"A":"one",}', "A=one"].map((text): [string, string] => [
      text,
      "this is YAML, but not JSON",
    ]),
    ['{"A":"one"}{}', "line 1: this is not JSON"],
    ['{"A":"\\q"}', "line 1: this is not JSON"],
    ['{\n"A":"one"', "line 2: this is not JSON"],
  ])("JSON %#: %j", (text, words) => {
    const { variables, problems } = parseImport("json", text);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toStartWith(words);
    expect(variables.map(({ name }) => name)).toEqual(words.includes("already") ? ["A"] : []);
  });

  test.each([
    ...["A:", "A: ~"].map((text): [string, string] => [text, "line 1: A is null"]),
    ...["!!null ''", "!!binary aGk=", "!vault one"].map((one): [string, string] => [
      `A: ${one}`,
      "line 1: A has a tag",
    ]),
    ["B: &x one\nA: *x", "line 2: A is an alias"],
    ["A:\n  - one", "line 1: A is a list"],
    ["A: !!set {x}", "line 1: A is an object"],
    ["<<: {A: one}", "line 1: what stands for a name here is not"],
    ["A: one\nA: two", "line 2: A is already set on line 1"],
    ["1: one", "line 1: 1 is not a valid variable name"],
    ["? [A]\n: one", "line 1: this is not YAML (non string key)"],
    ["A: one\n---\nA: two", "line 2: this is not YAML (multiple docs)"],
    ["A: one\n  B: two\n", "line 1: this is not YAML (block as implicit key)"],
    ["\tA: one", "line 1: this is not YAML (tab as indent)"],
    ["A: @one", "line 1: this is not YAML (bad scalar start)"],
    ...["- one", "A=one"].map((text): [string, string] => [text, "this is not an object"]),
  ])("YAML %#: %j", (text, words) => {
    const { problems } = parseImport("yaml", text);
    expect(problems[0]).toStartWith(words);
  });

  test("all of it at once, without a value", () => {
    const text = '{"A":null,\n"B":["canary"],\n"C":"kept",\n"D":{"x":"canary"},\n"canary value":"canary"}';
    expect(problems("json", text).map((problem) => problem.slice(0, 9))).toEqual([
      ...["line 1: A", "line 2: B", "line 4: D", "line 5: w"],
    ]);
    const odd = ['{"A":canary}', '{"A":"\\canary"}', '{"A" "canary"}', "canary", "A: |canary\n  x"];
    for (const broken of [text, `${text}canary`, ...odd]) {
      for (const format of ["json", "yaml"] as const) expect(problems(format, broken).join()).not.toContain("canary");
    }
  });

  test("no warning is lost: a name that steers is one, as in a dotenv file", () => {
    const texts = { json: '{"LD_PRELOAD":"x"}', yaml: "LD_PRELOAD: x", env: "LD_PRELOAD=x" } as const;
    for (const [format, text] of Object.entries(texts) as [keyof typeof texts, string][]) {
      expect(parseImport(format, text).warnings[0]).toStartWith("line 1: LD_PRELOAD steers");
    }
  });
});

describe("whatever the values are,", () => {
  const check = (all: readonly string[]) => {
    const variables = all.map((value, at) => ({ name: `V${at}`, value }));
    const expected = Object.fromEntries(variables.map(({ name, value }) => [name, value]));
    for (const indent of ["", " ", "\t", "\r\n\t "])
      expect(values("json", JSON.stringify(expected, null, indent))).toEqual(expected);
    expect(values("yaml", JSON.stringify(expected))).toEqual(expected);
    expect(values("yaml", renderYaml(variables))).toEqual(expected);
    expect(values("yaml", stringify(expected, { doubleQuotedMinMultiLineLength: Number.MAX_VALUE }))).toEqual(expected);
    // Where the library folds lines, it writes some blanks as other texts, and reads those itself.
    const folded = stringify(expected);
    expect(values("yaml", folded)).toEqual(parse(folded));
  };
  const fits = (value: string) => value.isWellFormed() && !value.includes("\0") && value.length < 10_000;

  test("what JSON, this program and a YAML library write comes back", () => {
    check(nastyValues.filter(fits));
    fc.assert(fc.property(fc.array(nastyValue.filter(fits), { maxLength: 12, size: "max" }), check), { numRuns: 500 });
  });

  test("a text is taken as JSON only if it is an object of JSON whose values are those of JSON.parse", () => {
    const scalar = fc.oneof(fc.string(), fc.double().map(String), fc.constantFrom("true", "null", "[", "1.10"));
    fc.assert(
      fc.property(
        fc.array(fc.tuple(scalar, fc.boolean()), { maxLength: 4 }),
        fc.string({ maxLength: 2 }),
        (members, end) => {
          const text = `{${members.map(([one, quoted], at) => `"A${at}":${quoted ? JSON.stringify(one) : one}`).join()}}${end}`;
          const { variables, problems } = parseImport("json", text);
          if (problems.length > 0) return;
          const parsed = JSON.parse(text) as Record<string, unknown>;
          expect(variables.map(({ name }) => name)).toEqual(Object.keys(parsed));
          for (const { name, value } of variables) {
            const expected = parsed[name];
            expect(typeof expected === "string" ? value : JSON.parse(value)).toEqual(expected);
          }
        },
      ),
      { numRuns: 2000 },
    );
  });
});

const lines = (count: number, line: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => line(at)).join("");
test.each([
  ["many names", lines(10 * itemsMax, (at) => `N${at}: "value ${at}"\n`)],
  ["one name, often", lines(10 * itemsMax, () => "N: 1\n")],
  ["open brackets", `A: ${"[".repeat(100_000)}`],
  ["aliases of aliases", `A: &a [x]\n${lines(1000, (at) => `B${at}: &b${at} [*a, *a]\n`)}`],
  ["backslashes", `A: "${"\\".repeat(1_000_000)}`],
  ["a name without end", "x".repeat(5_000_000)],
  ["blanks", `A: x${" ".repeat(1_000_000)}y`],
])("a large or hostile text of %s is read in time that grows with its length alone", (_, text) => {
  expect(cpuMsOf(() => problems("yaml", text))).toBeLessThan(10_000); // 1.5 s where this was written
});
