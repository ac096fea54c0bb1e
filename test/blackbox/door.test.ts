import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { runHere } from "../support/here.ts";
import { startIssuer } from "../support/issuer.ts";
import { binary, runBinary, startOnTerminal } from "../support/keyhole.ts";
import { blocksOf } from "../support/markdown.ts";
import { freePort } from "../support/port.ts";
import { run } from "../support/program.ts";
import { withPrograms } from "../support/programs.ts";
import { makeSite, type Site } from "../support/server.ts";
import { type Bastion, startBastion } from "../support/sshd.ts";

/** Two persons with different rights, who come over a real sshd. */
withPrograms(["sshd", "ssh", "ssh-keygen"], "the door over SSH", () => {
  let place: Site;
  let bastion: Bastion;
  const keyhole = async (...words: string[]) => {
    const { exitCode, stdout, stderr } = await place.here(words);
    expect([exitCode, stderr]).toEqual([0, expect.anything()]);
    return stdout;
  };
  const as = (person: string, line: string, stdin?: string, options?: string[]) =>
    bastion.ssh(person, [line], stdin, options);
  /** What sshd starts for a line, without the connection and in this process, for tests of what becomes of the line. */
  const atDoor = (person: string, line: string, stdin = "", run: typeof runHere | typeof runBinary = runHere) => {
    const env = { ...place.env, SSH_ORIGINAL_COMMAND: line };
    return run(["door", "--person", person], { cwd: place.folder, env, stdin });
  };

  const storedIn = async (environment: string, name: string) =>
    (await place.keyhole(["var", "get", "acme/web", environment, name])).stdout;

  beforeAll(async () => {
    place = await makeSite("sqlite");
    bastion = await startBastion(place.env);
    await keyhole("org", "create", "acme");
    for (const project of ["web", "api"]) await keyhole("project", "create", `acme/${project}`);
    const grants = {
      ana: ["see,reveal,write,keys", "--project", "web", "--env", "development,staging"],
      ben: ["see", "--all-projects", "--all-environments"],
    };
    for (const [person, grant] of Object.entries(grants)) {
      await keyhole("person", "add", person);
      await keyhole("person", "grant", person, ...grant);
      const line = await place.here(["person", "ssh", person], bastion.keyOf(person));
      expect(line.stdout).toContain(`command="keyhole door --person ${person}",pty ssh-ed25519 AAAA`);
      bastion.letIn(line.stdout);
    }
    await keyhole("var", "set", "acme/web", "production", "LIVE", "--value", "canary-live");
  });
  afterAll(async () => {
    await bastion?.stop();
    await place?.remove();
  });

  test("runs a command with the person's rights, and records who it was", async () => {
    const set = await as("ana", "var set acme/web staging 'TOKEN' --value \"it's\"");
    expect(set).toEqual({ exitCode: 0, stdout: "", stderr: "Created TOKEN in acme/web, staging.\n" });
    expect((await atDoor("ana", "var get acme/web staging TOKEN")).stdout).toBe("it's");
    expect((await as("ben", "var list acme/web staging --json")).stdout).toContain('"key":"TOKEN"');
    const entries = (await place.json(["audit", "list", "--actor", "ana"])) as { action: string; actor: object }[];
    const actor = { type: "person", name: "ana", from: "ssh" };
    const read = entries.map((entry) => [entry.action, entry.actor]);
    expect(read).toEqual(["variables.write", "variables.reveal"].map((action) => [action, actor]));
    expect(await keyhole("history", "acme/web", "staging")).toContain("ana (ssh)");
  });

  test.each([
    ..."serve|demo --once|org create mine|org delete acme --yes|rotate root|rotate data|backup /tmp/x".split("|"),
    ...["restore /tmp/x --yes", "audit prune --yes", "history purge acme/web staging variables --yes", "db grants"],
    ...["person add eve", "person ssh ana", "door --person root", "dashboard"],
    ..."run -- id|pull|files pull|completion bash|var edit acme/web staging|health|mcp|explain abc".split("|"),
  ])("has no command of operators and machines: %s", async (line) => {
    const ran = await atDoor("ana", line);
    expect(ran.stdout).toBe("");
    expect(ran.exitCode).toBe(line.startsWith("run") ? 125 : 3);
    expect(ran.stderr).toContain("is not for people over SSH");
  });

  test("runs no shell, whatever the words hold", async () => {
    const mark = join(bastion.folder, "ran");
    const touch = `touch ${mark}`;
    const more = [`; ${touch}`, ` && ${touch}`, ` $(${touch})`, ` \`${touch}\``, ` | tee ${mark}`, ` > ${mark}`];
    const lines = [
      ...[...more, `\n${touch}`, " \\"].map((end) => `project list${end}`),
      ...[`/bin/sh -c '${touch}'`, `-oProxyCommand='${touch}'`, "'project list"],
    ];
    // Two of them over sshd, which must hand on the line as it is.
    const far = ["; ", "\n"].map((end) => `project list${end}touch ${mark}`);
    const ran = await Promise.all([...lines.map((line) => atDoor("ana", line)), ...far.map((line) => as("ana", line))]);
    const ended = ran.map(({ exitCode }, at) => [[...lines, ...far][at], exitCode]);
    expect(ended.filter(([, exitCode]) => exitCode === 0)).toEqual([]);
    expect(existsSync(mark)).toBe(false);
  });

  test("asks for nobody what listens on the bastion or in its network", async () => {
    const fetch = () => new Response("no", { status: 404 });
    await using silent = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch });
    const open = `http://127.0.0.1:${silent.port}`;
    const closed = `http://127.0.0.1:${freePort()}`;
    await using wrong = startIssuer();
    wrong.answer = () => Response.json({ issuer: "https://other.example" });
    const reach = ["--project", "web", "--env", "staging", "--claim", "sub=job", "--audience", "a"];
    for (const issuer of [open, closed, "https://localhost", "https://10.0.0.1", "https://vault.internal"]) {
      const add = await atDoor("ana", `trust add --org acme --name x --issuer ${issuer} ${reach.join(" ")}`);
      const words = "The issuer must be a public https URL. An operator can add others.";
      expect([issuer, add]).toEqual([issuer, { exitCode: 2, stdout: "", stderr: `keyhole: ${words}\n` }]);
    }
    const said: string[] = [];
    for (const issuer of [open, closed, wrong.url]) {
      const id = (await keyhole("trust", "add", "--org", "acme", "--name", "x", "--issuer", issuer, ...reach)).trim();
      const token = wrong.token({ iss: issuer, aud: "a" });
      const ran = await atDoor("ana", `trust test ${id}`, token);
      expect(ran).toMatchObject({ exitCode: 3, stdout: "" });
      said.push(ran.stderr);
      const { stderr } = await place.here(["trust", "test", id], token);
      expect(stderr).toMatch(/cannot be had from here, it/);
    }
    const refusal = "keyhole: The token is refused: the issuer's keys cannot be had from here.\n";
    expect(said).toEqual(said.map(() => refusal));
    const wanted = `trust add --org acme --name y --issuer k --jwks-file /etc/passwd ${reach.join(" ")}`;
    const file = await atDoor("ana", wanted);
    expect(file.stderr).toContain("A file is read over SSH from stdin only: -");
  });

  test("does not believe the client's environment", async () => {
    const names = "KEYHOLE_ACTOR=root@db1 SUDO_USER=root KEYHOLE_DATA=/tmp/other SSH_ORIGINAL_COMMAND=version";
    const more = "EDITOR=touch LD_PRELOAD=/tmp/x.so BUN_OPTIONS=--preload=/tmp/x.js KEYHOLE_SSH=eve@elsewhere";
    const options = ["-o", `SetEnv=${names} ${more}`];
    const ran = await as("ana", "var set acme/web staging ENVIRONMENT --value x", "", options);
    expect(ran.exitCode).toBe(0);
    const [entry] = (await place.json(["audit", "list", "--limit", "1"])) as { actor: object }[];
    expect(entry?.actor).toEqual({ type: "person", name: "ana", from: "ssh" });
  });

  test("opens nothing else: no shell, no file transfer, no forwarding", async () => {
    const shell = await bastion.ssh("ana", [], "id\n");
    expect(shell).toMatchObject({ exitCode: 2, stdout: "" });
    expect(shell.stderr).toContain("You are ana.");
    const sftp = await bastion.ssh("ana", ["sftp"], "", ["-s"]);
    expect(sftp.exitCode).not.toBe(0);
    const copied = await as("ana", "scp -f /etc/passwd");
    expect(copied).toMatchObject({ stdout: "" });
    expect(copied.exitCode).not.toBe(0);
    const forwarding = ["-o", "ExitOnForwardFailure=yes", "-R", "0:127.0.0.1:22"];
    expect((await as("ana", "org list --json", "", forwarding)).exitCode).toBe(255);
    const direct = await bastion.ssh("ana", [], "", ["-W", "127.0.0.1:22"]);
    expect(direct.stdout).toBe("");
    expect(direct.exitCode).toBe(255);
    const agent = await as("ana", "org list --json", "", ["-A", "-X"]);
    expect(agent.exitCode).toBe(0);
  });

  test("takes a long command whole or not at all, and names no file of its machine", async () => {
    const value = "x".repeat(60_000);
    expect((await as("ana", `var set acme/web staging LONG --value ${value}`)).exitCode).toBe(0);
    expect(await storedIn("staging", "LONG")).toBe(value);
    // Of 1 MiB, which ssh joins.
    const long = Array.from({ length: 11 }, () => "x".repeat(100_000));
    const tooLong = await bastion.ssh("ana", ["var set acme/web staging LONGER --value", ...long]);
    expect(tooLong.exitCode).not.toBe(0);
    expect(await keyhole("var", "list", "acme/web", "staging", "--json")).not.toContain("LONGER");
    for (const line of [
      "var import acme/web staging /etc/passwd",
      "file put acme/web /etc/passwd --path p --env staging",
      `var export acme/web staging --out ${join(bastion.folder, "out")}`,
      `key create --project web --env staging --out=${join(bastion.folder, "out")}`,
      "trust add --name t --issuer https://a.example --audience a --claim sub=1 --project web --env staging --jwks-file /etc/passwd",
    ]) {
      expect([line, (await atDoor("ana", line)).exitCode]).toEqual([line, 2]);
    }
    expect(existsSync(join(bastion.folder, "out"))).toBe(false);
  });

  test("answers two persons at once, each with their own rights", async () => {
    const lines = Array.from({ length: 5 }, (_, n) => `var set acme/web staging AT_ONCE_${n} --value ${n}`);
    const asked = lines.flatMap((line) => ["ana", "ben"].map((person) => atDoor(person, line, "", runBinary)));
    const both = await Promise.all(asked);
    expect(both.map(({ exitCode }) => exitCode)).toEqual(lines.flatMap(() => [0, 4]));
  });

  test("lets nobody in whom the operator removed, nor anybody after SQL changed the persons", async () => {
    await letIn("cyd");
    expect((await as("cyd", "project list --json")).stdout).toBe("[]\n");
    const database = new Database(join(place.env["KEYHOLE_DATA"] as string, "keyhole.db"));
    const saveAs = (table: string) => database.run(`create table ${table} as select * from audit_heads`);
    const putBack = (table: string) => {
      database.run("delete from audit_heads");
      database.run(`insert into audit_heads select * from ${table}`);
    };
    saveAs("earlier");
    await keyhole("person", "revoke", "cyd");
    const gone = await atDoor("cyd", "project list --json");
    expect(gone).toMatchObject({ exitCode: 3, stdout: "" });
    expect(gone.stderr).toContain('"code":"forbidden"');
    saveAs("later");
    putBack("earlier");
    for (const who of ["cyd", "ana"]) {
      const shut = await atDoor(who, "project list --json");
      expect([shut.stdout, shut.stderr]).toEqual(["", expect.stringContaining("failed verification")]);
    }
    const listed = await place.here(["person", "list"]);
    expect([listed.stdout, listed.stderr]).toEqual(["", expect.stringContaining("failed verification")]);
    const verified = await place.here(["audit", "verify"]);
    const unfit = expect.stringContaining("audit_heads does not fit its end");
    expect([verified.exitCode, verified.stderr]).toEqual([1, unfit]);
    putBack("later");
    database.close();
    expect((await atDoor("ana", "project list --json")).exitCode).toBe(0);
  });

  /** Lets in somebody new, with these rights in acme/web. */
  const letIn = async (person: string, right?: string) => {
    await keyhole("person", "add", person);
    if (right) await keyhole("person", "grant", person, right, "--project", "web", "--all-environments");
    bastion.letIn((await place.here(["person", "ssh", person], bastion.keyOf(person))).stdout);
  };

  /** A command on a person's own terminal, with KEYHOLE_SSH. */
  const typed = (person: string, line: string) => {
    const env = { KEYHOLE_SSH: bastion.host, PATH: bastion.path(person), TERM: "xterm" };
    return startOnTerminal([binary, ...line.split(" ")], 200, place.folder, env);
  };

  /** The program on a person's own machine, with KEYHOLE_SSH. */
  const away = (person: string, words: readonly string[], stdin?: string | Uint8Array) =>
    runBinary(words, {
      cwd: place.folder,
      env: { KEYHOLE_SSH: bastion.host, PATH: bastion.path(person), KEYHOLE_DATA: join(place.folder, "none") },
      ...(stdin !== undefined && { stdin }),
    });

  test("is where KEYHOLE_SSH sends people's commands, with local files on stdin", async () => {
    const file = join(place.folder, "local.env");
    writeFileSync(file, 'FROM_FILE=it\'s "so" $HOME\n');
    expect(await away("ana", ["var", "import", "acme/web", "development", file])).toMatchObject({ exitCode: 0 });
    expect(await storedIn("development", "FROM_FILE")).toBe('it\'s "so" $HOME');
    const odd = "a 'b' \"c\" \\ $d `e`\n\té🦔 ";
    expect((await away("ana", ["var", "set", "acme/web", "development", "ODD"], odd)).exitCode).toBe(0);
    expect((await away("ana", ["var", "get", "acme/web", "development", "ODD"])).stdout).toBe(odd);
    expect((await away("ana", ["var", "set", "acme/web", "development", `ODD2`, `--value=${odd}`])).exitCode).toBe(0);
    expect(await storedIn("development", "ODD2")).toBe(odd);
    const put = ["file", "put", "acme/web", file, "--path", "conf/local.env", "--env", "development"];
    expect(await away("ana", put)).toMatchObject({ exitCode: 0 });
    expect(existsSync(join(place.folder, "none"))).toBe(false);
    expect(await away("ben", put)).toMatchObject({ exitCode: 4 });
  });

  test("writes what it is asked for into a local file with mode 0600, and replaces none", async () => {
    const out = join(place.folder, "key.txt");
    const create = ["key", "create", "--project", "web", "--env", "staging", "--out", out];
    const made = await away("ana", create);
    expect(made).toMatchObject({ exitCode: 0, stdout: "" });
    expect(made.stderr).toEndWith(`Environments: staging.\nWrote it to ${out}.\n`);
    expect(readFileSync(out, "utf8")).toMatch(/^\S{30,}\n$/);
    expect(statSync(out).mode & 0o777).toBe(0o600);
    const before = (await place.json(["key", "list"])) as unknown[];
    expect(await away("ana", create)).toMatchObject({ exitCode: 1, stdout: "" });
    const nowhere = [...create.slice(0, -1), join(place.folder, "no-folder", "key.txt")];
    expect(await away("ana", nowhere)).toMatchObject({ exitCode: 1, stdout: "" });
    expect(await away("ana", [...create.slice(0, -1), ""])).toMatchObject({ exitCode: 2, stdout: "" });
    expect(((await place.json(["key", "list"])) as unknown[]).length).toBe(before.length);
    const env = { KEYHOLE_SSH: bastion.host, PATH: `${dirname(binary)}:${bastion.path("ana")}` };
    const closed = await runBinary(["-c", 'keyhole "$@" >&-', "sh", ...create.slice(0, -2)], { program: "bash", env });
    expect(closed).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("nobody would have the key") });
    expect(((await place.json(["key", "list"])) as unknown[]).length).toBe(before.length);
    const printed = await away("ana", [...create.slice(0, -1), "-"]);
    expect(printed.stdout).toMatch(/^kh_\S+\n$/);
    expect(printed.stderr).not.toContain("shown only once");
    const forbidden = ["var", "export", "acme/web", "production", `--out=${join(place.folder, "no.env")}`];
    expect(await away("ana", forbidden)).toMatchObject({ exitCode: 4, stdout: "" });
    expect(existsSync(join(place.folder, "no.env"))).toBe(false);
  });

  test("names only what comes through it in its help", async () => {
    const { stdout } = await atDoor("ana", "help");
    expect(stdout).toMatch(/^ {2}var +Variables/m);
    expect(stdout).not.toMatch(/^ {2}(?:serve|run|backup|completion) |KEYHOLE_ROOT_KEY/m);
    expect((await atDoor("ana", "help audit")).stdout).not.toContain("audit prune");
    // What is named nowhere is refused as such all the same.
    expect((await atDoor("ana", "audit prune")).stderr).toContain("not for people over SSH");
  });

  test("is not asked for what is done elsewhere, and says so", async () => {
    for (const words of ["backup x", "person add eve", "var edit acme/web staging", "org create x"]) {
      const ran = await away("ana", words.split(" "));
      expect([words, ran.exitCode]).toEqual([words, 2]);
      expect(ran.stderr).toContain("does not run over SSH");
    }
    expect((await away("ana", ["version"])).exitCode).toBe(0);
    const listAt = (host: string, person: string) =>
      runBinary(["org", "list"], { env: { KEYHOLE_SSH: host, PATH: bastion.path(person) } });
    expect(await listAt("x@127.0.0.1", "eve")).toMatchObject({ exitCode: 6, stdout: "" });
    expect(await listAt("-oProxyCommand=id", "ana")).toMatchObject({ exitCode: 2, stdout: "" });
  });

  test("asks its questions on the person's own terminal", async () => {
    await away("ana", ["account", "set", "acme/web", "mail", "--env", "development,staging"], '{"user":"a"}');
    const remove = typed("ana", "account delete acme/web mail");
    await remove.ended;
    const set = typed("ana", "var set acme/web staging TYPED");
    expect((await set.answer("Value of TYPED", "typed-here\r")).exitCode).toBe(0);
    expect(await storedIn("staging", "TYPED")).toBe("typed-here");
    const back = typed("ana", "rollback acme/web staging variables --to 2");
    expect((await back.answer("[y/N]", "y\r")).exitCode).toBe(0);
  });

  test("shows nothing more, once the person is removed, to a command that goes on", async () => {
    await letIn("dan", "audit");
    await keyhole("var", "set", "acme/web", "staging", "SEEN", "--value", "x");
    const follow = typed("dan", "audit list --follow");
    await follow.shows("SEEN");
    await keyhole("person", "revoke", "dan");
    await keyhole("var", "set", "acme/web", "staging", "UNSEEN", "--value", "x");
    const { exitCode, screen } = await follow.ended;
    expect(exitCode).toBe(3);
    expect(screen).not.toContain("UNSEEN");
  });

  test("leaves nothing running when the connection ends", async () => {
    const gil = `gil-${crypto.randomUUID()}`; // no other run has a process with this name
    await letIn(gil, "audit");
    const isRunning = () => Bun.spawnSync(["pgrep", "-f", `door --person ${gil}`]).exitCode === 0;
    const ssh = join(bastion.path(gil).split(":")[0] as string, "ssh");
    const client = Bun.spawn([ssh, bastion.host, "audit list --follow"], { stdout: "pipe", stderr: "ignore" });
    await client.stdout.getReader().read();
    expect(isRunning()).toBe(true);
    client.kill();
    await client.exited;
    await eventually(() => !isRunning());
  });

  test("is opened to two persons by the page, line by line", async () => {
    const folder = join(place.folder, "home");
    const env = { HOME: folder, KEYHOLE_DATA: join(folder, ".keyhole") };
    mkdirSync(folder);
    const own = await startBastion(env);
    try {
      for (const person of ["ana", "ben"]) writeFileSync(join(folder, `${person}.pub`), own.keyOf(person));
      const isRun = (comment = "") => /^run by/.test(comment);
      const blocks = blocksOf("docs/team.md").filter((one) => one.language === "sh" && isRun(one.comment));
      const operators = `${join(own.folder, "bin")}:/usr/bin:/bin`;
      const screens: string[] = [];
      for (const { text } of blocks) {
        const isAway = text.includes("keyhole@bastion");
        const person = text.includes("Ben may not") ? "ben" : "ana";
        const PATH = isAway ? `${own.path(person)}:${operators}` : operators;
        const script = text.replaceAll("keyhole@bastion", `${own.user}@bastion`);
        const command = ["bash", "-eu", "-o", "pipefail", "-c", script];
        const ran = await run(command, { cwd: folder, env: { HOME: folder, PATH, ...(!isAway && env) } });
        expect([text, ran]).toEqual([text, expect.objectContaining({ exitCode: 0 })]);
        screens.push(ran.stdout);
        const keys = join(folder, ".ssh/authorized_keys");
        own.letInAll(existsSync(keys) ? readFileSync(keys, "utf8") : "");
      }
      expect(screens[2]).toStartWith("s3cret");
      expect(screens[3]).toContain("Ben may not");
      expect(screens[4]).toContain("ana (ssh)");
      expect(readFileSync(join(folder, "made-up-copy.env"), "utf8")).toContain("GREETING=");
      expect((await own.ssh("ben", ["project list"])).exitCode).toBe(3);
    } finally {
      await own.stop();
    }
  });

  test("lets CI write by the lines of its page, and shows it no name and no value", async () => {
    const folder = join(place.folder, "ci");
    const env = { HOME: folder, KEYHOLE_DATA: join(folder, ".keyhole") };
    mkdirSync(join(folder, ".ssh"), { recursive: true });
    const own = await startBastion(env);
    try {
      writeFileSync(join(folder, "robot.pub"), own.keyOf("robot"));
      writeFileSync(join(folder, "tls.key"), "a key");
      const operators = `${join(own.folder, "bin")}:/usr/bin:/bin`;
      const paste = (text: string, more: Record<string, string>) =>
        run(["bash", "-eu", "-o", "pipefail", "-c", text], { cwd: folder, env: { HOME: folder, ...more } });
      const operator = (text: string) => paste(text, { ...env, PATH: operators });
      const blocks = blocksOf("docs/ci.md").filter(({ comment }) => comment === "run by test/blackbox/door.test.ts");
      const [granting = "", writing = ""] = blocks.map(({ text }) => text);
      const setUp = "keyhole org create acme; keyhole project create acme/web; printf old | keyhole var set";
      expect(await operator(`${setUp} acme/web production SMTP_PASSWORD`)).toMatchObject({ exitCode: 0 });
      expect(await operator(granting)).toMatchObject({ exitCode: 0 });
      own.letInAll(readFileSync(join(folder, ".ssh/authorized_keys"), "utf8"));
      const job = { PATH: `${own.path("robot")}:/usr/bin:/bin`, NEW_PASSWORD: "it's new" };
      const written = await paste(writing.replaceAll("keyhole@bastion", `${own.user}@bastion`), job);
      expect(written).toMatchObject({ exitCode: 0, stdout: "" });
      const stored =
        "keyhole var get acme/web production SMTP_PASSWORD; keyhole file get acme/web tls.key --env production";
      expect((await operator(stored)).stdout).toBe("it's newa key");
      for (const line of [
        ...["var get acme/web production SMTP_PASSWORD", "var list acme/web production", "file list acme/web"],
        ...["history acme/web production", "var set acme/web staging X --value x", "audit list --project acme/web"],
      ]) {
        const refused = await own.ssh("robot", [line]);
        expect([line, refused.exitCode === 0, refused.stdout]).toEqual([line, false, ""]);
        expect(refused.stderr).not.toMatch(/new|SMTP_PASSWORD|tls/);
      }
      const audit = (await operator("keyhole audit list --actor robot --json")).stdout;
      const writes = (JSON.parse(audit) as { action: string; actor: object }[]).map(({ action, actor }) => [
        action,
        actor,
      ]);
      const robot = { type: "person", name: "robot", from: "ssh" };
      expect(writes).toEqual(["variables.write", "files.write"].map((action) => [action, robot]));
    } finally {
      await own.stop();
    }
  });
});
