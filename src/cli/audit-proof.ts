import { exits, Problem, usageProblem } from "../core/problem.ts";
import { readConfig } from "../core/settings/settings.ts";
import { excerpt, oneLine } from "../core/visible.ts";
import { parseList } from "../core/words/lists.ts";
import { linesOf } from "../core/words/log-lines.ts";
import { Unfit } from "../core/words/parse.ts";
import { counted, formatTime, joined } from "../core/words/text.ts";
import { openWithoutKeys } from "../installation/installation.ts";
import { describeComparison } from "../people/audit/audit-chain.ts";
import { verifyPublic } from "../people/audit/audit-public.ts";
import { input, required } from "../people/desk/inputs.ts";
import { NewestCheckpoint } from "../record/notary/newest-checkpoint.ts";
import { parseVerifier, parseWitness, type Verifier } from "../record/note.ts";
import { type Proved, proofChecker, readProof } from "../record/proof.ts";
import { answer } from "./terminal/answer.ts";
import { processCommand } from "./terminal/draw.ts";
import { localName, readChunks } from "./terminal/input.ts";
import { withProgress } from "./terminal/terminal.ts";
import type { CommandContext } from "./terminal/verb.ts";

/* Proofs of entries and of the whole tree: `keyhole audit key`, `prove` and `check`. */

/** Keys of a list, each of which `parse` knows. */
const keysOf = (parse: (text: string) => Verifier | undefined, what: string) => (text: string) =>
  parseList(text).map((one) => {
    const found = parse(one);
    if (found === undefined)
      throw new Unfit(`takes ${what}, which are a name, 8 hex digits and base64 with + between them.`);
    return found;
  });

export const logKeys = input(
  "--key <keys>",
  "the installation's verifier key, as `audit key` prints it; or several with commas",
  keysOf(parseVerifier, "verifier keys"),
);

export const check = processCommand({
  path: "audit check",
  about: "Check proofs of entries. It needs the installation's public key, and neither a database nor a root key.",
  examples: ['keyhole audit check deploy.proof --key "$(cat keyhole.pub)"'],
  inputs: {
    file: input("<file>", "what `audit prove` or `audit export --proofs` wrote, or - for stdin"),
    keys: required(logKeys),
    witnesses: input(
      "--witness <keys>",
      "verifier keys of witnesses, all of which must have signed, too",
      keysOf(parseWitness, "verifier keys of witnesses"),
    ),
  },
  action: async (context, { file, keys, witnesses = [] }) => {
    requireOneName(keys);
    const found = await checkAll(linesOf(readChunks(context, file), proofBytesMax), keys, witnesses);
    if (found.wrong.length > 0) throw unproved(found);
    if (found.first === undefined) {
      throw new Problem(exits.failed, "no_proofs", `${localName(file)} has no proof.`);
    }
    const { entries, fromAt, toAt, first } = found;
    const { origin, cosignedAt } = first;
    const signed = witnesses.map(({ name }, at) => ({ name, at: cosignedAt[at] }));
    const only = entries === 1 ? { receipt: first.receipt, at: first.at, entry: first.entry } : {};
    const document = { proved: true, entries, origin, fromAt, toAt, witnesses: signed, ...only };
    await answer(context, document, entries === 1 ? provedOne(first, witnesses) : provedAll(found, first, witnesses));
  },
});

/** @throws Problem if the keys are of several installations */
export function requireOneName(keys: readonly Verifier[]): void {
  if (new Set(keys.map(({ name }) => name)).size > 1) throw usageProblem("--key takes keys of one installation.");
}

/**
 * `audit verify --public`: says where the tree breaks, with public keys alone, and compares it with what this host and its
 * witnesses remember, if they are set.
 */
