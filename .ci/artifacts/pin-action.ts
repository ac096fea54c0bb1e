/**
 * `bun .ci/artifacts/pin-action.ts FOLDER` writes into action.yml where the release in FOLDER is, and the checksums of its
 * archives. The action of that commit then downloads these, and nothing else.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { publisher } from "../../package.json";

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("Usage: bun .ci/artifacts/pin-action.ts FOLDER");
const sums = readFileSync(join(folder, "SHA256SUMS"), "utf8");
const archives = [...sums.matchAll(/^[0-9a-f]{64} {2}keyhole-(.+)-(?:linux|darwin)-[\w-]+\.tar\.gz$/gm)];
const version = archives[0]?.[1];
if (version === undefined) throw new Error(`${folder} has no archive.`);
const pinned = [
  `        RELEASE: ${publisher.releases}/v${version}\n`,
  "        CHECKSUMS: |\n",
  ...archives.map(([line]) => `          ${line}\n`),
];
const text = readFileSync("action.yml", "utf8");
writeFileSync("action.yml", text.replace(/^ {8}RELEASE: [\s\S]*?(?=^ {6}run: )/m, pinned.join("")));
