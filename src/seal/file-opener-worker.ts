import { Fault } from "../fault.ts";
import { tidyAfter } from "../tidy.ts";
import { openAsBase64, type SealedContent } from "./file-content.ts";
import type { Opened } from "./file-opener.ts";

// The thread that opens large files; `file-opener.ts` is the other end.
declare const self: Worker;

self.onmessage = ({ data: files }: MessageEvent<readonly SealedContent[]>) => {
  const bytes = files.reduce((sum, { sealed }) => sum + sealed.length, 0);
  const opened = openAll(files);
  const handedOver = typeof opened === "string" ? [] : opened.map(({ buffer }) => buffer as ArrayBuffer);
  self.postMessage(opened, handedOver);
  tidyAfter(bytes);
};

function openAll(files: readonly SealedContent[]): Opened {
  const texts: Uint8Array[] = [];
  try {
    for (const file of files) texts.push(openAsBase64(file));
    return texts;
  } catch (error) {
    for (const text of texts) text.fill(0);
    // Any other error is not the file's fault: it ends the thread, and its callers are refused.
    if (!(error instanceof Fault)) throw error;
    return error.message;
  } finally {
    for (const { key, sealed } of files) {
      key.fill(0);
      // At once: the garbage collector of an idle thread may never run.
      (sealed.buffer as ArrayBuffer).transfer(0);
    }
  }
}
