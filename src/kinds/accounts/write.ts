import { type Environment, environmentsOf, type Remarks, remarkNames } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { unseenIn } from "../../core/words/unseen.ts";
import type { AdminContext } from "../../people/desk/context.ts";
import { findProject, findToChange, placeOf } from "../../people/desk/projects.ts";
import { displayName, requireEnvironments, requireText } from "../../people/desk/validate.ts";
import { itemsOf, type OpenSet, openItems, openVersion, requireSets } from "../../people/editing/open.ts";
import { remarked, requireRemarks } from "../../people/editing/remarks.ts";
import { type SetChanges, zeroValues } from "../../people/editing/write.ts";
import { planItems } from "../../people/editing/write-project.ts";
import { newCoin } from "../../seal/canary.ts";
import { may } from "../../serve/access/rights.ts";
import { type AccountEntry, accounts } from "./entry.ts";

/** What a change did, or would do: whether the account is new, and what it loses. */
export type AccountWrite = Awaited<ReturnType<typeof planAccount>>["would"];

/** How the account is written. A remark is empty for none. Default: what it has in the environments that are named. */
export type AccountOptions = Remarks & {
  /** Whether fields that are not given stay. A field that is null is removed. */
  readonly merge?: boolean | undefined;
  /** The fields of each environment that is named, if they are not the same. */
  readonly each?: ReadonlyMap<Environment, Fields> | undefined;
  /** Whether no person reads it from now on. Default: it stays what it is in each environment. */
  readonly machinesOnly?: true | undefined;
};

/** The most bytes an account's fields may take as JSON. */
const accountBytesMax = 64 * 1024;

/**
 * Writes an account: its fields and its environments become exactly these, as far as the person may write, unless it is
 * merged with what is there.
 * @param values - must be an object of strings
 */
export async function planAccount(
  admin: AdminContext,
  where: string,
  name: string,
  environmentNames: readonly string[],
  values: unknown,
  { merge = false, each, machinesOnly, ...given }: AccountOptions = {},
) {
  const { targets, fields: same, warnings } = validateAccount(name, environmentNames, values, merge);
  const remarks = requireRemarks(name, given);
  const project = await findToChange(admin, where, "write");
  if (targets.some((one) => !project.permit.allows("write", one))) await findProject(admin, where, "write", targets);
  const sets = await requireSets(admin, project, accounts);
  const holders = sets.filter(({ names }) => names.includes(name)).map(({ environment }) => environment);
  const dropped = merge ? [] : holders.filter((environment) => !targets.includes(environment));
  const changes = new Map<OpenSet<AccountEntry>, SetChanges<AccountEntry>>();
  const there = new Map<Environment, { readonly entry: AccountEntry; readonly old: Fields }>();
  const lost = new Set<string>();
  for (const set of sets.filter(({ environment }) => [...targets, ...dropped].includes(environment))) {
    const { environment } = set;
    const fields = each?.get(environment) ?? same;
    const before = openItems({ project, descriptor: accounts, environment }, set);
    const old = fieldsIn(before, name);
    const item = before.items.get(name);
    if (item && !item.isHidden) there.set(environment, { entry: item.entry, old });
    const isTarget = targets.includes(environment);
    const write = () => {
      const value = sealable(merge ? { ...old, ...fields } : fields);
      const coin = newCoin(admin.systemKeys.listing, false, machinesOnly ?? item?.isHidden);
      return { entry: { name, updatedAt: project.now, ...remarked(remarks, item?.entry), coin }, value };
    };
    // Earlier versions, which a person may read, would have the same fields.
    if (merge && machinesOnly && isTarget && item?.isHidden === false)
      throw new Refused(
        "invalid",
        `${name} needs all its fields again to be for machines only: write them without --merge.`,
      );
    const isKept = merge && item && Object.keys(fields).length === 0;
    const kept = isKept && { ...item, entry: { ...item.entry, ...remarked(remarks, item.entry) } };
    changes.set(before, new Map([[name, isTarget ? kept || write() : null]]));
    const isSeen = isTarget && may(admin.rights, "see", placeOf(project), environment);
    for (const field of isSeen && !merge ? Object.keys(old) : []) if (!Object.hasOwn(fields, field)) lost.add(field);
  }
  // It leaves the environments that are dropped. Lost are the fields that are in one of its environments and not among the
  // new ones, as far as the person may see it.
  const outcome = { created: holders.length === 0, dropped, lost: [...lost].sort(), warnings };
  const looked = sets.map((set) => {
    const { environment } = set;
    const of = { project, descriptor: accounts, environment, version: set.stored.version };
    if (!merge) return { set: of, names: [name] };
    const fields = each?.get(environment) ?? same;
    // What stays as it is may have changed. Who may not read the values is not told which of them did.
    const isSame = async (shown: number) => {
      if (!targets.includes(environment)) return true;
      const now = there.get(environment);
      if (now === undefined || machinesOnly || !may(admin.rights, "reveal", placeOf(project), environment))
        return false;
      const set = await openVersion(admin, of, shown);
      const [entry, old] = [set.items.get(name)?.entry, fieldsIn(set, name)];
      zeroValues(set);
      const isNoted = remarkNames.some((one) => given[one] !== undefined && entry?.[one] !== now.entry[one]);
      return entry !== undefined && !isNoted && Object.keys(fields).every((one) => old[one] === now.old[one]);
    };
    return { set: of, names: [name], isSame };
  });
  return planItems(admin, project, accounts, { changes, outcomeOf: () => outcome, looked });
}

