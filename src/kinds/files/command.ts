import { writeFile } from "node:fs/promises";
import { Option } from "@commander-js/extra-typings";
import { contentBytesMax, environments } from "../../core/names.ts";
import { counted, formatTime } from "../../core/text.ts";
import { writeWhole } from "../../core/whole-file.ts";
import { findProject } from "../../desk/projects.ts";
import { withAdmin } from "../../terminal/admin.ts";
import { answer, answerSecret } from "../../terminal/answer.ts";
import { type CommandContext, noun } from "../../terminal/command.ts";
import { readLocal } from "../../terminal/input.ts";
import { environmentsOption } from "../../terminal/options.ts";
import { listFound } from "../../terminal/records.ts";

import { projectVerb, wideOption } from "../../terminal/verbs.ts";
import { type RevealedFile, revealFile } from "./reveal.ts";
import { deleteFile, listFiles, putFile } from "./write.ts";

export function fileCommand(context: CommandContext) {
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
      const stored = await withAdmin(context, async (admin) => {
        await findProject(admin, project, "write", env);
        const content = await readLocal(context, local, contentBytesMax);
        return putFile(admin, project, { content, path, environments: env, name, mode, contentType: type });
      });
      const did = `${stored.created ? "Stored" : "Replaced"} ${stored.path} (${counted(stored.size, "byte")})`;
      await answer(context, stored, `${did} in ${project} for ${env.join(", ")}.`);
    });

  const get = projectVerb(
    "get",
    "Print the content of a secret file, byte for byte, or write it to a file. The audit records that you saw it.",
    "keyhole file get acme/web config/tls.p12 --env production --out tls.p12",
  )
    .argument("<path>", "the path it was stored under")
    .addOption(
      new Option("--env <env>", "from this environment (default: where it changed last)").choices(environments),
    )
    .option("--out <file>", "write to this file, mode 0600, instead of stdout")
    .option("--force", "replace an existing file")
    .action(async (project, path, { env, out, force = false }) => {
      const reveal = () => withAdmin(context, (admin) => revealFile(admin, project, path, env));
      if (out === undefined) {
        const { content, ...file } = await reveal();
        const document = { project, ...file, content: Buffer.from(content).toString("base64") };
        return answerSecret(context, document, content, `The content of ${path} in ${file.environment}`);
      }
      let found: RevealedFile | undefined;
      await writeWhole("export", out, force, async (draft) => {
        found = await reveal();
        await writeFile(draft, found.content);
      });
      const { content: _, ...file } = found as unknown as RevealedFile;
      const did = `Wrote ${path} of ${project}, ${file.environment}, to ${out} (${counted(file.size, "byte")}).`;
      await answer(context, { project, ...file, out }, did);
    });

  const list = projectVerb("list", "List the secret files. Their content is never shown.", "keyhole file list acme/web")
    .option(...wideOption)
    .action((project, { wide }) =>
      listFound(context, wide, (admin) => listFiles(admin, project), `${project} has no files.`, {
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
      await withAdmin(context, (admin) => deleteFile(admin, project, path, env));
      const document = { project, path, environments: env, status: "deleted" };
      await answer(context, document, `Deleted ${path} from ${project} for ${env.join(", ")}.`);
    });

  return noun("file", "Secret files, such as certificates and key stores.", put, get, list, remove);
}
