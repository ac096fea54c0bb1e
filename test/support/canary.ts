/*
 * What tests look for where it must not be. A short text occurs in random or encoded bytes by chance: three letters are
 * somewhere in the base64 of a kilobyte once in 250 times.
 */

/**
 * A value that no other text holds by chance. Eight letters of base64 are one in 2.8e14, hex and UUIDs have none of
 * these, and it is a name of a variable and of a file as well.
 */
export const canary = "KHCANARY";

/** The bytes of a secret in each encoding, for a search in what may hold it encoded. */
export function spellingsOf(secret: Buffer): Map<string, Buffer> {
  const text = secret.toString("utf8");
  const isText = Buffer.from(text).equals(secret);
  const spellings = new Map([
    ["as it is", secret],
    ["in hex", Buffer.from(secret.toString("hex"))],
    ["in upper-case hex", Buffer.from(secret.toString("hex").toUpperCase())],
  ]);
  for (const alphabet of ["base64", "base64url"] as const) {
    for (const before of [0, 1, 2]) {
      // The characters that depend on nothing but the secret, wherever in a larger text it begins.
      const encoded = Buffer.concat([Buffer.alloc(before), secret])
        .toString(alphabet)
        .replace(/=+$/, "");
      const whole = encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + secret.length) * 8) / 6));
      spellings.set(`in ${alphabet} at ${before}`, Buffer.from(whole));
    }
  }
  if (!isText) return spellings;
  return new Map([
    ...spellings,
    ["in UTF-16LE", Buffer.from(text, "utf16le")],
    ["in UTF-16BE", Buffer.from(text, "utf16le").swap16()],
    ["URL-encoded", Buffer.from(encodeURIComponent(text))],
    ["URL-encoded as a form", Buffer.from(encodeURIComponent(text).replaceAll("%20", "+"))],
    ["in JSON", Buffer.from(JSON.stringify(text).slice(1, -1))],
  ]);
}
