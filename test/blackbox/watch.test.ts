import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { binary } from "../support/keyhole.ts";
import { eventually, type Key, serverOf, siteOf } from "../support/server.ts";

/** Says with which values it runs, and when it is asked to end. */
const script = `sleep 600 & trap 'kill -9 $!; echo "stopped $A"; exit 7' TERM; echo "runs $A"; wait`;

describe("run --watch", () => {
  const site = siteOf("sqlite", {});
  const server = serverOf(site);

  const started = new Set<Bun.Subprocess>();
  afterAll(() => {
    for (const child of started) if (child.exitCode === null) child.kill("SIGTERM"); // its test has failed
  });

  const readsOf = async ({ id }: Key) => (await site.audit()).filter((entry) => entry["key_id"] === id).length;
  /** Resolves once the server has answered the key this often more with this status. */
  const answers = async ({ id }: Key, status: number, count: number) => {
    const seen = () =>
      server
        .said()
        .stdout.split("\n")
        .filter((line) => line.includes(`"keyId":"${id}"`) && line.includes(`"status":${status},`)).length;
    const before = seen();
    await eventually(() => seen() >= before + count);
  };

  let projects = 0;
  let last: Promise<unknown> = Promise.resolve();
  /** A project with A=one and a key for it; one for each test, because they run at once. One is made after the other. */
  const newProject = () => {
    const next = last.then(makeProject);
    last = next.catch(() => {});
    return next;
  };
  const makeProject = async () => {
    const slug = `p${projects++}`;
    const project = `acme/${slug}`;
    await site.json(["project", "create", project]);
    const set = (environment: string, name: string, value: string) =>
      site.json(["var", "set", project, environment, name], value);
    await set("staging", "A", "one");
    const key = await site.key("--org", "acme", "--resource", "variables,files");
    return { key, project, set, watch: watching(slug, key) };
  };

  /** Starts the program with `--watch 1s` and this command. */
  const watching =
    (slug: string, key: Key) =>
    (options: readonly string[], command: readonly string[], env: Readonly<Record<string, string>> = {}) => {
      const folder = mkdtempSync(join(tmpdir(), "keyhole-watch-"));
      const child = Bun.spawn(
        [binary, "run", "-p", slug, "-e", "staging", "--watch", "1s", ...options, "--", ...command],
        {
          cwd: folder,
          env: { PATH: process.env["PATH"] ?? "", KEYHOLE_URL: server.origin, KEYHOLE_API_KEY: key.key, ...env },
          stdin: "ignore",
          stdout: "pipe",
          stderr: "pipe",
        },
      );
      started.add(child);
      const said = { out: "", err: "" };
      const drain = async (stream: ReadableStream<Uint8Array>, to: "out" | "err") => {
        for await (const bytes of stream) said[to] += new TextDecoder().decode(bytes);
      };
      const drained = Promise.all([drain(child.stdout, "out"), drain(child.stderr, "err")]);
      return {
        folder,
        said,
        child,
        runs: (value: string) => eventually(() => said.out.endsWith(`runs ${value}\n`)),
        ends: async (signal?: NodeJS.Signals) => {
          if (signal !== undefined) child.kill(signal);
          const code = await child.exited;
          await drained;
          rmSync(folder, { recursive: true });
          return code;
        },
      };
    };

  test.concurrent("starts the command again with the new values, once for each change", async () => {
    const { key, set, watch } = await newProject();
    const { runs, ends, said } = watch([], ["sh", "-c", script]);
    await runs("one");
    await set("staging", "A", "two");
    await runs("two");
    await set("staging", "A", "one");
    await runs("one");
    expect(await ends("SIGTERM")).toBe(7);
    expect(said.out).toBe("runs one\nstopped one\nruns two\nstopped two\nruns one\nstopped one\n");
    expect(said.err).toBe("Something changed: the command is started again.\n".repeat(2));
    expect(await readsOf(key)).toBe(3);
  });

  test.concurrent("neither restarts the command nor reads a value while nothing changed for it", async () => {
    const { key, project, set, watch } = await newProject();
    const { runs, ends, said } = watch(["--keys", "A"], ["sh", "-c", script]);
    await runs("one");
    await answers(key, 304, 2);
    await set("production", "A", "late");
    await set("staging", "B", "late");
    await site.json(["rotate", "data", project]);
    await answers(key, 304, 2);
    expect(await readsOf(key)).toBe(1);
    await set("staging", "A", "one"); // the same value at another time: a new answer, and the same environment
    await answers(key, 304, 2);
    expect(await readsOf(key)).toBe(2);
    expect(await ends("SIGTERM")).toBe(7);
    expect(said).toEqual({ out: "runs one\nstopped one\n", err: "" });
  });

  test.concurrent("with --files puts changed files in place first", async () => {
    const { key, project, watch } = await newProject();
    const put = (path: string, content: string) =>
      site.json(["file", "put", project, "-", "--path", path, "--env", "staging"], content);
    await put("conf", "first");
    const command = `sleep 600 & trap 'kill -9 $!; exit 7' TERM; echo "runs $(cat conf)"; wait`;
    const { runs, ends, said, folder } = watch(["--files"], ["sh", "-c", command]);
    await runs("first");
    await answers(key, 304, 2);
    await put("conf", "second");
    await runs("second");
    expect(readFileSync(join(folder, "conf"), "utf8")).toBe("second");
    expect(await ends("SIGTERM")).toBe(7);
    expect(said.out).toBe("runs first\nruns second\n");
  });

  test.concurrent("withholds the key from a command that is started again, too", async () => {
    const { key, set, watch } = await newProject();
    const env = { CI_KEY: key.key, KEYHOLE_ROOT_KEY: "root", DATABASE_URL: "postgres://keyhole" };
    const command = `${script.replace('"runs $A"', '"runs $A"; env | grep -c "^CI_KEY\\|^KEYHOLE\\|^DATABASE" >&2')}`;
    const { runs, ends, said } = watch([], ["sh", "-c", command], env);
    await runs("one");
    await answers(key, 304, 2);
    await set("staging", "A", "two");
    await runs("two");
    await eventually(() => said.err.endsWith("again.\n0\n"));
    expect(await ends("SIGTERM")).toBe(7);
    const first = "Not passed to the command: CI_KEY, DATABASE_URL.\n0\n";
    expect(said.err).toBe(`${first}Something changed: the command is started again.\n0\n`);
  });

  test.concurrent("loses no change to a look that fails", async () => {
    const { key, project, set, watch } = await newProject();
    const { runs, ends, said, folder } = watch(["--files", "--allow-empty"], ["sh", "-c", script]);
    await runs("one");
    await Bun.write(join(folder, "late"), "in the way");
    await site.json(["file", "put", project, "-", "--path", "late/file", "--env", "staging"], "x");
    await set("staging", "A", "two");
    const failed = await readsOf(key);
    await eventually(async () => (await readsOf(key)) > failed); // variables are read, files are in the way
    await eventually(() => said.err.includes("Not watched for now, and the command runs on: "));
    rmSync(join(folder, "late"));
    await runs("two");
    expect(readFileSync(join(folder, "late/file"), "utf8")).toBe("x");
    expect(await ends("SIGTERM")).toBe(7);
    expect(said.out).toBe("runs one\nstopped one\nruns two\nstopped two\n");
  });

  test.concurrent("keeps the command running once the key is revoked, says so once, and reads nothing more", async () => {
    const { key, set, watch } = await newProject();
    const { runs, ends, said } = watch([], ["sh", "-c", script]);
    await runs("one");
    await site.json(["key", "revoke", key.id]);
    await eventually(() => said.err !== "");
    await set("staging", "A", "unseen");
    const refused = () => server.said().stdout.split(`key ${key.id} is expired or revoked`).length - 1;
    await eventually(() => refused() >= 3);
    expect(await ends("SIGTERM")).toBe(7);
    expect(said).toEqual({
      out: "runs one\nstopped one\n",
      err: "Not watched for now, and the command runs on: The server answered unauthorized: A valid API key is required. This one may have expired, been revoked, or belong to another server.\n",
    });
    expect(await readsOf(key)).toBe(1);
  });

  test.concurrent("keeps the command running while a required variable is missing", async () => {
    const { project, set, watch } = await newProject();
    await set("staging", "C", "1");
    const { runs, ends, said } = watch(["--require", "C"], ["sh", "-c", script]);
    await runs("one");
    await site.json(["var", "delete", project, "staging", "C"]);
    await eventually(() => said.err.includes(", staging: C."));
    expect(said.out).toBe("runs one\n");
    await set("staging", "C", "2");
    await eventually(() => said.err.includes("The command is watched again."));
    await eventually(() => said.out === "runs one\nstopped one\nruns one\n");
    expect(await ends("SIGTERM")).toBe(7);
  });

  test.concurrent("reads a change once that it cannot use, and asks in vain until there is another", async () => {
    const { key, project, set, watch } = await newProject();
    const { runs, ends, said } = watch(["--require", "A"], ["sh", "-c", script]);
    await runs("one");
    await set("staging", "NODE_OPTIONS", "--inspect");
    await eventually(() => said.err.includes("loaders, shells or CI runners act on them: NODE_OPTIONS"));
    await answers(key, 304, 3);
    expect(await readsOf(key)).toBe(2);
    await site.json(["var", "delete", project, "staging", "A"]);
    await eventually(() => said.err.includes(", staging: A."));
    await answers(key, 304, 3);
    expect(await readsOf(key)).toBe(3);
    await site.json(["var", "delete", project, "staging", "NODE_OPTIONS"]);
    await set("staging", "A", "two");
    await runs("two");
    expect(await ends("SIGTERM")).toBe(7);
    expect(said.out).toBe("runs one\nstopped one\nruns two\nstopped two\n");
    expect(said.err.split("\n").filter((line) => line.startsWith("Not watched for now"))).toHaveLength(2);
  });

  test.concurrent("GHSA-444v-8vxr-p36h: whatever fails after a first success, no output has a value", async () => {
    const { project, set, watch } = await newProject();
    await set("staging", "A", "canary-of-the-first");
    const quiet = `trap 'kill -9 $!; exit 7' TERM; sleep 600 & echo "runs $(printf %s "$A" | wc -c)"; wait`;
    const { ends, said } = watch(["--require", "A"], ["sh", "-c", quiet]);
    await eventually(() => said.out === "runs 19\n");
    const failures: [does: () => Promise<unknown>, says: string][] = [
      [() => set("staging", "NODE_OPTIONS", "canary-that-steers"), "loaders, shells or CI runners act on them"],
      [() => site.json(["var", "delete", project, "staging", "A"]), ", staging: A."],
      [
        async () => {
          const [row] = await site.sql("select id from projects where slug = ?", [project.split("/")[1]]);
          const where = "project_id = ? and kind = 'variables' and environment = 'staging'";
          await site.sql(`update sets set version = version + 1 where ${where}`, [row?.["id"]]);
        },
        "decryption_failed",
      ],
    ];
    for (const [does, says] of failures) {
      await does();
      await eventually(() => said.err.includes(says));
    }
    expect(await ends("SIGTERM")).toBe(7);
    expect(said).toEqual({ out: "runs 19\n", err: expect.not.stringContaining("canary") });
  });

  test.concurrent("kills a command that does not end within 10 s of SIGTERM, and not before", async () => {
    const { set, watch } = await newProject();
    const command = `trap 'echo deaf' TERM; echo "runs $A"; while [ "$A" = one ]; do sleep 0.1; done; exit 8`;
    const { runs, ends, said } = watch([], ["sh", "-c", command]);
    await runs("one");
    // Taken before the change: this process may see `deaf` late, and then the 10 s would seem shorter.
    const beforeAsked = performance.now();
    await set("staging", "A", "two");
    await eventually(() => said.out.endsWith("deaf\n"));
    expect(await ends()).toBe(8);
    expect(performance.now() - beforeAsked).toBeGreaterThan(10_000);
    expect(said.out).toBe("runs one\ndeaf\nruns two\n");
  });

  test.concurrent("ends with the command's own exit code when that ends by itself", async () => {
    const { watch } = await newProject();
    const { ends } = watch([], ["sh", "-c", "exit 42"]);
    expect(await ends()).toBe(42);
  });

  test.concurrent.each(["SIGHUP", "SIGUSR1"] as const)("hands on %s and goes on to watch", async (signal) => {
    const { set, watch } = await newProject();
    const name = signal.slice(3);
    const command = `trap 'echo got' ${name}; ${script.replace("wait", "while :; do wait; done")}`;
    const { child, runs, ends, said } = watch([], ["sh", "-c", command]);
    await runs("one");
    child.kill(signal);
    await eventually(() => said.out.includes("got\n"));
    await set("staging", "A", "two");
    await runs("two");
    expect(await ends("SIGTERM")).toBe(7);
  });

  test.concurrent("starts nothing again after SIGTERM, however long the command takes to end", async () => {
    const { key, set, watch } = await newProject();
    // It ends only once a file is there, long after it was asked to.
    const command = `trap 'echo asked' TERM; echo "runs $A"; until [ -e end ]; do sleep 0.1; done; exit 9`;
    const { child, runs, ends, said, folder } = watch([], ["sh", "-c", command]);
    await runs("one");
    child.kill("SIGTERM");
    await eventually(() => said.out.includes("asked\n"));
    const before = await readsOf(key);
    await set("staging", "A", "two");
    await eventually(async () => (await readsOf(key)) > before);
    await Bun.write(join(folder, "end"), "");
    expect(await ends()).toBe(9);
    expect(said).toMatchObject({ out: "runs one\nasked\n", err: "" });
  });
});
