import type { Proof } from "./proof.ts";

const tamper = "property/tamper";
const grantFields = (field: string): Proof => ({
  promise: `The grant seal covers ${field}`,
  edits: [["src/serve/access/grant.ts", `    grant.${field},\n`, ""]],
  fails: [tamper, "a key row that Keyhole did not write is no key"],
});
const firstTen = "the first ten attempts are answered 401 and the next 429";

/** Who may read what, by key. */
export const keys: readonly Proof[] = [
  {
    promise: "The grant seal is compared",
    edits: [
      [
        "src/serve/access/authenticate.ts",
        "if (!row.live || !isGranted) {",
        'if (!row.live || (!isGranted && row.projects === "")) {',
      ],
    ],
    fails: [tamper, "a key row that Keyhole did not write is no key"],
  },
  ...["organizationId", "surfaces", "resources", "environments", "projects", "expiresAt"].map(grantFields),
  {
    promise: "A key whose row was verified before is verified again if its row changed",
    edits: [["src/serve/access/grant.ts", "    a.environments === b.environments &&\n", ""]],
    fails: [tamper, "a key row that Keyhole did not write is no key"],
  },
  {
    promise: "A key from elsewhere is refused",
    edits: [
      [
        "src/serve/access/authenticate.ts",
        '  if (!isUsableFrom(row, caller)) throw new AlarmingRefusal("elsewhere", row);\n',
        "",
      ],
    ],
    fails: ["integration/elsewhere", "gets the answers of an unknown key from elsewhere"],
  },
  {
    promise: "A key from elsewhere pays no bucket of its own",
    edits: [["src/serve/gates/admit.ts", "payer && isUsableFrom(payer, clientAddress) ? payer : undefined", "payer"]],
    fails: ["integration/elsewhere", "gets the answers of an unknown key from elsewhere"],
  },
  {
    promise: "A thief elsewhere does not use up the attempts of whoever may use the key",
    edits: [
      [
        "src/serve/gates/admit.ts",
        'if (alarm?.kind === "elsewhere") gate.limiter.recognize(digestText, alarm.row);\n  else gate',
        "gate",
      ],
    ],
    fails: ["integration/elsewhere", "gets the answers of an unknown key from elsewhere"],
  },
  {
    promise: "A grant seal covers the ranges, and a row whose ranges changed is verified again",
    edits: [
      ["src/serve/access/grant.ts", "    ...(grant.from === null ? [] : [grant.from]),\n", ""],
      ["src/serve/access/grant.ts", "    a.from === b.from &&\n", ""],
    ],
    fails: ["integration/elsewhere", "is no key any more once SQL has given it other ranges"],
  },
  {
    promise: "A row whose ranges changed is not taken for the one that was verified",
    edits: [["src/serve/access/grant.ts", "    a.from === b.from &&\n", ""]],
    fails: ["integration/elsewhere", "is no key any more once SQL has given it other ranges"],
  },
  {
    promise: "In a grant seal, ranges do not stand in the place of a rate",
    edits: [
      ["src/serve/access/grant.ts", "grant.rate === null && grant.from === null ? []", "grant.rate === null ? []"],
    ],
    fails: ["integration/elsewhere", "has another seal if its ranges stand in the column of another term"],
  },
  {
    promise: "An organization's seal is compared by whatever resolves its slug",
    edits: [["src/people/desk/organizations.ts", "isSameMac(", "((a: unknown, _: unknown) => a != null)("]],
    fails: ["integration/organization-seal", "is refused by whatever resolves its slug"],
  },
  {
    promise: "An organization's row without a seal is refused",
    edits: [
      [
        "src/people/desk/organizations.ts",
        "isSameMac(",
        "((a: Uint8Array | null | undefined, b: Uint8Array) => a == null || isSameMac(a, b))(",
      ],
    ],
    fails: ["integration/organization-seal", "is refused with a seal that is null, also after the next start"],
  },
  {
    promise: "A key's digest needs the pepper",
    edits: [["src/serve/access/api-key.ts", "hmac(pepper, text)", "hmac(new Uint8Array(pepper.length), text)"]],
    fails: ["property/api-key", "a digest is the HMAC-SHA-256 that node:crypto computes"],
  },
  {
    promise: "A key reaches projects of its own organization alone",
    edits: [
      ["src/store/reach.ts", "sql`${p.organizationId} = ${k.organizationId}\n    and ${p.slug}", "sql`${p.slug}"],
    ],
    fails: ["property/equality", "in status, body, every header, tokens taken and the words of the log"],
  },
  {
    promise: "A key with a list reaches the projects of it alone",
    edits: [
      [
        "src/store/reach.ts",
        "case when ${isListed(sql`''`)} then ${slug} else '' end and ${isListed(sql`${p.id} || '\"'`)}`",
        "${slug}`",
      ],
    ],
    fails: ["property/equality", "in status, body, every header, tokens taken and the words of the log"],
  },
  {
    promise: "A key with a list reaches the projects of the ids in it",
    edits: [["src/store/reach.ts", " and ${isListed(sql`${p.id} || '\"'`)}`", "`"]],
    fails: [tamper, "two projects that exchanged their slugs open for nobody"],
  },
  {
    promise: "A key's list is no JSON to the database",
    edits: [
      [
        "src/store/reach.ts",
        "${database.indexOf(list, sql`'\"' || ${slug} || '\":\"' || ${id}`)} > 0)`",
        "json_extract(${list}, '$.' || ${slug}) || '\"' like ${id} || '%')`",
      ],
    ],
    fails: [tamper, "a key row whose list is { is a 401 too, and does not touch the requests beside it"],
  },
  {
    promise: "A key that has ended is refused",
    edits: [["src/serve/access/authenticate.ts", "if (!row.live || !isGranted) {", "if (!isGranted) {"]],
    fails: ["integration/keys", "at the millisecond of the database's clock"],
  },
  {
    promise: "Nothing is answered for an organization without the plan",
    edits: [["src/serve/access/grant.ts", 'if (plan !== "pro") return "plan_required";', ""]],
    fails: ["integration/gates", "plan answers, alone and before"],
  },
  {
    promise: "Nothing is answered for a key without the surface",
    edits: [["src/serve/access/grant.ts", "if (need.surface && !", "if (!need.surface && !"]],
    fails: ["integration/gates", "surface answers, alone and before"],
  },
  {
    promise: "Nothing is answered for a key without the resource",
    edits: [
      [
        "src/serve/access/grant.ts",
        "if (need.resource && !(grant.resources & need.resource.bit))",
        "if (need.resource && !grant.resources)",
      ],
    ],
    fails: ["integration/gates", "resource answers, alone and before"],
  },
  {
    promise: "Nothing is answered for a key that does not reach the environment",
    edits: [
      [
        "src/serve/access/grant.ts",
        "return (grant.environments & environmentMask(environment)) !== 0;",
        "return grant.environments > 0 || environmentMask(environment) < 0;",
      ],
    ],
    fails: ["integration/gates", "environment answers, alone and before"],
  },
  {
    promise: "The fetch judges again whether the key has ended",
    edits: [["src/serve/sets/lookup.ts", "if (!standing?.live) throw", "if (!standing) throw"]],
    fails: ["integration/keys", "before the set of a key that is now revoked"],
  },
  {
    promise: "The fetch judges the plan again",
    edits: [
      [
        "src/serve/sets/lookup.ts",
        'if (standing.plan !== "pro") throw new Fault("plan_required", "the plan was changed during the request");',
        "",
      ],
    ],
    fails: ["integration/keys", "before the set of a key that is now on a lesser plan"],
  },
  {
    promise: "The fetch judges the project again",
    edits: [
      [
        "src/serve/sets/lookup.ts",
        'if (standing.projectId === null) throw new Fault("project_not_found", "the project was deleted during the request");',
        "",
      ],
    ],
    fails: ["integration/keys", "before the set of a key that is now without its project"],
  },
  {
    promise: "Every bad key gets one and the same 401",
    edits: [
      [
        "src/serve/access/authenticate.ts",
        'throw new Fault("unauthorized", `${which} is expired or revoked`)',
        'throw new Fault("not_found", `${which} is expired or revoked`)',
      ],
    ],
    fails: ["integration/limits", firstTen],
  },
  {
    promise: "A revoked key is counted as an unknown one",
    edits: [
      [
        "src/serve/gates/admit.ts",
        "const refusal = refuseUnrecognized(gate, text, error);\n  const clientAddress",
        'const refusal = error.message.includes("revoked") ? error : refuseUnrecognized(gate, text, error);\n  const clientAddress',
      ],
    ],
    fails: ["integration/limits", firstTen],
  },
  {
    promise: "A canary key gets the 401 of any key that has ended",
    edits: [["src/serve/access/authenticate.ts", 'super("unauthorized",', 'super("not_found",']],
    fails: ["integration/canaries", "gets the answer of a key that has ended, byte for byte"],
  },
  {
    promise: "The text of a canary key is counted as an unknown one",
    edits: [
      [
        "src/serve/gates/admit.ts",
        "const refusal = refuseUnrecognized(gate, text, error);\n  const clientAddress",
        "const refusal = error instanceof AlarmingRefusal ? error : refuseUnrecognized(gate, text, error);\n  const clientAddress",
      ],
    ],
    fails: ["integration/canaries", "gets the answer of a key that has ended, byte for byte"],
  },
  {
    promise: "The answer to a canary key waits for nothing",
    edits: [
      [
        "src/serve/gates/alarms.ts",
        "this.#noted.push({ kind, by, from, organizationId, organizationSlug, requestId, clientAddress, userAgent });",
        "this.#noted.push({ kind, by, from, organizationId, organizationSlug, requestId, clientAddress, userAgent });\n    void this.flush();",
      ],
    ],
    fails: ["integration/canaries", "makes its request do nothing that takes time"],
  },
  {
    promise: "The entry of a canary key outlasts a failed write",
    edits: [["src/serve/gates/alarms.ts", "this.#waiting = [...entries, ...this.#waiting].slice(0, waitingMax);", ""]],
    fails: ["integration/canaries", "makes its request do nothing that takes time"],
  },
  {
    promise: "A flood with a canary key leaves few entries",
    edits: [
      [
        "src/serve/gates/alarms.ts",
        "if (!passed || this.#noted.length >= waitingMax) return;",
        "if (passed && this.#noted.length >= waitingMax) return;",
      ],
    ],
    fails: ["integration/canaries", "leaves ten entries of a flood, and all of it in the count"],
  },
  {
    promise: "The seal of a canary key is that of one key",
    edits: [
      [
        "src/serve/access/grant.ts",
        'sealUnder("keyhole canary v1", grantKey, digest, grant)',
        'sealUnder("keyhole canary v1", grantKey, digest.subarray(0, 0), { ...grant, keyId: "" })',
      ],
    ],
    fails: ["integration/canaries", "cannot be made of a key in SQL, nor a key of it"],
  },
  {
    promise: "The last use of a key outlasts a failed write",
    edits: [["src/serve/access/key-uses.ts", "return false;\n    }", "this.#uses.clear();\n    }"]],
    fails: [
      "unit/key-uses",
      "nothing is written if there was no use, and a use that could not be written is written later",
    ],
  },
  {
    promise: "The last use of a key outlasts a lock that is held as the server ends",
    edits: [
      [
        "src/serve/access/key-uses.ts",
        "this.#flush(now(), true))) && now() < triesUntil) await pause();",
        "this.#flush(now(), true))) && now() > triesUntil) await pause();",
      ],
    ],
    fails: [
      "unit/key-uses",
      "the end waits for what is being written, and tries again for a second while the lock is held",
    ],
  },
  {
    promise: "The last use of a key is dated by the database's clock",
    edits: [
      [
        "src/store/lookups.ts",
        "${database.nowMs} - cast(value ->> 1 as bigint)",
        "${literal(Date.now())} - cast(value ->> 1 as bigint)",
      ],
    ],
    fails: ["integration/keys", "was last used by the database's clock"],
  },
  {
    promise: "No rotation makes a key of a canary",
    edits: [
      ["src/people/keys/keys.ts", 'if (status === "canary") {', 'if (status !== "canary" && status !== "grant") {'],
      [
        "src/people/keys/keys.ts",
        "    if (status === undefined) {\n      throw new Refused",
        "    if (id === asked.repeat(2)) {\n      throw new Refused",
      ],
    ],
    fails: ["integration/canaries", "is no key that works after a rotation"],
  },
  {
    promise: "A grant that was sealed once opens for ever",
    edits: [["src/serve/access/grant.ts", 'sealUnder("keyhole grant v1"', 'sealUnder("keyhole grant v2"']],
    fails: ["blackbox/releases", "opens whole in a newer one, ten years from now"],
  },
];
