import type { Proof } from "./proof.ts";

const persons = "integration/persons";
const rights = "src/serve/access/rights.ts";
const facts = "are exactly the facts of those that have not ended, in 10,000 random worlds";
const personsFile = "src/people/persons/persons.ts";
const givenFile = "src/people/persons/given.ts";
const given = "property/given";
const giving = "give and take what the model says, and no right lasts beyond one's own";
const heads = "integration/heads";
const head = "src/record/head.ts";

/** What persons may do, and who they are. */
export const people: readonly Proof[] = [
  {
    promise: "A right is for its project alone",
    edits: [
      [
        rights,
        "(holding.projectId === null || holding.projectId === project.projectId) &&",
        "(holding.projectId === null || project.projectId !== null) &&",
      ],
    ],
    fails: ["property/rights", facts],
  },
  {
    promise: "A right is for its environments alone",
    edits: [
      [
        rights,
        "(holding.environments & environmentMask(environment)) !== 0",
        "(holding.environments | environmentMask(environment)) !== 0",
      ],
    ],
    fails: ["property/rights", facts],
  },
  {
    promise: "A right that ended is none",
    edits: [
      [
        rights,
        "return holdings.filter((holding) => now < endOf(holding));",
        "return holdings.filter((holding) => now < endOf(holding) || now > 0);",
      ],
    ],
    fails: ["property/rights", facts],
  },
  {
    promise: "A right does not outlast its end in a command that began before",
    edits: [["src/people/desk/context.ts", "await admin.requireSameRights?.(admin);", ""]],
    fails: ["integration/rights-end", "end for a command that began before"],
  },
  {
    promise: "A right does not come back with a clock that is set back a little",
    edits: [
      [
        "src/people/desk/roster.ts",
        "at: end.head === null ? now : notBefore(end.head, now)",
        "at: end.head === null ? notBefore({ at: now }, now) : now",
      ],
    ],
    fails: ["integration/rights-end", "do not come back with a clock that is set back to before the last change"],
  },
  {
    promise: "A permit is for all of the environments that were asked for",
    edits: [
      [
        "src/people/desk/permit.ts",
        "if (held.length === 0 || held.length < (among?.length ?? 0)) return undefined;",
        "if (found.length === 0) return undefined;",
      ],
    ],
    fails: ["property/rights", facts],
  },
  {
    promise: "Code that forgets to ask opens no set",
    edits: [["src/people/editing/open.ts", '  requirePermit(of, ["reveal", "write"]);\n', ""]],
    fails: [persons, "opens no set and makes no change"],
  },
  {
    promise: "Code that forgets to ask changes nothing",
    edits: [["src/people/desk/context.ts", "    requirePermitted([permits].flat(), changes);\n", ""]],
    fails: [persons, "opens no set and makes no change"],
  },
  {
    promise: "Without `reveal`, nothing tells whether a guess is the stored value",
    edits: [
      [
        "src/people/desk/context.ts",
        'return may(admin.rights, "reveal", project, of) && (of',
        'return may(admin.rights, "write", project, of) && (of',
      ],
    ],
    fails: [persons, "without `reveal` learn nothing from a write, a dry run or a rollback"],
  },
  {
    promise: "Without `reveal`, no checksum of a file is listed",
    edits: [
      [
        "src/kinds/files/write.ts",
        'may(admin.rights, "reveal", placeOf(project), environment))',
        'may(admin.rights, "see", placeOf(project), environment))',
      ],
    ],
    fails: [persons, "without `reveal` see no checksum of a file"],
  },
  {
    promise: "A rotation judges the row of the key that it seals",
    edits: [["src/people/keys/keys.ts", "    requirePermits(admin, old);\n", ""]],
    fails: [persons, "rotate no wider key, though SQL shows a narrow one until it is sealed again"],
  },
  {
    promise: "A trust shuts out no other beyond the person's rights",
    edits: [
      [
        "src/people/keys/trusts.ts",
        "if (await isWithinRights(admin, id)) continue;",
        "if ((await isWithinRights(admin, id)) || id) continue;",
      ],
    ],
    fails: [persons, "make no trust that would shut out another beyond their own rights"],
  },
  {
    promise: "No right but `grant` changes rights, and it makes and removes no person",
    edits: [["src/people/desk/permit.ts", 'if (rights !== "operator") {', "if (rights === undefined) {"]],
    fails: [persons, "are changed by operators, and by nobody without `grant`"],
  },
  {
    promise: "Nobody gives a right that they do not have",
    edits: [[givenFile, "Math.min(lastsUntil(rights, right, holding, one), lastsUntil", "Math.max(0, lastsUntil"]],
    fails: [given, giving],
  },
  {
    promise: "A right that somebody gave does not outlast their own",
    edits: [[givenFile, "holding, one)) >= endOf(holding),", "holding, one)) > 0,"]],
    fails: [given, giving],
  },
  {
    promise: "Only operators give the right to give",
    edits: [[givenFile, 'right !== "grant" &&\n', "right.length > 0 &&\n"]],
    fails: [given, giving],
  },
  {
    promise: "Who gives rights changes none of their own",
    edits: [[personsFile, "  if (differ.some(({ name }) => entries.includes(name))) throw notOneself();\n", ""]],
    fails: [given, giving],
  },
  {
    promise: "What somebody gave and can give no longer is settled",
    edits: [[personsFile, "if (lost.length === 0) return persons;", "if (lost.length >= 0) return persons;"]],
    fails: [given, giving],
  },
  {
    promise: "Two persons keep no right by giving it to each other",
    edits: [
      [
        givenFile,
        "let standing: readonly GivenRight[] = all.filter(({ right }) => right.by === undefined);",
        "let standing: readonly GivenRight[] = all;",
      ],
    ],
    fails: [given, "two persons keep no right by giving it to each other"],
  },
  {
    promise: "Only an operator takes a list of persons that fails verification",
    edits: [[personsFile, "  Permit.operator(admin);\n  const { persons = []", "  const { persons = []"]],
    fails: [persons, "are changed by operators, and by nobody without `grant`"],
  },
  {
    promise: "One sign-in is one person, also by a group with and without an issuer",
    edits: [
      [
        "src/people/persons/persons.ts",
        "const isOneIssuer = a.issuer === null || b.issuer === null || a.issuer === b.issuer;",
        "const isOneIssuer = a.issuer === b.issuer;",
      ],
    ],
    fails: [persons, "are never two whom one sign-in is"],
  },
  {
    promise: "A name does not let in who had it before",
    edits: [
      [
        "src/people/persons/persons.ts",
        "!again && (await wasGiven(admin, name))",
        "again === null && (await wasGiven(admin, name))",
      ],
    ],
    fails: [persons, "do not get the name of somebody who was removed, unless an operator says so"],
  },
  {
    promise: "SQL makes no person and widens no right",
    edits: [
      [
        "src/people/desk/roster.ts",
        "if (!isSameMac(mac, sealRoster(systemKeys.grant, stored))) return undefined;",
        "if (!isSameMac(mac, mac) || !sealRoster(systemKeys.grant, stored)) return undefined;",
      ],
    ],
    fails: [persons, "is refused if SQL left it made wider"],
  },
  {
    promise: "SQL puts no earlier list of persons back",
    edits: [
      [
        head,
        "isSameMac(head.mac, newest?.mac ?? Buffer.alloc(0)) && isSealedHead",
        "isSameMac(head.mac, newest ? head.mac : head.mac) && isSealedHead",
      ],
    ],
    fails: [heads, "fails verification if other entries took the place of the last one"],
  },
  {
    promise: "SQL adds no segment behind the last one with the mac of an earlier head",
    edits: [[head, "if (newest !== null && newest.firstSeq > head.seq) return false;", ""]],
    fails: [heads, "fails verification if a segment that SQL added behind the last one has its mac"],
  },
  {
    promise: "SQL names no earlier list in the head",
    edits: [
      [
        head,
        "return head !== null && isSameMac(head.seal, sealHead(auditKey, head));",
        "return head !== null && (isSameMac(head.seal, sealHead(auditKey, head)) || head.seal !== null);",
      ],
    ],
    fails: [heads, "lets nobody in if SQL left it with the earlier list"],
  },
  {
    promise: "The seal of a head covers its time",
    edits: [
      [
        head,
        '["keyhole audit head v1", lane, seq, at, mac.toString("hex"), roster]',
        '["keyhole audit head v1", lane, seq, at * 0, mac.toString("hex"), roster]',
      ],
    ],
    fails: [heads, "lets nobody in if SQL left it at another time"],
  },
  {
    promise: "The seal of a head covers its lane",
    edits: [
      [
        head,
        '["keyhole audit head v1", lane, seq, at, mac.toString("hex"), roster]',
        '["keyhole audit head v1", lane.length * 0, seq, at, mac.toString("hex"), roster]',
      ],
    ],
    fails: [heads, "lets nobody in if SQL left it with the seal of another lane's head"],
  },
  {
    promise: "A command seals no earlier head",
    edits: [
      [
        "src/people/desk/changes.ts",
        "let last: PeopleEnd = { ...end.head, roster: undefined };",
        "let last: PeopleEnd = { ...end.head };",
      ],
    ],
    fails: [heads, "that was put back is not sealed by the next command, which gives no number twice"],
  },
  {
    promise: "An earlier head makes no command give a number twice",
    edits: [
      [
        "src/people/desk/changes.ts",
        "if (!isNext(systemKeys.audit, last, one)) break;",
        "if (!isNext(systemKeys.audit, last, one) || one) break;",
      ],
    ],
    fails: [heads, "that was put back is not sealed by the next command, which gives no number twice"],
  },
  {
    promise: "A process never goes back to an earlier list of persons",
    edits: [
      [
        "src/people/desk/roster.ts",
        'if (versionOf(roster) < versionOf(before)) throw distrust("an earlier version was put back");',
        "",
      ],
    ],
    fails: [heads, "is believed if the end of the lane was cut off too"],
  },
  {
    promise: "Retention does not lose who is in force",
    edits: [
      [
        "src/people/desk/changes.ts",
        "const roster = named ?? head.roster;",
        "const roster = named ?? (head.roster === undefined ? undefined : null);",
      ],
    ],
    fails: [persons, "stays in force when the audit entry that names it is pruned"],
  },
  {
    promise: "Words of the door arrive as they were sent",
    edits: [["src/core/words/shell.ts", "return `'${word.replaceAll(\"'\", String.raw`'\\''`)}'`;", "return word;"]],
    fails: ["unit/door", "has the words that were sent, whatever they hold"],
  },
  {
    promise: "A line of a log has a bound",
    edits: [
      [
        "src/core/words/log-lines.ts",
        "    if (length === bytesMax) return;\n    parts.push(bytes.subarray(0, bytesMax - length));\n    length = Math.min(length + bytes.length, bytesMax);",
        "    parts.push(bytes);\n    length = Math.min(length + bytes.length, bytesMax * bytesMax);",
      ],
    ],
    fails: ["unit/bounded-input", "are held up to 64 KiB, and the rest of a longer one is skipped"],
  },
  {
    promise: "A person learns nothing from a failure to ask an issuer",
    edits: [
      [
        "src/people/keys/trust-operations.ts",
        'refusal(rights === "operator" ? why : "the issuer\'s keys cannot be had from here")',
        'refusal(rights !== undefined ? why : "the issuer\'s keys cannot be had from here")',
      ],
    ],
    fails: ["blackbox/door", "asks for nobody what listens on the bastion or in its network"],
  },
  {
    promise: "Only people's commands come through the door",
    edits: [
      ["src/cli/door.ts", "  if (!isPeoples(command)) {\n", '  if (!isPeoples(command) && command.name() === "") {\n'],
    ],
    fails: ["blackbox/door", "has no command of operators and machines: org create mine"],
  },
  {
    promise: "No shell reads the words",
    edits: [
      [
        "src/cli/door.ts",
        "      const words = sentWords(asked);\n",
        '      Bun.spawnSync(["/bin/sh", "-c", `true ${asked}`]);\n      const words = sentWords(asked);\n',
      ],
    ],
    fails: ["blackbox/door", "runs no shell, whatever the words hold"],
  },
  {
    promise: "No file of the bastion is read",
    edits: [
      [
        "src/cli/terminal/input.ts",
        'if (path !== "-" && context.person !== undefined) throw',
        'if (path !== "-" && context.person === "") throw',
      ],
    ],
    fails: ["blackbox/door", "asks for nobody what listens on the bastion or in its network"],
  },
  {
    promise: "No file of the bastion is written",
    edits: [["src/people/desk/inputs.ts", "  isLocal: true,\n", "  isLocal: false,\n"]],
    fails: ["blackbox/door", "takes a long command whole or not at all, and names no file of its machine"],
  },
  {
    promise: "The client's environment names nobody",
    edits: [
      [
        "src/cli/terminal/admin.ts",
        ": await whoIs(installation, person);",
        ": { ...(await whoIs(installation, person)), actor: operator(actorOf(context.env)).actor };",
      ],
    ],
    fails: ["blackbox/door", "does not believe the client's environment"],
  },
  {
    promise: "A person who left is refused at the door",
    edits: [
      [
        "src/people/desk/roster.ts",
        '    if (person === undefined) throw new Refused("forbidden", `There is no person ${name}: ask an operator.`);\n    return [person];',
        "    return person === undefined ? [] : [person];",
      ],
    ],
    fails: ["blackbox/door", "lets nobody in whom the operator removed, nor anybody after SQL changed the persons"],
  },
  {
    promise: "Nothing goes on after a session of the door",
    edits: [
      [
        "src/cli/audit.ts",
        "(context.person !== undefined && process.ppid !== session)",
        "(context.person !== undefined && process.ppid < session - 1e9)",
      ],
    ],
    fails: ["blackbox/door", "leaves nothing running when the connection ends"],
    hangs: true,
  },
  {
    promise: "The line of a person's SSH key opens nothing else",
    edits: [["src/people/persons/operations.ts", "const line = `restrict,command=", "const line = `command="]],
    fails: ["blackbox/door", "opens nothing else: no shell, no file transfer, no forwarding"],
  },
];

