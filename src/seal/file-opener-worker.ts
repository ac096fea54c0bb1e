import { Fault } from "../fault.ts";
import type { OpenNews, OpenOrder } from "./file-opener.ts";
import { type FileText, openAsText } from "./file-text.ts";
import { tidyAfter } from "./tidy.ts";

/*
 * The thread that opens large files; `file-opener.ts` is its other end.
 */

declare const self: Worker;

self.onmessage = ({ data: { id, files } }: MessageEvent<OpenOrder>) => {
  const bytes = files.reduce((sum, { sealed }) => sum + sealed.length, 0);
  const texts = opened(files);
  const handedOver = typeof texts === "string" ? [] : texts.map(({ base64 }) => base64.buffer as ArrayBuffer);
  self.postMessage({ id, texts } satisfies OpenNews, handedOver);
  tidyAfter(bytes);
};

function opened(files: OpenOrder["files"]): OpenNews["texts"] {
  const texts: FileText[] = [];
  try {
    for (const file of files) texts.push(openAsText(file));
    return texts;
  } catch (error) {
    for (const { base64 } of texts) base64.fill(0);
    // Anything else is none of the file's doing: it ends the thread, and who waits is told that.
    if (!(error instanceof Fault)) throw error;
    return error.message;
  } finally {
    for (const { key, sealed } of files) {
      key.fill(0);
      // At once: the collector of a thread that waits may never run.
      (sealed.buffer as ArrayBuffer).transfer(0);
    }
  }
}
