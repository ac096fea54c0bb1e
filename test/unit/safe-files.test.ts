import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import type { FetchedFile } from "../../src/client/answers.ts";
import { Root, type Walk } from "../../src/client/safe-files.ts";
import { openShared } from "../../src/client/shared-file.ts";
import { sha256Of } from "../../src/core/hash.ts";
import { Problem } from "../../src/core/problem.ts";
import { draftIn } from "../../src/core/whole-file.ts";
import { failing } from "../support/failing.ts";
import { newFolder } from "../support/folder.ts";

/** KEYHOLE_TEST_LONG=1 runs the numbers that the issue names. */
const swapRounds = process.env["KEYHOLE_TEST_LONG"] === "1" ? 100_000 : 1000;

let root = "";
let outside = "";
const roots: Root[] = [];
beforeEach(() => {
  const folder = newFolder();
  root = join(folder, "root");
  outside = join(folder, "outside");
  mkdirSync(root);
  mkdirSync(outside);
  writeFileSync(join(outside, "victim"), "as it was");
});
afterEach(() => {
  for (const one of roots.splice(0)) one[Symbol.dispose]();
});

const walks: Walk[] = process.platform === "linux" ? ["descriptor", "lstat"] : ["lstat"];

describe.each(walks)("by %s", (walk) => {
  const link = (target: string, path: string) => symlinkSync(target, join(root, path));
  const linkIn = (folder: string, target: string, path: string) => {
    mkdirSync(join(root, folder));
    link(target, path);
  };
  const open = (path = root) => {
    const opened = new Root(path, walk);
    roots.push(opened);
    return opened;
  };
  const place = (files: readonly Given[], report?: Report) => open().place(files.map(wanted), () => {}, report);

  test("files get exactly their modes, whatever the umask, and new folders only their owner may enter", async () => {
    const umask = process.umask(0o777);
    try {
      // Folders made under such a umask could not be entered by anybody but root.
      await place([given("a", "one"), given("b", "two", "0400")]);
    } finally {
      process.umask(umask);
    }
    await place([given("deep/er/c", "three", "0400"), given("deep/d", "")]);
    const deep = { "deep/": "700", "deep/d": "600 ", "deep/er/": "700", "deep/er/c": "400 three" };
    expect(tree(root)).toEqual({ a: "600 one", b: "400 two", ...deep });
  });

  test("an existing file is replaced, and a hard link to it keeps the old content", async () => {
    writeFileSync(join(root, "a"), "old");
    linkSync(join(root, "a"), join(outside, "other-name"));
    await place([["a", "new", "0600"]]);
    expect(tree(root)).toEqual({ a: "600 new" });
    expect(readFileSync(join(outside, "other-name"), "utf8")).toBe("old");
    expect(lstatSync(join(outside, "other-name")).nlink).toBe(1);
  });

  test("a file is compared by size, content and mode", async () => {
    await place([["a", "one", "0400"]]);
    const state = (given: Given) => open().compare(wanted(given)).state;
    expect(state(["a", "one", "0400"])).toBe("same");
    expect(state(["a", "two", "0400"])).toBe("other");
    expect(state(["a", "three", "0400"])).toBe("other");
    expect(open().compare(wanted(["a", "one", "0600"]))).toEqual({ state: "mode", content: Buffer.from("one") });
    expect(state(["b", "one", "0400"])).toBe("missing");
    expect(state(["folder/b", "one", "0400"])).toBe("missing");
    expect(tree(root)).toEqual({ a: "400 one" });
  });

  const obstacles: [what: string, make: () => unknown, path: string, says: RegExp][] = [
    ["a link to a folder", () => link(outside, "link"), "link/victim", /'link' is a symbolic link/],
    ["a link to a folder below", () => linkIn("real", "real", "link"), "link/file", /'link' is a symbolic link/],
    ["a link further down", () => linkIn("a", outside, "a/link"), "a/link/b/c", /'a\/link' is a symbolic link/],
    ["a link to a file", () => link(join(outside, "victim"), "link"), "link", /'link' is a symbolic link/],
    ["a link to nothing", () => link(join(outside, "new"), "link"), "link", /'link' is a symbolic link/],
    ["a link to nothing on the path", () => link(join(outside, "new"), "link"), "link/a", /'link' is a symbolic link/],
    ["a folder in the file's place", () => mkdirSync(join(root, "a")), "a", /'a' exists and is not a file/],
    ["a file in the folder's place", () => writeFileSync(join(root, "a"), ""), "a/b", /'a' is not a folder/],
    ["a pipe", () => Bun.spawnSync(["mkfifo", join(root, "a")]), "a", /'a' exists and is not a file/],
  ];
  test.each(obstacles)("%s is refused, and nothing is written anywhere", async (_, make, path, says) => {
    make();
    const before = [tree(root), tree(outside)];
    const problem = await failing(place([given("fresh/first", "1"), given(path, "secret"), given("zlast", "2")]));
    expect(problem).toMatchObject({ code: "obstructed", exitCode: 1 });
    expect(problem.message).toMatch(says);
    expect([tree(root), tree(outside)]).toEqual(before);
    expect(() => open().compare(wanted([path, "secret", "0600"]))).toThrow(says);
  });

  test("a root that is a link, a file or missing is refused", () => {
    symlinkSync(root, join(outside, "link"));
    expect(() => open(join(outside, "link"))).toThrow(/is a symbolic link/);
    expect(() => open(join(outside, "victim"))).toThrow(/is not a folder/);
    expect(() => open(join(outside, "none"))).toThrow(/There is no folder/);
  });

  test("an obstacle that appears after the first rename puts everything back", async () => {
    writeFileSync(join(root, "a"), "old a");
    chmodSync(join(root, "a"), 0o640);
    const { ino } = statSync(join(root, "a"));
    const report = (done: number, total: number) => {
      if (done === total) mkdirSync(join(root, "c"));
    };
    const files = ["a", "b", "c", "d/e"].map((path) => given(path, `new ${path.at(-1)}`));
    expect(await failing(place(files, report))).toMatchObject({ code: "obstructed" });
    expect(tree(root)).toEqual({ a: "640 old a", "c/": "755" });
    expect(statSync(join(root, "a")).ino).toBe(ino);
  });

  test("a folder that is moved meanwhile gets no file, nor does its replacement", async () => {
    mkdirSync(join(root, "a"));
    const report = (done: number, total: number) => {
      if (done < total) return;
      renameSync(join(root, "a"), join(root, "moved"));
      symlinkSync(outside, join(root, "a"));
    };
    expect(await failing(place([["a/victim", "secret", "0600"]], report))).toMatchObject({ code: "obstructed" });
    rmSync(join(root, "a"));
    // Known only by name, the temporary file in the moved folder could not be removed.
    const left = Object.keys(tree(root)).filter((path) => walk === "descriptor" || !path.endsWith(".part"));
    expect(left).toEqual(["moved/"]);
    expect(tree(outside)).toEqual({ victim: "644 as it was" });
  });

  test("a sweep removes what a killed process left a day ago, and no other file", () => {
    const draft = () => basename(draftIn(root, "files"));
    const old = () => draft().replace(/files-[0-9a-f]{12}/, `files-${"0".repeat(12)}`);
    const [left, deep] = [old(), `deep/${old()}`];
    mkdirSync(join(root, "deep"));
    mkdirSync(join(root, "elsewhere"));
    for (const path of [left, deep]) writeFileSync(join(root, path), "secret");
    for (const path of [draft(), old().replace("files", "backup"), `x${left}`, `elsewhere/${left}`]) {
      writeFileSync(join(root, path), "another's");
    }
    mkdirSync(join(root, old()));
    link(join(outside, "victim"), `deep/${draft()}`);
    const before = Object.keys(tree(root));
    open().sweep(["a", "deep/b", "missing/c"]);
    const after = Object.keys(tree(root));
    expect(before.filter((path) => !after.includes(path)).sort()).toEqual([left, deep].sort());
    expect(tree(outside)).toEqual({ victim: "644 as it was" });
  });

  test("a sweep leaves the temporary files of a pull that runs now", async () => {
    writeFileSync(join(root, "a"), "old");
    const other = open();
    const drafts = () => Object.keys(tree(root)).filter((path) => path.endsWith(".part"));
    const report = (done: number) => {
      const before = drafts();
      expect(before).toHaveLength(done);
      other.sweep(["a", "deep/b"]);
      expect(drafts()).toEqual(before);
    };
    await place([given("a", "new"), given("deep/b", "new")], report);
    expect(tree(root)).toEqual({ a: "600 new", "deep/": "700", "deep/b": "600 new" });
  });

  test("an interruption leaves everything unchanged", async () => {
    writeFileSync(join(root, "a"), "old");
    let calls = 0;
    const report = () => {
      if (++calls === 2) throw new Error("interrupted");
    };
    const files = ["a", "folder/b", "c"].map((path) => given(path, "new"));
    await expect(place(files, report)).rejects.toThrow("interrupted");
    expect(tree(root)).toEqual({ a: "644 old" });
  });

  test.skipIf(process.platform !== "linux")("a folder that takes no files is reported", async () => {
    const opened = open(`/proc/${process.pid}/task`); // not even root can make a file there
    const problem = await failing(opened.place([wanted(["a", "x", "0600"])], () => {}));
    expect(problem).toMatchObject({ code: "unwritable", exitCode: 1 });
    expect(problem.message).toMatch(/^'a' cannot be written: /);
  });
});

