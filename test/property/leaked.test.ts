import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { Matcher, type Spot } from "../../src/people/leaks/matcher.ts";
import "../support/seed.ts";

/* Which values stand in a text: all that are planted, in every form and across every border, and none that is not. */

const secret = `correct/horse "battery" + it's <$täple&\nand a line`;
const pem = `-----BEGIN PRIVATE KEY-----\n${"MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7".repeat(2)}\nc2hvcnRlciBsYXN0IGxpbmUgb2YgaXQ=\n-----END PRIVATE KEY-----`;
const values = [secret, pem, "production-token"].map((text) => Buffer.from(text));
/** What stands in a text, and how many bytes before the part of it that the value decides. */
const forms: readonly (readonly [form: string, value: number, written: Buffer, before?: number])[] = [
  ["as it is", 0, Buffer.from(secret)],
  ["base64", 0, Buffer.from(Buffer.from(`${secret}.`).toString("base64"))],
  ["base64", 0, Buffer.from(Buffer.from(`:${secret}..`).toString("base64")), 2],
  ["base64", 0, Buffer.from(Buffer.from(`u:${secret}.`).toString("base64url")), 3],
  ["url", 0, Buffer.from(encodeURIComponent(secret))],
  ["url", 0, Buffer.from(encodeURIComponent(secret).replace(/%../g, (one) => one.toLowerCase()))],
  // As Python and Go write a part of a query, and Python one of a path.
  ["url", 0, Buffer.from("correct%2Fhorse+%22battery%22+%2B+it%27s+%3C%24t%C3%A4ple%26%0Aand+a+line")],
  ["url", 0, Buffer.from("correct/horse%20%22battery%22%20%2B%20it%27s%20%3C%24t%C3%A4ple%26%0Aand%20a%20line")],
  ["json", 0, Buffer.from(JSON.stringify(secret).slice(1, -1))],
  // As Go writes it, and as Python does.
  ["json", 0, Buffer.from('correct/horse \\"battery\\" + it\'s \\u003c$täple\\u0026\\nand a line')],
  ["json", 0, Buffer.from('correct/horse \\"battery\\" + it\'s <$t\\u00e4ple&\\nand a line')],
  ["shell", 0, Buffer.from(secret.replaceAll("'", "'\\''"))],
  ["utf-16", 0, Buffer.from(secret, "utf16le")],
  ["as it is", 1, Buffer.from(pem)],
  ["a line", 1, Buffer.from(pem.split("\n")[1] ?? "")],
  ["as it is", 2, Buffer.from("production-token")],
];

/** What encoders of common languages and tools make of a value. */
const encoders: readonly (readonly [encoder: string, form: string, value: string, written: string])[] = [
  ["curl --data-urlencode", "url", "a/b c!secret-1", "a%2Fb%20c%21secret-1"],
  ["curl in lower case", "url", "a/b c!secret-1", "a%2fb%20c%21secret-1"],
  ["Python's quote with safe=''", "url", "it's a/b(c)*d~e", "it%27s%20a%2Fb%28c%29%2Ad~e"],
  ["Python's quote_plus", "url", "it's a/b(c)*d~e", "it%27s+a%2Fb%28c%29%2Ad~e"],
  ["URLSearchParams", "url", "abc~def*ghi-1", new URLSearchParams([["", "abc~def*ghi-1"]]).toString().slice(1)],
  ["URLSearchParams", "url", "it's a/b(c)", new URLSearchParams([["", "it's a/b(c)"]]).toString().slice(1)],
  ["Java's URLEncoder", "url", "a/b~c*d!e'(f) g-h_i.j", "a%2Fb%7Ec*d%21e%27%28f%29+g-h_i.j"],
  ["Go's PathEscape", "url", "a/b~c*d!e g$&+=:@é", "a%2Fb~c%2Ad%21e%20g$&+=:@%C3%A9"],
  [".NET's WebUtility", "url", "a/b~c*d!e (f)+é", "a%2Fb%7Ec*d!e+(f)%2B%C3%A9"],
  [".NET's HttpUtility", "url", "a/b~c*d!e (f)+é", "a%2fb%7ec*d!e+(f)%2b%c3%a9"],
  ["PHP's urlencode", "url", "a/b~c*d!e (f)", "a%2Fb%7Ec%2Ad%21e+%28f%29"],
  ["encodeURI", "url", "https://ü:p w@h/?a=b#c", encodeURI("https://ü:p w@h/?a=b#c")],
  ["PHP's json_encode", "json", "a/b/ü-secret-1", "a\\/b\\/\\u00fc-secret-1"],
  [".NET's JSON", "json", `it's "a" <b>+ü&\\c`, "it\\u0027s \\u0022a\\u0022 \\u003Cb\\u003E\\u002B\\u00FC\\u0026\\\\c"],
  ["Jackson for ASCII", "json", `say "ü😀" once`, 'say \\"\\u00FC\\uD83D\\uDE00\\" once'],
  ["Gson", "json", "it's a=b <c>", "it\\u0027s a\\u003db \\u003cc\\u003e"],
  ["Newtonsoft for HTML", "json", `it's "a" <b>`, "it\\u0027s \\u0022a\\u0022 \\u003cb\\u003e"],
  ["Go's and Rails' JSON", "json", "a & b\u2028<c>", "a \\u0026 b\\u2028\\u003cc\\u003e"],
  ["bash's printf %q", "shell", "it's a secret 1", "it\\'s\\ a\\ secret\\ 1"],
  ["bash's printf %q", "shell", "~a~b:~c#d,{e}^!%+@f", "\\~a~b:\\~c#d\\,\\{e\\}\\^\\!%+@f"],
  ["bash's printf %q", "shell", "two lines\nit's \u00fc", "two lines\\nit\\'s \u00fc"],
  ["bash's printf %q in the locale C", "shell", "it's \u00fc\u00e9\tonce", "it\\'s \\303\\274\\303\\251\\tonce"],
  ["Python's shlex.quote", "shell", "it's a secret 1", `it'"'"'s a secret 1`],
  ["dash's export -p", "shell", "it''s a secret 1", `it'"''"'s a secret 1`],
  ["Ruby's Shellwords", "shell", "it's a/b+c=ü\nd", "it\\'s\\ a/b+c\\=\\ü'\n'd"],
];

