/** The commands of docs/. `production.test.ts` has the pages that begin with an empty PostgreSQL. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newFolder } from "../support/folder.ts";
import { binary } from "../support/keyhole.ts";
import { blockOf, blocksOf, readPage } from "../support/markdown.ts";
import { isRun, makeBin, needed, runPage } from "../support/page.ts";
import { freePort } from "../support/port.ts";
import { findPython, whereInstalled, withPrograms } from "../support/programs.ts";
import { keyOf, siteOf } from "../support/server.ts";

setDefaultTimeout(120_000);

const root = join(import.meta.dir, "../..");
/** Those that begin with PostgreSQL are run by another test. */
const others = /"(docs\/[\w-]+\.md)": /g;
const elsewhere = [...readPage("test/blackbox/production.test.ts").matchAll(others)].map(([, page]) => page ?? "");
const pages = [...new Bun.Glob("docs/**/*.md").scanSync(root)].filter((page) => !elsewhere.includes(page)).sort();

/** A read whose request id pages name. */
const read = "curl -sf -H 'x-request-id: 0f6e2c1a' -H \"Authorization: Bearer $KEYHOLE_API_KEY\" $READ";

/** What a page takes for granted beside a first installation, as commands, and whether a server runs. */
const scenes: Readonly<Record<string, { before?: string; server?: boolean }>> = {
  "docs/agents.md": { before: `echo '{ "scripts": { "test": "true" } }' > package.json` },
  "docs/audit.md": { before: read },
  "docs/backup.md": { server: false },
  "docs/ci.md": { before: "touch server.js" },
  "docs/history.md": {
    before: `for n in 4 5 6 7 8 9 10 11; do printf $n | keyhole var set acme/web production NUMBER; done
printf 12 | keyhole var set acme/web production URL; printf 13 | keyhole var set acme/web production NUMBER`,
  },
  "docs/messages.md": { before: read },
  "docs/index.md": { before: `echo '{ "scripts": { "start": "true" } }' > package.json` },
  // The first round of the notary.
  "docs/proof.md": { server: true, before: "until grep -q signed_checkpoint /var/log/keyhole.log; do :; done" },
  "docs/root-key.md": { server: false, before: "rm -r .keyhole" },
  "docs/start.md": { before: "rm -r .keyhole" },
  "docs/rotation.md": { before: "printf made-up > key.txt" },
};

withPrograms(needed, "the first page", () => {
  test("has a first installation that works as pasted, with a build of a checkout and a link to the dashboard", async () => {
    const folder = newFolder();
    const checkout = join(folder, "checkout");
    const parts = ["src", "drizzle"];
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
    const before = blockOf("docs/start.md", "sh", "run build");
    const screen = await runPage("docs/start.md", {
      folder: checkout,
      before,
      env: { ...env, PORT: String(freePort()) },
    });
    expect(screen.match(/shop:made-up/g)).toHaveLength(2);
    expect(screen).toMatch(/http:\/\/\S+\.localhost:\d+\//);
  });
});

whereInstalled(["python3", "bash", "sed"], "the stranger's walk", (_, bash = "", sed = "") => {
  test("prints what docs/proof.md says, line by line, with two files, Python and no Keyhole", () => {
    const folder = newFolder();
    for (const name of ["keyhole_proof.py", "deploy.proof"]) {
      cpSync(join(root, "docs/clients", name), join(folder, name));
    }
    const steps = blocksOf("docs/proof.md")
      .filter(({ language }) => language === "console")
      .flatMap(({ text }) => text.split(/^\$ /m).slice(1))
      .map((step) => [step.slice(0, step.indexOf("\n")), step.slice(step.indexOf("\n") + 1)] as const);
    const script = steps.map(([command]) => `${command} 2>&1; printf '\\f'`).join("\n");
    const bin = join(folder, "bin");
    mkdirSync(bin);
    symlinkSync(findPython("hashlib") ?? "", join(bin, "python3"));
    symlinkSync(sed, join(bin, "sed"));
    const { stdout } = Bun.spawnSync([bash, "-c", script], { cwd: folder, env: { PATH: bin } });
    expect(steps.length).toBe(4);
    expect(stdout.toString().split("\f").slice(0, -1)).toEqual(steps.map(([, printed]) => printed));
  });
});

withPrograms(needed, "every block of commands is run, or says why not:", () => {
  const values = { DATABASE_URL: "postgres://db", API_TOKEN: "made-up" };
  const site = siteOf("sqlite", { production: values, development: values });
  /** The `.env` of the reader's own, which no page may touch. */
  const theirs = "THEIRS=1\n";
  const known = keyOf(site, "--org", "acme", "--resource", "projects,variables,accounts,files");

  test.each(pages)("%s", async (page) => {
    const blocks = blocksOf(page).filter((block) => isRun(page, block));
    if (blocks.length === 0) return;
    const folder = newFolder();
    cpSync(site.data, join(folder, ".keyhole"), { recursive: true });
    writeFileSync(join(folder, ".env"), theirs);
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
    // A witness on this machine, in place of the one behind a proxy on another.
    const witness = String(freePort());
    const words = {
      ...{ "0199a3c4-…": known.id, "0199a3c4": known.id, "0f6e2c1a-…": "0f6e2c1a" },
      ...{ "--port 4101": `--port ${witness}`, "https://witness.example.com#": `http://127.0.0.1:${witness}#` },
    };
    await runPage(page, { folder, env, before: `${serve}${before}\n`, words });
    expect(readFileSync(join(folder, ".env"), "utf8")).toBe(theirs);
  });
});
