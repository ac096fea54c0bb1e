import { describe, expect, test } from "bun:test";
import { pathProblem, pathSetProblem } from "../../src/core/words/path.ts";
import { cpuMsOf } from "../support/cpu.ts";

const accepted: readonly string[] = [
  ...["a", ".env", ".env.local", "config/tls/server.key", "~", "$HOME"],
  ...["..a", "a..b", "...a"], // two dots are a part only alone
  "-rf", // no business of a path: it is never given to a shell
  "%2e%2e", // nothing is decoded
  ...["a b/c d", "a\u00a0b", "a\u202fb"], // a space inside is no harm: screenshots of macOS hold U+202F
  ...["naïve.txt", "日本語/ファイル.pem", "🔑.pem", ".gitignore", ".github/workflows/ci.yml"],
  ...["git", "a.git", "git~", "git~a"], // a.git is a bare repository's usual name
  // They begin like a device, end like one or lack its digit; superscript four is none.
  ...["cones", "con-1", "conin", "a.con", "com", "com10", "lpt", "com\u2074"],
  ...["x".repeat(255), "é".repeat(127), `${`${"x".repeat(127)}/`.repeat(7)}${"x".repeat(128)}`], // 255, 254, 1024 bytes
];

/** What is invisible, steers a screen or is no character: each is refused wherever it stands. */
const unseen = [
  "\u0000\n\u001b\u007f\u0085\u009b", // control characters of C0 and C1; some clear a terminal that lists them
  "\u200e\u061c\u202e\u2067", // direction: "a\u202etxt.exe" shows as aexe.txt
  "\u200b\u200d\u2060\ufeff\u00ad\ufff9", // format characters; the soft hyphen shows only at a line's end
  "\u034f\u3164\ufe0f\u180b\u{e0041}\u2028\u2029", // invisible without being format characters, like the Hangul filler
  "\uf03a\uffff", // private use, which Cygwin and WSL read as ':', and a noncharacter
];
const codeOf = (one: string) => `U+${one.codePointAt(0)?.toString(16).toUpperCase().padStart(4, "0")}`;

/** Problems, each with paths that have it. */
const refused: readonly (readonly string[])[] = [
  ["is empty", ""],
  ["is longer than 1024 bytes", "x".repeat(1025), `${`${"x".repeat(127)}/`.repeat(7)}${"x".repeat(129)}`],
  ["is longer than 1024 bytes", `${"é".repeat(100)}/`.repeat(6)], // 606 characters
  ["has a part longer than 255 bytes", "x".repeat(256), `a/${"é".repeat(128)}/b`], // 128 characters, 256 bytes
  ["is not well-formed Unicode", "a\ud800"], // half of a pair: UTF-8 has no such thing
  ["is absolute, not relative", "/", "/etc/passwd", "//server/share"],
  ["has a '.' part", ".", "./a", "a/./b"],
  ["has a '..' part", "..", "../a", "a/../b", "a/.."],
  ["has an empty part", "a//b", "a/"],
  ["has the character '\\'", "a\\b", "..\\a"], // a separator on Windows
  // C:a is relative to the folder that drive is in, and the last one is .git itself, to NTFS.
  ["has the character ':'", "C:\\a", "C:a", "a:stream", ".git::$INDEX_ALLOCATION"],
  ...[...'*?"<>|'].map((one) => [`has the character '${one}'`, `a${one}`, `a${one}b`]),
  ...[...unseen.join("")].map((one) => [`has the character ${codeOf(one)}`, `a${one}`, `a${one}b`, `${one}a`]),
  ["has the character U+200C", ".g\u200cit"], // .git to HFS+, which skips such characters
  ["has the character U+200D", ".git\u200d"],
  ["has the character U+206E", ".gi\u206et"],
  ["is not in Unicode normal form C", "cafe\u0301", "\u212a", "a/e\u0301/b"], // the Kelvin sign is a K
  ["has a part that begins with a space", " a", "a/ b", "\u3000a", " "],
  ["has a part that ends with a space", "a ", "a /b", "a\u00a0", ".. ", ".git "], // ".. " is '..' on Windows
  ["has a part that ends with a dot", "a.", "a./b", "...", ".. .", ".git."],
  ["has a '.git' part", ".git", ".GIT", ".gIt/config", "a/.git/hooks/pre-commit"],
  ["has a '.git' part", "git~1", "GIT~1/config", "git~2"], // its short names on NTFS
  ["has a '.git' part", ".g\u0131t"], // dotless i: a capital I to any system that folds by upper case
  ...[
    ["CON", "con", "CON", "con.txt", "con.tar.gz", "con .txt"], // the space before the dot does not help
    ...["PRN a/prn/b", "AUX aux.c", "NUL nul", "COM0 com0", "COM1 Com1", "COM9 com9.log", "LPT0 lpt0", "LPT9 LPT9"]
      .concat("CONOUT$ CONOUT$.txt", "COM¹ com¹", "LPT² lpt².txt", "COM³ COM³") // Windows takes them for digits
      .map((row) => row.split(" ")),
    ["CONIN$", "conin$", "con\u0131n$"],
  ].map(([device, ...paths]) => [`has a part named like the Windows device ${device}`, ...paths]),
];

