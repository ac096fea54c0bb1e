import type { Proof } from "./proof.ts";

const rotation = "src/people/rotation/rotation.ts";
const wholeFile = "src/core/whole-file.ts";
const write = "src/kinds/variables/write.ts";
const installation = "src/installation/installation.ts";
const file = "src/store/sqlite-file.ts";
const importText = "unit/import-text";

/** What people's commands ask, do and refuse. */
export const commands: readonly Proof[] = [
  {
    promise: "A rotation is refused before it asks to drop a root key that something needs",
    edits: [[rotation, "  await requireOpening(admin);\n", ""]],
    fails: ["integration/rotation", "asks nobody to drop a root key that something still needs"],
  },
  {
    promise: "A damaged row of the notary's keys is named before a rotation moves anything",
    edits: [[rotation, "if (flaws[0] !== undefined) throw", 'if (flaws[0] === "") throw']],
    fails: ["integration/rotation", "moves nothing while a row of the notary's keys is damaged"],
  },
  {
    promise: "A write of several environments overwrites nobody's write in any of them",
    edits: [
      [
        write,
        "looked: plans.map(({ before, changes }) => ({ set: before, names: [...changes.keys()] })),",
        "looked: [],",
      ],
    ],
    fails: ["integration/versions-seen", "writes nowhere if one of them is refused"],
  },
  {
    promise: "An import deletes no other name than somebody was asked about",
    edits: [
      [
        write,
        "looked: plans.map(({ before, changes }) => ({ set: before, names: [...changes.keys()] })),",
        "looked: plans.slice(0, 0).map(({ before, changes }) => ({ set: before, names: [...changes.keys()] })),",
      ],
    ],
    fails: ["integration/imports", "deletes nothing that nobody was asked about"],
  },
  {
    promise: "A dry run writes nothing",
    edits: [
      [
        "src/people/editing/write-project.ts",
        "  const would = outcomeOf(planSets(project, changes));\n",
        "  const would = outcomeOf(planSets(project, changes));\n  if (!admin.isWithin) void writingProject(admin, project, descriptor, async (admin, locked) => [undefined, await writeSets(admin, locked, descriptor, changes)], options);\n",
      ],
    ],
    fails: [
      "integration/imports",
      "that is a dry run says what would be added, changed and deleted, and writes and records nothing",
    ],
  },
  {
    promise: "A lock between processes lasts until it is released",
    edits: [[file, "  held.set(name, file);\n", ""]],
    fails: ["integration/migrate", "a lock between processes is held though nothing refers to it"],
  },
  {
    promise: "A lock between processes is not given to its holder again",
    edits: [[file, "  if (held.has(name)) return undefined;\n", "  held.get(name)?.close();\n"]],
    fails: ["integration/migrate", "a lock between processes is held though nothing refers to it"],
  },
  {
    promise: "Nobody opens an installation that another process begins or upgrades",
    edits: [
      [installation, "if (lock === undefined) throw new HostRefused", "if (lock === null) throw new HostRefused"],
    ],
    fails: ["integration/migrate", "an installation that another process begins or upgrades is not opened beside it"],
  },
  {
    promise: "A key on a list does not reach a project by an old slug",
    edits: [["src/store/projects.ts", ' and ${p.slug} = listed."key")', ")"]],
    fails: ["integration/sets", "are out of reach for a key that lists the old slug, in a list of projects too"],
  },
  {
    promise: "A draft that is under way stays",
    edits: [[wholeFile, "beforeMs = Date.now() - dayMs", "beforeMs = Date.now() + dayMs"]],
    fails: ["unit/whole-file", "a draft is removed by the next writer of its kind once it is a day old"],
  },
  {
    promise: "An import keeps a number as it is written",
    edits: [
      ["src/kinds/variables/import-text.ts", 'const text = value.source ?? "";', "const text = String(value.value);"],
    ],
    fails: [importText, "a value is the text that is written"],
  },
  {
    promise: "An export stays within its folder",
    edits: [["src/kinds/files/export.ts", "if (problem !== undefined) throw", 'if (problem === "") throw']],
    fails: ["unit/export", "leave Keyhole by no export"],
  },
  {
    promise: "An import refuses a name that occurs twice",
    edits: [
      [
        "src/kinds/variables/env-file.ts",
        "if (earlier !== undefined) problems.push(",
        "if (earlier === -1) problems.push(",
      ],
    ],
    fails: [importText, "what an import refuses, by line and name"],
  },
  {
    promise: "An import takes nothing for JSON that is not",
    edits: [
      [
        "src/kinds/variables/import-text.ts",
        "const isJson = attempt(() => JSON.parse(text)) !== undefined;",
        "const isJson = attempt(() => JSON.parse(text)) !== null;",
      ],
    ],
    fails: [importText, "what an import refuses, by line and name"],
  },
  {
    promise: "A comment that may hold a value is no note",
    edits: [
      [
        "src/kinds/variables/env-file.ts",
        "return words.some((word) => word.length >= 16 &&",
        "return words.some((word) => word.length >= 1e6 &&",
      ],
    ],
    fails: [importText, "the comment above a line is its note, unless it may hold a value"],
  },
  {
    promise: '"Nothing" is not said of a git history that is cut off',
    edits: [
      [
        "src/people/leaks/texts.ts",
        'if ((await answerOf(folder, "--is-shallow-repository")) === "true") yield',
        'if ((await answerOf(folder, "--is-shallow-repository")) === "yes") yield',
      ],
    ],
    fails: ["unit/texts", "is named as cut off"],
  },
  {
    promise: "Completion offers no word that a shell acts on",
    edits: [
      [
        "src/cli/completion.ts",
        "...names.filter(({ word }) => inert.test(word))]",
        "...names.filter(({ word }) => inert && word)]",
      ],
    ],
    fails: ["unit/command", "completes"],
  },
  {
    promise: "A text of strangers poses as no row",
    edits: [
      ["src/core/visible.ts", 'return visible(text.replace(blanks, " "));', "return visible(blanks ? text : text);"],
    ],
    fails: ["unit/terminal", "cannot pose as a row"],
  },
];
