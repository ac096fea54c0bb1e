/** What a hostile or broken server answers, to the client of the commands and to the npm package's. */
import { describe, expect, test } from "bun:test";
import { inspect } from "node:util";
import { Client } from "../../src/client/client.ts";
import { createClient } from "../../src/client/npm/client.ts";
import { honestly, liarStarter, type Question, type Reply, refusal, type Truth } from "../support/liar.ts";

const truth: Truth = { project: "web", environment: "production", variables: { A: "one", B: "two" }, files: [] };
const key = `kh_${"k".repeat(49)}`;
const token = `eyJhbGciOiJFUzI1NiJ9.${"p".repeat(80)}.${"s".repeat(86)}`;

type Selection = { readonly keys?: readonly string[]; readonly prefix?: string };
type Asking = { readonly waitMs?: number; readonly timeoutMs?: number; readonly sent?: string; said?: string[] };
type Ask = (origin: string, asking: Asking, selection?: Selection) => Promise<unknown>;

const byCommand: Ask = (origin, { waitMs = 0, timeoutMs = 10_000, sent = key, said = [] }, selection) => {
  const api = { root: `${origin}/api/v1`, credential: async () => sent, timeoutMs, waitMs };
  const client = new Client({ ...api, say: (line) => said.push(line) });
  return client.variables({ project: "web", environment: "production" }, selection);
};
const byPackage: Ask = (origin, { waitMs = 0, timeoutMs = 10_000, sent = key }, selection) =>
  createClient({ url: origin, token: sent, timeoutMs, waitMs }).variables("web", "production", selection);
const clients = Object.entries({ "a command": byCommand, "the npm package": byPackage });

const startLiar = liarStarter();

const json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const form = /does not have the members that the API describes/;
const broke = /broke before the answer was complete/;
type Lie = [
  what: string,
  reply: (question: Question) => Reply,
  says: RegExp,
  code?: string | undefined,
  of?: Selection,
];
const lies: Lie[] = [
  ["a list for an answer", () => ({ body: [] }), form],
  ["null for an answer", () => ({ body: null }), form],
  ["no list", variables(undefined), form],
  ["an object for a list", variables({ A: "b" }), form],
  ["null for an entry", variables([null]), form],
  ["a name that is a number", variables([pair(1, "x")]), form],
  ["no value", variables([pair("A", undefined)]), form],
  ["null for a value", variables([pair("A", null)]), form],
  ["a number for a value", variables([pair("A", 1)]), form],
  ["a time that is no number", variables([{ ...pair("A", "x"), updatedAt: "1" }]), form],
  ["another environment", variables([], "staging"), /another project or environment/],
  ["no environment", variables([], null), /another project or environment/],
  ["a name twice", variables([pair("A", "x"), pair("A", "y")]), /"A" is there twice/],
  ["a name that was not asked for", variables([pair("A", "x")]), /"A" was not asked for/, undefined, { keys: ["B"] }],
  ["a name without the prefix", variables([pair("A", "x")]), /"A" was not asked for/, undefined, { prefix: "B" }],
  ["text for JSON", () => ({ body: "A=b\n", headers: { "Content-Type": "text/plain" } }), /not JSON/],
  ["a web page", () => ({ body: "<html>", headers: { "Content-Type": "text/html" } }), /not JSON/],
  ["half a body", () => ({ body: '{"environment":"production","variables":[' }), /not complete JSON/],
  ["no body", () => ({ body: "" }), /not complete JSON/],
  ["bytes that are not UTF-8", () => ({ body: Buffer.from('{"a":"\xff"}', "latin1") }), /not complete JSON/],
  ["a byte order mark", () => ({ body: '\ufeff{"environment":"production"}' }), /not complete JSON/],
  [
    "a huge body that is announced",
    () => ({ endless: Buffer.alloc(1000, 0x20), headers: { "Content-Length": String(2 ** 40) } }),
    /longer than 16384 KiB/,
  ],
  ["a redirect", () => ({ status: 302, headers: { Location: "/api/v1/elsewhere" } }), /redirect \(302\)/, "redirected"],
  ["a redirect away", () => ({ status: 308, headers: { Location: "http://192.0.2.1/" } }), /\(308\)/, "redirected"],
  ["a 304 that nobody asked for", () => ({ status: 304 }), /nothing changed since an answer/, "invalid_answer"],
  ["a body cut short", () => ({ raw: `${json}Content-Length: 900\r\n\r\n{"env` }), broke, "unreachable"],
  ["a piece cut short", () => ({ raw: `${json}Transfer-Encoding: chunked\r\n\r\n50\r\n{"env` }), broke, "unreachable"],
  ["no HTTP", () => ({ raw: "220 smtp ready\r\n" }), /cannot be reached/, "unreachable"],
  ["nothing", () => ({ raw: "" }), /cannot be reached/, "unreachable"],
  ["silence", () => ({ silent: true }), /did not answer within 2 s/, "timeout"],
  ["204", () => ({ status: 204 }), /answered 204/, "http_204"],
  ["206 with half a set", (question) => ({ ...honestly(truth, question), status: 206 }), /answered 206/, "http_206"],
  ["a refusal named timeout", () => refusal(400, "timeout", "No."), /^The server answered timeout: No\.$/, "timeout"],
  [
    "a proxy's page",
    () => ({ status: 502, body: "<b>secret</b>", headers: { "Content-Type": "text/html" } }),
    /answered 502, but not in Keyhole's format: a proxy may have answered\.$/,
    "http_502",
  ],
  [
    "a refusal of more than 64 KiB",
    () => ({ status: 401, body: `{"error":"${"x".repeat(70_000)}","code":"unauthorized"}` }),
    /answered 401/,
    "http_401",
  ],
];

