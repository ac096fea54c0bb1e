import type { Edit, Proof } from "./proof.ts";

const tamper = "property/tamper";
const associatedData = "src/seal/associated-data.ts";
const envelope = "src/seal/envelope.ts";
const token = "src/serve/access/token.ts";
const admit = "src/serve/gates/admit.ts";

/** A field of the values' associated data that is always empty. */
const without = (field: string): Edit => [
  associatedData,
  'encodeFields("set", ...identityFields(set), listingMac)',
  `encodeFields("set", ...identityFields({ ...set, ${field}: "" }), listingMac)`,
];

/** The header of an envelope is not authenticated. */
const bareHeader: readonly Edit[] = [
  [envelope, "opening.setAAD(sealed.subarray(0, nonceAt));", ""],
  [envelope, "sealing.setAAD(sealed.subarray(0, nonceAt));", ""],
];

/**
 * Defences that have a second one behind them. If one of them goes, no answer changes. So a proof removes both, or names
 * a test that looks at the first one alone.
 */
export const secondLines: readonly Proof[] = [
  // The mac of the listing covers these too. They still bind the values if a reader forgets the mac.
  ...["organizationId", "projectId", "slug", "kind", "environment", "version"].map((field) => ({
    promise: `The values' associated data has the ${field} of their set`,
    edits: [without(field)],
    fails: ["unit/vectors", "the associated data of a set has these bytes"] as const,
  })),
  {
    // The version is there too. The mac is needed if a restored database gives a version a second time.
    promise: "The values' associated data has the mac of their listing",
    edits: [
      [associatedData, "...identityFields(set), listingMac)", "...identityFields(set), listingMac.subarray(32))"],
    ],
    fails: ["unit/vectors", "the associated data of a set has these bytes"],
  },
  {
    // The header is authenticated, and the mac covers the column.
    promise: "The generation of a set's envelope is that of its column",
    edits: [["src/seal/set.ts", " || generationOf(sealed) !== generation", ""]],
    fails: ["unit/vectors", "never opens its values: an envelope of another generation than the row"],
  },
  {
    promise: "The generation of a content's envelope is that of its column, and its header is authenticated",
    edits: [["src/kinds/files/read.ts", " || generationOf(first) !== generation", ""], ...bareHeader],
    fails: [tamper, "flipped bits of a file, and of its row, are noticed"],
  },
  // The data key belongs to the project, contents with one checksum have the same bytes, and the size is compared.
  ...["content.projectId", "content.id", "content.size"].map((field) => ({
    promise: `A content's associated data has its ${field.slice("content.".length)}`,
    edits: [[associatedData, `${field}, `, ""] as const],
    fails: ["unit/vectors", "the associated data of a file content has these bytes"] as const,
  })),
  {
    promise: "A statement returns no set to a key that has ended, and such a standing is refused",
    edits: [
      [
        "src/store/reach.ts",
        "case when ${liveness(database)} = 1 and ${o.plan} = 'pro' then ${p.id} end as reached",
        "${p.id} as reached",
      ],
      ["src/serve/sets/lookup.ts", "if (!standing?.live) throw", "if (!standing) throw"],
    ],
    fails: ["integration/keys", "before the set of a key that is now revoked"],
  },
  {
    // SQL alone finds sets of environments that a reader then does not use.
    promise: "No set is read in an environment out of the key's reach",
    edits: [
      ["src/store/reach.ts", " & ${at.scope}) <> 0`", " + 0 * ${at.scope}) <> 0`"],
      [
        "src/serve/sets/lookup.ts",
        "of environmentsOf(environments & grant.environments)) {",
        "of environmentsOf(environments)) {",
      ],
      [
        "src/serve/sets/lookup.ts",
        "return environmentsOf(environments & caller.grant.environments).map(",
        "return environmentsOf(environments).map(",
      ],
    ],
    fails: [
      "integration/accounts",
      "has the values and updatedAt of the asked environment, or of the one that changed last",
    ],
  },
  {
    // jose refuses the first again, and key sets hold no shared secrets. The test compares the reason.
    promise: "A token by no algorithm is refused before anything is verified",
    edits: [[token, 'const algorithms = ["RS256",', 'const algorithms = ["none", "RS256",']],
    fails: ["integration/trusts", "without a signature, by the algorithm none"],
  },
  {
    promise: "A token by HMAC is refused before anything is verified",
    edits: [[token, 'const algorithms = ["RS256",', 'const algorithms = ["HS256", "RS256",']],
    fails: ["integration/trusts", "by HMAC with the public key as its secret"],
  },
  {
    // The lookup compares the seal again.
    promise: "No issuer is asked for keys because SQL made up a trust",
    edits: [
      [
        "src/serve/access/trust-directory.ts",
        "if (text === null || !isSameMac(grantSeal, sealGrant(grantKey, digest, row))) return",
        "void [isSameMac, sealGrant, grantKey, grantSeal];\n  if (text === null) return",
      ],
    ],
    fails: ["integration/trusts", "of a trust to which SQL gave another issuer"],
  },
  {
    // The row was found by the digest, and the grant seal covers it.
    promise: "A key's row is that of its digest",
    edits: [
      [
        "src/serve/access/authenticate.ts",
        "if (!row || !isSameMac(row.digest, digest)) throw",
        "void [isSameMac, digest];\n  if (!row) throw",
      ],
      ["src/serve/access/grant.ts", 'Buffer.from(digest).toString("hex")', 'Buffer.from(digest).toString("hex", 0, 0)'],
    ],
    fails: [tamper, "a key row that Keyhole did not write is no key"],
  },
  {
    // The mac of a segment covers its numbers and the mac before it.
    promise: "The numbers of segments follow each other",
    edits: [
      [
        "src/record/verify.ts",
        "const follows = firstSeq === link.lastSeq + 1 && segmentMac(",
        "const follows = segmentMac(",
      ],
      ["src/record/segment.ts", 'Buffer.from(previous).toString("hex"), lane, firstSeq, lastSeq, at,', '"", lane, at,'],
    ],
    fails: ["unit/audit-verify", "7: one in the middle"],
  },
  {
    // A request without the header ends before a token is used.
    promise: "A key in the query string is no key",
    edits: [
      ["src/serve/api/app.ts", '.use(bearer({ extract: { query: Symbol("off") as never } }))', ".use(bearer())"],
      [
        "src/serve/gates/exchange.ts",
        'if (header === null) return { kind: "nothing" };',
        'if (header === null) return { kind: "token" };',
      ],
    ],
    fails: ["integration/keys", "a key in the query string, as access_token"],
  },
  {
    // Both remove them: as the key is refused, and from every 401.
    promise: "The refusal of a key that was revoked does not tell its limits",
    edits: [
      [admit, "  exchange.rateLimit = undefined;\n  const refusal", "  const refusal"],
      ["src/serve/api/app.ts", '  if (fault.code === "unauthorized") exchange.rateLimit = undefined;\n', ""],
    ],
    fails: ["integration/keys", "once it is revoked, for good"],
  },
  {
    // The lookup notices it too, unless the set goes between the two statements.
    promise: "A set that is deleted after the lookup is not taken for an empty one",
    edits: [
      [
        "src/serve/sets/lookup.ts",
        "if (found === undefined) throw missingSet(project, descriptor.kind, environment);\n    const set",
        "if (found === undefined) return broughtSets as never;\n    const set",
      ],
    ],
    fails: ["integration/variables", "that is waited for does not make an empty set of one that was deleted"],
  },
  {
    // The project's total is at least as large, unless SQL lowered it.
    promise: "The files of one environment are counted, too",
    edits: [
      [
        "src/serve/sets/lookup.ts",
        'Math.max(countOf(target?.counts ?? ""), ...sets.map(({ entries }) => entries.length))',
        'Math.max(countOf(target?.counts ?? ""), sets.length)',
      ],
    ],
    fails: ["integration/files", "1001 files of one environment are refused, whatever SQL made of the counts"],
  },
];
