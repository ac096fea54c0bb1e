import { listFiles, readFiles } from "../read/files.ts";
import { filesJson } from "../render/files.ts";
import { type Admission, admit } from "./admit.ts";
import { type Exchange, json } from "./exchange.ts";
import { auditEntry, inScope, type Keyhole, released } from "./keyhole.ts";
import { isMetadataRead, parseFilesQuery, soughtBy } from "./query.ts";

const contents: Admission = { bucket: "content", surface: "rest_api", resource: "files" };
const records: Admission = { ...contents, bucket: "metadata" };

/** GET /files, with or without content. */
export async function getFiles(keyhole: Keyhole, exchange: Exchange, token: string | undefined) {
  const { rawQuery, signal, stages } = exchange;
  const admission = isMetadataRead(rawQuery, "metadataOnly") ? records : contents;
  const sought = soughtBy("files", undefined, rawQuery, false);
  const caller = await admit(keyhole.gate, exchange, token, admission, sought); // 401 429 403
  const ask = parseFilesQuery(rawQuery); // 400
  const { project: slug, environment } = ask;
  inScope(caller, environment); // 403
  if (ask.metadataOnly) {
    const files = await listFiles(keyhole.source, caller, ask, signal, stages); // 404 422 503
    return json(exchange, `{"project":${JSON.stringify({ slug })},"environment":"${environment}","files":${files}}`);
  }
  const read = await readFiles(keyhole.source, caller, ask, signal, stages); // 404 422 503
  const entry = auditEntry(exchange, caller, read.project, environment, "file.read", []);
  const entries = read.names.map((names) => ({ ...entry, names }));
  return released(keyhole, exchange, entries, read, filesJson(slug, environment)); // 503, or on record
}
