import type { Proof } from "./proof.ts";

const machines = "integration/machines-only";
const nobody = "is read by machines, and by nobody in any of the ways that people have";
const stays = "stays so through every write and rotation, and is deleted before it is readable";
const guess = "does not tell whether a guess is right";

/** No person reads a value that is for machines only. */
export const machinesOnly: readonly Proof[] = [
  {
    promise: "A person's read of a value for machines only is refused where it is opened",
    edits: [
      [
        "src/people/editing/stored-value.ts",
        "if (this.#hidden !== undefined) throw forMachinesOnly(this.#hidden);",
        "",
      ],
    ],
    fails: [machines, nobody],
  },
  {
    promise: "A person's read of a content for machines only is refused",
    edits: [["src/people/editing/contents.ts", "if (isHidden) throw forMachinesOnly(entry.path ?? entry.id);", ""]],
    fails: [machines, nobody],
  },
  {
    promise: "Nobody reads earlier versions of what is for machines only now",
    edits: [["src/people/editing/open.ts", " || hidden?.has(name) === true", ""]],
    fails: [machines, stays],
  },
  {
    promise: "The checksum of a file for machines only is not listed",
    edits: [["src/kinds/files/write.ts", "!item.machinesOnly &&", ""]],
    fails: [machines, nobody],
  },
  {
    promise: "No write of a variable tells whether a guess is right",
    edits: [["src/kinds/variables/write.ts", " && old?.isHidden === false;", " && old !== undefined;"]],
    fails: [machines, guess],
  },
  {
    promise: "A mark that comes with a new value is told without comparing it",
    edits: [["src/kinds/variables/write.ts", "isCompared && !machinesOnly && old", "isCompared && old"]],
    fails: [machines, guess],
  },
  {
    promise: "No comparison of environments tells whether a guess is right",
    edits: [["src/people/projects/comparison.ts", "isOpen && !item.isHidden ? contentOf", "isOpen ? contentOf"]],
    fails: [machines, guess],
  },
  {
    promise: "No diff compares what is for machines only",
    edits: [
      ["src/kinds/variables/reveal.ts", "if (our.isHidden || their.isHidden)", "if (our.isHidden && their.isHidden)"],
    ],
    fails: [machines, guess],
  },
  {
    promise: "No rollback compares what is for machines only",
    edits: [["src/people/history/rollback.ts", " && item?.isHidden === false && old?.isHidden === false", ""]],
    fails: [machines, stays],
  },
  {
    promise: "No search for leaks opens what is for machines only",
    edits: [["src/people/leaks/values.ts", "if (isHidden) {", "if (isHidden && name === undefined) {"]],
    fails: [machines, nobody],
  },
  {
    promise: "A value that was readable is not put back over one for machines only",
    edits: [
      [
        "src/people/editing/write.ts",
        "if (isHidden && item !== null && !before.isMachinesOnly(item.entry)) {",
        "if (isHidden && item === undefined) {",
      ],
    ],
    fails: [machines, stays],
  },
  {
    promise: "A variable becomes one for machines only with a new value",
    edits: [
      [
        "src/kinds/variables/write.ts",
        "if (machinesOnly) throw new Refused(",
        "if (machinesOnly && !old) throw new Refused(",
      ],
    ],
    fails: [machines, "takes a new value, which may be generated and is never shown"],
  },
  {
    promise: "An account becomes one for machines only with all its fields again",
    edits: [
      ["src/kinds/accounts/write.ts", "merge && machinesOnly && isTarget &&", "merge && machinesOnly && !isTarget &&"],
    ],
    fails: [machines, "takes a new value, which may be generated and is never shown"],
  },
  {
    promise: "A write without the mark keeps a variable for machines only",
    edits: [["src/kinds/variables/write.ts", "machinesOnly ?? old?.isHidden", "machinesOnly"]],
    fails: [machines, nobody],
  },
  {
    promise: "A write without the mark keeps an account for machines only",
    edits: [["src/kinds/accounts/write.ts", "machinesOnly ?? item?.isHidden", "machinesOnly"]],
    fails: [machines, nobody],
  },
  {
    promise: "A write without the mark keeps a file for machines only",
    edits: [["src/kinds/files/write.ts", "machinesOnly ?? old?.isHidden", "machinesOnly"]],
    fails: [machines, nobody],
  },
  {
    promise: "A copy of what is for machines only takes the right to make a key for it",
    edits: [
      [
        "src/kinds/variables/write.ts",
        'hidden.length === 0 || may(admin.rights, "keys"',
        'hidden.length >= 0 || may(admin.rights, "keys"',
      ],
    ],
    fails: [machines, "is copied only by somebody who could make a key for it"],
  },
  {
    promise: "A coin from before the mark for machines only has none",
    edits: [["src/seal/canary.ts", "coin?.length === coinLength &&", "coin !== undefined &&"]],
    fails: [machines, "a coin tells of its marks to the holder of the key alone"],
  },
  {
    promise: "New code takes values unseen only if it seals them again",
    edits: [["src/people/leaks/values.ts", "value?.shown()", "value?.unseen()"]],
    fails: [machines, "only what seals values again takes them unseen"],
  },
  {
    promise: "No machine gets a note with a list of variables",
    edits: [
      [
        "src/kinds/variables/read.ts",
        "return JSON.stringify(entries.map(({ key, updatedAt }) => ({ key, updatedAt })));",
        "return JSON.stringify(entries);",
      ],
    ],
    fails: ["integration/notes", "reaches no machine: no route, no tool, and no tag that a watch goes by"],
  },
  {
    promise: "No machine gets a note with a list of files",
    edits: [
      [
        "src/kinds/files/read.ts",
        "contentType, environments, updatedAt });",
        "contentType, environments, updatedAt, note: (entry as { note?: string }).note });",
      ],
    ],
    fails: ["integration/notes", "reaches no machine: no route, no tool, and no tag that a watch goes by"],
  },
  {
    promise: "No machine sees a note change",
    edits: [
      [
        "src/kinds/variables/read.ts",
        '["key", "updatedAt", "coin", "version"]',
        '["key", "updatedAt", "coin", "version", "note"]',
      ],
    ],
    fails: ["integration/notes", "reaches no machine: no route, no tool, and no tag that a watch goes by"],
  },
];
