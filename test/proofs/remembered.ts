import type { Proof } from "./proof.ts";

const concurrency = "property/concurrency";
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
];
