import { beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync, rmSync, watch } from "node:fs";
import { join } from "node:path";
import { ageDrafts } from "../support/drafts.ts";
import { binary } from "../support/keyhole.ts";
import { siteOf } from "../support/server.ts";

describe("what kill -9 leaves beside a file that was being written", () => {
  const site = siteOf("sqlite", { production: { TOKEN: "1" } });
  beforeAll(async () => {
    await site.json(["backup", "backup.db"]);
    // So that a backup takes its time.
    for (const path of ["a", "b", "c"]) {
      const put = ["file", "put", "web", "-", "--path", path, "--env", "production"];
      await site.keyhole(put, randomBytes(7 * 1024 * 1024));
    }
  });

  const draftsIn = (folder: string, begin: string) => readdirSync(folder).filter((name) => name.startsWith(begin));

  /** Kills commands as soon as they have begun a draft, until one is left. */
  async function killed(folder: string, begin: string, ...commands: readonly (readonly string[])[]): Promise<string> {
    for (let tries = 0; tries < 300; tries++) {
      const args = commands[tries % commands.length] as readonly string[];
      // It yields to this process, which must be in time.
      const own = { cwd: site.folder, env: site.env, stdout: "ignore", stderr: "ignore" } as const;
      const child = Bun.spawn(["nice", "-n", "19", binary, ...args], own);
      const before = draftsIn(folder, begin);
      using _ = disposing(
        watch(folder, () => {
          if (draftsIn(folder, begin).some((name) => !before.includes(name))) child.kill("SIGKILL");
        }),
      );
      await child.exited;
      const [left] = draftsIn(folder, begin).filter((name) => !before.includes(name));
      if (left !== undefined) return join(folder, left);
    }
    throw new Error(`nothing was left of ${begin}`);
  }

  test("holds a live root key, and serve and the next rotation remove it", async () => {
    const rotations = [
      ["rotate", "root"],
      ["rotate", "root", "--finish", "--yes"],
    ];
    const next = [() => site.serve().then((server) => server.stop()), () => site.keyhole(["rotate", "root"])];
    for (const remove of next) {
      const draft = await killed(site.data, ".keyhole-root-key-", ...rotations);
      expect(readFileSync(draft, "utf8")).toMatch(/^([\w+/]{43}=\n)*$/);
      await remove();
      expect(draftsIn(site.data, ".keyhole-")).toEqual([]);
    }
    const got = await site.keyhole(["var", "get", "web", "production", "TOKEN"]);
    expect(got).toMatchObject({ exitCode: 0, stdout: "1" });
  });

  test.each([
    ["backup", ["backup", "killed.db", "--force"], ["backup", "next.db"]],
    ["export", ["audit", "export", "--out", "killed.jsonl", "--force"], ["audit", "export", "--out", "next.jsonl"]],
  ])("is removed by the next command of its kind, a day later: %s", async (kind, command, next) => {
    await killed(site.folder, `.keyhole-${kind}-`, command);
    ageDrafts(site.folder);
    expect(await site.keyhole(next)).toMatchObject({ exitCode: 0 });
    expect(draftsIn(site.folder, ".keyhole-")).toEqual([]);
  });

  test("is removed by serve if it was to be the restored database", async () => {
    rmSync(join(site.folder, "backup.db"));
    await site.json(["backup", "backup.db"]);
    await killed(site.data, "keyhole.db.rest", ["restore", "backup.db", "--force", "--yes"]);
    expect(await (await site.serve()).stop()).toBe(0);
    expect(draftsIn(site.data, "keyhole.db.rest")).toEqual([]);
  });
});

function disposing(watcher: { close(): void }): Disposable {
  return { [Symbol.dispose]: () => watcher.close() };
}
