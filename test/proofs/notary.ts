import type { Proof } from "./proof.ts";

const notary = "src/record/notary/notary.ts";
const verify = "src/record/verify.ts";
const newest = "src/record/notary/newest-checkpoint.ts";
const leaf = "src/record/leaf.ts";
const leafSet = "src/record/leaf-set.ts";
const rounds = "integration/notary";
const changed = "names what SQL did to anything in the tree";
const gone = "names entries that are in the tree and gone, within the hour, until their loss is accepted";

/** What the notary signs, and what it names. */
export const signing: readonly Proof[] = [
  {
    promise: "New entries are signed before anything old is looked at",
    edits: [
      [
        notary,
        "      const found = await this.#readTree();\n      head = found;\n",
        "      const found = await this.#readTree();\n      head = found;\n      if (found !== undefined) await this.#goOn({ size: found.size, root: found.root }, startedAt);\n",
      ],
    ],
    fails: [rounds, "signs what is new before it looks at anything old"],
  },
  {
    promise: "A look at what is old ends when the next round is due",
    edits: [[notary, "isCut ||= now() - startedAt >= roundEveryMs;", "isCut ||= now() < 0;"]],
    fails: [rounds, "signs what is new before it looks at anything old"],
  },
  {
    promise: "A look at what is old takes a tenth of a processor",
    edits: [[notary, "const shareForOld = 0.1;", "const shareForOld = 1;"]],
    fails: [rounds, "takes half a processor for what is new and a tenth to look again"],
  },
  {
    promise: "A part of a round that fails keeps no other from being done",
    edits: [[notary, "await work().catch((error: unknown) => failures.push(error));", "await work();"]],
    fails: [rounds, "does what is left of a round if a part of it fails, says so"],
  },
  {
    promise: "A difference that stands makes nobody read the whole record each minute",
    edits: [["src/record/notary/state-watch.ts", "if (!isAgreed) {", "if (!isAgreed || found.length > 0) {"]],
    fails: ["integration/state", "while one difference stands, the record is not read again"],
  },
  {
    promise: "The tree takes in what follows, and nothing else",
    edits: [[notary, "if (!isInOrder || isFlawed || entries === undefined) {", "if (entries === undefined) {"]],
    fails: [rounds, "takes no segment that somebody added, or put into another place or lane"],
  },
  {
    promise: "The tree takes in what can be read",
    edits: [[verify, "const isReadable = entries !== undefined;", "const isReadable = entries !== null;"]],
    fails: [rounds, "keeps out a segment that nobody can read"],
  },
  {
    promise: "The tree takes in what was accepted since",
    edits: [[notary, "        this.#late.set(segment.lane, segment.firstSeq);\n", "        void segment.firstSeq;\n"]],
    fails: [rounds, "takes in what an accepted loss binds, within the hour"],
  },
  {
    promise: "A leaf is of one month and of at most 4,096 entries",
    edits: [
      [
        leaf,
        "return isNext && monthOf(at) === monthOf(this.#at) && lastSeq - this.firstSeq < entriesMax;",
        "return isNext && (monthOf(at) > 0 || lastSeq < entriesMax);",
      ],
    ],
    fails: [rounds, "makes a leaf of what a lane wrote in a round"],
  },
  {
    promise: "A leaf is what a lane wrote in a round",
    edits: [
      [
        leaf,
        "return isNext && monthOf(at) === monthOf(this.#at) && lastSeq - this.firstSeq < entriesMax;",
        "return isNext && monthOf(at) < 0 && lastSeq < entriesMax;",
      ],
    ],
    fails: [rounds, "makes a leaf of what a lane wrote in a round"],
  },
  {
    promise: "What the tree has and the audit has not is named",
    edits: [[verify, "if (known === undefined) lost.push(leaf);", "if (known === undefined) continue;"]],
    fails: [rounds, gone],
  },
  {
    promise: "What the tree has otherwise is named",
    edits: [[verify, "if (isTrue && built.lastSeq === lastSeq) return;", "if (leaf >= 0) return;"]],
    fails: [rounds, changed],
  },
  {
    promise: "What is missing before a segment is named although it never was in the tree",
    edits: [[verify, "if (isBehindGap && !isInOrder)", "if (isBehindGap && !isInOrder && !isCovered(segment))"]],
    fails: [rounds, "keeps what is not in order out of the tree, says so once, and goes on behind it"],
  },
  {
    promise: "SQL cannot make up that retention dropped leaves",
    edits: [
      [
        leafSet,
        'if (ranges === undefined || !isSameMac(macOfRanges(auditKey, ranges), Buffer.from(mac, "hex"))) return undefined;',
        'if (ranges === undefined || !isSameMac(macOfRanges(auditKey, ranges), macOfRanges(auditKey, ranges)) || mac === "") return undefined;',
      ],
    ],
    fails: ["unit/leaf-set", "is opened with its mac alone"],
  },
  {
    promise: "An accepted loss is known over the border of two leaves",
    edits: [
      [
        verify,
        "const known = (await this.#known()).filter(({ seals }) => seals.includes(seal));",
        "const known = (await this.#known()).filter((one) => one.seals.includes(seal) && gaps.some((gap) => gapName(gap) === gapName(one)));",
      ],
    ],
    fails: [rounds, "knows an accepted loss of the end of one leaf and the begin of the next"],
  },
  {
    promise: "All of the tree is held against the audit within the hour, also after a pause",
    edits: [
      [
        notary,
        "const to = Math.max(pass.segments + segmentsPerRound, part);",
        "const to = Math.max(pass.segments + segmentsPerRound, part * 0);",
      ],
    ],
    fails: [rounds, "holds all of a large tree against the audit within the hour"],
  },
  {
    promise: "A lock that somebody holds fails a round of the notary",
    edits: [
      [
        "src/store/postgres.ts",
        "    lock_timeout: 5000,\n    statement_timeout: notaryDeadlineMs - 5000,\n    idle_in_transaction_session_timeout: 30_000,\n",
        "    statement_timeout: notaryDeadlineMs * 0,\n",
      ],
    ],
    fails: ["integration/waits", "fails a round of the notary, which says so in words"],
    on: "PostgreSQL",
    hangs: true,
  },
  {
    promise: "A tree that cannot be read is not taken for a database that was put back",
    edits: [
      [
        newest,
        "      this.failure = whyFailed(error);\n      const { file }",
        "      this.failure = whyFailed(error);\n      this.#putBack = this.failure;\n      const { file }",
      ],
    ],
    fails: ["integration/waits", "of the tree makes no server refuse, unless a file or a witness is set"],
    on: "PostgreSQL",
  },
  {
    promise: "A server says that no notary signs what it wrote itself",
    edits: [
      [
        "src/serve/process/compose.ts",
        'if (batch.outcome === "durable") checkpoint.noteEntry(batch.commitMs);',
        "void checkpoint.noteEntry;",
      ],
    ],
    fails: ["integration/unsigned", "is noticed by what a server itself wrote, too"],
  },
  {
    promise: "A server says that no notary signs what people wrote",
    edits: [
      [
        newest,
        "    if ((commands?.seq ?? 0) > (signed?.commands ?? 0)) this.noteEntry();\n",
        "    void [commands, signed];\n",
      ],
    ],
    fails: ["integration/unsigned", "says so after ten minutes"],
  },
  {
    promise: "Pages say that no notary signs",
    edits: [
      [
        "src/record/store/tree-search.ts",
        "  return found !== undefined;\n}\n\n/** The signed heads",
        "  return found !== undefined && beforeAt < 0;\n}\n\n/** The signed heads",
      ],
    ],
    fails: ["integration/unsigned", "is a line on Today and on Audit for operators"],
  },
  {
    promise: "The notary signs over nothing but what it signed",
    edits: [[notary, "      if (!isSigned) flaw =", "      if (!isSigned && size < 0) flaw ="]],
    fails: [rounds, "signs nothing over leaves that it did not sign, whatever was changed in them"],
  },
  {
    promise: "The notary signs nothing over a tree that was put back while it runs",
    edits: [
      [
        notary,
        "else flaw = accepts && !isPart ? undefined : checkpoint.putBack;",
        "else flaw = accepts || !isPart ? undefined : checkpoint.putBack;",
      ],
    ],
    fails: [rounds, "notices that the tree was put back to an earlier one while it runs"],
  },
  {
    promise: "Leaves are appended to the tree that they were made for",
    edits: [
      [
        "src/record/store/tree.ts",
        "if (end.size !== before.size || (end.head && !end.head.root.equals(before.root))) return false;",
        "void end;",
      ],
    ],
    fails: ["integration/put-back", "gets no leaf of the tree that was there when a notary began its round"],
  },
  {
    promise: "Of two notaries one appends",
    edits: [
      ["src/record/store/tree.ts", "    if ((await treeEnd(database)).size !== before.size) return false;\n", ""],
      [
        "src/record/store/tree.ts",
        "if (end.size !== before.size || (end.head && !end.head.root.equals(before.root))) return false;",
        'if (end.size !== before.size) throw new Refused("conflict", "It is another tree by now.");',
      ],
    ],
    fails: [rounds, "that is one of two at once makes one tree with the other"],
  },
  {
    promise: "A signing key is the one of its row",
    edits: [
      [
        "src/record/notary/signers.ts",
        "if (signer?.publicKey.equals(publicKey)) return [signer];",
        "if (signer && publicKey) return [signer];",
      ],
    ],
    fails: [rounds, "are passed over and named if SQL changed their row or made one up"],
  },
  {
    promise: "No row of the signing keys hides a key that was put back",
    edits: [
      [
        "src/record/notary/signers.ts",
        "const seed = attempt(() => keyring.unwrapSystemKey(`notary ${generation}`, rootId, wrapped));",
        "const seed = attempt.length > 9 ? undefined : keyring.unwrapSystemKey(`notary ${generation}`, rootId, wrapped);",
      ],
    ],
    fails: ["integration/record-rows", "that is removed, doubled or changed keeps no key"],
  },
  {
    promise: "Python judges a proof's members alike",
    edits: [
      ["docs/clients/keyhole_proof.py", '        raise Wrong("it has members that no proof has")', "        pass"],
    ],
    fails: ["unit/proof", "is judged alike by docs/clients/keyhole_proof.py"],
  },
  {
    promise: "The answer of a witness counts by its own signature alone",
    edits: [
      [
        "src/record/notary/witnesses.ts",
        "const found = signed.find(({ at }) => at !== undefined);",
        "const found = signed.map(({ line, at }) => ({ line, at: at ?? 1 }))[0];",
      ],
    ],
    fails: ["integration/witnesses", "have not signed if one says this: its answer has no signature by its key"],
  },
  {
    promise: "A signature of a witness that was given is not lost",
    edits: [
      [
        "src/record/notary/witnesses.ts",
        "if (asked !== undefined && asked !== known) answer =",
        "if (asked !== undefined && asked === -1) answer =",
      ],
    ],
    fails: ["integration/witnesses", "sign what goes on, again after a lost answer"],
  },
  {
    promise: "Leaves and the head over them are one",
    edits: [
      [
        "src/record/store/tree.ts",
        "return await database.transaction(async (db) => {",
        "const isDone = await database.transaction(async (db) => {",
      ],
      ["src/record/store/tree.ts", "      await db.insert(c).values(head);\n", ""],
      [
        "src/record/store/tree.ts",
        "      return true;\n    });\n",
        "      return true;\n    });\n    if (isDone) await database.transaction(async (db) => void (await db.insert(c).values(head)));\n    return isDone;\n",
      ],
    ],
    fails: [rounds, "that ends at any of its statements leaves a tree"],
  },
  {
    promise: "Python takes the same lists of keys",
    edits: [["docs/clients/keyhole_proof.py", 'if "" in keys or len(set(keys)) < len(keys):', "if not keys:"]],
    fails: ["unit/proof", "are judged alike by docs/clients/keyhole_proof.py"],
  },
  {
    promise: "Nobody makes the note of a witness too long to be read",
    edits: [
      [
        "src/record/note.ts",
        'return `${text}\\n${kept.map(({ line }) => `${line}\\n`).join("")}`;',
        'return kept.length > 0 && text !== "" ? note : note;',
      ],
    ],
    fails: ["integration/witnesses", "keep and show no signatures of strangers"],
  },
  {
    promise: "A notary that stands still shows in the checks",
    edits: [
      ["src/serve/process/health.ts", "return now - completeAt < 200_000;", "return now - completeAt < Infinity;"],
    ],
    fails: ["integration/stalled", "is late within four minutes, or goes on"],
    on: "PostgreSQL",
  },
  {
    promise: "A witness writes nothing for a checkpoint that it has signed",
    edits: [
      [
        "src/record/notary/witness-server.ts",
        "if (newest !== undefined && noteText(newest.note) === judged.text) return",
        'if (newest !== undefined && noteText(newest.note) === "") return',
      ],
    ],
    fails: ["blackbox/witness", "answers a checkpoint that it has signed with the stored line"],
  },
  {
    promise: "A witness that signs remembers first",
    edits: [
      [
        "src/record/notary/witness-server.ts",
        '  writeWholeSync("witness", fileOf(folder, judged.origin), true, Buffer.from(`${judged.note}${line}`));\n',
        '  const remember = () => writeWholeSync("witness", fileOf(folder, judged.origin), true, Buffer.from(`${judged.note}${line}`));\n  setTimeout(remember, 3);\n',
      ],
    ],
    fails: ["blackbox/witness", "has signed nothing that it does not remember, whenever it is killed"],
  },
  {
    promise: "A notary far behind holds some of the segments at a time",
    edits: [["src/record/store/segments.ts", "const firstPageSize = 16;", "const firstPageSize = 1_000_000;"]],
    fails: ["blackbox/notary-under-load", "that is 25,000 large segments behind takes them in with bounded memory"],
  },
  {
    promise: "A notary names at most 1000 flaws",
    edits: [["src/record/flaw.ts", "export const flawsMax = 1000;", "export const flawsMax = 1e9;"]],
    fails: ["blackbox/notary-under-load", "beside a flood of lanes that somebody made up takes in what is true"],
  },
  {
    promise: "A witness that is away is said once",
    edits: [["src/record/notary/witnesses.ts", "if (why !== this.#away.get(name) && why", "if (why"]],
    fails: ["blackbox/notary-under-load", "whose witness is away for a day goes on, says so once"],
  },
];

