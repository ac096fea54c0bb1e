import { expect, test } from "bun:test";
import { createServer } from "node:net";
import { toProblem } from "../../src/cli/terminal/failure.ts";
import { Refused } from "../../src/core/refused.ts";
import { readConfig } from "../../src/core/settings/settings.ts";
import { openInstallation } from "../../src/installation/installation.ts";
import { freePort } from "../support/port.ts";
import { postgresUrl, withPostgres } from "../support/postgres.ts";

const password = "of-the-database-5b1d";

/** What a person is told who starts Keyhole with this URL. */
async function sentenceOf(url: string): Promise<string> {
  const config = readConfig({ DATABASE_URL: url, KEYHOLE_ROOT_KEY: Buffer.alloc(32).toString("base64") });
  const thrown = await openInstallation(config, () => {}, {}).then(
    () => new Error("it opens"),
    (error: unknown) => error,
  );
  expect(thrown).toBeInstanceOf(Refused);
  expect(thrown).toMatchObject({ kind: "unavailable" });
  const { message } = thrown as Refused;
  // What the program says is this sentence, whatever the code of its cause.
  expect(toProblem(thrown, {})).toMatchObject({ message, exitCode: 6, code: "unavailable" });
  expect(message).toStartWith("DATABASE_URL: ");
  expect(message).not.toContain(password);
  return message.replace("DATABASE_URL: ", "");
}

const at = (where: string) => `postgres://keyhole:${password}@${where}/keyhole`;
const [one, other] = [freePort(), freePort()].map((port) => `127.0.0.1:${port}`);
const absent = "refuses connections: PostgreSQL does not run there, or listens on another port.";

test.each([
  ["a port where nothing listens", one, `${one} ${absent}`],
  ["a host that nobody knows, with the port that is the default", "no.invalid", "no.invalid:5432 is not a host that "],
  ["the first of several hosts", `${one},${other}`, `${one} refuses connections`],
  ["the last of several hosts", `${one},${other}`, `${other} refuses connections`],
])("a PostgreSQL that cannot be used is described with its host and port: %s", async (_, where = "", says) => {
  expect(await sentenceOf(at(where))).toContain(says);
});

test("a PostgreSQL that cannot be used is described with its host and port: a server without TLS", async () => {
  const server = createServer((socket) => socket.once("data", () => socket.end("N")));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const sentence = await sentenceOf(`${at(`127.0.0.1:${port}`)}?sslmode=require`);
  server.close();
  const tls = "does not speak TLS, which the URL asks for: turn it on there, or correct sslmode.";
  expect(sentence).toBe(`127.0.0.1:${port} ${tls}`);
});

withPostgres("a PostgreSQL that refuses", () => {
  const user = "refuses the user or the password: correct them, and percent-encode % @ / ? # in the password.";
  test.each([
    ["password", { username: "nobody-of-that-name", password }, user],
    ["database", { pathname: "/no_such" }, "has no database of that name: create it, or correct the name."],
  ])("the %s is named", async (_, change, says) => {
    const url = Object.assign(new URL(postgresUrl as string), change);
    expect(await sentenceOf(url.href)).toBe(`${url.hostname}:${url.port || 5432} ${says}`);
  });
});
