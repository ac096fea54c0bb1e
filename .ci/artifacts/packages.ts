/**
 * `bun .ci/artifacts/packages.ts FOLDER NAME=PROGRAM …` makes of ready programs everything that a release holds:
 * archives, npm packages, Debian packages and images, what Homebrew, apt and Helm find them by, then their provenance and
 * their checksums. The bill of materials
 * that cdxgen made of the lockfile lies in FOLDER already.
 */
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { layOutRepository } from "./apt.ts";
import { archiveOf, gzip, readSource, sha256, tar } from "./archive.ts";
import { writeFormula } from "./brew.ts";
import { packChart } from "./chart.ts";
import { packDeb } from "./deb.ts";
import { packForNpm } from "./npm.ts";
import { type DebianPackage, type Manifest, packImage, writeIndex } from "./oci.ts";
import { findTarget, type Target } from "./targets.ts";

const [folder, ...given] = process.argv.slice(2);
if (folder === undefined || given.length === 0)
  throw new Error("Usage: bun .ci/artifacts/packages.ts FOLDER NAME=PROGRAM …");
const programs = new Map(
  given.map((one) => {
    const [name = "", program = ""] = one.split("=");
    return [findTarget(name), program];
  }),
);
const runtimes = [...programs.keys()].map(({ runtime, integrity }) => ({
  uri: `pkg:npm/${runtime.replace("@", "%40")}@${Bun.version}`,
  digest: { sha512: Buffer.from(integrity.replace("sha512-", ""), "base64").toString("hex") },
}));
process.umask(0o022);
const source = await readSource();
mkdirSync(folder, { recursive: true });
const scratch = mkdtempSync(join(tmpdir(), "keyhole-release-"));
try {
  const packages: DebianPackage[] = [];
  const images: Manifest[] = [];
  for (const [target, program] of programs) {
    await packArchive(folder, target, program);
    if (target.debian === undefined) continue;
    await packDeb(folder, program, target.debian, source, scratch);
    const { manifest, libc } = await packImage(folder, program, target.debian, source, scratch);
    images.push(manifest);
    packages.push(libc);
  }
  await packForNpm(folder, programs, source, scratch);
  await layOutRepository(folder, source);
  await packChart(folder, writeIndex(folder, images, source), source, scratch);
  writeFormula(folder, [...programs.keys()], source);
  completeBill(join(folder, `keyhole-${source.version}.cdx.json`), packages);
  const provenance = provenanceOf(filesIn(folder), packages);
  writeFileSync(join(folder, `keyhole-${source.version}.provenance.json`), `${JSON.stringify(provenance)}\n`);
  // And the programs, under their names in the archives: `keyhole version --verify` finds its own there.
  const inside = [...programs].map(([target, program]) => [`${archiveOf(target, source)}/keyhole`, program] as const);
  const sums = [...filesIn(folder).map((file) => [file, join(folder, file)] as const), ...inside]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, file]) => `${sha256(readFileSync(file))}  ${name}\n`);
  writeFileSync(join(folder, "SHA256SUMS"), sums.join(""));
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

/** The files in a folder and in those below it, by their paths. */
function filesIn(folder: string): string[] {
  const all = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  return all.map(({ parentPath, name }) => relative(folder, join(parentPath, name))).sort();
}

/** The program as an archive, for everybody without a package manager. */
async function packArchive(folder: string, target: Target, program: string): Promise<void> {
  const top = archiveOf(target, source);
  const place = join(scratch, "archives", top);
  mkdirSync(place, { recursive: true });
  for (const file of ["LICENSE", "CHANGELOG.md", "docs/deploy/keyhole.service"]) {
    cpSync(file, join(place, file.split("/").at(-1) ?? ""));
  }
  cpSync(program, join(place, "keyhole"));
  chmodSync(join(place, "keyhole"), 0o755);
  await Bun.write(join(folder, `${top}.tar.gz`), gzip(await tar(join(scratch, "archives"), [top], source)));
}

/**
 * Adds to a bill of materials what is in a release besides the packages of the lockfile, and takes what differs from
 * one run to the next out of it.
 *
 * @see https://cyclonedx.org/docs/1.7/json/
 */
function completeBill(file: string, packages: readonly DebianPackage[]): void {
  const { annotations: _, ...bill } = JSON.parse(readFileSync(file, "utf8"));
  if (!(bill.components?.length > 0)) throw new Error(`${file} has no components.`);
  const components = [...runtimes, ...packages].map(({ uri, digest }) => {
    const [group = "", name, version] = (/\/(.*)\/(.*)@([^?]*)/.exec(uri) ?? []).slice(1).map(decodeURIComponent);
    const hashes = Object.entries(digest).map(([kind, content]) => ({ alg: kind.replace("sha", "SHA-"), content }));
    return { type: "library", group, name, version, purl: uri, "bom-ref": uri, hashes };
  });
  const complete = {
    ...bill,
    serialNumber: `urn:uuid:${sha256(source.commit).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*$/, "$1-$2-$3-$4-$5")}`,
    metadata: { ...bill.metadata, timestamp: new Date(source.madeAt * 1000).toISOString() },
    components: [...bill.components, ...components],
  };
  writeFileSync(file, `${JSON.stringify(complete)}\n`);
}

/**
 * Returns the provenance of these files: what they were made from, and how. SHA256SUMS lists it, which is signed.
 *
 * @see https://slsa.dev/spec/v1.0/provenance
 */
function provenanceOf(files: readonly string[], packages: readonly DebianPackage[]): object {
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject: files.map((name) => ({ name, digest: { sha256: sha256(readFileSync(join(folder ?? "", name))) } })),
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: {
      buildDefinition: {
        buildType: "urn:keyhole:release:1",
        externalParameters: {
          commit: source.commit,
          command: ".ci/release",
          targets: [...programs.keys()].map(({ name }) => name),
        },
        internalParameters: { bun: Bun.version },
        resolvedDependencies: [
          { name: "source", digest: { gitCommit: source.commit } },
          { name: "bun.lock", digest: { sha256: sha256(readFileSync("bun.lock")) } },
          ...runtimes,
          ...packages,
        ],
      },
      runDetails: { builder: { id: process.env["KEYHOLE_BUILDER"] ?? "urn:keyhole:builder:unknown" } },
    },
  };
}
