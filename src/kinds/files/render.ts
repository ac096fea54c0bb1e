import { type Body, Render } from "../../core/held.ts";
import { jsonType } from "../../formats/json.ts";

/** An opened file: its metadata as JSON, and the pieces of its content in base64, as ASCII. */
export type OpenedFile = { readonly json: string; readonly base64: Iterable<string> };

/** The answer of the files endpoint. Each file needs an audit entry. */
export function filesJson(slug: string, environment: string): Render<readonly OpenedFile[]> {
  return new Render(
    (files): Body => ({ content: pieces(slug, environment, files), contentType: jsonType }),
    (files) => files.length,
  );
}

function* pieces(slug: string, environment: string, files: readonly OpenedFile[]): Generator<string> {
  yield `{"project":${JSON.stringify({ slug })},"environment":"${environment}","files":[`;
  let separator = "";
  for (const { json, base64 } of files) {
    yield `${separator}${json.slice(0, -1)},"content":"`;
    yield* base64;
    yield '"}';
    separator = ",";
  }
  yield "]}";
}
