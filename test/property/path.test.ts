import { describe, expect, test } from "bun:test";
import { posix, win32 } from "node:path";
import fc from "fast-check";
import { pathProblem, pathSetProblem } from "../../src/core/words/path.ts";

/** Parts that are mostly valid, and others made from what makes them invalid. */
const anyPart = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: fc.constantFrom(..."abcAB019-_.$~é"), minLength: 1, maxLength: 8 }) },
  {
    weight: 2,
    arbitrary: fc
      .array(fc.constantFrom(..."\\.. a¹ßIı\u200b\u202e", "..", "C:", "con", "nul", "com1", ".git", "~1"), {
        minLength: 1,
        maxLength: 4,
      })
      .map((pieces) => pieces.join("")),
  },
  { weight: 2, arbitrary: fc.string({ unit: "grapheme", maxLength: 6 }) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 6 }) },
);
const anyPath = fc.oneof(
  { weight: 4, arbitrary: fc.array(anyPart, { minLength: 1, maxLength: 5 }).map((parts) => parts.join("/")) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 30 }) },
  { weight: 1, arbitrary: fc.string({ maxLength: 30 }) },
);
const acceptedPath = anyPath.filter((path) => pathProblem(path) === undefined);

test("an accepted path stays inside the root on POSIX and on Windows, and keeps its parts", () => {
  let accepted = 0;
  fc.assert(
    fc.property(anyPath, (path) => {
      if (pathProblem(path) !== undefined) return;
      accepted++;
      const parts = path.split("/");
      expect(posix.resolve("/srv/app", path)).toBe(["/srv/app", ...parts].join("/"));
      expect(win32.resolve("C:\\srv\\app", path)).toBe(["C:\\srv\\app", ...parts].join("\\"));
      expect(posix.relative("/srv/app", posix.join("/srv/app", path))).toBe(path);
      expect(win32.relative("C:\\srv\\app", win32.join("C:\\srv\\app", path))).toBe(parts.join("\\"));
      expect(win32.parse(path).root).toBe("");
    }),
    { numRuns: 5000 },
  );
  expect(accepted).toBeGreaterThan(500); // otherwise the test proves nothing
});

test("a problem is described in printable text, whatever the path, and the check never throws", () => {
  fc.assert(
    fc.property(
      fc.oneof(anyPath, fc.string({ unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)) })),
      (path) => {
        const problem = pathProblem(path);
        if (problem !== undefined) expect(problem).toMatch(/^(?:is|has) [ -~¹²³]+$/);
      },
    ),
    { numRuns: 2000 },
  );
});

describe("a set of paths", () => {
  const anyTree = fc.array(
    fc
      .array(fc.constantFrom("a", "A", "b", "ß", "SS", "a b", "a-", "c.d"), { minLength: 1, maxLength: 3 })
      .map((parts) => parts.join("/")),
    { maxLength: 8 },
  );
  const fold = (text: string) => text.toUpperCase(); // enough for the letters above
  const clash = (a: string, b: string) => a === b || a.startsWith(`${b}/`) || b.startsWith(`${a}/`);

  test("has a problem exactly if two of its paths clash, and names two that do", () => {
    let clean = 0;
    fc.assert(
      fc.property(anyTree, (paths) => {
        const clashing = paths.some((a, i) => paths.some((b, j) => i < j && clash(fold(a), fold(b))));
        const problem = pathSetProblem(paths);
        expect(problem !== undefined).toBe(clashing);
        if (problem === undefined) return void clean++;
        const named = [...problem.matchAll(/'([^']+)'/g)].map((match) => match[1] as string);
        expect(paths).toEqual(expect.arrayContaining(named));
        expect(clash(fold(named[0] as string), fold(named.at(-1) as string))).toBe(true);
      }),
      { numRuns: 2000 },
    );
    expect(clean).toBeGreaterThan(100);
  });

  test("may not have paths that differ only in case", () => {
    fc.assert(
      fc.property(acceptedPath, (path) => {
        for (const other of [path.toUpperCase(), path.toLowerCase()]) {
          expect(pathSetProblem([path, other.normalize("NFC")])).toBeString();
        }
      }),
    );
  });
});
