import { expect, test } from "bun:test";
import type { FileEntry } from "../../src/kinds/files/entry.ts";
import { exportFiles } from "../../src/kinds/files/export.ts";

const entryOf = (path: string): FileEntry => ({
  ...{ id: "1", path, name: "a", mode: "0600", contentType: "text/plain", size: 1, sha256: "00", updatedAt: 0 },
});
const exported = (...paths: readonly string[]) =>
  exportFiles(paths.map((path) => ({ entry: entryOf(path), value: null, isHidden: false })));

/* Nobody can store such a path. If one were sealed all the same, nothing of the set would be written. */

test.each([
  [["../a"], "has a '..' part"],
  [["a/../../b"], "has a '..' part"],
  [["/etc/passwd"], "is absolute"],
  [["a\\b"], "has the character"],
  [["a\u0000b"], "has the character"],
  [[".git/hooks/a"], "has a '.git' part"],
  [["a", "A"], "are the same file if case is ignored"],
  [["a", "a/b"], "would be both a file and a folder"],
])("files at %j leave Keyhole by no export", (paths, says) => expect(() => exported("fine", ...paths)).toThrow(says));

test("a file leaves below a folder of its own, so that it is never taken for a list", () => {
  const paths = ["files.json", "files/files.json", "files/variables.json"];
  expect(exported("files.json", "variables.json").map(({ path }) => path)).toEqual(paths);
});
