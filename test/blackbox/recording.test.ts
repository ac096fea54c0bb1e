/** docs/demo.svg, the recording that the README shows. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { newFolder } from "../support/folder.ts";
import { readPage } from "../support/markdown.ts";
import { draw, linesIn, linesOf, runDemo } from "../support/record.ts";

const svg = readPage("docs/demo.svg");

/** What differs from run to run. */
const changing =
  /[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{64}\b|\d\d:\d\d:\d\d\.\d{3}|\d{13}|(?<=durationMs=)[\d.]+|(?<=127\.0\.0\.1:)\d+|\/\S+(?=\/root\.key)/g;

describe("the recording of the demo", () => {
  test("shows what the demo prints today; `bun run record` makes it again", async () => {
    const folder = newFolder();
    const printed = linesOf(await runDemo(join(import.meta.dir, "../.."), { KEYHOLE_DATA: folder, PORT: "0" }));
    // The log is written beside the answer, so the lines of one may come before those of the other; and where a line
    // breaks depends on the length of the folder's path. So words are compared.
    const known = (lines: readonly string[]) => lines.join(" ").replace(changing, "…").split(/\s+/).sort();
    expect(known(linesIn(svg).slice(1))).toEqual(known(printed.map(({ text }) => text)));
  });

  test("begins with the command, and names no path but that of its clone", () => {
    expect(linesIn(svg)[0]).toBe("$ bun run demo --once");
    const paths = linesIn(svg)
      .join("\n")
      .match(/(?<=[\s"'])\/(?!api\/)[\w.-]+\/\S*/g);
    expect(paths).toEqual(["/tmp/keyhole/.keyhole/demo/root.key."]);
  });

  test("is one document without a script, and stands still for people who want no motion", () => {
    expect(svg).not.toMatch(/<script|<foreignObject|href|\bon\w+=|url\(/i);
    const [still = "", moving = ""] = svg.split("@media (prefers-reduced-motion:no-preference){\n");
    expect([still, moving.split("\n}\n")[1]].join()).not.toContain("animation");
    expect(moving).toContain("animation:s1 ");
    expect(svg).toContain("@media (prefers-color-scheme:dark)");
  });

  test("shows a line from when it was printed, with long pauses shortened, and keeps every character", () => {
    const text = `${"x".repeat(100)} <a> &amp; "b"`;
    const [first, second] = ["\x1b[2mone\x1b[0m\r\n\r\ntw", `o\r\n${text}\r\n`];
    const drawn = draw(
      linesOf([
        { atMs: 100, text: first },
        { atMs: 9000, text: second },
      ]),
    );
    expect(linesIn(drawn)).toEqual(["$ bun run demo --once", "one", "", "two", text]);
    expect(drawn.match(/@keyframes s\d/g)).toHaveLength(2);
    expect(drawn).toContain("animation:s1 13600ms infinite");
  });
});
