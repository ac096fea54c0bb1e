/**
 * The lines of docs/coming-from.md. A stand-in for each tool prints what the tool does, as its documentation and source
 * have it; dotenvx is the real one.
 */
import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newFolder } from "../support/folder.ts";
import { binary } from "../support/keyhole.ts";
import { blocksOf } from "../support/markdown.ts";
import { run as runProgram } from "../support/program.ts";
import { findProgram, withPrograms } from "../support/programs.ts";
import { keyOf, serverOf, siteOf } from "../support/server.ts";

const page = "docs/coming-from.md";
const lines = blocksOf(page).filter(({ comment }) => comment?.includes("coming-from.test.ts"));
const url = "postgres://app:p%40ss@db/app?a=1&b=2";
const pem = "-----BEGIN KEY-----\nabc\n-----END KEY-----\n";
const quotes = `it's "two" $HOME #1`;
const texts = { EMPTY: "", KEY: "Grüße 🔑", PRICE: "1.10", QUOTES: quotes, TLS_KEY: pem, WORD: "yes" };
const values = { DATABASE_URL: url, ...texts };

/** As Go's packages write JSON and YAML. */
const goJson = (value: unknown, indent = "") => JSON.stringify(value, null, indent).replaceAll("&", "\\u0026");
const goYaml = (indent: string, key: string) => `DATABASE_URL: ${url}
EMPTY: ""
KEY: ${key}
PRICE: "1.10"
QUOTES: 'it''s "two" $HOME #1'
TLS_KEY: |
${pem.replace(/^(?=.)/gm, indent)}WORD: "yes"
`;
const vault = `${goJson(values, "  ").slice(0, -2)},\n  "PORT": 5432,\n  "RATE": 1.10\n}\n`;
const item = {
  ...{ id: "nerlnqbfzdm5q5g6ydsgdqgdw4", title: "web-production", version: 3, category: "SECURE_NOTE" },
  vault: { id: "ftz4pm2xxwmwrsd7rjqn7grzfz", name: "acme" },
  sections: [{ id: "add more" }],
  fields: [
    { id: "notesPlain", type: "STRING", purpose: "NOTES", label: "notesPlain", reference: "op://acme/web/notesPlain" },
    ...Object.entries(values).map(([label, value]) => ({
      ...{ id: label.toLowerCase(), section: { id: "add more" }, type: "CONCEALED", label },
      ...(value !== "" && { value }),
    })),
  ],
};
const { EMPTY: _, ...filled } = values;

type Scene = { readonly prints?: string; readonly files?: Readonly<Record<string, string>> };
/** What a block needs, by a text that only it has, and the variables that it stores. */
const scenes: Readonly<Record<string, Scene & { readonly stores: object }>> = {
  "infisical export": { prints: goYaml("  ", '"Grüße \\U0001F511"'), stores: values },
  "doppler secrets": { prints: goJson({ ...values, DOPPLER_CONFIG: "x" }), stores: { ...values, DOPPLER_CONFIG: "x" } },
  "vault kv get": { prints: vault, stores: { ...values, PORT: "5432", RATE: "1.10" } },
  "--secret-id prod/web": { prints: `${JSON.stringify(values)}\n`, stores: values },
  "--secret-id prod/tls-key": { prints: `${JSON.stringify(pem)}\n`, stores: { TLS_KEY: pem } },
  "op item get": { prints: `${JSON.stringify(item, null, 2)}\n`, stores: filled },
  "op inject": { prints: `DATABASE_URL="${url}"\nPRICE=1.10\n`, stores: { DATABASE_URL: url, PRICE: "1.10" } },
  "--output-type json": { prints: goJson(values), stores: values },
  "web.enc.yaml": { prints: goYaml("    ", "Grüße 🔑"), stores: values },
  "dotenvx get": {
    files: { ".env.production": `DATABASE_URL="${url}"\nPRICE=1.10\n` },
    stores: { DATABASE_URL: url, PRICE: "1.10" },
  },
  "production .env.production": { files: { ".env.production": "PRICE=1.10\n" }, stores: { PRICE: "1.10" } },
  "secrets/*": {
    files: Object.fromEntries(Object.entries(filled).map(([name, value]) => [`secrets/${name}`, value])),
    stores: filled,
  },
};

test("each block of the page has a scene, and each scene a block", () => {
  const entering = lines.filter(({ text }) => !text.includes("keyhole export"));
  const found = entering.map(({ text }) => Object.keys(scenes).filter((word) => text.includes(word)));
  expect(found.map(({ length }) => length)).toEqual(found.map(() => 1));
  expect(found.flat().sort()).toEqual(Object.keys(scenes).sort());
});

