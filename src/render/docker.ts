import type { NamedValue } from "./dotenv.ts";
import { renderEach } from "./read-back.ts";

/**
 * Lines for `docker run --env-file`: `NAME=value`, and everything after the first `=` is the value as it stands. Quotes
 * and escapes do not exist there, so a line feed, a carriage return at the end and a line of 64 KiB cannot be carried.
 *
 * @param variables - each name once
 * @throws Fault `env_unrepresentable` with the names of all values that cannot be carried
 */
export function renderDocker(variables: readonly NamedValue[]): string {
  return renderEach(variables, ({ name, value }) => `${name}=${value}\n`, readDocker);
}

/** What Go's scanner of lines takes at most, without the line feed. */
const lineBytesMax = 64 * 1024 - 1;

/**
 * Reads such lines as docker does.
 * @throws Error where docker would refuse the file, or take a value from its own environment
 * @see https://github.com/docker/cli/blob/28f756087eea5fa301f3fbf12b01ae62f91521c2/pkg/kvfile/kvfile.go
 */
function readDocker(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const whole of text.split("\n").slice(0, -1)) {
    if (Buffer.byteLength(whole) > lineBytesMax) throw new Error("a line is too long");
    const line = whole.replace(/\r$/, "").trimStart();
    if (line === "" || line.startsWith("#")) continue;
    const equals = line.indexOf("=");
    if (equals < 1 || /[ \t]/.test(line.slice(0, equals))) throw new Error("a line without a name");
    found.set(line.slice(0, equals), line.slice(equals + 1));
  }
  return found;
}
