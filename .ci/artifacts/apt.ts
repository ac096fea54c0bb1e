import { linkSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { $ } from "bun";
import { gzip, type Source, sha256 } from "./archive.ts";

/**
 * Lays out a repository for apt, FOLDER/apt, of the Debian packages in a folder. `.ci/sign` signs its file Release.
 *
 * @see https://wiki.debian.org/DebianRepository/Format
 */
export async function layOutRepository(folder: string, { description, madeAt }: Source): Promise<void> {
  const root = join(folder, "apt");
  const suite = join(root, "dists/stable");
  mkdirSync(join(root, "pool"), { recursive: true });
  const entries = new Map<string, string>();
  for (const file of readdirSync(folder).sort()) {
    const [, architecture] = /_([^_]+)\.deb$/.exec(file) ?? [];
    if (architecture === undefined) continue;
    linkSync(join(folder, file), join(root, "pool", file));
    const bytes = readFileSync(join(folder, file));
    const where = `Filename: pool/${file}\nSize: ${bytes.length}\nSHA256: ${sha256(bytes)}\n`;
    entries.set(architecture, `${await $`dpkg-deb --field ${join(folder, file)}`.text()}${where}`);
  }
  const sums: string[] = [];
  for (const [architecture, text] of entries) {
    const place = `main/binary-${architecture}`;
    mkdirSync(join(suite, place), { recursive: true });
    const plain = new Uint8Array(Buffer.from(text));
    for (const [name, bytes] of [["Packages", plain] as const, ["Packages.gz", gzip(plain)] as const]) {
      writeFileSync(join(suite, place, name), bytes);
      sums.push(` ${sha256(bytes)} ${bytes.length} ${place}/${name}\n`);
    }
  }
  const fields = {
    Origin: "Keyhole",
    Label: "Keyhole",
    Suite: "stable",
    Codename: "stable",
    Date: new Date(madeAt * 1000).toUTCString().replace("GMT", "UTC"),
    Architectures: [...entries.keys()].join(" "),
    Components: "main",
    Description: description,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
  writeFileSync(join(suite, "Release"), `${lines.join("")}SHA256:\n${sums.join("")}`);
}
