import type { Proof } from "./proof.ts";

const tamper = "property/tamper";
const listingFields = 'encodeFields("listing", ...identityFields(set), generation, listing)';
const constant = (field: string) =>
  `encodeFields("listing", ...identityFields({ ...set, ${field}: "" }), generation, listing)`;

/** A set is whole, in its place and as it was written. */
export const sets: readonly Proof[] = [
  {
    promise: "The listing's mac covers the organization",
    edits: [["src/seal/associated-data.ts", listingFields, constant("organizationId")]],
    fails: [tamper, "a project moved to another organization opens for nobody"],
  },
  {
    promise: "The listing's mac covers the project",
    edits: [["src/seal/associated-data.ts", listingFields, constant("projectId")]],
    fails: ["property/seal", "of a listing: a value does not open if any one field differs"],
  },
  {
    promise: "The listing's mac covers the slug",
    edits: [["src/seal/associated-data.ts", listingFields, constant("slug")]],
    fails: [tamper, "a project with an edited slug opens for nobody"],
  },
  {
    promise: "The listing's mac covers the kind",
    edits: [["src/seal/associated-data.ts", listingFields, constant("kind")]],
    fails: [tamper, "sets that exchanged their kind with another open nowhere"],
  },
  {
    promise: "The listing's mac covers the environment",
    edits: [["src/seal/associated-data.ts", listingFields, constant("environment")]],
    fails: [tamper, "sets that exchanged their environment with another open nowhere"],
  },
  {
    promise: "The listing's mac covers the version",
    edits: [["src/seal/associated-data.ts", listingFields, listingFields.replace("(set)", "({ ...set, version: 0 })")]],
    fails: [tamper, "a set put together of two of its versions is refused"],
  },
  {
    promise: "The listing's mac covers the generation",
    edits: [["src/seal/associated-data.ts", listingFields, listingFields.replace("generation", "0")]],
    fails: [tamper, "flipped bits of a set of accounts are noticed, in every column"],
  },
  {
    promise: "The listing's mac covers the listing",
    edits: [["src/seal/associated-data.ts", listingFields, listingFields.replace(", listing)", ', "")')]],
    fails: [tamper, "a listing that was edited is neither shown nor used"],
  },
  {
    promise: "Metadata reads compare the listing's mac",
    edits: [["src/serve/sets/verified-set.ts", "    verifyListing(", "    if (stored.sealed !== null) verifyListing("]],
    fails: [tamper, "a listing that was edited is neither shown nor used"],
  },
  {
    promise: "Reads of values compare the listing's mac",
    edits: [["src/serve/sets/verified-set.ts", "    verifyListing(", "    if (stored.sealed === null) verifyListing("]],
    fails: [tamper, "flipped bits of a set of accounts are noticed, in every column"],
  },
  {
    promise: "A mac is compared in full",
    edits: [
      [
        "src/core/hash.ts",
        "a.length === b?.length && timingSafeEqual(a, b)",
        "b != null && Buffer.compare(a.subarray(0, b.length), b.subarray(0, a.length)) === 0",
      ],
    ],
    fails: [tamper, "every length but the right one is noticed: cut at either end, or longer"],
  },
  {
    promise: "Version and mac bind the values to the listing",
    edits: [
      [
        "src/seal/associated-data.ts",
        'encodeFields("set", ...identityFields(set), listingMac)',
        'encodeFields("set", ...identityFields({ ...set, version: 0 }))',
      ],
    ],
    fails: [tamper, "a set put together of two of its versions is refused"],
  },
  {
    promise: "Associated data binds the values to their set",
    edits: [
      [
        "src/seal/associated-data.ts",
        'encodeFields("set", ...identityFields(set), listingMac)',
        'encodeFields("set", listingMac)',
      ],
    ],
    fails: ["unit/vectors", "the associated data of a set has these bytes"],
  },
  {
    promise: "A set of files has no values",
    edits: [["src/serve/sets/verified-set.ts", " || (!hasValues && stored.sealedBytes !== null)", ""]],
    fails: [tamper, "a damaged set refuses every write … files, values of a set of files"],
  },
  {
    promise: "A missing set is never an empty one, for readers",
    edits: [
      [
        "src/serve/sets/lookup.ts",
        "if (found === undefined) throw missingSet(project, descriptor.kind, environment);\n    let set",
        "if (found === undefined) continue;\n    let set",
      ],
    ],
    fails: [tamper, "a set of accounts that was deleted is never taken for an empty one"],
  },
  {
    promise: "A missing or damaged set is never an empty one, for writers",
    edits: [
      [
        "src/people/editing/open.ts",
        "const set = row && verify(admin, of, row);\n    if (set === undefined) throw unusable(of, wereChanged);",
        "const set = (row && verify(admin, of, row)) ?? ({ environment: of.environment, stored: { version: 1 }, entries: [], open: () => Buffer.alloc(0), isMachinesOnly: () => false } as unknown as VerifiedSet<E>);",
      ],
    ],
    fails: [tamper, "a damaged set refuses every write … variables, a bit of its listing"],
  },
  {
    promise: "Values that do not open refuse writes",
    edits: [
      [
        "src/people/editing/open.ts",
        'throw isKept ? damagedVersion(of, version) : unusable(of, "do not open");',
        "return { ...of, version, items: new Map(), isMachinesOnly: () => false };",
      ],
    ],
    fails: [tamper, "a damaged set refuses every write … variables, its values"],
  },
  {
    promise: "The lengths of items add up to their bytes",
    edits: [["src/seal/set.ts", "Math.max(0, at - 1) !== all.length || ", ""]],
    fails: ["unit/vectors", "never opens its values: lengths that leave a byte over"],
  },
  {
    promise: "The count of items fits their bytes",
    edits: [
      ["src/seal/set.ts", " || start > plaintext.length) throw malformed(plaintext);", ") throw malformed(plaintext);"],
    ],
    fails: ["unit/vectors", "never opens its values: a count larger than the plaintext"],
  },
  {
    promise: "A set has as many values as its listing has entries",
    edits: [["src/serve/sets/verified-set.ts", "if (opened.count === this.entries.length) return", "return"]],
    fails: ["integration/sets", "an envelope with one item more than its listing is refused by reads and writes"],
  },
  {
    promise: "Values are UTF-8",
    edits: [["src/seal/set.ts", " || !isUtf8(all)", ""]],
    fails: ["unit/vectors", "never opens its values: invalid UTF-8"],
  },
  {
    promise: "Opened values are zeroed after they were parsed",
    edits: [["src/kinds/variables/render.ts", "objects.fill(0);", ""]],
    fails: ["integration/sets", "are zeroed once an answer was made of them"],
  },
  {
    promise: "Opened values are zeroed after they were copied into JSON",
    edits: [["src/core/formats/json.ts", "opened.fill(0);", ""]],
    fails: ["integration/sets", "are zeroed once an answer was made of them"],
  },
  {
    promise: "Opened accounts are zeroed after they were copied into JSON",
    edits: [["src/kinds/accounts/render.ts", "for (const all of texts.keys()) all.fill(0);", ""]],
    fails: ["integration/sets", "are zeroed once an answer was made of them"],
  },
  {
    promise: "All opened values are zeroed if some were picked",
    edits: [["src/kinds/variables/read.ts", "all.fill(0);", ""]],
    fails: ["integration/sets", "are zeroed once an answer was made of them"],
  },
  {
    promise: "Writers of one set take turns",
    edits: [["src/store/sqlite.ts", 'file.run("BEGIN IMMEDIATE")', 'file.run("BEGIN")']],
    fails: ["integration/sets", "lose nothing when four processes write at once"],
  },
  {
    promise: "Each write of a set gets the next version",
    edits: [
      ["src/people/editing/write.ts", "await nextVersion(admin, before, before.version)", "Number(before.version)"],
      [
        "src/people/editing/write.ts",
        "insertRecord, isOfSet, nextVersion, resealedRecord",
        "insertRecord, isOfSet, resealedRecord",
      ],
    ],
    fails: ["integration/sets", "lose nothing when 20 write one set at once, and its version rises by one for each"],
  },
  {
    promise: "An environment that a project does not use takes no new item",
    edits: [["src/people/editing/write.ts", "if (added.length > 0) requireUse(project, before.environment);", ""]],
    fails: ["integration/environments", "takes no new item in an environment that it does not use, by no way"],
  },
  {
    promise: "Two people do not both write a set, at once on one SQLite file",
    edits: [
      [
        "src/installation/installation.ts",
        "openSqlite(path, use, inTurn);",
        "openSqlite(path, use, inTurn && turns());",
      ],
    ],
    fails: ["integration/sets", "lose nothing when 20 write one set at once"],
    hangs: true,
  },
];
