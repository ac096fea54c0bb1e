import { exits, Problem, usageProblem } from "../core/problem.ts";
import { type LogEvent, logEvents } from "../core/words/log-lines.ts";
import { input } from "../people/desk/inputs.ts";
import type { Columns } from "../people/desk/outcome.ts";
import { factsOf } from "../people/desk/outcome.ts";
import type { CredentialType } from "../people/keys/keys.ts";
import { answer, blockOf } from "./terminal/answer.ts";
import { type CommandGroup, processCommand } from "./terminal/draw.ts";
import { readChunks } from "./terminal/input.ts";

const find = processCommand({
  path: "explain",
  about: "Find a request in the server's log, with the reason for its answer, such as why it was a 401 or a 404.",
  examples: [
    "keyhole explain 0f6e2c1a-5b7d-4e0a-9c39-2f4d1b8e7a60 /var/log/keyhole.log",
    "kubectl logs deploy/keyhole | keyhole explain 0f6e2c1a-5b7d-4e0a-9c39-2f4d1b8e7a60",
  ],
  inputs: {
    requestId: input("<request-id>", "the x-request-id of the answer, or its first 8 or more characters"),
    file: input("[file]", "the log, or - for stdin (default: -)"),
  },
  action: async (context, { requestId, file = "-" }) => {
    if (!/^[A-Za-z0-9._-]{1,128}$/.test(requestId)) {
      throw usageProblem("REQUEST_ID is the x-request-id of an answer: letters, digits, dots, _ and -.");
    }
    const fitting: LogEvent[] = [];
    for await (const event of logEvents(readChunks(context, file))) {
      const id = event["event"] === "request" ? event["requestId"] : undefined;
      const fits = id === requestId || (requestId.length >= 8 && String(id).startsWith(requestId));
      if (typeof id === "string" && fits) fitting.push(explained(event));
    }
    const whole = fitting.filter((one) => one["requestId"] === requestId);
    const found = whole.length > 0 ? whole : fitting;
    if (new Set(found.map((one) => one["requestId"])).size > 1) {
      const words = `Several requests begin with ${requestId}: give more of the id.`;
      throw new Problem(exits.notFound, "not_found", words);
    }
    if (found.length === 0) {
      const words = `The log has no request ${requestId}: it may be older or newer than this log.`;
      const more = "Of more than 100 refusals of one kind in a second, the log has only their number.";
      throw new Problem(exits.notFound, "not_found", `${words} ${more}`);
    }
    // Callers may choose the id, so several requests may have it.
    const { stdout } = context.terminal;
    await answer(context, found, "", found.map((one) => blockOf(context, stdout, factsOf(one, columns))).join("\n"));
  },
});

export const explain: CommandGroup = { rows: [find] };

/** The fields of an explained request, with the labels that people see. */
const labels = {
  time: "TIME",
  requestId: "REQUEST",
  route: "ROUTE",
  status: "STATUS",
  code: "CODE",
  reason: "REASON",
  keyId: "KEY",
  trustId: "TRUST",
  organizationId: "ORG",
  durationMs: "MILLISECONDS",
  defect: "DEFECT",
  at: "AT",
  hint: "SEE",
};

function explained(event: LogEvent): LogEvent {
  const keyId = event["keyId"] ?? idIn("key", event["reason"]);
  const trustId = event["trustId"] ?? idIn("trust", event["reason"]);
  const hint = hintFor("key", event["code"], keyId) ?? hintFor("trust", event["code"], trustId);
  const known: LogEvent = { ...event, keyId, trustId, hint };
  return Object.fromEntries(Object.keys(labels).map((name) => [name, known[name] ?? null]));
}

/** The key or trust that the reason names. The log has no key id for a request whose key was refused. */
function idIn(type: CredentialType, reason: unknown): string | null {
  return (typeof reason === "string" && new RegExp(`\\b${type} ([0-9a-f-]{36})\\b`).exec(reason)?.[1]) || null;
}

function hintFor(type: CredentialType, code: unknown, id: unknown): string | null {
  if (typeof id !== "string" || !keyRefusals.test(String(code))) return null;
  return `keyhole ${type} show ${id} shows what the ${type} may read and whether it is valid`;
}

const keyRefusals = /^(?:unauthorized|project_not_found|environment_not_in_scope|(?:surface|resource)_required)$/;

const columns: Columns<LogEvent> = Object.fromEntries(
  Object.entries(labels).map(([name, label]) => [label, (one: LogEvent) => String(one[name] ?? "")]),
);
