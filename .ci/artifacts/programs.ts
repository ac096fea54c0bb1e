/**
 * `bun .ci/artifacts/programs.ts FOLDER` compiles Keyhole for every target, as FOLDER/linux-x64/keyhole and so on. Each
 * program is built twice, and a difference of one byte is a failure.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { $ } from "bun";
import { type Target, targets } from "./targets.ts";

const folder = resolve(process.argv[2] ?? "dist/programs");
const scratch = mkdtempSync(join(tmpdir(), "keyhole-release-"));
try {
  for (const target of targets) {
    const runtime = await fetchRuntime(target, scratch);
    // The name of the file is in the program, so both have the same.
    const program = join(folder, target.name, "keyhole");
    const again = join(scratch, "keyhole");
    for (const outfile of [program, again]) await compile(target, runtime, outfile);
    if (!readFileSync(program).equals(readFileSync(again))) throw new Error(`Two builds for ${target.name} differ.`);
    requireKind(target, readFileSync(program));
    console.error(`Built ${target.name} twice, with the same bytes.`);
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

/** @throws Error if the tarball is not the one whose checksum is known */
async function fetchRuntime({ name, runtime, integrity }: Target, scratch: string): Promise<string> {
  const place = join(scratch, name);
  mkdirSync(place);
  const tarball = (await $`npm pack ${`${runtime}@${Bun.version}`} --silent --pack-destination ${place}`.text()).trim();
  const bytes = readFileSync(join(place, tarball));
  const found = `sha512-${new Bun.CryptoHasher("sha512").update(bytes).digest("base64")}`;
  if (found !== integrity)
    throw new Error(`${tarball} has the checksum ${found}, which .ci/artifacts/targets.ts does not know.`);
  await $`tar --extract --gzip --file ${join(place, tarball)} --directory ${place} --strip-components=1`.quiet();
  return join(place, "bin/bun");
}

/** With the flags of `bun run compile`. Of an option that is given twice, Bun takes the last. */
async function compile({ os, cpu, libc }: Target, runtime: string, outfile: string): Promise<void> {
  const target = ["bun", os, cpu, ...(libc === "musl" ? [libc] : [])].join("-");
  const options = [`--target=${target}`, `--compile-executable-path=${runtime}`, "--outfile", outfile];
  await $`${process.execPath} run --silent compile ${options}`.quiet();
}

/** ELF or Mach-O, and for which processor. @see elf(5), mach-o/loader.h */
function requireKind({ name, os, cpu }: Target, program: Buffer): void {
  const kind =
    os === "linux" ? program.toString("hex", 0, 4) + program.toString("hex", 18, 20) : program.toString("hex", 0, 8);
  const wanted = {
    linux: { x64: "7f454c463e00", arm64: "7f454c46b700" },
    darwin: { x64: "cffaedfe07000001", arm64: "cffaedfe0c000001" },
  }[os][cpu];
  if (kind !== wanted) throw new Error(`The program for ${name} begins with ${kind}, not with ${wanted}.`);
}
