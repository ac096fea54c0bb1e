import type { Proof } from "./proof.ts";

const store = "src/record/store/journal.ts";
const worker = "src/record/store/journal-worker.ts";
const compose = "src/serve/process/compose.ts";
const budget = "src/serve/limit/budget.ts";
const guard = "src/store/postgres-guard.ts";
const swallowed = "integration/audit-swallowed";
const journal = "integration/journal";

/** Entries that were taken are durable, and nothing swallows them. */
export const durable: readonly Proof[] = [
  {
    promise: "A server whose disk is full is not ready",
    edits: [
      [
        worker,
        '    else opened.run("PRAGMA user_version = 0"); // as it is: the commit shows whether the disk takes a page\n',
        "",
      ],
    ],
    fails: [
      "blackbox/full-disk",
      "gives no value, says so, and gives them again once there is room, with no entry lost",
    ],
  },
  {
    promise: "Renders come from a kind's render.ts alone",
    edits: [
      [
        "src/kinds/files/read.ts",
        'import { Held } from "../../core/held.ts";',
        'import { Held, Render } from "../../core/held.ts";\nexport const own = Render;',
      ],
    ],
    fails: ["unit/house", "lets only the files that need it open a set, a content or a Held"],
  },
  {
    promise: "Each file that is read has an entry of its own",
    edits: [
      [
        "src/serve/gates/read-endpoint.ts",
        "const entries = read.entries.map((names) => ({ ...entry, names }));",
        'const entries = kind.kind === "files" ? [{ ...entry, names: read.entries.flat() }] : read.entries.map((names) => ({ ...entry, names }));',
      ],
    ],
    fails: ["integration/reads", "is on record before its first byte leaves"],
  },
  {
    promise: "A use of a canary key moves no number in another key's receipt",
    edits: [
      [
        compose,
        "new Alarms((entries) => ofAlarms.record(entries), log)",
        "new Alarms((entries) => journal.record(entries), log)",
      ],
    ],
    fails: ["integration/canaries", "moves no number in another key's receipt"],
  },
  {
    promise: "A batch is refused if SQLite's schema can lose it",
    edits: [[worker, "      requireUntouched();\n", ""]],
    fails: [swallowed, "trigger lose on audit_segments: is named, refuses every change"],
  },
  {
    promise: "A batch is refused if a month has a trigger",
    edits: [
      [guard, "and not relhastriggers and not relhasrules", "and not relhasrules"],
      [guard, "\n  and not exists (select from pg_trigger where tgrelid = month.oid)", ""],
    ],
    fails: [swallowed, "by a trigger after each row of the month"],
    on: "PostgreSQL",
  },
  {
    promise: "A batch is refused if a month has a rule",
    edits: [
      [guard, "and not relhastriggers and not relhasrules", "and not relhastriggers"],
      [guard, "\n  and not exists (select from pg_rewrite where ev_class = month.oid)", ""],
    ],
    fails: [swallowed, "by the rule do also delete from all of the month"],
    on: "PostgreSQL",
  },
  {
    promise: "A batch is refused if a month has row security",
    edits: [
      [
        guard,
        "and relpersistence = 'p' and not relrowsecurity and not relforcerowsecurity",
        "and relpersistence = 'p'",
      ],
    ],
    fails: [swallowed, "by row security of the month"],
    on: "PostgreSQL",
  },
  {
    promise: "No entry goes into a table that is no partition any more",
    edits: [
      [
        store,
        "where month.oid = 'public.${partition}'::regclass and inhparent = 'public.audit_segments'::regclass\n      and not inhdetachpending",
        "where month.oid = 'public.${partition}'::regclass",
      ],
      [store, "pg_class as month join pg_inherits on", "pg_class as month left join pg_inherits on"],
    ],
    fails: [swallowed, "a month that is detached takes no entry away"],
    on: "PostgreSQL",
  },
  {
    promise: "Service returns without a VACUUM once a trigger is gone",
    edits: [
      [
        store,
        "return [into(month, neverExtended), into(month, notExtended), into(defaultPartition, notExtended)];",
        "return [into(month, neverExtended), into(defaultPartition, notExtended)];",
      ],
    ],
    fails: [swallowed, "by a trigger before each row of the month"],
    on: "PostgreSQL",
  },
  {
    promise: "A missing month stops no entry",
    edits: [[store, "if ([undefinedTable, checkViolation].includes(databaseErrorCode(error))) return [];", ""]],
    fails: ["integration/audit-verify", "makes months ahead, and a missing month stops nothing"],
    on: "PostgreSQL",
  },
  {
    promise: "A month that is made may be written by servers",
    edits: [["src/record/store/audit-months.ts", "if (roles) await", "if (roles === name) await"]],
    fails: ["integration/grants", "appends to each month that is made, and without that right"],
    on: "PostgreSQL",
  },
  {
    promise: "A batch that is sent again is durable if it is there already",
    edits: [[store, "if (!again || reason !== uniqueViolation) return", "if (again || reason) return"]],
    fails: [journal, "takes a batch that it sends again for durable if it is there already"],
    on: "PostgreSQL",
  },
  {
    promise: "A batch is durable because it is there already only if it was sent again",
    edits: [[store, "if (!again || reason !== uniqueViolation) return", "if (reason !== uniqueViolation) return"]],
    fails: [journal, "takes a batch that it sends again for durable if it is there already, and for refused if not"],
    on: "PostgreSQL",
  },
  {
    promise: "What a failover lost comes back in few statements",
    edits: [[store, "const batchBytesMax = 256 * 1024;", "const batchBytesMax = 0;"]],
    fails: ["integration/brought-back", "comes back in few statements"],
    on: "PostgreSQL",
  },
  {
    promise: "A lane begins on another server once that has what a failover lost",
    edits: [[store, 'begins ? (server ?? "") :', 'begins ? "" :']],
    fails: ["integration/brought-back", "comes back in few statements"],
    on: "PostgreSQL",
  },
  {
    promise: "What a failover lost is given up after a minute",
    edits: [[store, "const bringWithinMs = 60_000;", "const bringWithinMs = Infinity;"]],
    fails: ["integration/brought-back", "if it cannot within a minute, it is named and reads go on"],
    hangs: true,
    on: "PostgreSQL",
  },
  {
    promise: "A lane is left if nobody knows which server has it",
    edits: [[store, "      if (segment && home === undefined) return moved;\n", ""]],
    fails: [journal, "leaves a lane that another server has"],
    on: "PostgreSQL",
  },
  {
    promise: "Of one key, at most half of what the journal holds is waited for",
    edits: [[budget, "new Budget(entriesMax, entriesMax / 2, ", "new Budget(entriesMax, entriesMax, "]],
    fails: [journal, "takes eight pulls of 1000 files by one key, and another key's read before most of them"],
  },
  {
    promise: "Refusals for a key's own part of the journal are no fault of the service",
    edits: [
      [
        budget,
        "waiter.exhausted ? this.#ownRetryAfterS : undefined);",
        "waiter.amount < 0 ? this.#ownRetryAfterS : undefined);",
      ],
    ],
    fails: ["unit/budget", "tells a holder that waited for its own part in vain when to come again"],
  },
  {
    promise: "A server prints the end of the commands' lane when it starts",
    edits: [
      [
        compose,
        "      if (head == null || announced === mac) return;\n",
        '      if (head == null || announced === mac || announced === "") return;\n',
      ],
    ],
    fails: ["integration/changes", "is printed by a server when it starts and when it stops"],
  },
  {
    promise: "A server prints the end of the commands' lane when it stops",
    edits: [
      [
        compose,
        "      clearInterval(timer);\n      return announceNews();",
        "      clearInterval(timer);\n      return undefined;",
      ],
    ],
    fails: ["integration/changes", "is printed by a server when it starts and when it stops"],
  },
  {
    promise: "A change is on record",
    edits: [["src/people/desk/context.ts", "    await recordChanges(admin, changes);\n", "    void recordChanges;\n"]],
    fails: ["integration/changes", "of each kind is on record"],
  },
  {
    promise: "Nothing in PostgreSQL loses, hides or undoes a change",
    edits: [["src/store/postgres.ts", "  await look();\n  return result;", "  return result;"]],
    fails: [swallowed, "trigger keep on table api_keys"],
    on: "PostgreSQL",
  },
  {
    promise: "Nothing in SQLite loses, hides or undoes a change",
    edits: [
      [
        "src/store/sqlite.ts",
        "if (tables === undefined) requireMade();",
        "if (tables === undefined) void requireMade;",
      ],
    ],
    fails: [swallowed, "trigger keep on api_keys"],
  },
  {
    promise: "No policy hides entries from a change",
    edits: [
      [
        guard,
        "  union all select 'pg_policy'::regclass, oid, 0, '' from pg_policy where polrelid = any((select ids from ours)::oid[])\n",
        "",
      ],
    ],
    fails: [swallowed, "policy hide on table audit_segments"],
    on: "PostgreSQL",
  },
  {
    promise: "Each client is asked about the schema before its first query",
    edits: [
      ["src/store/postgres-clients.ts", "if (checked !== undefined) await checked;", "void checked?.catch(() => {});"],
    ],
    fails: [
      "unit/clients",
      "each client is checked before its first query, and again when the last check is a minute old",
    ],
  },
  {
    promise: "Each client is asked about the schema every minute",
    edits: [["src/store/postgres-clients.ts", "const checkEveryMs = 60_000;", "const checkEveryMs = Infinity;"]],
    fails: [
      "unit/clients",
      "each client is checked before its first query, and again when the last check is a minute old",
    ],
  },
  {
    promise: "A value without its entry is no body, as the compiler sees it",
    edits: [
      [
        "src/serve/gates/exchange.ts",
        "export function json(exchange: Exchange, body: string, etag?: string): Response {",
        "// biome-ignore lint/suspicious/noExplicitAny: nothing is checked\nexport function json(exchange: Exchange, body: any, etag?: string): Response {",
      ],
    ],
    fails: ["unit/types", "refuses a Held as JSON text"],
  },
  {
    promise: "A read of a canary is in an entry of its read, so that no receipt tells it",
    edits: [
      [
        "src/serve/gates/read-endpoint.ts",
        "const [render, tag] = [items.render(query), etag(read.fingerprint)];",
        "const [render, tag] = [items.render(query), etag(read.fingerprint)];\n      if (canaries !== undefined) await parts.journal.record([{ ...entry, names: canaries }]);",
      ],
    ],
    fails: ["integration/canaries", "cannot be told by a machine"],
  },
  {
    promise: "The server's role reads no entries, in the view either",
    edits: [["src/store/rights.ts", '    "audit_entries",\n', ""]],
    fails: ["integration/grants", "fails the check if it can do more, and granting again narrows it"],
    on: "PostgreSQL",
  },
  {
    promise: "A batch is refused if another session is adding what can lose it",
    edits: [
      [
        "src/record/store/journal.ts",
        "const insert = `insert into public.${partition} (${columns}) select",
        "const insert = `insert into public.audit_segments (${columns}) select",
      ],
    ],
    fails: ["integration/audit-swallowed", "by a trigger after each statement of DEFAULT"],
    on: "PostgreSQL",
  },
  {
    promise: "A lane that leaves a database server is a new one",
    edits: [
      [
        "src/record/journal.ts",
        "      this.#startLane();\n      segment = this.#segmentOf(batch);\n      result =",
        "      result =",
      ],
    ],
    fails: ["integration/journal", "begins a new lane if the database is another server"],
  },
  {
    promise: "A warning that a commit did not wait is heard",
    edits: [["src/record/store/journal.ts", "    notices += 1;\n", "    notices += 0;\n"]],
    fails: ["blackbox/failover", "no value leaves if pg_cancel_backend ends the wait for a standby"],
    on: "PostgreSQL",
  },
  {
    promise: "What a failover lost is stored again by a server that lives",
    edits: [
      [
        "src/record/store/journal.ts",
        "if (owed.length > 0) await bringAlong();",
        "if (owed.length < 0) await bringAlong();",
      ],
    ],
    fails: ["blackbox/lossy-failover", "is brought back by a server that lives"],
    on: "PostgreSQL",
  },
  {
    promise: "A lane leaves a database server that does not have it so far",
    edits: [["src/record/store/journal.ts", "pg_catalog.sqrt(-($8::text", "pg_catalog.sqrt(0 * ($8::text"]],
    fails: ["blackbox/lossy-failover", "is brought back by a server that lives"],
    on: "PostgreSQL",
  },
  {
    promise: "A row that is there is no proof that its standby has it",
    edits: [
      [
        "src/record/store/journal.ts",
        '        const doubted = await doubt();\n        if (doubted !== undefined) return { outcome: "unknown", reason: doubted };\n        if (segment',
        "        if (segment",
      ],
    ],
    fails: ["blackbox/failover", "no value leaves if pg_terminate_backend ends the wait for a standby"],
    on: "PostgreSQL",
  },
  {
    promise: "Sessions show the warning that a commit did not wait, whatever a role or a database hides",
    edits: [["src/store/postgres.ts", '  client_min_messages: "warning",\n', ""]],
    fails: ["blackbox/failover", "nor if the database gives its sessions client_min_messages = error"],
    on: "PostgreSQL",
  },
  {
    promise: "No text that a caller chooses fails the reads of others",
    edits: [
      [
        "src/record/store/journal.ts",
        "readsMax: most, keptMs: kept }) => {\n    return {",
        "readsMax: most, keptMs: kept, ...rest }) => {\n    return { ...rest,",
      ],
      ["src/serve/access/token.ts", '  if (!claims.isWellFormed() || claims.includes("\\0")) return undefined;\n', ""],
    ],
    fails: ["property/strangers", "fails nobody who shares a statement with it"],
    on: "PostgreSQL",
  },
];

