import { Fault } from "../fault.ts";
import { threadUrl } from "../thread-url.ts";
import { isWhole, openAsBase64, type SealedContent } from "./file-content.ts";

/** What the thread answers to files, order by order: the base64 of all of them, or why one does not open. */
export type Opened = readonly Uint8Array[] | string;

/** Up to this many bytes are opened on the event loop, in 0.2 ms (2 ms for 1000 files): less than a thread costs. */
const atOnceBytesMax = 256 * 1024;

/**
 * Opens files, large ones in a thread that starts with the first of them: 8 MiB take as long as many requests for
 * variables. Memory is handed over both ways, not copied.
 */
export class FileOpener {
  #thread: Worker | undefined;
  /** In the order in which the thread answers them. */
  #calls: PromiseWithResolvers<readonly Uint8Array[]>[] = [];

  /**
   * Opens these files, all or none, as base64. Their sealed bytes must not be used again.
   * @throws Fault `decryption_failed`; `unavailable` if the thread ended (the next call starts another)
   */
  async open(files: readonly SealedContent[]): Promise<readonly Uint8Array[]> {
    if (files.reduce((sum, { sealed }) => sum + sealed.length, 0) <= atOnceBytesMax) return files.map(openAsBase64);
    this.#thread ??= this.#start();
    const own: SealedContent[] = files.map(({ id, key, associatedData, sealed }) => ({
      id,
      key: new Uint8Array(key),
      associatedData: new Uint8Array(associatedData),
      sealed: isWhole(sealed) ? sealed : new Uint8Array(sealed),
    }));
    const buffers = own.map(({ sealed }) => sealed.buffer as ArrayBuffer);
    try {
      this.#thread.postMessage(own, buffers);
    } catch {
      throw new Fault("unavailable", "files could not be handed to the thread that opens them");
    } finally {
      for (const { key } of own) key.fill(0);
    }
    const call = Promise.withResolvers<readonly Uint8Array[]>();
    this.#calls.push(call);
    return call.promise;
  }

  /** Ends the thread and refuses every call under way. */
  close(): void {
    this.#thread?.terminate();
    this.#end();
  }

  #start(): Worker {
    const thread = new Worker(threadUrl("seal/file-opener-worker.ts"));
    thread.onmessage = ({ data }: MessageEvent<Opened>) => {
      if (this.#thread !== thread) return;
      const call = this.#calls.shift();
      if (typeof data === "string") call?.reject(new Fault("decryption_failed", data));
      else call?.resolve(data);
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
    for (const { reject } of this.#calls) reject(new Fault("unavailable", "the thread that opens files ended"));
    this.#calls = [];
  }
}
