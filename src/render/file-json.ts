/** A file of the answer: its metadata in the order in which JSON shows it, and its content. */
export type RenderedFile = { readonly record: object; readonly content: Uint8Array };

/** Bytes that become one piece of base64: a multiple of 3, so that pieces join without padding between them. */
const pieceBytes = 192 * 1024;

/**
 * The files answer as a sequence of ASCII and UTF-8 text, `content` as base64 made piece by piece: what is in memory
 * beside the bytes themselves is one piece. Joined, it is the JSON that `JSON.stringify` would make. A large content is
 * taken for good: its memory is given back once its last piece was made, or no more will be.
 */
export function* filesJson(
  project: { readonly slug: string },
  environment: string,
  files: readonly RenderedFile[],
): Generator<string> {
  yield `{"project":${JSON.stringify(project)},"environment":${JSON.stringify(environment)},"files":[`;
  let separator = "";
  try {
    for (const { record, content } of files) {
      yield `${separator}${JSON.stringify(record).slice(0, -1)},"content":"`;
      const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength);
      for (let from = 0; from < bytes.length; from += pieceBytes) {
        yield bytes.toString("base64", from, Math.min(from + pieceBytes, bytes.length));
      }
      giveBack(content);
      yield '"}';
      separator = ",";
    }
    yield "]}";
  } finally {
    for (const { content } of files) giveBack(content);
  }
}

/** Without waiting for the collector, which lets hundreds of megabytes gather. What is small may share its memory. */
function giveBack({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength > pieceBytes) buffer.transfer(0);
}
