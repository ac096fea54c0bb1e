import type { Proof } from "./proof.ts";

const held = "src/core/held.ts";
const segment = "src/record/segment.ts";
const verify = "src/record/verify.ts";
const journal = "src/record/journal.ts";
const journalTest = "integration/journal";
const segmentFields =
  '["keyhole audit v1", Buffer.from(previous).toString("hex"), lane, firstSeq, lastSeq, at, texts.length]';
const without = (field: string) => segmentFields.replace(`, ${field}`, "");
const anotherMac = "has another mac for another value of any field";

/** No value leaves without its entry. */
export const entries: readonly Proof[] = [
  {
    promise: "Every value has its entries",
    edits: [[held, "if (entryCount !== needed) throw", "if (entryCount === -needed) throw"]],
    fails: ["unit/held", "refuses a forgotten entry: no variable"],
  },
  {
    promise: "An entry precedes its value",
    edits: [
      [
        "src/record/release.ts",
        "const receipt = await journal.record(entries, read);",
        "const receipt: string | undefined = [undefined, journal.record(entries, read)][0] as undefined;",
      ],
    ],
    fails: ["property/concurrency", "which the answer waits for"],
  },
  {
    promise: "A refused entry keeps the value back",
    edits: [
      [
        "src/record/release.ts",
        "await journal.record(entries, read);",
        "await journal.record(entries, read).catch(() => undefined);",
      ],
    ],
    fails: ["property/concurrency", "and not at all if there can be no entry"],
  },
  {
    promise: "Nothing is recorded if the render refuses",
    edits: [
      [
        "src/record/release.ts",
        "  const body = renderHeld(held, render, entries.length);\n",
        "  await journal.record(entries, read);\n  const body = renderHeld(held, render, entries.length);\n",
      ],
    ],
    fails: ["unit/held", "records nothing if the render refuses"],
  },
  {
    promise: "A value that is held shows nothing on the console",
    edits: [
      [held, "readonly #value: T;", "readonly value: T;"],
      [held, "this.#value = value;", "this.value = value;"],
      [held, "held.#value", "held.value"],
      [held, '[Symbol.for("nodejs.util.inspect.custom") as typeof inspect.custom]', "shown"],
    ],
    fails: ["unit/held", "shows nothing on the console"],
  },
  {
    promise: "A read of a canary is on record before its value leaves",
    edits: [["src/serve/gates/read-endpoint.ts", "        ...(canaries && { canaries }),\n", ""]],
    fails: ["integration/canaries", "is read like any other, and each read of its value is on record as a use"],
  },
  {
    promise: "An answer names its own entries",
    edits: [[journal, "call.first ??= { lane, firstSeq: seq };", "call.first ??= { lane, firstSeq: 1 };"]],
    fails: [journalTest, "names the entries of each call"],
  },
  {
    promise: "An answer names entries of one lane",
    edits: [[journal, "if (call.first.lane !== lane) {", 'if (call.first.lane === "") {']],
    fails: [journalTest, "refuses a call whose entries came into two lanes"],
  },
  {
    promise: "A batch of unknown outcome is sent again",
    edits: [[journal, 'if (result.outcome !== "unknown") return result;', "if (result) return result;"]],
    fails: [journalTest, "sends a batch of unknown outcome once more"],
  },
  {
    promise: "A refused second try does not prove that the first stored nothing",
    edits: [
      [journal, 'return retry.outcome === "refused" ? { ...retry, outcome: "unknown" } : retry;', "return retry;"],
    ],
    fails: [journalTest, "leaves a lane whose end nobody knows"],
  },
  {
    promise: "Nothing follows a batch of unknown outcome in its lane",
    edits: [[journal, 'if (outcome === "unknown") this.#startLane();', ""]],
    fails: [journalTest, "leaves a lane whose end nobody knows"],
  },
  {
    promise: "No lane goes back in time",
    edits: [[journal, "if (at < this.#at) this.#startLane();", ""]],
    fails: ["integration/audit-verify", "begins a new lane if the clock steps back"],
  },
  {
    promise: "A defect in a batch stops no later one",
    edits: [
      [
        journal,
        "    } finally {\n      // Whatever failed, later entries are written.\n      this.#working = undefined;\n    }",
        "      this.#working = undefined;\n    } finally {\n      // Whatever failed, later entries are written.\n    }",
      ],
    ],
    fails: [journalTest, "goes on in its lane after a defect of what it reports to"],
    hangs: true,
  },
  {
    promise: "At most 4096 entries are in the journal, and others wait",
    edits: [
      [
        journal,
        "const room = claimed instanceof Promise ? await this.#whileOthersAreStored(claimed) : claimed;",
        "const room = claimed instanceof Promise ? { release: () => void this.#whileOthersAreStored(claimed) } : claimed;",
      ],
    ],
    fails: [journalTest, "a call that would be more waits for those of others"],
  },
  {
    promise: "A call that waited in vain is told that the database is the cause",
    edits: [[journal, "if (this.#batches > before) throw error;", "if (this.#batches >= before) throw error;"]],
    fails: [journalTest, "a call that waited in vain is told that the database is the cause"],
  },
  {
    promise: "A closing journal takes nothing more",
    edits: [[journal, 'if (this.#closed) throw new Fault("unavailable", "the journal is closed");', ""]],
    fails: [journalTest, "takes nothing more once it is closing"],
    hangs: true,
  },
  {
    promise: "A segment has at most 512 entries",
    edits: [[journal, "taken === entriesPerSegmentMax || ", "taken === entriesPerSegmentMax * 8 || "]],
    fails: [journalTest, "has at most one batch under way, of at most 512 entries"],
  },
  {
    promise: "A segment has at most 32,000 names of lists that differ",
    edits: [[journal, "nameCount > namesPerSegmentMax)", "nameCount > namesPerSegmentMax * 99)"]],
    fails: [journalTest, "writes at most 32,000 names of lists that differ together"],
  },
  {
    promise: "A list of names that entries share counts once",
    edits: [[journal, "call.left > 0 && !lists.has(entry.names)", "call.left > 0"]],
    fails: [journalTest, "writes at most 32,000 names of lists that differ together"],
  },
  {
    promise: "The others of a batch are answered if a job had its answers",
    edits: [
      [
        journal,
        "if (before + index < read.readsMax) continue;",
        "if (before + index < read.readsMax || calls.length > 0) continue;",
      ],
    ],
    fails: [journalTest, "counts a job's reads with their entries"],
  },
];

