import { describe, expect, test } from "bun:test";
import { createServer } from "node:net";
import { Refused } from "../../src/core/refused.ts";
import { openInstallation } from "../../src/installation/installation.ts";
import { readConfig } from "../../src/settings/settings.ts";
import { toProblem } from "../../src/terminal/failure.ts";
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

describe("a PostgreSQL that cannot be used is described with its host and port:", () => {
  const at = (where: string) => `postgres://keyhole:${password}@${where}/keyhole`;

  test("a port where nothing listens", async () => {
    const where = `127.0.0.1:${freePort()}`;
    expect(await sentenceOf(at(where))).toBe(
      `${where} refuses connections: PostgreSQL does not run there, or listens on another port.`,
    );
  });

  test("a host that nobody knows, with the port that is the default", async () => {
    expect(await sentenceOf(at("no-such-host.invalid"))).toBe(
      "no-such-host.invalid:5432 is not a host that this machine knows: correct the name, or look at its DNS.",
    );
  });

  test("each of several hosts", async () => {
    const ports = [freePort(), freePort()];
    const sentence = await sentenceOf(at(ports.map((port) => `127.0.0.1:${port}`).join(",")));
    for (const port of ports) expect(sentence).toContain(`127.0.0.1:${port} refuses connections`);
  });

  test("a server without TLS", async () => {
    const server = createServer((socket) => socket.once("data", () => socket.end("N")));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const sentence = await sentenceOf(`${at(`127.0.0.1:${port}`)}?sslmode=require`);
    server.close();
    expect(sentence).toBe(
      `127.0.0.1:${port} does not speak TLS, which the URL asks for: turn it on there, or correct sslmode.`,
    );
  });
});

withPostgres("a PostgreSQL that refuses", () => {
  const at = (change: (url: URL) => void) => {
    const url = new URL(postgresUrl as string);
    change(url);
    return [url.href, `${url.hostname}:${url.port || 5432}`] as const;
  };

  test("the password is named", async () => {
    const [url, where] = at((one) => {
      one.username = "nobody-of-that-name";
      one.password = password;
    });
    const words = "refuses the user or the password: correct them, and percent-encode % @ / ? # in the password.";
    expect(await sentenceOf(url)).toBe(`${where} ${words}`);
  });

  test("the database is named", async () => {
    const [url, where] = at((one) => {
      one.pathname = "/no_such_database";
    });
    expect(await sentenceOf(url)).toBe(`${where} has no database of that name: create it, or correct the name.`);
  });
});
