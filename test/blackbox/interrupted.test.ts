import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { startOnTerminal } from "../support/keyhole.ts";
import { postgresUrl, runOn } from "../support/postgres.ts";

/** What is running while the run of tests is interrupted. */
type Started = { readonly scratch: string; readonly pids: readonly number[]; readonly database?: string };

const root = join(import.meta.dir, "../..");
const folder = newFolder();

const command = [process.execPath, "--no-env-file", join(root, "test/run.ts")];
const env = {
  PATH: process.env["PATH"] ?? "",
  KEYHOLE_TEST_BUILT: "1",
  KEYHOLE_TEST_POSTGRES: "none", // the first file starts one itself
  TMPDIR: folder,
};
/** What a run may not say of files that it did not let end. */
const said = /passed|\bfail(?:ed|s)?\b|not started|still running/i;

test("a run of tests that gets SIGTERM says so, calls nothing failed, and ends all that it started", async () => {
  const { files, started } = makeFiles();
  const server = postgresUrl === undefined ? {} : { TEST_DATABASE_URL: postgresUrl, KEYHOLE_TEST_POSTGRES: "url" };
  const run = Bun.spawn([...command, files], { cwd: root, env: { ...env, ...server }, stdout: "pipe", stderr: "pipe" });
  const running = await started();
  run.kill("SIGTERM");
  const [exitCode, stdout, stderr] = await Promise.all([run.exited, run.stdout.text(), run.stderr.text()]);
  expect(exitCode).toBe(143);
  expect(stderr).toEndWith("\nInterrupted by SIGTERM.\n");
  expect(stdout + stderr).not.toMatch(said);
  await untilGone(running);
  if (postgresUrl === undefined) return;
  const left = `SELECT datname FROM pg_database WHERE datname = '${running.database}'`;
  expect(await runOn(postgresUrl, left)).toEqual([]);
});

test("Ctrl-C on a terminal interrupts a run of tests", async () => {
  const { files, started } = makeFiles();
  const run = startOnTerminal([...command, files], 100, root, env);
  const running = await started();
  run.type("\x03");
  const { exitCode, screen } = await run.ended;
  expect(exitCode).toBe(130);
  expect(screen).toEndWith("Interrupted by SIGINT.\r\n");
  expect(screen).not.toMatch(said);
  await untilGone(running);
});

test("a run of tests whose terminal is closed ends all that it started", async () => {
  const { files, started } = makeFiles();
  const run = Bun.spawn([...command, files], { cwd: root, env, terminal: { cols: 100, rows: 24, data: () => {} } });
  const running = await started();
  run.terminal?.close();
  expect(await run.exited).toBe(129);
  await untilGone(running);
});

test("a run of tests that is killed leaves neither a process nor a folder behind", async () => {
  const { files, started } = makeFiles();
  const run = Bun.spawn([...command, files], { cwd: root, env, stdout: "ignore", stderr: "ignore" });
  const running = await started();
  run.kill("SIGKILL");
  await run.exited;
  await untilGone(running);
});

/** Files of tests that never end. The first starts a program with a child of its own, and a PostgreSQL. */
function makeFiles(): { files: string; started: () => Promise<Started> } {
  const files = mkdtempSync(join(folder, "files-"));
  const list = join(files, "started.json");
  writeFileSync(
    join(files, "0.test.ts"),
    `import { test } from "bun:test";
    import { renameSync, writeFileSync } from "node:fs";
    import { createDatabase, postgresUrl, startPostgres } from ${JSON.stringify(join(root, "test/support/postgres.ts"))};
    test("never ends", async () => {
      const shell = Bun.spawn(["sh", "-c", "sleep 1000 & echo $!; wait"], { stdout: "pipe" });
      const { value } = await shell.stdout.getReader().read();
      const cluster = await startPostgres();
      const database = postgresUrl && new URL((await createDatabase(postgresUrl)).url).pathname.slice(1);
      const pids = [process.ppid, process.pid, shell.pid, Number(new TextDecoder().decode(value))];
      const started = { scratch: process.env.TMPDIR, database, pids: [...pids, ...(cluster ? [cluster.pid] : [])] };
      writeFileSync(${JSON.stringify(`${list}.part`)}, JSON.stringify(started));
      renameSync(${JSON.stringify(`${list}.part`)}, ${JSON.stringify(list)});
      await new Promise(() => {});
    }, 0);`,
  );
  for (let file = 1; file < 9; file++) {
    writeFileSync(
      join(files, `${file}.test.ts`),
      `import { test } from "bun:test";
      test("never ends", () => new Promise(() => {}), 0);`,
    );
  }
  const started = async () => {
    await eventually(() => existsSync(list));
    return JSON.parse(readFileSync(list, "utf8")) as Started;
  };
  return { files, started };
}

/** Resolves once nothing is left. A PostgreSQL that a test started ends a moment after the run, on its own. */
async function untilGone(running: Started): Promise<void> {
  await eventually(() => leftOf(running).length === 0);
}

/** What is still there: the folder of the run, the processes that its tests started, and those that name the folder. */
function leftOf({ scratch, pids }: Started): string[] {
  const ps = Bun.spawnSync(["ps", "-A", "-ww", "-o", "pid=,stat=,args="]).stdout.toString();
  const processes = ps.split("\n").filter((line) => {
    const [, pid, state] = /^\s*(\d+)\s+(\S+)/.exec(line) ?? [];
    return !state?.startsWith("Z") && (pids.includes(Number(pid)) || line.includes(scratch));
  });
  return [...(existsSync(scratch) ? [scratch, ...readdirSync(scratch)] : []), ...processes];
}
