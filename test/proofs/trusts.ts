import type { Proof } from "./proof.ts";

const trustsTest = "integration/trusts";
const token = "src/serve/access/token.ts";

/** Who may read what, by a token of an issuer. */
export const trusts: readonly Proof[] = [
  {
    promise: "The seal of a trust covers its terms",
    edits: [["src/serve/access/grant.ts", "    grant.trust,\n", ""]],
    fails: [trustsTest, "of a trust to which SQL gave wider claims"],
  },
  {
    promise: "An answer without a value is none of those that a job may have",
    edits: [["src/serve/gates/record.ts", "entries.some(({ names }) => names.length > 0) ? job : undefined", "job"]],
    fails: [trustsTest, "counts no answer without a value"],
  },
  {
    promise: "A token that names a job by what PostgreSQL cannot hold names none",
    edits: [[token, 'if (!claims.isWellFormed() || claims.includes("\\0")) return undefined;', ""]],
    fails: [trustsTest, "takes none that is named by"],
  },
  {
    promise: "A job that had its answers sounds the alarm",
    edits: [["src/serve/gates/admit.ts", "gate.alarms.noteOveruse(entry, fault === refusal);", ""]],
    fails: [trustsTest, "refuses the next one as an unknown key, and tells the audit, the log, the metrics and Today"],
  },
  {
    promise: "A token that names no job is refused by a trust that counts the reads of each",
    edits: [
      [
        token,
        "if (perJob !== undefined && jobOf(token, trust) === undefined) {",
        "if (perJob !== undefined && perJob.reads < 0) {",
      ],
    ],
    fails: [trustsTest, "counts by the first claims that a token has whole"],
  },
  {
    promise: "A trust that was revoked ends at once, whatever list of trusts was read",
    edits: [
      [
        "src/serve/access/authenticate.ts",
        "if (!row.live || !isGranted) {",
        "if ((!row.live || !isGranted) && row.trust === null) {",
      ],
    ],
    fails: [trustsTest, "of a trust that was revoked after the list of trusts was read"],
  },
  {
    promise: "A token is for us alone",
    edits: [
      [
        token,
        "Array.isArray(aud) && aud.length === 1 ? aud[0] : aud",
        "Array.isArray(aud) ? aud.find((one) => one === audience) : aud",
      ],
    ],
    fails: [trustsTest, "for us and another"],
  },
  {
    promise: "A token expires",
    edits: [[token, '["exp", "iat"]', '["iat"]']],
    fails: [trustsTest, "that never expires"],
  },
  {
    promise: "A token is at most ten minutes old",
    edits: [[token, "      maxTokenAge: ageS,\n", ""]],
    fails: [trustsTest, "of over ten minutes ago"],
  },
  {
    promise: "A trust that takes older tokens makes no other take them",
    edits: [[token, "({ terms: { ageS, jwks } }) => `${ageS} ${jwks}`", "({ terms }) => terms.jwks"]],
    fails: ["unit/cloud-tokens", "makes no other take them"],
  },
  {
    promise: "Google's subject is a number, which nobody can register again",
    edits: [["src/people/keys/providers.ts", "passing: /^sub=(?!\\d{1,40}$)/,", ""]],
    fails: [trustsTest, "for Google by an address as subject"],
  },
  {
    promise: "AWS's subject is a role",
    edits: [["src/people/keys/providers.ts", "\\d{12}:role\\/)/", "\\d{12}:)/"]],
    fails: [trustsTest, "for a user of AWS"],
  },
  {
    promise: "A token of Azure is taken for a day and no longer",
    edits: [["src/people/keys/providers.ts", "ageS: 86_400,", "ageS: 864_000,"]],
    fails: ["unit/cloud-tokens", "a machine of Azure is known by its token as long as it gets the same"],
  },
  {
    promise: "Claims are equal as text",
    edits: [[token, "if (payload[name] !== value) return", "if (String(payload[name]) !== value) return"]],
    fails: [trustsTest, "whose claim is a number"],
  },
  {
    promise: "A job that a stranger may have started is refused",
    edits: [[token, "of strangersClaims) {", "of strangersClaims.slice(strangersClaims.length)) {"]],
    fails: [trustsTest, "of a stranger's change request"],
  },
  {
    promise: "A token has no member twice",
    edits: [
      [
        token,
        "isObject(parsed) && membersIn(parsed) === colons ? parsed",
        "isObject(parsed) && membersIn(parsed) <= colons ? parsed",
      ],
    ],
    fails: [trustsTest, "with a claim twice"],
  },
  {
    promise: "A token has at most 8 KiB",
    edits: [[token, "text.length <= tokenBytesMax && ", ""]],
    fails: [trustsTest, "of 8 KiB and a byte"],
  },
  {
    promise: "An issuer has no blank",
    edits: [["src/people/keys/trusts.ts", "if (/[\\s\\p{Z}]/u.test(issuer)) {", "if (/^\\s/u.test(issuer)) {"]],
    fails: [trustsTest, "for an issuer that ends in a blank"],
  },
  {
    promise: "A given key set has a key that can verify a token",
    edits: [["src/people/keys/trusts.ts", "if (usableKeys(keys) === 0) {", "if (keys.length === 0) {"]],
    fails: [trustsTest, "with a key for encryption alone"],
  },
  {
    promise: "A token fits exactly one trust",
    edits: [
      [
        token,
        'if (another) throw new Fault("unauthorized", `${from}: it fits several trusts, ${idsOf(fitting)}`);',
        "if (another) return another;",
      ],
    ],
    fails: [trustsTest, "that fits two trusts, until one of them is revoked"],
  },
  {
    promise: "The keys that a trust pins are not mixed with published ones",
    edits: [[token, "some[0]?.pinned ?? published", "published ?? some[0]?.pinned"]],
    fails: ["unit/token", "that a trust pins is not mixed with what its issuer publishes"],
  },
  {
    promise: "The keys of certificates in a SPIFFE bundle sign no token",
    edits: [[token, 'use === "sig" || use === "jwt-svid"', 'use === "sig" || String(use).endsWith("-svid")']],
    fails: ["unit/token", "of SPIFFE verifies tokens by its keys for JWT-SVIDs, and by no other"],
  },
  {
    promise: "An issuer that publishes no key has withdrawn them all",
    edits: [[token, "|| !keys.every(isObject)) throw", "|| keys.length === 0 || !keys.every(isObject)) throw"]],
    fails: ["unit/token", "without keys verifies nothing: its issuer has withdrawn them"],
  },
  {
    promise: "Keys are those of their issuer alone",
    edits: [
      ["src/serve/access/issuer-keys.ts", "const name = `${isPublic} ${issuer}`;", "const name = `${isPublic}`;"],
    ],
    fails: [trustsTest, "by the key of another issuer that has the same kid"],
  },
  {
    promise: "What persons' issuers may not reach says nothing of what an operator's may",
    edits: [["src/serve/access/issuer-keys.ts", "const name = `${isPublic} ${issuer}`;", "const name = issuer;"]],
    fails: [
      "unit/issuer-keys",
      "that may be had on the internet alone say nothing of those that an operator's trust may reach",
    ],
  },
  {
    promise: "Discovery names the issuer itself",
    edits: [["src/serve/access/issuer-keys.ts", "if (named !== issuer) throw", "if (named === undefined) throw"]],
    fails: [trustsTest, "names another issuer: its tokens are refused"],
  },
  {
    promise: "An issuer on https has its keys on https",
    edits: [["src/serve/access/issuer-keys.ts", '!String(url).startsWith("https:")', 'typeof url !== "string"']],
    fails: ["unit/issuer-keys", "refuses a document with plain http to this machine"],
  },
  {
    promise: "An issuer's answer has at most 256 KiB",
    edits: [["src/core/fetch-json.ts", "bytesMax: 256 * 1024", "bytesMax: 2 ** 30"]],
    fails: ["unit/issuer-keys", "of 10 MiB is refused"],
    hangs: true,
  },
  {
    promise: "An issuer is asked at most every 30 s",
    edits: [
      [
        "src/serve/access/issuer-keys.ts",
        "this.#nowMs() - state.triedAtMs >= attemptEveryMs",
        "this.#nowMs() > attemptEveryMs * -1",
      ],
    ],
    fails: ["unit/issuer-keys", "are replaced as a whole when they do not verify a token, at most every 30 s"],
  },
  {
    promise: "At most 1,024 requests wait for an issuer",
    edits: [
      [
        "src/serve/access/issuer-keys.ts",
        "await state.waiters.wait(() => atMost(this.#waitMsMax, attempt))",
        "await atMost(this.#waitMsMax, attempt)",
      ],
    ],
    fails: ["unit/issuer-keys", "are asked for once by many requests … no more than 1,024"],
  },
  {
    promise: "An issuer's keys are used for at most a day",
    edits: [
      [
        "src/serve/access/issuer-keys.ts",
        "this.#nowMs() - fetchedAtMs < usableMs ? keys : undefined",
        "this.#nowMs() - fetchedAtMs < usableMs * 99 ? keys : undefined",
      ],
    ],
    fails: ["unit/issuer-keys", "stay for a day if the issuer is away"],
  },
  {
    promise: "A server asks no issuer for keys because of a row that SQL made up",
    edits: [
      [
        "src/serve/access/trust-directory.ts",
        "text === null || !isSameMac(grantSeal, sealGrant(grantKey, digest, row))",
        "text === null || !isSameMac(grantSeal, row.grantSeal)",
      ],
    ],
    fails: [trustsTest, "of a trust to which SQL gave another issuer"],
  },
  {
    promise: "A token makes a server read the trusts of its own claims alone",
    edits: [["src/serve/access/token.ts", "JSON.stringify([issuer, ...pin])", "JSON.stringify([issuer])"]],
    fails: [trustsTest, "is found by its issuer and a claim, and no others are read, however many there are"],
  },
  {
    promise: "Strangers' tokens cost a server a few megabytes at most",
    edits: [["src/store/lookups.ts", "where valid.bytes <= ${literal(trustsBytesMax)})", "where valid.bytes > 0)"]],
    fails: [trustsTest, "costs the server a few megabytes at most"],
  },
  {
    promise: "No trust is made that servers would not look at",
    edits: [
      [
        "src/people/keys/trusts.ts",
        " || bytesOf(found) > trustsBytesMax - termsBytesMax - projectsBytesMax - fromBytesMax)",
        ")",
      ],
    ],
    fails: [trustsTest, "is not created beyond 256 valid ones"],
  },
  {
    promise: "A token that fits another trust by now pays once, and that one from then on",
    edits: [
      [
        "src/serve/gates/admit.ts",
        "if (known?.keyId !== keyId) gate.limiter.recognize",
        "if (known === undefined) gate.limiter.recognize",
      ],
    ],
    fails: [trustsTest, "that fits another trust by now pays once"],
  },
  {
    promise: "A refused token counts as an unknown key",
    edits: [
      [
        "src/serve/gates/admit.ts",
        "const refusal = refuseUnrecognized(gate, text, error);\n  const clientAddress",
        "const refusal = exchange.byToken ? error : refuseUnrecognized(gate, text, error);\n  const clientAddress",
      ],
    ],
    fails: [trustsTest, "is refused 429 at the same count as an unknown key"],
  },
  {
    promise: "Claims pin what nobody can register again",
    edits: [
      [
        "src/people/keys/providers.ts",
        "if (pins.some((pin) => pin in claims)) return;",
        "if (pins.length > 0) return;",
      ],
    ],
    fails: [trustsTest, "is not created for GitHub by a name"],
  },
  {
    promise: "The claims of a trust fit every run",
    edits: [["src/people/keys/providers.ts", "if (wrong !== undefined) {", "if (wrong === issuer) {"]],
    fails: [trustsTest, "is not created that fits a single run or person of Bitbucket"],
  },
  {
    promise: "A look-alike subject is said",
    edits: [
      [
        "src/people/keys/providers.ts",
        "if (ids.length === 0 || ids.some((id) => id in claims)) return [];",
        "if (ids.length >= 0) return [];",
      ],
    ],
    fails: [trustsTest, "if the form of its subject is all that is known"],
  },
  {
    promise: "A person names no issuer in the network",
    edits: [
      [
        "src/people/keys/trusts.ts",
        "if (isOperator || isPublicUrl(issuer)) return issuer;",
        "if (isOperator || isPublicUrl(issuer) || isIssuer(issuer)) return issuer;",
      ],
    ],
    fails: [trustsTest, "names no issuer on this machine or in its network"],
  },
  {
    promise: "A person names no issuer whose name leads into the network",
    edits: [["src/core/public-fetch.ts", 'if (!addresses.every(isPublicAddress)) throw notPublic("address");', ""]],
    fails: ["unit/public-fetch", "connects to nobody if the name has the addresses"],
    hangs: true,
  },
  {
    promise: "An issuer is asked at the address that was judged",
    edits: [
      [
        "src/core/public-fetch.ts",
        "at.hostname = isIPv4(address) ? address : `[${address}]`;",
        "at.hostname = hostname;",
      ],
    ],
    fails: ["unit/public-fetch", "is asked at the address that was judged, and must have the name's certificate"],
  },
  {
    promise: "Servers ask a person's issuer on the internet alone",
    edits: [
      [
        "src/serve/gates/admit.ts",
        "published.every(({ terms }) => terms.isPublic)",
        "published.every(({ terms }) => !terms.isPublic)",
      ],
    ],
    fails: [trustsTest, "names an issuer that servers ask on the internet alone"],
  },
  {
    promise: "Persons leave room for the trusts of others",
    edits: [["src/people/keys/trusts.ts", 'if (admin.rights === "operator") return;', "if (admin.rights) return;"]],
    fails: [trustsTest, "leaves room for other organizations and for operators"],
  },
  {
    promise: "A trust holds no private key",
    edits: [
      [
        "src/people/keys/trusts.ts",
        'if (keys.some((key) => key["d"] !== undefined || key["k"] !== undefined)) {',
        'if (keys.some((key) => key["d"] === null)) {',
      ],
    ],
    fails: [trustsTest, "is not created with a private key"],
  },
  {
    promise: "The issuer's words are printable in the audit",
    edits: [["src/serve/gates/record.ts", "jti: printable(token.jti)", "jti: token.jti"]],
    fails: [trustsTest, "is the actor of its audit entries"],
  },
  {
    promise: "An issuer that hangs holds up no new key",
    edits: [
      ["src/serve/gates/admit.ts", "const keys = await findKeys();", "const keys = await inTurn(() => findKeys());"],
    ],
    fails: ["integration/trusts", "hangs holds up neither its own requests for long nor new keys"],
  },
  {
    promise: "The count of a job's reads survives a server that was killed",
    edits: [
      ["src/record/store/journal.ts", "const isCounted = reads.length > 0;", "const isCounted = reads.length > 1;"],
    ],
    fails: ["blackbox/trusts", "loses no count: before and after, the job gets no more than its trust says"],
    on: "PostgreSQL",
  },
];
