import { beforeEach, describe, expect, test } from "bun:test";
import { lstatSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { Problem } from "../../src/core/problem.ts";
import { writeWhole as writeAny, writeNew, writeWholeFolder, writeWholeSync } from "../../src/core/whole-file.ts";
import { newFolder } from "../support/folder.ts";

type Given = Parameters<typeof writeAny>;
const writeWhole = (...[kind, path, force, fill]: [Given[0], Given[1], Given[2], Given[3]]) =>
  writeAny(kind, path, force, fill, () => {});

let folder = "";
beforeEach(() => {
  folder = newFolder();
});

const content = Buffer.from("A=b\n");
const ways: { way: string; write: (path: string, force: boolean) => Promise<void> }[] = [
  { way: "from memory", write: async (path, force) => writeWholeSync("backup", path, force, content) },
  {
    way: "by a writer",
    write: (path, force) => writeWhole("backup", path, force, async (draft) => writeFileSync(draft, content)),
  },
];

describe.each(ways)("a file written whole $way", ({ write }) => {
  test("has mode 0600 whatever the umask, and nothing else is left in the folder", async () => {
    const umask = process.umask(0o777);
    await write(join(folder, "out"), false).finally(() => process.umask(umask));
    expect(statSync(join(folder, "out")).mode & 0o7777).toBe(0o600);
    expect(readFileSync(join(folder, "out"))).toEqual(content);
    expect(readdirSync(folder)).toEqual(["out"]);
  });

  test("replaces a file only by force", async () => {
    const path = join(folder, "out");
    writeFileSync(path, "old", { mode: 0o644 });
    await expect(write(path, false)).rejects.toMatchObject({ code: "exists", exitCode: 1 });
    expect(readFileSync(path, "utf8")).toBe("old");
    await write(path, true);
    expect(readFileSync(path)).toEqual(content);
    expect(statSync(path).mode & 0o7777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(["out"]);
  });

  test.each(["/dev/null", "/dev/full", "/dev/stdout"])("is not %s", async (path) => {
    const before = lstatSync(path).ino;
    await expect(write(path, true)).rejects.toMatchObject({ code: "obstructed" });
    expect(lstatSync(path).ino).toBe(before);
  });

  test("is not a link or a folder, nor in a folder that does not exist, and nothing is left behind", async () => {
    writeFileSync(join(folder, "victim"), "as it was");
    symlinkSync("victim", join(folder, "link"));
    mkdirSync(join(folder, "folder"));
    for (const force of [true, false]) {
      for (const name of ["link", "folder", "none/out"]) {
        await expect(write(join(folder, name), force)).rejects.toBeInstanceOf(Problem);
      }
    }
    expect(readdirSync(folder).sort()).toEqual(["folder", "link", "victim"]);
    expect(readFileSync(join(folder, "victim"), "utf8")).toBe("as it was");
  });
});

test("a writer that fails leaves no draft, and its error is the one that is reported", async () => {
  const path = join(folder, "out");
  const failing = writeWhole("backup", path, false, async (draft) => {
    writeFileSync(draft, content);
    throw new RangeError("halfway");
  });
  await expect(failing).rejects.toThrow(RangeError);
  expect(readdirSync(folder)).toEqual([]);
});

test.each([
  ["EBUSY", "it is a mount point, which cannot be replaced: mount its folder, not the file."],
  ["EPERM", "it or its folder may be immutable (see lsattr), or belong to another user in a folder such as /tmp."],
  ["ETXTBSY", "it is a program that is running."],
  ["EXDEV", "it is on another file system than its folder: mount the folder, not the file."],
])("what the system calls %s is said in words", async (code, words) => {
  const error = Object.assign(new Error(code), { syscall: "rename", code });
  const writing = writeWhole("pull", join(folder, "out"), false, () => Promise.reject(error));
  await expect(writing).rejects.toThrow(`'${join(folder, "out")}' cannot be written: ${words}`);
});

test("of two writers without force, one wins and the other is told", async () => {
  const path = join(folder, "out");
  const late = writeWhole("backup", path, false, async () => writeWholeSync("backup", path, false, content));
  await expect(late).rejects.toMatchObject({ code: "exists" });
  expect(readFileSync(path)).toEqual(content);
  expect(readdirSync(folder)).toEqual(["out"]);
});

test("a draft is removed by the next writer of its kind once it is a day old", async () => {
  let mine = "";
  await writeWhole("backup", join(folder, "out"), false, async (draft) => {
    mine = basename(draft);
  });
  const old = (hours: number, kind = "backup") =>
    mine.replace(/backup-[0-9a-f]{12}/, `${kind}-${(Date.now() - hours * 3_600_000).toString(16).padStart(12, "0")}`);
  const kept = [old(23), old(25, "export"), `${old(25)}.bak`, ".keyhole-notes.part"];
  for (const name of [old(25), `${old(25)}-journal`, ...kept]) writeFileSync(join(folder, name), "");
  await writeWhole("backup", join(folder, "later"), false, async () => {
    // The same kind beside a draft that is under way.
    writeWholeSync("backup", join(folder, "meanwhile"), false, content);
  });
  expect(readdirSync(folder).sort()).toEqual([...kept, "later", "meanwhile", "out"].sort());
});

test("a new file never opens what is there", () => {
  writeFileSync(join(folder, "victim"), "as it was");
  symlinkSync("victim", join(folder, "link"));
  symlinkSync("nowhere", join(folder, "dangling"));
  for (const name of ["victim", "link", "dangling"]) {
    expect(() => writeNew(join(folder, name), content, 0o600)).toThrow("EEXIST");
  }
  expect(readFileSync(join(folder, "victim"), "utf8")).toBe("as it was");
  expect(readdirSync(folder).sort()).toEqual(["dangling", "link", "victim"]);
});

describe("a folder written whole", () => {
  const fill = async (draft: string) => writeFileSync(join(draft, "a"), content);

  test("has mode 0700, takes the place of an empty folder, and leaves nothing else", async () => {
    const path = join(folder, "out");
    mkdirSync(path, { mode: 0o755 });
    await writeWholeFolder(`${path}/`, fill);
    expect(statSync(path).mode & 0o7777).toBe(0o700);
    expect(readFileSync(join(path, "a"))).toEqual(content);
    expect(readdirSync(folder)).toEqual(["out"]);
  });

  test("leaves nothing if it cannot be filled, and an empty folder stays", async () => {
    const path = join(folder, "out");
    const failing = async (draft: string) => {
      await fill(draft);
      expect(statSync(draft).mode & 0o7777).toBe(0o700);
      throw new Error("no more");
    };
    await expect(writeWholeFolder(path, failing)).rejects.toThrow("no more");
    expect(readdirSync(folder)).toEqual([]);
    mkdirSync(path);
    await expect(writeWholeFolder(path, failing)).rejects.toThrow("no more");
    expect(readdirSync(folder)).toEqual(["out"]);
    expect(readdirSync(path)).toEqual([]);
  });

  const taken: [what: string, take: (path: string) => void][] = [
    ["a file", (path) => writeFileSync(path, "mine")],
    ["a folder that is not empty", (path) => mkdirSync(join(path, "mine"), { recursive: true })],
    ["a link to an empty folder", (path) => symlinkSync(newFolder(), path)],
  ];
  test.each(taken)("takes the place of nothing else: %s, there before or put there meanwhile", async (_, take) => {
    const [before, meanwhile] = [join(folder, "before"), join(folder, "meanwhile")];
    take(before);
    let isFilled = false;
    const late = async (draft: string) => {
      isFilled = true;
      await fill(draft);
    };
    await expect(writeWholeFolder(before, late)).rejects.toBeInstanceOf(Problem);
    expect(isFilled).toBe(false);
    const racing = async (draft: string) => {
      await fill(draft);
      take(meanwhile);
    };
    await expect(writeWholeFolder(meanwhile, racing)).rejects.toBeInstanceOf(Problem);
    expect(lstatSync(meanwhile).mode).toBe(lstatSync(before).mode);
    expect(readdirSync(folder).sort()).toEqual(["before", "meanwhile"]);
  });
});
