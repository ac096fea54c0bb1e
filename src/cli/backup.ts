import { backUp, restore, verifyBackup } from "../admin/backup.ts";
import { DoesNotOpen } from "../admin/verify.ts";
import { readConfig } from "../config.ts";
import { exits, Problem } from "../problem.ts";
import { writeWhole } from "../whole-file.ts";
import { answer, counted, type Surroundings, unreadable, verb } from "./command.ts";
import { progressOn } from "./terminal.ts";

/** `keyhole backup FILE` and `keyhole backup verify FILE` */
export function backupCommand(here: Surroundings) {
  const verify = verb(
    "verify",
    "Restore a backup into a scratch folder and open every item of it with the root key.",
    "keyhole backup verify /backups/keyhole-2026-11-20.db",
  )
    .argument("<file>", "the backup")
    .action(async (file) => {
      const progress = progressOn(here.terminal.stderr, "Opening", "items");
      const opened = await verifyBackup(readConfig(here.env), file, here.say, progress.report)
        .catch((error: unknown) => {
          if (error instanceof DoesNotOpen) {
            throw new Problem(exits.failed, "backup_damaged", error.message, { cause: error });
          }
          throw readFailure(file, error);
        })
        .finally(progress.clear);
      const what = [
        counted(opened.variables, "variable"),
        counted(opened.accounts, "account"),
        counted(opened.files, "file"),
        counted(opened.sets, "set"),
        counted(opened.keys, "key"),
        counted(opened.auditEntries, "audit entry", "audit entries"),
      ];
      const word = `Every item of ${file} opens: ${what.join(", ")} in ${counted(opened.projects, "project")}.`;
      await answer(here, { file, ...opened }, word);
    });

  return verb(
    "backup",
    "Back up the embedded database, also while a server runs. The root key is not in it.",
    "keyhole backup /backups/keyhole-2026-11-20.db",
    "keyhole backup verify /backups/keyhole-2026-11-20.db",
  )
    .argument("<file>", "the backup to make, mode 0600")
    .option("--force", "replace the file where there is one")
    .action(async (file, { force }) => {
      const config = readConfig(here.env);
      let bytes = 0;
      await writeWhole(file, force === true, async (draft) => {
        bytes = backUp(config, draft).bytes;
      });
      const where = config.rootKey.from === "folder" ? `: keep a copy of ${config.dataFolder}/root.key elsewhere` : "";
      await answer(
        here,
        { file, bytes },
        `Wrote ${counted(bytes, "byte")} to ${file}.\nThe root key is not in it${where}; without it nothing in the backup can be read.`,
      );
    })
    .addCommand(verify);
}

/** `keyhole restore FILE` */
export function restoreCommand(here: Surroundings) {
  return verb(
    "restore",
    "Put a backup in the place of the embedded database; no server may run on it.",
    "keyhole restore /backups/keyhole-2026-11-20.db",
  )
    .argument("<file>", "the backup")
    .option("--force", "replace a database that holds something")
    .action(async (file, { force }) => {
      const config = readConfig(here.env);
      const { bytes, hasRootKey } = await restore(config, file, { force, say: here.say }).catch((error: unknown) => {
        throw readFailure(file, error);
      });
      const missing = `The root key is not in a backup: put it at ${config.dataFolder}/root.key, mode 0600, before anything else.`;
      await answer(
        here,
        { file, bytes, hasRootKey },
        `Restored ${file} to ${config.dataFolder}.${hasRootKey ? "" : `\n${missing}`}`,
      );
    });
}

function readFailure(file: string, error: unknown): unknown {
  const { path, syscall } = error as NodeJS.ErrnoException;
  return syscall !== undefined && path === file ? unreadable(file, error) : error;
}
