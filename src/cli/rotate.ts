import { exits, Problem, usageProblem } from "../core/problem.ts";
import { readConfig } from "../core/settings.ts";
import { counted } from "../core/text.ts";
import { listed, rotateData, rotateRoot } from "../people/rotation.ts";
import { confirm, withAdmin } from "../terminal/admin.ts";
import { answer } from "../terminal/answer.ts";
import { type CommandContext, noun, verb } from "../terminal/command.ts";
import { withProgress } from "../terminal/terminal.ts";
import { yesOption } from "../terminal/verbs.ts";

export function rotateCommand(context: CommandContext) {
  return noun("rotate", "New root keys and data keys.", rootVerb(context), dataVerb(context));
}

function rootVerb(context: CommandContext) {
  return verb(
    "root",
    "Rewrap every stored key with the first root key. Values stay as they are, and servers keep running.",
    "keyhole rotate root --finish",
    "KEYHOLE_ROOT_KEY=$NEW,$OLD keyhole rotate root",
  )
    .option("--finish", "move the older key from the generated root.key into a file of its own")
    .option("--delete-old", "with --finish: delete the older key; earlier backups cannot be read without it")
    .option(...yesOption)
    .action(async ({ finish: finishes, deleteOld = false, yes }) => {
      if (deleteOld && !finishes) throw usageProblem("--delete-old goes with --finish.");
      const config = readConfig(context.env);
      const fate = deleteOld ? "delete it: earlier backups cannot be read without it" : "keep it in a file beside it";
      const file = `${config.dataFolder}/root.key`;
      const agree = (ids: readonly string[]) =>
        confirm(context, yes, `take the older root key (${ids.join(", ")}) out of ${file} and ${fate}`);
      const finish = finishes === true && { agree, deletesOld: deleteOld };
      const done = await withProgress(context.terminal.stderr, "Rewrapping", "keys", (report) =>
        withAdmin(context, (admin) => rotateRoot(admin, config, finish, report)),
      );
      const { rootId, olderRootIds, systemKeys, dataKeys, source, dropped, kept } = done;
      const older = `older root key (${olderRootIds.join(", ")})`;
      const isOurs = config.rootKey.from === "folder";
      const todo = isOurs ? "run `keyhole rotate root --finish` to remove it" : `remove it from ${source}`;
      const next = dropped
        ? `The ${older} was ${kept.length > 0 ? `moved to ${kept.join(", ")}` : `removed from ${source}`}.`
        : `Nothing needs the ${older} any more: ${todo}.`;
      const lines = [
        `Rewrapped ${counted(systemKeys, "system key")} and ${counted(dataKeys, "data key")}.`,
        `All are wrapped by the root key ${rootId}.`,
        next,
        "Earlier backups still need the older root key.",
      ];
      await answer(context, done, lines.join("\n"));
    });
}

function dataVerb(context: CommandContext) {
  return verb(
    "data",
    "Give a project a new data key and reseal everything in it. Servers keep running.",
    "keyhole rotate data acme/web",
  )
    .argument("[project]", "ORG/PROJECT (default: every project)")
    .action(async (project) => {
      const done = await withProgress(context.terminal.stderr, "Resealing", "projects", (report) =>
        withAdmin(context, (admin) => rotateData(admin, project, report)),
      );
      const { projects, resumed, sets, versions, contents, deletedKeys, broken } = done;
      if (broken.length > 0) {
        const advice =
          "Restore a backup, or delete what is damaged (`keyhole history purge` for earlier versions), then run this again.";
        const words = `Cannot be decrypted and stayed as it was: ${listed(broken)}. Everything else has new data keys.`;
        throw new Problem(exits.failed, "decryption_failed", `${words} ${advice}`);
      }
      const again = resumed > 0 ? `, of which an earlier run had begun ${resumed}` : "";
      const resealed = `Resealed ${counted(sets, "set")}, ${counted(versions, "earlier version")} and ${counted(contents, "file content")}`;
      const deleted = `${counted(deletedKeys, "older data key")} deleted`;
      await answer(context, done, `${resealed} of ${counted(projects, "project")}${again}; ${deleted}.`);
    });
}
