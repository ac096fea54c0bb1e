import { Readable } from "node:stream";
import { judgeCommand } from "../../src/cli/door.ts";
import { frame } from "../../src/cli/terminal/command.ts";
import { toProblem } from "../../src/cli/terminal/failure.ts";
import type { CommandContext } from "../../src/cli/terminal/verb.ts";
import { buildProgram } from "../../src/main.ts";
import { contextOf, streamTo } from "./context.ts";
import type { World } from "./world.ts";

/** What came of a command: `done` or the code of its problem, and everything that the person was told. */
export type Ran = { readonly code: string; readonly out: string };

/** The environment of a process on this world. */
export function settingsOf({ config, databaseUrl }: World): Readonly<Record<string, string>> {
  const { dataFolder, rootKey } = config;
  return {
    KEYHOLE_DATA: dataFolder,
    KEYHOLE_ROOT_KEY: (rootKey as { text: string }).text,
    ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
  };
}

/** Runs a command in this process as a person who came over SSH. @param reads - called if the command reads its input */
export async function throughDoorHere(
  w: World,
  person: string,
  words: readonly string[],
  stdin = "",
  reads: () => void = () => {},
): Promise<Ran> {
  let out = "";
  const input = function* () {
    reads();
    yield Buffer.from(stdin);
  };
  const add = (text: unknown) => {
    out += text;
  };
  const streams = { stdin: Readable.from(input()), stdout: streamTo(add), stderr: streamTo(add) };
  const terminal = streams as unknown as CommandContext["terminal"];
  const context = contextOf({ person, env: settingsOf(w), terminal, say: (line) => add(`${line}\n`) });
  const program = await buildProgram(context, words[0]);
  program.hook("preAction", (_, command) => judgeCommand(command));
  frame(program, () => {});
  try {
    await program.parseAsync([...words], { from: "user" });
    return { code: "done", out };
  } catch (error) {
    const { code, message } = toProblem(error, context);
    return { code, out: `${out}${message}\n` };
  }
}