const quoting: [where: string, reply: (sent: string) => Reply][] = [
  ["in a refusal's sentence", (sent) => refusal(403, "forbidden", `You sent Authorization: Bearer ${sent}!`)],
  ["in the sentence of a busy server", (sent) => refusal(503, "unavailable", `You sent ${sent}`)],
  ["cut short", (sent) => refusal(403, "forbidden", `You sent ${sent.slice(0, -1)}`)],
  ["at the end of a sentence that is cut", (sent) => refusal(403, "forbidden", "x".repeat(5960) + sent)],
  ["in the code", (sent) => refusal(403, sent, "Refused.")],
  ["as the request's id", (sent) => ({ ...refusal(403, "forbidden", "Refused."), headers: { "x-request-id": sent } })],
  ["as a variable's name", (sent) => ({ body: answerOf([pair(sent, "x"), pair(sent, "x")]) })],
  ["in an answer that is no JSON", (sent) => ({ body: sent })],
];

describe.each(clients)("%s", (_, ask) => {
  const failing = async (reply: (question: Question) => Reply, asking: Asking = {}, selection?: Selection) => {
    const liar = await startLiar(reply);
    const error = await ask(liar.origin, asking, selection).then(
      () => new Error("it did not fail"),
      (thrown: unknown) => thrown,
    );
    return { error: error as Error & { code?: string; requestId?: string }, liar };
  };

  test.each(lies)("refuses %s, and does not ask again", async (_, reply, says, code = "invalid_answer", selection) => {
    const timeoutMs = says.source.includes("within 2 s") ? 2000 : 10_000;
    const { error, liar } = await failing(reply, { timeoutMs, waitMs: 60_000 }, selection);
    expect(error.message).toMatch(says);
    expect(error.code).toBe(code);
    expect(liar.questions).toHaveLength(1);
  });

  test("does not read an endless body for long", async () => {
    const { error, liar } = await failing(() => ({ endless: Buffer.alloc(65536, 0x20) }));
    expect(error.message).toContain("longer than 16384 KiB");
    // Bytes in socket buffers count too, and a kernel may keep as many again or more.
    expect(liar.endlessBytes()).toBeLessThan(64 * 1024 * 1024);
  });

  test.each(quoting)("tells nobody the key that a proxy quotes %s", async (where, reply) => {
    for (const sent of [key, token]) {
      if (sent === token && where === "cut short") continue; // only a key is known by its beginning
      const said: string[] = [];
      const { error } = await failing(() => reply(sent), { waitMs: 600, sent, said });
      const shown = [error.message, error.stack, error.code, error.requestId];
      const told = [...shown, ...said, inspect(error), Bun.inspect(error)];
      for (const secret of [sent, key.slice(0, 20)]) expect(told.join("\n")).not.toContain(secret);
    }
  });
});

/** An answer with this in place of its list. */
function variables(list: unknown, environment: unknown = "production"): (question: Question) => Reply {
  return () => ({ body: answerOf(list, environment) });
}

function answerOf(list: unknown, environment: unknown = "production") {
  return { environment, variables: list };
}

function pair(key: unknown, value: unknown) {
  return { key, value, updatedAt: 1 };
}
