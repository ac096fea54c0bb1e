import { jsonType } from "../../core/formats/json.ts";
import { type Body, Render } from "../../core/held.ts";

/** An opened file: its metadata as JSON, and the pieces of its content in base64, as ASCII. */
export type OpenedFile = { readonly json: string; readonly base64: Iterable<string> };

/** The JSON of the answer before its files. */
export function beforeFiles({ project: slug, environment }: FilesPlace): string {
  return `${JSON.stringify({ project: { slug }, environment }).slice(0, -1)},"files":[`;
}

type FilesPlace = { readonly project: string; readonly environment: string };

/** The answer of the files endpoint. Each file needs an audit entry. */
export function filesJson(project: string, environment: string): Render<readonly OpenedFile[]> {
  return new Render(
    (files): Body => ({ content: pieces({ project, environment }, files), contentType: jsonType }),
    (files) => files.length,
  );
}

function* pieces(place: FilesPlace, files: readonly OpenedFile[]): Generator<string> {
  yield beforeFiles(place);
  let separator = "";
  for (const { json, base64 } of files) {
    yield `${separator}${json.slice(0, -1)},"content":"`;
    yield* base64;
    yield '"}';
    separator = ",";
  }
  yield "]}";
}
