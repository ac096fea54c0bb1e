import { describe, expect, test } from "bun:test";
import { boundedOutput, openLog } from "../../src/serve/process/log.ts";

/** A stream that keeps what it is given until it is read. */
function pausedStream() {
  const lines: string[] = [];
  let done: (() => void)[] = [];
  return {
    lines,
    write: (text: string | Uint8Array, written: () => void) => {
      lines.push(text.toString());
      done.push(written);
    },
    read: () => {
      for (const written of done) written();
      done = [];
    },
  };
}

const mebibyte = `${"x".repeat(1024 * 1024 - 1)}\n`;

describe("a log that nobody reads", () => {
  test("waits in memory up to 16 MiB; the lines beyond it are dropped and counted", () => {
    const stream = pausedStream();
    const write = boundedOutput(stream);
    for (let mib = 0; mib < 20; mib++) write(mebibyte);
    expect(stream.lines).toHaveLength(16);
    write("a\nb\n");
    stream.read();
    write(Buffer.from("last\n"));
    const dropped = /^\{"time":"[^"]+","event":"log_dropped","lines":6\}\n$/;
    expect(stream.lines.slice(16)).toEqual([expect.stringMatching(dropped), "last\n"]);
    write("later\n");
    expect(stream.lines.slice(18)).toEqual(["later\n"]);
  });

  test("drops nothing if it is read in time", () => {
    const stream = pausedStream();
    const write = boundedOutput(stream);
    for (let mib = 0; mib < 40; mib++) {
      write(mebibyte);
      stream.read();
    }
    expect(stream.lines).toHaveLength(40);
  });
});

test("a line escapes what a screen would act on or hide, and is read back exactly", () => {
  const reason = "a\u202eb\u{e0041}c\u200b\ufe0f";
  let text = "";
  const { log, flush } = openLog(
    (lines) => {
      text += lines;
    },
    { pretty: false, now: () => 0 },
  );
  log({ event: "request", reason });
  flush();
  expect(text).toMatch(/^[ -~]+\n$/);
  expect(JSON.parse(text)).toMatchObject({ reason });
});
