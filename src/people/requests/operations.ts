import { variableValueBytesMax } from "../../core/names.ts";
import { shortIds } from "../desk/ids.ts";
import { flag, id, input, ofOrganization, typed, wide } from "../desk/inputs.ts";
import { type Operations, operation } from "../desk/operation.ts";
import { type Columns, done, factsOf, list, one } from "../desk/outcome.ts";
import { rightTo } from "../desk/permit.ts";
import { listRequests, planDecision, type RequestRecord, requestWarnings, showRequest } from "./requests.ts";

const listAll = operation({
  path: "request list",
  about: "List the variables that agents ask for, decided ones too.",
  examples: ["keyhole request list", "keyhole request list --pending --org acme"],
  right: ["see", "decide"],
  inputs: {
    organization: ofOrganization("requests"),
    wide,
    pending: flag("--pending", "only requests that wait for a decision"),
  },
  run: async (admin, { organization, pending }) => {
    const all = await listRequests(admin, organization);
    const short = shortIds(organization === undefined ? all : await listRequests(admin));
    const of = organization === undefined ? "" : ` of ${organization}`;
    const which = `${of}${admin.rights === "operator" ? "" : " that you may see"}`;
    const none = pending ? `No request${which} waits for a decision.` : `There are no requests${which}.`;
    const wanted = all.filter(({ status }) => !pending || status === "pending");
    return list(wanted, { ...details, ID: ({ id }) => short(id) }, none);
  },
});

const show = operation({
  path: "request show",
  about: "Show a request with its reason and the decision.",
  examples: ["keyhole request show 0199a3c4"],
  right: ["see", "decide"],
  inputs: { id: id("request") },
  run: async (admin, { id }) => {
    const request = await showRequest(admin, id);
    const warnings = warningsAbout(request);
    return { ...one(request, allDetails, { warnings }), warnings };
  },
});

export const approve = operation({
  path: "request approve",
  about:
    "Create the variable that a request asks for. Its value is read from stdin, byte for byte, or from a hidden prompt.",
  examples: [
    "keyhole request approve 0199a3c4",
    "keyhole request approve 0199a3c4 < value.txt",
    "keyhole request approve 0199a3c4 --file key.pem",
  ],
  right: rightTo("request.approve"),
  showsFirst: true,
  inputs: {
    id: id("request"),
    value: typed(
      {
        bytesMax: variableValueBytesMax,
        what: ({ name }) => `The value of ${name}`,
        prompt: ({ name }) => `Value of ${name}`,
        unlessEmpty: 'keyhole var set … --value "" stores an empty value, and then reject the request',
      },
      "--file <file>",
      "read the value from this file",
    ),
  },
  plan: async (admin, { id, value }) => {
    const { request, seen, approve } = await planDecision(admin, id);
    const warnings = warningsAbout(request);
    return {
      seen,
      document: request,
      shows: factsOf(request, allDetails),
      warnings,
      sentence: `Nothing was written. It would create ${request.name} in ${placeOf(request)}.`,
      apply: async () => {
        const approved = await approve(await value.read({ name: request.name }));
        const all = [...warnings, ...approved.warnings];
        const made = done(request, `Created ${request.name} in ${placeOf(request)}.`, approved.warnings);
        return { ...made, document: { ...approved.request, warnings: all } };
      },
    };
  },
});

export const reject = operation({
  path: "request reject",
  about: "Reject a request. Its agent can read the reason.",
  examples: ["keyhole request reject 0199a3c4 --reason duplicate"],
  right: rightTo("request.reject"),
  inputs: {
    id: id("request"),
    reason: input("--reason <reason>", "why, in at most 500 characters; agents can read it"),
  },
  plan: async (admin, { id, reason }) => {
    const { request, seen, reject } = await planDecision(admin, id);
    const { name } = request;
    return {
      seen,
      document: request,
      sentence: `Nothing was written. It would reject ${name} for ${placeOf(request)}.`,
      apply: async () => done(await reject(reason), `Rejected ${name} for ${placeOf(request)}.`),
    };
  },
});

function placeOf({ organization, project, environment }: RequestRecord): string {
  return `${organization}/${project}, ${environment}`;
}

const details: Columns<RequestRecord> = {
  ID: (one) => one.id,
  STATUS: (one) => one.status,
  NAME: (one) => one.name,
  PROJECT: (one) => `${one.organization}/${one.project}`,
  ENVIRONMENT: (one) => ({ words: [one.environment] }),
  EXPIRES: (one) => ({ at: one.expiresAt }),
  KEY: (one) => (one.keyStatus === "active" ? one.keyId : `${one.keyId} (${one.keyStatus})`),
  REASON: (one) => ({ name: one.reason }),
};

function warningsAbout(request: RequestRecord): string[] {
  return requestWarnings(request).map((warning) => `WARNING: ${warning}`);
}

/** Everything that is shown of a request. */
export const allDetails: Columns<RequestRecord> = {
  ...details,
  "KEY NAME": (one) => ({ name: one.keyName }),
  FILED: (one) => ({ at: one.createdAt }),
  DECIDED: (one) => ({ at: one.decidedAt }),
  "DECIDED BY": (one) => one.decidedBy ?? "-",
  ANSWER: (one) => ({ name: one.decisionReason }),
};

export const requests: Operations = { about: "Variables that agents ask for.", rows: [listAll, show, approve, reject] };
