/** A file of the answer: its metadata in the order in which JSON shows it, and its content. */
export type RenderedFile = { readonly record: object; readonly content: Uint8Array };

/** Bytes that become one piece of base64: a multiple of 3, so that pieces join without padding between them. */
const pieceBytes = 192 * 1024;

/**
 * The files answer as a sequence of ASCII and UTF-8 text, `content` as base64 made piece by piece: what is in memory
 * beside the bytes themselves is one piece. Joined, it is the JSON that `JSON.stringify` would make.
 */
export function* filesJson(
  project: { readonly slug: string },
  environment: string,
  files: readonly RenderedFile[],
): Generator<string> {
  yield `{"project":${JSON.stringify(project)},"environment":${JSON.stringify(environment)},"files":[`;
  let separator = "";
  for (const { record, content } of files) {
    yield `${separator}${JSON.stringify(record).slice(0, -1)},"content":"`;
    const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
    for (let from = 0; from < bytes.length; from += pieceBytes) {
      yield bytes.toString("base64", from, Math.min(from + pieceBytes, bytes.length));
    }
    yield '"}';
    separator = ",";
  }
  yield "]}";
}
