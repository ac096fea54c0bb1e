/** Plays the thief of docs/taken-over.md: every cell of its table is what somebody found who looked for it. */

import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse as parseYaml } from "yaml";
import { type Job, runAction, type Step } from "../support/action.ts";
import { eventually } from "../support/eventually.ts";
import {
  audience,
  type Claims,
  compact,
  newSigningKey,
  publicJwk,
  startRunner,
  usualClaims,
} from "../support/issuer.ts";
import { binary } from "../support/keyhole.ts";
import { blockOf, blocksOf, readPage } from "../support/markdown.ts";
import { run } from "../support/program.ts";
import { withPrograms } from "../support/programs.ts";
import { serverOf, siteOf } from "../support/server.ts";

setDefaultTimeout(120_000);

const page = "docs/taken-over.md";
const random = () => crypto.randomUUID();
/** No other process of this machine has these texts. */
const values = { DATABASE_URL: `token-${random()}`, OTHER: `other-${random()}` };
const file = `file-${random()}`;

/** What somebody has, in the words of the page. */
function lootIn(text: string): string {
  const found = Object.entries({ ...values, file }).filter(([, value]) => text.includes(value));
  const words: Readonly<Record<string, string>> = {
    "": "nothing",
    DATABASE_URL: "fetched",
    file: "fetched",
    "DATABASE_URL,OTHER": "all",
  };
  const names = found.map(([name]) => name).join();
  return words[names] ?? names;
}

const ways = ["`run`", "`export: true`", "output `json`", "`files` without `run`"] as const;
type Way = (typeof ways)[number];
const [header = [], , ...rows] = [...readPage(page).matchAll(/^\| (.*) \|$/gm)].map(([, row = ""]) => row.split(" | "));

