import type { Environment, TokenWords } from "../core/names.ts";

/** What a machine asked a person for. */
export const requestAction = "request.file";
export const machineActions = [requestAction] as const;

/** A use of a canary: a key that was presented, or a variable that was read. */
export const canaryActions = ["canary.key", "canary.variable"] as const;

/** A good key or token was presented from where it may not be used. */
export const elsewhereAction = "key.elsewhere";
/** A job had all answers that its trust gives, and asked for another. */
export const overuseAction = "trust.overused";
/** What nobody should do. */
export const alarmActions = [...canaryActions, elsewhereAction, overuseAction] as const;

/** A person compared all values of an environment with a text, or with each other; the names are those that were found. */
export const searchAction = "values.search";

/** What a person did with a command that is not about items of a kind. */
export const peopleActions = [
  ...(["organization.create", "organization.plan", "organization.delete"] as const),
  ...(["project.create", "project.environments", "project.rename", "project.delete", "history.purge"] as const),
  searchAction,
  ...(["key.create", "key.revoke", "key.rotate", "trust.create", "trust.revoke"] as const),
  "people.write",
  ...(["request.approve", "request.reject"] as const),
  ...(["data_key.rotate", "root_key.rotate", "audit.prune", "audit.accept"] as const),
  ...(["audit.accept-restore", "restore"] as const),
] as const;

/** What a machine read of a kind, and what a person changed or saw of it. `kinds/people.ts` lists all actions. */
export type ReadAction = `${string}.read`;
export type RevealAction = `${string}.reveal`;
export type PeopleAction = (typeof peopleActions)[number];
export type ChangeAction = PeopleAction | `${string}.${"write" | "rollback"}` | RevealAction;
export type KindAction = ReadAction | `${string}.${"write" | "rollback"}` | RevealAction;
export type AuditAction = ReadAction | typeof requestAction | (typeof alarmActions)[number] | ChangeAction;

/** Who did it. */
export type Actor = { readonly type: "key" | "trust"; readonly id: string } | PersonActor;

/** A person, and where the name comes from. */
export type PersonActor = {
  readonly type: "person";
  readonly name: string;
  /**
   * `os`: the account that ran the command, `user@host`, which is the operator's word. Others are in the roster: `ssh`
   * if sshd accepted their key, else with the identity that their provider gave.
   */
  readonly from: "os" | "ssh" | { readonly issuer: string; readonly subject: string };
};

/** A person as a table names them, so that no name from a sign-in looks like an account of the machine. */
export function personText({ name, from }: PersonActor): string {
  if (from === "os") return name;
  return from === "ssh" ? `${name} (ssh)` : `${name} (${from.subject} at ${from.issuer})`;
}

/** The name alone in a {@link personText}, for where the rest is a click away. */
export function nameInPersonText(text: string): string {
  return /^(\S+) \(.+\)$/s.exec(text)?.[1] ?? text;
}

/**
 * Who received, asked for or changed what, and from which address. Never holds a value, a key's text, a digest or a
 * checksum. What an entry does not concern is empty: the project of a new organization, the address of a command.
 */
export type AuditEntry = {
  readonly actor: Actor;
  readonly organizationId: string;
  readonly organization: string;
  readonly projectId: string;
  readonly project: string;
  /** Null if an account read named no environment, or a change concerns none. */
  readonly environment: Environment | null;
  readonly action: AuditAction;
  /** What was returned or touched: names of variables and accounts, paths of files; ids of keys, trusts, requests. */
  readonly names: readonly string[];
  /** What a write did to these names. */
  readonly write?: NamesWritten | undefined;
  /** Whether a read asked for these names, or for those with a prefix, and not for all that there is. */
  readonly byName?: true | undefined;
  /** The version of the set that a write made. Entries of 0.2.0 have none. */
  readonly version?: number | undefined;
  /**
   * Those of the names that are canaries. The list of entries shows a read of some as a `canary.variable`, too. It is no
   * entry of its own: a machine could tell by the numbers of its receipts.
   */
  readonly canaries?: readonly string[] | undefined;
  /** May be chosen by the caller, so it identifies nothing. */
  readonly requestId: string;
  /** Address of the socket's peer, or what a trusted proxy said: `203.0.113.9 via 10.0.0.2`. */
  readonly clientAddress: string;
  /** At most 256 printable ASCII characters. */
  readonly userAgent: string;
  /** Each at most 256 printable ASCII characters. */
  readonly token?: TokenWords | undefined;
};

/** Which names a write added, replaced and deleted. */
export type NamesWritten = {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly deleted: readonly string[];
};

/** The first 256 characters of a client's or an issuer's words, with `?` for all that is not printable ASCII. */
export function printable(words: string | null): string {
  return (words ?? "").slice(0, 256).replace(/[^\x20-\x7e]/g, "?");
}