const verify = "src/record/verify.ts";
const checkpoints = "src/people/audit/log-checkpoints.ts";
const chain = "src/people/audit/audit-chain.ts";
const verifying = "integration/audit-verify";
const atItsEnd = "at the end of a lane is no flaw";

/** What `audit verify` finds, and what retention leaves. */
export const verification: readonly Proof[] = [
  {
    promise: "`audit verify` compares the end of a lane with its checkpoint",
    edits: [[checkpoints, "      if (needed > end) {", "      if (needed > end && needed < 0) {"]],
    fails: [verifying, "notices a lane that was cut off at its end"],
  },
  {
    promise: "`audit verify` compares the end of the commands' lane without a checkpoint",
    edits: [
      [
        chain,
        "...(whole?.checkpoints ? await headFlaws(auditKey, chain) : [])",
        "...(whole?.checkpoints && walk.lanes < 0 ? await headFlaws(auditKey, chain) : [])",
      ],
    ],
    fails: [
      "integration/heads",
      "lets nobody in if SQL left it where it was, and deleted the last segment, and `audit verify` says so",
    ],
  },
  {
    promise: "`audit verify` compares a checkpoint's mac",
    edits: [
      [
        checkpoints,
        'segment?.lastSeq === one.seq && segment.mac.toString("hex") === one.mac)',
        "segment?.lastSeq === one.seq)",
      ],
    ],
    fails: [verifying, "notices a chain that somebody with the audit key wrote again"],
  },
  {
    promise: "A checkpoint is a segment's end",
    edits: [
      [
        checkpoints,
        'segment?.lastSeq === one.seq && segment.mac.toString("hex") === one.mac)',
        'segment !== undefined && (segment.lastSeq !== one.seq || segment.mac.toString("hex") === one.mac))',
      ],
    ],
    fails: ["unit/audit-verify", "notices that somebody with the audit key cut the segments in other places"],
  },
  {
    promise: "Checkpoints count whatever their order in the log",
    edits: [[checkpoints, "some.toSorted((a, b) => a.seq - b.seq)", "some"]],
    fails: ["unit/audit-verify", "notices that somebody with the audit key cut the segments in other places"],
  },
  {
    promise: "`audit verify` goes on after a flaw",
    edits: [[chain, "    await walk.pass(segment);\n", "    if (walk.flaws.length === 0) await walk.pass(segment);\n"]],
    fails: [verifying, "goes on after a flaw and names those of every lane"],
  },
  {
    promise: "An accepted gap hides no entry beside it",
    edits: [[checkpoints, "known === undefined ? one.seq : known.seq - 1", "known === undefined ? one.seq : 0"]],
    fails: [verifying, atItsEnd],
  },
  {
    promise: "An accepted gap at the end of a lane cannot be made up",
    edits: [
      [
        checkpoints,
        " && one.seals.includes(sealLostEnd(auditKey, one, checkpoint))",
        ' && sealLostEnd(auditKey, one, checkpoint) !== ""',
      ],
    ],
    fails: [verifying, atItsEnd],
  },
  {
    promise: "An accepted gap is a loss and nothing else",
    edits: [
      [chain, "if (named.every(({ seals }) => seals !== undefined)) continue;", "if (named.length > 0) continue;"],
    ],
    fails: [verifying, "is what a person named, and only a loss"],
  },
  {
    promise: "An accepted gap stays one when retention comes to it",
    edits: [
      [
        verify,
        "dropped.seq > before.lastSeq && dropped.seq < firstSeq;",
        "dropped.seq > before.lastSeq && dropped.seq === firstSeq - 1;",
      ],
    ],
    fails: [verifying, "is dropped by retention with the rest of its month"],
  },
  {
    promise: "Retention takes no wrong clock for a removal",
    edits: [
      [
        chain,
        "return at === null ? keptFromAt : inOrderBefore",
        "return at === null || at > 0 ? keptFromAt : inOrderBefore",
      ],
    ],
    fails: [verifying, "finds nothing wrong if one command was dated too late or too early"],
  },
  {
    promise: "Retention verifies before it drops",
    edits: [
      [
        chain,
        "if (!unverified && found.flaws.length > 0) return found;",
        "if (!unverified && found.flaws.length < 0) return found;",
      ],
    ],
    fails: [verifying, "does not drop a month that was tampered with, unless told to"],
  },
  {
    promise: "Retention on PostgreSQL keeps where the rest of a lane goes on",
    edits: [[chain, "      for (const mark of lanes) await keep(inside, mark);\n", ""]],
    fails: [verifying, "drops whole months, and the rest verifies"],
    on: "PostgreSQL",
  },
  {
    promise: "Retention on SQLite keeps where the rest of a lane goes on",
    edits: [[chain, "    await keep(admin, mark);\n", ""]],
    fails: [verifying, "drops whole months, and the rest verifies"],
  },
  {
    promise: "A damaged segment is listed as `unreadable`",
    edits: [
      [
        "src/people/audit/audit.ts",
        'if (entries === undefined && conditions.length === 0 && rights === "operator")',
        "if (entries === undefined && at < 0)",
      ],
    ],
    fails: [verifying, "leaves a damaged segment in the list"],
  },
  {
    promise: "`audit list --follow` drops no entry that has a lost one's number",
    edits: [
      [
        "src/people/audit/audit.ts",
        "return `${lane} ${seq} ${time} ${action}`;",
        "return `${lane} ${seq} ${time * 0} ${action}`;",
      ],
    ],
    fails: ["integration/audit-list", "is followed through a failover"],
  },
  {
    promise: "Nobody proves an entry that they may not read",
    edits: [
      [
        "src/people/audit/audit.ts",
        "return records[0]?.action === unreadable ? [] : [...new Set(records.map(({ seq }) => seq))];",
        "if (records[0]?.action === unreadable) return [];\n  return Array.from({ length: segment.lastSeq - segment.firstSeq + 1 }, (_, at) => segment.firstSeq + at);",
      ],
    ],
    fails: ["integration/audit-proof", "is proved to whoever may read the entry"],
  },
  {
    promise: "A bundle of proofs leaves out no entry unsaid",
    edits: [
      [
        "src/people/audit/audit-proof.ts",
        "if (proofs === undefined) left(seqs.length);\n      else yield proofs;",
        "if (proofs !== undefined) yield proofs;",
      ],
    ],
    fails: ["integration/audit-proof", "is one of a bundle, in which all matching entries are proved against one head"],
  },
  {
    promise: "No proof is handed out of what the tree does not have",
    edits: [
      [
        "src/people/audit/audit-proof.ts",
        "if (tree === undefined || !verifyInclusion(leafHash(tree.text), leaf, head, path)) {",
        "if (tree === undefined || (!verifyInclusion(leafHash(tree.text), leaf, head, path) && leaf < 0)) {",
      ],
      ["src/people/audit/audit-proof.ts", 'if ("wrong" in found)', 'if ("wrong" in found && leaf < 0)'],
    ],
    fails: ["integration/audit-proof", "is proved of what is in the tree, and of nothing that SQL changed since"],
  },
  {
    promise: "No proof is handed out whose head is not signed",
    edits: [["src/people/audit/audit-proof.ts", 'if ("wrong" in found)', 'if ("wrong" in found && leaf < 0)']],
    fails: [
      "integration/audit-proof",
      "is proved under no head that the notary did not sign, and without what no witness signed",
    ],
  },
  {
    promise: "A proof has the signatures that there are",
    edits: [
      [
        "src/people/audit/audit-proof.ts",
        "const heads = [cosigned, newest].filter(",
        "const heads = [cosigned && newest, newest].filter(",
      ],
    ],
    fails: ["integration/witnesses", "are in proofs of what they have signed, also while they are away"],
  },
  {
    promise: "All checkpoints of the commands' lane count",
    edits: [
      [
        checkpoints,
        "lane === commandsLane ? `${lane} ${seq} ${mac}` : lane",
        "lane === commandsLane ? commandsLane : lane",
      ],
    ],
    fails: [
      "blackbox/operators",
      "audit verify holds a log against the audit, and prints the line that accepts what is lost",
    ],
  },
  {
    promise: "`audit list --follow` survives a lost connection",
    edits: [["src/cli/audit.ts", "if (tail === undefined || toProblem(", "if (tail !== null || toProblem("]],
    fails: ["blackbox/faults", "audit list --follow survives lost connections"],
    on: "PostgreSQL",
  },
  {
    promise: "What retention dropped and sealed once stays accepted for ever",
    edits: [["src/record/verify.ts", '"keyhole audit dropped v1"', '"keyhole audit dropped v2"']],
    fails: ["blackbox/releases", "opens whole in a newer one, ten years from now"],
  },
];
