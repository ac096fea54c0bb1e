/** Machines that lack a place: no account, no folder for temporary files, no shared memory. */
import { afterEach, expect, test } from "bun:test";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { Problem } from "../../src/core/problem.ts";
import { HostRefused } from "../../src/core/refused.ts";
import { scratchFolder } from "../../src/core/scratch.ts";
import { folderProblem } from "../../src/installation/data-folder.ts";
import { newFolder } from "../support/folder.ts";
import { findProgram } from "../support/programs.ts";

const { TMPDIR } = process.env;
afterEach(() => {
  if (TMPDIR === undefined) delete process.env["TMPDIR"];
  else process.env["TMPDIR"] = TMPDIR;
});

test("without a folder for temporary files, a command says which one and what names another", () => {
  const folder = newFolder();
  process.env["TMPDIR"] = folder;
  const made = scratchFolder("keyhole-test-");
  expect([made.startsWith(join(folder, "keyhole-test-")), existsSync(made)]).toEqual([true, true]);
  rmSync(folder, { recursive: true });
  const words = `Temporary files cannot be written in ${folder} (ENOENT): name a folder in TMPDIR that this user may write to.`;
  expect(() => scratchFolder("keyhole-test-")).toThrow(new Problem(2, "configuration", words));
});

test.each(["SQLITE_IOERR_SHMMAP", "SQLITE_IOERR_SHMOPEN", "SQLITE_IOERR_SHMLOCK"])(
  "a data folder on a file system without shared memory is told as such: %s",
  (code) => {
    const found = folderProblem("/mnt/share", Object.assign(new Error("disk I/O error"), { code }));
    expect(found).toBeInstanceOf(HostRefused);
    expect((found as Error).message).toBe(
      "The data folder /mnt/share is on a file system without shared memory, such as NFS or SMB: use a folder on a local disk, or PostgreSQL (DATABASE_URL).",
    );
  },
);

/** Only root may become an account that the system does not know. */
test.skipIf(process.getuid?.() !== 0 || findProgram("setpriv") === undefined)(
  "an account that the system does not know, without HOME, has no password file, and that is no failure",
  () => {
    const module = join(import.meta.dir, "../../src/core/settings/postgres-url.ts");
    const script = `const { parsePostgresUrl } = await import(${JSON.stringify(module)});
      process.stdout.write(JSON.stringify(parsePostgresUrl("postgres://u@127.0.0.1/db", {}).secretFiles));`;
    const as = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"];
    const command = [...as, process.execPath, "--no-env-file", "--no-install", "-e", script];
    const { stdout, stderr } = Bun.spawnSync(command, { env: { BUN_RUNTIME_TRANSPILER_CACHE_PATH: "0" } });
    expect([stdout.toString(), stderr.toString()]).toEqual(["[]", ""]);
  },
);
