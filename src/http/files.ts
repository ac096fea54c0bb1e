import { listFiles, readFiles } from "../read/files.ts";
import { filesJson } from "../render/file-json.ts";
import type { Admission } from "./admit.ts";
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
    return new Response(streamed(body, read.done), { headers: headersOf(exchange, jsonType) });
  } catch (error) {
    read.done();
    throw error;
  }
}

/** A body that is made as fast as it is taken; `done` is called once, however it ends. */
function streamed(pieces: Generator<string>, done: () => void): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    pull(controller) {
      const { value, done: finished } = pieces.next();
      if (!finished) return controller.enqueue(encoder.encode(value));
      done();
      controller.close();
    },
    cancel: done,
  });
}
