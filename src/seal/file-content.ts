import { Fault } from "../fault.ts";
import { overheadBytes, startOpening } from "./envelope.ts";

/** A sealed file content with all that opens it. Its id names it to the operator if it does not open. */
export type SealedContent = {
  readonly id: string;
  readonly key: Uint8Array;
  readonly associatedData: Uint8Array;
  readonly sealed: Uint8Array;
};

/** A multiple of 3, so that the base64 of pieces can be joined. */
const pieceBytes = 192 * 1024;

/**
 * Opens a content into base64 with padding, as ASCII. The content itself is never in memory as a whole. Size and
 * SHA-256 are part of the associated data, so neither is computed again.
 * @throws Fault `decryption_failed`
 */
export function openAsBase64({ id, key, associatedData, sealed }: SealedContent): Uint8Array {
  const size = Math.max(0, sealed.length - overheadBytes);
  const base64 = Buffer.allocUnsafeSlow(Math.ceil(size / 3) * 4);
  try {
    const { ciphertext, opening } = startOpening(key, associatedData, sealed);
    let length = 0;
    for (let at = 0; at < size; at += pieceBytes) {
      const piece = opening.update(ciphertext.subarray(at, at + pieceBytes));
      length += base64.write(piece.toString("base64"), length, "latin1");
      piece.fill(0);
      discard(piece);
    }
    opening.final();
    return base64;
  } catch {
    base64.fill(0);
    throw new Fault("decryption_failed", `the content ${id} does not open`);
  }
}

/** Frees a buffer that nothing else uses. The garbage collector alone would let dozens of pieces pile up. */
export function discard(bytes: Uint8Array): void {
  if (isWhole(bytes)) (bytes.buffer as ArrayBuffer).transfer(0);
}

/** Whether it is the whole of its memory. */
export function isWhole({ buffer, byteLength }: Uint8Array): boolean {
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength;
}
