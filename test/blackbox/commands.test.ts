import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { description, version } from "../../package.json";
import { binary, makePlace, type Place, runBinary } from "../support/keyhole.ts";
import { furnish, type Key, makeSite, onBoth, type Server, type Site } from "../support/server.ts";

setDefaultTimeout(60_000);

/** A run that printed nothing on stdout. */
const outcome = (exitCode: number, stderr: string) => ({ exitCode, stdout: "", stderr });
const id = expect.stringMatching(/^[0-9a-f-]{36}$/);
const time = expect.any(Number);
const isoTime = "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ";

onBoth("people's commands", (dialect) => {
  let place: Site;
  const canary = `canary-${randomBytes(8).toString("hex")}`;
  const said: string[] = [];

  /** Runs the program and keeps what it prints, which must never contain a value. */
  const keyhole: Site["keyhole"] = async (args, stdin) => {
    const ran = await place.keyhole(args, stdin);
    said.push(ran.stdout, ran.stderr);
    return ran;
  };

  beforeAll(async () => {
    place = await makeSite(dialect);
  });
  afterAll(() => place.remove());

  test("an organization is created, put on a plan and listed", async () => {
    const created = await keyhole(["org", "create", "acme", "--name", "Acme Inc."]);
    expect(created).toMatchObject({ exitCode: 0, stdout: "" });
    expect(created.stderr).toEndWith("Created organization acme.\n");
    expect(await keyhole(["org", "create", "acme"])).toEqual(
      outcome(1, "keyhole: The organization acme already exists.\n"),
    );
    expect(await keyhole(["org", "plan", "acme", "free", "--yes"])).toEqual(
      outcome(0, "Organization acme is on plan free.\n"),
    );
    expect(await place.json(["org", "plan", "acme", "pro"])).toMatchObject({ slug: "acme", plan: "pro" });
    expect(await place.json(["org", "list"])).toEqual([
      { id, slug: "acme", name: "Acme Inc.", plan: "pro", createdAt: time },
    ]);
    const listed = await keyhole(["org", "list"]);
    expect(listed).toMatchObject({ exitCode: 0, stderr: "" });
    expect(listed.stdout).toMatch(
      new RegExp(`^SLUG  NAME       PLAN  CREATED\nacme  Acme Inc\\.  pro   ${isoTime}\n$`),
    );
    expect((await keyhole(["org", "plan", "nobody", "pro"])).exitCode).toBe(4);
    expect((await keyhole(["org", "create", "Not A Slug"])).exitCode).toBe(2);
  });

  test("a project is created by its short name while there is one organization, and listed", async () => {
    expect((await keyhole(["project", "list"])).stderr).toStartWith("There are no projects yet:");
    expect(await place.json(["project", "create", "web", "--name", "Web shop"])).toMatchObject({
      id,
      organization: "acme",
      slug: "web",
      name: "Web shop",
    });
    expect(await keyhole(["project", "create", "acme/web"])).toMatchObject({ exitCode: 1, stdout: "" });
    expect((await keyhole(["project", "create", "acme/other"])).stderr).toBe("Created project acme/other.\n");
    expect((await keyhole(["project", "create", "nobody/web"])).exitCode).toBe(4);
    expect((await keyhole(["project", "create", "a/b/c"])).exitCode).toBe(2);
    expect((await keyhole(["project", "list", "acme"])).stdout).toMatch(
      /^PROJECT .*\nacme\/other .*\nacme\/web +Web shop /,
    );
    expect(await place.json(["project", "list"])).toHaveLength(2);
    expect((await keyhole(["project", "list", "nobody"])).exitCode).toBe(4);
  });

  test("a variable takes its value from stdin byte for byte, and no command ever shows it", async () => {
    const set = await keyhole(["var", "set", "acme/web", "production", "DATABASE_URL"], canary);
    expect(set).toEqual({ exitCode: 0, stdout: "", stderr: "Created DATABASE_URL in acme/web, production.\n" });
    const again = await keyhole(["var", "set", "web", "production", "DATABASE_URL"], `${canary}\n`);
    expect(again.stderr).toBe(
      "The value of DATABASE_URL ends in a newline, which is part of it.\nUpdated DATABASE_URL in web, production.\n",
    );
    expect(await place.json(["var", "set", "web", "production", "LEVEL", "--value", ""])).toEqual({
      project: "web",
      environment: "production",
      key: "LEVEL",
      status: "created",
      warnings: [],
    });
    expect(await place.json(["var", "list", "web", "production"])).toEqual([
      { key: "DATABASE_URL", updatedAt: time },
      { key: "LEVEL", updatedAt: time },
    ]);
    const listed = await keyhole(["var", "list", "web", "production"]);
    expect(listed.stdout).toMatch(new RegExp(`^NAME          UPDATED\nDATABASE_URL  ${isoTime}\nLEVEL `));
    expect(await keyhole(["var", "list", "web", "staging"])).toEqual(outcome(0, "web has no variables in staging.\n"));
  });

  test.each<[what: string, name: string, value: string | Uint8Array, exitCode: number, word: string]>([
    ["that is not UTF-8", "BINARY", Buffer.from([0x61, 0xff]), 2, "The value of BINARY is not UTF-8 text."],
    ["with a NUL", "NUL", "a\0b", 2, "The value of NUL holds a NUL character"],
    ["over 64 KiB", "BIG", "x".repeat(65_537), 5, "The value of BIG is larger than 65536 bytes"],
    ["under a name that shells cannot hold", "1A", "x", 2, '"1A" is no variable name'],
  ])("a value %s is refused by name", async (_, name, value, exitCode, word) => {
    const ran = await keyhole(["var", "set", "web", "staging", name], value);
    expect(ran).toMatchObject({ exitCode, stdout: "" });
    expect(ran.stderr).toStartWith(`keyhole: ${word}`);
    expect(await place.json(["var", "list", "web", "staging"])).toEqual([]);
  });

  test("a value of exactly 64 KiB is taken, and deleted again", async () => {
    expect((await keyhole(["var", "set", "web", "staging", "BIG"], "x".repeat(65_536))).exitCode).toBe(0);
    expect(await keyhole(["var", "delete", "web", "staging", "BIG"])).toEqual(
      outcome(0, "Deleted BIG from web, staging.\n"),
    );
    const gone = await keyhole(["var", "delete", "web", "staging", "BIG", "--json"]);
    expect(gone).toMatchObject({ exitCode: 4, stdout: "" });
    expect(JSON.parse(gone.stderr)).toEqual({
      error: 'There is no variable "BIG" in web staging.',
      code: "not_found",
      requestId: null,
    });
  });

  test("a value that is spelled out must have reached the program as it was typed", async () => {
    const refused = await keyhole(["var", "set", "web", "staging", "TOKEN", "--value", "a\ufffdb"]);
    expect(refused).toMatchObject({ exitCode: 2, stdout: "" });
    expect(refused.stderr).toBe("keyhole: --value is not UTF-8 text: give such a value on stdin.\n");
  });

  test("a name that some readers trip over is taken with a warning", async () => {
    const { exitCode, stderr } = await keyhole(["var", "set", "web", "staging", "constructor", "--value", "x"]);
    expect([exitCode, stderr]).toEqual([0, expect.stringMatching(/^constructor is a name .*\.\nCreated constructor /)]);
    expect((await keyhole(["var", "delete", "web", "staging", "constructor"])).exitCode).toBe(0);
  });

  test("a value of nothing is only stored if that is said", async () => {
    const unsaid = await keyhole(["var", "set", "web", "staging", "NOTHING"], "");
    expect(unsaid).toEqual(outcome(2, 'keyhole: Nothing came on stdin: --value "" stores an empty value.\n'));
    writeFileSync(join(place.folder, "empty.env"), "# nothing\n\n");
    for (const file of ["empty.env", "-"]) {
      const what = file === "-" ? "stdin" : file;
      expect(await keyhole(["var", "import", "web", "staging", file], "")).toEqual(
        outcome(2, `keyhole: ${what} holds no variables; --allow-empty accepts that.\n`),
      );
    }
    expect(await place.json(["var", "list", "web", "staging"])).toEqual([]);
    const accepted = await keyhole(["var", "import", "web", "staging", "empty.env", "--allow-empty"]);
    expect(accepted).toEqual(outcome(0, "Imported 0 variables: 0 created, 0 updated.\n"));
    const said = await keyhole(["var", "set", "web", "staging", "NOTHING", "--value", ""]);
    expect(said).toEqual(outcome(0, "The value of NOTHING is empty.\nCreated NOTHING in web, staging.\n"));
    expect((await keyhole(["var", "delete", "web", "staging", "NOTHING"])).exitCode).toBe(0);
  });

  test("an import names the variables that machines will refuse", async () => {
    const ran = await keyhole(["var", "import", "web", "staging", "-"], "A=1\nLD_PRELOAD=/x.so\nNODE_OPTIONS=-r x\n");
    const warning = (line: number, name: string) =>
      `stdin: line ${line}: ${name} steers loaders, runtimes, shells or CI: \`run\` and \`pull\` refuse it without --allow-name ${name}\n`;
    const imported = "Imported 3 variables: 3 created, 0 updated.\n";
    expect(ran).toEqual(outcome(0, `${warning(2, "LD_PRELOAD")}${warning(3, "NODE_OPTIONS")}${imported}`));
    for (const name of ["A", "LD_PRELOAD", "NODE_OPTIONS"]) await place.json(["var", "delete", "web", "staging", name]);
  });

  test("an import is whole or nothing", async () => {
    writeFileSync(join(place.folder, "good.env"), `A=1\nB="two\\nlines ${canary}"\nexport C='x'\n`);
    writeFileSync(join(place.folder, "bad.env"), `A=2\nD=${canary}\nnot an assignment ${canary}\n2E=1\n`);
    expect(await place.json(["var", "import", "web", "development", "good.env"])).toEqual({
      project: "web",
      environment: "development",
      created: 3,
      updated: 0,
      warnings: [],
    });
    const bad = await keyhole(["var", "import", "web", "development", "bad.env"]);
    expect(bad).toMatchObject({ exitCode: 2, stdout: "" });
    expect(bad.stderr).toMatch(/^keyhole: bad\.env: line 3.*\nbad\.env: line 4.*\nNothing was imported\.\n$/);
    expect(await place.json(["var", "list", "web", "development"])).toEqual(
      ["A", "B", "C"].map((key) => ({ key, updatedAt: time })),
    );
    expect((await keyhole(["var", "import", "web", "development", "-"], "A=3\n")).stderr).toBe(
      "Imported 1 variable: 0 created, 1 updated.\n",
    );
    expect(await keyhole(["var", "import", "web", "development", "missing.env"])).toEqual(
      outcome(1, "keyhole: missing.env cannot be read: there is no such file.\n"),
    );
    expect((await keyhole(["var", "import", "web", "development", "."])).exitCode).toBe(1);
  });

  test("an account takes one JSON object of strings, and nothing else", async () => {
    const values = JSON.stringify({ user: "ci", password: canary });
    expect(await keyhole(["account", "set", "web", "stripe", "--env", "staging,production"], values)).toEqual(
      outcome(0, "Account stripe created in web for staging, production.\n"),
    );
    for (const wrong of [canary, `["${canary}"]`, `{"a":1}`, `{"a":"x","\\u0061":"${canary}"}`, "{}", ""]) {
      const ran = await keyhole(["account", "set", "web", "other", "--env", "staging"], wrong);
      expect(ran).toMatchObject({ exitCode: 2, stdout: "" });
    }
    expect(await place.json(["account", "list", "web"])).toEqual([
      { name: "stripe", environments: ["staging", "production"], updatedAt: time },
    ]);
    expect((await keyhole(["account", "list", "web"])).stdout).toMatch(/^NAME .*\nstripe {2}staging,production {2}2/);
    expect((await keyhole(["account", "delete", "web", "stripe"])).stderr).toBe("Deleted account stripe from web.\n");
    expect((await keyhole(["account", "delete", "web", "stripe"])).exitCode).toBe(4);
  });

  test("a file is stored from disk or stdin, listed without content, and deleted by environment", async () => {
    writeFileSync(join(place.folder, "local.pem"), canary);
    const put = ["file", "put", "web", "local.pem", "--path", "tls/key.pem"];
    expect(await place.json([...put, "--env", "staging,production", "--mode", "0400"])).toEqual({
      id,
      path: "tls/key.pem",
      size: canary.length,
      sha256: new Bun.CryptoHasher("sha256").update(canary).digest("hex"),
      environments: ["staging", "production"],
      created: true,
    });
    const piped = await keyhole(
      ["file", "put", "web", "-", "--path", "a/b", "--env", "production", "--name", "B"],
      canary,
    );
    expect(piped.stderr).toBe(`Stored a/b (${canary.length} bytes) in web for production.\n`);
    expect((await keyhole(["file", "list", "web"])).stdout).toMatch(/^PATH .*\na\/b .*\ntls\/key\.pem {2}0400 /);
    expect(await place.json(["file", "list", "web"])).toMatchObject([
      { path: "a/b", name: "B", mode: "0600", contentType: "application/octet-stream" },
      { path: "tls/key.pem", mode: "0400", environments: ["staging", "production"] },
    ]);
    expect((await keyhole([...put.slice(0, -1), "../up", "--env", "staging"])).exitCode).toBe(2);
    expect((await keyhole([...put, "--env", "staging", "--mode", "0644"])).exitCode).toBe(2);
    expect((await keyhole(put)).stderr).toContain("required option '--env <list>' not specified");
    const large = await keyhole(
      ["file", "put", "web", "-", "--path", "l", "--env", "staging"],
      Buffer.alloc(8_388_609),
    );
    expect(large).toMatchObject({ exitCode: 5, stdout: "" });
    expect((await keyhole(["file", "delete", "web", "tls/key.pem", "--env", "staging"])).exitCode).toBe(0);
    expect((await keyhole(["file", "delete", "web", "tls/key.pem", "--env", "staging"])).exitCode).toBe(4);
  });

  test("a key is printed once, alone on stdout, and afterwards only described", async () => {
    const made = await keyhole(
      "key create --org acme --name ci --project web --all-environments --expires-in 90d".split(" "),
    );
    expect(made.exitCode).toBe(0);
    expect(made.stdout).toMatch(/^kh_[0-9A-Za-z]{49}\n$/);
    expect(made.stderr).toMatch(/^Created key [0-9a-f-]{36} \(ci\) for acme; it expires .*\n.*shown only once/s);
    expect(made.stderr).not.toContain("kh_");
    const json = await place.json(
      "key create --all-projects --env staging --resource files --surface ci_action".split(" "),
    );
    expect(json).toMatchObject({
      id,
      key: expect.stringMatching(/^kh_[0-9A-Za-z]{49}$/),
      organization: "acme",
      surfaces: ["ci_action"],
      resources: ["files"],
      projects: null,
      environments: ["staging"],
      expiresAt: null,
      status: "active",
    });
    const keys = (await place.json(["key", "list"])) as { id: string; name: string; projects: string[] | null }[];
    expect(keys.map(({ projects }) => projects)).toEqual([["web"], null]);
    expect(JSON.stringify(keys)).not.toContain("kh_");
    const first = keys[0]?.id ?? "";
    const [, short = ""] =
      /^ID .*\n([0-9a-f-]{8,35}) {2}ci /.exec((await keyhole(["key", "list", "--org", "acme"])).stdout) ?? [];
    expect(first).toStartWith(short);
    expect(await place.json(["key", "show", short])).toMatchObject({ id: first });
    // Ids begin with the time: in these 8 digits a key is like the one before it or like the one after it.
    await place.key("--name", "third");
    const alike = keys[1]?.id.slice(0, 8) ?? "";
    const several = await keyhole(["key", "revoke", alike]);
    expect(several).toEqual(outcome(4, `keyhole: Several keys begin with ${alike}: give more of the id.\n`));
    expect((await keyhole(["key", "show", short])).stdout).toMatch(/^ID .*\nNAME +ci\nORG +acme\nSTATUS +active\n/);
    expect((await keyhole(["key", "revoke", short])).stderr).toBe(`Revoked key ${first} (ci) of acme.\n`);
    expect(await place.json(["key", "show", first])).toMatchObject({ status: "revoked", revokedAt: time });
    expect((await keyhole(["key", "revoke", "nothing"])).exitCode).toBe(4);
    expect((await keyhole(["key", "create", "--project", "nothing", "--all-environments"])).exitCode).toBe(4);
    expect((await keyhole(["key", "create", "--expires-in", "soon"])).exitCode).toBe(2);
    const forever = await keyhole(["key", "create", "--project", "web", "--env", "staging"]);
    expect(forever.stderr).toContain("; it never expires.\n");
  });

  test.each([
    ["", "--project with a list, or --all-projects"],
    ["--all-environments", "--project with a list, or --all-projects"],
    ["--project web --all-projects --env staging", "--project with a list, or --all-projects"],
    ["--project web", "--env with a list, or --all-environments"],
    ["--all-projects --env staging --all-environments", "--env with a list, or --all-environments"],
  ])("a key with the reach %j is not created", async (options, either) => {
    const before = await place.json(["key", "list"]);
    const args = options.split(" ").filter((word) => word !== "");
    expect(await keyhole(["key", "create", "--org", "acme", ...args])).toEqual(
      outcome(2, `keyhole: Say what it reaches: either ${either}.\n`),
    );
    expect(await place.json(["key", "list"])).toEqual(before);
  });

  test.each([
    ["a full disk", '"$0" "$@" > /dev/full', /^keyhole: The output could not be written \(ENOSPC\)\. /],
    ["a reader that has gone", 'exec 3> >(:); wait $!; "$0" "$@" >&3', /^keyhole: Nobody reads the output\. /],
  ])("a key whose text %s took is revoked, a rotated one too", async (_, script, reason) => {
    const old = await place.key("--name", "to be rotated");
    const before = (await place.json(["key", "list"])) as { id: string }[];
    const run = (...args: string[]) => runBinary(args, { as: ["bash", "-c", script], env: place.env });
    const create = ["create", "--all-projects", "--all-environments"];
    for (const args of [create, [...create, "--json"], ["rotate", old.id]]) {
      const { exitCode, stderr } = await run("key", ...args);
      expect(exitCode).toBe(1);
      if (args.includes("--json")) expect(JSON.parse(stderr)).toMatchObject({ code: "unwritable" });
      else expect(stderr).toMatch(reason);
      expect(stderr).toMatch(/ The new key [0-9a-f-]{36} was revoked, because nobody has its text\./);
    }
    const after = (await place.json(["key", "list"])) as { id: string; status: string }[];
    const made = after.filter(({ id }) => !before.some((one) => one.id === id));
    expect(made.map(({ status }) => status)).toEqual(["revoked", "revoked", "revoked"]);
  });

  test("they work beside a running server, and list what it returned", async () => {
    const server = await place.serve();
    const { key, id: keyId } = await place.key();
    const read = () => server.get("/projects/web/variables?environment=staging", key);
    expect((await read()).json()).toMatchObject({ variables: [] });
    expect((await keyhole(["var", "set", "web", "staging", "LATE"], `${canary}\n`)).exitCode).toBe(0);
    expect((await read()).json()).toMatchObject({ variables: [{ key: "LATE", value: `${canary}\n` }] });
    const entries = await place.json(["audit", "list", "--key", keyId, "--since", "1h"]);
    expect(entries).toMatchObject([
      { action: "key.create", names: [keyId] },
      { action: "variables.read", names: [] },
      { action: "variables.read", names: ["LATE"] },
    ]);
    const list = ["audit", "list", "--org", "acme", "--limit", "1"];
    const last = await keyhole([...list, "--wide"]);
    const [, short = ""] =
      /^TIME .*\n\S+ +key .* variables\.read +staging +LATE +web +(\S+) .*\n$/.exec(last.stdout) ?? [];
    expect([short.length < 36, keyId.startsWith(short)]).toEqual([true, true]);
    const filter = ["--project", "acme/web", "--key", short, "--action", "variables.read,file.read"];
    expect(await place.json(["audit", "list", ...filter])).toEqual((entries as unknown[]).slice(1));
    expect((await keyhole(["audit", "export", ...filter])).stdout.split("\n")).toHaveLength(3);
    expect(await place.json(["audit", "list", "--action", "accounts.read"])).toEqual([]);
    for (const [option, word, exitCode] of [
      ["--org", "nobody", 4],
      ["--project", "none", 4],
      ["--key", "ffffffff", 4],
      ["--action", "variables.wrote", 2],
    ] as const) {
      const refused = await keyhole(["audit", "list", option, word]);
      expect([option, refused.exitCode, refused.stdout]).toEqual([option, exitCode, ""]);
    }
    const narrow = await keyhole(list);
    expect(narrow.stdout).toMatch(
      /^TIME +ACTOR +ACTION +ENVIRONMENT +NAMES.*\n\S+ +key .* variables\.read +staging +LATE.*\n$/,
    );
    expect(narrow.stderr).toMatch(/^--wide shows \d more columns?\.\n$/);
    expect(await server.stop()).toBe(0);
  });

  test("a project goes with all that it holds", async () => {
    const asked = await keyhole(["project", "delete", "acme/web"]);
    expect(asked).toMatchObject({ exitCode: 2, stdout: "" });
    expect(asked.stderr).toMatch(
      /^keyhole: This would delete project acme\/web with 6 variables, 0 accounts and 2 files, for good, and cut off key .*\. Nobody can be asked here, so it needs --yes\.\n$/,
    );
    expect((await keyhole(["project", "delete", "acme/none"])).exitCode).toBe(4);
    expect(await place.json(["project", "delete", "acme/web", "--yes"])).toEqual({
      project: "acme/web",
      deleted: true,
      variables: 6,
      accounts: 0,
      files: 2,
    });
    expect(await keyhole(["var", "list", "web", "staging"])).toEqual(
      outcome(4, 'keyhole: There is no project "web".\n'),
    );
  });

  test("a project takes another slug, and the keys that list the old one are named", async () => {
    await place.json(["var", "set", "other", "staging", "KEPT"], canary);
    const listing = await place.key("--name", "listing", "--project", "other");
    const every = await place.key("--name", "every");
    expect((await keyhole(["project", "rename", "other", "Not A Slug"])).exitCode).toBe(2);
    expect((await keyhole(["project", "rename", "none", "shop"])).exitCode).toBe(4);
    expect(await keyhole(["project", "rename", "other", "shop", "--name", "Shop", "--yes"])).toEqual(
      outcome(
        0,
        `Renamed project acme/other to acme/shop.\nCut off, because they list it as other: key ${listing.id} (listing). Create new ones.\n`,
      ),
    );
    const server = await place.serve();
    const statuses = async (key: string) => {
      const paths = ["other", "shop"].map((slug) => `/projects/${slug}/variables?environment=staging`);
      return Promise.all(paths.map(async (path) => (await server.get(path, key)).status));
    };
    expect(await statuses(every.key)).toEqual([404, 200]);
    expect(await statuses(listing.key)).toEqual([404, 404]);
    expect((await server.get("/projects", listing.key)).json()).toEqual({ projects: [] });
    expect(await server.stop()).toBe(0);
    await place.json(["project", "create", "acme/taken"]);
    expect(await keyhole(["project", "rename", "taken", "shop"])).toEqual(
      outcome(1, "keyhole: The project acme/shop exists already.\n"),
    );
    expect(await place.json(["project", "rename", "shop", "other", "--yes"])).toMatchObject({
      slug: "other",
      name: "Shop",
    });
  });

  test("an organization goes with its projects and keys, and its audit entries stay", async () => {
    await place.json(["org", "create", "gone"]);
    await place.json(["project", "create", "gone/web"]);
    await place.json(["var", "set", "gone/web", "staging", "TOKEN"], canary);
    const { key } = await place.key("--org", "gone");
    const server = await place.serve();
    expect((await server.get("/projects/web/variables?environment=staging", key)).status).toBe(200);
    const before = (await place.audit()).length;
    expect(await keyhole(["org", "delete", "gone"])).toEqual(
      outcome(
        2,
        "keyhole: This would delete organization gone with 1 project and 1 key, for good. Nobody can be asked here, so it needs --yes.\n",
      ),
    );
    expect(await keyhole(["org", "delete", "gone", "--yes"])).toEqual(
      outcome(0, "Deleted organization gone with 1 project and 1 key.\n"),
    );
    expect((await server.get("/organization", key)).status).toBe(401);
    expect(await server.stop()).toBe(0);
    expect(await place.audit()).toHaveLength(before);
    expect((await keyhole(["org", "delete", "gone", "--yes"])).exitCode).toBe(4);
    expect(await place.json(["org", "list"])).toMatchObject([{ slug: "acme" }]);
  });

  test("earlier versions are listed, compared, written again and removed", async () => {
    await place.json(["project", "create", "undo"]);
    for (const name of ["A", "B"]) await keyhole(["var", "set", "undo", "production", name], `${canary} ${name}`);
    await keyhole(["var", "delete", "undo", "production", "A"]);
    const listed = await keyhole(["history", "undo", "production"]);
    expect(listed.stdout).toMatch(
      new RegExp(
        `^VERSION  WRITTEN +CHANGES +ACTOR\n4 +${isoTime}  deleted A .*\n3 .*added B .*\n2 .*added A .*\n1 .*no changes .*\n$`,
      ),
    );
    for (const line of listed.stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
    expect(listed.stderr).toBe(
      "Kept: 3 earlier versions, 0.1 MiB of at most 64 MiB (KEYHOLE_HISTORY_MIB), and always the last two.\n",
    );
    const actor = { type: "person", name: expect.any(String) };
    const first = { version: 1, at: time, actor, added: [], changed: [], deleted: [] };
    expect(await place.json(["history", "undo", "production", "files"])).toEqual([first]);
    expect(await place.json(["var", "diff", "undo", "production", "--version", "3"])).toEqual([
      { key: "A", status: "missing" },
    ]);
    expect((await keyhole(["var", "diff", "undo", "production", "--version", "3"])).stdout).toMatch(
      /^NAME {2}DIFFERENCE\nA +only in version 3\n$/,
    );
    for (const args of [[], ["staging", "--version", "3"]]) {
      expect(await keyhole(["var", "diff", "undo", "production", ...args])).toEqual(
        outcome(2, "keyhole: var diff: name another environment or give --version, one of the two.\n"),
      );
    }
    const rollback = ["rollback", "undo", "production", "variables", "--to"];
    expect(await keyhole([...rollback, "2"])).toEqual(
      outcome(
        2,
        "keyhole: This would roll the variables of undo in production back from version 4 to 2: add A; delete B. Nobody can be asked here, so it needs --yes.\n",
      ),
    );
    expect(await keyhole([...rollback, "2", "--yes"])).toEqual(
      outcome(
        0,
        "Rolled the variables of undo in production back to version 2: added A; deleted B. This is version 5.\n",
      ),
    );
    expect((await place.keyhole(["var", "get", "undo", "production", "A"])).stdout).toBe(`${canary} A`);
    expect(await keyhole([...rollback, "5", "--yes"])).toEqual(
      outcome(2, "keyhole: Version 5 is the current version: nothing was changed.\n"),
    );
    expect((await keyhole([...rollback, "6", "--yes"])).exitCode).toBe(4);
    expect(await place.json([...rollback, "3", "--yes"])).toEqual({
      ...{ project: "undo", environment: "production", kind: "variables" },
      ...{ from: 5, to: 3, added: ["B"], changed: [], deleted: [], version: 6, warnings: [] },
    });
    const purge = ["history", "purge", "undo", "production", "variables"];
    expect(await keyhole(purge)).toEqual(
      outcome(
        2,
        "keyhole: This would remove all earlier versions of the variables of undo in production, for good. Nobody can be asked here, so it needs --yes.\n",
      ),
    );
    expect(await place.json([...purge, "--yes"])).toMatchObject({ kind: "variables", removed: 5 });
    expect(await place.json(["history", "undo", "production"])).toEqual([{ ...first, version: 6, added: ["B"] }]);
    expect((await keyhole([...rollback, "3", "--yes"])).exitCode).toBe(4);
    const seen = await keyhole(["audit", "list", "--project", "undo", "--action", "variables.rollback,history.purge"]);
    const actions = [...seen.stdout.matchAll(/variables\.rollback|history\.purge/g)].map(([action]) => action);
    expect(actions).toEqual(["variables.rollback", "variables.rollback", "history.purge"]);
    await place.json(["project", "delete", "undo", "--yes"]);
  });

  test("a short project name is refused once there are several organizations", async () => {
    await place.json(["org", "create", "globex"]);
    const ran = await keyhole(["var", "list", "other", "staging", "--json"]);
    expect(ran).toMatchObject({ exitCode: 2, stdout: "" });
    expect(JSON.parse(ran.stderr)).toMatchObject({ code: "ambiguous", requestId: null });
  });

  test("nothing that was said held a value", () => {
    expect(said.length).toBeGreaterThan(100);
    for (const text of said) expect(text).not.toContain(canary);
  });
});

describe("the program", () => {
  let place: Place;
  beforeAll(() => {
    place = makePlace();
  });
  afterAll(() => place.remove());

  test("says its version, in any of its ways", async () => {
    for (const args of [["version"], ["--version"], ["-V"]]) {
      expect(await place.keyhole(args)).toEqual({ exitCode: 0, stdout: `keyhole ${version}\n`, stderr: "" });
      expect(await place.json(args)).toEqual({ name: "keyhole", version });
    }
  });

  test("alone shows its help on stderr, as wrong usage", async () => {
    const ran = await place.keyhole([]);
    expect(ran).toMatchObject({ exitCode: 2, stdout: "" });
    expect(ran.stderr.replaceAll("\n", " ")).toContain(description);
    expect(JSON.parse((await place.keyhole(["--json"])).stderr)).toMatchObject({ code: "invalid_usage" });
  });

  test("shows help wherever it is asked for, on stdout", async () => {
    const help = await place.keyhole(["key", "create", "--help"]);
    expect(help).toMatchObject({ exitCode: 0, stderr: "" });
    expect(help.stdout).toStartWith("Usage: keyhole key create [options]\n");
    expect(await place.keyhole(["help", "key", "create"])).toEqual(help);
    expect(await place.keyhole(["-h", "key", "create"])).toEqual(help);
    expect(await place.keyhole(["--help", "var"])).toEqual(await place.keyhole(["var", "--help"]));
    expect(await place.json(["key", "create", "-h"])).toEqual({ help: help.stdout });
    for (const args of [["--help"], ["help"], ["key", "--help"], ["help", "key"]]) {
      expect(await place.keyhole(args)).toMatchObject({ exitCode: 0, stderr: "" });
    }
  });

  test.each<[args: string[], sentence: string]>([
    // No suggestion: what resembles a command that reads may be one that writes.
    [
      ["key", "lst"],
      "key: unknown command 'lst': the commands are create, list, show, revoke, rotate. See 'keyhole key --help'.",
    ],
    [
      ["key", "list", "--orgg", "x"],
      "key list: unknown option '--orgg'. Did you mean --org? See 'keyhole key list --help'.",
    ],
    [["org", "create"], "org create: missing required argument 'slug'. See 'keyhole org create --help'."],
    [["version", "now"], "version: there are too many arguments. See 'keyhole version --help'."],
    [
      ["key", "create", "--env", "prod"],
      "key create: --env cannot be 'prod': it takes a list of development, staging, production. See 'keyhole key create --help'.",
    ],
    [
      ["pull", "-e", "prod"],
      "pull: --env cannot be 'prod': it is one of development, staging, production. See 'keyhole pull --help'.",
    ],
    [
      ["var", "list", "web", "prod"],
      "var list: ENV is one of development, staging, production. See 'keyhole var list --help'.",
    ],
  ])("tells %j what is wrong, in words and in JSON, and touches no database", async (args, sentence) => {
    expect(await place.keyhole(args)).toEqual({ exitCode: 2, stdout: "", stderr: `keyhole: ${sentence}\n` });
    for (const wanted of [
      [...args, "--json"],
      ["--json", ...args],
    ]) {
      const ran = await place.keyhole(wanted);
      expect(ran).toMatchObject({ exitCode: 2, stdout: "" });
      expect(JSON.parse(ran.stderr)).toEqual({ error: sentence, code: "invalid_usage", requestId: null });
    }
    expect(() => statSync(join(place.folder, "data"))).toThrow();
  });

  test("never repeats a word that stands where none belongs: it may be a secret", async () => {
    for (const args of [
      ["var", "set", "web", "staging", "TOKEN", "s3cret"],
      ["var", "set", "web", "s3cret", "TOKEN"],
    ]) {
      for (const more of [[], ["--json"]]) {
        const ran = await place.keyhole([...args, ...more]);
        expect(ran).toMatchObject({ exitCode: 2, stdout: "" });
        expect(ran.stderr).not.toContain("s3cret");
      }
    }
  });

  test("reports a new root key in its one line of JSON if the command then fails", async () => {
    const fresh = makePlace();
    const ran = await fresh.keyhole(["org", "create", "Not A Slug", "--json"]);
    fresh.remove();
    expect(ran).toMatchObject({ exitCode: 2, stdout: "" });
    expect(JSON.parse(ran.stderr)).toMatchObject({ code: "invalid", notes: [expect.stringContaining("ROOT KEY")] });
  });

  test("ends without a word if its reader has gone", async () => {
    const script = `"${binary}" completion bash | true; exit "\${PIPESTATUS[0]}"`;
    const child = Bun.spawn(["bash", "-c", script], {
      env: place.env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    expect([await child.exited, await child.stderr.text()]).toEqual([0, ""]);
  });

  test("reports that its output cannot be written", async () => {
    const child = Bun.spawn(["sh", "-c", `"${binary}" version > /dev/full`], { env: place.env, stderr: "pipe" });
    expect([await child.exited, await child.stderr.text()]).toEqual([
      1,
      "keyhole: The output could not be written (ENOSPC).\n",
    ]);
  });

  test("lets bash complete commands, options and values, and runs nothing that stands on the line", async () => {
    const script = `PATH="${dirname(binary)}:$PATH"; source <(keyhole completion bash)
      words() { COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _keyhole; echo "\${COMPREPLY[*]}"; }
      words keyhole ke; words keyhole key ""; words keyhole key create --e
      words keyhole key create --env dev; words keyhole var set acme/web st; words keyhole --json org plan x ""
      words keyhole var set web staging A --value '$(touch ran)' --js; ls ran`;
    const child = Bun.spawn(["bash", "-c", script], {
      cwd: place.folder,
      env: place.env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "ignore",
    });
    expect((await child.stdout.text()).trimEnd().split("\n")).toEqual([
      "key",
      "create list show revoke rotate",
      "--env --expires-in",
      "development",
      "staging",
      "free pro",
      "--json",
    ]);
  });
});

describe("names that would steer a terminal", () => {
  let place: Place;
  const evil = "\x1b]0;owned\x07\x9b31m\u202egpj\u200b.exe\r\n";
  const shown = "\\u001b]0;owned\\u0007\\u009b31m\\u202egpj\\u200b.exe\\u000d\\u000a";
  const raw = /(?!\n)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

  beforeAll(async () => {
    place = makePlace();
    await place.json(["org", "create", "acme"]);
    await place.json(["project", "create", "web"]);
    await place.json(["key", "create", "--all-projects", "--all-environments"]);
    // The commands refuse such names: these came by another way.
    const file = new Database(join(place.env["KEYHOLE_DATA"] ?? "", "keyhole.db"));
    for (const table of ["organizations", "projects", "api_keys"]) file.run(`UPDATE ${table} SET name = ?`, [evil]);
    file.close();
  });
  afterAll(() => place.remove());

  test.each(["org", "project", "key"])("are shown harmlessly by %s list", async (noun) => {
    const args = [noun, "list"];
    const { stdout } = await place.keyhole(args);
    expect(stdout).toContain(shown);
    expect(stdout).not.toMatch(raw);
    const json = await place.keyhole([...args, "--json"]);
    expect(json.stdout).not.toMatch(raw);
    expect(JSON.parse(json.stdout)).toMatchObject([{ name: evil }]);
  });

  test("are shown harmlessly on a terminal too", async () => {
    const { screen } = await place.onTerminal(["project", "list"], 300).ended;
    expect(screen).toContain(shown);
    expect(screen.replaceAll("\r\n", "\n")).not.toMatch(raw);
  });

  test("are shown harmlessly where an argument is repeated", async () => {
    const { stderr } = await place.keyhole(["project", "create", `acme/${evil}`]);
    expect(stderr).toStartWith("keyhole: ");
    expect(stderr).not.toMatch(raw);
  });
});

describe("on a terminal", () => {
  let place: Site;
  let server: Server;
  let key: Key;
  const prompt = "Enter ends it): ";
  const set = ["var", "set", "web", "production", "TOKEN"];

  beforeAll(async () => {
    place = await furnish(await makeSite("sqlite"));
    key = await place.key("--resource", "variables,accounts");
    server = await place.serve();
  });
  afterAll(() => place.remove());

  const read = async (path: string) => (await server.get(`/projects/web/${path}`, key.key)).json();
  const token = async () => (await read("variables?environment=production&keys=TOKEN")) as object;

  test.each([
    ["a word", "hunter2\r", "hunter2"],
    ["a corrected word", "wr\x7f\x7fhünter2\r", "hünter2"],
    ["a word with Ctrl-Z, which does not suspend", "hun\x1ater2\r", "hunter2"],
    ["a paste of several lines", "\x1b[200~-----BEGIN-----\rabc\r\x1b[201~\r", "-----BEGIN-----\nabc\n"],
    ["a paste of 20,000 characters", `\x1b[200~${"p".repeat(20_000)}\x1b[201~\r`, "p".repeat(20_000)],
  ])("%s is stored as it was typed, and the screen never shows it", async (_, keys, value) => {
    const terminal = place.onTerminal(set);
    await terminal.shows(prompt);
    terminal.type(keys);
    const { exitCode, screen } = await terminal.ended;
    expect(exitCode).toBe(0);
    expect(screen).not.toContain(value.slice(-4));
    expect(await token()).toMatchObject({ variables: [{ key: "TOKEN", value }] });
  });

  test.each([
    ["Ctrl-C", "half\x03", 130],
    ["Enter alone", "\r", 2],
    ["Ctrl-D", "\x04", 2],
    ["a paste that the terminal did not mark", "one\ntwo\n", 2],
    ["a paste with a control character", "\x1b[200~one\x15two\x1b[201~\r", 2],
    ["a paste with an escape sequence", "\x1b[200~one\x1b[31mtwo\x1b[201~\r", 2],
  ])("%s stores nothing", async (_, keys, expected) => {
    await place.keyhole(set, "before");
    const terminal = place.onTerminal(set);
    await terminal.shows(prompt);
    terminal.type(keys);
    const { exitCode, screen } = await terminal.ended;
    expect(exitCode).toBe(expected);
    expect(screen).toEndWith(".\r\n"); // the terminal is back to turning LF into CR LF
    expect(await token()).toMatchObject({ variables: [{ value: "before" }] });
  });

  test("SIGTERM at the prompt leaves the terminal as it was", async () => {
    const terminal = place.onTerminal(set);
    await terminal.shows(prompt);
    terminal.kill("SIGTERM");
    const { exitCode, screen } = await terminal.ended;
    expect(exitCode).toBe(143);
    expect(screen).toEndWith("\x1b[?2004l\r\nkeyhole: Interrupted: nothing was written.\r\n");
  });

  test.each([
    ["y\r", 0],
    ["yes\r", 0],
    ["\r", 1],
    ["n\r", 1],
    ["yess\r", 1],
    ["\x04", 1],
    ["\x03", 130],
  ])("a project is deleted only if the answer is yes, which %j ends with %d", async (keys, expected) => {
    await place.json(["project", "create", "acme/doomed"]);
    const terminal = place.onTerminal(["project", "delete", "doomed"], 200);
    await terminal.shows(
      "This will delete project acme/doomed with 0 variables, 0 accounts and 0 files, for good. Go on?",
    );
    terminal.type(keys);
    const { exitCode, screen } = await terminal.ended;
    expect(exitCode).toBe(expected);
    const slugs = ((await place.json(["project", "list"])) as { slug: string }[]).map(({ slug }) => slug);
    expect(slugs.includes("doomed")).toBe(expected !== 0);
    if (expected === 0) return expect(screen).toContain("Deleted project doomed");
    expect(screen).toMatch(/\r\nkeyhole: (Nothing was changed|Interrupted: nothing was written)\.\r\n$/);
    await place.json(["project", "delete", "doomed", "--yes"]);
  });

  test("a program that asks for JSON is not asked, even on a terminal", async () => {
    const { exitCode, screen } = await place.onTerminal(["project", "delete", "web", "--json"], 300).ended;
    expect([exitCode, screen]).toEqual([2, expect.stringMatching(/^\{"error":"This would delete .*--yes\.".*\}\r\n$/)]);
  });

  test("an account is typed as JSON", async () => {
    const terminal = place.onTerminal(["account", "set", "web", "stripe", "--env", "production"]);
    await terminal.shows(prompt);
    terminal.type('{"user":"ci","password":"hunter2"}\r');
    const { exitCode, screen } = await terminal.ended;
    expect(exitCode).toBe(0);
    expect(screen).not.toContain("hunter2");
    expect(await read("accounts?environment=production")).toMatchObject({
      accounts: [{ name: "stripe", values: { user: "ci", password: "hunter2" } }],
    });
  });

  test("what would be shown while it is typed is not read from a terminal", async () => {
    const { exitCode, screen } = await place.onTerminal(["var", "import", "web", "staging", "-"]).ended;
    expect([exitCode, screen]).toEqual([2, expect.stringMatching(/^keyhole: Stdin is a terminal/)]);
  });

  test("an import that takes an environment past 1000 variables succeeds with a warning", async () => {
    const lines = Array.from({ length: 2000 }, (_, at) => `NAME_${at}=value`);
    writeFileSync(join(place.folder, "many.env"), lines.join("\n"));
    const { exitCode, screen } = await place.onTerminal(["var", "import", "web", "staging", "many.env"], 300).ended;
    expect(exitCode).toBe(0);
    expect(screen).toMatch(
      /^web has 2000 variables in staging, .*\r\nImported 2000 variables: 2000 created, 0 updated\.\r\n$/,
    );
  });

  test("a secret is its exact bytes on a pipe, and comes with a warning on a terminal", async () => {
    const value = "two\nlines\n\u001b[31m";
    await place.keyhole(["var", "set", "web", "production", "SEEN"], value);
    const get = ["var", "get", "web", "production", "SEEN"];
    expect(await place.keyhole(get)).toEqual({ exitCode: 0, stdout: value, stderr: "" });
    expect(await place.json(get)).toEqual({ project: "web", environment: "production", key: "SEEN", value });
    const { exitCode, screen } = await place.onTerminal(get).ended;
    expect(exitCode).toBe(0);
    expect(screen).toStartWith("two\r\nlines\r\n\\u001b[31m\r\nThe value of SEEN is on this screen now");
    const account = ["account", "get", "web", "stripe"];
    expect(JSON.parse((await place.keyhole(account)).stdout)).toEqual({ user: "ci", password: "hunter2" });
    expect((await place.keyhole(["var", "get", "web", "production", "ABSENT"])).exitCode).toBe(4);
    const seen = (await place.json(["audit", "list"])) as { action: string; names: string[] }[];
    expect(seen.filter(({ action }) => action.endsWith(".reveal")).map(({ names }) => names[0])).toEqual([
      ...["SEEN", "SEEN", "SEEN"],
      "stripe",
    ]);
  });

  test("tables fit 80 columns, show ids whole, and all columns with --wide", async () => {
    const name = "a key with a name that is longer than any other";
    const { id } = await place.key("--name", name, "--project", "web", "--env", "staging,production");
    const { screen } = await place.onTerminal(["key", "list"]).ended;
    for (const line of screen.split("\r\n")) expect(line.length).toBeLessThanOrEqual(80);
    expect(screen).toContain(id.slice(0, 8));
    expect(screen).toMatch(/ a key with [^\r]*…/);
    expect(screen).toMatch(/\r\n--wide shows \d more columns\.\r\n$/);
    const piped = (await place.keyhole(["key", "list"])).stdout;
    expect(piped).toContain(name);
    expect(piped).not.toContain("CREATED");
    const wide = (await place.onTerminal(["key", "list", "--wide"], 400).ended).screen;
    expect(wide).toContain(name);
    expect(wide).toMatch(/CREATED +REVOKED/);
  });

  test("messages and questions are broken between words at 80 columns", async () => {
    const slug = "a-project-with-a-long-slug";
    await place.json(["project", "create", `acme/${slug}`]);
    const terminal = place.onTerminal(["project", "delete", `acme/${slug}`]);
    await terminal.shows("[y/N] ");
    terminal.type("n\r");
    const asked = (await terminal.ended).screen;
    const plain = Bun.stripANSI(asked).replaceAll("\r", "");
    expect(plain.replaceAll("\n", " ")).toContain(`This will delete project acme/${slug} with 0 variables, 0 accounts`);
    const refused = await place.onTerminal(["var", "get", `acme/${slug}`, "prod", "A_NAME"]).ended;
    expect(refused.screen.replaceAll("\r\n", " ")).toContain("ENV is one of development, staging, production.");
    for (const line of [...plain.split("\n"), ...refused.screen.split("\r\n")]) {
      expect(Bun.stringWidth(line)).toBeLessThanOrEqual(80);
    }
  });

  test("audit list shows on 80 columns who, what and where, and --wide a block for each entry", async () => {
    await place.json(["var", "set", "web", "production", "A_NAME", "--value", "v"]);
    await place.json(["org", "create", "other"]);
    const project = ["--project", "acme/web"];
    const narrow = (await place.onTerminal(["audit", "list", ...project, "--action", "variables.write"]).ended).screen;
    expect(narrow).toMatch(/^TIME +ACTOR +ACTION +ENVIRONMENT +NAMES/);
    expect(narrow).toMatch(/ variables\.write +production +A_NAME/);
    const all = (await place.onTerminal(["audit", "list"]).ended).screen;
    expect(all).toMatch(/^TIME +ACTOR +ACTION +ENVIRONMENT +NAMES/);
    const wide = (await place.onTerminal(["audit", "list", "--wide", "--limit", "3"]).ended).screen.split("\r\n");
    for (const line of [...narrow.split("\r\n"), ...all.split("\r\n"), ...wide]) {
      expect(Bun.stringWidth(line)).toBeLessThanOrEqual(80);
    }
    expect(wide.filter((line) => line.startsWith("TIME "))).toHaveLength(3);
    expect(wide.filter((line) => line === "")).toHaveLength(3);
    await place.json(["org", "delete", "other", "--yes"]);
  });

  test("history and rollback name everything that changed if asked", async () => {
    const names = Array.from({ length: 18 }, (_, at) => `MANY_${at}`);
    writeFileSync(join(place.folder, "eighteen.env"), names.map((name) => `${name}=v`).join("\n"));
    await place.json(["project", "create", "acme/many"]);
    await place.json(["var", "set", "acme/many", "staging", "FIRST", "--value", "v"]);
    await place.json(["var", "import", "acme/many", "staging", "eighteen.env"]);
    const short = await place.keyhole(["history", "acme/many", "staging"]);
    expect(short.stdout).toContain(" and 8 more");
    expect(short.stderr).toContain("--wide names everything that changed.\n");
    const wide = await place.keyhole(["history", "acme/many", "staging", "--wide"]);
    expect(wide.stderr).toMatch(/^Kept: 2 earlier versions, .* and always the last two\.\n$/);
    const rollback = ["rollback", "acme/many", "staging", "variables", "--to", "2"];
    const asked = await place.keyhole(rollback);
    expect(asked.stderr).toContain(" and 8 more (--wide names them)");
    const askedWide = await place.keyhole([...rollback, "--wide"]);
    for (const name of names) for (const text of [wide.stdout, askedWide.stderr]) expect(text).toContain(name);
  });

  test("errors and the word revoked are red on a terminal that has colours, unless NO_COLOR is set", async () => {
    const { id } = await place.key("--name", "gone");
    await place.json(["key", "revoke", id]);
    const run = async (env: Record<string, string>, args: string[]) => {
      const other = makePlace({ ...place.env, ...env });
      const { screen } = await other.onTerminal(args).ended;
      other.remove();
      return screen;
    };
    const wrong = ["key", "show", "none"];
    expect(await run({ TERM: "xterm" }, ["key", "list"])).toContain("\x1b[31mrevoked\x1b[39m");
    expect(await run({ TERM: "xterm" }, wrong)).toStartWith("\x1b[31mkeyhole:\x1b[39m There is no key");
    for (const env of [{ TERM: "xterm", NO_COLOR: "1" }, { TERM: "dumb" }]) {
      expect(await run(env, ["key", "list"])).not.toContain("\x1b");
      expect(await run(env, wrong)).not.toContain("\x1b");
    }
    expect((await place.keyhole(["key", "list"])).stdout).not.toContain("\x1b");
  });

  test("a table fits the width, and nothing is cut elsewhere", async () => {
    const name = "n".repeat(200);
    await place.json(["project", "create", "acme/long", "--name", name]);
    const { screen } = await place.onTerminal(["project", "list"], 100).ended;
    for (const line of screen.split("\r\n")) expect(line.length).toBeLessThanOrEqual(100);
    expect(screen).toContain("n…");
    expect((await place.keyhole(["project", "list"])).stdout).toContain(name);
  });
});
