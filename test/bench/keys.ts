import { mintKey } from "../../src/access/api-key.ts";

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/**
 * Distinct well-formed keys that nobody has, one for each call. They are as minted but for the last eight of their
 * random digits, which count: minting each would take far longer than most of what they are used to measure.
 */
export function strangerKeys(): () => string {
  const text = Buffer.from(mintKey());
  const checked = text.subarray(0, 46);
  const write = (number: number, from: number, to: number) => {
    for (let at = to - 1, rest = number; at >= from; at--, rest = Math.floor(rest / 62)) {
      text[at] = digits.charCodeAt(rest % 62);
    }
  };
  let next = 0;
  return () => {
    write(next++, 38, 46);
    write(Bun.hash.crc32(checked), 46, 52);
    return text.toString("latin1");
  };
}
