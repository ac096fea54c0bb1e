import { Fault } from "../fault.ts";
import { openAsBase64, type SealedContent } from "./file-content.ts";

/** An order to the thread: files to open. Their memory is the thread's from then on. */
export type OpenOrder = { readonly id: number; readonly files: readonly SealedContent[] };

/** The thread's answer: the base64 of all of them, or why one does not open. */
export type OpenNews = { readonly id: number; readonly texts: readonly Uint8Array[] | string };

/** Up to this many bytes are opened on the event loop, in 0.2 ms (2 ms for a thousand files): less than a thread costs. */
const atOnceBytesMax = 256 * 1024;

/**
 * Opens files. Large ones are opened in a thread that starts with the first of them: decryption and base64 of 8 MiB take
 * as long as many requests for variables. Memory is handed over both ways, not copied.
 */
export class FileOpener {
  #thread: Worker | undefined;
  readonly #calls = new Map<number, Call>();
  #lastId = 0;

  /**
   * Opens these files, all or none, as base64. Their sealed bytes must not be used again.
   * @throws Fault `decryption_failed`; `unavailable` if the thread ended (the next call starts another)
   */
  async open(files: readonly SealedContent[]): Promise<readonly Uint8Array[]> {
    if (files.reduce((sum, { sealed }) => sum + sealed.length, 0) <= atOnceBytesMax) return files.map(openAsBase64);
    this.#thread ??= this.#start();
    const thread = this.#thread;
    const own = files.map(({ id, key, associatedData, sealed }) => ({
      id,
      key: new Uint8Array(key),
      associatedData: new Uint8Array(associatedData),
      sealed: isWhole(sealed) ? sealed : new Uint8Array(sealed),
    }));
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject });
      try {
        thread.postMessage(
          { id, files: own } satisfies OpenOrder,
          own.map(({ sealed }) => sealed.buffer as ArrayBuffer),
        );
      } catch {
        this.#calls.delete(id);
        reject(new Fault("unavailable", "files could not be handed to the thread that opens them"));
      }
      for (const { key } of own) key.fill(0);
    });
  }

  /** Ends the thread and refuses every call under way. */
  close(): void {
    this.#thread?.terminate();
    this.#end();
  }

  #start(): Worker {
    const thread = new Worker(threadUrl);
    thread.onmessage = ({ data: { id, texts } }: MessageEvent<OpenNews>) => {
      const call = this.#calls.get(id);
      this.#calls.delete(id);
      if (typeof texts === "string") call?.reject(new Fault("decryption_failed", texts));
      else call?.resolve(texts);
    };
    // A thread that threw reports an error; one that ended otherwise only closes.
    for (const event of ["error", "close"]) {
      thread.addEventListener(event, () => {
        if (this.#thread === thread) this.#end();
      });
    }
    thread.unref();
    return thread;
  }

  #end(): void {
    this.#thread = undefined;
    for (const { reject } of this.#calls.values())
      reject(new Fault("unavailable", "the thread that opens files ended"));
    this.#calls.clear();
  }
}

type Call = { readonly resolve: (texts: readonly Uint8Array[]) => void; readonly reject: (fault: Fault) => void };

/** Whether it is the whole of its memory. */
function isWhole({ buffer, byteLength }: Uint8Array): boolean {
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
}

// In the built program every module says it stands at the root of the program's own file system, where `src` begins.
const built = import.meta.url.startsWith("file:///$bunfs/");
const threadUrl = new URL(built ? "./seal/file-opener-worker.ts" : "./file-opener-worker.ts", import.meta.url).href;
