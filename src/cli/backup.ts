import { modesTo } from "../core/modes.ts";
import { exits, Problem } from "../core/problem.ts";
import { readConfig } from "../core/settings/settings.ts";
import { writeWhole } from "../core/whole-file.ts";
import { counted } from "../core/words/text.ts";
import { everyKind } from "../kinds/kind.ts";
import { backUp, refuseOwnFile, restore, verifyBackup } from "../people/backup/backup.ts";
import { actorOf } from "../people/desk/actor.ts";
import { flag, force, input } from "../people/desk/inputs.ts";
import { answer } from "./terminal/answer.ts";
import { type CommandGroup, processCommand } from "./terminal/draw.ts";
import { unreadable } from "./terminal/input.ts";
import { withProgress } from "./terminal/terminal.ts";

const verify = processCommand({
  path: "backup verify",
  about: "Restore a backup into a temporary folder and decrypt every item of it with the root key.",
  examples: ["keyhole backup verify /backups/keyhole-2026-11-20.db"],
  right: "operator",
  inputs: { file: input("<file>", "the backup") },
  action: async (context, { file }) => {
    const opened = await withProgress(context.terminal.stderr, "Decrypting", "items", (report) =>
      verifyBackup(readConfig(context.env), file, context.say, report),
    ).catch((error: unknown) => {
      throw readFailure(file, error);
    });
    const { projects, sets, versions, items, keys, auditEntries } = opened;
    const what = [
      ...everyKind.map(({ kind, item }) => counted(items[kind] ?? 0, item)),
      counted(sets, "set"),
      counted(versions, "earlier version"),
      counted(keys, "key"),
      counted(auditEntries, "audit entry", "audit entries"),
    ];
    const where = `in ${counted(projects, "project")}`;
    const found = { projects, sets, versions, ...items, keys, auditEntries };
    await answer(context, { file, ...found }, `Every item of ${file} can be decrypted: ${what.join(", ")} ${where}.`);
  },
});

const backup = processCommand({
  path: "backup",
  about: "Back up the embedded database; a server may be running. The root key is not included.",
  examples: ["keyhole backup /backups/keyhole-2026-11-20.db"],
  right: "operator",
  inputs: { file: input("<file>", "the backup to write, mode 0600"), force },
  action: async (context, { file, force }) => {
    const config = readConfig(context.env);
    refuseOwnFile(config, file);
    let bytes = 0;
    const fill = async (draft: string) => {
      bytes = backUp(config, draft).bytes;
    };
    await writeWhole("backup", file, force === true, fill, modesTo(context.say));
    const advice = config.rootKey.from === "folder" ? `: keep a copy of ${config.dataFolder}/root.key elsewhere` : "";
    const warning = `The root key is not in it${advice}. Without the root key nothing in the backup can be read.`;
    await answer(context, { file, bytes }, `Wrote ${counted(bytes, "byte")} to ${file}.\n${warning}`);
  },
});

const restoreOne = processCommand({
  path: "restore",
  about: "Replace the embedded database by a backup. No server may be running on it.",
  examples: ["keyhole restore /backups/keyhole-2026-11-20.db"],
  right: "operator",
  asks: "needs --yes",
  inputs: { file: input("<file>", "the backup"), force: flag("--force", "replace a database that is not empty") },
  action: async (context, { file, force }, ask) => {
    const config = readConfig(context.env);
    const deed = (replaces: boolean) =>
      replaces
        ? `replace the database in ${config.dataFolder} by ${file}; what was written since, revocations of keys included, is lost, and a host that has seen a newer checkpoint of the audit serves it only after \`keyhole audit accept-restore\``
        : `put ${file} into ${config.dataFolder}, where there is no database yet`;
    const { bytes, hasRootKey } = await restore(config, file, {
      force,
      actor: actorOf(context.env),
      say: context.say,
      agree: (replaces) => ask({ deed: deed(replaces) }),
    }).catch((error: unknown) => {
      throw readFailure(file, error);
    });
    const todo = `The backup does not include the root key: put it at ${config.dataFolder}/root.key, mode 0600.`;
    const restored = `Restored ${file} to ${config.dataFolder}.`;
    await answer(context, { file, bytes, hasRootKey }, hasRootKey ? restored : `${restored}\n${todo}`);
  },
});

export const backups: CommandGroup = { rows: [backup, verify] };
export const restores: CommandGroup = { rows: [restoreOne] };

function readFailure(file: string, error: unknown): unknown {
  const { path, syscall, code } = error as NodeJS.ErrnoException;
  if (syscall === "copyfile" && code === "ENOSPC") {
    return new Problem(exits.unavailable, "unavailable", `The disk is full: it has no room for a copy of ${file}.`);
  }
  return syscall !== undefined && (path ?? "") === file ? unreadable(file, error) : error;
}
