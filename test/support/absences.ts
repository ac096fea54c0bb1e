/**
 * Each text of a command that says that nothing is there, by what makes it true: `FILE: how the text begins`, with … for what is put in. A new one
 * needs a line here, so that somebody has thought of what was not looked at.
 */
export const absences: Readonly<Record<string, readonly string[]>> = {
  "Rows of a table were read whole, and of them all that somebody may see: the sentence says so.": [
    "desk/outcome.ts: There are no … yet",
    "desk/outcome.ts: There are no … that you may see.",
    "operations/access.ts: Nothing",
    "operations/access.ts: Nothing that you may see",
    "operations/credentials.ts: No …",
    "operations/requests.ts: No request…",
    "operations/requests.ts: There are no requests….",
  ],
  "It takes a right for all that is looked at, and a set that does not verify refuses the command.": [
    "operations/access.ts: No valid key or trust",
    "operations/history.ts: There is no history",
    "operations/history.ts: No kept version",
    "operations/persons.ts: There are no persons yet",
    "operations/persons.ts: No person is of",
    "operations/rotation.ts: Nothing needs the",
    "people/rollback.ts: Nothing of version",
    "editing/last-reads.ts: … has no",
    "editing/reveal.ts: There is no …",
  ],
  "Sets that do not verify are named in warnings, it ends with 6, and the sentence is of what somebody may see.": [
    "operations/find.ts: Nothing that you may see",
  ],
  "What was not read is named, and the command ends with 6.": [
    "operations/keys.ts: …, and none is a key that you may see.",
    "operations/keys.ts: The text holds no key that you may see.",
    "operations/leaked.ts: Nothing was found.",
  ],
  "What was left out is said beside it.": ["operations/leaked.ts: No value is stored more than once."],
  "Readers who may be missing stand there in place of it: `missing`.": ["operations/leaked.ts: nobody"],
  "Damaged parts are named, or turn this refusal into an answer; what was pruned is said.": [
    "people/audit.ts: No … names",
    "people/audit.ts: No … has",
    "people/audit.ts: No … is by",
    "people/audit.ts: No … match.",
    "people/audit.ts: Nobody called",
  ],
  "Warnings say when the record begins, if the notary is behind, and which environments were not judged.": [
    "editing/last-reads.ts: not since",
    "editing/last-reads.ts: No … has been unread",
    "editing/last-reads.ts: has read nothing yet",
    "editing/last-reads.ts: has read nothing since",
  ],
  "One thing was asked for by its name or in one text, and all of that was looked at.": [
    "kinds/people.ts: there is no kind",
    "kinds/variables/operations.ts: … holds no",
    "people/audit-chain.ts: No flaw that was found",
    "people/audit.ts: There is no entry",
    "people/backup.ts: There is no database",
    "people/grants.ts: There is no role",
    "people/keys.ts: There is no …",
    "people/log-checkpoints.ts: … has no checkpoint line.",
    "people/persons.ts: There is no person",
    "people/providers.ts: No claim binds",
    "people/providers.ts: GitHub has no event",
    "people/texts.ts: there is no ",
    "people/trusts.ts: The key set has no key",
    "operations/trusts.ts: none of the issuer's keys",
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
    "operations/access.ts: nothing: a canary",
    "operations/access.ts: no",
    "operations/audit.ts: takes at most",
    "operations/credentials.ts: none",
    "operations/history.ts: no changes",
    "operations/persons.ts: none yet",
    "operations/persons.ts: Add a person",
    "operations/persons.ts: Added …",
    "operations/persons.ts: nothing",
    "kinds/variables/operations.ts: none",
    "kinds/variables/operations.ts: succeed if it holds no variables",
    "people/grants.ts: The embedded database has no roles",
    "people/history.ts: No content of a",
    "people/texts.ts: no file",
    "people/texts.ts: no reason given",
    "cli/audit.ts: no answer",
    "cli/backup.ts: The disk is full",
    "cli/over-ssh.ts: no reason given",
    "cli/version.ts: This program has no key",
    "words/machines-only.ts: no person's right reveals it",
    "words/name-part.ts: No name has more than",
    "words/text.ts: no time",
    "editing/last-reads.ts: no machine",
  ],
};

/**
 * Each place that takes entries out of a list that may be cut, by how the others are said: `FILE: what is given for them`. A
 * new one needs a line here, and a test in `integration/cut-lists` or beside it.
 */
export const cuts: Readonly<Record<string, readonly string[]>> = {
  "The words stand beside the entries.": [
    "cli/audit.ts: earlierMatch",
    "operations/audit.ts: earlierMatch",
    'operations/leaked.ts: "and earlier ones"',
    'dashboard/person.tsx: "Earlier ones, and all else that they did, in the audit"',
    'dashboard/today.tsx: "There were more alarms before these:"',
    'dashboard/today.tsx: "Earlier ones, and all other entries of the audit"',
    "dashboard/item.tsx: <a …",
    "pages/parts.tsx: props.more",
  ],
  "The same list is drawn with its words below.": ['dashboard/person.tsx: "said below"'],
  "It was asked for without a bound.": ['kinds/variables/write.ts: "never"'],
};

/** Each list of which a part is taken, by what is said of the rest. */
export const slices: Readonly<Record<string, readonly string[]>> = {
  "A sentence or a link beside it says that there are more.": [
    "dashboard/audit-counts.tsx: rowsMax",
    "dashboard/find.tsx: offersMax",
    "dashboard/history.tsx: versionsMax",
    "dashboard/item.tsx: earlierMax",
    "dashboard/requests.tsx: max",
    "kinds/accounts/form.tsx: shown",
    "kinds/variables/env-file.ts: unseenMax",
    "kinds/variables/operations.ts: namesMax",
    "pages/parts.tsx: max",
    "people/find.ts: hitsMax",
  ],
  "It is a `Cut`, or becomes one.": ["kinds/variables/write.ts: projectsMax", "people/audit.ts: limit"],
  "Nobody takes it for all.": ["dashboard/find.tsx: recentMax", "dashboard/sign-in.ts: groupsMax"],
};
