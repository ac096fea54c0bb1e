/** People's commands beside a server, and on a terminal. What they print elsewhere is in transcripts/. */
import { beforeAll, describe, expect, test } from "bun:test";
import { canary } from "../support/canary.ts";
import { makePlace } from "../support/keyhole.ts";
import { keyOf, serverOf, siteOf } from "../support/server.ts";

describe("names that would steer a terminal", () => {
  const place = siteOf("sqlite", {});
  const evil = "\x1b]0;owned\x07\x9b31m\u202egpj\u200b.exe\r\n";
  const shown = "\\u001b]0;owned\\u0007\\u009b31m\\u202egpj\\u200b.exe\\u000d\\u000a";
  const raw = /(?!\n)[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

  beforeAll(async () => {
    await place.key("--org", "acme");
    // The commands refuse such names: these came by another way.
    for (const table of ["organizations", "projects", "api_keys"]) {
      await place.sql(`UPDATE ${table} SET name = ?`, [evil]);
    }
  });

  test.each(["org", "project", "key"])("are shown harmlessly by %s list", async (noun) => {
    const args = [noun, "list"];
    const { stdout } = await place.here(args);
    expect(stdout).toContain(shown);
    expect(stdout).not.toMatch(raw);
    const json = await place.here([...args, "--json"]);
    expect(json.stdout).not.toMatch(raw);
    expect(JSON.parse(json.stdout)).toMatchObject([{ name: evil }]);
  });

  test("are shown harmlessly on a terminal too", async () => {
    const { screen } = await place.onTerminal(["project", "list"], 300).ended;
    expect(screen).toContain(shown);
    expect(screen.replaceAll("\r\n", "\n")).not.toMatch(raw);
  });

  test("are shown harmlessly where an argument is repeated", async () => {
    const { stderr } = await place.here(["project", "create", `acme/${evil}`]);
    expect(stderr).toStartWith("keyhole: ");
    expect(stderr).not.toMatch(raw);
  });
});

describe("on a terminal", () => {
  const place = siteOf("sqlite", {});
  const key = keyOf(place, "--resource", "variables,accounts");
  const server = serverOf(place);
  const prompt = "Enter ends it): ";
  const set = ["var", "set", "web", "production", "TOKEN"];

  const read = async (path: string) => (await server.get(`/projects/web/${path}`, key.key)).json();
  const token = async () => (await read("variables?environment=production&keys=TOKEN")) as object;

  test.each([
    ["a word", `${canary}\r`, canary],
    ["a corrected word", `wr\x7f\x7fü${canary}\r`, `ü${canary}`],
    ["a word with Ctrl-Z, which does not suspend", `${canary}\x1a${canary}\r`, canary.repeat(2)],
    ["a paste of 20,000 characters", `${canary.repeat(2500)}\r`, canary.repeat(2500)],
  ])("%s is stored as it was typed, and the screen never shows it", async (_, keys, value) => {
    const { exitCode, screen } = await place.onTerminal(set).answer(prompt, keys);
    expect(exitCode).toBe(0);
    expect(screen).not.toContain(canary);
    expect(await token()).toMatchObject({ variables: [{ key: "TOKEN", value }] });
  });

  test.each([
    ["Ctrl-C", "half\x03", 130],
    ["Enter alone", "\r", 2],
    ["Ctrl-D", "\x04", 2],
    ["a paste of several lines", "one\ntwo\n", 2],
  ])("%s stores nothing", async (_, keys, expected) => {
    await place.here(set, "before");
    const { exitCode, screen } = await place.onTerminal(set).answer(prompt, keys);
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
    expect(screen).toEndWith("\r\nkeyhole: Interrupted: nothing was written.\r\n");
  });

  test("a program that asks for JSON is not asked, even on a terminal", async () => {
    const { exitCode, screen } = await place.onTerminal(["project", "delete", "web", "--json"], 300).ended;
    expect([exitCode, screen]).toEqual([2, expect.stringMatching(/^\{"error":"This would delete .*--yes\.".*\}\r\n$/)]);
  });

  test("an account is typed as JSON", async () => {
    const terminal = place.onTerminal(["account", "set", "web", "stripe", "--env", "production"]);
    const { exitCode, screen } = await terminal.answer(prompt, '{"user":"ci","password":"hunter2"}\r');
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

  test("a secret comes with a warning, and controls no terminal", async () => {
    await place.here(["var", "set", "web", "production", "SEEN"], "two\nlines\n\u001b[31m");
    const { exitCode, screen } = await place.onTerminal(["var", "get", "web", "production", "SEEN"]).ended;
    expect(exitCode).toBe(0);
    expect(screen).toStartWith("two\r\nlines\r\n\\u001b[31m\r\nThe value of SEEN is on this screen now");
  });

  test("tables fit 80 columns, show ids whole, and all columns with --wide", async () => {
    const name = "a key with a name that is longer than any other";
    const { id } = await place.key("--name", name, "--project", "web", "--env", "staging,production");
    const { screen } = await place.onTerminal(["key", "list"]).ended;
    for (const line of screen.split("\r\n")) expect(line.length).toBeLessThanOrEqual(80);
    expect(screen).toContain(id.slice(0, 8));
    // Ids are longer if two keys were made in the same minute.
    expect(screen).toMatch(/ a key [^\r]*…/);
    expect(screen).toMatch(/\r\n--wide shows \d more columns\.\r\n$/);
    const piped = (await place.here(["key", "list"])).stdout;
    expect(piped).toContain(name);
    expect(piped).not.toContain("CREATED");
    const wide = (await place.onTerminal(["key", "list", "--wide"], 400).ended).screen;
    expect(wide).toContain(name);
    expect(wide).toMatch(/CREATED +REVOKED/);
  });

  test("messages and questions are broken between words at 80 columns", async () => {
    const slug = "a-project-with-a-long-slug";
    await place.json(["project", "create", `acme/${slug}`]);
    const asked = (await place.onTerminal(["project", "delete", `acme/${slug}`]).answer("[y/N] ", "n\r")).screen;
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
    await place.json(["project", "environments", "acme/web", "--env", "development,staging,production"]); // the longest action
    const project = ["--project", "acme/web"];
    const narrow = (await place.onTerminal(["audit", "list", ...project, "--action", "variables.write"]).ended).screen;
    expect(narrow).toMatch(/^TIME +ACTOR +ACTION +WHERE +NAMES\r\n/);
    expect(narrow).toMatch(/ variables\.write +web\/production +A_NAME/);
    await place.here(["var", "import", "acme/web", "production", "-"], "B_NAME=1\nC_NAME=2\nD_NAME=3\n");
    const named = (await place.onTerminal(["audit", "list", ...project, "--name", "D_NAME"]).ended).screen;
    expect(named).toContain(" D_NAME,");
    const all = (await place.onTerminal(["audit", "list"]).ended).screen;
    expect(all).toMatch(/^TIME +ACTOR +ACTION +WHERE +NAMES\r\n/);
    const wide = (await place.onTerminal(["audit", "list", "--wide", "--limit", "3"]).ended).screen.split("\r\n");
    for (const line of [...narrow.split("\r\n"), ...all.split("\r\n"), ...wide]) {
      expect(Bun.stringWidth(line)).toBeLessThanOrEqual(80);
    }
    expect(wide.filter((line) => line.startsWith("TIME "))).toHaveLength(3);
    expect(wide.filter((line) => line === "")).toHaveLength(3);
    await place.json(["org", "delete", "other", "--yes"]);
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
    expect((await place.here(["key", "list"])).stdout).not.toContain("\x1b");
  });
});
