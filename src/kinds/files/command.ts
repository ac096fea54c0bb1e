import { Option } from "@commander-js/extra-typings";
import { contentBytesMax } from "../../core/names.ts";
import { withAdmin } from "../../terminal/admin.ts";
import { answer, counted } from "../../terminal/answer.ts";
import { noun, type Surroundings } from "../../terminal/command.ts";
import { readLocal } from "../../terminal/input.ts";
import { environmentsOption } from "../../terminal/options.ts";
import { listFound } from "../../terminal/records.ts";
import { formatTime } from "../../terminal/terminal.ts";
import { projectVerb, wideOption } from "../../terminal/verbs.ts";
import { deleteFile, listFiles, putFile } from "./write.ts";

/** `keyhole file …` */
export function fileCommand(here: Surroundings) {
  const put = projectVerb(
    "put",
    "Store a secret file, or replace the one at the same path.",
    "keyhole file put acme/web ./prod.p12 --path config/tls.p12 --env production",
    "age --decrypt id.age | keyhole file put web - --path .ssh/id_ed25519 --env production",
  )
    .argument("<local>", "the local file, or - for stdin")
    .requiredOption("--path <path>", "required: where clients write it, relative to their root folder")
    .addOption(environmentsOption("the environments that hold it"))
    .option("--name <name>", "display name (default: the last part of the path)")
    .addOption(new Option("--mode <mode>", "its mode where clients write it (default: 0600)").choices(["0600", "0400"]))
    .option("--type <type>", "media type (default: application/octet-stream)")
    .action(async (project, local, { path, env, name, mode, type }) => {
      const content = await readLocal(here, local, contentBytesMax);
      const file = { content, path, environments: env, name, mode, contentType: type };
      const stored = await withAdmin(here, (admin) => putFile(admin, project, file));
      const did = `${stored.created ? "Stored" : "Replaced"} ${stored.path} (${counted(stored.size, "byte")})`;
      await answer(here, stored, `${did} in ${project} for ${env.join(", ")}.`);
    });

  const list = projectVerb("list", "List the secret files. Their content is never shown.", "keyhole file list acme/web")
    .option(...wideOption)
    .action((project, { wide }) =>
      listFound(here, wide, (admin) => listFiles(admin, project), `${project} has no files.`, {
        PATH: (one) => one.path,
        MODE: (one) => one.mode,
        SIZE: (one) => one.size,
        ENVIRONMENTS: (one) => one.environments.join(","),
        UPDATED: (one) => formatTime(one.updatedAt),
        NAME: (one) => one.name,
      }),
    );

  const remove = projectVerb(
    "delete",
    "Delete a secret file from environments.",
    "keyhole file delete acme/web config/tls.p12 --env staging,production",
  )
    .argument("<path>", "the path it was stored under")
    .addOption(environmentsOption("the environments to delete it from"))
    .action(async (project, path, { env }) => {
      await withAdmin(here, (admin) => deleteFile(admin, project, path, env));
      const document = { project, path, environments: env, status: "deleted" };
      await answer(here, document, `Deleted ${path} from ${project} for ${env.join(", ")}.`);
    });

  return noun("file", "Secret files, such as certificates and key stores.", put, list, remove);
}