withPrograms(["bash", "jq", "node"], "coming from elsewhere", () => {
  describe("each line of the page", () => {
    const site = siteOf("sqlite", {});
    const server = serverOf(site);
    const machine = keyOf(site, "--org", "acme", "--surface", "rest_api,ci_action", "--resource", "variables,files");

    let count = 0;
    /** Runs a block with the stand-in on PATH, for a new project unless one is named. */
    async function run(text: string, { prints, files = {} }: Scene, existing?: string) {
      const slug = existing ?? `web${++count}`;
      if (existing === undefined) await site.json(["project", "create", `acme/${slug}`]);
      const folder = newFolder();
      const bin = join(folder, "bin");
      mkdirSync(bin);
      mkdirSync(join(folder, "secrets"));
      for (const name of ["bash", "cat", "jq", "mkdir", "node"])
        symlinkSync(findProgram(name) ?? name, join(bin, name));
      symlinkSync(binary, join(bin, "keyhole"));
      for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
      const env = { ...site.env, PATH: bin, HOME: folder, KEYHOLE_URL: server.origin, KEYHOLE_API_KEY: machine.key };
      if (prints !== undefined) {
        writeFileSync(join(folder, "printed"), prints);
        const tool = /^\w+/.exec(text)?.[0] ?? "";
        writeFileSync(join(bin, tool), `#!${bin}/bash\nexec cat '${folder}/printed'\n`, { mode: 0o755 });
      }
      if (text.startsWith("dotenvx")) {
        const real = join(import.meta.dir, "../../node_modules/@dotenvx/dotenvx/src/cli/dotenvx.js");
        writeFileSync(join(bin, "dotenvx"), `#!${bin}/bash\nexec node '${real}' "$@"\n`, { mode: 0o755 });
        const args = ["encrypt", "-f", ".env.production"];
        const encrypted = Bun.spawnSync([join(bin, "dotenvx"), ...args], { cwd: folder, env });
        expect(encrypted.exitCode).toBe(0);
        expect(readFileSync(join(folder, ".env.production"), "utf8")).toContain("encrypted:");
      }
      const own = text.replaceAll("acme/web", `acme/${slug}`).replaceAll("-p web", `-p ${slug}`);
      const ran = await runProgram([join(bin, "bash"), "-c", `set -eo pipefail\n${own}`], { cwd: folder, env });
      const answer = await server.get(`/secrets?project=${slug}&environment=production`, machine.key);
      return { ...ran, folder, slug, stored: answer.json<{ secrets: object }>().secrets };
    }

    test.each(Object.entries(scenes))("%s", async (word, scene) => {
      const { text = "" } = lines.find((block) => block.text.includes(word)) ?? {};
      const ran = await run(text, scene);
      expect(ran).toMatchObject({ exitCode: 0, stored: scene.stores });
      expect(ran.stored).toEqual(scene.stores);
    });

    test("a tool that fails, or has something that is no variable, leaves nothing behind", async () => {
      const { text = "" } = lines.find((block) => block.text.includes("vault kv get")) ?? {};
      for (const [prints, words] of [
        ["", "this is YAML, but not JSON"],
        ["{}", "holds no variables"],
        [vault.replace("5432", '{"http":80}'), "PORT is an object"],
        [vault.slice(0, -3), "this is not JSON"],
      ] as const) {
        const ran = await run(text, { prints });
        expect(ran.stderr).toContain(words);
        expect(ran).toMatchObject({ exitCode: 2, stored: {} });
      }
    });

    test("leaving: what was brought in goes out", async () => {
      const { text = "" } = lines.find((block) => block.text.includes("keyhole export")) ?? {};
      const { text: entering = "" } = lines.find((block) => block.text.includes("doppler")) ?? {};
      const came = await run(entering, { prints: goJson(values) });
      writeFileSync(join(came.folder, "key.pem"), pem);
      const place = ["--path", "tls/key.pem", "--env", "production"];
      await site.json(["file", "put", `acme/${came.slug}`, join(came.folder, "key.pem"), ...place]);
      const left = await run(text, {}, came.slug);
      expect(left.exitCode).toBe(0);
      const production = join(left.folder, "acme", came.slug, "production");
      expect(JSON.parse(readFileSync(join(production, "variables.json"), "utf8"))).toEqual(values);
      expect(statSync(join(production, "variables.json")).mode & 0o777).toBe(0o600);
      expect(readFileSync(join(production, "files/tls/key.pem"), "utf8")).toBe(pem);
    });
  });
});
