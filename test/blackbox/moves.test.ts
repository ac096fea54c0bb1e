/** `var copy` and `var edit`; what they print is in transcripts/moves.txt. */
import { beforeAll, describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { binary, type Ran, runBinary, startOnTerminal } from "../support/keyhole.ts";
import { eventually, siteOf } from "../support/server.ts";

const canary = `canary-${randomBytes(8).toString("hex")}`;
/** Values that dotenv text needs different quotes for, and one that it cannot carry. */
const odd = { BACKSLASH: "ends in \\", LINES: "-----\na b\n-----\n", QUOTES: `it's "$5" \\n`, EMPTY: "" };
const all = `it's "all" \`three\` # and \\ `;

/** In a script that the program runs, perhaps by a shell. */
const killProgram = `pid=$PPID; until [ "$(cat /proc/$pid/comm)" = keyhole ]; do pid=$(cut -d' ' -f4 /proc/$pid/stat); done; kill -9 $pid`;

describe("changing many variables", () => {
  const site = siteOf("sqlite", { staging: { TOKEN: canary, HOST: "h" } });

  beforeAll(async () => {
    await site.keyhole(["project", "create", "acme/api"]);
    for (const [name, value] of Object.entries({ ...odd, ALL: all })) {
      await site.keyhole(["var", "set", "api", "development", name, "--value", value]);
    }
  });

  const get = async (place: string, environment: string, name: string) =>
    (await site.keyhole(["var", "get", place, environment, name])).stdout;
  const newest = async (count: number) => (await site.json(["audit", "list", "--limit", String(count)])) as Entry[];
  type Entry = { action: string; environment: string; project: string; names: string[] };

  /** Runs `var edit` with a shell script for an editor, which gets the file as `$1`. */
  const edit = (script: string, ...args: string[]): Promise<Ran> => editWith({}, script, ...args);
  const editWith = (settings: Readonly<Record<string, string>>, script: string, ...args: string[]): Promise<Ran> => {
    const editor = join(site.folder, `editor-${randomBytes(4).toString("hex")}`);
    writeFileSync(editor, `#!/bin/sh\n${script}\n`);
    chmodSync(editor, 0o755);
    return runBinary(["var", "edit", ...args], { cwd: site.folder, env: { ...site.env, ...settings, EDITOR: editor } });
  };

  test("var copy writes values that nobody sees, with their day of rotation, and is on record on both sides", async () => {
    await site.keyhole(["var", "set", "web", "staging", "TOKEN", "--rotate-by", "2099-01-31"], canary);
    const copy = ["var", "copy", "acme/web", "staging", "--to", "acme/api", "--to-env", "production"];
    expect(await site.json([...copy, "--keys", "TOKEN"])).toEqual({
      project: "acme/api",
      environment: "production",
      added: ["TOKEN"],
      changed: [],
      same: [],
      warnings: [],
    });
    expect(await newest(2)).toMatchObject([
      { action: "variables.write", project: "api", environment: "production", names: ["TOKEN"] },
      { action: "variables.reveal", project: "web", environment: "staging", names: ["TOKEN"] },
    ]);
    expect(await get("api", "production", "TOKEN")).toBe(canary);
    expect(await site.json(["var", "list", "api", "production"])).toMatchObject([{ rotateBy: "2099-01-31" }]);
    const before = await newest(1);
    expect(await site.json([...copy, "--keys", "TOKEN"])).toMatchObject({ added: [], same: ["TOKEN"] });
    expect(await newest(1)).toEqual(before);
  });

  test("var edit shows every value in quotes that an import reads back, and writes nothing if nothing changed", async () => {
    const copy = join(site.folder, "edited.env");
    expect(await edit(`cp "$1" ${copy}`, "api", "development")).toEqual({
      exitCode: 0,
      stdout: "",
      stderr: "Nothing was changed.\n",
    });
    expect(await newest(1)).toMatchObject([{ action: "variables.reveal", project: "api" }]);
    const text = readFileSync(copy, "utf8");
    expect(text).toContain("# ALL cannot be shown here, and stays.\n");
    await site.keyhole(["project", "create", "acme/copy"]);
    expect(await site.keyhole(["var", "import", "copy", "staging", copy])).toMatchObject({ exitCode: 0 });
    expect(await site.json(["var", "export", "copy", "staging"])).toEqual(odd);
  });

  test("var edit writes only what the person changed", async () => {
    const ran = await edit(`sed -i 's/^HOST=h/HOST=new/' "$1"; echo ADDED=1 >> "$1"`, "web", "staging");
    expect(ran).toMatchObject({ exitCode: 0, stdout: "" });
    expect(ran.stderr).toEndWith("Wrote web, staging: 1 added, 1 changed, 0 deleted.\n");
    expect(await newest(1)).toMatchObject([{ action: "variables.write", names: ["ADDED", "HOST"] }]);
    expect(await get("web", "staging", "TOKEN")).toBe(canary);
    expect(await site.json(["var", "list", "web", "staging"])).toContainEqual(
      expect.objectContaining({ key: "TOKEN", rotateBy: "2099-01-31" }),
    );
  });

  test("var edit deletes nothing that it could not show", async () => {
    expect(await edit(`: > "$1"`, "api", "development", "--yes")).toMatchObject({ exitCode: 0 });
    expect(await site.json(["var", "export", "api", "development"])).toEqual({ ALL: all });
  });

  test("var edit is refused if somebody else wrote meanwhile", async () => {
    const program = Object.entries(site.env).map(([name, value]) => `${name}='${value}'`);
    const other = `env ${program.join(" ")} ${binary} var set web staging HOST --value theirs`;
    const ran = await edit(`${other}; sed -i s/^HOST=.*/HOST=mine/ "$1"`, "web", "staging");
    expect(ran).toMatchObject({ exitCode: 1, stdout: "" });
    expect(ran.stderr).toContain("were changed by somebody else");
    expect(await get("web", "staging", "HOST")).toBe("theirs");
  });

  test("on a terminal a text that does not parse can be edited again", async () => {
    const editor = join(site.folder, "twice");
    writeFileSync(
      editor,
      `#!/bin/sh\nif grep -q wrong "$1"; then sed -i /wrong/d "$1"; echo TWICE=2 >> "$1"; else echo wrong >> "$1"; fi\n`,
    );
    chmodSync(editor, 0o755);
    const env = { ...site.env, EDITOR: editor };
    const screen = startOnTerminal([binary, "var", "edit", "web", "staging"], 80, site.folder, env);
    await screen.shows("Edit it again? [Y/n]");
    screen.type("\r");
    expect(await screen.ended).toMatchObject({ exitCode: 0 });
    expect(await get("web", "staging", "TWICE")).toBe("2");
  });

  test("the text is private, in memory, and gone even if the command is killed", async () => {
    const seen = join(site.folder, "seen");
    const inMemory = statfsSync("/dev/shm").type === 0x01021994;
    const report = `stat -c %a "$1" > ${seen}; stat -c %a "$(dirname "$1")" >> ${seen}; echo "$1" >> ${seen}`;
    const [ended, killed] = [`${report}; env >> ${seen}`, `${report}; ${killProgram}`];
    expect(await edit(ended, "web", "staging")).toMatchObject({ exitCode: 0 });
    const [mode, folderMode, path = "", ...environment] = readFileSync(seen, "utf8").split("\n");
    expect([mode, folderMode]).toEqual(["600", "700"]);
    if (inMemory) expect(path).toStartWith("/dev/shm/");
    expect(existsSync(path)).toBeFalse();
    expect(environment.filter((line) => /^(KEYHOLE_|DATABASE_URL)/.test(line))).toEqual([]);
    rmSync(seen);

    await edit(killed, "web", "staging");
    const [, , left = ""] = readFileSync(seen, "utf8").split("\n");
    expect(left).not.toBe("");
    await eventually(() => !existsSync(dirname(left)));
  });

  test("no process that an edit starts has Keyhole's settings", async () => {
    const seen = join(site.folder, "environments");
    const each = `for one in /proc/[0-9]*; do`;
    const named = `tr '\\0' ' ' < $one/cmdline 2> /dev/null | grep -q "sh $folder $"`;
    const script = `folder=$(dirname "$1"); ${each} if ${named}; then tr '\\0' '\\n' < $one/environ; echo found; fi; done > ${seen}`;
    expect(await edit(script, "web", "staging")).toMatchObject({ exitCode: 0 });
    const lines = readFileSync(seen, "utf8").split("\n");
    expect(lines).toContain("found");
    expect(lines.filter((line) => /^(KEYHOLE_|DATABASE_URL)/.test(line))).toEqual([]);
  });

  test("the text is never in a runtime folder that others may change", async () => {
    const seen = join(site.folder, "where");
    const runtime = mkdtempSync("/dev/shm/keyhole-runtime-");
    try {
      for (const [mode, isUsed] of [[0o700, true] as const, [0o777, false] as const]) {
        chmodSync(runtime, mode);
        const edited = await editWith({ XDG_RUNTIME_DIR: runtime }, `echo "$1" > ${seen}`, "web", "staging");
        expect(edited).toMatchObject({ exitCode: 0 });
        expect(readFileSync(seen, "utf8").startsWith(`${runtime}/`)).toBe(isUsed);
      }
    } finally {
      rmSync(runtime, { recursive: true });
    }
  });
});
