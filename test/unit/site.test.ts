import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Description, referenceOf } from "../../docs/.vitepress/reference.ts";
import { pagesOf, shelves } from "../../docs/.vitepress/sidebar.ts";
import { blocksOf } from "../support/markdown.ts";

const docs = join(import.meta.dir, "../../docs");

const readers = shelves.flatMap(pagesOf).map(({ page }) => `${page}.md`);

describe("the site's sidebar", () => {
  test("names every page of docs/ but the first once, and no other", () => {
    const pages = readdirSync(docs).filter((name) => name.endsWith(".md") && name !== "index.md");
    expect(readers.toSorted()).toEqual(pages.toSorted());
  });

  test("is three shelves, as the first page is", () => {
    const headings = readFileSync(join(docs, "index.md"), "utf8").matchAll(/^## (.*)$/gm);
    expect([...headings].map(([, text]) => text).slice(0, 3)).toEqual(shelves.map(({ text }) => text));
    expect(shelves.map(({ text }) => text)).toEqual(["Start", "Use", "Trust"]);
  });
});

test("no page of the shelves has more than 2,000 words, and the README at most 700", () => {
  const wordsOf = (file: string) => readFileSync(join(docs, file), "utf8").split(/\s+/).filter(Boolean).length;
  const long = ["index.md", ...readers].map((page) => `${page}: ${wordsOf(page)}`);
  expect(long.filter((line) => Number(line.split(": ")[1]) > 2000)).toEqual([]);
  expect(wordsOf("../README.md")).toBeLessThanOrEqual(700);
});

test("the first example of each page is one to defend before a security team", () => {
  const wrong = (page: string) => {
    /** The lines of the first block that has these words. */
    const first = (words: RegExp) => {
      const text = blocksOf(page).find(({ text }) => words.test(text))?.text ?? "";
      return text.replaceAll("\\\n", " ").split("\n");
    };
    const lines = (words: RegExp) => first(words).filter((line) => words.test(line));
    const action = first(/uses: .*keyhole/);
    return [
      // A key has an end.
      ...lines(/key create/).filter((line) => !/--expires-in|--canary/.test(line)),
      // A trust says which environment or event, or the one workload, and how often a job of CI may read.
      ...lines(/trust add/).filter(
        (line) =>
          !/--claim '?(?:environment|event_name|deploymentEnvironmentUuid|sub|oid)=|--spiffe-id/.test(line) ||
          (!/--claim (?:sub|oid)=|--spiffe-id/.test(line) && !/--reads-per-job \d/.test(line)),
      ),
      // What is fetched is named.
      ...lines(/keyhole (?:run|pull) /).filter((line) => !/--(?:require|keys) /.test(line)),
      // The action gives one command what it names, and later steps nothing.
      ...(/uses:/.test(action.join()) && !/(?=.*, +run: )(?=.*, +keys: )(?!.*, +(?:export|files): )/.test(action.join())
        ? action
        : []),
    ];
  };
  const pages = ["README.md", "docs/index.md", ...readers.map((page) => `docs/${page}`)];
  expect(pages.flatMap((page) => wrong(page).map((line) => `${page}: ${line}`))).toEqual([]);
});

describe("a block of commands that somebody pastes", () => {
  const pages = [...new Bun.Glob("**/*.md").scanSync(docs)].map((page) => `docs/${page}`);
  /** Commands of several lines as one, without comments and the text of here documents. */
  const commandsOf = (block: string) =>
    block
      .replace(/<<(\w+)(.*)\n[\s\S]*?\n\1$/gm, "$2")
      .replace(/\\\n|(?<=\|)\n/g, " ")
      .split("\n")
      .map((line) => line.replace(/(?<=^| )#.*/, "").trim())
      .filter(Boolean);
  const blocks = ["README.md", ...pages].flatMap((page) =>
    blocksOf(page)
      .filter(({ language, file }) => /^(sh)?$/.test(language) && file === undefined)
      .flatMap(({ text }) => text.split("\n\n").map((part) => ({ page, commands: commandsOf(part) }))),
  );

  test("stops at its first failure if a later line removes, replaces or restarts something", () => {
    const harms =
      /^(?:rm|mv|cp|install|systemctl|helm install|pg_restore)\b|keyhole (?:restore|db upgrade)|--(?:force|finish|apply)\b/;
    const found = blocks.flatMap(({ page, commands }) => {
      const last = commands.findLastIndex((command) => harms.test(command));
      return commands.filter((one, at) => at < last && !one.endsWith("&&")).map((one) => `${page}: ${one}`);
    });
    expect(found).toEqual([]);
  });

  test("waits for nothing without an end, and says where to look then", () => {
    const waits = blocks
      .flatMap(({ commands }) => commands)
      .filter((one) => /\b(?:until|while) .*; do|--retry/.test(one));
    expect(waits.length).toBeGreaterThan(1);
    for (const wait of waits) expect(wait).toMatch(/(timeout \d|--retry-max-time \d).* \|\| *(tail|journalctl)/);
  });
});

describe("the API reference", () => {
  const description = JSON.parse(readFileSync(join(docs, "openapi.json"), "utf8")) as Description;
  const reference = referenceOf(description);

  test("has every endpoint, with every parameter and every code", () => {
    for (const [path, { get }] of Object.entries(description.paths)) {
      const [section = ""] = reference.split(`## \`GET ${path}\` `).slice(1).join().split(/^## /m);
      for (const { name } of get.parameters ?? []) expect(section).toContain(`| \`${name}\` |`);
    }
    for (const code of description.components.schemas["Problem"]?.properties?.["code"]?.enum ?? []) {
      if (code === "not_found" || code === "method_not_allowed") continue; // of no endpoint
      expect(reference).toContain(`| \`${code}\` |`);
    }
  });

  test("has every field of every answer, with the way there", () => {
    const { Problem: _, ...answers } = description.components.schemas;
    for (const { properties } of Object.values(answers)) {
      for (const field of Object.keys(properties ?? {})) {
        expect(reference).toMatch(new RegExp(`^\\| \`([\\w.[\\]]+\\.)?${field}\` \\|`, "m"));
      }
    }
    for (const field of ["variables[].updatedAt", "files[].sha256", "project.slug", "accounts[].values"]) {
      expect(reference).toContain(`| \`${field}\` |`);
    }
  });
});
