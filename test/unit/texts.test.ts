import { describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { gitObjectsOf, type Text, textsAt, textsInGit, textsOf } from "../../src/people/leaks/texts.ts";
import { newFolder } from "../support/folder.ts";

/* What `keyhole leaked` looks at: all of a text is there, or it is named with the reason. */

/** What each text holds, or why it was not read, by its name. A text that ends with a failure has its code. */
async function read(texts: AsyncIterable<Text>): Promise<Record<string, string>> {
  const all: Record<string, string> = {};
  for await (const text of texts) {
    all[text.name] = "unread" in text ? `not read: ${text.unread}` : await contentOf(text.chunks);
  }
  return all;
}

async function contentOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  try {
    for await (const chunk of chunks) parts.push(chunk);
  } catch (error) {
    parts.push(Buffer.from(`! ${(error as NodeJS.ErrnoException).code}`));
  }
  return Buffer.concat(parts).toString();
}

/** As one chunk, and in many. */
async function readBytes(bytes: Uint8Array, unpacks = true): Promise<Record<string, string>> {
  const [whole, cut] = await Promise.all(
    [
      [bytes],
      Array.from({ length: Math.ceil(bytes.length / 97) }, (_, at) => bytes.subarray(at * 97, at * 97 + 97)),
    ].map((chunks) =>
      read(
        textsOf(
          "t",
          async function* () {
            yield* chunks;
          },
          unpacks,
        ),
      ),
    ),
  );
  expect(cut as object).toEqual(whole as object);
  return whole as Record<string, string>;
}

