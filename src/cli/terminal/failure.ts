import { Problem } from "../../core/problem.ts";
import { jsonLine, visibleLines } from "../../core/visible.ts";
import { failureFor, failures } from "../../people/desk/failure.ts";
import { fitted, hasColour, red, unlessClosed, write } from "./terminal.ts";
import type { CommandContext } from "./verb.ts";

/* How a command fails: whatever was thrown becomes a Problem, and `main.ts` prints it. */

/** Turns whatever was thrown into a Problem for whoever runs the command: an operator, or a person who came over SSH. */
export function toProblem(error: unknown, { person }: Pick<CommandContext, "person">): Problem {
  if (error instanceof Problem && !(person !== undefined && error.code === "invalid_configuration")) return error;
  const { code, message } = failureFor(person === undefined ? "operator" : "person", error);
  const [exitCode] = failures[code];
  return new Problem(exitCode, code, message, { cause: error });
}

/** Writes the error to stderr: `keyhole: …` for people, `{"error","code","requestId"}` with `--json`. */
export async function complain(context: CommandContext, problem: Problem): Promise<void> {
  const { message, code, requestId, help, notes, document } = problem;
  const { stdout, stderr } = context.terminal;
  if (context.json) {
    if (document !== undefined) await write(stdout, jsonLine(document)).catch(unlessClosed);
    return write(stderr, jsonLine({ error: message, code, requestId, ...(notes.length > 0 && { notes }) }));
  }
  if (help !== undefined) return write(stderr, help);
  const request = requestId === null ? "" : ` (request ${requestId})`;
  const name = hasColour(stderr, context.env) ? red("keyhole:") : "keyhole:";
  return write(stderr, `${fitted(`${name} ${visibleLines(message + request)}`, stderr)}\n`);
}

/** With --json, stderr holds one document if the command fails. So the messages of `work` wait for its outcome. */
export async function holdNotes<T>(context: CommandContext, work: (say: CommandContext["say"]) => Promise<T>) {
  const notes: string[] = [];
  try {
    const result = await work(context.json ? (line) => notes.push(line) : context.say);
    notes.forEach(context.say);
    return result;
  } catch (error) {
    const problem = toProblem(error, context);
    problem.notes = notes;
    throw problem;
  }
}
