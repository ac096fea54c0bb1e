import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sha256Of } from "../../core/hash.ts";
import { originOf } from "../../core/json-request.ts";
import { listenerOptions } from "../../core/listening.ts";
import type { Log } from "../../core/log.ts";
import { configProblem } from "../../core/problem.ts";
import { warnOfReaders } from "../../core/settings/secret-file.ts";
import { writeWholeSync } from "../../core/whole-file.ts";
import { exclusively } from "../../store/sqlite-file.ts";
import {
  cosign,
  cosignedAt,
  encodeWitness,
  noteText,
  type Signer,
  signedOnlyBy,
  type Verifier,
  witnessOf,
} from "../note.ts";
import { parseTreeHead, witnessedPath } from "../tree-note.ts";
import { judgeSubmission, sizeType, submissionBytesMax, submissionPath } from "../witness.ts";

/*
 * A witness: it signs the newest head of a log if it goes on from the one that it signed before. Its folder has
 *
 *   witness.key              the signing key: `PRIVATE+KEY+NAME+` and 32 bytes in base64
 *   witness.pub              its verifier key, for whoever reads its signatures
 *   ORIGIN_HASH.checkpoint   for each log, the newest head that was signed, with the signatures of both
 *   witness.lock             locked while a witness runs
 */

export type WitnessOptions = {
  readonly folder: string;
  readonly signer: Signer;
  /** The keys of the logs. */
  readonly logs: readonly Verifier[];
  readonly host: string;
  readonly port: number;
  readonly log: Log;
  /** Epoch milliseconds. */
  readonly now: () => number;
};

/**
 * Makes the folder, and the key if there is none.
 * @param name - of a new key; one that is there must have it
 * @throws Problem if another witness uses the folder, or the key is malformed or of another name
 */
export function openWitness(folder: string, name: string | undefined, fallback: string, say: (line: string) => void) {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (exclusively(join(folder, "witness.lock"), 0) === undefined) {
    throw configProblem(`Another witness uses ${folder}.`);
  }
  const path = join(folder, "witness.key");
  if (!existsSync(path)) {
    const seed = randomBytes(32).toString("base64");
    writeWholeSync("witness", path, false, Buffer.from(`${keyPrefix}${name ?? fallback}+${seed}\n`));
  }
  warnOfReaders("The witness's key", path, say);
  const [, has = "", encoded = ""] = keyPattern.exec(readFileSync(path, "utf8")) ?? [];
  const seed = Buffer.from(encoded, "base64");
  if (seed.length !== 32) throw configProblem(`${path} is not the key of a witness.`);
  if (name !== undefined && name !== has)
    throw configProblem(`The witness in ${folder} is called ${has}, not ${name}.`);
  const signer = witnessOf(has, seed);
  writeWholeSync("witness", join(folder, "witness.pub"), true, Buffer.from(`${encodeWitness(signer)}\n`));
  return signer;
}

const keyPrefix = "PRIVATE+KEY+";
const keyPattern = /^PRIVATE\+KEY\+([^\s+]+)\+([0-9A-Za-z+/]{43}=)\n$/;

/** Answers logs until it is stopped. */
export function startWitness(options: WitnessOptions): { readonly origin: string; readonly stop: () => Promise<void> } {
  const { host, port, log, logs } = options;
  const shown = new Map(logs.map(({ name }) => [witnessedPath(name), name]));
  const server = Bun.serve({
    hostname: host,
    port,
    ...listenerOptions,
    maxRequestBodySize: submissionBytesMax,
    fetch: async (request) => {
      const { pathname } = new URL(request.url);
      if (request.method === "POST" && pathname === submissionPath) return submit(options, await request.text());
      const origin = shown.get(pathname);
      const note = request.method === "GET" && origin !== undefined ? readNote(options, origin)?.note : undefined;
      return note === undefined ? text(404, "There is nothing here.\n") : text(200, note);
    },
    error: (error) => {
      log({ event: "witness_failed", reason: error.message });
      return text(500, "The witness failed.\n");
    },
  });
  return { origin: originOf(host, server.port ?? port), stop: () => server.stop() };
}

/** Judges, remembers and signs in one turn of the event loop, so that no other request comes between. */
function submit(options: WitnessOptions, body: string): Response {
  const { folder, signer, logs, log, now } = options;
  let newest: ReturnType<typeof readNote>;
  const judged = judgeSubmission(body, logs, (origin) => {
    newest = readNote(options, origin);
    return newest?.head;
  });
  if (judged.status !== 200) {
    // A head that is signed and does not go on is proof against the log.
    const isProof = judged.status === 422 || (judged.status === 409 && judged.reason !== undefined);
    if (isProof) log({ event: "checkpoint_refused", reason: judged.reason, request: body });
    return judged.status === 409 ? text(409, `${judged.size}\n`, sizeType) : text(judged.status, `${judged.reason}\n`);
  }
  // Anyone can read a checkpoint here and post it again. That must cost no signature, no file and no line of the log.
  if (newest !== undefined && noteText(newest.note) === judged.text) return text(200, lineOf(newest.note, signer));
  const line = cosign(judged.text, signer, now());
  // The file is on the disk before the signature leaves. If the process ends in between, the log asks again.
  writeWholeSync("witness", fileOf(folder, judged.origin), true, Buffer.from(`${judged.note}${line}`));
  log({ event: "cosigned", origin: judged.origin, size: parseTreeHead(judged.text)?.size });
  return text(200, line);
}

/** The witness's own signature in a note that it signed. */
function lineOf(note: string, signer: Signer): string {
  return signedOnlyBy(note, [signer]).slice((noteText(note) ?? "").length + 1);
}

/** @throws Error if the file is not one that this witness signed: nothing is signed then */
function readNote({ folder, signer }: WitnessOptions, origin: string) {
  const path = fileOf(folder, origin);
  if (!existsSync(path)) return undefined;
  const note = readFileSync(path, "utf8");
  const head = parseTreeHead(noteText(note) ?? "");
  if (cosignedAt(note, signer) === undefined || head?.origin !== origin) {
    throw new Error(`${path} is not what this witness signed: put it back, or remove it to begin again`);
  }
  return { note, head };
}

function fileOf(folder: string, origin: string): string {
  return join(folder, `${sha256Of(origin)}.checkpoint`);
}

function text(status: number, body: string, type = "text/plain; charset=utf-8"): Response {
  return new Response(body, {
    status,
    headers: { "Content-Type": type, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff" },
  });
}