test.each(encoders)("what %s writes is found", async (_, form, value, written) => {
  const spots = await spotsIn(new Matcher([Buffer.from(value)]), [Buffer.from(`x=${written};`)]);
  expect(spots).toEqual([{ value: 0, form, line: 1, column: 3 }]);
});

async function spotsIn(matcher: Matcher, chunks: readonly Uint8Array[]): Promise<Spot[]> {
  const spots: Spot[] = [];
  await matcher.scan(
    (async function* () {
      yield* chunks;
    })(),
    (spot) => spots.push(spot),
  );
  return spots;
}

function cut(text: Buffer, ...places: readonly number[]): Buffer[] {
  const ends = [...places.filter((place) => place > 0 && place < text.length).sort((a, b) => a - b), text.length];
  return ends.map((end, at) => text.subarray(ends[at - 1] ?? 0, end));
}

describe("a planted value", () => {
  const matcher = new Matcher(values);
  test.each(forms)(
    "%s, number %d, is found across every border between chunks",
    async (form, value, written, before = 0) => {
      const lead = "two lines\nbefore: ";
      const text = Buffer.concat([Buffer.from(lead), written, Buffer.from(" after\n")]);
      const [start, end] = [lead.length, lead.length + written.length];
      const expected = { value, form, line: 2, column: "before: ".length + 1 + before };
      const borders = [start - 1, start, start + 1, end - 1, end, end + 1].map((place) => [place]);
      const each = Array.from(text, (_, at) => at);
      for (const places of [[], each, each.filter((at) => at % 7 === 0), ...borders, [start + 4, end - 4]]) {
        const spots = await spotsIn(matcher, cut(text, ...places));
        // Of PEM, the lines are found as well.
        expect(spots.filter((spot) => spot.form === form)).toEqual([expected]);
        expect(spots.filter((spot) => spot.value !== value)).toEqual([]);
      }
    },
  );

  test.each(forms)(
    "%s, number %d, is not found with a byte less, or another one",
    async (form, value, written, before = 0) => {
      const least = written.subarray(before);
      const others = [least.subarray(1), least.subarray(0, form === "base64" ? -5 : -1), Buffer.from(least)];
      (others[2] as Buffer)[12] = 0x21;
      for (const other of others) {
        const spots = await spotsIn(matcher, [other, Buffer.from("!")]);
        expect(spots.filter((spot) => spot.form === form && spot.value === value)).toEqual([]);
      }
    },
  );

  test("in base64 is told from one whose first or last bit differs", async () => {
    const one = new Matcher([Buffer.from("passwor1")]);
    for (const other of ["passwor1", "passwor0", "\xf0asswor1", "passwor\xb1"]) {
      for (const lead of ["", "a", "ab"]) {
        const text = Buffer.from(Buffer.from(`${lead}${other}abc`, "latin1").toString("base64"));
        expect([other, lead, (await spotsIn(one, [text])).length]).toEqual([other, lead, other === "passwor1" ? 1 : 0]);
      }
    }
  });
});

test("finds exactly what a search byte by byte finds, in texts that are nearly all values", async () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 8, maxLength: 80 });
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(word, { minLength: 1, maxLength: 12 }),
      fc.array(fc.oneof(word, fc.constantFrom("\n", "a", "b")), { maxLength: 40 }),
      fc.array(fc.nat(1000), { maxLength: 8 }),
      async (words, parts, places) => {
        const text = parts.join("");
        const expected = words.flatMap((one, value) => {
          const starts = Array.from(text, (_, at) => at).filter((at) => text.startsWith(one, at));
          return starts.map((at) => {
            const line = text.slice(0, at).split("\n").length;
            return { value, form: "as it is", line, column: at - text.lastIndexOf("\n", at - 1) };
          });
        });
        const found = await spotsIn(
          new Matcher(words.map((one) => Buffer.from(one))),
          cut(Buffer.from(text), ...places),
        );
        const order = (spots: Spot[]) => spots.map((spot) => JSON.stringify(spot)).sort();
        expect(order(found)).toEqual(order(expected));
      },
    ),
    { numRuns: 500 },
  );
});

test("finds each of 1,000 values planted in 24 MiB, around the ends of what is held at once, and nothing else", async () => {
  const many = Array.from({ length: 1000 }, (_, at) => randomBytes(6 + (at % 30)).toString("hex"));
  const text = Buffer.from(randomBytes(24 * 1024 * 1024));
  const held = 1024 * 1024;
  const places = many.map((value, at) => {
    const border = (1 + (at % 20)) * held + Math.floor(at / 20) * 1000 - (at % 3);
    text.write(value, border, "latin1");
    return border;
  });
  const spots = await spotsIn(new Matcher(many.map((one) => Buffer.from(one))), cut(text, ...places));
  expect(spots.map(({ value }) => value).sort((a, b) => a - b)).toEqual(many.map((_, at) => at));
});
