import type { NamedValue } from "./dotenv.ts";
import { renderEach } from "./read-back.ts";

/**
 * Lines for `docker run --env-file`: `NAME=value`, where everything after the first `=` is the value. There are no quotes
 * and no escapes, so the format cannot carry a line feed, a trailing carriage return or a line of 64 KiB.
 *
 * @param variables - each name once
 * @throws Fault `env_unrepresentable` with the names of all values that cannot be carried
 */
export function renderDocker(variables: readonly NamedValue[]): string {
  return renderEach(variables, ({ name, value }) => `${name}=${value}\n`, readDocker);
}

/** The longest line that Go's line scanner accepts, without the line feed. */
const lineBytesMax = 64 * 1024 - 1;

/**
 * Reads the lines as docker does.
 * @throws Error if docker would refuse the file, or take a value from its own environment
 * @see https://github.com/docker/cli/blob/28f756087eea5fa301f3fbf12b01ae62f91521c2/pkg/kvfile/kvfile.go
 */
function readDocker(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const rawLine of text.split("\n").slice(0, -1)) {
    if (Buffer.byteLength(rawLine) > lineBytesMax) throw new Error("a line is too long");
    const line = rawLine.replace(/\r$/, "").trimStart();
    if (line === "" || line.startsWith("#")) continue;
    const equals = line.indexOf("=");
    if (equals < 1 || /[ \t]/.test(line.slice(0, equals))) throw new Error("a line has no name");
    found.set(line.slice(0, equals), line.slice(equals + 1));
  }
  return found;
}
