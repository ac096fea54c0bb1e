import { describe, expect, test } from "bun:test";
import { parse } from "dotenv";
import fc from "fast-check";
import { renderDotenv } from "../../src/core/formats/dotenv.ts";
import { nameWarnings, parseEnvFile } from "../../src/kinds/variables/env-file.ts";
import { cpuMsOf } from "../support/cpu.ts";
import { isRepresentable, nastyValue, nastyValues } from "../support/readers/nasty.ts";

describe("a value", () => {
  test.each([
    ["A=", ""],
    // What stands there as it is: nothing is expanded, and no backslash means anything.
    ...["one", "two words", "https://x.example/?a=b&c=d", "a'b", '{"a":"b"}', "$HOME", "a\\nb", "C:\\Temp\\"].map(
      (value): [string, string] => [`A=${value}`, value],
    ),
    ...["  A  =  one  ", "\texport A=one", "export   A = one", "A=one # a comment", "A=one\t#", "A = 'one' "].map(
      (text): [string, string] => [text, "one"],
    ),
    ["A= # a comment", ""],
    ["A=''", ""],
    ...["one", "# no comment", " a ", "a\\nb", 'a"b`c', "it\\'s"].map((value): [string, string] => [
      `A='${value}'`,
      value,
    ]),
    ["A='one' # it's", "one"],
    ["A='C:\\'", "C:\\"], // closes here for dotenv and for a shell
    ["A='C:\\' # it's", "C:\\"],
    ['A=`it\'s "x"`', 'it\'s "x"'],
    ['A="a\\nb\\rc"', "a\nb\rc"],
    ['A="say \\"x\\""', 'say \\"x\\"'],
    ['A="a\\\\"', "a\\\\"],
    ['A="a\\\\" # "', "a\\\\"], // dotenv by itself would take the comment for the end of the value
    ['A="a\nb\n"', "a\nb\n"],
    ["A='\nB=1\n'", "\nB=1\n"],
    ["A=`a\nb`", "a\nb"],
  ])("%j", (text, value) => {
    expect(parseEnvFile(text).variables).toEqual([{ name: "A", value, line: 1 }]);
    expect(parseEnvFile(`${text}\nB=2\n`).variables.map((variable) => variable.name)).toEqual(["A", "B"]);
  });

  test("may be 64 KiB of UTF-8 and no more, however it is written", () => {
    const big = "é".repeat(32768);
    expect(parseEnvFile(`A=${big}`).variables[0]?.value).toBe(big);
    expect(parseEnvFile(`A="${"\\n".repeat(65536)}"`).variables[0]?.value).toBe("\n".repeat(65536));
    expect(problems(`A=${big}x`)).toEqual(["line 1: A is longer than 65536 bytes"]);
    expect(problems(`A="${"\\n".repeat(65537)}"`)).toEqual(["line 1: A is longer than 65536 bytes"]);
    expect(problems(`A='${"x".repeat(8_000_000)}'`)).toEqual(["line 1: A is longer than 65536 bytes"]);
  });
});

describe("a file", () => {
  test("of nothing, blanks and comments has no variables", () => {
    for (const text of ["", "\n", "\uFEFF", " \t", "# A=1", "\n\n  # it's \"\n\t\n"]) {
      expect(parseEnvFile(text)).toEqual({ variables: [], warnings: [], problems: [] });
    }
  });

  test("keeps its order, and counts lines across values that span several", () => {
    const { variables } = parseEnvFile("# top\n\nB='1\n2\n3'\nA=x\n\nexport C=\"\n\"");
    expect(variables.map(({ name, line }) => `${name} ${line}`)).toEqual(["B 3", "A 6", "C 8"]);
  });

  test("may begin with a byte order mark, and its lines may end in LF, CR LF or some in each", () => {
    for (const lineEnd of ["\n", "\r\n"]) {
      const { variables, ...said } = parseEnvFile(["\uFEFFA=1", "B='x", "y' # c", "", "C=2"].join(lineEnd));
      const shown = variables.map(({ name, value, line }) => `${line} ${name}=${value}`);
      expect(shown).toEqual(["1 A=1", "2 B=x\ny", "5 C=2"]);
      expect(said).toEqual({ warnings: [], problems: [] });
    }
    const mixed = parseEnvFile("A=1\r\nB='2'\r\n\r\n# c\r\nC=3\n");
    expect(mixed.variables.map(({ value, line }) => `${value} ${line}`)).toEqual(["1 1", "2 2", "3 5"]);
  });

  test("with names of Object.prototype gives them back", () => {
    const { variables, warnings } = parseEnvFile("constructor=1\ntoString=2");
    expect(variables.map(({ value }) => value)).toEqual(["1", "2"]);
    expect(warnings).toHaveLength(2);
  });
});