/** A tar with one file, as programs of before POSIX wrote it. */
function oldTar(name: string, content: Uint8Array): Buffer {
  const header = Buffer.alloc(512);
  header.write(name, 0);
  for (const [at, field] of Object.entries({ 100: "0000644", 108: "0000000", 116: "0000000", 136: "00000000000" }))
    header.write(field, Number(at));
  header.write(content.length.toString(8).padStart(11, "0"), 124);
  header.fill(" ", 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return Buffer.concat([header, content, Buffer.alloc((512 - (content.length % 512)) % 512), Buffer.alloc(1024)]);
}

describe("a text that is packed is read, or named with its format", () => {
  const starts: readonly (readonly [format: string, magic: string])[] = [
    ["zip", "504b0304"],
    ["xz", "fd377a585a00"],
    ["zstd", "28b52ffd"],
    ["zstd", "502a4d18"],
    ["bzip2", "425a6839"],
    ["lzma", "5d00008000"],
    ["lz4", "04224d18"],
    ["compress (.Z)", "1f9d90"],
    ["rar", "526172211a0700"],
    ["a pack of git", "5041434b00000002"],
    ["zlib", "789c"],
  ];
  test.each(starts)("%s, which begins with %s", async (format, magic) => {
    const bytes = Buffer.concat([Buffer.from(magic, "hex"), Buffer.from("rest")]);
    const unread = `not read: ${format} is not unpacked`;
    expect(await readBytes(bytes)).toEqual({ t: unread });
    expect(await readBytes(bytes, false)).toEqual({ t: unread });
    expect(Object.values(await readBytes(gzipSync(bytes)))).toEqual([unread]);
    expect((await readBytes(oldTar("f", bytes), false))["t:f"]).toBe(unread);
  });

  test("gzip, also over SSH, where nothing is unpacked", async () => {
    const bytes = gzipSync("text");
    expect(await readBytes(bytes)).toEqual({ t: "text" });
    expect(await readBytes(bytes, false)).toEqual({ t: "not read: gzip is not unpacked over SSH" });
  });

  test("a tar of before POSIX, and gzip in it", async () => {
    expect((await readBytes(oldTar("a/f", Buffer.from("text"))))["t:a/f"]).toBe("text");
    expect((await readBytes(oldTar("f.gz", gzipSync("text"))))["t:f.gz"]).toBe("text");
    expect((await readBytes(oldTar("f.gz", gzipSync("text")), false))["t:f.gz"]).toContain("gzip is not unpacked");
  });

  test("a text of numbers is no tar", async () => {
    const text = "0000644 ".repeat(100);
    expect(await readBytes(Buffer.from(text))).toEqual({ t: text });
  });

  test("what follows gzip behind zeros is named, and zeros alone are nothing", async () => {
    const [bytes, zeros] = [gzipSync("text"), Buffer.alloc(700)];
    const named = "text! GZIP_REST";
    const of = async (...parts: Uint8Array[]) => (await readBytes(Buffer.concat(parts)))["t"];
    expect(await of(bytes)).toBe("text");
    expect(await of(bytes, zeros)).toBe("text");
    expect(await of(bytes, gzipSync(" and more"))).toBe("text and more");
    expect(await of(bytes, zeros, Buffer.from("secret"))).toBe(named);
    expect(await of(bytes, zeros, bytes, zeros)).toBe(named);
    expect(await of(bytes, Buffer.alloc(300_000), Buffer.from("secret"))).toBe(named);
  });
});

test("a folder or a file whose name is not UTF-8 is named with that reason", async () => {
  const folder = newFolder();
  spawnSync(
    "sh",
    ["-c", `mkdir "$(printf 'd\\377')" && echo secret > "$(printf 'd\\377')/f"; echo secret > "$(printf '\\351')"`],
    {
      cwd: folder,
    },
  );
  const reasons = Object.values(await read(textsAt(folder)));
  expect(reasons).toEqual(["not read: its name is not UTF-8", "not read: its name is not UTF-8"]);
});

describe("a git repository", () => {
  const env = {
    PATH: process.env["PATH"],
    GIT_CONFIG_GLOBAL: "/dev/null",
    ...Object.fromEntries(
      ["AUTHOR", "COMMITTER"].flatMap((who) => [
        [`GIT_${who}_NAME`, "a"],
        [`GIT_${who}_EMAIL`, "a@b"],
      ]),
    ),
  };
  const git = (folder: string, ...words: string[]) => {
    const ran = spawnSync("git", ["-C", folder, ...words], { env, encoding: "utf8" });
    if (ran.status !== 0) throw new Error(ran.stderr);
    return ran.stdout.trim();
  };
  const made = newFolder();
  const origin = join(made, "origin");
  mkdirSync(origin);
  git(origin, "init", "--quiet");
  for (const text of ["old", "new"]) {
    writeFileSync(join(origin, "f"), text);
    git(origin, "add", "f");
    git(origin, "commit", "--quiet", "--message", text);
  }
  git(origin, "config", "uploadpack.allowFilter", "true");
  let clones = 0;
  const clone = (...words: string[]) => {
    const folder = join(made, `clone-${clones++}`);
    git(origin, "clone", "--quiet", ...words, `file://${origin}`, folder);
    return folder;
  };
  const unreadIn = async (folder: string) =>
    Object.values(await read(textsInGit(folder))).filter((text) => text.startsWith("not read"));

  test("is read as a whole", async () => {
    for (const folder of [origin, clone(), clone("--bare")]) {
      const texts = Object.values(await read(textsInGit(folder)));
      expect(texts).toEqual(expect.arrayContaining(["old", "new"]));
      expect(texts.filter((text) => text.startsWith("not read"))).toEqual([]);
    }
  });

  test.each([[["--depth=1"]], [["--depth=1", "--bare"]]])(
    "is named as cut off if it is a clone with %s",
    async (words) => {
      expect(await unreadIn(clone(...words))).toEqual([expect.stringContaining("fetch-depth: 0")]);
    },
  );

  test.each([[["--filter=blob:none"]], [["--filter=blob:none", "--bare"]], [["--filter=tree:0", "--bare"]]])(
    "is named as not whole if it is a clone with %s, and nothing is fetched",
    async (words) => {
      const folder = clone(...words);
      const held = git(folder, "count-objects", "--verbose");
      expect(await unreadIn(folder)).toEqual([expect.stringMatching(/^not read: \d of its objects are missing/)]);
      expect(git(folder, "count-objects", "--verbose")).toBe(held);
    },
  );

  test("is named if an object is damaged, a commit is gone, or all of it belongs to somebody else", async () => {
    const objectOf = (folder: string, name: string) => {
      const id = git(folder, "rev-parse", name);
      return join(folder, ".git", "objects", id.slice(0, 2), id.slice(2));
    };
    const copy = (name: string) => {
      spawnSync("cp", ["-r", origin, join(made, name)]);
      return join(made, name);
    };
    const damaged = copy("damaged");
    rmSync(objectOf(damaged, "HEAD~1:f"));
    writeFileSync(objectOf(damaged, "HEAD~1:f"), "no object");
    expect(await unreadIn(damaged)).toEqual([expect.stringContaining("1 of its objects are missing or damaged")]);
    const gone = copy("gone");
    rmSync(objectOf(gone, "HEAD~1"));
    expect(await unreadIn(gone)).toEqual([expect.stringContaining("git cannot read it: ")]);
    if (process.geteuid?.() === 0) {
      const foreign = copy("foreign");
      spawnSync("chown", ["-R", "65534", foreign]);
      const why = `not read: git cannot read it: detected dubious ownership in repository at '${foreign}'. If you trust it: git config --global --add safe.directory ${foreign}`;
      expect(await unreadIn(foreign)).toEqual([why]);
    }
    expect(await unreadIn(made)).toEqual(["not read: there is no git repository"]);
  });

  test("in a folder is named, unless --git reads the same one", async () => {
    const objects = join(origin, ".git", "objects");
    const all = await read(textsAt(origin));
    expect(all[join(origin, "f")]).toBe("new");
    expect(all[objects]).toBe("not read: git packs them: --git reads them");
    expect((await read(textsAt(origin, await gitObjectsOf(origin))))[objects]).toBeUndefined();
    expect((await read(textsAt(origin, await gitObjectsOf(clone("--no-tags")))))[objects]).toContain("not read");
  });
});
