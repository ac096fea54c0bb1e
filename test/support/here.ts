import { Readable, Writable } from "node:stream";
import { execute } from "../../src/main.ts";
import type { CommandContext } from "../../src/terminal/command.ts";
import type { Ran } from "./keyhole.ts";

/** Runs a command in this process and its working folder, without input, as the built program runs it in its own. */
export async function runHere(args: readonly string[], env: CommandContext["env"]): Promise<Ran> {
  const [stdout, stderr] = [collect(), collect()];
  const streams = { stdin: Readable.from([]), stdout: stdout.stream, stderr: stderr.stream };
  const terminal = streams as unknown as CommandContext["terminal"];
  const exitCode = await execute(args, { env, terminal, inherited: [] });
  return { exitCode, stdout: stdout.text(), stderr: stderr.text() };
}

function collect(): { readonly stream: Writable; readonly text: () => string } {
  const chunks: Uint8Array[] = [];
  const stream = new Writable({
    write: (chunk: Uint8Array, _, done) => {
      chunks.push(chunk);
      done();
    },
  });
  return { stream, text: () => Buffer.concat(chunks).toString() };
}
