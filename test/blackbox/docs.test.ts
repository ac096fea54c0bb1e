/**
 * The commands of the README and of docs/, run as a reader would paste them: each page in one shell, block after block.
 * A block that is neither run nor marked fails the test of its page.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Block, blocksOf, readPage } from "../markdown.ts";
import { freePort } from "../port.ts";
import { findProgram, withPrograms } from "../support/programs.ts";
import { binary, startOnTerminal } from "./keyhole.ts";
import { furnish, type Key, makeSite, type Site } from "./server.ts";

setDefaultTimeout(120_000);

const root = join(import.meta.dir, "../..");
const pages = [...new Bun.Glob("docs/**/*.md").scanSync(root)].sort();

/** What the pages may use beside `keyhole`: nothing that could change this machine. */
const needed = "bash cat cp curl dirname env grep install mkdir node npm openssl rm sh touch".split(" ");

/** What a page takes for granted beside the installation of the README, as commands, and whether a server runs. */
const scenes: Readonly<Record<string, { before?: string; server?: boolean }>> = {
  "docs/agents.md": { before: `echo '{ "scripts": { "test": "true" } }' > package.json` },
  "docs/audit.md": {
    before: "curl -sf -H 'x-request-id: 0f6e2c1a' -H \"Authorization: Bearer $KEYHOLE_API_KEY\" $READ",
  },
  "docs/backup.md": { server: false },
  "docs/ci.md": { before: "touch server.js" },
  "docs/history.md": {
    before: "for n in 3 4 5 6 7 8 9 10 11 12 13; do printf $n | keyhole var set acme/web production NUMBER; done",
  },
  "docs/root-key.md": { server: false, before: "rm -r .keyhole" },
  "docs/start.md": { before: "rm -r .keyhole" },
  "docs/rotation.md": { before: "printf made-up > key.txt" },
};

type Env = Readonly<Record<string, string>>;

const advice =
  "Each block of commands is run as it stands. Before one that cannot be, put the line `<!-- not run: REASON -->`, or " +
  "`<!-- run by test/FOLDER/NAME.test.ts -->` if that test takes it from the page. A block in another language than " +
  "sh names it, such as ```text.";

