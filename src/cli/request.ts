import { formatTime } from "../core/text.ts";
import { excerpt } from "../core/visible.ts";
import type { AdminContext } from "../desk/context.ts";
import { type Columns, factsOf } from "../desk/outcome.ts";
import {
  approveRequest,
  listRequests,
  type RequestRecord,
  rejectRequest,
  requestWarnings,
  requireDecider,
  shortRequestIds,
  showRequest,
} from "../people/requests.ts";
import { withAdmin } from "../terminal/admin.ts";
import { answer, blockOf } from "../terminal/answer.ts";
import { type CommandContext, noun } from "../terminal/command.ts";
import { readValue } from "../terminal/input.ts";
import { listRecords, type Records, showRecord } from "../terminal/records.ts";
import { unlessClosed, write } from "../terminal/terminal.ts";
import { idVerb, listVerb } from "../terminal/verbs.ts";

export function requestCommand(context: CommandContext) {
  const list = listVerb(
    "request",
    "List the variables that agents ask for, decided ones too.",
    "keyhole request list",
    "keyhole request list --pending --org acme",
  )
    .option("--pending", "only requests that wait for a decision")
    .action(({ pending, ...options }) => {
      const none = pending ? "No request waits for a decision." : "There are no requests.";
      return listRecords(context, requests, options, none, ({ status }) => !pending || status === "pending");
    });

  const show = idVerb(
    "request",
    "show",
    "Show a request with its reason and what was decided.",
    "keyhole request show 0199a3c4",
  ).action(async (id) => {
    const request = await showRecord(context, requests, id, (one) => ({ warnings: warningsAbout(one) }));
    for (const warning of warningsAbout(request)) context.say(warning);
  });

  const reject = idVerb(
    "request",
    "reject",
    "Reject a request. Its agent can read the reason.",
    "keyhole request reject 0199a3c4 --reason duplicate",
  )
    .option("--reason <reason>", "why, in at most 500 characters; agents can read it")
    .action(async (id, { reason }) => {
      const request = await withAdmin(context, (admin) => rejectRequest(admin, id, reason));
      await answer(context, request, `Rejected ${request.name} for ${placeOf(request)}.`);
    });

  return noun("request", "Variables that agents ask for.", list, show, approveVerb(context), reject);
}

function approveVerb(context: CommandContext) {
  return idVerb(
    "request",
    "approve",
    "Create the variable that a request asks for. Its value is read from stdin, byte for byte, or from a hidden prompt.",
    "keyhole request approve 0199a3c4",
    "keyhole request approve 0199a3c4 < value.txt",
    "keyhole request approve 0199a3c4 --file key.pem",
  )
    .option("--file <file>", "read the value from this file")
    .action(async (id, { file }) => {
      await withAdmin(context, async (admin) => {
        const shown = await showRequest(admin, id);
        await requireDecider(admin, shown);
        // The person approves what the screen shows, even if somebody changes the row in between.
        const { stderr } = context.terminal;
        if (!context.json)
          await write(stderr, blockOf(context, stderr, factsOf(shown, allDetails))).catch(unlessClosed);
        await approveShown(context, admin, shown, file);
      });
    });
}

async function approveShown(
  context: CommandContext,
  admin: AdminContext,
  shown: RequestRecord,
  file: string | undefined,
) {
  const before = warningsAbout(shown);
  // With --json, stderr must be one document if the rest fails.
  if (!context.json) for (const warning of before) context.say(warning);
  const value = await readValue(context, shown.name, useVarSet, file);
  const { request, warnings } = await approveRequest(admin, shown, value);
  for (const warning of warnings) context.say(warning);
  const document = { ...request, warnings: [...before, ...warnings] };
  await answer(context, document, `Created ${request.name} in ${placeOf(request)}.`);
}

const useVarSet = 'keyhole var set … --value "" stores an empty value, and then reject the request';

function placeOf({ organization, project, environment }: RequestRecord): string {
  return `${organization}/${project}, ${environment}`;
}

const details: Columns<RequestRecord> = {
  ID: (one) => one.id,
  STATUS: (one) => one.status,
  NAME: (one) => one.name,
  PROJECT: (one) => `${one.organization}/${one.project}`,
  ENVIRONMENT: (one) => one.environment,
  EXPIRES: (one) => formatTime(one.expiresAt),
  KEY: (one) => (one.keyStatus === "active" ? one.keyId : `${one.keyId} (${one.keyStatus})`),
  REASON: (one) => excerpt(one.reason),
};

function warningsAbout(request: RequestRecord): string[] {
  return requestWarnings(request).map((warning) => `WARNING: ${warning}`);
}

const allDetails: Columns<RequestRecord> = {
  ...details,
  "KEY NAME": (one) => excerpt(one.keyName ?? "-"),
  FILED: (one) => formatTime(one.createdAt),
  DECIDED: (one) => formatTime(one.decidedAt),
  "DECIDED BY": (one) => one.decidedBy ?? "-",
  ANSWER: (one) => excerpt(one.decisionReason ?? "-"),
};

const requests: Records<RequestRecord> = {
  list: listRequests,
  show: showRequest,
  shortIds: shortRequestIds,
  columns: allDetails,
  listed: details,
};
