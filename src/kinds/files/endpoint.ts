import { Type } from "typebox";
import { etagOf } from "../../access/etag.ts";
import { contentBytesMax, itemsMax } from "../../core/names.ts";
import { type Admission, admit } from "../../gates/admit.ts";
import type { Endpoint } from "../../gates/endpoint.ts";
import { type Exchange, json } from "../../gates/exchange.ts";
import { auditEntry, inScope, type Keyhole, readingOf, released, unlessChanged } from "../../gates/keyhole.ts";
import { isMetadataRead, lookupOf, parseQuery, querySchema } from "../../gates/query.ts";
import { example, listOf, members, parameters, queriedProject, record } from "../../gates/schema.ts";
import { files } from "./entry.ts";
import { fingerprintFiles, listFiles, readFiles } from "./read.ts";
import { filesJson } from "./render.ts";

const contents: Admission = { bucket: "content", surface: "rest_api", resource: files.resource };
const records: Admission = { ...contents, bucket: "metadata" };

const filesQuery = querySchema({
  project: parameters.project,
  environment: parameters.environment,
  metadataOnly: parameters.metadataOnlyOrOne,
  path: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      maxItems: itemsMax,
      description: `The exact path of a file. May be repeated, up to ${itemsMax} times, as long as the address and the headers together stay below 16 KiB: about 250 paths of 50 characters. Without it, all files are read.`,
    }),
  ),
});

/** GET /files, with or without content. */
async function getFiles(keyhole: Keyhole, exchange: Exchange, token: string | undefined) {
  const { rawQuery, ifNoneMatch } = exchange;
  const onlyLists = isMetadataRead(rawQuery, "metadataOnly") || ifNoneMatch !== undefined;
  const lookup = lookupOf(files, undefined, rawQuery, false);
  const caller = await admit(keyhole.gate, exchange, token, onlyLists ? records : contents, lookup); // 401 429 403
  const query = parseFiles(rawQuery); // 400
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

/** The parsed query. @throws Fault `invalid_request` */
export function parseFiles(raw: string) {
  const { project, environment, metadataOnly, path } = parseQuery(filesQuery, raw);
  const paths = path && [...new Set(path)].sort();
  return { project, environment, metadataOnly: metadataOnly === "true" || metadataOnly === "1", paths };
}

export const SecretFile = record("A secret file.", {
  name: members.name,
  path: Type.String({ description: "Where a client puts it: relative, with `/` between its parts." }),
  mode: Type.Enum(["0600", "0400"], { type: "string", description: "The permissions that it gets." }),
  size: Type.Integer({ minimum: 0, maximum: contentBytesMax, description: "Bytes of the content." }),
  sha256: Type.String({ pattern: "^[0-9a-f]{64}$", description: "SHA-256 of the content, in hex." }),
  contentType: Type.String({ description: "A media type." }),
  environments: members.environments,
  updatedAt: members.updatedAt,
  content: Type.Optional(
    Type.String({ format: "byte", description: "In base64 with padding. Absent from a metadata read." }),
  ),
});
export const Files = record("Secret files in byte order of path.", {
  project: queriedProject,
  environment: members.environment,
  files: listOf(SecretFile),
});

export const endpoints: readonly Endpoint[] = [
  {
    path: "/files",
    get: getFiles,
    // A little longer than the bound on reading files, in `read.ts`.
    timeoutMs: 18_000,
    admission: contents,
    query: filesQuery,
    id: "listFiles",
    summary: "Secret files with their content, or only their metadata",
    description: "The rule of 1000 files counts all files of the project, whatever is asked for.",
    answers: { SecretFile, Files },
    refusals: ["too_many_items", "content_too_large"],
    example: {
      project: { slug: "web" },
      environment: "production",
      files: [
        {
          name: "greeting",
          path: "etc/greeting.txt",
          mode: "0600",
          size: 6,
          sha256: "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03",
          contentType: "text/plain",
          environments: ["production"],
          updatedAt: example.updatedAt,
          content: "aGVsbG8K",
        },
      ],
    },
  },
];
