import { mintKey } from "../src/serve/access/api-key.ts";

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/**
 * Returns a function that makes distinct well-formed keys which no database knows. They share all random digits but the
 * last eight, which count: `mintKey` would take far longer than most of the code that they measure.
 */
export function unknownKeySource(): () => string {
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
