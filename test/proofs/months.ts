import type { Proof } from "./proof.ts";

const month = "src/record/month.ts";
const notary = "src/record/notary/notary.ts";
const verify = "src/record/verify.ts";
const monthsTest = "integration/months";
const held = "is held against its leaf: whatever SQL does there is named by the notary, by verify and by its --month";

/** Months that are over are sealed, and looked at by samples. */
export const months: readonly Proof[] = [
  {
    promise: "A month is sealed only after a look that found nothing wrong",
    edits: [
      [notary, "    if (pass.walk.flaws.length + pass.tree.flaws.length + this.#late.size === 0) await", "    await"],
    ],
    fails: [monthsTest, "is not sealed while there is a flaw, and is once that is accepted"],
  },
  {
    promise: "A month is sealed only when it is over",
    edits: [[notary, "month.isOver ||= monthOf(at) < monthOf(startedAt);", "month.isOver ||= at < startedAt;"]],
    fails: [monthsTest, "is sealed once, after a look at all of it that began when it was over and found nothing"],
  },
  {
    promise: "A month is sealed once, also if an entry of it comes late",
    edits: [[notary, "if (newest !== undefined && newest.month >= month) return;", ""]],
    fails: [monthsTest, "takes no entry any more: one that comes late is outside, looked at, and of the next month"],
  },
  {
    promise: "A month is believed if the signed tree has its leaf",
    edits: [
      [
        "src/record/store/tree.ts",
        "if (await leadsToRoot(database, tree, leaf, text)) months.push",
        "if (leaf >= 0) months.push",
      ],
    ],
    fails: [monthsTest, "is sealed by nobody but a notary: what SQL calls a month is none, and all is looked at"],
  },
  {
    promise: "A leaf that has lost its segments is not taken for a month because SQL calls it one",
    edits: [[month, " || !leafHash(text).equals(hashes.subarray(0, 32))", ""]],
    fails: [monthsTest, held],
  },
  {
    promise: "Leaves of sealed months are looked at by samples",
    edits: [[notary, "drawLeaves(kept, samplesPerRound)", "drawLeaves(kept, 0)"]],
    fails: [monthsTest, held],
  },
  {
    promise: "Each leaf of a sealed month is as likely to be looked at as any other",
    edits: [["src/record/leaf-set.ts", "let rank = randomInt(all);", "let rank = drawn.size;"]],
    fails: ["unit/leaf-set", "is drawn from: as many as asked for, each once, all if there are no more …"],
  },
  {
    promise: "A sample that has lost its segments is a flaw",
    edits: [
      [notary, "      await walk.end();\n      if (walk.flaws", "      await walk.close();\n      if (walk.flaws"],
    ],
    fails: [monthsTest, held],
  },
  {
    promise: "A flaw that a sample found is looked at in each round until it is mended",
    edits: [[notary, "...this.#flawedLeaves.keys(), ", ""]],
    fails: [
      monthsTest,
      "is not looked at whole any more, and a flaw that a sample found is looked at until it is mended",
    ],
  },
  {
    promise: "Samples take a third of a round at most",
    edits: [[notary, "const samplesWithinMs = 20_000;", "const samplesWithinMs = 60_000;"]],
    fails: [monthsTest, "is looked at for a third of a round at most, and the rest goes on"],
  },
  {
    promise: "Samples are drawn from what retention has kept",
    edits: [[notary, "leavesOutside((await knownLeaves(auditKey, chain)).pruned, size)", "leavesOutside([], size)"]],
    fails: [monthsTest, "keeps its leaf when retention drops its entries, and samples are drawn from what is kept"],
  },
  {
    promise: "The columns of a sealed leaf keep no new entry of its lane out of the hourly look",
    edits: [[verify, "    this.#expected.add(leaf);\n", ""]],
    fails: [monthsTest, "is no place to hide behind: whatever its leaves say in SQL, new entries are looked at …"],
  },
  {
    promise: "A leaf is named if SQL gives it another last entry",
    edits: [[verify, "if (isTrue && built.lastSeq === lastSeq) return;", "if (isTrue) return;"]],
    fails: ["integration/notary", "names what SQL did to anything in the tree, a lane and a leaf in the middle too …"],
  },
  {
    promise: "The leaf of a month is no loss",
    edits: [[verify, "      if (monthOfLeaf(stored)) continue;\n", ""]],
    fails: [monthsTest, "is sealed once, after a look at all of it that began when it was over and found nothing"],
  },
  {
    promise: "A month is of the tree that its leaf says, and who has the public key alone sees it",
    edits: [["src/people/audit/audit-public.ts", "walk.compareMonth(months[0]);", "void 0;"]],
    fails: [monthsTest, "is of the tree that its leaf says, for whoever has only the public key …"],
  },
];
