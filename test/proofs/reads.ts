import type { Proof } from "./proof.ts";

const fails = [
  "property/micro/agrees",
  "answers, records and charges as the server does, in random history …",
] as const;

/** What random histories find, in which the server and the small Keyhole must agree. */
export const reads: readonly Proof[] = [
  {
    promise: "A request needs the surface",
    edits: [
      [
        "src/serve/access/grant.ts",
        'if (need.surface && !(grant.surfaces & bitsOf(surfaces, [need.surface]))) return "surface_required";',
        "",
      ],
    ],
    fails,
  },
  {
    promise: "A request needs the resource",
    edits: [
      [
        "src/serve/access/grant.ts",
        'if (need.resource && !(grant.resources & need.resource.bit)) return "resource_required";',
        "",
      ],
    ],
    fails,
  },
  {
    promise: "A request needs the environment in the scope of its key",
    edits: [
      [
        "src/serve/gates/read-endpoint.ts",
        "if (reaches(grant, environment)) return;",
        "if (reaches(grant, environment) || grant) return;",
      ],
    ],
    fails,
  },
  {
    promise: "Counts are those of the environments that the key reaches",
    edits: [
      [
        "src/serve/sets/counts.ts",
        "((index + 1) & reach ? sum + count : sum)",
        "((index + 1) & ~0 || reach ? sum + count : sum)",
      ],
    ],
    fails,
  },
  {
    promise: "A key with a list reaches a project by the slug of the list alone",
    edits: [["src/store/projects.ts", 'and ${p.slug} = listed."key")', ")"]],
    fails,
  },
  {
    promise: "A parameter that is not known is refused",
    edits: [["src/serve/gates/query.ts", "|| !Object.hasOwn(known, name)", ""]],
    fails,
  },
  {
    promise: "An empty parameter is refused",
    edits: [["src/serve/gates/query.ts", '[value].flat().includes("")', "false"]],
    fails,
  },
  {
    promise: "An entry names all that was returned",
    edits: [
      [
        "src/serve/gates/read-endpoint.ts",
        "read.entries.map((names) => ({ ...entry, names }))",
        "read.entries.map((names) => ({ ...entry, names: names.slice(1) }))",
      ],
    ],
    fails,
  },
  {
    promise: "The tag of an answer differs for each key",
    edits: [["src/serve/gates/etag.ts", '"keyhole etag v1", grant.keyId,', '"keyhole etag v1",']],
    fails,
  },
  {
    promise: "The tag of an answer differs for each question",
    edits: [
      [
        "src/serve/gates/etag.ts",
        "target?.projectId, query, fingerprint",
        "target?.projectId, query.length, fingerprint",
      ],
    ],
    fails,
  },
  {
    promise: "A conditional read that has changed pays from its own bucket too",
    edits: [
      [
        "src/serve/gates/read-endpoint.ts",
        "await charge(parts.gate, exchange, caller.grant, admission.bucket); // 429",
        "",
      ],
    ],
    fails,
  },
  {
    promise: "Only a flag that is exactly true makes a metadata read",
    edits: [["src/serve/gates/query.ts", 'return value === "true" ||', 'return value !== "" ||']],
    fails,
  },
  {
    promise: "A request pays one token",
    edits: [
      [
        "src/serve/gates/admit.ts",
        "if (known === undefined) await charge(gate, exchange, found.grant, bucket);",
        "await charge(gate, exchange, found.grant, bucket);",
      ],
    ],
    fails,
  },
  {
    promise: "A text that was refused is charged as an unrecognized one from then on",
    edits: [["src/serve/gates/admit.ts", "  else gate.limiter.forget(digestText);\n", ""]],
    fails,
  },
  {
    promise: "An account names all environments that have it and that the key reaches",
    edits: [
      [
        "src/kinds/accounts/read.ts",
        "account.environments.push(set.environment);\n      if (environment !== null && set.environment !== environment) continue;",
        "if (environment !== null && set.environment !== environment) continue;\n      account.environments.push(set.environment);",
      ],
    ],
    fails,
  },
  {
    promise: "A key that has expired is refused",
    edits: [
      [
        "src/store/reach.ts",
        "or ${k.expiresAt} > ${nowMs})\n    then 1 else 0 end",
        "or ${k.expiresAt} > ${nowMs} - 86400000)\n    then 1 else 0 end",
      ],
    ],
    fails,
  },
  {
    promise: "A listing that SQL edited is refused",
    edits: [
      [
        "src/serve/sets/verified-set.ts",
        "verifyListing(keys.listingKey, this.#identity, { generation, listingMac, listing });",
        "void verifyListing;",
      ],
    ],
    fails,
  },
  {
    promise: "On SQLite, a set is remembered only as the very same row",
    edits: [
      [
        "src/serve/sets/remembered.ts",
        "row === null ? stored.rowVersion === rowVersion : isSame(stored, row, needsValues)",
        "row === null ? stored.rowVersion === rowVersion : isSame(stored, row, needsValues) || true",
      ],
    ],
    fails,
  },
  {
    promise: "A job gets no more answers with values than its trust allows",
    edits: [
      ["src/serve/gates/record.ts", "entries.some(({ names }) => names.length > 0) ? job : undefined", "undefined"],
    ],
    fails,
  },
  {
    promise: "A key that SQL widened is refused",
    edits: [
      [
        "src/serve/access/authenticate.ts",
        "const isGranted = seals.isGrant(row);",
        "const isGranted = seals.isGrant(row) || true;",
      ],
    ],
    fails,
  },
  {
    promise: "Retry-After is long enough",
    edits: [
      [
        "src/serve/limit/bucket.ts",
        "Math.max(1, Math.ceil(retryAfterUs / 1_000_000))",
        "Math.max(1, Math.floor(retryAfterUs / 1_000_000))",
      ],
    ],
    fails,
  },
  {
    promise: "The 1000 files of a project count whatever is asked for",
    edits: [
      [
        "src/serve/sets/lookup.ts",
        'Math.max(countOf(target?.counts ?? ""), ...',
        'Math.max(...(countOf(target?.counts ?? "") ? [] : []), ...',
      ],
    ],
    fails,
  },
  {
    promise: "Files of more than 8 MiB are refused by their recorded sizes",
    edits: [["src/kinds/files/read.ts", "if (bytes > contentBytesMax) throw", "if (bytes < 0) throw"]],
    fails,
  },
  {
    promise: "The last change of a project is one in an environment that the key reaches",
    edits: [
      [
        "src/serve/api/read-projects.ts",
        "grant.environments & (1 << index)",
        "grant.environments & (1 << index) || true",
      ],
    ],
    fails,
  },
];
