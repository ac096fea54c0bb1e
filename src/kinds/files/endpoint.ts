import { etagOf } from "../../access/etag.ts";
import { type Admission, admit } from "../../gates/admit.ts";
import { type Exchange, json } from "../../gates/exchange.ts";
import { auditEntry, inScope, type Keyhole, released, unlessChanged } from "../../gates/keyhole.ts";
import { isMetadataRead, parseFilesQuery, soughtBy } from "../../gates/query.ts";
import { fingerprintFiles, listFiles, readFiles } from "./read.ts";
import { filesJson } from "./render.ts";

export const contents: Admission = { bucket: "content", surface: "rest_api", resource: "files" };
const records: Admission = { ...contents, bucket: "metadata" };

/** GET /files, with or without content. */
export async function getFiles(keyhole: Keyhole, exchange: Exchange, token: string | undefined) {
  const { rawQuery, ifNoneMatch, signal, stages } = exchange;
  const onlyLists = isMetadataRead(rawQuery, "metadataOnly") || ifNoneMatch !== undefined;
  const sought = soughtBy("files", undefined, rawQuery, false);
  const caller = await admit(keyhole.gate, exchange, token, onlyLists ? records : contents, sought); // 401 429 403
  const ask = parseFilesQuery(rawQuery); // 400
  const { project: slug, environment } = ask;
  inScope(caller, environment); // 403
  const etag = (fingerprint: string) => etagOf(keyhole.etagKey, caller, ["files", ask], fingerprint);
  if (ask.metadataOnly) {
    const { files, fingerprint } = await listFiles(keyhole.source, caller, ask, signal, stages); // 404 422 503
    const body = `{"project":${JSON.stringify({ slug })},"environment":"${environment}","files":${files}}`;
    return json(exchange, body, etag(fingerprint));
  }
  const find = () => fingerprintFiles(keyhole.source, caller, ask, signal);
  const unchanged = await unlessChanged(keyhole, exchange, caller, "content", find, etag); // 404 422 503 429
  if (unchanged) return unchanged;
  const read = await readFiles(keyhole.source, caller, ask, signal, stages); // 404 422 503
  const entry = auditEntry(exchange, caller, read.project, environment, "file.read", []);
  const entries = read.names.map((names) => ({ ...entry, names }));
  return released(keyhole, exchange, entries, read, filesJson(slug, environment), etag(read.fingerprint)); // 503, or on record
}
