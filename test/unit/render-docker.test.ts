import { describe, expect, test } from "bun:test";
import type { Fault } from "../../src/fault.ts";
import { renderDocker } from "../../src/render/docker.ts";

test("values are written unchanged, ordered by name", () => {
  const text = renderDocker([
    { name: "B", value: ' "quoted" # no comment \\ $HOME ' },
    { name: "A", value: "=a=" },
    { name: "EMPTY", value: "" },
    { name: "CR", value: "a\rb" },
  ]);
  expect(text).toBe('A==a=\nB= "quoted" # no comment \\ $HOME \nCR=a\rb\nEMPTY=\n');
});

describe("all values that a line cannot carry are refused by name", () => {
  const bad: [what: string, value: string][] = [
    ["a line feed", "a\nb"],
    ["a line feed at the end", "a\n"],
    ["a carriage return at the end", "a\r"],
    ["a second assignment", "a\nB=c"],
    ["64 KiB of line", "x".repeat(65_536 - 2)],
  ];
  test.each(bad)("%s", (_, value) => {
    const fault = failing(() =>
      renderDocker([
        { name: "K", value },
        { name: "FINE", value: "x" },
        { name: "L", value },
      ]),
    );
    expect(fault.detail.names).toEqual(["K", "L"]);
  });

  test("but not a line that is one byte shorter", () => {
    expect(renderDocker([{ name: "K", value: "x".repeat(65_536 - 3) }])).toHaveLength(65_536);
  });
});

function failing(step: () => unknown): Fault {
  try {
    step();
  } catch (error) {
    return error as Fault;
  }
  throw new Error("it did not fail");
}
