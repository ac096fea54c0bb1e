import type { Proof } from "./proof.ts";

const conditional = "integration/conditional";
const etag = "src/serve/gates/etag.ts";

/** What a request may look like, and what its answer says. */
export const requests: readonly Proof[] = [
  {
    promise: "A query is read the same however it is encoded",
    edits: [["src/serve/gates/query.ts", 'decodeURIComponent(encoded.replaceAll("+", " "))', "encoded"]],
    fails: ["unit/query", "is read the same however it is encoded and ordered"],
  },
  {
    promise: "A query may name many paths",
    edits: [
      [
        "src/serve/gates/query.ts",
        "if (Array.isArray(earlier)) {",
        "if (Array.isArray(earlier) && earlier.length === 0) {",
      ],
    ],
    fails: ["unit/query", "may name a thousand paths"],
  },
  {
    promise: "A query looks up nothing but a slug",
    edits: [
      [
        "src/serve/gates/read-endpoint.ts",
        'slug: slugPattern.test(project) ? project : "",',
        'slug: slugPattern ? project : "",',
      ],
    ],
    fails: ["unit/query", "has no project that cannot be a slug"],
  },
  {
    promise: "A request has one key in one header",
    edits: [["src/serve/gates/exchange.ts", "/^bearer +([\\w.-]+)$/i", "/^bearer +([\\w.-]+)/i"]],
    fails: ["integration/keys", "the header Bearer KEY KEY"],
  },
  {
    promise: "HEAD tells nothing",
    edits: [
      [
        "src/serve/gates/exchange.ts",
        'const isGet = method === "GET";',
        'const isGet = method === "GET" || method === "HEAD";',
      ],
    ],
    fails: ["property/fuzz", "does not take a body for the next request, nor tell the length of a value to HEAD"],
  },
  {
    promise: "A body is not taken for the next request",
    edits: [
      ["src/serve/gates/exchange.ts", "if (isGet && hasBody) exchange.closing = true;\n", ""],
      ["src/serve/gates/exchange.ts", ": isGet && !hasBody) return;", ": isGet) return;"],
    ],
    fails: ["property/fuzz", "does not take a body for the next request, nor tell the length of a value to HEAD"],
    hangs: true,
  },
  {
    promise: "The API does not show which variables are marked for rotation",
    edits: [
      [
        "src/kinds/variables/read.ts",
        "JSON.stringify(entries.map(({ key, updatedAt }) => ({ key, updatedAt })));",
        "JSON.stringify(entries);",
      ],
    ],
    fails: ["integration/marks", "is answered by the API like any other"],
  },
  {
    promise: "A tag is one key's",
    edits: [
      [
        etag,
        "grant.keyId, target?.projectId, query, fingerprint]",
        "grant.keyId.length, target?.projectId, query, fingerprint]",
      ],
    ],
    fails: [conditional, "that no other key and no other question shares"],
  },
  {
    promise: "A tag is one project's",
    edits: [[etag, "target?.projectId, query, fingerprint]", "target?.projectId.length, query, fingerprint]"]],
    fails: [conditional, "that is another for a project of the same name, content and times"],
  },
  {
    promise: "A tag is one question's",
    edits: [[etag, "query, fingerprint]", "query.length, fingerprint]"]],
    fails: [conditional, "that no other key and no other question shares"],
  },
  {
    promise: "A tag is one answer's",
    edits: [[etag, "query, fingerprint]", "query, fingerprint.length * 0]"]],
    fails: [conditional, "never gives one tag to two answers"],
  },
  {
    promise: "A tag is one answer's even if two writes are in one millisecond",
    edits: [["src/people/editing/write.ts", "...(isWritten && { version }) }", "...(isWritten && { version: 0 }) }"]],
    fails: [conditional, "never gives one tag to two answers"],
  },
  {
    promise: "A write of other names changes no tag",
    edits: [
      [
        "src/kinds/variables/read.ts",
        "fingerprint: fingerprintOf(set, chosen) };",
        'fingerprint: fingerprintOf(set, "all") };',
      ],
    ],
    fails: [conditional, "that stays as it is after a write of another variable"],
  },
  {
    promise: "A new data key changes no tag",
    edits: [
      [
        "src/kinds/variables/read.ts",
        "return `${set.environment} ${digestOf(",
        "return `${set.environment} ${set.stored.generation} ${digestOf(",
      ],
    ],
    fails: [conditional, "that stays as it is after a write of a new data key"],
  },
  {
    promise: "A changed answer to a conditional read pays its own bucket",
    edits: [
      [
        "src/serve/gates/read-endpoint.ts",
        "await charge(parts.gate, exchange, caller.grant, admission.bucket);",
        "if (!admission) await charge(parts.gate, exchange, caller.grant, admission.bucket);",
      ],
    ],
    fails: [conditional, "one token of the metadata bucket, and one of its own if the answer changed"],
  },
  {
    promise: "Only a list of tags counts as one",
    edits: [[etag, "tagList.test(header) ? ", "tagList ? "]],
    fails: [conditional, "as any other read with If-None-Match:"],
  },
  {
    promise: "A damaged listing does not break a scrape",
    edits: [["src/store/expiry.ts", "json_valid(", "coalesce(1, "]],
    fails: ["integration/expiry", "are found whatever SQL wrote into other listings"],
  },
  {
    promise: "A log that nobody reads fills no memory",
    edits: [
      [
        "src/serve/process/log.ts",
        "if (waitingBytes + Buffer.byteLength(lines) > waitingBytesMax) {",
        "if (waitingBytes < 0) {",
      ],
      ["src/serve/process/log.ts", "const waitingBytesMax", "export const waitingBytesMax"],
    ],
    fails: ["unit/log", "waits in memory up to 16 MiB"],
  },
  {
    promise: "The first refusal is an increase",
    edits: [
      [
        "src/serve/process/metrics.ts",
        "      for (const [status, code] of alertedCodes) this.#requests.inc({ route, status, code }, 0);\n",
        "      void [route, alertedCodes];\n",
      ],
    ],
    fails: ["integration/ops", "every metric moves with what it names"],
  },
  {
    promise: "A health check without a Host is answered",
    edits: [["src/serve/process/ops.ts", "/^(?:https?:\\/\\/[^/]+)?(\\/[^?]*)/", "/^https?:\\/\\/[^/]+(\\/[^?]*)/"]],
    fails: ["integration/ops", "answers three paths and nothing else"],
  },
];
