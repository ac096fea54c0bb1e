import { expect, test } from "bun:test";
import { readConfig } from "../../src/core/settings.ts";
import { sayOrigin } from "../../src/server/serve.ts";

test.each([
  [4190, true],
  [6000, true],
  [10080, true],
  [4100, false],
  [8443, false],
])("serve warns of a port that programs cannot read: %d, %p", (port, warns) => {
  const said: string[] = [];
  sayOrigin(readConfig({}), `http://127.0.0.1:${port}`, (line) => said.push(line));
  expect(said.some((line) => line.startsWith("WARNING: Browsers and Node's fetch refuse this port"))).toBe(warns);
});
