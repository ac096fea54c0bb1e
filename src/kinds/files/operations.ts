import { contentBytesMax, environments } from "../../core/names.ts";
import { machinesOnlySentence } from "../../core/words/machines-only.ts";
import { counted } from "../../core/words/text.ts";
import {
  atVersion,
  choice,
  completed,
  environmentList,
  file,
  force,
  input,
  machinesOnly,
  out,
  project,
  required,
  requireOneEnvironment,
  wide,
} from "../../people/desk/inputs.ts";
import { type Operations, operation } from "../../people/desk/operation.ts";
import { type Columns, done } from "../../people/desk/outcome.ts";
import { rightTo } from "../../people/desk/permit.ts";
import { findProject } from "../../people/desk/projects.ts";
import { listItems, unreadInput } from "../../people/editing/last-reads.ts";
import { remarkInputs } from "../../people/editing/remarks.ts";
import { deletionOf, severalNames } from "../delete.ts";
import { files } from "./entry.ts";
import { revealFile } from "./reveal.ts";
import { listFiles, putFile } from "./write.ts";

const path = completed(input("<path>", "the path it was stored under"), "items");

const put = operation({
  path: "file put",
  about: "Store a secret file, or replace the one at the same path.",
  examples: [
    "keyhole file put acme/web ./prod.p12 --path config/tls.p12 --env production",
    "age --decrypt id.age | keyhole file put web - --path .ssh/id_ed25519 --env production",
  ],
  right: rightTo("files.write"),
  inputs: {
    project,
    local: file("<local>", "the local file, or - for stdin", { bytesMax: contentBytesMax }),
    path: required(input("--path <path>", "where clients write it, relative to their root folder")),
    environments: environmentList("the environments that hold it"),
    name: input("--name <name>", "display name (default: the last part of the path)"),
    mode: choice("--mode <mode>", "its mode where clients write it (default: 0600)", ["0600", "0400"]),
    contentType: input("--type <type>", "media type (default: application/octet-stream)"),
    machinesOnly,
    ...remarkInputs,
  },
  run: async (admin, { project, local, ...asked }) => {
    await findProject(admin, project, "write", asked.environments);
    const stored = await putFile(admin, project, { ...asked, content: await local.read() });
    const did = `${stored.created ? "Stored" : "Replaced"} ${stored.path} (${counted(stored.size, "byte")})`;
    const { machinesOnly } = asked;
    const hidden = machinesOnly ? ` ${machinesOnlySentence}` : "";
    const document = { ...stored, ...(machinesOnly && { machinesOnly }) };
    return done(document, `${did} in ${project} for ${asked.environments.join(", ")}.${hidden}`);
  },
});

const get = operation({
  path: "file get",
  about: "Print the content of a secret file, byte for byte, or write it to a file. The audit records that you saw it.",
  examples: [
    "keyhole file get acme/web config/tls.p12 --env production --out tls.p12",
    "keyhole file get acme/web config/tls.p12 --env production --version 6 --out old.p12",
  ],
  right: rightTo("files.reveal"),
  inputs: {
    project,
    path,
    environment: choice("--env <env>", "from this environment (default: where it changed last)", environments),
    version: atVersion,
    out,
    force,
  },
  check: requireOneEnvironment("file get"),
  run: async (admin, { project, path, environment, version }) => {
    const { content, ...found } = await revealFile(admin, project, path, environment, version);
    const field = { content: Buffer.from(content).toString("base64") };
    const what = `The content of ${path} in ${found.environment}`;
    const document = { project, ...found, ...(version && { version }) };
    return { document, shows: { secret: content, what, field } };
  },
});

const listAll = operation({
  path: "file list",
  about: "List the secret files. Their content is never shown.",
  examples: ["keyhole file list acme/web", "keyhole file list acme/web --unread 90d"],
  right: "see",
  inputs: { project, unreadMs: unreadInput(files), wide },
  run: async (admin, { project, unreadMs }) => {
    const found = await listFiles(admin, project);
    const columns: Columns<(typeof found)[number]> = {
      PATH: (one) => one.path,
      MODE: (one) => one.mode,
      SIZE: (one) => one.size,
      ENVIRONMENTS: (one) => one.environments.join(","),
      UPDATED: (one) => ({ at: one.updatedAt }),
      NAME: (one) => one.name,
    };
    const placesOf = ({ path, environments }: (typeof found)[number]) => ({ name: path, environments });
    return listItems(admin, { project, descriptor: files, unreadMs }, found, columns, placesOf);
  },
});

export const remove = deletionOf(files, {
  called: "path",
  names: severalNames("file, by its path"),
  environments: environmentList("the environments to delete it from"),
  examples: [
    "keyhole file delete acme/web config/tls.p12 --env staging,production",
    "keyhole file delete web tls/a.pem tls/b.pem --env staging --dry-run",
  ],
});

export const fileOperations: Operations = {
  about: "Secret files, such as certificates and key stores.",
  rows: [put, get, listAll, remove],
};
