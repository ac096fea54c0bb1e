import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Root } from "../../src/client/safe-files.ts";
import { modesTo } from "../../src/core/modes.ts";
import { newFolder } from "../support/folder.ts";
import { runHere } from "../support/here.ts";
import { whereInstalled } from "../support/programs.ts";

/* What is written with a secret on a file system that keeps no modes, such as a Windows drive in WSL, SMB or FAT. */

whereInstalled(["bindfs", "fusermount3|fusermount"], "a file system that keeps no modes", (bindfs, unmount) => {
  const folder = newFolder();
  const mount = join(folder, "mount");
  const env = { PATH: process.env["PATH"] ?? "", KEYHOLE_DATA: join(folder, "data"), USER: "ann" };
  const keyhole = (...args: string[]) => runHere(args, { cwd: folder, env });
  const warning = (path: string, more = "") =>
    `WARNING: ${path}${more} can be read by other users (mode 0777): the file system keeps no modes, so write secrets to another one, or mount it with umask=077.`;

  beforeAll(async () => {
    for (const name of ["under", "mount"]) mkdirSync(join(folder, name));
    Bun.spawnSync([bindfs, "--perms=0777", "--chmod-ignore", join(folder, "under"), mount]);
    for (const command of ["org create acme", "project create web", "var set web staging TOKEN --value a-secret"])
      expect(await keyhole(...command.split(" "))).toMatchObject({ exitCode: 0 });
    const file = ["file", "put", "web", "./data/root.key", "--path", "key.txt", "--env", "staging"];
    expect(await keyhole(...file)).toMatchObject({ exitCode: 0 });
  });
  afterAll(() => void Bun.spawnSync([unmount, "-u", mount]));

  test.each([
    ["a key", "key create --all-projects --all-environments --out mount/key", "mount/key"],
    ["variables", "var export web staging --out mount/env", "mount/env"],
    ["a file", "file get web key.txt --env staging --out mount/file", "mount/file"],
    ["the audit", "audit export --out mount/audit.jsonl", "mount/audit.jsonl"],
    ["a backup", "backup mount/backup.db", "mount/backup.db"],
    ["all of an organization", "export --out mount/all", "mount/all"],
  ])("is named with the mode when %s is written there", async (_, command, path) => {
    const { exitCode, stderr } = await keyhole(...command.split(" "));
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: expect.stringContaining(`${warning(path)}\n`) });
  });

  test("is named once for all files that a machine fetches, and not for the same files elsewhere", async () => {
    const files = ["a/b", "c"].map((path) => ({ path, mode: "0600" as const, content: Buffer.from("content") }));
    const said: string[] = [];
    for (const path of [mount, newFolder()]) {
      using root = new Root(path);
      await root.place(
        files,
        modesTo((line) => said.push(line)),
      );
    }
    expect(said).toEqual([warning("a/b", " and 1 more")]);
  });
});

test("only these write without a word: what holds no secret, or is warned of whenever it is read", () => {
  const src = join(import.meta.dir, "../../src");
  const silent = [...new Bun.Glob("**/*.ts").scanSync(src)].filter((file) =>
    /(?<!function )writeWholeSync\(/.test(readFileSync(join(src, file), "utf8")),
  );
  expect(silent.sort()).toEqual([
    "cli/machine.ts", // receipts
    "installation/root-keys.ts",
    "people/rotation/root-keys.ts",
    "record/notary/newest-checkpoint.ts",
    "record/notary/witness-server.ts",
  ]);
});
