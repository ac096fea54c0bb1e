import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A code block of a page. */
export type Block = {
  /** Such as `ts`; empty if the page names none or indents the block. */
  readonly language: string;
  readonly text: string;
  /** The file that a first line such as `// app.mjs` or `# worker.py` names, by its relative path. */
  readonly file: string | undefined;
  /** The comment that stands right before the block, without its `<!--` and `-->`. */
  readonly comment: string | undefined;
};

/** Returns the text of a file of the repository, such as `docs/ci.md`. */
export function readPage(page: string): string {
  return readFileSync(join(import.meta.dir, "../..", page), "utf8");
}

/** Returns the code blocks of a page, in their order. */
export function blocksOf(page: string): Block[] {
  const blocks: Block[] = [];
  let comment: string | undefined;
  const between = () => {
    comment = undefined;
    return "";
  };
  // Bun's parser turns the tabs that begin a line of code into spaces.
  const tab = "\ue000";
  Bun.markdown.render(readPage(page).replaceAll("\t", tab), {
    html: (text) => {
      comment = /^\s*<!--\s*([\s\S]*?)\s*-->\s*$/.exec(text)?.[1];
      return "";
    },
    code: (rendered, { language = "" } = {}) => {
      const text = rendered.replaceAll(tab, "\t");
      const file = /^(?:\/\/|#) ([\w-]+(?:\/[\w-]+)*\.\w+)\n/.exec(text)?.[1];
      blocks.push({ language, text, file, comment });
      return between();
    },
    ...{ heading: between, paragraph: between, listItem: between, table: between, blockquote: between, hr: between },
  });
  return blocks;
}

/** Returns the text of the first block of this language that holds these words. @throws Error if there is none */
export function blockOf(page: string, language: string, words = ""): string {
  const block = blocksOf(page).find((one) => one.language === language && one.text.includes(words));
  if (block === undefined) throw new Error(`${page} has no block of ${language} with ${JSON.stringify(words)}`);
  return block.text;
}