/** No entry is changed unseen. */
export const chain: readonly Proof[] = [
  {
    promise: "Each segment is chained to the one before",
    edits: [[segment, segmentFields, without('Buffer.from(previous).toString("hex")')]],
    fails: [journalTest, anotherMac],
  },
  {
    promise: "A segment's mac covers its entries",
    edits: [[segment, ".update(texts).update(entries);", ".update(texts);"]],
    fails: ["unit/audit-verify", "with: 7: its names"],
  },
  {
    promise: "A segment's mac covers what filters look for",
    edits: [[segment, ".update(texts).update(entries);", ".update(entries);"]],
    fails: ["unit/audit-verify", "with: 7: its key"],
  },
  {
    promise: "A segment's mac covers where its texts end",
    edits: [[segment, segmentFields, without("texts.length")]],
    fails: [journalTest, anotherMac],
  },
  {
    promise: "A segment's mac covers its time",
    edits: [[segment, segmentFields, without("at")]],
    fails: ["unit/audit-verify", "with: 7: its moment"],
  },
  {
    promise: "A segment's mac covers its last number",
    edits: [[segment, segmentFields, without("lastSeq")]],
    fails: [journalTest, anotherMac],
  },
  {
    promise: "A segment's mac covers its lane",
    edits: [[segment, segmentFields, without("lane")]],
    fails: [journalTest, anotherMac],
  },
  {
    promise: "A segment's mac covers its first number",
    edits: [[segment, segmentFields, without("firstSeq")]],
    fails: [journalTest, anotherMac],
  },
  {
    promise: "A verification compares the macs of segments",
    edits: [
      [
        verify,
        "segmentMac(this.#auditKey, link.mac, segment).equals(mac)",
        "segmentMac(this.#auditKey, link.mac, segment).equals(mac) === mac.length > 0 || mac.length > 0",
      ],
    ],
    fails: ["unit/audit-verify", "with: 7: its key"],
  },
  {
    promise: "A verification accuses no segment that is in order",
    edits: [
      [
        verify,
        "this.#link = { lane, lastSeq: Math.max(lastSeq, link.lastSeq), mac };",
        "this.#link = { lane, lastSeq: Math.max(lastSeq, link.lastSeq), mac: segmentMac(this.#auditKey, link.mac, segment) };",
      ],
    ],
    fails: ["unit/audit-verify", "with: 7: its key"],
  },
  {
    promise: "An accepted gap binds what follows it",
    edits: [["src/record/flaw.ts", '[firstSeq, lastSeq, at, mac.toString("hex"), texts, entries]', "[]"]],
    fails: ["integration/audit-verify", "in the middle of a lane is on record and no flaw"],
  },
  {
    promise: "An accepted gap cannot be made up",
    edits: [
      [verify, "if (!known.some(({ seals }) => seals.includes(seal))) return false;", 'if (seal === "") return false;'],
    ],
    fails: ["integration/audit-verify", "cannot be made up or moved in SQL"],
  },
  {
    promise: "A removal in SQL is not retention",
    edits: [
      [
        verify,
        "return isSameMac(sealDropped(auditKey, dropped), dropped.seal);",
        "return isSameMac(sealDropped(auditKey, dropped), sealDropped(auditKey, dropped));",
      ],
    ],
    fails: ["integration/audit-verify", "notices a lane that is missing altogether"],
  },
  {
    promise: "A damaged segment with another number of entries does not decode",
    edits: [[segment, "if (entries.length !== lastSeq - firstSeq + 1) return undefined;", ""]],
    fails: [journalTest, "to have another number of entries does not decode"],
  },
  {
    promise: "A damaged segment with names that are no texts does not decode",
    edits: [[segment, 'if (typeof value !== "string") throw new TypeError("no text");', ""]],
    fails: [journalTest, "to have names that are no texts"],
  },
  {
    promise: "SQL cannot date what people did",
    edits: [["src/people/desk/changes.ts", "at - now > clockStepMsMax ? now : Math.max(now, at)", "Math.max(now, at)"]],
    fails: ["integration/changes", "has the time at which it was made, whatever somebody wrote into the lane's head"],
  },
];

