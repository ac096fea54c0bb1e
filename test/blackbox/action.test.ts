import { describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { parse as parseYaml } from "yaml";
import { targets } from "../../.ci/artifacts/targets.ts";
import { publisher } from "../../package.json";
import { type Action, action, runAction, type Step } from "../support/action.ts";
import { startRunner } from "../support/issuer.ts";
import { binary } from "../support/keyhole.ts";
import { honestly, type Question, type Reply, refusal } from "../support/liar.ts";
import { type Machine, machineMaker, truth } from "../support/machine.ts";
import { blockOf } from "../support/markdown.ts";
import { run } from "../support/program.ts";
import { findProgram } from "../support/programs.ts";

const root = join(import.meta.dir, "../..");
const bash = findProgram("bash") ?? "";

const machine = machineMaker();

describe("the action's file", () => {
  test("is a composite action with the inputs that it promises", () => {
    expect(action.runs.using).toBe("composite");
    expect(Object.keys(action.inputs).join()).toBe(
      "url,api-key,audience,project,environment,keys,prefix,files,mask,run,export,program",
    );
    for (const [name, input] of Object.entries(action.inputs)) {
      const fine = input.required === true || typeof input.default === "string";
      expect({ name, fine }).toEqual({ name, fine: true });
    }
  });

  test("puts no expression into a script, names a shell for each, and uses nobody else's action", () => {
    for (const step of action.runs.steps) {
      expect(step.run?.includes("${{")).not.toBe(true);
      expect(step.shell).toBe("bash");
      expect(step).not.toHaveProperty("uses");
    }
  });

  test("hands the key to the steps that fetch, and not to the one that downloads", () => {
    const withKey = action.runs.steps.filter(({ env }) => env?.["KEYHOLE_API_KEY"] !== undefined);
    expect(withKey.map(({ name }) => name)).not.toContain("Get keyhole");
    expect(withKey).toHaveLength(action.runs.steps.length - 1);
  });

  test("pins the archives of one release by their checksums, or none", () => {
    const { RELEASE = "", CHECKSUMS = "" } = action.runs.steps.find(({ name }) => name === "Get keyhole")?.env ?? {};
    const version = /\/v([^/]+)$/.exec(RELEASE)?.[1];
    const lines = CHECKSUMS.split("\n").filter(Boolean);
    expect(lines).toHaveLength(version === undefined ? 0 : targets.length);
    for (const line of lines) expect(line).toMatch(/^[0-9a-f]{64} {2}keyhole-.*\.tar\.gz$/);
    for (const line of lines) expect(line).toContain(`  keyhole-${version}-`);
  });
});

describe("the action's steps, run as the runner runs them", () => {
  const inputs = (asked: Machine, more: Record<string, string> = {}) => ({
    url: asked.liar.origin,
    "api-key": asked.key,
    project: "web",
    environment: "production",
    program: binary,
    export: "run" in more ? "" : "true",
    ...more,
  });

  test("give the command its values, whatever the job sets for Bun programs", async () => {
    const asked = await machine();
    const bun = { BUN_OPTIONS: "--preload ./gone.ts", BUN_BE_BUN: "1" };
    const ran = 'echo "got $API_TOKEN with $BUN_OPTIONS and $BUN_BE_BUN"';
    const job = await runAction(asked, inputs(asked, { run: ran }), { env: bun });
    expect([job.failed, job.raw]).toEqual([
      undefined,
      expect.stringContaining("got tok-123456 with --preload ./gone.ts and 1\n"),
    ]);
    const exported = await runAction(asked, inputs(asked, { files: "true" }), { env: bun });
    expect([exported.failed, exported.env["API_TOKEN"]]).toEqual([undefined, "tok-123456"]);
  });

  test("say which surface the key needs if it has another", async () => {
    const asked = await machine(() => refusal(403, "surface_required", "This key may not be used for this endpoint."));
    const job = await runAction(asked, inputs(asked));
    expect(job.failed).toBe("Fetch the variables");
    expect(job.log).toContain("the CI action need a key with the surface rest_api, the default;");
    expect(action.inputs["api-key"]?.description).toContain("surface rest_api");
  });

  test("set every variable for the steps that follow, and the log shows none", async () => {
    const asked = await machine();
    const job = await runAction(asked, inputs(asked));
    expect(job.failed).toBeUndefined();
    expect(job.env).toEqual(truth.variables);
    expect(job.path.map((folder) => readdirSync(folder))).toEqual([["keyhole"]]);
    expect(job.outputs["json"]).toBe("");
    for (const secret of [asked.key, "tok-123456", "postgres://u:p@h/db", 'it\'s "fine"']) {
      expect(job.log).not.toContain(secret);
    }
    expect(job.log.split("\n")).not.toContainEqual(expect.stringMatching(/^here$/));
    expect(job.raw.indexOf(`::add-mask::${asked.key}`)).toBe(0); // before anything else
    expect(readdirSync(job.workspace)).toEqual([]);
  });

  test.each([
    ["the server's origin", { audience: "" }],
    ["the input audience", { audience: "keyhole" }],
  ])("without a key use the job's own token, for %s", async (_, more) => {
    const asked = await machine();
    await using runner = startRunner();
    const given = inputs(asked, { "api-key": "", files: "true", ...more });
    const job = await runAction(asked, given, { env: runner.env });
    expect(job.failed).toBeUndefined();
    expect(job.env).toEqual(truth.variables);
    expect(new Set(runner.audiences)).toEqual(new Set([more.audience || asked.liar.origin]));
    for (const question of asked.liar.questions) {
      expect(question.headers.get("authorization")).toBe(`Bearer ${runner.token}`);
    }
    expect(job.raw).not.toContain(runner.token);
  });

  test("hide a short value too if the input mask names it", async () => {
    const asked = await machine((question) => honestly({ ...truth, variables: { PIN: "13579" } }, question));
    expect((await runAction(asked, inputs(asked))).raw).not.toContain("::add-mask::13579\n");
    expect((await runAction(asked, inputs(asked, { mask: "PIN" }))).raw).toContain("::add-mask::13579\n");
  });

  test("take only what keys and prefix name, and fail for one that is missing", async () => {
    const asked = await machine();
    const { env } = await runAction(asked, inputs(asked, { keys: "MOTD" }));
    expect(env).toEqual({ MOTD: truth.variables["MOTD"] ?? "" });
    expect((await runAction(asked, inputs(asked, { prefix: "API_" }))).env).toEqual({ API_TOKEN: "tok-123456" });
    const job = await runAction(asked, inputs(asked, { keys: "MOTD,NONE" }));
    expect(job).toMatchObject({ failed: "Fetch the variables", env: {} });
    expect(job.raw).toContain("NONE");
  });

  test("put files below the workspace where that is asked for", async () => {
    const asked = await machine();
    const job = await runAction(asked, inputs(asked, { files: "true" }));
    expect(job.failed).toBeUndefined();
    expect(statSync(join(job.workspace, "config/tls.key")).mode & 0o777).toBe(0o400);
    expect(job.env).toEqual(truth.variables);
  });

  test("give the command of run the variables and the files, and nothing else in the job anything", async () => {
    const asked = await machine();
    const command =
      'printf "%s\\n" "$MOTD" > got; env | grep -c "^KEYHOLE_API_KEY=" > key || true; cp "$SECRET_FILES/config/tls.key" key.pem';
    const job = await runAction(asked, inputs(asked, { run: command, files: "true" }));
    expect(job).toMatchObject({ failed: undefined, env: {}, outputs: { json: "" } });
    expect(readFileSync(join(job.workspace, "got"), "utf8")).toBe(`${truth.variables["MOTD"]}\n`);
    expect(readFileSync(join(job.workspace, "key"), "utf8")).toBe("0\n");
    expect(readFileSync(join(job.workspace, "key.pem"), "utf8")).toContain("BEGIN KEY");
    expect(readdirSync(job.workspace).toSorted()).toEqual(["got", "key", "key.pem"]);
    expect(readdirSync(dirname(job.workspace)).filter((name) => name.startsWith("secret-files"))).toEqual([]);
    // The runner was told none: not by a file, an output or a mask.
    for (const value of Object.values(truth.variables).filter((one) => one.length > 5)) {
      expect(job.raw).not.toContain(value);
      expect(job.memory).not.toContain(value);
    }
    const narrow = inputs(asked, { run: 'test -z "$MOTD" && test "$API_TOKEN" = tok-123456', keys: "API_TOKEN" });
    expect((await runAction(asked, narrow)).failed).toBeUndefined();
    for (const failing of ["false; true", "false | true", "exit 7"]) {
      const { failed } = await runAction(asked, inputs(asked, { run: failing }));
      expect([failing, failed]).toEqual([failing, "Run the command"]);
    }
  });

  test("stop before anything is fetched if nothing gets the values, or run and another do", async () => {
    const asked = await machine();
    const nobody = await runAction(asked, inputs(asked, { export: "" }));
    expect(nobody.log).toContain("Nothing gets the values. Give the command that needs them as the input run.");
    for (const more of [{ export: "true" }, { export: "false" }, { mask: "PIN" }]) {
      const both = await runAction(asked, inputs(asked, { run: "true", ...more }));
      expect(both.log).toContain("The inputs export and mask do not go with run");
    }
    expect(asked.liar.questions).toHaveLength(0);
    const files = await runAction(asked, inputs(asked, { export: "", files: "true" }));
    expect(files).toMatchObject({ failed: undefined, env: {}, outputs: { json: "" } });
    expect(asked.liar.questions.every(({ path }) => path === "/files")).toBe(true);
  });

  test("set nothing and give one output where export is false", async () => {
    const asked = await machine();
    const job = await runAction(asked, inputs(asked, { export: "false" }));
    expect(job).toMatchObject({ failed: undefined, env: {} });
    expect(JSON.parse(job.outputs["json"] ?? "")).toEqual(truth.variables);
    expect(job.log).not.toContain("tok-123456");
  });

  test("leave nothing behind where anything fails", async () => {
    const failures: ((question: Question) => Reply)[] = [
      () => refusal(401, "unauthorized", "A valid API key is required."),
      () => refusal(503, "decryption_failed", "Nothing is returned."),
      (question) => (question.path === "/files" ? { body: "{" } : honestly(truth, question)),
      (question) => honestly({ ...truth, variables: { ...truth.variables, NODE_OPTIONS: "-r x" } }, question),
    ];
    for (const reply of failures) {
      const asked = await machine(reply);
      const job = await runAction(asked, inputs(asked, { files: "true" }));
      expect(job.failed).toBeDefined();
      expect(job.env).toEqual({});
      expect(job.log).not.toContain("tok-123456");
    }
  });

  test("name the inputs that the action does not have, and fetch nothing", async () => {
    const asked = await machine();
    const job = await runAction(asked, inputs(asked, { key: "MOTD", EXPORTS: "false", RUN: "true" }));
    expect(job.log).toContain("The action has no input key EXPORTS: its inputs are url, api-key, audience, project,");
    const named = /its inputs are (.*)\./.exec(job.log)?.[1]?.split(", ");
    expect(named).toEqual(Object.keys(action.inputs));
    expect(asked.liar.questions).toHaveLength(0);
  });

  test("refuse inputs that are none, and run nothing that is in them", async () => {
    const asked = await machine();
    const wrong: Record<string, string>[] = [
      { "api-key": "" },
      { "api-key": `${asked.key}\n::add-mask::x` },
      { files: "yes" },
      { export: "$(touch ran)" },
      { project: "web; touch ran" },
      { project: "$(touch ran)" },
      { environment: "prod" },
      { keys: "A;touch ran" },
      { keys: '"; touch ran; "' },
      { url: "http://192.0.2.1" },
      { program: "$(touch ran)" },
      { program: "no-such-file" },
    ];
    for (const one of wrong) {
      const job = await runAction(asked, inputs(asked, one));
      expect({ one, failed: typeof job.failed }).toEqual({ one, failed: "string" });
      expect(job.env).toEqual({});
      expect(existsSync(join(job.workspace, "ran"))).toBe(false);
    }
    expect(asked.liar.questions).toHaveLength(0);
  });

  describe("without the input program", () => {
    /** A commit that pins a release of three archives, and a curl that has them. */
    const pinned = async (folder: string) => {
      const release = join(folder, "release");
      const lines = ["linux-x64", "linux-arm64", "linux-x64-musl", "linux-arm64-musl"].map((target) => {
        const top = `keyhole-1.2.3-${target}`;
        mkdirSync(join(release, top), { recursive: true });
        writeFileSync(join(release, top, "keyhole"), `#!/bin/sh\n# ${target}\nexec ${binary} "$@"\n`, { mode: 0o755 });
        Bun.spawnSync(["tar", "-czf", `${top}.tar.gz`, top], { cwd: release });
        return `${new Bun.CryptoHasher("sha256").update(readFileSync(join(release, `${top}.tar.gz`))).digest("hex")}  ${top}.tar.gz\n`;
      });
      writeFileSync(join(release, "SHA256SUMS"), lines.join(""));
      copyFileSync(join(root, "action.yml"), join(folder, "action.yml"));
      const pin = [process.execPath, "--no-env-file", join(root, ".ci/artifacts/pin-action.ts"), release];
      expect(Bun.spawnSync(pin, { cwd: folder }).stderr.toString()).toBe("");
      const tools = join(folder, "tools");
      mkdirSync(tools);
      // Not curl: something that notes what it was asked for.
      const curl = `#!/bin/sh\necho "$*" > "${tools}/asked"\ncp "${release}/\${11##*/}" "\${10}"\n`;
      writeFileSync(join(tools, "curl"), curl, { mode: 0o755 });
      const of = parseYaml(readFileSync(join(folder, "action.yml"), "utf8")) as Action;
      return { of, release, tools };
    };
    const cpu = process.arch as "x64" | "arm64";
    const archive = `keyhole-1.2.3-linux-${cpu}.tar.gz`;

    test("download the release that the commit pins, over https alone", async () => {
      const asked = await machine();
      const { of, tools } = await pinned(asked.folder);
      const job = await runAction(asked, inputs(asked, { program: "" }), { of, tools });
      expect(job).toMatchObject({ failed: undefined, env: truth.variables });
      expect(readFileSync(join(job.path[0] ?? "", "keyhole"), "utf8")).toContain(`# linux-${cpu}\n`);
      expect(readFileSync(join(tools, "asked"), "utf8")).toBe(
        `--fail --silent --show-error --location --proto =https --retry 3 --output ${archive} ${publisher.releases}/v1.2.3/${archive}\n`,
      );
    });

    test("take the program for musl where that is the runner's", async () => {
      const asked = await machine();
      const { of, tools } = await pinned(asked.folder);
      writeFileSync(join(tools, "ldd"), "#!/bin/sh\necho 'musl libc (x86_64)' >&2; exit 1\n", { mode: 0o755 });
      const job = await runAction(asked, inputs(asked, { program: "" }), { of, tools });
      expect(readFileSync(join(job.path[0] ?? "", "keyhole"), "utf8")).toContain(`# linux-${cpu}-musl\n`);
    });

    test("refuse an archive that is another one, and run nothing of it", async () => {
      const asked = await machine();
      const { of, release, tools } = await pinned(asked.folder);
      const bytes = readFileSync(join(release, archive));
      writeFileSync(join(release, archive), Buffer.concat([bytes, Buffer.of(0)]));
      const job = await runAction(asked, inputs(asked, { program: "" }), { of, tools });
      expect(job).toMatchObject({ failed: "Get keyhole", path: [], env: {} });
      expect(job.log).toContain(`${archive} is not the one that this commit of the action pins.`);
      expect(asked.liar.questions).toHaveLength(0);
    });

    test("say that there is no program for the runner, or no release at all", async () => {
      const asked = await machine();
      const { of, tools } = await pinned(asked.folder);
      const given = inputs(asked, { program: "" });
      const elsewhere = await runAction(asked, given, { of, tools, env: { RUNNER_OS: "Windows", RUNNER_ARCH: "X64" } });
      expect(elsewhere.log).toContain("The release has no program for this runner (Windows, X64).");
      const step = (one: Step) => (one.env?.["RELEASE"] ? { ...one, env: { ...one.env, RELEASE: "" } } : one);
      const runs = { ...of.runs, steps: of.runs.steps.map(step) };
      const none = await runAction(asked, given, { of: { ...of, runs } });
      expect(none.log).toContain("This commit of the action pins no release");
      expect([elsewhere.failed, none.failed]).toEqual(["Get keyhole", "Get keyhole"]);
    });
  });
});

describe("the recipes", () => {
  test("the plain shell's runs as it stands, and stops where nothing can be fetched", async () => {
    const recipe = blockOf("docs/ci.md", "sh", "keyhole pull --wait");
    for (const shell of ["sh", "bash"]) {
      for (const honest of [true, false]) {
        const asked = await machine(honest ? undefined : () => refusal(401, "unauthorized", "No."));
        writeFileSync(join(asked.folder, "deploy.sh"), '#!/bin/sh\nprintf "%s\\n" "$DATABASE_URL"\n', { mode: 0o755 });
        const ran = await runRecipe(asked, [shell, "-c", recipe], {});
        expect(ran).toEqual(honest ? [0, `${truth.variables["DATABASE_URL"]}\n`.repeat(2)] : [125, ""]);
      }
    }
  });

  test("the container's copies the program from where its image has it, and starts a command with its variables", async () => {
    const entryPoint = /^ENTRYPOINT (\[.*\])$/m;
    const page = readFileSync(join(root, "docs/containers.md"), "utf8");
    const [program] = JSON.parse(entryPoint.exec(readFileSync(join(root, "Dockerfile"), "utf8"))?.[1] ?? "");
    expect(page).toContain(`COPY --from=keyhole ${program} ${program}`);
    const command = [...JSON.parse(entryPoint.exec(page)?.[1] ?? ""), "printenv", "API_TOKEN"];
    expect(await runRecipe(await machine(), [bash, "-c", '"$@"', "bash", ...command], {})).toEqual([0, "tok-123456\n"]);
  });
});

/** With the program on the PATH, under its own name. */
type Ended = [exitCode: number, stdout: string];
async function runRecipe({ folder, env }: Machine, command: string[], more: Record<string, string>): Promise<Ended> {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  symlinkSync(binary, join(bin, "keyhole"));
  const ran = await run(command, { cwd: folder, env: { ...more, ...env, PATH: `${bin}:${process.env["PATH"]}` } });
  return [ran.exitCode, ran.stdout];
}
