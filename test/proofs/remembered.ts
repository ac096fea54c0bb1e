import type { Proof } from "./proof.ts";

const concurrency = "property/concurrency";
const alone = "integration/alone";
const atOnce = "gets what any other gets if … after it was presumed that nothing has changed";
const anyChange = "is fetched once, and again after a write, a rotation of its data key, and any change by SQL";

/** What is remembered of sets and contents, still sealed, is what the database has now. */
export const remembered: readonly Proof[] = [
  {
    promise: "A remembered set is used only at its current row version",
    edits: [
      [
        "src/serve/sets/remembered.ts",
        "row === null ? stored.rowVersion === rowVersion :",
        "row === null ? rowVersion === rowVersion.trim() :",
      ],
    ],
    fails: ["unit/remembered-sets", "is not found under version"],
  },
  {
    promise: "The row version of a set changes with any write to it",
    edits: [["src/store/reach.ts", "sql`${row}.xmin, ${row}.ctid, ${d}.xmin, ${d}.ctid`", "sql`${d}.xmin, ${d}.ctid`"]],
    fails: [concurrency, anyChange],
    on: "PostgreSQL",
  },
  {
    promise: "The row version of a set changes with any write to its data key",
    edits: [
      ["src/store/reach.ts", "sql`${row}.xmin, ${row}.ctid, ${d}.xmin, ${d}.ctid`", "sql`${row}.xmin, ${row}.ctid`"],
    ],
    fails: [concurrency, anyChange],
    on: "PostgreSQL",
  },
  {
    promise: "A remembered content is used only at its current row version",
    edits: [
      [
        "src/serve/sets/remembered.ts",
        "found?.rowVersion === rowVersion ? found.content",
        "rowVersion ? found?.content",
      ],
    ],
    fails: ["integration/files", "shows an edit of a row at the next read"],
    on: "PostgreSQL",
  },
  {
    promise: "On SQLite a remembered set is used only for the very same row",
    edits: [
      ["src/serve/sets/remembered.ts", ": isSame(stored, row, needsValues);", ": isSame(stored, stored, needsValues);"],
    ],
    fails: ["unit/remembered-sets", "is not found for a row with another"],
  },
  {
    promise: "A remembered set is used only for its slug",
    edits: [["src/serve/sets/remembered.ts", " && project.slug === slug", " && slug !== undefined"]],
    fails: ["unit/remembered-sets", "is not found for another slug"],
  },
  {
    promise: "A remembered set is used only for its organization",
    edits: [
      [
        "src/serve/sets/remembered.ts",
        "project.organizationId === organizationId && ",
        "organizationId !== undefined && ",
      ],
    ],
    fails: ["unit/remembered-sets", "is not found for another organization"],
  },
  {
    promise: "A request that waited for memory uses no remembered set",
    edits: [
      [
        "src/serve/sets/lookup.ts",
        "?? (await fetchSets(reading, project, query, brought));",
        "?? (brought && { sets: brought, share: await reading.source.memory.claim(valueBytes(storedOf(brought), query.values), reading.caller.grant.keyId, reading.signal, waitMsMax) }) ?? (await fetchSets(reading, project, query, brought));",
      ],
    ],
    fails: ["integration/reads", "serves no key that was revoked while it waited"],
    on: "PostgreSQL",
  },
  {
    promise: "An entry that presumes a lookup is stored only if the lookup finds the very same",
    edits: [
      [
        "src/store/lookups.ts",
        'where ${state} = ${textValue("state")}`',
        'where ${state} = ${textValue("state")} or true`',
      ],
    ],
    fails: [alone, atOnce],
    on: "PostgreSQL",
  },
  {
    promise: "What is presumed of a key counts for nothing once another lookup has seen more of what people did",
    edits: [["src/record/notary/newest-checkpoint.ts", "found.people === this.#people &&", "found.people >= 0 &&"]],
    fails: [alone, "gets nothing, although its own rows are as they were"],
    on: "PostgreSQL",
  },
  {
    promise: "An answer that was presumed does not count without its entry",
    edits: [["src/serve/api/alone.ts", "isSecond = presumed !== undefined && !hasEnded;", "isSecond = false;"]],
    fails: [alone, atOnce],
    on: "PostgreSQL",
  },
  {
    promise: "A request that is answered again pays once",
    edits: [["src/serve/api/alone.ts", "(isSecond && paid) || buckets.take(...call)", "buckets.take(...call)"]],
    fails: [alone, atOnce],
    on: "PostgreSQL",
  },
  {
    promise: "A key that was presumed counts as used only once its entry is stored",
    edits: [
      ["src/serve/api/alone.ts", "if (presumed === undefined || isSecond) gate.used(keyId);", "gate.used(keyId);"],
    ],
    fails: [alone, atOnce],
    on: "PostgreSQL",
  },
  {
    promise: "The read of a job is counted only on the condition of its entry",
    edits: [
      [
        "src/record/store/journal.ts",
        "`${found}${holds}`, insert, here",
        '`${found}${holds.replace("and exists", "or exists")}`, insert, here',
      ],
    ],
    fails: [alone, "gets nothing, and no read of its job is counted, if its trust is revoked …"],
    on: "PostgreSQL",
  },
  {
    promise: "Nothing is presumed for a text that was not recognized before",
    edits: [["src/serve/api/alone.ts", " && paid !== undefined", ""]],
    fails: [alone, "with a token pays for its trust's lookup again only if it was refused, or is new"],
    on: "PostgreSQL",
  },
  {
    promise: "A job that had its answers is refused by what any other request runs",
    edits: [["src/serve/api/alone.ts", "if (error instanceof Overused) throw new Unmet();", ""]],
    fails: [alone, "with a token pays for its trust's lookup again only if it was refused, or is new"],
    on: "PostgreSQL",
  },
  {
    promise: "Entries with a condition share no segment",
    edits: [["src/record/journal.ts", "withoutConditions(this.#nextBatch())", "this.#nextBatch()"]],
    fails: ["integration/journal", "has no condition for what shares a batch"],
  },
  {
    promise: "The row version of a set changes after a failover that lost the newest write",
    edits: [
      [
        "src/store/sets.ts",
        "sql`${s.version}`, sql`encode(${bounded(s.listingMac, 32)}, 'hex')`);",
        "sql`${s.version}`);",
      ],
    ],
    fails: [
      "blackbox/lossy-failover",
      "is not served any more, although the next write has the same version, xmin and ctid",
    ],
    on: "PostgreSQL",
  },
];
