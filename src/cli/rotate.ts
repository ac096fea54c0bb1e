import { listed, rotateData, rotateRoot } from "../admin/rotation.ts";
import { readConfig } from "../config.ts";
import { exits, Problem } from "../problem.ts";
import { answer, atDesk, counted, noun, type Surroundings, verb } from "./command.ts";
import { progressOn } from "./terminal.ts";

/** `keyhole rotate …` */
export function rotateCommand(here: Surroundings) {
  const root = verb(
    "root",
    "Put every stored key under the first root key. No value is touched, and servers go on.",
    "keyhole rotate root",
    "keyhole rotate root --finish",
    "KEYHOLE_ROOT_KEY=$NEW,$OLD keyhole rotate root",
  )
    .option("--finish", "drop the older key from the generated root.key")
    .action(async ({ finish = false }) => {
      const config = readConfig(here.env);
      const progress = progressOn(here.terminal.stderr, "Rewrapping", "keys");
      const done = await atDesk(here, (desk) => rotateRoot(desk, config, finish, progress.report)).finally(
        progress.clear,
      );
      const { rootId, olderRootIds, systemKeys, dataKeys, source, dropped } = done;
      const older = olderRootIds.join(", ");
      const next = dropped
        ? `The older root key (${older}) is gone from ${source}.`
        : config.rootKey.from === "folder"
          ? `Nothing needs the older root key (${older}) any more, and running servers find the new one by themselves: \`keyhole rotate root --finish\` takes it out of ${source}.`
          : `Nothing needs the older root key (${older}) any more: take it out of ${source}.`;
      await answer(
        here,
        done,
        [
          `Rewrapped ${counted(systemKeys, "system key")} and ${counted(dataKeys, "data key")}; everything is under the root key ${rootId}.`,
          next,
          "Backups from before this moment still need the older one.",
        ].join("\n"),
      );
    });

  const data = verb(
    "data",
    "Give a project a new data key and reseal everything in it, while servers go on.",
    "keyhole rotate data acme/web",
    "keyhole rotate data",
  )
    .argument("[project]", "ORG/PROJECT (default: every project)")
    .action(async (where) => {
      const progress = progressOn(here.terminal.stderr, "Resealing", "projects");
      const done = await atDesk(here, (desk) => rotateData(desk, where, progress.report)).finally(progress.clear);
      const { projects, resumed, sets, contents, deletedKeys, broken } = done;
      if (broken.length > 0) {
        throw new Problem(
          exits.failed,
          "decryption_failed",
          `Does not open, and stayed as it was: ${listed(broken)}. Everything else is under new data keys. Restore a backup, or delete what is damaged, and run this again.`,
        );
      }
      const again = resumed > 0 ? `, of which ${resumed} were begun by an earlier run` : "";
      await answer(
        here,
        done,
        `Resealed ${counted(sets, "set")} and ${counted(contents, "file content")} of ${counted(projects, "project")}${again}; ${counted(deletedKeys, "older data key")} deleted.`,
      );
    });

  return noun("rotate", "New root keys and data keys.").addCommand(root).addCommand(data);
}
