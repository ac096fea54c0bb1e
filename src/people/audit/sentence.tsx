/** @jsxImportSource preact */

import { environments } from "../../core/names.ts";
import { changesOf, Env, FirstFew, joined, Name } from "../../dashboard/parts/parts.tsx";
import { projectPagePath } from "../../dashboard/parts/paths.ts";
import { everyKind } from "../../kinds/kind.ts";
import { descriptorOf } from "../../kinds/people.ts";
import { alarmActions, machineActions, peopleActions } from "../../record/entry.ts";
import { type AuditRecord, namesWith } from "./audit.ts";

type SentenceProps = {
  readonly entry: AuditRecord;
  readonly keys: ReadonlyMap<string, string>;
  /** Whether the project's name leads to its page. */
  readonly isLinked: boolean;
};

/** A change or a reveal without who did it: `changed STRIPE_KEY in production of acme/web`. */
export function Sentence({ entry, keys, isLinked }: SentenceProps) {
  const [kind = "", verb] = entry.action.split(".");
  if (verb !== undefined && everyKind.some((descriptor) => descriptor.kind === kind)) {
    return <ItemSentence entry={entry} kind={kind} verb={verb} isLinked={isLinked} />;
  }
  const deed = deedOf(entry);
  if (deed === undefined) return <code>{entry.action}</code>;
  const parts = deed.replace("|", "").split(/\{(\w+)\}/);
  // The words between braces have the odd indices.
  return <>{parts.map((part, at) => (at % 2 === 0 ? part : <SentencePart word={part} entry={entry} keys={keys} />))}</>;
}

/** The sentence of an action that is not about items, as {@link deeds} has it. */
function deedOf(entry: DoneEntry): string | undefined {
  const action = [...peopleActions, ...alarmActions, ...machineActions].find((known) => known === entry.action);
  const deed = action && deeds[action];
  return typeof deed === "function" ? deed(entry) : deed;
}

/** The kind that an action is about. Reads of files and of `/secrets` are not called by it. */
export function kindOfAction(action: string) {
  return everyKind.find(({ actions }) => actions.some((one) => one === action));
}

/** What an action does to items, unless it writes them. */
export function verbOf(action: string): string | undefined {
  return verbs.get(action.slice(action.indexOf(".")));
}

const verbs: ReadonlyMap<string, string> = new Map([
  [".read", "read"],
  [".reveal", "saw"],
  [".rollback", "put back"],
]);

