import { listed, rotateData, rotateRoot } from "../admin/rotation.ts";
import { readConfig } from "../config.ts";
import { exits, Problem } from "../problem.ts";
import { answer, atDesk, counted, noun, type Surroundings, verb } from "./command.ts";
import { progressOn } from "./terminal.ts";

/** `keyhole rotate …` */
export function rotateCommand(here: Surroundings) {
  const root = verb(
    "root",
    "Rewrap every stored key with the first root key. Values stay as they are, and servers keep running.",
    "keyhole rotate root",
    "keyhole rotate root --finish",
    "KEYHOLE_ROOT_KEY=$NEW,$OLD keyhole rotate root",
  )
    .option("--finish", "remove the older key from the generated root.key")
    .action(async ({ finish = false }) => {
      const config = readConfig(here.env);
      const progress = progressOn(here.terminal.stderr, "Rewrapping", "keys");
      const done = await atDesk(here, (desk) => rotateRoot(desk, config, finish, progress.report)).finally(
        progress.clear,
      );
      const { rootId, olderRootIds, systemKeys, dataKeys, source, dropped } = done;
      const older = olderRootIds.join(", ");
      const next = dropped
        ? `The older root key (${older}) was removed from ${source}.`
        : config.rootKey.from === "folder"
          ? `Nothing needs the older root key (${older}) any more: run \`keyhole rotate root --finish\` to remove it.`
          : `Nothing needs the older root key (${older}) any more: remove it from ${source}.`;
      await answer(
        here,
        done,
        [
          `Rewrapped ${counted(systemKeys, "system key")} and ${counted(dataKeys, "data key")}.`,
          `All are wrapped by the root key ${rootId}.`,
          next,
          "Earlier backups still need the older root key.",
        ].join("\n"),
      );
    });

  const data = verb(
    "data",
    "Give a project a new data key and reseal everything in it. Servers keep running.",
    "keyhole rotate data acme/web",
    "keyhole rotate data",
  )
    .argument("[project]", "ORG/PROJECT (default: every project)")
    .action(async (project) => {
      const progress = progressOn(here.terminal.stderr, "Resealing", "projects");
      const done = await atDesk(here, (desk) => rotateData(desk, project, progress.report)).finally(progress.clear);
      const { projects, resumed, sets, contents, deletedKeys, broken } = done;
      if (broken.length > 0) {
        throw new Problem(
          exits.failed,
          "decryption_failed",
          [
            `Cannot be decrypted and stayed as it was: ${listed(broken)}.`,
            "Everything else has new data keys. Restore a backup, or delete what is damaged, then run this again.",
          ].join(" "),
        );
      }
      const again = resumed > 0 ? `, of which an earlier run had begun ${resumed}` : "";
      await answer(
        here,
        done,
        `Resealed ${counted(sets, "set")} and ${counted(contents, "file content")} of ${counted(projects, "project")}${again}; ${counted(deletedKeys, "older data key")} deleted.`,
      );
    });

  return noun("rotate", "New root keys and data keys.").addCommand(root).addCommand(data);
}