test.skipIf(process.platform !== "linux")(
  "a folder that is swapped for a link all the time never leads a file outside",
  async () => {
    const folder = join(root, "swapped");
    mkdirSync(folder);
    const swapper = Bun.spawn([process.execPath, join(import.meta.dir, "../support/swapper.ts"), folder, outside], {
      stdout: "pipe",
      stderr: "inherit",
    });
    const ended = { placed: 0, refused: 0 };
    const tried = () => Math.min(ended.placed, ended.refused) > 0;
    try {
      await swapper.stdout.getReader().read();
      // Until both happened: on one core the swapper may wait a long time for its turn.
      for (let round = 0; round < swapRounds || !tried(); round++) {
        const content = `round ${round}`;
        try {
          const opened = new Root(root);
          await opened
            .place([wanted(["swapped/victim", content, "0600"])], () => {})
            .finally(() => opened[Symbol.dispose]());
          ended.placed += 1;
        } catch (error) {
          if (!(error instanceof Problem)) throw error;
          ended.refused += 1;
        }
        expect(readdirSync(outside)).toEqual(["victim"]);
      }
    } finally {
      swapper.kill("SIGKILL");
      await swapper.exited;
    }
    expect(tree(outside)).toEqual({ victim: "644 as it was" });
  },
  swapRounds > 1000 ? 600_000 : 60_000,
);

