import { afterAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { audience, compact, newSigningKey, publicJwk, usualClaims } from "../support/issuer.ts";
import { binary } from "../support/keyhole.ts";
import { type Running, startProgram } from "../support/program.ts";
import { keyOf, serverOf, siteOf } from "../support/server.ts";

/** What only processes show. What a look finds, and when, is in unit/watch. */
describe("run --watch", () => {
  const site = siteOf("sqlite", {});
  const key = keyOf(site, "--org", "acme", "--resource", "variables,files");
  const server = serverOf(site);

  const started = new Set<Running>();
  afterAll(async () => {
    for (const program of started) await program.stop(); // its test may have failed
  });

  const readsOf = async () => (await site.audit()).filter((entry) => entry["action"] === "variables.read").length;
  const set = (name: string, value: string) => site.json(["var", "set", "acme/web", "staging", name, "--value", value]);

  /** Starts the program with `--watch 1s` and this command. */
  const watch = (options: readonly string[], script: string, env: Readonly<Record<string, string>> = {}) => {
    const folder = newFolder();
    const words = ["-p", "web", "-e", "staging", "--watch", "1s", ...options, "--", "sh", "-c", script];
    const own = "KEYHOLE_OIDC" in env ? {} : { KEYHOLE_API_KEY: key.key };
    const all = { PATH: process.env["PATH"], KEYHOLE_URL: server.origin, ...own, ...env };
    const program = startProgram([binary, "run", ...words], { cwd: folder, env: all });
    started.add(program);
    return { ...program, folder, shows: (text: string) => eventually(() => program.said().stdout.endsWith(text)) };
  };

  test("starts the command again with the new values and files, hands on signals, and withholds the key", async () => {
    await set("A", "one");
    const put = (content: string) =>
      site.json(["file", "put", "acme/web", "-", "--path", "conf", "--env", "staging"], content);
    await put("first");
    const script = `sleep 600 & trap 'kill -9 $!; echo "stopped $A"; exit 7' TERM
      trap 'echo hangup' HUP; trap 'echo user' USR1
      env | grep -c '^CI_KEY\\|^KEYHOLE\\|^DATABASE' >&2; echo "runs $A, $(cat conf)"; while :; do wait; done`;
    const env = { CI_KEY: key.key, KEYHOLE_ROOT_KEY: "root", DATABASE_URL: "postgres://keyhole" };
    const before = await readsOf();
    const { signal, shows, stop, said } = watch(["--files"], script, env);
    await shows("runs one, first\n");
    await set("A", "two");
    await shows("runs two, first\n");
    signal("SIGHUP");
    await shows("hangup\n");
    signal("SIGUSR1");
    await shows("user\n");
    await put("second");
    await shows("runs two, second\n");
    expect(await stop()).toBe(7);
    const hungUp = "stopped one\nruns two, first\nhangup\nuser\nstopped two\n";
    expect(said().stdout).toBe(`runs one, first\n${hungUp}runs two, second\nstopped two\n`);
    const again = "Something changed: the command is started again.\n0\n";
    expect(said().stderr).toBe(`Not passed to the command: CI_KEY, DATABASE_URL.\n0\n${again.repeat(2)}`);
    expect(await readsOf()).toBe(before + 2);
  });

  test("GHSA-444v-8vxr-p36h: whatever fails after a first success, no output has a value", async () => {
    await set("A", "canary-of-the-first");
    const { shows, stop, said } = watch(
      ["--require", "A"],
      `trap 'kill -9 $!; exit 7' TERM; sleep 600 & echo "runs $(printf %s "$A" | wc -c)"; wait`,
    );
    await shows("runs 19\n");
    const version = "update sets set version = version + ? where kind = 'variables'";
    const failures: [does: () => Promise<unknown>, says: string][] = [
      [() => set("NODE_OPTIONS", "canary-that-steers"), "loaders, shells or CI runners act on them"],
      [() => site.json(["var", "delete", "acme/web", "staging", "A"]), ", staging: A."],
      [() => site.sql(version, [1]), "decryption_failed"],
    ];
    for (const [does, says] of failures) {
      await does();
      await eventually(() => said().stderr.includes(says));
    }
    expect(await stop()).toBe(7);
    expect(said()).toEqual({ stdout: "runs 19\n", stderr: expect.not.stringContaining("canary") });
    await site.sql(version, [-1]);
    await site.json(["var", "delete", "acme/web", "staging", "NODE_OPTIONS"]);
  });

  test("says at its start how long it lasts if the trust bounds the reads of a job, and lasts that long", async () => {
    const [signing, issuer] = [newSigningKey("ES256"), "https://issuer.example"];
    const [jwks, file] = [join(site.folder, "jwks.json"), join(site.folder, "token")];
    writeFileSync(jwks, JSON.stringify({ keys: [publicJwk("one", signing)] }));
    const token = compact({ alg: "ES256", kid: "one" }, usualClaims(issuer), signing);
    writeFileSync(file, token);
    const terms = ["--issuer", issuer, "--audience", audience, "--claim", "sub=job", "--jwks-file", jwks];
    const reach = ["--project", "web", "--env", "staging", "--reads-per-job", "2"];
    await site.json(["trust", "add", "--name", "job", ...terms, ...reach]);
    // The server's list of trusts may be a tenth of a second old.
    await eventually(async () => (await server.get("/organization", token)).status === 200);
    await set("A", "one");
    const watched = watch([], `echo "runs $A"; exec sleep 600`, { KEYHOLE_OIDC: `file:${file}` });
    await watched.shows("runs one\n");
    await set("A", "two");
    await watched.shows("runs two\n");
    await set("A", "three");
    const words =
      "The trust gives a job 2 answers with values: after 1 change at most, the command is not watched any more.";
    await watched.says("Not watched for now, and the command runs on: The server refused the token");
    expect(watched.said().stderr).toStartWith(`${words}\nSomething changed: the command is started again.\n`);
    expect(await watched.stop()).toBe(143);
    expect(watched.said().stdout).toBe("runs one\nruns two\n");
  });

  test("ends with the command's own exit code when that ends by itself", async () => {
    expect(await watch(["--allow-empty"], "exit 42").ended).toBe(42);
  });

  test("starts nothing again after SIGTERM, however long the command takes to end", async () => {
    await set("A", "one");
    // It ends only once a file is there, long after it was asked to.
    const script = `trap 'echo asked' TERM; echo "runs $A"; until [ -e end ]; do sleep 0.1; done; exit 9`;
    const { signal, shows, ended, said, folder } = watch([], script);
    await shows("runs one\n");
    signal("SIGTERM");
    await shows("asked\n");
    const before = await readsOf();
    await set("A", "two");
    await eventually(async () => (await readsOf()) > before);
    await Bun.write(join(folder, "end"), "");
    expect(await ended).toBe(9);
    expect(said()).toEqual({ stdout: "runs one\nasked\n", stderr: "" });
  });
});
