/** What the command prints of few files: transcripts/files-pull.txt. */
import { beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readConfig } from "../../src/core/settings/settings.ts";
import { draftIn } from "../../src/core/whole-file.ts";
import { openInstallation } from "../../src/installation/installation.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { adminContextOf, operator } from "../../src/people/desk/context.ts";
import { ageDrafts } from "../support/drafts.ts";
import { makePlace } from "../support/keyhole.ts";
import { honestly, type Truth } from "../support/liar.ts";
import { machineMaker, runProgram, truth } from "../support/machine.ts";
import type { Ran } from "../support/program.ts";
import { keyOf, serverOf, siteOf } from "../support/server.ts";

const machine = machineMaker();

describe("from a real server", () => {
  const site = siteOf("sqlite");
  const small = Array.from({ length: 320 }, (_, at) => ({
    path: `small/${at % 20}/file-${at}.bin`,
    mode: at % 2 === 0 ? ("0600" as const) : ("0400" as const),
    content: Buffer.alloc(8192, `small ${at} `),
  }));
  const large = Array.from({ length: 40 }, (_, at) => ({
    path: `large/file-${at}.bin`,
    mode: "0600" as const,
    content: Buffer.alloc(1024 * 1024, `large ${at} `),
  }));
  const pull = (project: string, args: readonly string[], cwd = site.folder): Promise<Ran> =>
    runProgram(["files", "pull", "-p", project, "-e", "production", ...args], {
      cwd,
      env: { KEYHOLE_URL: server.origin, KEYHOLE_API_KEY: key.key },
    });

  beforeAll(async () => {
    await site.here(["org", "create", "acme"]);
    // Not by the command: so many processes would take minutes.
    const admin = adminContextOf(await openInstallation(readConfig(site.env), () => {}), operator("ann@host"));
    try {
      for (const [project, files] of Object.entries({ small, large })) {
        await site.here(["project", "create", `acme/${project}`]);
        for (const file of files) await putFile(admin, `acme/${project}`, { ...file, environments: ["production"] });
      }
    } finally {
      await admin.close();
    }
  });
  const server = serverOf(site);
  const key = keyOf(site, "--resource", "files");

  test.each([
    { project: "small", files: small, requests: 1 },
    { project: "large", files: large, requests: 5 },
  ])(
    "$files.length files come down complete with the right modes, and a second time no content at all",
    async ({ project, files }) => {
      const root = mkdtempSync(join(site.folder, `${project}-`));
      const before = (await site.audit()).length;
      const ran = await pull(project, ["--root", root]);
      expect(ran).toEqual({
        exitCode: 0,
        stdout: "",
        stderr: `${project}, production: ${files.length} files below ${root}, ${files.length} written, 0 already in place.\n`,
      });
      for (const { path, mode, content } of files) {
        const stat = statSync(join(root, path));
        if ((stat.mode & 0o7777).toString(8).padStart(4, "0") !== mode) throw new Error(`${path} has a wrong mode`);
        if (!readFileSync(join(root, path)).equals(content)) throw new Error(`${path} has wrong content`);
      }
      expect(filesBelow(root)).toHaveLength(files.length);
      expect(statSync(join(root, project)).mode & 0o7777).toBe(0o700);
      const reads = (await site.audit()).slice(before);
      expect(reads.filter(({ action }) => action === "file.read")).toHaveLength(files.length);

      const again = await pull(project, ["--root", root, "--json"]);
      expect(again.exitCode).toBe(0);
      expect(JSON.parse(again.stdout)).toMatchObject({ written: [], unchanged: files.length });
      expect(await site.audit()).toHaveLength(before + reads.length);
      expect(await pull(project, ["--root", root, "--check"])).toMatchObject({ exitCode: 0, stdout: "" });
    },
  );

  test("only stale files are fetched, and each is on record", async () => {
    const root = mkdtempSync(join(site.folder, "stale-"));
    await pull("small", ["--root", root]);
    const [first, second, third] = small.map(({ path }) => path) as [string, string, string];
    writeFileSync(join(root, first), "changed");
    rmSync(join(root, second));
    chmodSync(join(root, third), 0o644); // its content is right, so it need not be fetched
    expect(await pull("small", ["--root", root, "--check"])).toMatchObject({
      exitCode: 1,
      stdout: [first, second, third]
        .sort()
        .map((path) => `${path}\n`)
        .join(""),
      stderr: `keyhole: Out of step: 3 of 320 files. Only the mode differs of ${third}.\n`,
    });
    const before = (await site.audit()).length;
    const ran = await pull("small", ["--root", root, "--json"]);
    expect(JSON.parse(ran.stdout)).toMatchObject({ written: [first, second, third].sort(), unchanged: 317 });
    expect((await site.audit()).length - before).toBe(2);
    expect(statSync(join(root, third)).mode & 0o777).toBe(0o600);
  });

  test("on a terminal a line says how far it has come, and is gone at the end", async () => {
    const place = makePlace({ KEYHOLE_URL: server.origin, KEYHOLE_API_KEY: key.key });
    try {
      const { exitCode, screen } = await place.onTerminal(["files", "pull", "-p", "small", "-e", "production"]).ended;
      expect(exitCode).toBe(0);
      expect(screen).toMatch(/\rFetching \d+ of 320 files/);
      expect(screen).toMatch(/\rWriting \d+ of 320 files/);
      expect(screen.split("\r").at(-2)).toEndWith("320 written, 0 already in place.");
    } finally {
      place.remove();
    }
  });
});

