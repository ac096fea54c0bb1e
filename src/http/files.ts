import { listFiles, readFiles } from "../read/files.ts";
import { filesJson } from "../render/file-json.ts";
import type { Admission } from "./admit.ts";
import { streamed } from "./body.ts";
import { type Exchange, headersOf, json, jsonType } from "./exchange.ts";
import { admitted, auditEntry, inScope, type Keyhole, released } from "./keyhole.ts";
import { isMetadataRead, parseFilesQuery } from "./query.ts";

const contents: Admission = { bucket: "content", surface: "rest_api", resource: "files" };
const records: Admission = { ...contents, bucket: "metadata" };

/** GET /files, with or without content. */
export async function getFiles(keyhole: Keyhole, exchange: Exchange, token: string | undefined) {
  const admission = isMetadataRead(exchange.rawQuery, "metadataOnly") ? records : contents;
  const caller = await admitted(keyhole, exchange, token, admission); // 401 429 403
  const ask = parseFilesQuery(exchange.rawQuery); // 400
  const { environment } = ask;
  const project = { slug: ask.project };
  inScope(caller, environment); // 403
  if (ask.metadataOnly) {
    const files = await listFiles(keyhole.source, caller, ask, exchange.stages); // 404 422 503
    return json(exchange, JSON.stringify({ project, environment, files }));
  }
  const read = await readFiles(keyhole.source, keyhole.budget, caller, ask, exchange.signal, exchange.stages); // 404 422 503
  try {
    const entries = read.paths.map((path) =>
      auditEntry(exchange, caller, read.project, environment, "file.read", [path]),
    );
    const pieces = read.held.map((files) => filesJson(project, environment, files));
    const body = await released(keyhole, exchange, entries, pieces); // 503, or on record
    return streamed(keyhole, exchange, headersOf(exchange, jsonType), body, read.share);
  } catch (error) {
    read.share.release();
    throw error;
  }
}
