import { exits, Problem, usageProblem } from "../../core/problem.ts";
import { type Config, readConfig } from "../../core/settings/settings.ts";
import { counted, listed } from "../../core/words/text.ts";
import { completed, flag, input } from "../desk/inputs.ts";
import { type Operations, operation } from "../desk/operation.ts";
import { done, type Outcome } from "../desk/outcome.ts";
import { rightTo } from "../desk/permit.ts";
import { planFinish, type RootRotation, rotateData, rotateRoot } from "./rotation.ts";

const root = operation({
  path: "rotate root",
  about: "Rewrap every stored key with the first root key. Values stay as they are, and servers keep running.",
  examples: ["keyhole rotate root --finish", "KEYHOLE_ROOT_KEY=$NEW,$OLD keyhole rotate root"],
  right: rightTo("root_key.rotate"),
  asks: "needs --yes",
  progress: ["Rewrapping", "keys"],
  isLong: true,
  inputs: {
    finishes: flag("--finish", "move the older key from the generated root.key into a file of its own"),
    deleteOld: flag("--delete-old", "with --finish: delete the older key; earlier backups cannot be read without it"),
  },
  check: ({ finishes, deleteOld }) => {
    if (deleteOld && !finishes) throw usageProblem("--delete-old goes with --finish.");
  },
  plan: async (admin, { finishes, deleteOld = false }, { env, report }) => {
    const config = readConfig(env);
    const document = { rootId: admin.keyring.rootId };
    const sentence = "Nothing was changed. It would rewrap every stored key with the first root key.";
    const apply = async (older?: string) => {
      const finish = older !== undefined && { older, deletesOld: deleteOld };
      return rotatedText(await rotateRoot(admin, config, finish, report), config);
    };
    if (!finishes) return { seen: {}, document, sentence, apply: () => apply() };
    const older = (await planFinish(admin, config)).join(", ");
    const fate = deleteOld ? "delete it: earlier backups cannot be read without it" : "keep it in a file beside it";
    const deed = `take the older root key (${older}) out of ${config.dataFolder}/root.key and ${fate}`;
    return { deed, seen: { older }, document, apply: () => apply(older) };
  },
});

function rotatedText(rotated: RootRotation, config: Config): Outcome {
  const { rootId, olderRootIds, systemKeys, dataKeys, source, dropped, kept } = rotated;
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
  return done(rotated, lines.join("\n"));
}

const data = operation({
  path: "rotate data",
  about: "Give a project a new data key and reseal everything in it. Servers keep running.",
  examples: ["keyhole rotate data acme/web"],
  right: rightTo("data_key.rotate"),
  progress: ["Resealing", "projects"],
  inputs: { project: completed(input("[project]", "ORG/PROJECT (default: every project)"), "projects") },
  run: async (admin, { project }, { report }) => {
    const rotated = await rotateData(admin, project, report);
    const { projects, resumed, sets, versions, contents, deletedKeys, broken } = rotated;
    if (broken.length > 0) {
      const advice =
        "Restore a backup, or delete what is damaged (`keyhole history purge` for earlier versions), then run this again.";
      const words = `Cannot be decrypted and stayed as it was: ${listed(broken)}. Everything else has new data keys.`;
      throw new Problem(exits.failed, "decryption_failed", `${words} ${advice}`);
    }
    const again = resumed > 0 ? `, of which an earlier run had begun ${resumed}` : "";
    const resealed = `Resealed ${counted(sets, "set")}, ${counted(versions, "earlier version")} and ${counted(contents, "file content")}`;
    const deleted = `${counted(deletedKeys, "older data key")} deleted`;
    return done(rotated, `${resealed} of ${counted(projects, "project")}${again}; ${deleted}.`);
  },
});

export const rotations: Operations = { about: "New root keys and data keys.", rows: [root, data] };
