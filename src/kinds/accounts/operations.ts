import { type Environment, environments } from "../../core/names.ts";
import { usageProblem } from "../../core/problem.ts";
import { machinesOnlySentence } from "../../core/words/machines-only.ts";
import { decodeText } from "../../core/words/text.ts";
import {
  atVersion,
  choice,
  choices,
  completed,
  environmentList,
  flag,
  formOnly,
  input,
  machinesOnly,
  project,
  requireOneEnvironment,
  typed,
  wide,
} from "../../people/desk/inputs.ts";
import { type Operations, operation } from "../../people/desk/operation.ts";
import { type Columns, done } from "../../people/desk/outcome.ts";
import { rightTo } from "../../people/desk/permit.ts";
import { findProject } from "../../people/desk/projects.ts";
import { listItems, unreadInput } from "../../people/editing/last-reads.ts";
import { remarkInputs } from "../../people/editing/remarks.ts";
import { deletionOf, severalNames } from "../delete.ts";
import { accounts } from "./entry.ts";
import { revealAccount } from "./reveal.ts";
import { type AccountWrite, type Fields, listAccounts, planAccount } from "./write.ts";

const name = completed(input("<name>", "the account"), "items");

export const set = operation({
  path: "account set",
  about:
    "Create or replace a shared account. Its values come from stdin or a hidden prompt: one JSON object of strings. It asks before the account loses a field or an environment.",
  examples: [
    "keyhole account set acme/web stripe --env staging,production < stripe.json",
    "pass show stripe-json | keyhole account set web stripe --env production --machines-only",
    "keyhole account set web stripe --env production --merge < new-password.json",
  ],
  right: rightTo("accounts.write"),
  asks: "needs --yes",
  inputs: {
    project,
    name,
    values: typed({
      bytesMax: 1024 * 1024,
      what: () => "The JSON object",
      prompt: (given) => `Values of ${given["name"]} as a JSON object`,
    }),
    environments: environmentList("all environments it belongs to; asks before it removes it from one"),
    merge: flag("--merge", "keep the fields that are not given, and other environments; null removes a field"),
    machinesOnly,
    ...remarkInputs,
    each: formOnly<ReadonlyMap<Environment, Fields>>(),
  },
  plan: async (admin, { project, name, values: given, environments, ...how }) => {
    if (!admin.isWithin) await findProject(admin, project, "write", environments); // before anything is read
    const values = parseValues(await given.read());
    const { would, ...change } = await planAccount(admin, project, name, environments, values, how);
    const { dropped, lost, created } = would;
    const deed = lossesOf(name, would);
    const losses = { ...(dropped.length > 0 && { dropped }), ...(lost.length > 0 && { lost }) };
    const document = { project, name, environments, status: created ? "created" : "updated", ...losses };
    return {
      ...change,
      // A form takes no more away than somebody says there.
      seen: { ...change.seen, ...(how.each === undefined && { losses: deed }) },
      ...(deed && { deed }),
      document,
      sentence: `Nothing was written. ${setText(document, would, "would be ")}`,
      apply: async () => {
        const written = await change.apply();
        const { machinesOnly } = how;
        const sentence = setText(document, written) + (machinesOnly ? ` ${machinesOnlySentence}` : "");
        return done({ ...document, ...(machinesOnly && { machinesOnly }) }, sentence, written.warnings);
      },
    };
  },
});

/** What an account would lose, as somebody is asked about it; empty if that is nothing. */
function lossesOf(name: string, { dropped, lost }: AccountWrite): string {
  const places = dropped.length > 0 && `take account ${name} out of ${dropped.join(", ")}`;
  const fields = lost.length > 0 && `drop ${lost.map((field) => JSON.stringify(field)).join(", ")} of account ${name}`;
  return [places, fields].filter(Boolean).join(", and ");
}

function setText(
  { project, name, environments }: { project: string; name: string; environments: readonly string[] },
  { created, dropped }: AccountWrite,
  would = "",
): string {
  const did = `Account ${name} ${would}${created ? "created" : "updated"} in ${project} for ${environments.join(", ")}.`;
  if (dropped.length === 0) return did;
  return `${did} It ${would === "" ? "is" : "would be"} no longer in ${dropped.join(", ")}.`;
}

const get = operation({
  path: "account get",
  about: "Print the fields of an account as a JSON object. The audit records that you saw them.",
  examples: [
    "keyhole account get acme/web stripe --env production",
    "keyhole account get acme/web stripe --env production --version 6",
  ],
  right: rightTo("accounts.reveal"),
  inputs: {
    project,
    name,
    environment: choice("--env <env>", "from this environment (default: where it changed last)", environments),
    version: atVersion,
  },
  check: requireOneEnvironment("account get"),
  run: async (admin, { project, name, environment: asked, version }) => {
    const { environment, values } = await revealAccount(admin, project, name, asked, version);
    const [secret, what] = [`${JSON.stringify(values)}\n`, `The fields of ${name} in ${environment}`];
    const document = { project, environment, name, ...(version && { version }) };
    return { document, shows: { secret, what, field: { values } } };
  },
});

const listAll = operation({
  path: "account list",
  about: "List the shared accounts. Their values are never shown.",
  examples: ["keyhole account list acme/web", "keyhole account list acme/web --unread 90d"],
  right: "see",
  inputs: { project, unreadMs: unreadInput(accounts), wide },
  run: async (admin, { project, unreadMs }) => {
    const found = await listAccounts(admin, project);
    const columns: Columns<(typeof found)[number]> = {
      NAME: (one) => one.name,
      ENVIRONMENTS: (one) => one.environments.join(","),
      UPDATED: (one) => ({ at: one.updatedAt }),
    };
    return listItems(admin, { project, descriptor: accounts, unreadMs }, found, columns, (one) => one);
  },
});

export const remove = deletionOf(accounts, {
  called: "name",
  names: severalNames("account"),
  environments: choices("--env <list>", "the environments to delete it from (default: all that have it)", environments),
  examples: [
    "keyhole account delete acme/web stripe",
    "keyhole account delete web mail stripe --env staging --dry-run",
  ],
});

/** Parses JSON; `planAccount` checks that it is an object of strings. The parser's message would quote the text. */
function parseValues(bytes: Uint8Array): unknown {
  const text = decodeText(bytes, "The JSON object");
  let values: unknown;
  try {
    values = JSON.parse(text);
  } catch {
    throw usageProblem('The values must be one JSON object of strings, such as {"user":"…","password":"…"}.');
  }
  const repeated = repeatedField(text, values);
  if (repeated !== undefined) throw usageProblem(`The values name the field '${repeated}' twice.`);
  return values;
}

/** Finds a field that occurs twice in a flat object of strings: JSON.parse silently keeps the last value. */
function repeatedField(text: string, values: unknown): string | undefined {
  if (!Object.values(values ?? {}).every((value) => typeof value === "string")) return undefined;
  // In such text, every other string is a name.
  const strings = text.match(/"(?:[^"\\]|\\.)*"/g) ?? [];
  const names = strings.filter((_, at) => at % 2 === 0).map((quoted) => String(JSON.parse(quoted)));
  return names.find((name, at) => names.indexOf(name) !== at);
}

export const accountOperations: Operations = {
  about: "Shared accounts: several secret fields under one name.",
  rows: [set, get, listAll, remove],
};