/** The names of an account's fields, where it is and a person may see and write it. Values are not shown. */
export async function fieldNames(admin: AdminContext, where: string, name: string) {
  const project = await findProject(admin, where, "write");
  const sets = (await requireSets(admin, project, accounts)).filter(
    ({ names, environment }) => names.includes(name) && may(admin.rights, "see", placeOf(project), environment),
  );
  const opened = sets.map((set) => openItems({ project, descriptor: accounts, environment: set.environment }, set));
  return new Map(opened.map((set) => [set.environment, Object.keys(fieldsIn(set, name))]));
}

/** Of whose values only those that are sealed again may be used. */
function fieldsIn({ items }: OpenSet<AccountEntry>, name: string): Readonly<Record<string, string>> {
  const value = items.get(name)?.value;
  return value ? (JSON.parse(String(Buffer.from(value.unseen()))) as Record<string, string>) : {};
}

/** Fields as a set holds them, without those that are null. @throws Refused `invalid` if none is left, `bound` */
function sealable(fields: Fields): Buffer {
  const left = Object.entries(fields).filter(([, value]) => value !== null);
  if (left.length === 0) throw new Refused("invalid", "An account needs at least one field.");
  const value = Buffer.from(JSON.stringify(Object.fromEntries(left)));
  if (value.length <= accountBytesMax) return value;
  const words = `The account's fields take ${value.length} bytes; at most ${accountBytesMax} are allowed.`;
  throw new Refused("bound", words);
}

/** By name. A field that is null is removed. */
export type Fields = Readonly<Record<string, string | null>>;

/** The environments of an account and its fields, all checked before anything is written. */
export function validateAccount(name: string, environmentNames: readonly string[], values: unknown, merge = false) {
  displayName("account", name);
  const targets = environmentsOf(requireEnvironments(environmentNames));
  const fields = validateFields(values, merge);
  if (!merge) sealable(fields);
  const warnings = Object.entries(fields).flatMap(([field, text]) =>
    text === null ? [] : unseenIn(`The field ${JSON.stringify(field)}`, text),
  );
  return { targets, fields, warnings };
}

/** The project's accounts in byte order of name, without their fields. */
export async function listAccounts(admin: AdminContext, where: string) {
  const sets = await requireSets(admin, await findProject(admin, where, "see"), accounts);
  return itemsOf(accounts, sets).map(({ entry: { name }, ...item }) => ({ name, ...item }));
}

function validateFields(values: unknown, merge: boolean): Fields {
  if (typeof values !== "object" || values === null || Array.isArray(values)) {
    throw new Refused("invalid", 'An account is one JSON object of strings, such as {"username":"ci","password":"…"}.');
  }
  for (const [field, value] of Object.entries(values)) {
    displayName("field", field);
    if (field === "__proto__")
      throw new Refused("invalid", "A field cannot be called __proto__: JavaScript readers lose it.");
    if (merge && value === null) continue;
    if (typeof value !== "string") throw new Refused("invalid", `The field ${JSON.stringify(field)} is not a string.`);
    requireText(`The field ${JSON.stringify(field)}`, value);
  }
  return values as Fields;
}
