import type { Proof } from "./proof.ts";

const tamper = "property/tamper";

/** Contents of files are there, in their place and as they were written. */
export const contents: readonly Proof[] = [
  {
    promise: "Metadata reads check that each content exists",
    edits: [
      [
        "src/kinds/files/read.ts",
        "rows.get(id)?.size === size) ? rows",
        "(rows.get(id)?.size ?? size) === size) ? rows",
      ],
    ],
    fails: [tamper, "a content that was deleted is missing"],
  },
  {
    promise: "Metadata reads check that each content has its size",
    edits: [
      [
        "src/kinds/files/read.ts",
        "entries.every(({ id, size }) => rows.get(id)?.size === size)",
        "entries.every(({ id }) => rows.has(id))",
      ],
    ],
    fails: [tamper, "a content that was given another size is missing"],
  },
  {
    promise: "Reads of values check the size of a content",
    edits: [["src/kinds/files/read.ts", "piece.size !== entry.size || ", ""]],
    fails: [tamper, "a content that was given another size is missing"],
  },
  {
    promise: "A content belongs to its project",
    edits: [
      [
        "src/store/contents.ts",
        "left join ${c} on ${c.projectId} || '' = standing.reached and ${database.isMember(c.id",
        "left join ${c} on ${database.isMember(c.id",
      ],
    ],
    fails: [tamper, "a content that was given to another project is missing"],
  },
  {
    promise: "Associated data binds a content to its listing entry",
    edits: [
      [
        "src/seal/associated-data.ts",
        "content.projectId, content.id, content.size, content.sha256)",
        "content.projectId, content.size)",
      ],
    ],
    fails: [tamper, "two contents that exchanged their ids do not open"],
  },
  {
    promise: "Associated data binds a content's bytes to the listed checksum",
    edits: [["src/seal/associated-data.ts", "content.size, content.sha256)", "content.size)"]],
    fails: ["integration/files", "decryption_failed if content of 100 bytes was sealed for another checksum"],
  },
  {
    promise: "Pieces of one content have one generation",
    edits: [["src/kinds/files/read.ts", 'if (content.rowVersion !== piece.rowVersion) return "changed";', ""]],
    fails: ["integration/rotation", "never mixes pieces of two generations"],
    on: "PostgreSQL",
  },
];
