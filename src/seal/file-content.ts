import { Fault } from "../core/fault.ts";
import { open, startOpening } from "./envelope.ts";

/** What a sealed file content is, and what opens it. */
export type SealedContent = {
  /** Names it to the operator if it does not open. */
  readonly id: string;
  readonly key: Uint8Array;
  readonly associatedData: Uint8Array;
  /** Must not change from now on. */
  readonly sealed: Uint8Array;
};

/** A multiple of 3, so that the base64 of pieces can be joined. It takes the event loop 0.1 ms to open one. */
const pieceBytes = 192 * 1024;

/**
 * A sealed file content. It gives out nothing unverified. A large one is never opened as a whole: it is verified piece
 * by piece, and opened again while it is read. Associated data covers size and SHA-256, so neither is computed.
 */
export class FileContent {
  readonly #sealed: SealedContent;
  readonly #isKept: boolean;
  #verified = false;

  /** @param isKept - whether it may be read more than once; else its memory is given back after the first time */
  constructor(sealed: SealedContent, isKept: boolean) {
    this.#sealed = sealed;
    this.#isKept = isKept;
  }

  /** All of a small content in base64, as ASCII. @throws Fault `decryption_failed` */
  open(): string {
    const { key, associatedData, sealed } = this.#sealed;
    try {
      const opened = open(key, associatedData, sealed);
      const base64 = opened.toString("base64");
      opened.fill(0);
      return base64;
    } catch {
      throw this.#broken();
    }
  }

  /** Verifies a large content, once, in turns of the event loop. @throws Fault `decryption_failed` */
  async verify(): Promise<void> {
    if (this.#verified) return;
    try {
      for (const _ of this.#pieces()) await new Promise(setImmediate);
    } catch {
      throw this.#broken();
    }
    this.#verified = true;
  }

  /** The base64 of a verified content in pieces, as ASCII. */
  *base64(): Generator<string> {
    if (!this.#verified) throw new Error("a content was to leave in pieces before it was verified");
    try {
      for (const piece of this.#pieces()) yield piece.toString("base64");
    } finally {
      if (!this.#isKept) discard(this.#sealed.sealed);
    }
  }

  /** Unverified until the last one was taken. */
  *#pieces(): Generator<Buffer> {
    const { key, associatedData, sealed } = this.#sealed;
    const { ciphertext, opening } = startOpening(key, associatedData, sealed);
    for (let at = 0; at < ciphertext.length; at += pieceBytes) {
      const piece = opening.update(ciphertext.subarray(at, at + pieceBytes));
      try {
        yield piece;
      } finally {
        piece.fill(0);
        discard(piece);
      }
    }
    opening.final();
  }

  #broken(): Fault {
    return new Fault("decryption_failed", `the content ${this.#sealed.id} does not open`);
  }
}

/** Frees a buffer that nothing else uses. The garbage collector alone would let dozens of pieces pile up. */
export function discard({ buffer, byteLength }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength) buffer.transfer(0);
}