describe("text that is appended", () => {
  const append = (path: string, text: string) => {
    const appending = openShared(path);
    appending.append(text);
    appending[Symbol.dispose]();
  };

  test("starts on a new line and keeps what was there", () => {
    const path = join(root, "github-env");
    append(path, "A=1\n");
    append(path, "B=2\n");
    writeFileSync(path, "unfinished", { flag: "a" });
    append(path, "C=3\n");
    expect(readFileSync(path, "utf8")).toBe("A=1\nB=2\nunfinished\nC=3\n");
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test("is refused if the file cannot be opened", () => {
    expect(() => openShared(join(root, "none/file"))).toThrow(Problem);
    expect(() => openShared(root)).toThrow(Problem);
  });
});

type Report = (done: number, total: number) => void;
type Given = readonly [path: string, content: string, mode: "0600" | "0400"];
const given = (...[path, content, mode = "0600"]: [string, string, Given[2]?]): Given => [path, content, mode];

function wanted([path, text, mode]: Given): FetchedFile {
  const content = Buffer.from(text);
  return { path, mode, size: content.length, sha256: sha256Of(content), content };
}

/** Everything below a folder: folders with their mode, files with mode and text. */
function tree(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const path of (readdirSync(folder, { recursive: true }) as string[]).sort()) {
    const stat = lstatSync(join(folder, path));
    const mode = (stat.mode & 0o7777).toString(8);
    if (stat.isDirectory()) found[`${path}/`] = mode;
    else found[path] = stat.isFile() ? `${mode} ${readFileSync(join(folder, path), "utf8")}` : "no file";
  }
  return found;
}
