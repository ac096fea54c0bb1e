import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { onFile } from "../core/whole-file.ts";

/** A file that other programs append to as well, such as the one that $GITHUB_ENV names. */
export class SharedFile {
  readonly #path: string;
  readonly #fd: number;

  /** Opens the file, or creates it with mode 0600. @throws Problem */
  constructor(path: string) {
    const { O_RDWR, O_APPEND, O_CREAT, O_NONBLOCK = 0 } = constants;
    this.#path = path;
    this.#fd = onFile(path, () => openSync(path, O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK, 0o600));
  }

  /** Appends all of the text or nothing, starting on a new line. @throws Problem */
  append(text: string): void {
    onFile(this.#path, () => {
      const { size } = fstatSync(this.#fd);
      const last = Buffer.alloc(1);
      const midLine = size > 0 && readSync(this.#fd, last, 0, 1, size - 1) === 1 && last[0] !== 0x0a;
      const bytes = Buffer.from(midLine ? `\n${text}` : text);
      try {
        for (let at = 0; at < bytes.length; ) at += writeSync(this.#fd, bytes, at, bytes.length - at);
      } catch (error) {
        ftruncateSync(this.#fd, size);
        throw error;
      }
    });
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }
}
