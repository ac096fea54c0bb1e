import { type NamedValue, renderEach } from "./dotenv.ts";

/**
 * Lines for `docker run --env-file`: `NAME=value`, where everything after the first `=` is the value. There are no quotes
 * and no escapes, so the format cannot carry a line feed, a trailing carriage return or a line of 64 KiB.
 *
 * @param variables - each name once
 * @throws Fault `env_unrepresentable` with the names of all values that cannot be carried
 */
export function renderDocker(variables: readonly NamedValue[]): string {
  return renderEach(variables, ({ name, value }) => `${name}=${value}\n`, isLine);
}

/**
 * Docker drops the carriage return of a line end, and Go's scanner refuses a longer line.
 * @see https://github.com/docker/cli/blob/28f756087eea5fa301f3fbf12b01ae62f91521c2/pkg/kvfile/kvfile.go
 */
function isLine({ name, value }: NamedValue): boolean {
  return !/\n|\r$/.test(value) && Buffer.byteLength(`${name}=${value}`) <= lineBytesMax;
}

/** The longest line that the scanner accepts, without the line feed. */
const lineBytesMax = 64 * 1024 - 1;
