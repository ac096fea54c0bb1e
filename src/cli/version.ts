import { createReadStream, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { exits, Problem, usageProblem } from "../core/problem.ts";
import { releaseKey, version } from "../core/version.ts";
import { type Input, input } from "../people/desk/inputs.ts";
import { parseMinisignKey, verifyMinisign } from "./minisign.ts";
import { answer } from "./terminal/answer.ts";
import { type CommandGroup, processCommand } from "./terminal/draw.ts";
import type { CommandContext } from "./terminal/verb.ts";

/** `true` without a file. */
const verified: Input<string | true | undefined> = {
  flags: "--verify [file]",
  help: "verify this file of a release, or this program, by the signed SHA256SUMS in its folder or the current one",
  isLocal: true,
};

export const versions: CommandGroup = {
  rows: [
    processCommand({
      path: "version",
      about: "Show the version, or verify a release.",
      examples: ["keyhole version", "keyhole version --verify keyhole_0.3.0_amd64.deb"],
      right: "anybody",
      inputs: {
        file: verified,
        key: {
          ...input("--key <key>", "with --verify: minisign's public key (default: the one in this program)"),
          isLocal: true,
        },
      },
      action: async (context, { file, key }) => {
        if (file === undefined && key !== undefined) throw usageProblem("--key needs --verify.");
        return file === undefined ? sayVersion(context) : sayVerified(context, file, key ?? releaseKey);
      },
    }),
  ],
};

export function sayVersion(context: CommandContext): Promise<void> {
  return answer(context, { name: "keyhole", version }, "", `keyhole ${version}\n`);
}

/** Looks for the checksum of a file, or of this program, in SHA256SUMS, whose signature stands beside it. */
async function sayVerified(context: CommandContext, given: string | true, keyText: string): Promise<void> {
  if (keyText === "") {
    throw usageProblem("This program has no key to verify releases with, because it is of no release: give --key.");
  }
  const key = parseMinisignKey(keyText);
  if (key === undefined) throw usageProblem("--key needs a public key of minisign, which begins with RW.");
  const file = given === true ? process.execPath : given;
  const folder = given === true ? "." : dirname(given);
  const sums = read(join(folder, "SHA256SUMS"));
  const signature = read(join(folder, "SHA256SUMS.minisig"));
  const release = verifyMinisign(key, sums, signature.toString());
  if (release === undefined) throw refused("The key did not sign SHA256SUMS.");
  const sha256 = await hashOf(file);
  const listed = [...sums.toString().matchAll(/^([0-9a-f]{64}) {2}(.+)$/gm)].filter(
    ([, , name = ""]) => basename(name) === (given === true ? "keyhole" : basename(file)),
  );
  const as = listed.find(([, sum]) => sum === sha256)?.[2];
  if (as === undefined) throw refused(`${file} is not what SHA256SUMS lists.`);
  const document = { name: "keyhole", version, verified: { file, as, sha256, release } };
  const kind = given === true ? "the program" : "a file";
  await answer(context, document, "", `${file} is ${kind} of ${release}, as its publisher signed it.\n`);
}

function read(file: string): Buffer {
  try {
    return readFileSync(file);
  } catch {
    throw unreadable(file);
  }
}

async function hashOf(file: string): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  try {
    for await (const chunk of createReadStream(file)) hash.update(chunk);
  } catch {
    throw unreadable(file);
  }
  return hash.digest("hex");
}

function unreadable(file: string): Problem {
  return new Problem(exits.notFound, "not_found", `${file} cannot be read.`);
}

function refused(message: string): Problem {
  return new Problem(exits.failed, "not_verified", message);
}
