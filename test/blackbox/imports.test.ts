import { beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { onBoth, siteOf } from "../support/server.ts";

onBoth("an import by the program", (dialect) => {
  const canary = `canary-${randomBytes(8).toString("hex")}`;
  const load = ["var", "import", "web", "staging", "new.env"];
  const place = { project: "web", environment: "staging" };
  const site = siteOf(dialect, {
    staging: { KEPT: canary, CHANGED: "old", GONE: "1", GONE_TOO: "2" },
  });
  beforeAll(async () => {
    writeFileSync(join(site.folder, "new.env"), `KEPT=${canary}\nCHANGED=${canary}-new\nADDED=${canary}\n`);
    writeFileSync(join(site.folder, "empty.env"), "# nothing\n");
  });

  const names = async () =>
    ((await site.json(["var", "list", "web", "staging"])) as { key: string }[]).map(({ key }) => key);
  const before = ["CHANGED", "GONE", "GONE_TOO", "KEPT"];
  const changesOnRecord = async () => ((await site.json(["audit", "list", "--limit", "1000"])) as object[]).length;

  test("that is a dry run names what would change, and no value, and changes nothing", async () => {
    const recorded = await changesOnRecord();
    expect(await site.keyhole([...load, "--dry-run"])).toEqual({
      exitCode: 0,
      stdout: "NAME     WOULD BE\nADDED    added\nCHANGED  changed\n",
      stderr: "Nothing was written. The import would add 1, change 1 and delete 0.\n",
    });
    // A dry run is never asked about, and needs no --yes.
    const pruned = await site.keyhole([...load, "--dry-run", "--prune"]);
    expect(pruned).toEqual({
      exitCode: 0,
      stdout: "NAME      WOULD BE\nADDED     added\nCHANGED   changed\nGONE      deleted\nGONE_TOO  deleted\n",
      stderr: "Nothing was written. The import would add 1, change 1 and delete 2.\n",
    });
    expect(pruned.stdout + pruned.stderr).not.toContain(canary);
    expect(await site.json([...load, "--dry-run", "--prune"])).toEqual({
      ...place,
      added: ["ADDED"],
      changed: ["CHANGED"],
      deleted: ["GONE", "GONE_TOO"],
      warnings: [],
    });
    expect(await names()).toEqual(before);
    expect(await changesOnRecord()).toBe(recorded);
  });

  test("that is a dry run is refused like an import in earnest", async () => {
    writeFileSync(join(site.folder, "bad.env"), "A=1\nnot an assignment\n");
    for (const [file, exitCode] of [
      ["bad.env", 2],
      ["empty.env", 2],
      ["missing.env", 1],
    ] as const) {
      const [dry, real] = [
        await site.keyhole(["var", "import", "web", "staging", file, "--dry-run", "--prune"]),
        await site.keyhole(["var", "import", "web", "staging", file, "--prune", "--yes"]),
      ];
      expect(real).toMatchObject({ exitCode, stdout: "" });
      expect(dry).toEqual(real);
    }
    const absent = ["var", "import", "none", "staging", "new.env"];
    expect((await site.keyhole([...absent, "--dry-run"])).exitCode).toBe(4);
    expect(await site.keyhole([...absent, "--dry-run"])).toEqual(await site.keyhole(absent));
    expect(await names()).toEqual(before);
  });

  test("that prunes needs --yes where nobody can be asked", async () => {
    const refused = await site.keyhole([...load, "--prune"]);
    expect(refused).toEqual({
      exitCode: 2,
      stdout: "",
      stderr:
        "keyhole: This would import 3 variables into web, staging, and delete 2 that the file does not have: GONE, GONE_TOO. Nobody can be asked here, so it needs --yes.\n",
    });
    expect((await site.keyhole([...load, "--prune", "--json"])).exitCode).toBe(2);
    expect(await names()).toEqual(before);
  });

  test.each([
    ["n\r", 1],
    ["\x03", 130],
    ["yes\r", 0],
  ])("that prunes asks on a terminal what may be deleted, and %j ends with %d", async (keys, exitCode) => {
    const terminal = site.onTerminal([...load, "--prune"], 200);
    await terminal.shows("and delete 2 that the file does not have: GONE, GONE_TOO. Go on? [y/N]");
    terminal.type(keys);
    const ended = await terminal.ended;
    expect(ended.exitCode).toBe(exitCode);
    expect(await names()).toEqual(exitCode === 0 ? ["ADDED", "CHANGED", "KEPT"] : before);
    if (exitCode === 0) expect(ended.screen).toContain("Imported 3 variables: 1 created, 2 updated, 2 deleted.");
  });

  test("that prunes empties an environment if that is what the options say", async () => {
    const empty = ["var", "import", "web", "staging", "empty.env", "--prune", "--yes"];
    expect((await site.keyhole(empty)).exitCode).toBe(2);
    expect(await site.json([...empty, "--allow-empty"])).toEqual({
      ...place,
      created: 0,
      updated: 0,
      deleted: ["ADDED", "CHANGED", "KEPT"],
      warnings: [],
    });
    expect(await names()).toEqual([]);
    const [entry] = (await site.json(["audit", "list", "--limit", "1"])) as object[];
    expect(entry).toMatchObject({ action: "variables.write", deleted: ["ADDED", "CHANGED", "KEPT"] });
  });
});
