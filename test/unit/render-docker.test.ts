import { describe, expect, test } from "bun:test";
import type { Fault } from "../../src/fault.ts";
import { renderDocker } from "../../src/render/docker.ts";

test("values stand as they are, in the order of their names", () => {
  const text = renderDocker([
    { name: "B", value: ' "quoted" # no comment \\ $HOME ' },
    { name: "A", value: "=a=" },
    { name: "EMPTY", value: "" },
    { name: "CR", value: "a\rb" },
  ]);
  expect(text).toBe('A==a=\nB= "quoted" # no comment \\ $HOME \nCR=a\rb\nEMPTY=\n');
});

describe("what a line cannot carry is refused, all of it by name", () => {
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

  test("but not one byte less than that", () => {
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
