import { describe, expect, test } from "bun:test";
import { renderGithub, renderMasks } from "../../src/core/formats/github.ts";
import { entriesOf } from "../support/entries.ts";

const naming = (names: string[]) => expect.objectContaining({ detail: { names } });
const numbered = () => {
  let next = 0;
  return () => String(next++).padStart(32, "0");
};

test("each value is written between two lines with its own delimiter", () => {
  expect(renderGithub(entriesOf({ B: "two\nlines\n", A: "" }), numbered())).toBe(
    [
      `A<<KEYHOLE_${"0".repeat(32)}\n\nKEYHOLE_${"0".repeat(32)}\n`,
      `B<<KEYHOLE_${"0".repeat(31)}1\ntwo\nlines\n\nKEYHOLE_${"0".repeat(31)}1\n`,
    ].join(""),
  );
});

test("a delimiter that occurs in the value is not used for it", () => {
  const value = `x\nKEYHOLE_${"0".repeat(32)}\nPATH=/tmp`;
  expect(renderGithub([{ name: "A", value }], numbered())).toContain(`A<<KEYHOLE_${"0".repeat(31)}1\n`);
});

test("names that the runner reserves are refused", () => {
  for (const name of ["NODE_OPTIONS", "node_options", "GITHUB_TOKEN", "RUNNER_TEMP"]) {
    expect(() => renderGithub(entriesOf({ [name]: "x", A: "y" }), numbered())).toThrow(naming([name]));
  }
});

test("a trailing carriage return is refused for runners on Windows only", () => {
  const variables = [{ name: "A", value: "x\r" }];
  expect(() => renderGithub(variables, numbered(), true)).toThrow(naming(["A"]));
  expect(renderGithub(variables, numbered())).toContain("x\r\n");
});

describe("masks", () => {
  const masksOf = (value: string) =>
    renderMasks([{ name: "A", value }])
      .text.split("\n")
      .slice(0, -1);

  test("cover the value and its base64, URL and JSON forms", () => {
    expect(masksOf('pass "word"')).toEqual([
      '::add-mask::pass "word"',
      "::add-mask::cGFzcyAid29yZCI=",
      "::add-mask::pass%2520%2522word%2522",
      '::add-mask::pass \\"word\\"',
    ]);
  });

  test("cover every line of four characters or more, and none that is shorter or blank", () => {
    const masks = masksOf("-----BEGIN-----\nabcd\nabc\n\n    \n  indented\r\nlast\n");
    expect(masks).toContain("::add-mask::-----BEGIN-----");
    expect(masks).toContain("::add-mask::abcd");
    expect(masks).toContain("::add-mask::  indented");
    expect(masks).toContain("::add-mask::indented");
    expect(masks).toContain("::add-mask::last");
    expect(masks).not.toContain("::add-mask::abc");
    expect(masks.every((mask) => mask.slice("::add-mask::".length).trim().length >= 4)).toBe(true);
  });

  test("take one line each, whatever the value contains", () => {
    expect(masksOf("50%\n::stop-commands::x\r")[0]).toBe("::add-mask::50%25%0A::stop-commands::x%0D");
  });

  test("do not cover short values and common words, which are reported once, unless they are named", () => {
    const short = { PIN: "1234567", NODE_ENV: "production", HOST: "LocalHost\n", EMPTY: "" };
    const variables = entriesOf({ ...short, EIGHT: "12345678", LINES: "a\nproduction\nc" });
    const { text, unmasked } = renderMasks(variables);
    expect(unmasked).toEqual(["PIN", "NODE_ENV", "HOST"]);
    expect(text).toContain("::add-mask::12345678\n");
    expect(text).toContain("::add-mask::a%0Aproduction%0Ac\n");
    expect(text).not.toMatch(/^::add-mask::(?:1234567|production|LocalHost|localhost)$/im);
    const named = renderMasks(variables, ["PIN", "NODE_ENV"]);
    expect(named.unmasked).toEqual(["HOST"]);
    expect(named.text).toContain("::add-mask::1234567\n");
    expect(named.text).toContain("::add-mask::production\n");
    expect(renderMasks([{ name: "A", value: "x" }], ["A"]).text).toStartWith("::add-mask::x\n");
  });
});
