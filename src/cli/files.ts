import { type FilesAsk, findDrift, type Pulled, pullFiles } from "../client/files-pull.ts";
import type { Source } from "../client/variables.ts";
import { modesTo } from "../core/modes.ts";
import { exits, Problem } from "../core/problem.ts";
import { jsonLine } from "../core/visible.ts";
import { counted, listed } from "../core/words/text.ts";
import { flag, input, repeated } from "../people/desk/inputs.ts";
import { atMachine, type Machine, machineInputs, receiptsOf } from "./machine.ts";
import { answer } from "./terminal/answer.ts";
import { type CommandGroup, processCommand } from "./terminal/draw.ts";
import { unlessClosed, withProgress, write } from "./terminal/terminal.ts";
import type { CommandContext } from "./terminal/verb.ts";

const pull = processCommand({
  path: "files pull",
  about: "Write the secret files of an environment to a folder: all of them or none.",
  examples: [
    "keyhole files pull -p web -e production --root /run/secrets/web",
    "keyhole files pull -p web -e staging --path config/tls.p12 --path .ssh/id_ed25519",
  ],
  inputs: {
    ...machineInputs,
    root: input("--root <folder>", "the folder to write them to (default: the current one)"),
    paths: repeated("--path <path...>", "only the file with this path; may be repeated"),
    check: flag("--check", "write nothing: compare, and list on stdout every file that differs"),
  },
  action: async (context, { root = ".", paths = [], check, allowEmpty, ...options }) => {
    await atMachine(context, options, async (machine) => {
      const ask = { root, paths, allowEmpty };
      if (check) return checkFiles(context, machine, ask);
      const pulled = await pullWithProgress(context, machine, ask);
      const { project, environment } = machine.asked;
      const total = counted(pulled.written.length + pulled.unchanged, "file");
      const counts = `${pulled.written.length} written, ${pulled.unchanged} already in place`;
      const message = `${project}, ${environment}: ${total} below ${root}, ${counts}.`;
      await answer(context, { ...machine.asked, ...pulled, ...receiptsOf(machine) }, message);
    });
  },
});

export const files: CommandGroup = { about: "Secret files, fetched by machines.", rows: [pull] };

/** Pulls files and shows on a terminal how far it is. */
export function pullWithProgress(context: CommandContext, source: Source, ask: FilesAsk): Promise<Pulled> {
  const { stderr } = context.terminal;
  return withProgress(stderr, "Fetching", "files", (fetching) =>
    withProgress(stderr, "Writing", "files", (writing) =>
      pullFiles(source, ask, { fetching, writing, modes: modesTo(context.say) }),
    ),
  );
}

async function checkFiles(context: CommandContext, machine: Machine, ask: FilesAsk): Promise<void> {
  const { files, drift } = await findDrift(machine, ask);
  const { stdout } = context.terminal;
  const found = context.json
    ? jsonLine({ ...machine.asked, root: ask.root, files, drift })
    : drift.map(({ path }) => `${path}\n`).join("");
  await write(stdout, found).catch(unlessClosed);
  if (drift.length > 0) {
    const byMode = drift.filter(({ state }) => state === "mode").map(({ path }) => path);
    const words = byMode.length > 0 ? ` Only the mode differs of ${listed(byMode)}.` : "";
    throw new Problem(exits.failed, "drift", `Out of step: ${drift.length} of ${counted(files, "file")}.${words}`);
  }
  if (!context.json) context.say(`In step: ${counted(files, "file")}.`);
}