withPrograms(["bash", "curl"], "a job that was taken over", (bash = "") => {
  const site = siteOf("sqlite", { production: values });
  const server = serverOf(site);
  const [issuer, key] = ["https://token.actions.githubusercontent.com", newSigningKey("ES256")];
  const jobs = new Map<Way, { readonly earlier: Loot; readonly changed: Loot; readonly honest: Loot }>();
  let trustId: string;
  let agentsKey: string;

  const tokenOf = (claims: Claims) => {
    const job = { repository_id: "123456789", environment: "production", event_name: "push", jti: random() };
    return compact({ alg: "ES256", kid: "one" }, usualClaims(issuer, { ...job, ...claims }), key);
  };
  const read = async (token: string) => {
    const paths = ["/projects/web/variables?environment=production", "/files?project=web&environment=production"];
    const answers = await Promise.all(paths.map((path) => server.get(path, token)));
    return answers.map(({ body }) => body.toString()).join("\n");
  };

  /** What each of the thieves found. */
  type Loot = Readonly<Record<"later" | "memory" | "changed" | "beside" | "command" | "token", string>> & {
    readonly job: Job;
  };

  /** A job that fetches in one way, with a thief in its first step, beside its command and in its last step. */
  const play = async (way: Way, checkRun: string, first: "asks" | "changes" | "waits"): Promise<Loot> => {
    await using runner = startRunner(() => tokenOf({ check_run_id: checkRun }));
    const loot = join(site.folder, `loot-${checkRun}`);
    mkdirSync(loot);
    const look = `cat /proc/[0-9]*/environ 2> /dev/null || true; env; find "$HOME" -type f -exec cat {} +`;
    const ask = `token=$(curl -s -H "Authorization: Bearer $ACTIONS_ID_TOKEN_REQUEST_TOKEN" "$ACTIONS_ID_TOKEN_REQUEST_URL" |
      sed 's/.*"value":"\\([^"]*\\)".*/\\1/')
    for path in "projects/web/variables?environment=production" "files?project=web&environment=production"; do
      curl -s -H "Authorization: Bearer $token" "${server.origin}/api/v1/$path"
    done > "${loot}/token"`;
    const until = (name: string) => `for n in $(seq 400); do [ -e "${loot}/${name}" ] && break; sleep 0.05; done`;
    const beside = `{ ${until("running")}; { ${look}; } > "${loot}/beside"; touch "${loot}/looked"; } > /dev/null 2>&1 &`;
    const changes = `echo '{ env; cat config/tls.key; } >> "${loot}/changed" 2> /dev/null || true' > "$HOME/evil.sh"
      echo "BASH_ENV=$HOME/evil.sh" >> "$GITHUB_ENV"; touch "${loot}/looked"`;
    const deploy = `{ env; cat config/tls.key 2> /dev/null || true; } > "${loot}/command"
      touch "${loot}/running"; ${until("looked")}`;
    const step = (name: string, run: string, env = {}): Step => ({ name, shell: "bash", run, env });
    // biome-ignore lint/suspicious/noTemplateCurlyInString: an expression of the runner
    const output = { JSON: "${{ steps.variables.outputs.json }}" };
    const how: Readonly<Record<Way, Record<string, string>>> = {
      "`run`": { run: deploy, keys: "DATABASE_URL" },
      "`export: true`": { export: "true", keys: "DATABASE_URL" },
      "output `json`": { export: "false", keys: "DATABASE_URL" },
      "`files` without `run`": { files: "true" },
    };
    const given = { url: server.origin, audience, project: "web", environment: "production", program: binary };
    const job = await runAction(
      site,
      { ...given, ...how[way] },
      {
        env: runner.env,
        before: [step("a thief's", { asks: ask, changes, waits: beside }[first])],
        after:
          first === "asks"
            ? []
            : [
                ...(way === "`run`" ? [] : [step("deploy", deploy, way === "output `json`" ? output : {})]),
                step("a later thief's", `{ ${look}; } > "${loot}/later"; ${ask}`),
              ],
      },
    );
    const taken = (name: string) => readFileSync(join(loot, name), { encoding: "utf8", flag: "a+" });
    return {
      job,
      memory: job.memory,
      ...{
        later: taken("later"),
        beside: taken("beside"),
        command: taken("command"),
        token: taken("token"),
        changed: taken("changed"),
      },
    };
  };

  beforeAll(async () => {
    const jwks = join(site.folder, "jwks.json");
    writeFileSync(jwks, JSON.stringify({ keys: [publicJwk("one", key)] }));
    await site.json(["file", "put", "acme/web", "-", "--path", "config/tls.key", "--env", "production"], file);
    const example = blockOf("docs/ci.md", "sh", "keyhole trust add").replaceAll("\\\n", " ").trim();
    const added = ["--json", "--jwks-file", jwks, "--resource", "variables,files"];
    const { id } = (await site.json([...example.split(/\s+/).slice(1), ...added])) as { id: string };
    const reach = ["--org", "acme", "--surface", "mcp_server", "--resource", "variables,requests"];
    [trustId, agentsKey] = [id, (await site.key(...reach)).key];
    // The server's list of trusts may be a tenth of a second old.
    await eventually(async () => (await server.get("/organization", tokenOf({ check_run_id: "0" }))).status === 200);
    for (const [at, way] of ways.entries()) {
      jobs.set(way, {
        earlier: await play(way, `${at}1`, "asks"),
        changed: await play(way, `${at}3`, "changes"),
        honest: await play(way, `${at}2`, "waits"),
      });
    }
  });

  const honest = (way: Way) => jobs.get(way)?.honest as Loot;
  const thieves: Readonly<Record<string, (way: Way) => string | Promise<string>>> = {
    "a later step, in its environment and the runner's files": (way) => honest(way).later,
    "a reader of the runner's memory, later": (way) => honest(way).memory,
    "a process that runs beside the command, as the same user": (way) => honest(way).beside,
    "the command, and what it starts: an install script, an agent": (way) => honest(way).command,
    "a later step that asks for a token of its own": (way) => honest(way).token,
    "an earlier step that asks for a token of its own": (way) => jobs.get(way)?.earlier.token ?? "",
    "an earlier step that changes what the command runs, by `BASH_ENV`, `BUN_BE_BUN` or in its script": (way) =>
      jobs.get(way)?.changed.changed ?? "",
    "another job of the repository, outside the deployment environment": () =>
      read(tokenOf({ environment: undefined, check_run_id: random() })),
    "a fork's pull request, through `pull_request_target`": () =>
      read(tokenOf({ event_name: "pull_request_target", check_run_id: random() })),
    "an agent with a [key for MCP](agents.md) of its own": () => read(agentsKey),
  };

  test("has each thief of the page, and no other", () => {
    expect(header.slice(1)).toEqual([...ways]);
    expect(rows.map(([who]) => who)).toEqual(Object.keys(thieves));
  });

  test.each(rows)("gives to %s what the page says", async (who = "", ...cells) => {
    const found = await Promise.all(ways.map(async (way) => lootIn((await thieves[who]?.(way)) ?? "")));
    expect(found).toEqual(cells.slice(0, ways.length));
  });

  type Lines = { readonly env?: Record<string, string>; readonly script: readonly string[] };
  /** The job of another CI system, as its section of docs/ci.md has it, and the token that the system gives it. */
  const sections: Readonly<Record<string, (yaml: never, token: string) => Lines>> = {
    id_tokens: ({ deploy }: { deploy: { variables: Record<string, string>; script: string[] } }, token) => {
      return { env: { ...deploy.variables, KEYHOLE_TOKEN: token }, script: deploy.script };
    },
    "buildkite-agent": ({ steps: [step] }: { steps: { command: string; env: Record<string, string> }[] }) => {
      return { env: step?.env ?? {}, script: [step?.command ?? ""] };
    },
    pipelines: ({ pipelines }: { pipelines: { branches: { main: { step: Lines }[] } } }, token) => {
      return { env: { BITBUCKET_STEP_OIDC_TOKEN: token }, script: pipelines.branches.main[0]?.step.script ?? [] };
    },
    "circleci run": ({ jobs: { deploy } }: { jobs: { deploy: { environment: object; steps: { run: string }[] } } }) => {
      return { env: { ...deploy.environment }, script: [deploy.steps[1]?.run ?? ""] };
    },
  };
  /** A folder for jobs without the action: the program is on the PATH, and two systems' own print the job's token. */
  const shellOf = (token: string) => {
    const folder = mkdtempSync(join(site.folder, "shell-"));
    const [bin, own] = [join(folder, "bin"), join(folder, "own")];
    for (const one of [bin, own]) mkdirSync(one);
    symlinkSync(binary, join(bin, "keyhole"));
    for (const name of ["buildkite-agent", "circleci"]) {
      writeFileSync(join(bin, name), `#!/bin/sh\necho ${token}\n`, { mode: 0o755 });
    }
    const ranOf = async (script: string, env: Readonly<Record<string, string>>) => {
      const PATH = `${bin}:${process.env["PATH"]}`;
      const options = { cwd: own, env: { ...env, PATH, HOME: own, LOOT: folder } };
      const ran = await run([bash, "-e", "-c", script], options);
      return { ...ran, loot: (name: string) => lootIn(readFileSync(join(folder, name), "utf8")) };
    };
    return { own, run: ranOf };
  };

  test.each(Object.keys(sections))("leaves nothing in a job by the lines of docs/ci.md with %s", async (words) => {
    const token = tokenOf({ check_run_id: random() });
    const text = blockOf("docs/ci.md", "yaml", words).replaceAll("https://keyhole.example.com", server.origin);
    const { env = {}, script } = (sections[words] as (yaml: unknown, token: string) => Lines)(parseYaml(text), token);
    const { own, run } = shellOf(token);
    writeFileSync(join(own, "deploy.sh"), '#!/bin/sh\nenv > "$LOOT/command"\n', { mode: 0o755 });
    const look =
      '{ cat /proc/[0-9]*/environ 2> /dev/null || true; set; find . -type f -exec cat {} +; } > "$LOOT/later"';
    const ran = await run([...script, look, "keyhole pull"].join("\n"), env);
    expect([ran.loot("command"), ran.loot("later")]).toEqual(["fetched", "nothing"]);
    // A later line that asks again with what is still there.
    expect(ran).toMatchObject({ exitCode: 3, stdout: "" });
  });

  test.each(blocksOf("docs/fetch.md").filter(({ comment }) => comment?.includes("thief")))(
    "finds nothing in any environment of a program that gets its values by a descriptor or a file",
    async ({ text }) => {
      const { own, run } = shellOf("");
      const migrate = `#!/bin/sh
cat "$2" > "$LOOT/command"
{ cat /proc/[0-9]*/environ 2> /dev/null; sh -c env; } > "$LOOT/beside"\n`;
      writeFileSync(join(own, "migrate.sh"), migrate, { mode: 0o755 });
      const env = { KEYHOLE_URL: server.origin, KEYHOLE_PROJECT: "web", KEYHOLE_ENVIRONMENT: "production" };
      const more = { KEYHOLE_OIDC: "env:TOKEN", TOKEN: tokenOf({ check_run_id: random() }), TMPDIR: own };
      expect(await run(text, { ...env, ...more })).toMatchObject({ exitCode: 0 });
      const ran = await run('find . -type f -exec cat {} + > "$LOOT/later"', {});
      const found = ["command", "beside", "later"].map((name) => ran.loot(name));
      expect(found).toEqual(["fetched", "nothing", "nothing"]);
    },
  );

  test("ends well if the thief came second, fails if it came first, and the audit has both", async () => {
    const ended = [...jobs.values()].map(({ honest, changed, earlier }) => [
      ...[honest.job.failed, changed.job.failed],
      typeof earlier.job.failed,
    ]);
    expect(ended).toEqual(ways.map(() => [undefined, undefined, "string"]));
    const overused = async () => (await site.json(["audit", "list", "--action", "trust.overused"])) as Entry[];
    type Entry = { readonly names: string[]; readonly action: string; readonly actor: { readonly id: string } };
    const jobsOf = (entries: readonly Entry[]) => [...new Set(entries.flatMap(({ names }) => names))].toSorted();
    const all = ways.flatMap((_, at) => [`check_run_id=${at}1`, `check_run_id=${at}2`]);
    await eventually(async () => {
      const rung = jobsOf(await overused());
      return all.every((job) => rung.includes(job));
    });
    const reads = (await site.json(["audit", "list", "--key", trustId, "--action", "variables.read"])) as Entry[];
    expect(jobsOf(reads)).toEqual(Object.keys(values));
  });

  test("tells names to whoever has a token of the job, also when it had its answers", async () => {
    const answer = await server.get(
      "/projects/web/variables?environment=production&metadata_only=true",
      tokenOf({ check_run_id: "01" }),
    );
    expect([answer.status, ...Object.keys(values).map((name) => answer.body.includes(name))]).toEqual([
      200,
      true,
      true,
    ]);
  });

  test("leaves a stored key in the runner's memory, where it goes on to work, and in no process of the command", async () => {
    const stored = await site.key("--org", "acme");
    const given = { url: server.origin, project: "web", environment: "production", program: binary };
    const run = "cat /proc/$$/environ /proc/$PPID/environ > environ";
    const job = await runAction(site, { ...given, run, "api-key": stored.key });
    const environ = readFileSync(join(job.workspace, "environ"), "utf8");
    expect([lootIn(environ), environ.includes(stored.key)]).toEqual(["all", false]);
    expect([job.failed, lootIn(job.memory), job.memory.includes(stored.key)]).toEqual([undefined, "nothing", true]);
    expect(lootIn(await read(stored.key))).toBe("all");
  });

  test("is ended by the two commands of the page", async () => {
    const commands = blocksOf(page).flatMap(({ text }) => text.trim().split("\n"));
    const ran = [];
    for (const command of commands) {
      ran.push(await site.here(command.replace("0199a3c4", trustId).split(" ").slice(1)));
    }
    expect(ran.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
    for (const name of Object.keys(values)) expect(ran[1]?.stdout).toContain(name);
    expect(ran[2]?.stdout).toContain("check_run_id=02");
    expect(lootIn(await read(tokenOf({ check_run_id: random() })))).toBe("nothing");
  });
});
