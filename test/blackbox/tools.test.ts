/** The recipes of docs/tools.md and others, each with the tool itself and a value that many tools change or run. */

import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parse as parseYaml } from "yaml";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { binary } from "../support/keyhole.ts";
import { honestly } from "../support/liar.ts";
import { machineMaker, truth } from "../support/machine.ts";
import { readPage } from "../support/markdown.ts";
import { freePort } from "../support/port.ts";
import { startProgram } from "../support/program.ts";
import { findProgram, skipWithout, withPrograms } from "../support/programs.ts";

setDefaultTimeout(120_000);

const root = join(import.meta.dir, "../..");
const machine = machineMaker();
const value = 'postgres://u:pa$word$(id>ran)"q"@h/db';
const variables = { DATABASE_URL: value, API_TOKEN: "token-of-the-api" };

type Block = { readonly file: string | undefined; readonly text: string };
/** The blocks of each section: files, whose first line names them, and commands. */
const sections = new Map(
  ["docs/systemd.md", "docs/tools.md"]
    .map(readPage)
    .join("\n")
    .split(/^## /m)
    .slice(1)
    .map((section): [title: string, blocks: Block[]] => {
      const blocks = [...section.matchAll(/^```(\w+)\n([\s\S]*?)^```/gm)].map(([, language, text = ""]) => {
        return { file: language === "sh" ? undefined : /^# (\S+)\n/.exec(text)?.[1], text };
      });
      return [section.slice(0, section.indexOf("\n")), blocks];
    }),
);

/** A folder with a section's files and what it takes for granted, and its commands. */
async function kitchenOf(title: string, words: Readonly<Record<string, string>> = {}) {
  const asked = await machine((question) => honestly({ ...truth, variables }, question));
  const folder = join(asked.folder, "kitchen");
  const bin = join(asked.folder, "bin");
  for (const one of [folder, bin]) mkdirSync(one);
  symlinkSync(binary, join(bin, "keyhole"));
  for (const [name, program] of Object.entries(programs)) symlinkSync(program, join(bin, name));
  const adapted = (text: string) =>
    Object.entries(words).reduce((all, [word, other]) => all.replaceAll(word, other), text);
  const blocks = (sections.get(title) ?? []).map(({ file, text }) => ({ file, text: adapted(text) }));
  for (const { file, text } of blocks) {
    if (file === undefined) continue;
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
  writeFileSync(join(folder, "server.js"), 'require("fs").writeFileSync("got", process.env.DATABASE_URL ?? "")');
  writeFileSync(join(folder, "package.json"), '{ "name": "web" }');
  writeFileSync(join(folder, "web.key"), asked.key);
  const start = (script: string, more: Readonly<Record<string, string>> = {}) => {
    const PATH = `${bin}:${process.env["PATH"]}`;
    const env = { ...asked.env, HOME: folder, PATH, VARLOCK_TELEMETRY_DISABLED: "1", ...more };
    return startProgram([bash, "-e", "-c", script], { cwd: folder, env });
  };
  return {
    asked,
    folder,
    commands: blocks.filter(({ file }) => file === undefined).map(({ text }) => text),
    start,
    run: async (script: string, more?: Readonly<Record<string, string>>) => {
      const program = start(script, more);
      const code = await program.ended;
      return { ...program.said(), code };
    },
    /** What the program got. No tool may have run what stands in the value. */
    got: () => {
      expect(existsSync(join(folder, "ran"))).toBe(false);
      return readFileSync(join(folder, "got"), "utf8");
    },
  };
}

/** Those of npm, by their names. */
const programs: Record<string, string> = { dotenvx: join(root, "node_modules/.bin/dotenvx") };
const bash = findProgram("bash") ?? "";

withPrograms(["bash", "npm", "node"], "a recipe", () => {
  beforeAll(() => {
    const folder = newFolder();
    for (const name of ["package.json", "bun.lock"]) {
      copyFileSync(join(root, "test/support/varlock", name), join(folder, name));
    }
    const install = ["install", "--frozen-lockfile", "--ignore-scripts", "--omit", "optional", "--silent"];
    expect(Bun.spawnSync([process.execPath, ...install], { cwd: folder }).stderr.toString()).toBe("");
    programs["varlock"] = join(folder, "node_modules/varlock/bin/cli.js");
  });

  test.each(["The shortest way", "dotenvx", "varlock"])("gives the program the very value: %s", async (title) => {
    const { commands, run, got } = await kitchenOf(title);
    expect(await run(commands.join(""))).toMatchObject({ code: 0 });
    expect(got()).toBe(value);
  });

  test("warns rightly: dotenvx runs what stands in a value that reaches it", async () => {
    const { folder, run } = await kitchenOf("dotenvx");
    writeFileSync(join(folder, ".env"), "DATABASE_URL=local\n");
    expect(await run("keyhole run -- dotenvx run -- node server.js")).toMatchObject({ code: 0 });
    expect(existsSync(join(folder, "ran"))).toBe(true);
  });
});

const dotenv = findProgram("ruby") ?? "";
const hasDotenv = dotenv !== "" && Bun.spawnSync([dotenv, "-e", 'require "dotenv"; Dotenv::Parser']).success;
if (!hasDotenv) skipWithout(["ruby-dotenv"], "the recipe for Kamal");
else {
  test("Kamal's file has the very value, and the warning beside it is right", async () => {
    const { folder, run } = await kitchenOf("Kamal");
    const read = `ruby -e 'require "dotenv"; print Dotenv::Parser.call(File.read(".kamal/secrets"))["DATABASE_URL"]'`;
    expect(await run(read)).toMatchObject({ code: 0, stdout: value });
    expect(existsSync(join(folder, "ran"))).toBe(false);
    writeFileSync(join(folder, ".kamal/secrets"), "DATABASE_URL=$DATABASE_URL");
    expect(await run(`keyhole run -- ${read}`)).toMatchObject({ code: 0 });
    expect(existsSync(join(folder, "ran"))).toBe(true);
  });
}

withPrograms(["docker-compose"], "the file for Compose", () => {
  test("keeps each $ of the value", async () => {
    const { folder, run } = await kitchenOf("none");
    const compose = 'version: "3"\nservices: { web: { image: web, env_file: web.env } }\n';
    writeFileSync(join(folder, "compose.yaml"), compose);
    const { stdout, code } = await run("keyhole pull --out web.env && docker-compose -f compose.yaml config");
    const { services } = parseYaml(stdout) as { services: { web: { environment: Record<string, string> } } };
    expect(code).toBe(0);
    // It writes $ twice, so that it could read its own output.
    expect(services.web.environment["DATABASE_URL"]?.replaceAll("$$", "$")).toBe(value);
    expect(statSync(join(folder, "web.env")).mode & 0o777).toBe(0o600);
  });
});

withPrograms(["direnv"], "the recipe for direnv", () => {
  test("sets the very value, and nothing if it cannot be fetched", async () => {
    const { commands, run, got } = await kitchenOf("direnv");
    expect(await run(commands.join(""))).toMatchObject({ code: 0 });
    expect(got()).toBe(value);
    expect((await run("direnv exec . node server.js", { KEYHOLE_PROJECT: "none" })).code).not.toBe(0);
  });
});

withPrograms(["systemd-creds", "bwrap"], "the recipe for systemd", () => {
  test("reads the key that only this service's credential has", async () => {
    const { asked, commands, folder, run, got } = await kitchenOf("An encrypted key");
    const [encrypt = ""] = commands;
    const read = "KEYHOLE_API_KEY_FILE=$CREDENTIALS_DIRECTORY/keyhole.key keyhole run -- node server.js";
    // systemd makes the key of the host in /var/lib/systemd, and decrypts before it starts the service.
    const decrypt =
      "rm web.key; mkdir creds; systemd-creds decrypt --name=keyhole.key keyhole.key.cred creds/keyhole.key";
    writeFileSync(join(folder, "page.sh"), `${encrypt}\n${decrypt}\nchmod 400 creds/keyhole.key`);
    expect(await run("bwrap --dev-bind / / --tmpfs /var/lib/systemd bash -e page.sh")).toMatchObject({ code: 0 });
    expect(readFileSync(join(folder, "keyhole.key.cred"), "latin1")).not.toContain(asked.key);
    const { KEYHOLE_API_KEY: _, ...env } = asked.env;
    expect(await run(`unset KEYHOLE_API_KEY\n${read}`, { ...env, CREDENTIALS_DIRECTORY: "creds" })).toMatchObject({
      code: 0,
    });
    expect(got()).toBe(value);
  });
});

withPrograms(["caddy", "curl"], "the recipe for an agent", () => {
  test("lets an agent without a key or a token ask what needs one", async () => {
    const headers: (string | null)[] = [];
    const api = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ headers: sent }) => {
        headers.push(sent.get("authorization"));
        return new Response("answer of the API");
      },
    });
    const port = String(freePort());
    const words = { "https://api.example.com": `http://127.0.0.1:${api.port}`, "127.0.0.1:8100": `127.0.0.1:${port}` };
    const { commands, start, run } = await kitchenOf("An agent behind a broker", words);
    const broker = start(commands.join(""));
    try {
      const agent = `curl -s http://127.0.0.1:${port}/v1; env`;
      const bare = { KEYHOLE_API_KEY: "", KEYHOLE_URL: "" };
      await eventually(async () => (await run(agent, bare)).code === 0);
      const { stdout } = await run(agent, bare);
      expect(stdout).toContain("answer of the API");
      expect(stdout).not.toContain(variables.API_TOKEN);
      expect(new Set(headers)).toEqual(new Set([`Bearer ${variables.API_TOKEN}`]));
    } finally {
      await broker.stop();
      await api.stop(true);
    }
  });
});
