/**
 * The npm packages: `keyhole` with the client and the command, and one package for each target that holds its program.
 * `bun .ci/artifacts/npm.ts` makes the first in dist/npm.
 */
import { chmodSync, cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { $ } from "bun";
import { gzip, type Source, tar } from "./archive.ts";
import { type Target, targets } from "./targets.ts";

/** What programs import. The client is compiled without the types of Bun and Node: it uses what every runtime has. */
const entries = [
  ["client", "src/client/npm/client.ts", ["--lib", "es2023,dom", "--types", ""]],
  ["testing", "src/client/testing.ts", ["--noCheck"]],
] as const;
/** The declarations that these lead to. */
const declared = [
  ...["client", "answers", "error", "watch"].map((name) => `client/npm/${name}.d.ts`),
  "client/testing.d.ts",
];

if (import.meta.main) await layOutPackage("dist/npm", await Bun.file("package.json").json());

/** Makes the folder of the package `keyhole`, which `npm pack` could pack. */
export async function layOutPackage(
  folder: string,
  { version, license }: Pick<Source, "version" | "license">,
): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [name, entry, own] of entries) {
    const built = await Bun.build({
      entrypoints: [entry],
      naming: `${name}.js`,
      outdir: folder,
      format: "esm",
      target: "node",
    });
    if (!built.success) throw new AggregateError(built.logs, `${entry} cannot be bundled`);
    const options = ["--declaration", "--strict", "--target", "es2022", ...own];
    const modules = ["--module", "nodenext", "--rewriteRelativeImportExtensions", "--emitDeclarationOnly"];
    const declarations = join(folder, "declarations");
    await $`node_modules/.bin/tsc --ignoreConfig ${entry} --rootDir src --outDir ${declarations} ${options} ${modules}`;
  }
  for (const file of declared) {
    const text = await Bun.file(join(folder, "declarations", file)).text();
    await Bun.write(join(folder, basename(file)), text.replaceAll('"./npm/', '"./'));
  }
  rmSync(join(folder, "declarations"), { recursive: true });
  cpSync(".ci/artifacts/keyhole.js", join(folder, "keyhole.js"));
  chmodSync(join(folder, "keyhole.js"), 0o755);
  cpSync("LICENSE", join(folder, "LICENSE"));
  cpSync("docs/client.md", join(folder, "README.md"));
  writeManifest(folder, {
    name: "keyhole",
    version,
    description: "Runs Keyhole, a secret service, and reads secrets from its server.",
    license,
    type: "module",
    sideEffects: false,
    engines: { node: ">=20" },
    bin: { keyhole: "keyhole.js" },
    exports: Object.fromEntries(
      entries.map(([name]) => [`./${name}`, { types: `./${name}.d.ts`, default: `./${name}.js` }]),
    ),
    files: [...entries.map(([name]) => `${name}.js`), ...declared.map((file) => basename(file)), "keyhole.js"],
    optionalDependencies: Object.fromEntries(targets.map(({ name }) => [`@keyhole/${name}`, version])),
  });
}

/** Packs both kinds, under the names that `npm pack` gives. */
export async function packForNpm(
  folder: string,
  programs: ReadonlyMap<Target, string>,
  source: Source,
  scratch: string,
): Promise<void> {
  const { version, license } = source;
  const pack = async (place: string, file: string) =>
    Bun.write(join(folder, file), gzip(await tar(place, ["package"], source)));
  await layOutPackage(join(scratch, "npm/package"), source);
  await pack(join(scratch, "npm"), `keyhole-${version}.tgz`);
  for (const [{ name, os, cpu, libc }, program] of programs) {
    const place = join(scratch, `npm-${name}`);
    const inside = join(place, "package");
    mkdirSync(inside, { recursive: true });
    cpSync(program, join(inside, "keyhole"));
    chmodSync(join(inside, "keyhole"), 0o755);
    cpSync("LICENSE", join(inside, "LICENSE"));
    const manifest = { name: `@keyhole/${name}`, version, description: `Keyhole's program for ${name}.`, license };
    const fits = { os: [os], cpu: [cpu], ...(libc !== undefined && { libc: [libc] }) };
    writeManifest(inside, { ...manifest, ...fits, preferUnplugged: true });
    await pack(place, `keyhole-${name}-${version}.tgz`);
  }
}

function writeManifest(folder: string, manifest: object): void {
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
}