/** Other lies: unit/client. */
test("a server that lies makes the program write nothing at all and say why", async () => {
  const { keyhole, folder, key } = await machine((question) => {
    const honest = honestly(truth, question);
    if (question.query.has("metadataOnly")) return honest;
    const [first = {}, ...rest] = (honest.body as { files: Record<string, unknown>[] }).files;
    const content = Buffer.alloc(Number(first["size"])).toString("base64");
    return { body: { ...(honest.body as object), files: [{ ...first, content }, ...rest] } };
  });
  writeFileSync(join(folder, "service.json"), "as it was", { mode: 0o640 });
  const ran = await keyhole(["files", "pull"]);
  expect(ran.exitCode).toBeGreaterThan(0);
  expect(ran.stdout).toBe("");
  expect(ran.stderr).toContain("another checksum");
  expect(ran.stderr).not.toContain(key);
  expect(readdirSync(folder)).toEqual(["service.json"]);
  expect(readFileSync(join(folder, "service.json"), "utf8")).toBe("as it was");
  expect(statSync(join(folder, "service.json")).mode & 0o777).toBe(0o640);
});

test("a disk that takes no more leaves everything as it was", async () => {
  const big: Truth = { ...truth, files: [...truth.files, { path: "z/big.bin", content: Buffer.alloc(100_000, 1) }] };
  const { keyhole, folder } = await machine((question) => honestly(big, question));
  writeFileSync(join(folder, "service.json"), "as it was");
  const ran = await keyhole(["files", "pull"], { as: ["bash", "-c", 'ulimit -f 10; exec "$0" "$@"'] });
  const stderr = expect.stringContaining("'z/big.bin' cannot be written");
  expect(ran).toMatchObject({ exitCode: 1, stdout: "", stderr });
  expect(readdirSync(folder)).toEqual(["service.json"]);
  expect(readFileSync(join(folder, "service.json"), "utf8")).toBe("as it was");
});

test("what a killed pull left is gone after the next one, a day later", async () => {
  const { keyhole, folder } = await machine((question) => honestly(truth, question));
  writeFileSync(draftIn(folder, "files"), "half of a file");
  ageDrafts(folder);
  expect(await keyhole(["files", "pull"])).toMatchObject({ exitCode: 0 });
  expect(filesBelow(folder).filter((path) => path.includes(".keyhole-"))).toEqual([]);
});

/** Every file and link below a folder, without those that another process removes or renames meanwhile. */
function filesBelow(folder: string): string[] {
  return (readdirSync(folder, { recursive: true }) as string[])
    .filter((path) => lstatSync(join(folder, path), { throwIfNoEntry: false })?.isDirectory() === false)
    .sort();
}
