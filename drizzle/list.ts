import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/* Writes migrations.ts from the journals of drizzle-kit: `bun run generate` does so last. */

const folder = import.meta.dir;
const lists = ["postgres", "sqlite"].map((dialect) => {
  const { entries } = JSON.parse(readFileSync(join(folder, dialect, "meta/_journal.json"), "utf8")) as {
    entries: readonly { readonly tag: string; readonly when: number }[];
  };
  const named = entries.map(({ tag, when }) => ({ tag, when, name: `${dialect}${tag.slice(0, 4)}` }));
  const imports = named.map(
    ({ tag, name }) => `import ${name} from "./${dialect}/${tag}.sql" with { type: "text" };\n`,
  );
  const rows = named.map(({ name, when }) => `  { text: ${name}, at: ${when} },\n`);
  return { imports, list: `export const ${dialect} = [\n${rows.join("")}];\n` };
});
const says = "/** The migrations in order, with their moments. Written by `bun run generate`. */\n";
const text = [...lists.flatMap(({ imports }) => imports), "\n", says, lists.map(({ list }) => list).join("")];
writeFileSync(join(folder, "migrations.ts"), text.join(""));
