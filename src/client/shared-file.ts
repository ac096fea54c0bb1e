import { closeSync, constants, fstatSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { onFile } from "../core/whole-file.ts";

/** Opens a file that other programs append to as well, such as the one that $GITHUB_ENV names, or creates it. */
export function openShared(path: string) {
  const { O_RDWR, O_APPEND, O_CREAT, O_NONBLOCK = 0 } = constants;
  const fd = onFile(path, () => openSync(path, O_RDWR | O_APPEND | O_CREAT | O_NONBLOCK, 0o600));
  /** Appends all of the text or nothing, starting on a new line. */
  const append = (text: string) => {
    const { size } = fstatSync(fd);
    const last = Buffer.alloc(1);
    const midLine = size > 0 && readSync(fd, last, 0, 1, size - 1) === 1 && last[0] !== 0x0a;
    const bytes = Buffer.from(midLine ? `\n${text}` : text);
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at);
    } catch (error) {
      ftruncateSync(fd, size);
      throw error;
    }
  };
  return { append: (text: string) => onFile(path, () => append(text)), [Symbol.dispose]: () => closeSync(fd) };
}
