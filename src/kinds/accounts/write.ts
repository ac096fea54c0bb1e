import { type Environment, environments, environmentsOf } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import type { AdminContext } from "../../desk/context.ts";
import type { Seen } from "../../desk/plan.ts";
import { seenOf } from "../../desk/plan.ts";
import { findProject, type PlannedProject } from "../../desk/projects.ts";
import { displayName, requireEnvironments, requireText } from "../../desk/validate.ts";
import { itemsOf, type OpenSet, openItems, requireSets } from "../../editing/open.ts";
import type { SetChanges } from "../../editing/write.ts";
import { changingProject, type DryRun } from "../../editing/write-project.ts";
import { unseenIn } from "../../words/unseen.ts";
import { type AccountEntry, accounts } from "./entry.ts";

/** What a change did, or would do: whether the account is new, the environments that it leaves, and what it read. */
export type AccountWrite = {
  readonly created: boolean;
  readonly dropped: readonly Environment[];
  readonly warnings: readonly string[];
  readonly seen: ReturnType<typeof seenOf>;
};

/** The sets as somebody saw them: the change is refused if one of them has changed since. */
type SeenAccounts = { readonly seen?: Seen };

/** The most bytes an account's fields may take as JSON. */
const accountBytesMax = 64 * 1024;

/**
 * Writes an account: its fields and its environments become exactly these, as far as the person may write.
 * @param values - must be an object of strings, and not empty
 * @param agreed - the environments that a person agreed to take it out of; another one is a `conflict`
 */
export async function setAccount(
  admin: AdminContext,
  where: string,
  name: string,
  environmentNames: readonly string[],
  values: unknown,
  { agreed = environments, dryRun, seen = {} }: AccountOptions = {},
): Promise<AccountWrite> {
  const { targets, value, warnings } = validateAccount(name, environmentNames, values);
  await findProject(admin, where, "write", targets);
  const found = await findProject(admin, where, "write");
  const plan = async (project: PlannedProject) => {
    const sets = await requireSets(admin, project, accounts, seen, [name]);
    const holders = sets.filter(({ names }) => names.includes(name)).map(({ environment }) => environment);
    const dropped = holders.filter((environment) => !targets.includes(environment));
    const surprise = dropped.find((environment) => !agreed.includes(environment));
    if (surprise !== undefined) {
      throw new Refused("conflict", `Somebody has added ${name} to ${surprise} since. Nothing was changed: try again.`);
    }
    const changes = new Map<OpenSet<AccountEntry>, SetChanges<AccountEntry>>();
    for (const set of sets.filter(({ environment }) => [...targets, ...dropped].includes(environment))) {
      const isTarget = targets.includes(set.environment);
      const item = isTarget ? { entry: { name, updatedAt: project.now }, value } : null;
      const before = openItems({ project, descriptor: accounts, environment: set.environment }, set);
      changes.set(before, new Map([[name, item]]));
    }
    const outcome = { created: holders.length === 0, dropped, warnings, seen: seenOf(project, sets) };
    return { changes, outcomeOf: () => outcome };
  };
  return changingProject(admin, found, accounts, plan, { dryRun });
}

/** What the person saw, and agreed to. */
export type AccountOptions = SeenAccounts & DryRun & { readonly agreed?: readonly Environment[] | undefined };

/** The environments of an account and its fields as a set holds them, all checked before anything is written. */
export function validateAccount(name: string, environmentNames: readonly string[], values: unknown) {
  displayName("account", name);
  const targets = environmentsOf(requireEnvironments(environmentNames));
  const fields = fieldsOf(values);
  const value = Buffer.from(JSON.stringify(fields));
  const warnings = Object.entries(fields).flatMap(([field, text]) =>
    unseenIn(`The field ${JSON.stringify(field)}`, text),
  );
  if (value.length <= accountBytesMax) return { targets, value, warnings };
  const words = `The account's fields take ${value.length} bytes; at most ${accountBytesMax} are allowed.`;
  throw new Refused("bound", words);
}

/** The project's accounts in byte order of name, without their fields. */
export async function listAccounts(admin: AdminContext, where: string) {
  const sets = await requireSets(admin, await findProject(admin, where, "see"), accounts);
  return itemsOf(accounts, sets).map(({ entry: { name }, environments, updatedAt }) => {
    return { name, environments, updatedAt };
  });
}

function fieldsOf(values: unknown): Record<string, string> {
  if (typeof values !== "object" || values === null || Array.isArray(values)) {
    throw new Refused("invalid", 'An account is one JSON object of strings, such as {"username":"ci","password":"…"}.');
  }
  const fields = Object.entries(values);
  if (fields.length === 0) throw new Refused("invalid", "An account needs at least one field.");
  for (const [field, value] of fields) {
    displayName("field", field);
    if (typeof value !== "string") throw new Refused("invalid", `The field ${JSON.stringify(field)} is not a string.`);
    requireText(`The field ${JSON.stringify(field)}`, value);
  }
  return values as Record<string, string>;
}
