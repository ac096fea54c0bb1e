/** A file of the answer: its metadata in the order in which JSON shows it, and its content in base64, as ASCII. */
export type RenderedFile = { readonly record: object; readonly base64: Uint8Array };

/** Up to so many bytes are made text, which joins what stands around it; more leave as they are. */
const joinedBytesMax = 128 * 1024;

/** The files answer as a sequence of text and of bytes. Joined, it is the JSON that `JSON.stringify` would make. */
export function* filesJson(
  project: { readonly slug: string },
  environment: string,
  files: readonly RenderedFile[],
): Generator<string | Uint8Array> {
  yield `{"project":${JSON.stringify(project)},"environment":${JSON.stringify(environment)},"files":[`;
  let separator = "";
  for (const { record, base64 } of files) {
    yield `${separator}${JSON.stringify(record).slice(0, -1)},"content":"`;
    yield base64.length <= joinedBytesMax
      ? Buffer.from(base64.buffer, base64.byteOffset, base64.byteLength).toString("latin1")
      : base64;
    yield '"}';
    separator = ",";
  }
  yield "]}";
}
