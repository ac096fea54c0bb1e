import { beforeAll, expect, test } from "bun:test";
import { chmodSync, existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { newFolder } from "../support/folder.ts";
import { binary, runBinary, startOnTerminal } from "../support/keyhole.ts";
import type { Ran } from "../support/program.ts";
import { findProgram, noteMissing } from "../support/programs.ts";
import { onBoth, siteOf } from "../support/server.ts";

const hostile = "$(touch ran)`touch ran`;touch ran\\' \"*";
const shells = {
  bash: [["--norc", "--noprofile", "-i"], "source <(keyhole completion bash)"],
  zsh: [["-f", "-i"], "autoload -Uz compinit; compinit -u -D; source <(keyhole completion zsh)"],
  fish: [["--no-config", "-i"], "keyhole completion fish | source"],
} as const;

onBoth("completion", (dialect) => {
  const site = siteOf(dialect);
  /** Again if it took a second: then it offers nothing, because the database did not answer at once. */
  const inTime = async (run: () => Promise<Ran>) => {
    for (let tries = 1; ; tries++) {
      const beganAt = performance.now();
      const ran = await run();
      if (performance.now() - beganAt < 1000 || ran.stdout !== "" || tries === 5) return ran;
    }
  };
  const offered = async (...words: string[]) => {
    const ran = await inTime(() => site.here(["completion", "fish", "--", ...words]));
    expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
    return ran.stdout.split("\n").slice(0, -1);
  };

  beforeAll(async () => {
    await site.json(["org", "create", "acme", "--name", hostile]);
    await site.json(["project", "create", "web"]);
  });

  // What a shell does with the names does not depend on where they come from.
  for (const [shell, [args, init]] of Object.entries(dialect === "sqlite" ? shells : {})) {
    const found = findProgram(shell);
    if (found === undefined) noteMissing([shell], `completion in ${shell}`);
    const run = found === undefined ? test.skip : test;
    run(`in ${shell} puts names from the database on the command line, and none that the shell acts on`, async () => {
      await site.json(["org", "plan", "acme", "free", "--yes"]);
      await site.here(["var", "set", "web", "staging", "TOKEN"], "secret");
      for (const name of ["ci", hostile]) {
        await site.here(["account", "set", "web", name, "--env", "staging"], '{"user":"x"}');
      }
      await site.key("--org", "acme", "--name", hostile);
      const env = { ...site.env, PATH: `${dirname(binary)}:${process.env["PATH"]}`, HOME: site.folder, TERM: "xterm" };
      const terminal = startOnTerminal([found ?? "", ...args], 200, site.folder, env);
      let lines = 0;
      const enter = async (line: string) => {
        lines += 1;
        // What is typed is echoed, and must differ from what is waited for.
        terminal.type(`${line}; echo do''ne-${lines}\r`);
        await terminal.shows(`done-${lines}`);
      };
      await enter(init);
      await enter("keyhole org plan a\tpro");
      await enter("keyhole var delete w\tst\tTO\t");
      await enter("keyhole account delete acme/\tc\t");
      await enter("keyhole account delete web '$(touch\t'");
      await enter("keyhole key revoke 0\t --yes");
      terminal.type("exit\r");
      await terminal.ended;
      expect(await site.json(["org", "list"])).toMatchObject([{ plan: "pro" }]);
      expect(await site.json(["var", "list", "web", "staging"])).toEqual([]);
      expect(await site.json(["account", "list", "web"])).toMatchObject([{ name: hostile }]);
      const keys = (await site.json(["key", "list"])) as { id: string; status: string }[];
      expect(keys.map(({ status }) => status)).toEqual(["revoked"]);
      await site.sql("delete from api_keys");
      expect(existsSync(join(site.folder, "ran"))).toBeFalse();
    });
  }

  test("shows what people call a thing beside it, and leaves nothing on record", async () => {
    const key = await site.key("--org", "acme", "--name", "a\u202eb");
    await site.here(["var", "set", "web", "staging", "SECRET_TOKEN"], "a value");
    const before = await site.json(["audit", "list", "--limit", "1000"]);
    expect(await offered("org", "plan", "")).toEqual([`acme\t${hostile}`]);
    expect(await offered("project", "delete", "acme/")).toEqual(["acme/web\tweb"]);
    expect(await offered("key", "show", "")).toEqual([`${key.id}\ta\\u202eb`]);
    expect(await offered("var", "get", "web", "staging", "SEC")).toEqual(["SECRET_TOKEN"]);
    expect(await offered("var", "get", "web", "production", "")).toEqual([]);
    expect(await offered("var", "get", "none", "staging", "")).toEqual([]);
    expect(await site.json(["audit", "list", "--limit", "1000"])).toEqual(before);
  });

  test("offers nothing, makes nothing and says nothing if there is no installation, or none that opens", async () => {
    const nothing = { exitCode: 0, stdout: "", stderr: "" };
    const asked = ["completion", "bash", "--", "org", "plan", ""];
    const at = (env: Readonly<Record<string, string>>) =>
      inTime(() => runBinary(asked, { cwd: site.folder, env: { ...site.env, ...env } }));
    expect((await at({})).stdout).toBe("acme\n");
    const names = readdirSync(site.folder);
    if (dialect === "sqlite") {
      const { KEYHOLE_DATA: data = "" } = site.env;
      expect(await at({ KEYHOLE_DATA: join(site.folder, "none") })).toEqual(nothing);
      // A folder that others may read is not as Keyhole made it: it may have come with a repository.
      chmodSync(data, 0o755);
      expect(await at({})).toEqual(nothing);
      chmodSync(data, 0o700);
      expect((await at({ KEYHOLE_ROOT_KEY_COMMAND: "touch ran" })).stdout).toBe("acme\n");
    } else {
      expect(await at({ DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" })).toEqual(nothing);
      expect(await at({ KEYHOLE_ROOT_KEY: "no key" })).toEqual({ ...nothing, stdout: "acme\n" });
    }
    expect(await at({ PORT: "no port" })).toEqual(nothing);
    expect(readdirSync(site.folder)).toEqual(names);
  });
});

test("zsh takes the script before anything has loaded its completion", async () => {
  if (findProgram("zsh") === undefined) return noteMissing(["zsh"], "completion in zsh");
  const PATH = `${dirname(binary)}:${process.env["PATH"]}`;
  const args = ["-f", "-c", "source <(keyhole completion zsh); print $_comps[keyhole]"];
  const ran = await runBinary(args, { program: "zsh", env: { PATH, HOME: newFolder() } });
  expect(ran).toMatchObject({ exitCode: 0, stdout: "_keyhole\n", stderr: "" });
});