withPrograms(needed, "the README", () => {
  test("has a first installation that works as pasted, and an application reads the secret in three ways", async () => {
    const folder = mkdtempSync(join(tmpdir(), "keyhole-readme-"));
    try {
      const checkout = join(folder, "checkout");
      const parts = ["src", "drizzle", "docs/client.md", ".ci", "LICENSE"];
      for (const part of [...parts, "package.json", "bun.lock", "bunfig.toml", "tsconfig.json"]) {
        cpSync(join(root, part), join(checkout, part), { recursive: true });
      }
      const home = join(folder, "home");
      mkdirSync(home);
      const bin = makeBin(folder);
      const npxBin = join(folder, "npx");
      mkdirSync(npxBin);
      symlinkSync(process.execPath, join(npxBin, "bun"));
      // npx would download this Bun again. `.ci/run` uses the real npx.
      const cache = Bun.spawnSync([process.execPath, "pm", "cache"], { cwd: root }).stdout.toString().trim();
      const npx = `#!/bin/sh
[ "$1 $2 $3" = "--yes --allow-scripts=bun bun@${Bun.version}" ] || exit 64
shift 3
export BUN_INSTALL_CACHE_DIR='${cache}' PATH='${npxBin}':"$PATH"
exec bun "$@"
`;
      writeFileSync(join(bin, "npx"), npx, { mode: 0o755 });
      const env = { HOME: home, PATH: bin, npm_config_audit: "false", npm_config_update_notifier: "false" };
      const screen = await runPage("README.md", checkout, { ...env, PORT: String(freePort()) });
      expect(screen.match(/hello from Keyhole/g)).toHaveLength(3);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

withPrograms(needed, "every block of commands is run, or says why not:", () => {
  let site: Site;
  let known: Key;
  beforeAll(async () => {
    const values = { DATABASE_URL: "postgres://db", API_TOKEN: "made-up" };
    site = await furnish(await makeSite("sqlite"), { production: values, development: values });
    known = await site.key("--org", "acme", "--resource", "projects,variables,accounts,files");
  });
  afterAll(() => site?.remove());

  test.each(pages)("%s", async (page) => {
    const blocks = blocksOf(page).filter((block) => isRun(page, block));
    if (blocks.length === 0) return;
    const folder = mkdtempSync(join(tmpdir(), "keyhole-page-"));
    try {
      cpSync(site.data, join(folder, ".keyhole"), { recursive: true });
      for (const name of ["backups", "etc", "var/log"]) mkdirSync(join(folder, name), { recursive: true });
      const bin = makeBin(folder);
      symlinkSync(binary, join(bin, "keyhole"));
      const port = freePort();
      const origin = `http://127.0.0.1:${port}`;
      const env = {
        ...{ HOME: folder, PATH: bin, KEYHOLE_ACTOR: "ann@laptop" },
        ...{ PORT: String(port), KEYHOLE_OPS_PORT: String(freePort()) },
        ...{
          KEYHOLE_URL: origin,
          KEYHOLE_API_KEY: known.key,
          KEYHOLE_PROJECT: "web",
          KEYHOLE_ENVIRONMENT: "production",
        },
        READ: `${origin}/api/v1/projects/web/variables?environment=production`,
      };
      const { server = !blocks.some(({ text }) => text.includes("keyhole serve")), before = "" } = scenes[page] ?? {};
      const serve = server ? "keyhole serve > /var/log/keyhole.log\n" : "";
      await runPage(page, folder, env, `${serve}${before}\n`, known.id);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

/** Makes a folder for PATH with the needed programs alone: there is no other keyhole in it, and no Bun. */
function makeBin(folder: string): string {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  for (const name of needed) symlinkSync(findProgram(name) ?? name, join(bin, name));
  return bin;
}

/** Whether a block is to be run. @throws Error for a mark that is wrong */
function isRun(page: string, { language, text, comment = "" }: Block): boolean {
  if (language !== "" && language !== "sh") return false;
  const [, by] = /^run by (test\/\S+)$/.exec(comment) ?? [];
  if (by === undefined) return !/^not run: \S.{8,}$/s.test(comment);
  if (existsSync(join(root, by)) && readPage(by).includes(`"${page}"`)) return false;
  throw new Error(`${page}: ${by} does not name this page, so it cannot run this block:\n${text}\n${advice}`);
}

/**
 * Runs the blocks of a page in one shell on a terminal, and answers its questions with yes. Returns what it showed.
 * @param before - commands that the page takes for granted
 * @param id - of the key that the page knows as 0199a3c4
 */
async function runPage(page: string, folder: string, env: Env, before = "", id = ""): Promise<string> {
  const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const scripts = blocksOf(page).map((block) => {
    if (block.file !== undefined) {
      return `mkdir -p "$(dirname ${block.file})"\nprintf %s ${quoted(block.text)} > ${block.file}`;
    }
    return isRun(page, block) ? `block=${quoted(block.text)}\n${adapt(block.text, folder, env, id)}` : "";
  });
  const script = `set -eE
block=${quoted(`what the page takes for granted: ${before}`)}
trap 'echo; echo "FAILED: $BASH_COMMAND"; echo "in this block:"; echo "$block"' ERR
trap 'status=$?; kill $(jobs -p) 2>/dev/null || true; wait; exit $status' EXIT
${[adapt(before, folder, env, id), ...scripts].join("\n")}
`;
  writeFileSync(join(folder, "page.sh"), script);
  const reply = { question: "[y/N] ", answer: "y\r" };
  const shell = startOnTerminal([findProgram("bash") ?? "", "page.sh"], 200, folder, env, reply);
  const { exitCode, screen } = await shell.ended;
  if (exitCode !== 0) throw new Error(`${page} ended with ${exitCode}:\n${screen}\n${advice}`);
  return screen;
}

/** Puts this run's ports, paths and ids in place of the page's. What runs until it is stopped runs in the background. */
function adapt(text: string, folder: string, env: Env, id: string): string {
  const own = text
    .replaceAll("127.0.0.1:4100", `127.0.0.1:${env["PORT"]}`)
    .replaceAll("127.0.0.1:4101", `127.0.0.1:${env["KEYHOLE_OPS_PORT"]}`)
    .replace(/(?<=[\s=>'"])\/(?!dev\/)(?=\w+\/)/g, `${folder}/`)
    .replace(/\b0199a3c4(-…)?/g, id)
    .replaceAll("0f6e2c1a-…", "0f6e2c1a");
  const ports = [env["PORT"], env["KEYHOLE_OPS_PORT"]].filter((port) => port !== undefined);
  const isUp = ports.map((port) => `until (: < /dev/tcp/127.0.0.1/${port}) 2>/dev/null; do kill -0 $!; done`);
  return own
    .split("\n")
    .map((line) => {
      const endless = /^([A-Z_]+=\S+ )*keyhole (serve\b|.* --(follow|watch)\b)/.test(line);
      const started = endless ? `${line.replace(/( +#.*|\s*&)$/, "")} &` : line;
      return line.includes("keyhole serve") ? [started, ...isUp].join("\n") : started;
    })
    .join("\n");
}
