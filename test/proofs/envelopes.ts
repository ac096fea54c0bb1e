import type { Proof } from "./proof.ts";

const tamper = "property/tamper";

/** Envelopes, and keys that wrap keys. */
export const envelopes: readonly Proof[] = [
  {
    promise: "The tag of an envelope is verified",
    edits: [["src/seal/envelope.ts", "opening.final();", ""]],
    fails: ["property/seal", "does not open when any single bit of it is flipped"],
  },
  {
    promise: "The tag of a large content is verified",
    edits: [["src/seal/file-content.ts", "opening.final();", ""]],
    fails: ["property/seal", "opens in pieces exactly when it opens at once"],
  },
  {
    promise: "The header of an envelope is authenticated",
    edits: [
      ["src/seal/envelope.ts", "opening.setAAD(sealed.subarray(0, nonceAt));", ""],
      ["src/seal/envelope.ts", "sealing.setAAD(sealed.subarray(0, nonceAt));", ""],
    ],
    fails: [tamper, "every flipped bit of a data key, and of the name of its root key, is noticed"],
  },
  {
    promise: "A data key belongs to its project",
    edits: [
      [
        "src/seal/associated-data.ts",
        'encodeFields("data key", projectId, generation, rootId)',
        'encodeFields("data key", projectId.slice(0, 0), generation, rootId)',
      ],
    ],
    fails: ["property/seal", "opens a data key only for its project and generation"],
  },
  {
    promise: "A data key belongs to its generation",
    edits: [
      [
        "src/seal/associated-data.ts",
        'encodeFields("data key", projectId, generation, rootId)',
        'encodeFields("data key", projectId, generation * 0, rootId)',
      ],
    ],
    fails: ["property/seal", "opens a data key only for its project and generation"],
  },
  {
    promise: "A data key belongs to its root key",
    edits: [
      [
        "src/seal/associated-data.ts",
        'encodeFields("data key", projectId, generation, rootId)',
        'encodeFields("data key", projectId, generation, rootId.slice(0, 0))',
      ],
    ],
    fails: ["property/seal", "of a data key: a value does not open if any one field differs"],
  },
  {
    promise: "Opened data keys are remembered by all their inputs",
    edits: [
      [
        "src/seal/keyring.ts",
        "encodeFields(projectId, generation, rootId, wrapped).toString",
        "encodeFields(projectId, generation, rootId).toString",
      ],
    ],
    fails: ["property/seal", "opens a data key only for its project and generation"],
  },
  {
    promise: "Each kind has a subkey of its own",
    edits: [["src/seal/keyring.ts", "derive(key, `${of} subkey`)", "derive(key, `${of.slice(0, 0)} subkey`)"]],
    fails: ["unit/vectors", "has these subkeys"],
  },
  {
    promise: "A system key has one purpose",
    edits: [
      [
        "src/seal/associated-data.ts",
        'encodeFields("system key", purpose, rootId)',
        'encodeFields("system key", purpose.slice(0, 0), rootId)',
      ],
    ],
    fails: ["unit/keyring", "a row does not open for another purpose, nor if it was changed"],
  },
];
