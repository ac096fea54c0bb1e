import { Fault } from "../fault.ts";
import { openInPieces, overheadBytes } from "./envelope.ts";

/** A sealed file content with all that opens it. Its id names it to the operator if it does not open. */
export type SealedContent = {
  readonly id: string;
  readonly key: Uint8Array;
  readonly associatedData: Uint8Array;
  readonly sealed: Uint8Array;
};

/**
 * Opens a content into base64 with padding, as ASCII. The content itself is never in memory as a whole. Size and SHA-256
 * are part of the associated data, so neither is computed again.
 * @throws Fault `decryption_failed`
 */
export function openAsBase64({ id, key, associatedData, sealed }: SealedContent): Uint8Array {
  const size = Math.max(0, sealed.length - overheadBytes);
  const base64 = Buffer.allocUnsafeSlow(Math.ceil(size / 3) * 4);
  let at = 0;
  try {
    openInPieces(key, associatedData, sealed, (piece) => {
      at += base64.write(piece.toString("base64"), at, "latin1");
    });
    return base64;
  } catch (error) {
    base64.fill(0);
    if (!(error instanceof Fault)) throw error;
    throw new Fault("decryption_failed", `the content ${id} does not open`);
  }
}