describe("one path", () => {
  const sized = accepted.map((path) => [Buffer.byteLength(path), path] as const);
  test.each(sized)("of %d bytes is accepted: %j", (_, path) => expect(pathProblem(path)).toBeUndefined());
  const problems = refused.map(([problem, ...paths]) => [problem, paths] as const);
  test.each(problems)("is refused if it %s: %j", (problem, paths) => {
    for (const path of paths) expect([path, pathProblem(path)]).toEqual([path, problem]);
  });

  test("of ten million characters is refused without being looked through", () => {
    expect(pathProblem("../".repeat(3_333_334))).toBe("is longer than 1024 bytes");
  });
});

describe("a set of paths", () => {
  const same = (a: string, b: string) => `'${a}' and '${b}' are the same file if case is ignored`;
  const both = (file: string, path: string) => `'${file}' would be both a file and a folder of '${path}'`;
  test.each<[paths: string[], problem: string | undefined]>([
    [[], undefined],
    [["a"], undefined],
    [["a", "b", "c/a", "c/b"], undefined],
    [["a", "ab", "a-b", "a.b", "a b"], undefined], // beginnings, but no folders
    [["a/b", "ab/b", "a-/b"], undefined],
    [["a", "b", "a"], "'a' is there twice"],
    [["a/B", "c", "a/b"], same("a/B", "a/b")],
    [["A/x", "a/y"], undefined], // one folder there, two here, and no file is lost in either
    [["straße", "STRASSE"], same("straße", "STRASSE")],
    [["ẞ", "ss"], same("ẞ", "ss")],
    [["ΟΔΟΣ", "οδος", "x"], same("ΟΔΟΣ", "οδος")], // final sigma
    [["οδοσ", "οδος"], same("οδοσ", "οδος")],
    [["ϴ", "θ"], same("ϴ", "θ")], // has no upper case of its own
    [["\u0390", "\u03aa\u0301"], same("\u0390", "\u03aa\u0301")], // ΐ, in one piece and in two
    [["a", "a/b"], both("a", "a/b")],
    [["a/b/c/d", "x", "a/b"], both("a/b", "a/b/c/d")],
    [["A", "a/b"], both("A", "a/b")],
    // Space, '!', '-' and '.' sort below '/', so these stand between "a" and "a/b".
    [["a", "a b", "a!", "a-b", "a.b", "a/b"], both("a", "a/b")],
  ])("%j: %p", (paths, problem) => expect(pathSetProblem(paths)).toBe(problem));

  test("of 1000 paths of the greatest length and depth is judged in well under a second", () => {
    const paths = Array.from({ length: 1000 }, (_, i) => `${"a/".repeat(509)}${i}`);
    expect(cpuMsOf(() => expect(pathSetProblem(paths)).toBeUndefined())).toBeLessThan(1000);
  });
});
