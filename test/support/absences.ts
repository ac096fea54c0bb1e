/**
 * Each text of a command that says that nothing is there, by what makes it true: `FILE: how the text begins`, with … for what is put in. A new one
 * needs a line here, so that somebody has thought of what was not looked at.
 */
export const absences: Readonly<Record<string, readonly string[]>> = {
  "Rows of a table were read whole, and of them all that somebody may see: the sentence says so.": [
    "people/desk/outcome.ts: There are no … yet",
    "people/desk/outcome.ts: There are no … that you may see.",
    "people/keys/access-operations.ts: Nothing",
    "people/keys/access-operations.ts: Nothing that you may see",
    "people/keys/credentials.ts: No …",
    "people/requests/operations.ts: No request…",
    "people/requests/operations.ts: There are no requests….",
  ],
  "It takes a right for all that is looked at, and a set that does not verify refuses the command.": [
    "people/keys/access-operations.ts: No valid key or trust",
    "people/history/operations.ts: There is no history",
    "people/history/operations.ts: No kept version",
    "people/persons/operations.ts: No person is of",
    "people/rotation/operations.ts: Nothing needs the",
    "people/history/rollback.ts: Nothing of version",
    "people/editing/last-reads.ts: … has no",
    "people/editing/reveal.ts: There is no …",
  ],
  "Sets that do not verify are named in warnings, it ends with 6, and the sentence is of what somebody may see.": [
    "people/projects/find-operations.ts: Nothing that you may see",
  ],
  "What was not read is named, and the command ends with 6.": [
    "people/keys/operations.ts: …, and none is a key that you may see.",
    "people/keys/operations.ts: The text holds no key that you may see.",
    "people/leaks/operations.ts: Nothing was found.",
  ],
  "What was left out is said beside it.": ["people/leaks/operations.ts: No value is stored more than once."],
  "Readers who may be missing stand there in place of it: `missing`.": ["people/leaks/operations.ts: nobody"],
  "Damaged parts are named, or turn this refusal into an answer; what was pruned is said.": [
    "people/audit/audit.ts: No … names",
    "people/audit/audit.ts: No … has",
    "people/audit/audit.ts: No … is by",
    "people/audit/audit.ts: No … match.",
    "people/audit/audit.ts: Nobody called",
  ],
  "Warnings say when the record begins, if the notary is behind, and which environments were not judged.": [
    "people/editing/last-reads.ts: not since",
    "people/editing/last-reads.ts: No … has been unread",
    "people/editing/last-reads.ts: has read nothing yet",
    "people/editing/last-reads.ts: has read nothing since",
  ],
  "One thing was asked for by its name or in one text, and all of that was looked at.": [
    "kinds/people.ts: there is no kind",
    "kinds/variables/operations.ts: … holds no",
    "people/audit/audit-chain.ts: No flaw that was found",
    "people/audit/audit.ts: There is no entry",
    "people/backup/backup.ts: There is no database",
    "people/backup/grants.ts: There is no role",
    "people/keys/keys.ts: There is no …",
    "people/audit/log-checkpoints.ts: … has no checkpoint line.",
    "people/persons/persons.ts: There is no person",
    "people/keys/providers.ts: No claim binds",
    "people/keys/providers.ts: GitHub has no event",
    "people/leaks/texts.ts: there is no ",
    "people/keys/trusts.ts: The key set has no key",
    "people/keys/trust-operations.ts: none of the issuer's keys",
    "cli/audit-proof.ts: … has no proof.",
    "cli/audit-proof.ts: There is no database",
    "cli/explain.ts: The log has no request",
    "cli/mcp.ts: There is no such tool.",
    "cli/over-ssh.ts: there is no program ssh",
  ],
  "It is what the primary or the server's own state says at that moment.": [
    "cli/check-database.ts: … is the database",
    "cli/check-database.ts: No commit on",
    "cli/check-database.ts: No notary is connected",
    "cli/check-database.ts: no commit waits",
    "cli/check-database.ts: No … is connected",
    "cli/dashboard.ts: Nobody used the dashboard",
  ],
  "It answers no search: a cell, an option, a reason, or what a deed did not do.": [
    "people/keys/access-operations.ts: nothing: a canary",
    "people/keys/access-operations.ts: no",
    "people/audit/operations.ts: : `audit export` has no end",
    "people/keys/credentials.ts: none",
    "people/history/operations.ts: no changes",
    "people/persons/operations.ts: none yet",
    "people/persons/operations.ts: Add a person",
    "people/persons/operations.ts: Added …",
    "people/persons/operations.ts: nothing",
    "kinds/variables/operations.ts: none",
    "kinds/variables/operations.ts: succeed if it holds no variables",
    "kinds/variables/operations.ts: The text holds no variables.",
    "people/backup/grants.ts: The embedded database has no roles",
    "people/history/history.ts: No content of a",
    "people/leaks/texts.ts: no file",
    "people/leaks/texts.ts: no reason given",
    "cli/audit.ts: no answer",
    "cli/backup.ts: The disk is full",
    "cli/over-ssh.ts: no reason given",
    "cli/version.ts: This program has no key",
    "core/words/machines-only.ts: no person's right reveals it",
    "core/words/name-part.ts: No name has more than",
    "core/words/text.ts: no time",
    "people/editing/last-reads.ts: no machine",
  ],
};

/**
 * Each place that takes entries out of a list that may be cut, by how the others are said: `FILE: what is given for them`. A
 * new one needs a line here, and a test in `integration/cut-lists` or beside it.
 */
export const cuts: Readonly<Record<string, readonly string[]>> = {
  "The words stand beside the entries.": [
    "cli/audit.ts: earlierMatch",
    "people/audit/operations.ts: earlierMatch",
    'people/leaks/operations.ts: "and earlier ones"',
    'people/persons/page.tsx: "Earlier ones, and all else that they did, in the audit"',
    'dashboard/today.tsx: "There were more alarms before these:"',
    'dashboard/today.tsx: "Earlier ones, and all other entries of the audit"',
    "people/projects/item.tsx: <a …",
    "dashboard/parts/parts.tsx: props.more",
  ],
  "The same list is drawn with its words below.": ['people/persons/page.tsx: "said below"'],
  "It was asked for without a bound.": ['kinds/variables/write.ts: "never"'],
};

/** Each list of which a part is taken, by what is said of the rest. */
export const slices: Readonly<Record<string, readonly string[]>> = {
  "A sentence or a link beside it says that there are more.": [
    "cli/terminal/perform.ts: limit",
    "people/audit/audit-counts.tsx: rowsMax",
    "people/projects/find-page.tsx: offersMax",
    "people/history/page.tsx: versionsMax",
    "people/keys/new-key.tsx: rowsMax",
    "people/projects/item.tsx: earlierMax",
    "kinds/variables/env-file.ts: unseenMax",
    "kinds/variables/operations.ts: namesMax",
    "dashboard/parts/parts.tsx: max",
    "people/projects/find.ts: hitsMax",
  ],
  "It is a `Cut`, or becomes one.": ["kinds/variables/write.ts: projectsMax", "people/audit/audit.ts: limit"],
  "Nobody takes it for all.": [
    "people/projects/find-page.tsx: deedsMax",
    "people/projects/find-page.tsx: recentMax",
    "dashboard/sign-in.ts: groupsMax",
  ],
};
