/**
 * The npm packages: `keyhole` with the client and the command, and one package for each target that holds its program.
 * `bun .ci/artifacts/npm.ts` makes the first in dist/npm.
 */
import { chmodSync, cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { $ } from "bun";
import { gzip, type Source, tar } from "./archive.ts";
import { type Target, targets } from "./targets.ts";

if (import.meta.main) await layOutPackage("dist/npm", await Bun.file("package.json").json());

/** Makes the folder of the package `keyhole`, which `npm pack` could pack. */
export async function layOutPackage(
  folder: string,
  { version, license }: Pick<Source, "version" | "license">,
): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const entry = "src/machines/npm/client.ts";
  const built = await Bun.build({ entrypoints: [entry], outdir: folder, format: "esm", packages: "external" });
  if (!built.success) throw new AggregateError(built.logs, "the client cannot be bundled");
  // Without the types of Bun and Node, so that the client uses only what every runtime has.
  const options = ["--declaration", "--strict", "--target", "es2022", "--lib", "es2023,dom", "--types", ""];
  const modules = ["--module", "nodenext", "--rewriteRelativeImportExtensions", "--emitDeclarationOnly"];
  const declarations = join(folder, "declarations");
  await $`node_modules/.bin/tsc --ignoreConfig ${entry} --rootDir src --outDir ${declarations} ${options} ${modules}`;
  for (const name of ["client.d.ts", "answers.d.ts"])
    cpSync(join(declarations, "machines/npm", name), join(folder, name));
  rmSync(declarations, { recursive: true });
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
    exports: { "./client": { types: "./client.d.ts", default: "./client.js" } },
    files: ["client.js", "client.d.ts", "answers.d.ts", "keyhole.js"],
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
