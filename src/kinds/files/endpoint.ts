import { etagOf } from "../../access/etag.ts";
import { type Admission, admit } from "../../gates/admit.ts";
import { type Exchange, json } from "../../gates/exchange.ts";
import { auditEntry, inScope, type Keyhole, readingOf, released, unlessChanged } from "../../gates/keyhole.ts";
import { isMetadataRead, lookupOf, parseFilesQuery } from "../../gates/query.ts";
import { files } from "./entry.ts";
import { fingerprintFiles, listFiles, readFiles } from "./read.ts";
import { filesJson } from "./render.ts";

export const contents: Admission = { bucket: "content", surface: "rest_api", resource: files.resource };
const records: Admission = { ...contents, bucket: "metadata" };

/** GET /files, with or without content. */
export async function getFiles(keyhole: Keyhole, exchange: Exchange, token: string | undefined) {
  const { rawQuery, ifNoneMatch } = exchange;
  const onlyLists = isMetadataRead(rawQuery, "metadataOnly") || ifNoneMatch !== undefined;
  const lookup = lookupOf(files.kind, undefined, rawQuery, false);
  const caller = await admit(keyhole.gate, exchange, token, onlyLists ? records : contents, lookup); // 401 429 403
  const query = parseFilesQuery(rawQuery); // 400
  const { project: slug, environment } = query;
  inScope(caller, environment); // 403
  const reading = readingOf(keyhole, exchange, caller);
  const etag = (fingerprint: string) => etagOf(keyhole.etagKey, caller, ["files", query], fingerprint);
  if (query.metadataOnly) {
    const { files, fingerprint } = await listFiles(reading, query); // 404 422 503
    const body = `{"project":${JSON.stringify({ slug })},"environment":"${environment}","files":${files}}`;
    return json(exchange, body, etag(fingerprint));
  }
  const find = () => fingerprintFiles(reading, query);
  const unchanged = await unlessChanged(keyhole, exchange, caller, "content", find, etag); // 404 422 503 429
  if (unchanged) return unchanged;
  const read = await readFiles(reading, query); // 404 422 503
  const entry = auditEntry(exchange, caller, read.project, environment, "file.read", []);
  const entries = read.names.map((names) => ({ ...entry, names }));
  return released(keyhole, exchange, entries, read, filesJson(slug, environment), etag(read.fingerprint)); // 503, or on record
}