const record = "src/record/record.ts";
const watch = "src/record/notary/state-watch.ts";
const state = "integration/state";
const putBackTest = "integration/put-back";
const seenMore = "is noticed by a process that has seen more, and by one that finds the file";
const accept = "src/people/audit/accept-restore.ts";
const accepted = "gets nothing signed, until an operator accepts it";
const witnessed = "src/record/notary/witnessed-heads.ts";
const madeUp = "is nothing that a witness can make up";
const oldSlug = "a slug that was put back by a project's rows of before a rename";
const setBack = "a set that was put back is 503 within a round";

/** Rows and databases that were put back. */
export const putBack: readonly Proof[] = [
  {
    promise: "A row that was put back is found against the record",
    edits: [
      [
        record,
        "    return found;\n  }\n\n  #deleteOrganization",
        "    return found.slice(0, 0);\n  }\n\n  #deleteOrganization",
      ],
    ],
    fails: [state, "a key that was revoked and put back is 401 within a round"],
  },
  {
    promise: "A key that was put back is not live",
    edits: [
      [
        "src/store/lookups.ts",
        "live: excepted.has(key) ? 0 : found.live,",
        "live: excepted.has(key) ? found.live : found.live,",
      ],
    ],
    fails: [state, "a key that was revoked and put back is 401 within a round"],
  },
  {
    promise: "A set that was put back is not there",
    edits: [
      [
        "src/store/lookups.ts",
        "const isOut = (environment: string) => excepted.has(project) || excepted.has(subjectOf(environment));",
        'const isOut = (environment: string) => excepted.has(project) && subjectOf(environment) !== "";',
      ],
    ],
    fails: [state, setBack],
  },
  {
    promise: "A set that was put back with its records is named, even if somebody writes it afterwards",
    edits: [["src/record/record.ts", "version: Math.max(before, version)", "version: version + 0 * before"]],
    fails: [state, "a set that was put back with its records is named"],
  },
  {
    promise: "A set that was put back is not fetched by a statement of its own",
    edits: [
      [
        "src/store/sets.ts",
        "left join ${s} on ${inReach} and ${isFound} ${withDataKey(database, s)}`",
        "left join ${s} on ${inReach} ${isFound ? sql`` : sql``} ${withDataKey(database, s)}`",
      ],
    ],
    fails: [state, "a set that was put back is not fetched after a wait"],
  },
  {
    promise: "An entry that nobody wrote is no record",
    edits: [
      [
        watch,
        "if (follows || (await isInTree(database, this.#auditKey, segment, tree))) {",
        "if (follows || (await isInTree(database, this.#auditKey, segment, tree)) || tree) {",
      ],
    ],
    fails: [state, "an entry that nobody wrote is no record"],
  },
  {
    promise: "The tree proves an entry if the chain is broken",
    edits: [
      [
        watch,
        "if (follows || (await isInTree(database, this.#auditKey, segment, tree))) {",
        "if (follows || (await isInTree(database, this.#auditKey, segment, undefined))) {",
      ],
    ],
    fails: [state, "a key is 401 and named if the record of its revocation was broken, too"],
  },
  {
    promise: "What cannot be proved is no record that a key is live",
    edits: [
      [record, "    this.#losses = [...this.#losses, { ...range, number: this.#lossCount }];\n", "    void range;\n"],
    ],
    fails: [state, "a key is 401 and named if the record of its revocation was broken, too"],
  },
  {
    promise: "A project's slug that was put back is found",
    edits: [
      [
        record,
        "compare(`project:${id}`, slug, (is = slug) => is === slug);",
        "compare(`project:${id}`, slug, (is = slug) => is !== undefined);",
      ],
    ],
    fails: [state, oldSlug],
  },
  {
    promise: "A project whose slug was put back is in no list",
    edits: [
      [
        "src/store/projects.ts",
        "sql`${p} on ${p.organizationId} = ${k.organizationId} and ${isFound}`",
        "sql`${p} on ${p.organizationId} = ${k.organizationId}`",
      ],
    ],
    fails: [state, oldSlug],
  },
  {
    promise: "A deletion by Keyhole is no difference",
    edits: [
      [
        record,
        "      this.#projects.delete(projectId);\n      this.#deleteSets((subject) => subject.startsWith(`set:${projectId}/`));\n",
        "      this.#projects.delete(projectId);\n",
      ],
    ],
    fails: [state, "what is done by Keyhole is no difference"],
  },
  {
    promise: "What changes while it is compared is no difference",
    edits: [[watch, "      if (segment.firstSeq > lastSeq) break;\n", ""]],
    fails: [state, "nor is what changes while it is compared"],
  },
  {
    promise: "An exception is ended on record alone",
    edits: [
      [
        "src/people/audit/audit-chain.ts",
        "    return [undefined, changes];\n  });\n  return {\n    ...found,",
        '    return [undefined, changes.filter(({ names }) => !flaws.some(({ what, name }) => what === "state" && name === names[0]))];\n  });\n  return {\n    ...found,',
      ],
    ],
    fails: [state, "and is accepted on record"],
  },
  {
    promise: "A database that was put back is refused by what a process has seen",
    edits: [[newest, '...(seen ? [{ from: "this process", head: seen }] : []),', "...(seen ? [] : []),"]],
    fails: [putBackTest, seenMore],
  },
  {
    promise: "A database that was put back is refused by the file of the host",
    edits: [[newest, "...(kept ? [{ from, head: kept }] : []),", "...(kept ? [] : []),"]],
    fails: [putBackTest, seenMore],
  },
  {
    promise: "A database that was put back is refused although its tree is as large",
    edits: [
      [
        newest,
        "if (verifyConsistency(head, stored, proof)) return undefined;",
        "if (verifyConsistency(head, stored, proof) || proof) return undefined;",
      ],
    ],
    fails: [putBackTest, "is noticed if its tree is as large, with another root"],
  },
  {
    promise: "A database of which all but the tree was put back is refused",
    edits: [[newest, "if (last < known) {", "if (last < known && known < 0) {"]],
    fails: [putBackTest, "is noticed if all of it was put back but the tree, whatever the leaves' columns say"],
  },
  {
    promise: "A made-up end of people's lane is refused",
    edits: [[newest, "return isFit ? undefined :", "return isFit || known > 0 ? undefined :"]],
    fails: [putBackTest, "is noticed if all of it was put back but the tree, whatever the leaves' columns say"],
  },
  {
    promise: "Nothing is answered from a database that was put back",
    edits: [["src/serve/process/compose.ts", "refusal: () => checkpoint.refusal,", "refusal: () => undefined,"]],
    fails: [putBackTest, "is served by nobody: each request is 503 for one reason"],
  },
  {
    promise: "A loss that was accepted is not one that comes later",
    edits: [
      [
        newest,
        "if (stored.acceptedAt > head.acceptedAt) return undefined;",
        "if (stored.acceptedAt > 0) return undefined;",
      ],
    ],
    fails: [putBackTest, accepted],
  },
  {
    promise: "A loss is accepted as it was shown",
    edits: [
      [
        accept,
        "    if (end.size !== size || (end.commands?.seq ?? 0) !== commands) throw",
        "    if (end.size < 0 || (end.commands?.seq ?? 0) < 0 || size < 0 || commands < 0) throw",
      ],
    ],
    fails: [putBackTest, accepted],
  },
  {
    promise: "A loss is accepted once by several at once",
    edits: [
      [
        accept,
        "if (isSigned || (await isOnRecord(inside, systemKeys.audit, end.size))) return",
        "if (isSigned && (await isOnRecord(inside, systemKeys.audit, end.size)) && size < 0) return",
      ],
    ],
    fails: [putBackTest, accepted],
  },
  {
    promise: "A loss is not accepted by a line that nobody signed",
    edits: [
      [
        newest,
        "const opened = end.head && openTreeHead(end.head.note, signers);",
        'const said = Number(/audit.accept-restore (\\d+)/.exec(end.head?.note ?? "")?.[1] ?? 0);\n    const opened = end.head && (openTreeHead(end.head.note, signers) ?? { ...end.head, acceptedAt: said, commands: 0 });',
      ],
    ],
    fails: [putBackTest, "is not accepted by a line that nobody signed"],
  },
  {
    promise: "A failed comparison is a refusal if a file or a witness is set",
    edits: [
      [
        newest,
        "const isSet = file !== undefined || this.witnesses.length > 0;",
        "const isSet = (file !== undefined || this.witnesses.length > 0) && this.#seen !== undefined;",
      ],
    ],
    fails: [putBackTest, "is refused at once if what it should be compared by cannot be read"],
  },
  {
    promise: "A file of nobody is not passed over",
    edits: [
      [
        newest,
        "file !== undefined && kept === undefined\n",
        'file !== undefined && kept === undefined && file === ""\n',
      ],
    ],
    fails: [putBackTest, "a file of another installation, or of nobody, is refused"],
  },
  {
    promise: "An acceptance is not undone by a lookup that was on its way",
    edits: [[newest, "    if (before > this.#people) return;\n", ""]],
    fails: [putBackTest, "is not told by a lookup that was sent before an operator accepted it"],
  },
  {
    promise: "The next lookup notices that what people did ends earlier",
    edits: [
      [
        newest,
        "        await this.notePeople(found.people, before, readHead);\n",
        "        void [before, readHead];\n",
      ],
    ],
    fails: [putBackTest, "is noticed by the next lookup if what people did ends earlier"],
  },
  {
    promise: "A number that SQL wrote into the head's row is not believed",
    edits: [
      [
        newest,
        "if (head == null || !isSealedHead(auditKey, head)) this.#unsealed = seq;",
        "if (head == null) this.#unsealed = seq;",
      ],
    ],
    fails: [putBackTest, "is no number that SQL wrote into the row for a moment"],
  },
  {
    promise: "A database that was put back is refused by a witness",
    edits: [
      [
        newest,
        "...this.#witnessed.heads.map((one) => ({ ...one, hint: byCopy })),",
        "...this.#witnessed.heads.slice(0, 0).map((one) => ({ ...one, hint: byCopy })),",
      ],
    ],
    fails: [putBackTest, "is noticed by what a witness remembers, with or without memory and a file"],
  },
  {
    promise: "A witness can be asked without the notary's key in the database",
    edits: [
      [
        "src/record/notary/signers.ts",
        "const seed = firstNotarySeed(auditKey);",
        "const seed = Buffer.from(firstNotarySeed(auditKey).map((byte, at) => (at === 0 ? Math.random() * 256 : byte)));",
      ],
    ],
    fails: [putBackTest, "is noticed by a witness alone if the notary's key and the tree were taken out"],
  },
  {
    promise: "A witness shows no head that the log did not sign",
    edits: [
      [
        witnessed,
        "const head = openTreeHead(body, log);",
        "const head = openTreeHead(body, log) ?? ({ size: 1e6, root: Buffer.alloc(32), acceptedAt: 0, commands: 0 } as NotedHead);",
      ],
    ],
    fails: [putBackTest, madeUp],
  },
  {
    promise: "A witness shows no head that it did not sign itself",
    edits: [
      [
        witnessed,
        "if (head === undefined || cosignedAt(body, witness.verifier) === undefined) {",
        "if (head === undefined) {",
      ],
    ],
    fails: [putBackTest, madeUp],
  },
  {
    promise: "A witness cannot take back what it has shown",
    edits: [
      [
        witnessed,
        "if (known === undefined || isNewer(head, known)) this.#heads",
        "if (known === undefined || isNewer(head, known) || known) this.#heads",
      ],
    ],
    fails: [putBackTest, madeUp],
  },
  {
    promise: "An acceptance is later than all that a witness has seen",
    edits: [[notary, "accepts ? Math.max(now(), acceptedAt + 1) : ", "accepts ? Math.max(now(), 0 * acceptedAt) : "]],
    fails: [putBackTest, "is accepted later than all that a witness has seen, whatever the clock says"],
  },
  {
    promise: "What goes on while it is compared was not put back",
    edits: [
      [
        newest,
        "    const end = await treeEnd(database);\n",
        "    const end = await treeEnd(database);\n    const late = this.#readFile();\n    const after = late === undefined ? undefined : openTreeHead(late, signers);\n    if (after) known.push({ from, head: after });\n",
      ],
    ],
    fails: [putBackTest, "is not what another process wrote into the file while the database was read"],
  },
  {
    promise: "No page is made from a database that was put back",
    edits: [["src/dashboard/gate.ts", "    await installation.checkpoint.requireServed(admin.database);\n", ""]],
    fails: [putBackTest, "is served by nobody: each request is 503 for one reason"],
  },
  {
    promise: "`audit verify` fails if something that is set could not be compared",
    edits: [
      [
        "src/people/audit/operations.ts",
        "    if (missing.length > 0) {\n      const lines",
        "    if (missing.length > 99) {\n      const lines",
      ],
    ],
    fails: ["blackbox/put-back", "is compared by audit verify"],
  },
  {
    promise: "`audit verify --public` fails if something that is set could not be compared",
    edits: [["src/cli/audit-proof.ts", "  if (missing.length > 0) {\n", "  if (missing.length > 99) {\n"]],
    fails: ["blackbox/put-back", "is compared by audit verify"],
  },
  {
    promise: "Another server of PostgreSQL is compared before it answers",
    edits: [
      [
        "src/record/notary/newest-checkpoint.ts",
        "        await this.#requireCompared(found.server, watch);\n",
        "        void [this.#requireCompared, watch];\n",
      ],
    ],
    fails: ["blackbox/lossy-failover", "lets no request be answered by the new primary, from the first one on"],
    on: "PostgreSQL",
  },
  {
    promise: "Nothing is served over SSH from a database that was put back",
    edits: [["src/cli/terminal/admin.ts", "if (person !== undefined) await admin", "if (person === null) await admin"]],
    fails: ["blackbox/put-back", "is refused over SSH, with a sentence and exit code 6"],
  },
  {
    promise: "`audit verify --public` fails if a database was put back and its tree is whole",
    edits: [["src/cli/audit-proof.ts", "...(putBack === undefined ? [] : [putBack])]", "...[putBack].slice(1)]"]],
    fails: ["blackbox/put-back", "does not verify where something has seen more, though each entry is in order"],
  },
];