const tree = "src/record/tree.ts";
const note = "src/record/note.ts";

/** The signed tree over the audit, its notes and its proofs. */
export const trees: readonly Proof[] = [
  {
    promise: "The tree tells a leaf from a node",
    edits: [[tree, "const nodePrefix = new Uint8Array([1]);", "const nodePrefix = new Uint8Array([0]);"]],
    fails: ["unit/tree", "has the roots of Certificate Transparency's test tree"],
  },
  {
    promise: "A proof of inclusion has exactly as many hashes as it needs",
    edits: [
      [tree, "if (beside.length !== proof.length) return false;", "if (beside.length > proof.length) return false;"],
    ],
    fails: ["unit/tree", "accepts exactly the valid proofs of inclusion"],
  },
  {
    promise: "A proof of consistency has exactly as many hashes as it needs",
    edits: [
      [
        tree,
        "first === undefined || rest.length !== beside.length",
        "first === undefined || rest.length < beside.length",
      ],
    ],
    fails: ["unit/tree", "accepts exactly the valid proofs of consistency"],
  },
  {
    promise: "A proof of consistency shows the earlier tree, too",
    edits: [
      [
        tree,
        "return before.equals(earlier.root) && after.equals(tree.root);",
        "return before.length > 0 && after.equals(tree.root);",
      ],
    ],
    fails: ["property/tree", "begins with each earlier tree, and with no changed, reordered, cut or other one"],
  },
  {
    promise: "A note opens for a signature that verifies",
    edits: [
      [
        note,
        "  return verify(null, Buffer.from(content), key, signature);",
        "  return verify(null, Buffer.from(content), key, signature) || signature.length > 0;",
      ],
    ],
    fails: ["unit/note", "does not open when any byte of it is changed, cut or added"],
  },
  {
    promise: "A note does not open with a wrong signature beside a right one",
    edits: [[note, "known.length > 0 && known.every(Boolean) ? text", "known.some(Boolean) ? text"]],
    fails: ["unit/note", "does not open if one of two known signatures is wrong"],
  },
  {
    promise: "A tree's note is of this installation",
    edits: [
      [
        "src/record/tree-note.ts",
        "log.some(({ name }) => name === origin) ? (head as NotedHead) : undefined",
        "origin === undefined ? undefined : (head as NotedHead)",
      ],
    ],
    fails: ["unit/note", "opens for the log's own key only, and with extension lines"],
  },
  {
    promise: "A proof of one entry tells nothing of its neighbours",
    edits: [
      [
        "src/record/leaf.ts",
        "Buffer.concat([salt, Buffer.from(JSON.stringify(sorted(entry)))])",
        "Buffer.concat([salt.subarray(0, 0), Buffer.from(JSON.stringify(sorted(entry)))])",
      ],
    ],
    fails: ["unit/leaf", "is that of another program: one read"],
  },
  {
    promise: "Retention of leaves is proved by its mac",
    edits: [
      [
        "src/record/leaf-set.ts",
        ' || !isSameMac(macOfRanges(auditKey, ranges), Buffer.from(mac, "hex"))',
        " || mac.length + auditKey.length === 0",
      ],
    ],
    fails: ["unit/leaf-set", "is opened with its mac alone"],
  },
  {
    promise: "A proof shows its entry",
    edits: [
      [
        "src/record/proof.ts",
        "leaf === undefined || !verifyInclusion(leaf, named.firstSeq - firstSeq, within, path)",
        "leaf === undefined || within.size < path.length * 0",
      ],
    ],
    fails: ["unit/proof", "is judged as the vectors say: a name less"],
  },
  {
    promise: "A proof shows the segment of its entry",
    edits: [
      [
        "src/record/proof.ts",
        "if (!verifyInclusion(leafHash(segment.text), index, tree, treePath)) {",
        "if (index + treePath.length < 0) {",
      ],
    ],
    fails: ["unit/proof", "is judged as the vectors say: another time of the segment"],
  },
  {
    promise: "A proof is of the number that it names",
    edits: [
      [
        "src/record/proof.ts",
        "if (!isIn || named.firstSeq < firstSeq || named.firstSeq > lastSeq) {",
        "if (named === undefined) {",
      ],
    ],
    fails: ["unit/proof", "is judged as the vectors say: another lane"],
  },
  {
    promise: "A proof is under a head of the given key",
    edits: [
      [
        "src/record/proof.ts",
        "const tree = openTreeHead(note, log);",
        'const tree = parseTreeHead(noteText(note) ?? "") ?? openTreeHead(note, log);',
      ],
      [
        "src/record/proof.ts",
        'openTreeHead } from "./tree-note.ts"',
        'openTreeHead, parseTreeHead } from "./tree-note.ts"',
      ],
      ["src/record/proof.ts", "cosignedAt, ", "cosignedAt, noteText, "],
    ],
    fails: ["unit/proof", "is judged as the vectors say: a head by another key"],
  },
  {
    promise: "A proof is under a head that each named witness signed",
    edits: [
      ["src/record/proof.ts", "if (missing !== undefined) return", 'if (missing !== undefined && note === "") return'],
    ],
    fails: ["unit/proof", "is judged as the vectors say: one witness of two"],
  },
  {
    promise: "A proof has numbers of one spelling",
    edits: [
      [
        "src/record/proof.ts",
        "JSON.parse(utf8.decode(line), onlyDigits)",
        "JSON.parse(utf8.decode(line), onlyDigits && ((_, value) => value))",
      ],
    ],
    fails: ["unit/proof", "has one grammar, whatever a line looks like"],
  },
  {
    promise: "The public walk compares each node with its halves",
    edits: [
      [
        "src/record/tree-walk.ts",
        "else if (expected !== undefined && !expected.equals(stored)) {",
        "else if (expected !== undefined && expected.length === 0) {",
      ],
    ],
    fails: ["property/tree-walk", "says where it breaks, a line each: an odd leaf"],
  },
  {
    promise: "The public walk compares each head with the leaves before it",
    edits: [
      [
        "src/record/tree-walk.ts",
        "if (!rootOver(hashes as Buffer[]).equals(root)) this.#note(",
        "if (rootOver(hashes as Buffer[]).length + root.length === 0) this.#note(",
      ],
    ],
    fails: ["property/tree-walk", "finds nothing in what a notary stored, and something in everything else"],
  },
  {
    promise: "The public walk verifies each head's signature",
    edits: [
      [
        "src/record/tree-walk.ts",
        "if (head?.size !== size || !head.root.equals(root)) {",
        "if (head && (head.size !== size || !head.root.equals(root))) {",
      ],
    ],
    fails: ["property/tree-walk", "finds nothing in what a notary stored, and something in everything else"],
  },
  {
    promise: "The public walk notices an end of the tree before the newest head",
    edits: [["src/record/tree-walk.ts", "if (this.#newest > this.#size) {", "if (this.#newest < 0) {"]],
    fails: ["property/tree-walk", "says where it breaks, a line each: the end"],
  },
  {
    promise: "The public walk notices leaves in no signed head",
    edits: [["src/record/tree-walk.ts", "} else if (this.#newest < this.#size) {", "} else if (this.#newest < 0) {"]],
    fails: ["property/tree-walk", "says where it breaks, a line each: the newest head"],
  },
  {
    promise: "A witness signs no fork",
    edits: [
      [
        "src/record/witness.ts",
        "return verifyConsistency(newest, head, proof);",
        "return verifyConsistency(newest, head, proof) || proof.length >= 0;",
      ],
    ],
    fails: ["unit/witness", "is signed if it goes on from what was signed before, and from nothing else"],
  },
  {
    promise: "A witness signs nothing from an old size",
    edits: [
      [
        "src/record/witness.ts",
        "if (oldSize !== (newest?.size ?? 0)) return",
        "if (oldSize > (newest?.size ?? 0)) return",
      ],
    ],
    fails: ["unit/witness", "is signed if it goes on from what was signed before, and from nothing else"],
  },
  {
    promise: "A witness signs nothing that the log did not sign",
    edits: [
      [
        "src/record/witness.ts",
        "const text = openNote(note, keys);",
        'const text = openNote(note, keys) ?? note.slice(0, note.lastIndexOf("\\n\\n") + 1);',
      ],
    ],
    fails: ["unit/witness", "is refused if the log is another one, its signature is wrong, or it is malformed"],
  },
  {
    promise: "A cosignature covers its time",
    edits: [
      [
        note,
        "`cosignature/v1\\ntime ${time.readBigUInt64BE()}\\n${text}`",
        "`cosignature/v1\\ntime ${time.length > 0 ? 0 : 1}\\n${text}`",
      ],
    ],
    fails: ["unit/note", "is one of its log, and has the signature of each of them"],
  },
  {
    promise: "Only a signature by the witness's own key counts in the database",
    edits: [
      [
        note,
        "return verifier !== undefined && /^.+\\n$/.test(line) && cosignedAt(`${note}${line}`, verifier) !== undefined;",
        'return verifier !== undefined && line !== "" && note !== "";',
      ],
    ],
    fails: ["integration/witnesses", "have not signed if a row says so, and no signature"],
  },
];
