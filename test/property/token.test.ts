import { expect, test } from "bun:test";
import fc from "fast-check";
import { isTokenShaped, parseKeySet, readToken, type Trust, verifyToken } from "../../src/serve/access/token.ts";
import { audience, compact, encoded, newSigningKey, publicJwk } from "../support/issuer.ts";

const issuer = "https://issuer.example";
const key = newSigningKey("ES256");
const pinned = parseKeySet({ keys: [publicJwk("one", key)] });
const nowS = 1_800_000_000;

/** Names and texts with the characters that a count of members could stumble over. */
const word = fc.oneof(
  fc.constantFrom(":", '"', "\\", '\\":', "{", '"a":1', "\\\\", "\u2028", "__proto__", "constructor", ""),
  fc.string({ unit: "grapheme", maxLength: 6 }),
);
const { document } = fc.letrec<{ document: Record<string, unknown>; value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    word,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(true, null, {}, []),
    fc.array(tie("value"), { maxLength: 3 }),
    tie("document"),
  ),
  document: fc.dictionary(word, tie("value"), { maxKeys: 4, noNullPrototype: true }),
}));

test("a payload is read however its JSON is written, unless a member stands twice in any of its objects", () => {
  const space = fc.constantFrom(0, 1, "\t");
  fc.assert(
    fc.property(document, space, fc.nat(), word, (own, space, at, name) => {
      const text = JSON.stringify({ iss: issuer, own }, null, space);
      expect(readToken(unsigned(text)).payload).toEqual(JSON.parse(text));
      // A member of one name twice, at the start of one of the objects.
      const starts = [...text.matchAll(/"(?:[^"\\]|\\.)*"|(\{)/g)]
        .filter(([, brace]) => brace)
        .map(({ index }) => index);
      const start = (starts[at % starts.length] as number) + 1;
      const twice = `${JSON.stringify(name)}:0,`.repeat(2);
      const rest = text.slice(start).trimStart();
      const doubled = text.slice(0, start) + (rest.startsWith("}") ? twice.slice(0, -1) : twice) + rest;
      JSON.parse(doubled);
      expect(() => readToken(unsigned(doubled))).toThrow("duplicate members");
    }),
    { numRuns: 2000 },
  );
});

test("a token is accepted if audience, times and all claims are right, and otherwise never", async () => {
  const claim = fc.constantFrom("a", "b", "A", "", 1, true, null, ["a"], undefined);
  const seconds = fc.constantFrom(-1000, -631, -630, -600, -31, -30, -29, 0, 29, 30, 31, 600, undefined);
  const aud = fc.constantFrom<unknown>(audience, [audience], [audience, "x"], "x", [], undefined, [[audience]]);
  const times = fc.record({ iat: seconds, nbf: seconds, exp: seconds });
  const terms = fc.dictionary(fc.constantFrom("x", "y"), fc.constantFrom("a", "b", "1", "true", "null"));
  await fc.assert(
    fc.asyncProperty(terms, fc.record({ x: claim, y: claim }), aud, times, async (claims, said, aud, times) => {
      const at = Object.fromEntries(Object.entries(times).map(([name, s]) => [name, s === undefined ? s : nowS + s]));
      const token = readToken(compact({ alg: "ES256", kid: "one" }, { iss: issuer, aud, ...said, ...at }, key));
      const terms = { issuer, audience, claims, jwks: "" };
      const trust: Trust = { id: "trust", digest: new Uint8Array(), terms, pinned };
      const { iat, nbf = 0, exp } = times;
      const isTimely = iat !== undefined && iat >= -630 && iat <= 30 && nbf <= 30 && exp !== undefined && exp > -30;
      const isOurs = aud === audience || JSON.stringify(aud) === JSON.stringify([audience]);
      const isMet = Object.entries(claims).every(([name, value]) => said[name as "x" | "y"] === value);
      const accepted = await verifyToken(token, [trust], undefined, nowS * 1000).then(
        () => true,
        () => false,
      );
      expect(accepted).toBe(isTimely && isOurs && isMet);
    }),
    { numRuns: 1000 },
  );
});

test("no text makes the reading of a token throw anything but the refusal", () => {
  const part = fc.oneof(
    fc.string({ unit: "binary" }).map(encoded),
    fc.json().map(encoded),
    fc.base64String().map((text) => text.replaceAll(/[+/=]/g, "_")),
  );
  fc.assert(
    fc.property(part, part, part, (...parts) => {
      const text = parts.join(".");
      if (!isTokenShaped(text)) return;
      expect(() => readToken(text)).toThrow(expect.objectContaining({ code: "unauthorized" }));
    }),
    { numRuns: 2000 },
  );
});

function unsigned(payload: string): string {
  return `${encoded({ alg: "ES256" })}.${encoded(payload)}.AA`;
}