/** What was done, in a word or a few, for a table that says the rest in columns of its own: `changed`, `created the key`. */
export function deedWords(entry: DoneEntry): string {
  const descriptor = kindOfAction(entry.action);
  if (descriptor === undefined) return deedOf(entry)?.split(/\||\s*\{/)[0] ?? entry.action;
  const { added = [], changed = [], deleted = [] } = entry;
  const written = changesOf({ added, changed, deleted }).map(([words]) => words);
  const words = verbOf(entry.action) ?? (written.join(", ") || "wrote");
  // Most entries are about variables, so the word is left out there.
  return descriptor === everyKind[0] ? words : `${words} ${descriptor.item}`;
}

/** The text that replaces a word in braces. */
function SentencePart(props: {
  readonly word: string;
  readonly entry: AuditRecord;
  readonly keys: ReadonlyMap<string, string>;
}) {
  const { word, entry, keys } = props;
  const names = entry.names.map((name) => keys.get(name) ?? name);
  if (word === "organization") return <Names items={[entry.organization ?? ""]} />;
  if (word === "project") return <Names items={[whereOf(entry)]} />;
  if (word === "environment") return <EnvironmentOf entry={entry} />;
  if (word === "first") return <Names items={names.slice(0, 1)} />;
  return <Names items={word === "rest" ? names.slice(1) : names} />;
}

/** The environment that an entry names, if it is one. */
export function EnvironmentOf({ entry }: { readonly entry: Pick<AuditRecord, "environment"> }) {
  const environment = environments.find((one) => one === entry.environment);
  return environment === undefined ? null : <Env value={environment} />;
}

/** What was done to items: which were added, changed, deleted, put back or seen, and where. */
function ItemSentence(props: Omit<SentenceProps, "keys"> & { readonly kind: string; readonly verb: string }) {
  const { entry, kind, verb, isLinked } = props;
  const { added = [], changed = [], deleted = [] } = entry;
  const parts = verb === "reveal" ? [["saw", entry.names] as const] : changesOf({ added, changed, deleted });
  const { item } = descriptorOf(kind);
  return (
    <>
      {verb === "rollback" && `went back to earlier ${kind}${parts.length > 0 ? ": " : ""}`}
      {verb !== "rollback" && parts.length === 0 && `wrote the ${kind}`}
      {joined(
        parts.map(([words, names]) => (
          <>
            {words} the {names.length === 1 ? item : kind} <Names items={names} />
          </>
        )),
      )}
      {entry.environment !== null && [" in ", <EnvironmentOf entry={entry} />]} of{" "}
      {isLinked ? <a href={projectPagePath(whereOf(entry), kind)}>{whereOf(entry)}</a> : whereOf(entry)}
    </>
  );
}

/** @param looked - a part of a name that somebody looks for: names with it stand first, and are marked */
export function Names({ items, looked }: { readonly items: readonly string[]; readonly looked?: string | undefined }) {
  const isFound = looked === undefined ? () => false : namesWith(looked);
  const found = items.filter(isFound).map((name) => (
    <mark>
      <Name>{name}</Name>
    </mark>
  ));
  const others = items.filter((name) => !isFound(name)).map((name) => <Name>{name}</Name>);
  return <FirstFew items={[...found, ...others]} />;
}

function whereOf({ organization, project }: AuditRecord): string {
  return `${organization}/${project}`;
}

/** What a sentence is made of; a filter knows the action alone. */
type DoneEntry = Pick<AuditRecord, "action"> & Partial<AuditRecord>;

/**
 * What was done, by action. In braces: the organization, the project, the environment, all names of the entry, its
 * first name, or the rest of them. What is before a bar, or before the first brace, is enough for a table.
 */
const deeds: Readonly<
  Record<
    (typeof peopleActions | typeof alarmActions | typeof machineActions)[number],
    string | ((one: DoneEntry) => string)
  >
> = {
  "organization.create": "created the organization {organization}",
  "organization.plan": "set the plan| of {organization} to {names}",
  "organization.delete": "deleted the organization {organization}",
  "project.create": "created the project {project}",
  "project.environments": "set the environments| that {project} uses to {names}",
  "project.rename": ({ project, names = [] }) =>
    project !== undefined && names[0] === project
      ? "changed the display name| of the project {project}"
      : "renamed the project| {project} to {names}",
  "project.delete": "deleted the project {project}",
  "history.purge": "removed the earlier versions| of the {names} in {environment} of {project}",
  "values.search": ({ names = [] }) =>
    `compared the values| in {environment} of {project}${names.length > 0 ? ", and found {names}" : ""}`,
  "key.create": created("key"),
  "key.revoke": "revoked the key {names}",
  "key.rotate": "rotated the key {first}",
  "canary.key": "was presented|: it is a canary of {organization}",
  "canary.variable": "used canaries|: {names} in {environment} of {project}",
  "key.elsewhere": ({ clientAddress }) =>
    `was presented| from ${clientAddress || "the Unix socket"}, from where it may not be used`,
  "trust.overused": "asked for more| than its trust gives a job: {names}, in {environment} of {project}",
  "trust.create": created("trust"),
  "trust.revoke": "revoked the trust {names}",
  // Pruning the audit and restoring a backup write the persons again, and name none.
  "people.write": ({ names = [] }) =>
    names.length === 1 ? "wrote the persons| and their rights again" : "changed the rights| of {rest}",
  "request.file": "asked| for {rest} in {environment} of {project}",
  "request.approve": "approved the request| for {rest} in {environment} of {project}",
  "request.reject": "rejected the request| for {rest} in {environment} of {project}",
  "data_key.rotate": "rotated the data key| of {project}",
  "root_key.rotate": "rotated the root key",
  "audit.prune": "deleted the audit| from before {names}",
  "audit.accept": "accepted a known loss| in the audit: {first}",
  "audit.accept-restore": "accepted that the database was put back",
  restore: "restored a backup",
};

/** Its other names are the ranges of the addresses from which it may be used. */
function created(type: string) {
  return ({ names = [] }: DoneEntry) =>
    `created the ${type}| {first}${names.length > 1 ? ", for use from {rest}" : ""}`;
}
