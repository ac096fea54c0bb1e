import type { AdminContext } from "../desk/context.ts";
import { nameWarnings, valueWarnings } from "../kinds/variables/env-file.ts";
import {
  approveRequest,
  listRequests,
  type RequestRecord,
  rejectRequest,
  requirePending,
  shortRequestIds,
  showRequest,
} from "../people/requests.ts";
import { withAdmin } from "../terminal/admin.ts";
import { answer, answerList, answerOne, blockOf, type Columns, wideOption } from "../terminal/answer.ts";
import { noun, type Surroundings, verb } from "../terminal/command.ts";
import { readValue } from "../terminal/input.ts";
import { excerpt, formatTime, unlessClosed, write } from "../terminal/terminal.ts";

/** `keyhole request …` */
export function requestCommand(here: Surroundings) {
  const list = verb(
    "list",
    "List the variables that agents ask for, decided ones too.",
    "keyhole request list",
    "keyhole request list --pending --org acme",
  )
    .option("--org <org>", "only requests of this organization")
    .option("--pending", "only requests that wait for a decision")
    .option(...wideOption)
    .action(async ({ org, pending, wide }) => {
      const [all, short] = await withAdmin(here, async (admin) => [
        await listRequests(admin, org),
        await shortRequestIds(admin),
      ]);
      const requests = pending ? all.filter(({ status }) => status === "pending") : all;
      const { ID, ...rest } = details;
      const columns = { ID: (one: RequestRecord) => short(ID(one)), ...rest };
      const none = pending ? "No request waits for a decision." : "There are no requests.";
      await answerList(here, requests, none, columns, wide);
    });

  const show = verb("show", "Show a request with its reason and what was decided.", "keyhole request show 0199a3c4")
    .argument("<id>", "the request's id, or its first 8 or more characters")
    .action(async (id) => {
      const request = await withAdmin(here, (admin) => showRequest(admin, id));
      const warnings = warningsAbout(request);
      await answerOne(here, { ...request, warnings }, request, shownOfOne);
      for (const warning of warnings) here.say(warning);
    });

  const approve = verb(
    "approve",
    "Create the variable that a request asks for. Its value is read from stdin, byte for byte, or from a hidden prompt.",
    "keyhole request approve 0199a3c4",
    "keyhole request approve 0199a3c4 < value.txt",
    "keyhole request approve 0199a3c4 --file key.pem",
  )
    .argument("<id>", "the request's id, or its first 8 or more characters")
    .option("--file <file>", "read the value from this file")
    .action(async (id, { file }) => {
      await withAdmin(here, async (admin) => {
        const shown = await showRequest(admin, id);
        requirePending(shown);
        // What is approved is what stands on the screen, whatever is written to the database meanwhile.
        const { stderr } = here.terminal;
        if (!here.json) await write(stderr, blockOf(here, stderr, shown, shownOfOne)).catch(unlessClosed);
        await approveShown(here, admin, shown, file);
      });
    });

  const reject = verb(
    "reject",
    "Reject a request. Its agent can read the reason.",
    "keyhole request reject 0199a3c4 --reason duplicate",
  )
    .argument("<id>", "the request's id, or its first 8 or more characters")
    .option("--reason <reason>", "why, in at most 500 characters; agents can read it")
    .action(async (id, { reason }) => {
      const request = await withAdmin(here, (admin) => rejectRequest(admin, id, reason));
      await answer(here, request, `Rejected ${request.name} for ${placeOf(request)}.`);
    });

  return noun("request", "Variables that agents ask for.", list, show, approve, reject);
}

async function approveShown(here: Surroundings, admin: AdminContext, shown: RequestRecord, file: string | undefined) {
  const before = warningsAbout(shown);
  // With --json, stderr must be one document if the rest fails.
  if (!here.json) for (const warning of before) here.say(warning);
  const value = await readValue(here, shown.name, useVarSet, file);
  const { request, warnings } = await approveRequest(admin, shown, value);
  const after = [...valueWarnings(shown.name, value), ...warnings];
  for (const warning of after) here.say(warning);
  await answer(
    here,
    { ...request, warnings: [...before, ...after] },
    `Created ${request.name} in ${placeOf(request)}.`,
  );
}

const useVarSet = 'keyhole var set … --value "" stores an empty value, and then reject the request';

function placeOf({ organization, project, environment }: RequestRecord): string {
  return `${organization}/${project}, ${environment}`;
}

const details = {
  ID: (one: RequestRecord) => one.id,
  STATUS: (one: RequestRecord) => one.status,
  NAME: (one: RequestRecord) => one.name,
  PROJECT: (one: RequestRecord) => `${one.organization}/${one.project}`,
  ENVIRONMENT: (one: RequestRecord) => one.environment,
  EXPIRES: (one: RequestRecord) => formatTime(one.expiresAt),
  KEY: (one: RequestRecord) => (one.keyStatus === "active" ? one.keyId : `${one.keyId} (${one.keyStatus})`),
  REASON: (one: RequestRecord) => excerpt(one.reason),
};

/** What a person must know before they decide. */
function warningsAbout({ status, name, keyStatus }: RequestRecord): string[] {
  if (status !== "pending") return [];
  const ofName = nameWarnings(name);
  const ofKey = `WARNING: The key that asked is ${keyStatus} and reads nothing any more.`;
  return [...(keyStatus === "active" ? [] : [ofKey]), ...(ofName === undefined ? [] : [`WARNING: ${ofName}.`])];
}

const shownOfOne: Columns<RequestRecord> = {
  ...details,
  "KEY NAME": (one) => excerpt(one.keyName ?? "-"),
  FILED: (one) => formatTime(one.createdAt),
  DECIDED: (one) => formatTime(one.decidedAt),
  "DECIDED BY": (one) => one.decidedBy ?? "-",
  ANSWER: (one) => excerpt(one.decisionReason ?? "-"),
};
