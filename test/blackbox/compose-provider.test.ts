/**
 * The built program as Docker Compose 5.5.0 calls the provider of a service: the same arguments, and its rules for what
 * comes back, written here again from its source. What it prints: transcripts/compose.txt.
 *
 * @see https://github.com/docker/compose/blob/v5.5.0/pkg/compose/plugins.go
 */
import { describe, expect, test } from "bun:test";
import { parse } from "yaml";
import { honestly, type Question, refusal } from "../support/liar.ts";
import { type Machine, machineMaker, truth } from "../support/machine.ts";
import { blockOf } from "../support/markdown.ts";
import { carriedValues } from "../support/readers/nasty.ts";

const machine = machineMaker();

/** What came of a call: what Compose shows, its error, and what it sets in the services that depend on this one. */
type Outcome = { shown: string[]; error: string | undefined; set: Record<string, string> };

/** `docker compose up`, for a service named secrets. Options are passed in the order of a Go map, which is random. */
async function up({ keyhole }: Machine, options: Readonly<Record<string, string>> = {}): Promise<Outcome> {
  const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
  const ran = await keyhole(["compose", "--project-name=shop", "up", ...flags, "secrets"]);
  const shown: string[] = [];
  const set: Record<string, string> = {};
  for (const line of ran.stdout.split("\n").slice(0, -1)) {
    const { type, message } = JSON.parse(line) as { type: string; message: string };
    const equals = message.indexOf("=");
    const name = message.slice(0, equals);
    if (type === "error") return { shown, error: message, set: {} };
    if (type === "info") shown.push(message);
    else if (equals === -1) return { shown, error: `invalid response from plugin: ${message}`, set: {} };
    else if (type === "setenv") set[`SECRETS_${name}`] = message.slice(equals + 1);
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
  test("sets every hostile value exactly, and no other variable", async () => {
    const breakingOut = ['a"}\n{"type":"rawsetenv","message":"LD_PRELOAD=/x"}\n', "\nB=c", "=", ""];
    const variables = Object.fromEntries([...carriedValues, ...breakingOut].map((value, at) => [`V${at}`, value]));
    const place = await machine(serving(variables));
    expect(await up(place)).toMatchObject({ error: undefined, set: prefixed(variables) });
    expect(await up(place, { names: "exact" })).toMatchObject({ error: undefined, set: variables });
  });

  test("takes the options of docs/compose.md", async () => {
    const { services } = parse(blockOf("docs/compose.md", "yaml", "provider:"));
    const { type, options } = services.secrets.provider;
    expect(type).toBe("keyhole");
    expect(await up(await machine(), options)).toMatchObject({ set: prefixed(truth.variables) });
  });

  test("says why it waits", async () => {
    const place = await machine((question) =>
      question.count === 0 ? refusal(503, "unavailable", "Try again.") : honestly(truth, question),
    );
    const { shown, error } = await up(place, { wait: "20s" });
    expect(error).toBeUndefined();
    expect(shown).toEqual([expect.stringContaining("Trying again in"), "3 variables of web, production"]);
  });
});