export async function verifyTree(context: CommandContext, keys: readonly Verifier[]): Promise<void> {
  requireOneName(keys);
  const config = readConfig(context.env, false);
  const { checkpointFile: file, witnesses } = config;
  const checkpoint = new NewestCheckpoint({ auditKey: undefined, signers: async () => keys, file, witnesses });
  const database = openWithoutKeys(config, "notary");
  if (database === undefined) {
    throw new Problem(
      exits.notFound,
      "not_found",
      "There is no database: KEYHOLE_DATA or DATABASE_URL says where it is.",
    );
  }
  const verify = async (report: (leaves: number) => void) => {
    const walked = await verifyPublic(database, keys, report);
    await checkpoint.look(database, false);
    return walked;
  };
  const walked = await withProgress(context.terminal.stderr, "Verifying", "leaves", verify).finally(() =>
    database.close(),
  );
  const { comparisons: compared, putBack } = checkpoint;
  const { leaves, heads, moreFlaws, head: newest } = walked;
  const missing = compared.filter(({ reason }) => reason !== undefined).map(describeComparison);
  const flaws = [...walked.flaws.map(({ sentence }) => sentence), ...(putBack === undefined ? [] : [putBack])];
  const head = newest && { size: newest.size, root: newest.root.toString("base64"), at: newest.at };
  const found = { leaves, heads, head, flaws, moreFlaws, compared };
  if (flaws.length > 0) {
    const lines = [...flaws, ...(moreFlaws > 0 ? [`There are ${moreFlaws} more flaws.`] : []), ...missing];
    throw new Problem(exits.failed, "tree_broken", lines.join("\n"), { document: { verified: false, ...found } });
  }
  if (missing.length > 0) {
    const document = { verified: false, ...found };
    throw new Problem(exits.failed, "audit_not_compared", missing.join("\n"), { document });
  }
  const words = [
    `The tree is whole: ${counted(leaves, "leaf", "leaves")} under ${counted(heads, "signed head")}.`,
    ...(head
      ? [`Its newest head has the size ${head.size} and the root ${head.root}, of ${formatTime(head.at)}.`]
      : []),
    ...compared.map(describeComparison),
    "If anything came after this head, only somebody who has seen a newer one knows it.",
  ];
  await answer(context, { verified: true, leaves, heads, head, compared }, words.join("\n"));
}

/** What was found in a file of proofs. */
type Checked = Awaited<ReturnType<typeof checkAll>>;

async function checkAll(lines: AsyncIterable<Uint8Array>, keys: readonly Verifier[], witnesses: readonly Verifier[]) {
  const wrong: string[] = [];
  let [number, moreWrong, entries, fromAt, toAt] = [0, 0, 0, Number.POSITIVE_INFINITY, 0];
  let first: Proved | undefined;
  const check = proofChecker(keys, witnesses);
  for await (const line of lines) {
    number += 1;
    const document = readProof(line);
    const found = document === undefined ? { wrong: "it is not JSON: a proof is one line" } : check(document);
    if ("wrong" in found) {
      if (wrong.length < wrongMax) wrong.push(`Line ${number} proves nothing: ${found.wrong}.`);
      else moreWrong += 1;
      continue;
    }
    first ??= found;
    entries += 1;
    fromAt = Math.min(fromAt, found.at);
    toAt = Math.max(toAt, found.at);
  }
  return { first, entries, fromAt, toAt, wrong, moreWrong };
}

const wrongMax = 100;
/** A longer line is cut, and proves nothing. */
const proofBytesMax = 64 * 1024 * 1024;

function unproved({ wrong, moreWrong, entries }: Checked): Problem {
  const lines = [
    ...wrong,
    ...(moreWrong > 0 ? [`So do ${moreWrong} more lines.`] : []),
    ...(entries > 0 ? [`The other lines prove ${counted(entries, "entry", "entries")}.`] : []),
  ];
  const document = { proved: false, entries, wrong, moreWrong };
  return new Problem(exits.failed, "not_proved", lines.join("\n"), { document });
}

function provedOne({ receipt, origin, at, entry, tree, cosignedAt }: Proved, witnesses: readonly Verifier[]): string {
  const what = `Proved: entry ${receipt} of ${origin}, of ${formatTime(at)}: ${describeEntry(entry)}.`;
  return `${what} It is in the tree of ${counted(tree.size, "leaf", "leaves")} that was signed${byWitnesses(witnesses, cosignedAt)}.`;
}

function provedAll({ entries, fromAt, toAt }: Checked, { origin, cosignedAt }: Proved, witnesses: readonly Verifier[]) {
  const span = `from ${formatTime(fromAt)} to ${formatTime(toAt)}`;
  return `Proved: ${entries} entries of ${origin}, ${span}. All are in a tree that was signed${byWitnesses(witnesses, cosignedAt)}.`;
}

function byWitnesses(witnesses: readonly Verifier[], cosignedAt: readonly number[]): string {
  const signed = witnesses.map(({ name }, at) => `${name} at ${formatTime(cosignedAt[at])}`);
  return signed.length === 0 ? "" : `, and cosigned by ${joined(signed)}`;
}

/** Who did what, in a few words. The entry may have been made by anybody. */
function describeEntry(entry: unknown): string {
  const { actor, action, names, organization, project, environment, requestId } = entry as Record<string, unknown>;
  const { type, id, name } = (actor ?? {}) as Record<string, unknown>;
  const text = (value: unknown) => (typeof value === "string" ? excerpt(oneLine(value)) : "");
  const where = [[text(organization), text(project)].filter(Boolean).join("/"), text(environment)].filter(Boolean);
  const count = Array.isArray(names) && names.length > 0 ? counted(names.length, "name") : "";
  const request = text(requestId) === "" ? "" : `, request ${text(requestId)}`;
  const who = `${text(type)} ${text(id) || text(name)}`;
  return `${who}, ${text(action)} of ${[...where, count].filter(Boolean).join(", ")}${request}`;
}
