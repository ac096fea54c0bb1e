import { exits, Problem } from "../core/problem.ts";
import { readConfig } from "../core/settings.ts";
import { counted } from "../core/text.ts";
import { writeWhole } from "../core/whole-file.ts";
import { actorOf } from "../installation/actor.ts";
import { everyKind } from "../kinds/kind.ts";
import { backUp, refuseOwnFile, restore, verifyBackup } from "../people/backup.ts";
import { confirm } from "../terminal/admin.ts";
import { answer } from "../terminal/answer.ts";
import { type CommandContext, verb } from "../terminal/command.ts";
import { unreadable } from "../terminal/input.ts";
import { withProgress } from "../terminal/terminal.ts";
import { yesOption } from "../terminal/verbs.ts";

/** `keyhole backup FILE` and `keyhole backup verify FILE` */
export function backupCommand(context: CommandContext) {
  const verify = verb(
    "verify",
    "Restore a backup into a temporary folder and decrypt every item of it with the root key.",
    "keyhole backup verify /backups/keyhole-2026-11-20.db",
  )
    .argument("<file>", "the backup")
    .action(async (file) => {
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
    });

  return verb(
    "backup",
    "Back up the embedded database; a server may be running. The root key is not included.",
    "keyhole backup /backups/keyhole-2026-11-20.db",
  )
    .argument("<file>", "the backup to write, mode 0600")
    .option("--force", "replace an existing file")
    .action(async (file, { force }) => {
      const config = readConfig(context.env);
      refuseOwnFile(config, file);
      let bytes = 0;
      await writeWhole("backup", file, force === true, async (draft) => {
        bytes = backUp(config, draft).bytes;
      });
      const advice = config.rootKey.from === "folder" ? `: keep a copy of ${config.dataFolder}/root.key elsewhere` : "";
      const warning = `The root key is not in it${advice}. Without the root key nothing in the backup can be read.`;
      await answer(context, { file, bytes }, `Wrote ${counted(bytes, "byte")} to ${file}.\n${warning}`);
    })
    .addCommand(verify);
}

/** `keyhole restore FILE` */
export function restoreCommand(context: CommandContext) {
  return verb(
    "restore",
    "Replace the embedded database by a backup. No server may be running on it.",
    "keyhole restore /backups/keyhole-2026-11-20.db",
  )
    .argument("<file>", "the backup")
    .option("--force", "replace a database that is not empty")
    .option(...yesOption)
    .action(async (file, { force, yes }) => {
      const config = readConfig(context.env);
      const deed = (replaces: boolean) =>
        replaces
          ? `replace the database in ${config.dataFolder} by ${file}; what was written since, revocations of keys included, is lost`
          : `put ${file} into ${config.dataFolder}, where there is no database yet`;
      const { bytes, hasRootKey } = await restore(config, file, {
        force,
        actor: actorOf(context.env),
        say: context.say,
        agree: (replaces) => confirm(context, yes, deed(replaces)),
      }).catch((error: unknown) => {
        throw readFailure(file, error);
      });
      const todo = `The backup does not include the root key: put it at ${config.dataFolder}/root.key, mode 0600.`;
      const restored = `Restored ${file} to ${config.dataFolder}.`;
      await answer(context, { file, bytes, hasRootKey }, hasRootKey ? restored : `${restored}\n${todo}`);
    });
}

function readFailure(file: string, error: unknown): unknown {
  const { path, syscall, code } = error as NodeJS.ErrnoException;
  if (syscall === "copyfile" && code === "ENOSPC") {
    return new Problem(exits.unavailable, "unavailable", `The disk is full: it has no room for a copy of ${file}.`);
  }
  return syscall !== undefined && (path ?? "") === file ? unreadable(file, error) : error;
}