const signIn = "src/dashboard/sign-in.ts";
const attempts = "src/dashboard/attempts.ts";
const provider = "src/dashboard/provider.ts";
const signInTest = "integration/sign-in";
const providers = "integration/identity-providers";
const once = "takes an answer once, in the browser that asked, within ten minutes";

/** How persons sign in at the dashboard. */
export const signingIn: readonly Proof[] = [
  {
    promise: "An answer to an attempt to sign in is taken once",
    edits: [[attempts, "this.#used.has(state) || ", ""]],
    fails: [signInTest, once],
  },
  {
    promise: "An attempt to sign in ends after ten minutes",
    edits: [
      [attempts, "return this.#now() < startedAt + attemptMs;", "return this.#now() < startedAt + attemptMs * 99;"],
    ],
    fails: [signInTest, once],
  },
  {
    promise: "A browser makes up no attempt to sign in",
    edits: [
      [
        attempts,
        "return sealing.setProtectedHeader({ alg: algorithm, enc: cipher }).encrypt(this.#key);",
        'return sealing && Promise.resolve(Buffer.from(JSON.stringify(attempt)).toString("base64url"));',
      ],
      [
        attempts,
        "await compactDecrypt(cookie, this.#key, only).catch(() => undefined);",
        'await Promise.resolve({ only, compactDecrypt, plaintext: Buffer.from(cookie, "base64url") });',
      ],
    ],
    fails: [signInTest, "takes no attempt that a browser made up, changed or began at another process"],
  },
  {
    promise: "The ID token is signed by the provider",
    edits: [
      [
        provider,
        "const { payload } = await jwtVerify(idToken, keys, {",
        'const { payload } = await (async () => ({ payload: JSON.parse(Buffer.from(idToken.split(".")[1] ?? "", "base64url").toString()) as JWTPayload }))() ?? await jwtVerify(idToken, keys, {',
      ],
    ],
    fails: [signInTest, "signs nobody in with an ID token signed by another key"],
  },
  {
    promise: "The ID token is for this attempt",
    edits: [[provider, 'if (payload["nonce"] !== nonce) throw', 'if (payload["nonce"] === null) throw']],
    fails: [signInTest, "signs nobody in with an ID token without a nonce"],
  },
  {
    promise: "The ID token was made for Keyhole",
    edits: [
      [
        provider,
        "const isNamed = azp !== undefined || (Array.isArray(aud) && aud.length > 1);",
        "const isNamed = Array.isArray(aud) && aud.length > 1;",
      ],
    ],
    fails: [providers, "an ID token for us, made for another"],
  },
  {
    promise: "The ID token has a subject that an operator could add",
    edits: [
      [provider, 'if (typeof sub !== "string" || !isWord(sub)) {', 'if (typeof sub !== "string" || !isWord("x")) {'],
    ],
    fails: [providers, "the subject"],
  },
  {
    promise: "The ID token is the one of the answer, and nothing beside it",
    edits: [
      [
        provider,
        "return Response.json({ ...others, [idTokenMember]: idToken }, { status });",
        "return Response.json({ [idTokenMember]: idToken, ...others }, { status });",
      ],
    ],
    fails: [providers, "an ID token under the name that Keyhole gives it"],
  },
  {
    promise: "A provider on https leads to https alone",
    edits: [[provider, "mayAsk(url) && (!isPlain(url) || isPlain(issuer))", 'mayAsk(url) && issuer !== ""']],
    fails: [providers, "may lead to"],
  },
  {
    promise: "A group is its whole name",
    edits: [
      [
        signIn,
        "const names: readonly unknown[] = Array.isArray(claim) ? claim : [claim];",
        'const names: readonly unknown[] = Array.isArray(claim) ? claim : String(claim).split(",");',
      ],
    ],
    fails: [signInTest, "gives whoever is in a group its rights, as long as the provider says so, and nobody more"],
  },
  {
    promise: "The answer of a sign-in has the state of the attempt",
    edits: [
      [
        provider,
        "{ expectedState: state, pkceCodeVerifier: verifier }",
        "{ expectedState: oidc.skipStateCheck, pkceCodeVerifier: state && verifier }",
      ],
    ],
    fails: [signInTest, "signs nobody in with another state in the answer"],
  },
  {
    promise: "An e-mail address is nobody",
    edits: [
      [
        "src/serve/access/roster.ts",
        "signIn.issuer === as.issuer && signIn.subject === as.subject",
        "signIn.issuer === as.issuer && [as.subject, (as as { label?: string }).label].includes(signIn.subject)",
      ],
    ],
    fails: [signInTest, "shows who has no rights who they are and what to send to an operator, and nothing else"],
  },
  {
    promise: "A change that waits does not outlast the rights of who signed in",
    edits: [
      [
        "src/people/desk/roster.ts",
        "if (isDeepStrictEqual((await findNow(reading)).rights, rights)) return;",
        "if (isDeepStrictEqual((await findNow(reading)).rights, rights) || rights) return;",
      ],
    ],
    fails: [signInTest, "makes no change that waited until rights were taken"],
  },
  {
    promise: "Values of production take a fresh sign-in",
    edits: [
      ["src/people/desk/context.ts", "  if (isFresh(admin)) return;\n", "  if (isFresh(admin) || changes) return;\n"],
    ],
    fails: [
      signInTest,
      "asks for a new sign-in before a value of production is shown, and believes only the provider's word",
    ],
  },
  {
    promise: "A provider cannot skip a fresh sign-in",
    edits: [
      [
        signIn,
        "if (attempt.again && identity.provedAt < attempt.startedAt - skewMs) throw",
        "if (attempt.again && identity.provedAt < 0) throw",
      ],
    ],
    fails: [
      signInTest,
      "asks for a new sign-in before a value of production is shown, and believes only the provider's word",
    ],
  },
  {
    promise: "A provider cannot date a sign-in ahead",
    edits: [
      [
        signIn,
        "if (Math.max(provedS, iat) * 1000 <= now + skewMs) return Math.min(provedS * 1000, now);",
        "if (iat) return provedS * 1000;",
      ],
    ],
    fails: [signInTest, "takes a sign-in that is ahead of the clock for an old one: an hour"],
  },
];
