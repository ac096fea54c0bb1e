import { copyFileSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { type DefaultTheme, defineConfig, type MarkdownRenderer } from "vitepress";
import { referenceOf } from "./reference.ts";
import { pagesOf, shelves } from "./sidebar.ts";

const docs = fileURLToPath(new URL("..", import.meta.url));

/** What pages say where the site has more: `api.md` the reference, `index.md` what `package.json` knows. */
const parts: readonly [placeholder: RegExp, text: () => string][] = [
  [/<!-- reference -->.*<!-- end of reference -->/s, () => referenceOf(JSON.parse(readBeside("openapi.json")))],
  [/<!-- about -->.*<!-- end of about -->/s, () => aboutOf(JSON.parse(readBeside("../package.json")))],
];

/** Code that a page shows. The search leaves it out: its comments would hide the pages that answer a question. */
const shownFiles: typeof parts = [
  [/<!-- keyhole\.py -->/, () => `\`\`\`python\n${readBeside("clients/keyhole.py")}\`\`\``],
  [/<!-- keyhole\.go -->/, () => `\`\`\`go\n${readBeside("clients/keyhole.go")}\`\`\``],
];

/** Files beside the pages that a page links to. They are copied into the site. */
const linkedFiles = new Set<string>();

export default defineConfig({
  lang: "en",
  title: "Keyhole",
  description: "Self-hosted, read-only HTTP API that hands encrypted secrets to machines.",
  outDir: "../dist/docs",
  head: [["link", { rel: "icon", href: "/icon.svg", type: "image/svg+xml" }]],
  markdown: {
    // The usual themes have comments of too little contrast.
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    config(md) {
      copyLinkedFiles(md);
      showCode(md);
      highlightIndented(md);
      plainEmptyHeads(md);
      labelCells(md);
    },
  },
  vite: {
    plugins: [
      {
        name: "keyhole",
        enforce: "pre",
        transform: (text, id) =>
          /\/(api|clients|index)\.md$/.test(id) ? expand(text, [...parts, ...shownFiles]) : null,
        // The packages are in this folder, where a page of `docs/` does not find them; the program that renders does.
        resolveId: (id, _, { ssr }) => (ssr && /^vue(\/|$)/.test(id) ? { id, external: true } : null),
      },
    ],
  },
  buildEnd({ outDir }) {
    for (const file of linkedFiles) {
      const copy = join(outDir, inSite(file));
      mkdirSync(dirname(copy), { recursive: true });
      copyFileSync(join(docs, file), copy);
    }
  },
  themeConfig: {
    logo: { src: "/icon.svg", alt: "" },
    nav: shelves.map((shelf) => ({
      text: shelf.text,
      link: `/${pagesOf(shelf)[0]?.page}`,
      activeMatch: `^/(${pagesOf(shelf)
        .map(({ page }) => page)
        .join("|")})$`,
    })),
    sidebar: shelves.map(({ text, groups }) => ({
      text,
      items: groups.flatMap(({ text, pages }): DefaultTheme.SidebarItem[] => {
        const items = pages.map(({ text, page }) => ({ text, link: `/${page}` }));
        return text === undefined ? items : [{ text, items, collapsed: true }];
      }),
    })),
    outline: [2, 3],
    // In the browser: nothing that is searched for leaves it.
    search: {
      provider: "local",
      options: {
        _render: (text, env, md) => (isForMaintainers(env.relativePath) ? "" : md.render(expand(text), env)),
        // A short word with one letter changed is another word: 429 and 422, helm and held.
        miniSearch: { searchOptions: { fuzzy: (term) => (term.length > 6 ? 0.2 : false) } },
      },
    },
  },
});

function isForMaintainers(page: string): boolean {
  return page.startsWith("maintainers/");
}

function expand(text: string, all = parts): string {
  return all.reduce((text, [placeholder, part]) => text.replace(placeholder, part), text);
}

function readBeside(file: string): string {
  return readFileSync(join(docs, file), "utf8");
}

/** The version, the licence, and the repository if `package.json` names one. */
function aboutOf(about: { version: string; license: string; repository?: { url: string } }): string {
  const source = about.repository ? [`[repository](${about.repository.url.replace(/^git\+|\.git$/g, "")})`] : [];
  return [
    `Version ${about.version}, [changes](../CHANGELOG.md)`,
    `licence [${about.license}](../LICENSE)`,
    ...source,
  ].join(" · ");
}

/**
 * Makes links to files such as `deploy/Caddyfile` and `../Dockerfile` downloads. VitePress would take them for pages.
 * In the site, what is beside `docs/` is beside the pages.
 */
function copyLinkedFiles(md: MarkdownRenderer): void {
  md.core.ruler.push("linked-files", ({ tokens, env }) => {
    const folder = dirname((env as { relativePath: string }).relativePath);
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const [href = ""] = token.type === "link_open" ? (token.attrGet("href") ?? "").split("#") : [];
      if (!/^(\.\.\/)*\w[\w./-]*$/.test(href)) continue;
      const file = join(folder, href);
      const isPage = file.endsWith(".md") && !file.startsWith("../");
      if (isPage || !statSync(join(docs, file), { throwIfNoEntry: false })?.isFile()) continue;
      linkedFiles.add(file);
      token.attrSet("href", relative(folder, inSite(file)));
      token.attrSet("download", "");
    }
  });
}

function inSite(file: string): string {
  return file.replace(/^\.\.\//, "");
}

/** Keeps Vue from taking `{{ }}` in code for its own, and short code in one line. */
function showCode(md: MarkdownRenderer): void {
  md.core.ruler.push("inline-code", ({ tokens }) => {
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      if (token.type !== "code_inline") continue;
      token.attrSet("v-pre", "");
      if (token.content.length <= 20) token.attrSet("class", "short");
    }
  });
}

/** Gives indented blocks, which are nearly all commands, the look of fenced ones. */
function highlightIndented(md: MarkdownRenderer): void {
  md.core.ruler.push("indented-code", ({ tokens }) => {
    for (const token of tokens) {
      if (token.type === "code_block") Object.assign(token, { type: "fence", tag: "code", info: "sh", markup: "```" });
    }
  });
}

/** A column without a heading gets an ordinary cell there, so nobody is read an empty heading. */
function plainEmptyHeads(md: MarkdownRenderer): void {
  md.core.ruler.push("empty-heads", ({ tokens }) => {
    for (const [at, { type, content }] of tokens.entries()) {
      if (type !== "inline" || content !== "" || tokens[at - 1]?.type !== "th_open") continue;
      Object.assign(tokens[at - 1] ?? {}, { tag: "td" });
      Object.assign(tokens[at + 1] ?? {}, { tag: "td" });
    }
  });
}

/** Gives each cell the heading of its column, which a phone shows beside it. */
function labelCells(md: MarkdownRenderer): void {
  md.core.ruler.push("labels", ({ tokens }) => {
    let labels: string[] = [];
    let column = 0;
    for (const [at, token] of tokens.entries()) {
      if (token.type === "table_open") labels = [];
      if (token.type === "tr_open") column = 0;
      if (token.type === "th_open") labels.push(tokens[at + 1]?.content ?? "");
      if (token.type === "td_open") token.attrSet("data-label", labels[column++] ?? "");
    }
  });
}
