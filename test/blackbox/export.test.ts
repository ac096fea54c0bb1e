/** What `keyhole export` leaves on the disk if it cannot end. What it writes: transcripts/export.txt. */

import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, rmSync, watch } from "node:fs";
import { join } from "node:path";
import { ageDrafts } from "../support/drafts.ts";
import { binary, runBinary } from "../support/keyhole.ts";
import { startProgram } from "../support/program.ts";
import { onBoth, siteOf } from "../support/server.ts";

const put = ["file", "put", "web", "-", "--env", "production", "--path"];

onBoth("an export of which one part does not open", (dialect) => {
  const site = siteOf(dialect, { development: { FIRST: "1" }, production: { TOKEN: "s3cret" } });
  beforeAll(async () => {
    await site.here([...put, "a.pem"], "a key");
    await site.here([...put, "b.pem"], "another key");
  });

  const set = (kind: string) => `where kind = '${kind}' and environment = 'production'`;
  const tampered: [what: string, harm: string, cure: string, says: string][] = [
    [
      "an older number of its set",
      `update sets set version = version + 1000 ${set("variables")}`,
      `update sets set version = version - 1000 ${set("variables")}`,
      "The variables of acme/web in production were deleted or changed by other means",
    ],
    [
      "a file of another size",
      "update file_contents set size = size + 1 where size = 11",
      "update file_contents set size = size - 1 where size = 12",
      "The content of files/b.pem of acme/web in production does not open",
    ],
    [
      "a project of another name",
      "update projects set slug = 'shop'",
      "update projects set slug = 'web'",
      "The variables of acme/shop in development were deleted or changed by other means",
    ],
  ];
  test.each(tampered)("leaves nothing on the disk: %s", async (_, harm, cure, says) => {
    await site.sql(harm);
    const before = readdirSync(site.folder);
    const ran = await site.here(["export", "--out", "left"]);
    await site.sql(cure);
    expect(ran.exitCode).toBe(1);
    expect(ran.stdout).toBe("");
    expect(ran.stderr).toContain(says);
    expect(ran.stderr).not.toMatch(/s3cret|a key/);
    expect(readdirSync(site.folder)).toEqual(before);
  });

  test.each(["", "-"])("is no folder called %j", async (out) => {
    expect(await site.here(["export", "--out", out])).toMatchObject({ exitCode: 2, stdout: "" });
  });

  test("is whole once it opens again", async () => {
    expect(await site.json(["export", "--out", "left"])).toMatchObject({ variables: 2, files: 2, warnings: [] });
  });
});

describe("an export that is stopped", () => {
  const site = siteOf("sqlite", { production: { TOKEN: "s3cret" } });
  beforeAll(async () => {
    // So that it takes its time.
    for (let n = 0; n < 30; n++) await site.here([...put, `many/${n}`], Buffer.alloc(200_000, n));
  });
  const drafts = () => readdirSync(site.folder).filter((name) => name.startsWith(".keyhole-folder-"));
  afterEach(() => {
    for (const name of drafts()) rmSync(join(site.folder, name), { recursive: true });
  });

  /** Starts exports until one is stopped by this signal after it has begun to write. @returns where it was to write */
  async function stopped(signal: NodeJS.Signals): Promise<{ out: string; exitCode: number | null }> {
    for (let tries = 0; tries < 50; tries++) {
      const out = `${signal}-${tries}`;
      const options = { cwd: site.folder, env: site.env };
      const child = startProgram(["nice", "-n", "19", binary, "export", "--out", out], options);
      let isSent = false;
      const watcher = watch(site.folder, () => {
        if (isSent || drafts().length === 0) return;
        isSent = true;
        child.signal(signal);
      });
      const exitCode = await child.ended;
      watcher.close();
      if (!existsSync(join(site.folder, out))) return { out, exitCode };
    }
    throw new Error("no export was stopped in time");
  }

  test("by kill -9 has no folder under its name, and the next one removes what is left, a day later", async () => {
    const { out } = await stopped("SIGKILL");
    expect(drafts()).toHaveLength(1);
    ageDrafts(site.folder);
    expect(await site.here(["export", "--out", out])).toMatchObject({ exitCode: 0 });
    expect(drafts()).toEqual([]);
    expect(readdirSync(join(site.folder, out, "web/production/files/many"))).toHaveLength(30);
  });

  test("by a signal leaves nothing", async () => {
    const { exitCode } = await stopped("SIGTERM");
    expect(exitCode).toBe(143);
    expect(drafts()).toEqual([]);
  });

  test("by a full disk leaves nothing, and an empty folder stays", async () => {
    mkdirSync(join(site.folder, "empty"));
    const limit = ["bash", "-c", 'ulimit -f 1000; exec "$0" "$@"'];
    await site.here([...put, "big"], Buffer.alloc(2_000_000));
    const ran = await runBinary(["export", "--out", "empty"], { cwd: site.folder, env: site.env, as: limit });
    expect(ran).toMatchObject({ exitCode: 1, stdout: "" });
    expect(ran.stderr).toContain("'web/production/files/big' cannot be written");
    expect(readdirSync(join(site.folder, "empty"))).toEqual([]);
    expect(drafts()).toEqual([]);
  });
});
