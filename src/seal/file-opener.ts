import { Fault } from "../fault.ts";
import { type FileText, openAsText, type SealedFile } from "./file-text.ts";

/** What the thread is told: files to open, which are its own from then on. */
export type OpenOrder = { readonly id: number; readonly files: readonly SealedFile[] };

/** What the thread answers: all of them, or why one of them does not open. */
export type OpenNews = { readonly id: number; readonly texts: readonly FileText[] | string };

/** Up to so many bytes are opened at once, one file in 0.2 ms, a thousand small ones in 2: the thread is not worth it. */
const atOnceBytesMax = 256 * 1024;

/**
 * Opens files, large ones in a thread of their own that begins with the first: decryption, SHA-256 and base64 of 8 MiB
 * take as long as a hundred requests for variables. What goes there and what comes back is handed over, not copied.
 */
export class FileOpener {
  #thread: Worker | undefined;
  readonly #calls = new Map<number, Call>();
  #lastId = 0;

  /**
   * Opens these files, all or none. Their sealed bytes may be taken for good.
   * @throws Fault `decryption_failed`; `unavailable` where the thread ended, which the next call begins anew
   */
  async open(files: readonly SealedFile[]): Promise<readonly FileText[]> {
    if (files.reduce((sum, { sealed }) => sum + sealed.length, 0) <= atOnceBytesMax) return files.map(openAsText);
    this.#thread ??= this.#start();
    const thread = this.#thread;
    const own = files.map(({ id, key, place, sealed }) => ({
      id,
      key: new Uint8Array(key),
      place: new Uint8Array(place),
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

  /** Ends the thread. Whoever still waits is refused. */
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
    // One that threw tells of an error; one that ended otherwise only closes.
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

type Call = { readonly resolve: (texts: readonly FileText[]) => void; readonly reject: (fault: Fault) => void };

/** Whether its memory is nobody else's. */
function isWhole({ buffer, byteLength }: Uint8Array): boolean {
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
}

// In the built program every module says it stands at the root of the program's own file system, where `src` begins.
const built = import.meta.url.startsWith("file:///$bunfs/");
const threadUrl = new URL(built ? "./seal/file-opener-worker.ts" : "./file-opener-worker.ts", import.meta.url).href;