describe("refused, by line and name", () => {
  /** Each problem, with texts that have it. */
  const refused: [problem: string, ...texts: string[]][] = [
    ["line 1: this is not an assignment of the form NAME=value", "ssh-rsa AAAA", "A: one", "export A", "=one"],
    ["line 1: this is not an assignment of the form NAME=value", "A B=one", "A#=one", "\u00a0"],
    ["line 1: a.b is not a valid variable name", "a.b=one"],
    ["line 1: 1A is not a valid variable name", "1A=one"],
    ["line 1: _ is not a valid variable name", "_=one"],
    ["line 1: __proto__ is not a valid variable name", "__proto__=one"],
    // The last one is the end of a key that lost its quotes.
    ['line 1: what comes before "=" is not a valid variable name', "A+=one", "é=one", "MIIE+abc/def==", "9kL-x2Q=="],
    ["line 1: A has a quote that is never closed, so nothing after it could be read", 'A="one', 'A="C:\\"', "A=`"],
    ["line 2: A has a quote that is never closed, so nothing after it could be read", "\nA='one\nB=2\n"],
    ["line 1: A has text after its closing quote on line 1", "A='one'two", "A='one' two", "A='it'\\''s'"],
    ["line 1: A has text after its closing quote on line 1", 'A="I\'m at \\$"\'(\'"pwd)"'],
    ["line 1: A has text after its closing quote on line 2", "A='one\ntwo' three"],
    ['line 1: A has a "#" right after its closing quote: put a blank before it', "A='one'#two"],
    [
      'line 1: A has a "#" where some readers begin a comment and some do not: put the value in quotes',
      "A=one#two",
      "A=#two",
    ],
    ['line 1: A has quotes and then a "#" in an unquoted value: put the whole value in quotes', "A=a 'b # c'"],
    ["line 3: A is already set on line 1", "A=1\nB=2\nA=3"],
    ["line 1: A holds a NUL, which no environment can carry", "A='a\0b'"],
    [
      'line 1: A holds a carriage return: write it as "\\r" in double quotes',
      "A='x\ry'\n",
      "A='x\r\ny'\n",
      "A=1\rB=2\r",
    ],
    ["line 1: A holds half a surrogate pair, which is not text", "A=a\ud800"],
    [
      "line 1: A holds a blank or line break that readers take differently: put the value in quotes",
      ...["A=\u00a0one", "A=one\u2028two"],
    ],
  ];
  test.each(refused)("%s: %j", (problem, ...texts) => {
    for (const text of texts) expect([text, problems(text)]).toEqual([text, [problem]]);
  });

  test("all at once, so that the file is mended once", () => {
    const text = ["A=1", "junk", "B='x'y", "a.b='x'y", "A=2#", "C=3", 'D="'].join("\n");
    expect(problems(text)).toEqual([
      "line 2: this is not an assignment of the form NAME=value",
      "line 3: B has text after its closing quote on line 3",
      "line 4: a.b is not a valid variable name",
      "line 4: the variable has text after its closing quote on line 4",
      'line 5: A has a "#" where some readers begin a comment and some do not: put the value in quotes',
      "line 5: A is already set on line 1",
      "line 7: D has a quote that is never closed, so nothing after it could be read",
    ]);
  });

  test("and never by value", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom("A=", "B='", 'C="', "D=`", "", "="), nastyValue), { maxLength: 8 }),
        (lines) => {
          const hidden = "hunter2+";
          const text = lines.map(([start, value]) => `${start}${value}${hidden}${value}`).join("\n");
          for (const said of [...problems(text), ...warnings(text)]) expect(said).not.toContain(hidden);
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe("a warning", () => {
  test.each([
    ['A="a\\tb"', 'line 1: A holds backslashes other than "\\n" and "\\r", and they are kept as written'],
    ['A="say \\"x\\""', 'line 1: A holds backslashes other than "\\n" and "\\r", and they are kept as written'],
    ['A="a\\\\nb"', 'line 1: A holds backslashes other than "\\n" and "\\r", and they are kept as written'],
    ["\nA='it\\'s'", "line 2: A holds a quote behind a backslash, and both are kept as written"],
    ["A=`\\``", "line 1: A holds a quote behind a backslash, and both are kept as written"],
  ])("%j", (text, warning) => expect(parseEnvFile(text).warnings).toEqual([warning]));

  const dollars = ["A=http://$HOST/", `A=http://\${HOST}/`, 'A="$(pwd)"', 'A="$HOST"', "A=pa$_1"];
  test.each(dollars)("%s is said to be kept as written", (text) => {
    const kept = 'holds "$" before a word, "{" or "(", which is kept as written: nothing is expanded or run';
    expect(parseEnvFile(text)).toMatchObject({ problems: [], warnings: [`line 1: A ${kept}`] });
  });

  test.each([
    'A="a\\nb\\r"',
    "A='a\\tb'",
    "A=a\\tb",
    `A='\${X} $(y)'`,
    ...["A=$5", "A=a$ b$", "A='$HOST'", "A='x\r\ny'\r\nB=2\r\n"],
  ])("none: %j", (text) => expect(parseEnvFile(text).warnings).toEqual([]));

  test("is given for names that some reader trips over", () => {
    for (const name of "constructor toString hasOwnProperty UID EUID PPID OPTIND status path".split(" "))
      expect(nameWarnings(name)).toEqual([expect.stringMatching(new RegExp(`^${name} `))]);
    for (const name of ["A", "uid", "STATUS", "DATABASE_URL", "isEven"]) expect(nameWarnings(name)).toEqual([]);
    for (const name of ["LD_PRELOAD", "NODE_OPTIONS", "BASH_ENV", "PATH", "Path", "KEYHOLE_URL"]) {
      expect(nameWarnings(name)).toEqual([
        `${name} steers loaders, runtimes, shells or CI: \`run\` and \`pull\` refuse it without --allow-name ${name}`,
      ]);
    }
    expect(parseEnvFile("A=1\nUID=2").warnings).toEqual([`line 2: ${nameWarnings("UID")}`]);
  });
});

describe("what Keyhole writes", () => {
  test("comes back equal where it is portable, and otherwise equal, warned of or refused by name", () => {
    const check = (values: readonly string[]) => {
      const all = values
        .map((value, at) => ({ name: `V${at}`, value }))
        .filter((variable) => isRepresentable(variable.value));
      const { text, nonportable } = renderDotenv(all);
      const risky = new Set(nonportable);
      const safe = all.filter(({ name }) => !risky.has(name));
      const ours = parseEnvFile(renderDotenv(safe).text);
      expect(byName(ours.variables)).toEqual(byName(safe));
      expect(ours.warnings).toEqual([]);

      const refused = new Set(problems(text).map(nameIn));
      const taken = all.filter(({ name }) => !refused.has(name));
      const theirs = parseEnvFile(renderDotenv(taken).text);
      const doubted = new Set(theirs.warnings.map(nameIn));
      for (const name of [...refused, ...doubted]) expect(risky).toContain(name);
      const changed = taken.filter(({ name, value }) => byName(theirs.variables)[name] !== value);
      for (const { name } of changed) expect(doubted).toContain(name);
    };
    check(nastyValues);
    fc.assert(fc.property(fc.array(nastyValue, { maxLength: 12, size: "max" }), check), { numRuns: 1000 });
  });

  test("means to the splitter what it means to dotenv's other parser", () => {
    fc.assert(
      fc.property(fc.constantFrom("'", '"', "`", ""), nastyValue, (quote, value) => {
        const text = `A=${quote}${value}${quote}`;
        if (problems(text).length > 0) return;
        const [first, ...others] = parseEnvFile(text).variables;
        if (others.length === 0 && !text.includes("#")) expect(parse(text)).toEqual({ A: first?.value ?? "" });
      }),
      { numRuns: 3000 },
    );
  });
});

describe("a large or hostile file", () => {
  test("is judged up to its twentieth problem", () => {
    const found = problems("line\n".repeat(1000));
    expect([found.length, found.at(-1)]).toEqual([21, "line 21 and those after it were not looked at"]);
  });

  const lines = (count: number, line: (at: number) => string) =>
    Array.from({ length: count }, (_, at) => line(at)).join("");
  test.each([
    ["plain lines", lines(10_000, (at) => `NAME_${at}=value ${at}\n`)],
    ["quoted lines", lines(10_000, (at) => `NAME_${at}="value \\n ${at}" # c\n`)],
    ["lines that are no assignments", lines(100_000, (at) => `line ${at}\n`)],
    ["quotes that close on the next line", lines(100_000, (at) => `A${at}="\\"\n`)],
    ["duplicates", lines(100_000, () => "A=1\r\n")],
    ["carriage returns within values", lines(100_000, (at) => `A${at}='x\ry'\n`)],
    ["blanks", `A=x${" ".repeat(1_000_000)}y${" ".repeat(1_000_000)}`],
    ["line separators and quotes", `A=${"\u2028'".repeat(30_000)}`],
    ["other blanks", `A=${"\u00a0".repeat(60_000)}x`],
    ["backslashes", `A="${"\\".repeat(1_000_000)}`],
    ["quotes behind backslashes", `A='${"\\' ".repeat(20_000)}'`],
    ["a name without end", "x".repeat(10_000_000)],
  ])("of %s is read in time that grows with its length alone", (_, text) => {
    expect(cpuMsOf(() => problems(text))).toBeLessThan(5000); // 0.3 s where this was written
  });
});

function problems(text: string): readonly string[] {
  return parseEnvFile(text).problems;
}

function warnings(text: string): readonly string[] {
  return parseEnvFile(text).warnings;
}

function nameIn(sentence: string): string {
  return /^line \d+: (\w+) /.exec(sentence)?.[1] ?? sentence;
}

function byName(variables: readonly { readonly name: string; readonly value: string }[]): Record<string, string> {
  return Object.fromEntries(variables.map(({ name, value }) => [name, value]));
}
