/**
 * The built program as Docker Compose 5.5.0 calls the provider of a service: the same arguments, and its rules for what
 * comes back, written here again from its source.
 *
 * @see https://github.com/docker/compose/blob/v5.5.0/pkg/compose/plugins.go
 */
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { honestly, type Question, refusal } from "../support/liar.ts";
import { type Machine, machineMaker, truth } from "../support/machine.ts";
import { blockOf } from "../support/markdown.ts";
import { carriedValues } from "../support/readers/nasty.ts";

const machine = machineMaker();

/** What came of a call: what Compose shows, its error, and what it sets in the services that depend on this one. */
type Outcome = { shown: string[]; error: string | undefined; set: Record<string, string> };

/** `docker compose up` or `down`, for one provider. Options are passed in the order of a Go map, which is random. */
async function compose(
  { keyhole }: Machine,
  event: "up" | "down",
  options: Readonly<Record<string, string | readonly string[]>> = {},
  service = "secrets",
): Promise<Outcome> {
  const flags = Object.entries(options).flatMap(([name, values]) => [values].flat().map((one) => `--${name}=${one}`));
  const ran = await keyhole(["compose", "--project-name=shop", event, ...flags, service]);
  const shown: string[] = [];
  const set: Record<string, string> = {};
  for (const line of ran.stdout.split("\n").slice(0, -1)) {
    const { type, message } = JSON.parse(line) as { type: string; message: string };
    const equals = message.indexOf("=");
    const name = message.slice(0, equals);
    if (type === "error") return { shown, error: message, set: {} };
    if (type === "info") shown.push(message);
    else if (equals === -1) return { shown, error: `invalid response from plugin: ${message}`, set: {} };
    else if (type === "setenv") set[`${service.toUpperCase()}_${name}`] = message.slice(equals + 1);
    else if (type === "rawsetenv") set[name] = message.slice(equals + 1);
    else return { shown, error: `invalid response from plugin: ${type}`, set: {} };
  }
  if (ran.exitCode !== 0) return { shown, error: `exit status ${ran.exitCode}`, set: {} };
  return { shown, error: undefined, set };
}

const prefixed = (variables: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(variables).map(([name, value]) => [`SECRETS_${name}`, value]));

const serving = (variables: Readonly<Record<string, string>>) => (question: Question) =>
  honestly({ ...truth, variables }, question);

describe("up", () => {
  test("is a conversation of one line for each variable", async () => {
    const { keyhole } = await machine();
    expect(
      await keyhole(["compose", "--project-name=shop", "up", "--project=web", "--env=production", "secrets"]),
    ).toEqual({
      exitCode: 0,
      stdout: [
        '{"type":"setenv","message":"API_TOKEN=tok-123456"}\n',
        '{"type":"setenv","message":"DATABASE_URL=postgres://u:p@h/db"}\n',
        '{"type":"setenv","message":"MOTD=it\'s \\"fine\\"\\nhere\\n"}\n',
        '{"type":"info","message":"3 variables of web, production"}\n',
      ].join(""),
      stderr: "",
    });
  });

  test("sets every hostile value exactly, and no other variable", async () => {
    const breakingOut = ['a"}\n{"type":"rawsetenv","message":"LD_PRELOAD=/x"}\n', "\nB=c", "=", ""];
    const variables = Object.fromEntries([...carriedValues, ...breakingOut].map((value, at) => [`V${at}`, value]));
    const place = await machine(serving(variables));
    expect(await compose(place, "up")).toMatchObject({ error: undefined, set: prefixed(variables) });
    expect(await compose(place, "up", { names: "exact" })).toMatchObject({ error: undefined, set: variables });
  });

  test("takes the options of the provider as flags", async () => {
    const place = await machine();
    const keyFile = join(place.folder, "key");
    writeFileSync(keyFile, place.key);
    const options = { keys: "API_TOKEN,MOTD", require: "MOTD", "api-key-file": keyFile, timeout: "30s" };
    expect(Object.keys((await compose(place, "up", options)).set)).toEqual(["SECRETS_API_TOKEN", "SECRETS_MOTD"]);
  });

  test("takes those of docs/compose.md", async () => {
    const { services } = parse(blockOf("docs/compose.md", "yaml", "provider:"));
    const { type, options } = services.secrets.provider;
    expect(type).toBe("keyhole");
    expect(await compose(await machine(), "up", options)).toMatchObject({ set: prefixed(truth.variables) });
  });

  test("says why it waits", async () => {
    const place = await machine((question) =>
      question.count === 0 ? refusal(503, "unavailable", "Try again.") : honestly(truth, question),
    );
    const { shown, error } = await compose(place, "up", { wait: "20s" });
    expect(error).toBeUndefined();
    expect(shown).toEqual([expect.stringContaining("Trying again in"), "3 variables of web, production"]);
  });

  test.each<[what: string, options: Record<string, string | string[]>, error: string]>([
    ["a misspelt option, which could have narrowed the set", { key: "API_TOKEN" }, "unknown option '--key'"],
    [
      "a list, which Compose passes as one option many times",
      { keys: ["API_TOKEN", "MOTD"] },
      "--keys is given twice.",
    ],
    ["a missing variable", { require: "NOWHERE" }, "Not found in web, production: NOWHERE."],
    ["an unknown environment", { env: "live" }, "live"],
  ])("%s fails the service, and sets nothing", async (_, options, error) => {
    const place = await machine();
    expect(await compose(place, "up", options)).toEqual({ shown: [], error: expect.stringContaining(error), set: {} });
  });

  test("a server that refuses fails the service", async () => {
    const place = await machine(() => refusal(401, "unauthorized", "A valid API key is required."));
    expect(await compose(place, "up")).toMatchObject({ error: expect.stringContaining("API key"), set: {} });
  });

  test("names that steer are judged as the services will have them", async () => {
    const place = await machine(serving({ OPTIONS: "--require /x.js", PATH: "/tmp" }));
    expect((await compose(place, "up")).set).toEqual({ SECRETS_OPTIONS: "--require /x.js", SECRETS_PATH: "/tmp" });
    const error = (names: string) => expect.stringContaining(`CI runners act on them: ${names}.`);
    expect(await compose(place, "up", {}, "node")).toMatchObject({ error: error("NODE_OPTIONS, NODE_PATH"), set: {} });
    expect(await compose(place, "up", { names: "exact" })).toMatchObject({ error: error("PATH"), set: {} });
    const allowed = await compose(place, "up", { names: "exact", "allow-name": "PATH" });
    expect(allowed).toMatchObject({ error: undefined, set: { PATH: "/tmp" } });
  });

  test("a service whose name cannot begin a variable is refused", async () => {
    const place = await machine();
    const { error, set } = await compose(place, "up", {}, "my-secrets");
    expect(error).toContain("Compose would set MY-SECRETS_API_TOKEN");
    expect(set).toEqual({});
    expect((await compose(place, "up", { names: "exact" }, "my-secrets")).set).toEqual(truth.variables);
  });
});

test("down does nothing, whatever the options are, and asks no server", async () => {
  const place = await machine();
  const options = { project: "web", env: "production", keys: ["A", "B"], other: "x" };
  expect(await compose(place, "down", options)).toEqual({ shown: [], error: undefined, set: {} });
  expect(place.liar.questions).toEqual([]);
});

test("there is no metadata, so that Compose leaves out no option", async () => {
  const { keyhole } = await machine();
  expect((await keyhole(["compose", "metadata"])).exitCode).not.toBe(0);
});
