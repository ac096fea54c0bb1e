import type { Proof } from "./proof.ts";

const history = "integration/history";
const ninetyDays = "keeps a version for 90 days after it was replaced, and always the last 20";
const model = "leave what the model says";

/** Earlier versions of a set are kept, believed only if they verify, and put back as they were. */
export const kept: readonly Proof[] = [
  {
    promise: "A write keeps the version before it",
    edits: [["src/people/editing/write.ts", "listing: sql`${s.listing}`, sealed: sql`${s.sealed}` })", "})"]],
    fails: ["property/history", model],
  },
  {
    promise: "A version is kept for 90 days after it was replaced",
    edits: [["src/people/editing/kept-versions.ts", "const keptMs = 90 *", "const keptMs = 89 *"]],
    fails: [history, ninetyDays],
  },
  {
    promise: "A version that was replaced 90 days ago to the millisecond is kept",
    edits: [
      ["src/people/editing/kept-versions.ts", "gt(v.at, at)", "gte(v.at, at)"],
      ["src/people/editing/kept-versions.ts", "eq, gt, isNotNull", "eq, gte, gt, isNotNull"],
    ],
    fails: [history, ninetyDays],
  },
  {
    promise: "A version that was dated too early does not expire the ones before it",
    edits: [
      [
        "src/people/editing/kept-versions.ts",
        "and(ofVersions, lt(v.version, sql`${recent}`))",
        "and(ofVersions, lte(v.at, at))",
      ],
    ],
    fails: [history, "keeps a version for 90 days although one write was dated too early"],
  },
  {
    promise: "The last 20 versions are kept",
    edits: [["src/people/editing/kept-versions.ts", "const keptMin = 20;", "const keptMin = 19;"]],
    fails: [history, ninetyDays],
  },
  {
    promise: "Kept versions take no more bytes than the setting allows",
    edits: [
      [
        "src/people/editing/kept-versions.ts",
        "index >= keptAlways && bytes > admin.historyBytesMax",
        "index >= keptAlways && bytes > 2 ** 40",
      ],
    ],
    fails: [history, "keeps as many bytes as the setting allows, and always the last two versions"],
  },
  {
    promise: "The last two versions are kept whatever their bytes",
    edits: [["src/people/editing/kept-versions.ts", "const keptAlways = 2;", "const keptAlways = 1;"]],
    fails: [history, "keeps as many bytes as the setting allows, and always the last two versions"],
  },
  {
    promise: "A person who may write does not remove what was in force within the last day",
    edits: [
      ["src/people/editing/kept-versions.ts", "if (beyond >= (spared?.version ?? 0)) {", "if (beyond >= 2 ** 40) {"],
    ],
    fails: [history, "keeps what was in force within the last day from whoever may write"],
  },
  {
    promise: "Contents that only kept versions name count among their bytes",
    edits: [
      [
        "src/people/editing/kept-versions.ts",
        'bytes: bytes + contentBytes(arrayOf(row?.listing ?? ""), named)',
        "bytes",
      ],
    ],
    fails: [history, "of files counts the contents that only earlier versions name"],
  },
  {
    promise: "A content stays while a kept version names it",
    edits: [
      [
        "src/people/editing/contents.ts",
        "for await (const [version, kept] of keptVersions(admin, of)) {",
        "for await (const [version, kept] of keptVersions(admin, of)) {\n        if (kept) continue;",
      ],
    ],
    fails: ["property/history", model],
  },
  {
    promise: "Only a version that verifies is rolled back to",
    edits: [
      [
        "src/people/editing/open.ts",
        "if (set === undefined) throw damagedVersion(of, version);",
        "if (set === undefined) return openSet(admin, of);",
      ],
    ],
    fails: [history, "is not rolled back to, and backup verify names it"],
  },
  {
    promise: "A file is rolled back to only with its content",
    edits: [
      [
        "src/people/history/rollback.ts",
        "if (content === undefined) throw damagedVersion(before, version);\n    content.fill(0);",
        "content?.fill(0);",
      ],
    ],
    fails: [history, "of files is not rolled back to if a content is gone"],
  },
  {
    promise: "A rollback does what was shown",
    edits: [["src/people/history/rollback.ts", "looked: [{ set: before }]", "looked: []"]],
    fails: [history, "is refused if somebody wrote since it was shown what it would do"],
  },
  {
    promise: "An undo overwrites nothing that was written since",
    edits: [["src/people/history/rollback.ts", "later.toReversed().flatMap(", "later.slice(later.length).flatMap("]],
    fails: ["integration/undo", "brings back what nobody wrote since, keeps the rest, and is on record"],
  },
  {
    promise: "An undo believes no record that SQL changed",
    edits: [["src/people/history/rollback.ts", "if (later.length < from - version) {", "if (later.length < 0) {"]],
    fails: ["integration/undo", "is refused if SQL changed or deleted the record of who wrote what since"],
  },
  {
    promise: "No write, nor a rollback, takes a project past the files that it may have",
    edits: [
      ["src/people/editing/write-project.ts", "    await requireRoom(admin, locked, descriptor);\n", ""],
      ["src/people/editing/write-project.ts", "async function requireRoom", "export async function requireRoom"],
    ],
    fails: [history, "that would take a project past 1000 files is refused"],
  },
  {
    promise: "A record of a version that SQL changed blames nobody",
    edits: [
      ["src/people/editing/version-records.ts", "return isSameMac(mac, record.mac);", "return isSameMac(mac, mac);"],
    ],
    fails: [history, "does not show a record that SQL changed"],
  },
  {
    promise: "A set that was put back is seen",
    edits: [
      ["src/people/history/history.ts", "!isKept && version !== current?.stored.version", "!isKept && version < 0"],
    ],
    fails: [history, "shows that SQL put a set back; the next write takes a number that was never given"],
  },
  {
    promise: "No number of a version is given twice",
    edits: [
      [
        "src/people/editing/version-records.ts",
        "(newer.find((record) => isVerified(admin, record))?.version ?? version) + 1",
        "(newer.length < 0 ? 0 : version) + 1",
      ],
    ],
    fails: [history, "shows that SQL put a set back; the next write takes a number that was never given"],
  },
  {
    promise: "A record that SQL made up takes no number",
    edits: [
      [
        "src/people/editing/version-records.ts",
        "newer.find((record) => isVerified(admin, record))?.version",
        "newer[0]?.version",
      ],
    ],
    fails: [history, "goes on although SQL made up a record"],
  },
  {
    promise: "A record is that of one content alone",
    edits: [
      ["src/seal/set.ts", "const content = version.listingMac ?? Buffer.alloc(0);", "const content = Buffer.alloc(0);"],
    ],
    fails: [history, "does not show one person's record beside another's content"],
  },
  {
    promise: "The record of the current version is that of its content",
    edits: [
      [
        "src/people/history/history.ts",
        "isVerified(admin, row) && (row.version !== current?.stored.version || isRecordOf(row, current.stored))",
        "isVerified(admin, row)",
      ],
    ],
    fails: [history, "does not show one person's record beside another's content"],
  },
  {
    promise: "A rotation leaves no older data key to a kept version",
    edits: [
      [
        "src/people/rotation/rotation.ts",
        "[resealSets, resealVersions, resealContents, deleteOlderKeys]",
        "[resealSets, resealContents, deleteOlderKeys]",
      ],
    ],
    fails: ["integration/rotation", "reseals every set, its kept versions and every content"],
  },
  {
    promise: "A rotation deletes no data key that a kept version needs",
    edits: [["src/people/rotation/rotation.ts", "of [sets, setVersions, fileContents])", "of [sets, fileContents])"]],
    fails: [history, "stops a rename, and is named by a rotation"],
  },
  {
    promise: "A rename reseals kept versions",
    edits: [
      ["src/people/projects/projects.ts", "await resealSet(admin, { ...project, slug }, descriptor, kept, true);", ""],
    ],
    fails: ["property/history", model],
  },
];
