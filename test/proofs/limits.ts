import type { Proof } from "./proof.ts";

const overLimit = "costs no statement, nor does an unknown key that was refused too often";

/** How often a key may read, and how much. */
export const limits: readonly Proof[] = [
  {
    promise: "A known key over its limit costs no statement",
    edits: [
      ["src/serve/gates/admit.ts", "    await charge(gate, exchange, known, bucket);\n", ""],
      ["src/serve/gates/admit.ts", "if (known === undefined) await charge(", "await charge("],
    ],
    fails: ["property/authority", overLimit],
  },
  {
    promise: "An unknown key that was refused too often costs no statement",
    edits: [
      ["src/serve/gates/admit.ts", "if (!peeked.allowed) {", "if (!peeked.allowed && peeked.retryAfterUs < 0) {"],
    ],
    fails: ["property/authority", overLimit],
  },
  {
    promise: "A good key is not taken for unknown, whatever SQL did to its organization",
    edits: [
      [
        "src/serve/gates/admit.ts",
        '!(error instanceof Fault) || error.code !== "unauthorized"',
        "!(error instanceof Fault)",
      ],
      [
        "src/serve/gates/admit.ts",
        "  } catch (error) {\n    throw refused(",
        "    requireOrganization(found);\n  } catch (error) {\n    throw refused(",
      ],
    ],
    fails: ["integration/limits", "a good key whose organization SQL damaged"],
  },
  {
    promise: "A good key pays from its own bucket, whatever SQL did to its organization",
    edits: [
      [
        "src/serve/gates/admit.ts",
        "  const { keyId, organizationId } = found.grant;",
        "  requireOrganization(found);\n  const { keyId, organizationId } = found.grant;",
      ],
    ],
    fails: ["integration/limits", "a good key whose organization SQL damaged"],
  },
  {
    promise: "Check and take of a token are one step",
    edits: [
      [
        "src/serve/limit/limiter.ts",
        "if (decision.allowed) shard.set(keyId, decision.fullAtUs);",
        "if (decision.allowed) queueMicrotask(() => shard.set(keyId, decision.fullAtUs));",
      ],
    ],
    fails: ["property/concurrency", "each pay from their own bucket, and no token is spent twice"],
  },
  {
    promise: "A set has at most 10,000 items",
    edits: [["src/people/editing/write.ts", "items.length > setItemsMax || ", ""]],
    fails: ["integration/sets", "refuse more than 10,000 items"],
  },
  {
    promise: "A set has at most 8 MiB of values",
    edits: [["src/people/editing/write.ts", "bytes > setBytesMax || ", ""]],
    fails: ["integration/sets", "refuse more than 8 MiB of values"],
  },
  {
    promise: "An answer has at most 1000 projects, of those in reach alone",
    edits: [
      [
        "src/store/projects.ts",
        'join ${p} on ${p.id} = listed.value and ${p.slug} = listed."key")',
        "join ${p} on ${p.id} = listed.value)",
      ],
    ],
    fails: ["integration/projects", "are all there or refused"],
  },
  {
    promise: "A project list that servers do not read is not written",
    edits: [["src/people/keys/keys.ts", "if (bytes <= projectsBytesMax) return list;", "if (bytes > 0) return list;"]],
    fails: ["integration/keys", "lists as many projects as servers read"],
  },
  {
    promise: "A project list that is too large is called so",
    edits: [["src/serve/access/authenticate.ts", "if (isTooLarge) throw", "if (isTooLarge && row.live === 2) throw"]],
    fails: ["integration/keys", "lists as many projects as servers read"],
  },
  {
    promise: "An answer has at most 1000 variables",
    edits: [
      ["src/kinds/variables/read.ts", "if (names.length > itemsMax) throw", "if (names.length > itemsMax * 2) throw"],
    ],
    fails: ["integration/lists", "of variables, 1001 in production and 0 in staging alone, is whole or refused"],
  },
  {
    promise: "Readers count the files of a project in all environments",
    edits: [
      ["src/serve/sets/lookup.ts", "if (total > projectItemsMax) throw", "if (total > projectItemsMax * 3) throw"],
    ],
    fails: ["integration/files", "the 1000 are counted in all environments, each file once"],
  },
  {
    promise: "Every kind with such a bound comes with its counts",
    edits: [
      [
        "src/kinds/kind.ts",
        "projectItemsMax !== undefined)",
        'projectItemsMax !== undefined).filter(({ kind }) => kind === "files")',
      ],
    ],
    fails: ["integration/kinds", "is written, read, counted, listed"],
  },
  {
    promise: "An answer has at most 8 MiB of files",
    edits: [
      ["src/kinds/files/read.ts", "if (bytes > contentBytesMax) throw", "if (bytes > contentBytesMax * 2) throw"],
    ],
    fails: ["integration/files", "8 MiB of content are answered, and one byte more is refused"],
  },
  {
    promise: "A set is fetched only into memory that was claimed",
    edits: [
      [
        "src/serve/sets/lookup.ts",
        "await fetchOnce(reading, project, query, bytesMax);",
        "await fetchOnce(reading, project, query, 2 ** 30 + bytesMax * 0);",
      ],
    ],
    fails: ["integration/variables", "is taken before a set is fetched, and no statement returns more than was taken"],
  },
  {
    promise: "Memory is given back if the client goes away",
    edits: [["src/serve/gates/body.ts", "    cancel: end,\n", ""]],
    fails: ["integration/reads", "gives its memory back however its answer ends"],
  },
  {
    promise: "Memory is given back after a refusal",
    edits: [["src/serve/gates/record.ts", "    share.release();\n    throw error;", "    throw error;"]],
    fails: ["integration/reads", "gives its memory back however its answer ends"],
  },
  {
    promise: "SQL makes no key's buckets larger",
    edits: [
      ["src/serve/access/grant.ts", "...(grant.rate === null && grant.from === null ? [] : [grant.rate]),", ""],
      ["src/serve/access/grant.ts", "    a.rate === b.rate &&\n", ""],
    ],
    fails: ["integration/keys", "with a rate of its own may ask as many times as often"],
  },
  {
    promise: "A row whose rate changed is not taken for the one that was verified",
    edits: [["src/serve/access/grant.ts", "    a.rate === b.rate &&\n", ""]],
    fails: ["integration/keys", "with a rate of its own may ask as many times as often"],
  },
  {
    promise: "A key that is known pays from a bucket of its own rate",
    edits: [
      ["src/serve/limit/limiter.ts", "set(digest, { keyId, rate, from })", "set(digest, { keyId, rate: null, from })"],
    ],
    fails: ["integration/keys", "with a rate of its own may ask as many times as often"],
  },
  {
    promise: "A header that is no key has a count of its own",
    edits: [
      [
        "src/serve/gates/admit.ts",
        'const text = presented.kind === "token" ? (token ?? "") : presented.text;',
        'const text = token ?? "";',
      ],
    ],
    fails: ["integration/limits", "each text has its own count, a request without a key has none"],
  },
];
