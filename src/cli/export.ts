import { statSync } from "node:fs";
import { Root } from "../client/safe-files.ts";
import { textFormats } from "../core/formats/format.ts";
import { modesTo } from "../core/modes.ts";
import { onInterrupt, type Problem, usageProblem } from "../core/problem.ts";
import { writeWholeFolder } from "../core/whole-file.ts";
import { counted, joined } from "../core/words/text.ts";
import { everyKind } from "../kinds/kind.ts";
import { type Exported, type ExportedFile, exportOrganization } from "../people/backup/export.ts";
import { choices, completed, flag, input, required } from "../people/desk/inputs.ts";
import { withAdmin } from "./terminal/admin.ts";
import { answer } from "./terminal/answer.ts";
import { type CommandGroup, processCommand } from "./terminal/draw.ts";
import { withProgress } from "./terminal/terminal.ts";

const exportAll = processCommand({
  path: "export",
  about:
    "Write all variables, accounts and files of an organization into a new folder, or nothing if one of them does not open. The audit records that you saw them.",
  examples: ["keyhole export --org acme --out acme", "keyhole export --out acme --format env,yaml"],
  right: "operator",
  inputs: {
    organization: completed(input("--org <org>", "the organization; optional if only one exists"), "organizations"),
    out: required(input("--out <folder>", "the folder, mode 0700; it must be empty, or not there yet")),
    withMachinesOnly: flag("--with-machines-only", "also values for machines only, which are left out otherwise"),
    formats: choices("--format <list>", "what to write variables as, besides JSON (default: env)", textFormats),
  },
  action: async (context, { organization, out, formats = ["env"] as const, withMachinesOnly = false }) => {
    if (out === "" || out === "-") throw usageProblem("--out names no folder: what is exported is many files.");
    const warnings: string[] = [];
    const ask = { formats, withMachinesOnly, warn: (line: string) => warnings.push(line) };
    let exported: Exported | undefined;
    let interruption: Problem | undefined;
    // From before there is a draft until it is gone.
    using _ = onInterrupt((problem) => {
      interruption = problem;
    });
    const goOn = () => {
      if (interruption !== undefined) throw interruption;
    };
    const fill = (draft: string) =>
      withProgress(context.terminal.stderr, "Exporting", "projects", (report) =>
        withAdmin(context, async (admin) => {
          exported = await placeAll(draft, exportOrganization(admin, organization, ask, report), goOn);
        }),
      );
    await writeWholeFolder(out, fill);
    modesTo((line) => warnings.push(line))([{ path: out, mode: statSync(out).mode }]);
    const { organization: slug, projects, items, leftOut } = exported as Exported;
    for (const one of leftOut) warnings.push(`Left out, for machines only: ${one}.`);
    for (const warning of warnings) context.say(warning);
    const what = joined(everyKind.map(({ kind, item }) => counted(items[kind] ?? 0, item)));
    const sentence = `Wrote ${what} of ${counted(projects, "project")} of ${slug} to ${out}.`;
    await answer(context, { organization: slug, out, projects, ...items, warnings }, sentence);
  },
});

/** Writes each file before it asks for the next one. @param goOn - throws to stop */
async function placeAll(folder: string, files: AsyncGenerator<ExportedFile, Exported>, goOn: () => void) {
  using root = new Root(folder);
  for (;;) {
    const next = await files.next();
    goOn();
    if (next.done) return next.value;
    await root.place([next.value], () => {});
    root.closeFolders(); // there may be more of them than one process may open
    next.value.content.fill(0);
  }
}

export const exporting: CommandGroup = { rows: [exportAll] };
