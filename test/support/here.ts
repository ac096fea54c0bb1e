import { Database as SqliteFile, type Statement } from "bun:sqlite";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import type { CommandContext } from "../../src/cli/terminal/verb.ts";
import { wordsOf } from "../../src/core/words/shell.ts";
import { execute } from "../../src/main.ts";
import { turns } from "../../src/store/sqlite.ts";
import { streamTo } from "./context.ts";
import { binary, runBinary } from "./keyhole.ts";
import type { Ran } from "./program.ts";

/** `env` is the whole environment. */
type ScriptOptions = { readonly cwd: string; readonly env: Readonly<Record<string, string>> };
type HereOptions = ScriptOptions & { readonly stdin?: string | Uint8Array | undefined };

/**
 * A database that is closed stays open until its last statement is collected, which is no matter to a process that
 * ends. This one goes on, and a restore refuses a file that is open.
 */
const { prepare, close } = SqliteFile.prototype;
const statements = new WeakMap<SqliteFile, Statement[]>();
SqliteFile.prototype.prepare = function (this: SqliteFile, ...args: Parameters<typeof prepare>) {
  const statement = prepare.apply(this, args);
  const made = statements.get(this);
  if (made) made.push(statement);
  else statements.set(this, [statement]);
  return statement;
} as typeof prepare;
SqliteFile.prototype.close = function (...args) {
  for (const statement of statements.get(this) ?? []) statement.finalize();
  return close.apply(this, args);
};

/** Runs a command to its end in this process, as the built program runs it in its own. */
export async function runHere(args: readonly string[], options: HereOptions): Promise<Ran> {
  const { exitCode, stdout, stderr } = await takeTurn(args, options);
  return { exitCode, stdout: stdout.toString(), stderr: stderr.toString() };
}

/** Two at once would share a working folder, and stop the event loop when both write to SQLite. */
const inTurn = turns();

function takeTurn(args: readonly string[], { env, cwd, stdin = "" }: HereOptions) {
  return inTurn(async () => {
    const out: Uint8Array[] = [];
    const error: Uint8Array[] = [];
    const [stdout, stderr] = [out, error].map((chunks) => streamTo((chunk) => chunks.push(chunk)));
    const streams = { stdin: Readable.from(stdin.length > 0 ? [Buffer.from(stdin)] : []), stdout, stderr };
    const terminal = streams as unknown as CommandContext["terminal"];
    const before = process.cwd();
    process.chdir(cwd);
    try {
      const exitCode = await execute(args, { env, terminal, inherited: [] });
      return { exitCode, stdout: Buffer.concat(out), stderr: Buffer.concat(error) };
    } finally {
      process.chdir(before);
    }
  });
}

/**
 * Runs a script in bash. Its plain `keyhole` is a function that has this process run the command: the built program
 * takes ten times as long to start. What is started in another way, such as by `timeout`, is the program itself.
 */
export async function runScript(script: string, options: ScriptOptions): Promise<Ran> {
  if (isAboutProcess.test(script)) return runProgram(script, options);
  const [program, ...words] = (/[|;&<>$`*?~(){}#\\\n]/.test(script) ? undefined : wordsOf(script)) ?? [];
  if (program === "keyhole") return runHere(words, options); // a shell would only pass them on
  const calls = mkdtempSync(join(tmpdir(), "keyhole-calls-"));
  const server = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: async (socket, line) => void socket.end(`${await answer(line.toString().trimEnd())}\n`) },
  });
  try {
    return await runProgram(`${callsHome(calls, server.port)}\n${script}`, options);
  } finally {
    server.stop(true);
    rmSync(calls, { recursive: true });
  }
}

/**
 * What listens or starts another program, what is about descriptors or bytes that are not text, and a substitution in a
 * pipeline, where the function would read what is not for it.
 */
const isAboutProcess =
  /(?<![-\w])(demo|edit|mcp|run|exec)(?![-\w.])|(?<![&>])&(?![&>\d])|\|[^|]*<\(|=postgres:|\/dev\/full|>&-|\\xff/;

/** The same with the program itself. */
export function runProgram(script: string, options: ScriptOptions): Promise<Ran> {
  const env = { ...options.env, PATH: `${dirname(binary)}:${process.env["PATH"]}` };
  return runBinary(["-c", script], { ...options, env, program: "bash" });
}

/** Runs what the function has written into the files of a call, and writes its output there. @returns the exit code */
async function answer(call: string): Promise<number> {
  const [cwd = "", count = "", ...rest] = readFileSync(call, "utf8").split("\0").slice(0, -1);
  const env = rest.slice(Number(count)).map((entry) => {
    const end = entry.indexOf("=");
    return [entry.slice(0, end), entry.slice(end + 1)];
  });
  const options = { cwd, env: Object.fromEntries(env), stdin: readFileSync(`${call}.in`) };
  const { exitCode, stdout, stderr } = await takeTurn(rest.slice(0, Number(count)), options);
  writeFileSync(`${call}.out`, stdout);
  writeFileSync(`${call}.err`, stderr);
  return exitCode;
}

const callsHome = (calls: string, port: number) => `
exec < /dev/null
keyhole() {
  local call=${calls}/$BASHPID code name
  if [ /dev/stdin -ef /dev/null ]; then : > $call.in; else cat > $call.in; fi
  {
    printf '%s\\0' "$PWD" $# "$@"
    for name in $(compgen -e); do printf '%s\\0' "$name=\${!name}"; done
  } > $call
  { echo $call >&9; read -r code <&9; } 9<> /dev/tcp/127.0.0.1/${port}
  if [ -s $call.out ]; then cat $call.out; fi
  if [ -s $call.err ]; then cat $call.err >&2; fi
  return $code
}`;
