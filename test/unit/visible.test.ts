import { expect, test } from "bun:test";
import { lookalikes, lookOf } from "../../src/core/words/lookalikes.ts";

test.each([
  ["stripe", "stri\u0440e", "a Cyrillic letter"],
  ["TOKEN", "\u0422\u041eK\u0395N", "Cyrillic and Greek capitals"],
  ["web", "  web\u00a0", "blanks at the ends"],
  ["web prod", "web \u2003 prod", "blanks of other kinds within"],
  ["file", "\ufb01le", "a ligature"],
  ["web", "\uff57\uff45\uff42", "wide letters"],
  ["web-prod", "web\u2011prod", "another dash"],
])("%p and %p look alike: %s", (one, other) => expect(lookOf(other)).toBe(lookOf(one)));

test.each([
  ["web", "Web"],
  ["web-1", "web-2"],
  ["web", "we b"],
  ["ab", "a\u200bb"], // a zero-width blank is shown as an escape
])("%p and %p do not", (one, other) => expect(lookOf(other)).not.toBe(lookOf(one)));

test("names that look alike carry as much of their ids as tells them apart, and equal names do, too", () => {
  const named = (id: string, name: string) => ({ id, name });
  const marks = lookalikes([
    named("0199a3c4-1111-7000", "web-ci"),
    named("0199a3c4-1122-7000", "web-ci"),
    named("0299a3c4-1111-7000", "api"),
    named("0399a3c4-1111-7000", "\u0430pi"),
    named("0499a3c4-1111-7000", "API"),
  ]);
  expect(Object.fromEntries(marks)).toEqual({
    "0199a3c4-1111-7000": "0199a3c4-111",
    "0199a3c4-1122-7000": "0199a3c4-112",
    "0299a3c4-1111-7000": "0299a3c4",
    "0399a3c4-1111-7000": "0399a3c4",
  });
});
