import { describe, expect, test } from "bun:test";
import { pathProblem, pathSetProblem } from "../../src/words/path.ts";
import { cpuMsOf } from "../support/cpu.ts";

const accepted: readonly string[] = [
  ...["a", ".env", ".env.local", "config/tls/server.key"],
  "..a", // two dots are a part only alone
  "a..b",
  "...a",
  "-rf", // no business of a path: it is never given to a shell
  "~",
  "$HOME",
  "%2e%2e", // nothing is decoded
  "a b/c d",
  "a\u00a0b", // a space inside is no harm, whatever its width: screenshots of macOS hold U+202F
  ...["a\u202fb", "naïve.txt", "日本語/ファイル.pem", "🔑.pem", ".gitignore", ".github/workflows/ci.yml", "git"],
  "a.git", // a bare repository's usual name
  "git~",
  "git~a",
  "cones", // begins like a device
  "con-1",
  "a.con", // an extension is no device
  "com", // needs its digit
  "com10",
  "lpt",
  "com\u2074", // superscript four names nothing
  "conin",
  "x".repeat(255),
  "é".repeat(127), // 254 bytes
  `${`${"x".repeat(127)}/`.repeat(7)}${"x".repeat(128)}`, // 1024 bytes
];

const refused: readonly [path: string, problem: string][] = [
  ["", "is empty"],
  ["x".repeat(1025), "is longer than 1024 bytes"],
  [`${`${"x".repeat(127)}/`.repeat(7)}${"x".repeat(129)}`, "is longer than 1024 bytes"],
  [`${"é".repeat(100)}/`.repeat(6), "is longer than 1024 bytes"], // 606 characters
  ["x".repeat(256), "has a part longer than 255 bytes"],
  [`a/${"é".repeat(128)}/b`, "has a part longer than 255 bytes"], // 128 characters, 256 bytes
  ["a\ud800", "is not well-formed Unicode"], // half of a pair: UTF-8 has no such thing

  ["/", "is absolute, not relative"],
  ["/etc/passwd", "is absolute, not relative"],
  ["//server/share", "is absolute, not relative"],
  [".", "has a '.' part"],
  ["./a", "has a '.' part"],
  ["a/./b", "has a '.' part"],
  ["..", "has a '..' part"],
  ["../a", "has a '..' part"],
  ["a/../b", "has a '..' part"],
  ["a/..", "has a '..' part"],
  ["a//b", "has an empty part"],
  ["a/", "has an empty part"],

  ["a\\b", "has the character '\\'"], // a separator on Windows
  ["..\\a", "has the character '\\'"],
  ["C:\\a", "has the character ':'"],
  ["C:a", "has the character ':'"], // relative to the folder that drive is in
  ["a:stream", "has the character ':'"],
  [".git::$INDEX_ALLOCATION", "has the character ':'"], // .git itself, to NTFS
  ["a*", "has the character '*'"],
  ["a?", "has the character '?'"],
  ['a"', "has the character '\"'"],
  ["a<b", "has the character '<'"],
  ["a>b", "has the character '>'"],
  ["a|b", "has the character '|'"],

  ["a\u0000b", "has the character U+0000"],
  ["a\nb", "has the character U+000A"],
  ["a\u001b[2J", "has the character U+001B"], // clears a terminal that lists it
  ["a\u007f", "has the character U+007F"],
  ["a\u0085", "has the character U+0085"], // next line, of C1
  ["a\u009b", "has the character U+009B"], // the control sequence introducer of C1
  ["a\u200e", "has the character U+200E"],
  ["a\u061c", "has the character U+061C"],
  ["a\u202etxt.exe", "has the character U+202E"], // shows as aexe.txt
  ["a\u2067b", "has the character U+2067"],
  ["a\u200bb", "has the character U+200B"],
  ["a\u200d", "has the character U+200D"],
  ["a\u2060", "has the character U+2060"],
  ["\ufeffa", "has the character U+FEFF"],
  ["a\u00adb", "has the character U+00AD"], // the soft hyphen shows only at a line's end
  ["a\ufff9b", "has the character U+FFF9"], // a format character that is not invisible by default
  ["a\u034fb", "has the character U+034F"], // combining grapheme joiner: not a format character, yet invisible
  ["a\u3164", "has the character U+3164"], // Hangul filler: a letter, and blank
  ["a\ufe0f", "has the character U+FE0F"], // variation selector
  ["a\u180b", "has the character U+180B"],
  ["a\u{e0041}", "has the character U+E0041"], // a tag
  ["a\u2028b", "has the character U+2028"],
  ["a\u2029b", "has the character U+2029"],
  ["a\uf03ab", "has the character U+F03A"], // private use: Cygwin and WSL read it as ':'
  ["a\uffff", "has the character U+FFFF"], // a noncharacter, unassigned for ever

  ["cafe\u0301", "is not in Unicode normal form C"],
  ["\u212a", "is not in Unicode normal form C"], // the Kelvin sign is a K
  ["a/e\u0301/b", "is not in Unicode normal form C"],

  [" a", "has a part that begins with a space"],
  ["a/ b", "has a part that begins with a space"],
  ["\u3000a", "has a part that begins with a space"],
  ["a ", "has a part that ends with a space"],
  ["a /b", "has a part that ends with a space"],
  ["a\u00a0", "has a part that ends with a space"],
  [" ", "has a part that begins with a space"],
  ["a.", "has a part that ends with a dot"],
  ["a./b", "has a part that ends with a dot"],
  ["...", "has a part that ends with a dot"],
  [".. ", "has a part that ends with a space"], // '..' on Windows
  [".. .", "has a part that ends with a dot"],

  [".git", "has a '.git' part"],
  [".GIT", "has a '.git' part"],
  [".gIt/config", "has a '.git' part"],
  ["a/.git/hooks/pre-commit", "has a '.git' part"],
  ["git~1", "has a '.git' part"], // its short name on NTFS
  ["GIT~1/config", "has a '.git' part"],
  ["git~2", "has a '.git' part"], // where GIT~1 was taken
  [".g\u0131t", "has a '.git' part"], // dotless i: a capital I to any system that folds by upper case
  [".git.", "has a part that ends with a dot"],
  [".git ", "has a part that ends with a space"],
  [".g\u200cit", "has the character U+200C"], // .git to HFS+, which skips such characters
  [".git\u200d", "has the character U+200D"],
  [".gi\u206et", "has the character U+206E"],

  ["con", "has a part named like the Windows device CON"],
  ["CON", "has a part named like the Windows device CON"],
  ["con.txt", "has a part named like the Windows device CON"],
  ["con.tar.gz", "has a part named like the Windows device CON"],
  ["con .txt", "has a part named like the Windows device CON"], // the space before the dot does not help
  ["a/prn/b", "has a part named like the Windows device PRN"],
  ["aux.c", "has a part named like the Windows device AUX"],
  ["nul", "has a part named like the Windows device NUL"],
  ["com0", "has a part named like the Windows device COM0"],
  ["Com1", "has a part named like the Windows device COM1"],
  ["com9.log", "has a part named like the Windows device COM9"],
  ["lpt0", "has a part named like the Windows device LPT0"],
  ["LPT9", "has a part named like the Windows device LPT9"],
  ["com¹", "has a part named like the Windows device COM¹"], // Windows takes them for digits
  ["lpt².txt", "has a part named like the Windows device LPT²"],
  ["COM³", "has a part named like the Windows device COM³"],
  ["conin$", "has a part named like the Windows device CONIN$"],
  ["CONOUT$.txt", "has a part named like the Windows device CONOUT$"],
  ["con\u0131n$", "has a part named like the Windows device CONIN$"],
];

describe("one path", () => {
  for (const path of accepted) {
    test(`is accepted: ${JSON.stringify(path.slice(0, 40))}, ${Buffer.byteLength(path)} bytes`, () => {
      expect(pathProblem(path)).toBeUndefined();
    });
  }
  for (const [path, problem] of refused) {
    test(`is refused: ${JSON.stringify(path.slice(0, 40))}, which ${problem}`, () => {
      expect(pathProblem(path)).toBe(problem);
    });
  }

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
