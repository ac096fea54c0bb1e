import { afterEach } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mintKey } from "../../src/serve/access/api-key.ts";
import { type RunOptions, runBinary } from "./keyhole.ts";
import { honestly, type Liar, type Question, type Reply, startLiar, type Truth } from "./liar.ts";
import type { Ran } from "./program.ts";

/** A machine that has the program, a folder of its own and a key, and asks a server that may lie. */
export type Machine = {
  readonly folder: string;
  readonly key: string;
  readonly liar: Liar;
  /** What the program finds in its environment beside PATH. */
  readonly env: Readonly<Record<string, string>>;
  /** Runs the program in the folder, to its end. */
  readonly keyhole: (args: readonly string[], more?: RunOptions) => Promise<Ran>;
  readonly remove: () => Promise<void>;
};

export const truth: Truth = {
  project: "web",
  environment: "production",
  variables: { API_TOKEN: "tok-123456", DATABASE_URL: "postgres://u:p@h/db", MOTD: 'it\'s "fine"\nhere\n' },
  files: [
    { path: "config/tls.key", content: Buffer.from("-----BEGIN KEY-----\nabc\n-----END KEY-----\n"), mode: "0400" },
    { path: "service.json", content: Buffer.from('{"a":1}\n') },
  ],
};

/**
 * Returns the maker of a file's machines, which are removed after each test.
 *
 * The maker's argument is what the server replies; honest by default.
 */
export function machineMaker(): (reply?: (question: Question) => Reply) => Promise<Machine> {
  const machines: Machine[] = [];
  afterEach(async () => {
    for (const machine of machines.splice(0)) await machine.remove();
  });
  return async (reply = (question) => honestly(truth, question)) => {
    const made = await makeMachine(reply);
    machines.push(made);
    return made;
  };
}

async function makeMachine(reply: (question: Question) => Reply): Promise<Machine> {
  const folder = mkdtempSync(join(tmpdir(), "keyhole-machine-"));
  const liar = await startLiar(reply);
  const key = mintKey();
  const env = {
    KEYHOLE_URL: liar.origin,
    KEYHOLE_API_KEY: key,
    KEYHOLE_PROJECT: truth.project,
    KEYHOLE_ENVIRONMENT: truth.environment,
  };
  return {
    folder,
    key,
    liar,
    env,
    keyhole: (args, more = {}) => runProgram(args, { cwd: folder, ...more, env: { ...env, ...more.env } }),
    remove: async () => {
      await liar.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Runs the program to its end with this environment and a PATH. */
export function runProgram(args: readonly string[], options: RunOptions): Promise<Ran> {
  return runBinary(args, { ...options, env: { PATH: process.env["PATH"] ?? "", ...options.env } });
}
