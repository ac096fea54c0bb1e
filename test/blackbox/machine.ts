import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mintKey } from "../../src/access/api-key.ts";
import { honestly, type Liar, type Question, type Reply, startLiar, type Truth } from "../liar.ts";
import { binary, type Ran } from "./keyhole.ts";

/** A machine that has the program, a folder of its own and a key, and asks a server that may lie. */
export type Machine = {
  readonly folder: string;
  readonly key: string;
  readonly liar: Liar;
  /** What the program finds in its environment beside PATH. */
  readonly env: Readonly<Record<string, string>>;
  /** Runs the program in the folder, to its end. */
  readonly keyhole: (args: readonly string[], more?: More) => Promise<Ran>;
  readonly remove: () => Promise<void>;
};

export type More = {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string | Uint8Array;
  readonly cwd?: string;
  /** The command in front of the program, such as a shell that lowers a limit first. */
  readonly as?: readonly string[];
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

/** @param reply - honest where it is left out */
export async function makeMachine(
  reply: (question: Question) => Reply | Promise<Reply> = (question) => honestly(truth, question),
): Promise<Machine> {
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
export async function runProgram(args: readonly string[], { env = {}, stdin = "", cwd, as = [] }: More): Promise<Ran> {
  const child = Bun.spawn([...as, binary, ...args], {
    ...(cwd !== undefined && { cwd }),
    env: { PATH: process.env["PATH"] ?? "", ...env },
    stdin: Buffer.from(stdin),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [exitCode, stdout, stderr] = await Promise.all([child.exited, child.stdout.text(), child.stderr.text()]);
  return { exitCode, stdout, stderr };
}
