import type { Proof } from "./proof.ts";

const drafts = "blackbox/drafts";
const transcripts = "blackbox/transcripts-here";
const rotation = "src/people/rotation/rotation.ts";
const wholeFile = "src/core/whole-file.ts";
const write = "src/kinds/variables/write.ts";
const installation = "src/installation/installation.ts";
const file = "src/store/sqlite-file.ts";
const importText = "unit/import-text";

/** What people's commands ask, do and refuse. */
export const commands: readonly Proof[] = [
  {
    promise: "What cannot be undone is asked first",
    edits: [["src/cli/terminal/ask.ts", "if (yes || deed === undefined) return;", "if (yes || deed) return;"]],
    fails: ["blackbox/asking", "a project is deleted only if the answer is yes"],
  },
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
    promise: "A copy takes what the person saw",
    edits: [
      [
        write,
        '        { set: opened, ...(names && { names }), what: isWithin ? `version.${source}` : "source.version" },\n',
        "",
      ],
    ],
    fails: ["integration/dashboard-set", "copies to another project nothing that was written since"],
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
    promise: "A database that is a link is refused",
    edits: [[installation, "  refuseLink(path);\n", "  void refuseLink;\n"]],
    fails: [transcripts, "A database that is a link is refused, and nothing is made where the link leads"],
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
    promise: "A key's reach is never a default",
    edits: [
      [
        "src/people/keys/credentials.ts",
        "if ((listed === undefined) !== (all === undefined)) return;",
        "if (listed === undefined || all === undefined) return;",
      ],
    ],
    fails: [transcripts, "A key's reach is never a default"],
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
    promise: "An export is on record before it is on the disk",
    edits: [
      [
        "src/people/backup/export.ts",
        "items.size === 0 ? [] : [revealOf(admin, of, items.values())]",
        "items.size >= 0 ? [] : [revealOf(admin, of, items.values())]",
      ],
    ],
    fails: ["integration/export", "gives nothing of a set before its names are on record as revealed"],
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
    promise: '"Nothing" is not said of damaged entries',
    edits: [["src/people/audit/audit.ts", "    noteDamage(segment);\n    return [];\n", "    return [];\n"]],
    fails: ["integration/absences", "of the audit is not given for entries that are damaged"],
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
  {
    promise: "A renamed project is sealed under its new slug",
    edits: [
      [
        "src/people/projects/projects.ts",
        "for (const descriptor of slug === found.slug ? [] : everyKind) {",
        "for (const descriptor of slug ? [] : everyKind) {",
      ],
    ],
    fails: ["integration/sets", "are served under the new one alone, with the same items, and everything opens"],
  },
  {
    promise: "A shortened id is one key's",
    edits: [["src/people/desk/ids.ts", "if (fitting.length > 1) throw", "if (fitting.length > 99) throw"]],
    fails: ["integration/keys", "is found if at least 8 characters are given and no other key begins so"],
  },
  {
    promise: "A name is never blank",
    edits: [
      [
        "src/people/desk/validate.ts",
        'oneLine(name).trim() !== "") return name;',
        'oneLine(name) !== "") return name;',
      ],
    ],
    fails: ["integration/dashboard-set", "the page that sets an account refuses, with a sentence, and changes nothing"],
  },
  {
    promise: "A plan begins no transaction, so a question holds no lock",
    edits: [
      [
        "src/people/editing/write-project.ts",
        "  const would = outcomeOf(planSets(project, changes));\n",
        "  const would = outcomeOf(planSets(project, changes));\n  if (!admin.isWithin) void admin.database.transaction(async () => undefined);\n",
      ],
    ],
    fails: ["integration/imports", "is planned without a transaction, like a copy and an account"],
  },
  {
    promise: "A filter names something",
    edits: [
      [
        "src/people/audit/audit.ts",
        "    if (await hasEntries(admin, [...within, condition])) return condition;\n    throw refusal;\n",
        "    void [hasEntries, within, refusal];\n    return condition;\n",
      ],
    ],
    fails: ["integration/audit-list", "that names what never was is refused, whatever its form"],
  },
  {
    promise: "An import quotes no value of what it cannot read",
    edits: [
      [
        "src/kinds/variables/import-text.ts",
        "errors.map(({ code, pos }) => ({",
        "errors.map(({ message: code, pos }) => ({",
      ],
    ],
    fails: ["unit/import-text", "all of it at once, without a value"],
  },
  {
    promise: "Completion opens no folder that came with a repository",
    edits: [
      [installation, "return existsSync(path) && isPrivate(dataFolder) ?", "return existsSync(path) && isPrivate ?"],
    ],
    fails: ["blackbox/completion", "offers nothing, makes nothing and says nothing"],
  },
  {
    promise: "A killed rotation leaves no live root key",
    edits: [
      [
        installation,
        'if (config.rootKey.from === "folder") whileLocked',
        "if (config.rootKey.from === undefined) whileLocked",
      ],
    ],
    fails: [drafts, "holds a live root key, and serve and the next rotation remove it"],
  },
  {
    promise: "A killed restore leaves no database",
    edits: [
      [
        installation,
        "  whileLocked(serveLock(config), () => removeRestoreDrafts(config));\n",
        "  void removeRestoreDrafts;\n",
      ],
    ],
    fails: [drafts, "is removed by serve if it was to be the restored database"],
  },
  {
    promise: "Nothing begins by accident on the embedded database",
    edits: [
      [
        installation,
        "if (!consent.begin && !existsSync(path) && !hadRootKey) throw notBegun(`in ${dataFolder}`);",
        "void hadRootKey;",
      ],
      [installation, "else if (version === 0 && !consent.begin) throw notBegun(`in ${dataFolder}`);", ""],
    ],
    fails: ["blackbox/firstrun", "says where it looked, ends with 4 and makes nothing"],
  },
  {
    promise: "An empty stdin is no value",
    edits: [
      [
        "src/cli/terminal/input.ts",
        "if (unlessEmpty === undefined || value.length > 0) return value;",
        "if (unlessEmpty === undefined || value.length >= 0) return value;",
      ],
    ],
    fails: ["blackbox/transcripts-here", "A value of nothing is only stored if that is said"],
  },
  {
    promise: "A retired root key is not lost",
    edits: [["src/people/rotation/root-keys.ts", "(keep ? older : [])", "(keep && older.length > 9 ? older : [])"]],
    fails: ["blackbox/transcripts-here", "The end of a rotation keeps the older root key"],
  },
  {
    promise: "A new key's file replaces none",
    edits: [
      [
        "src/core/whole-file.ts",
        '  if (tryStat(path) === undefined) return;\n  throw new Problem(exits.failed, "exists", `${path} is there already, and --out',
        '  if (tryStat(path) !== null) return;\n  throw new Problem(exits.failed, "exists", `${path} is there already, and --out',
      ],
    ],
    fails: ["blackbox/transcripts-here", "A key in a file is nowhere else, and no file is replaced by one"],
  },
  {
    promise: "What an import prunes is asked first, by name",
    edits: [
      [
        "src/kinds/variables/operations.ts",
        "...(prune && { deed: `${imports}, and delete ${deletions(deleted)}` }),",
        '...(prune && imports === "" && { deed: `${imports}, and delete ${deletions(deleted)}` }),',
      ],
    ],
    fails: ["blackbox/transcripts-here", "An import that deletes variables needs --yes"],
  },
  {
    promise: "Nobody is asked about what would be refused anyway",
    edits: [
      [
        "src/cli/terminal/perform.ts",
        "    const plan = await row.plan(admin, given, person);\n",
        '    await askAt(context, row, yes)({ deed: "do this" } as never);\n    const plan = await row.plan(admin, given, person);\n',
      ],
    ],
    fails: ["blackbox/transcripts-here", "What would be refused anyway is refused without a question"],
  },
  {
    promise: "An account leaves no environment unasked",
    edits: [
      [
        "src/kinds/accounts/operations.ts",
        "      ...(deed && { deed }),\n      document,\n      sentence: `Nothing was written. ${setText",
        "      document,\n      sentence: `Nothing was written. ${setText",
      ],
    ],
    fails: ["blackbox/transcripts-here", "An account leaves no environment unasked"],
  },
  {
    promise: "`restore` is refused before it asks",
    edits: [
      [
        "src/people/backup/backup.ts",
        "    removeRestoreDrafts(config);\n    const { whole",
        "    removeRestoreDrafts(config);\n    await options.agree?.(existsSync(path));\n    const { whole",
      ],
      [
        "src/people/backup/backup.ts",
        "    await options.agree?.(existsSync(path));\n    replaceDatabase",
        "    replaceDatabase",
      ],
    ],
    fails: ["blackbox/transcripts-here", "A restore replaces what was written since, if that is confirmed"],
  },
  {
    promise: "A killed backup or export leaves no draft",
    edits: [
      [
        "src/core/whole-file.ts",
        "attempt(() => readdirSync(folder)) ?? []",
        "(beforeMs < 0 && attempt(() => readdirSync(folder))) || []",
      ],
    ],
    fails: ["blackbox/drafts", "is removed by the next command of its kind, a day later"],
  },
  {
    promise: "A question names the keys and trusts that it cuts off",
    edits: [
      [
        "src/people/keys/credentials.ts",
        'found.filter(({ status }) => status === "active");\n  const words',
        "found.slice(0, 0);\n  const words",
      ],
    ],
    fails: [
      "blackbox/transcripts-here",
      "A question names the keys and trusts that would be cut off, and nothing changes before a yes",
    ],
  },
  {
    promise: "No item is suggested that somebody may not see",
    edits: [
      [
        "src/people/editing/reveal.ts",
        'const seen = among.filter((environment) => may(admin.rights, "see", placeOf(project), environment));',
        'const seen = among.filter((environment) => may("operator", "see", placeOf(project), environment));',
      ],
    ],
    fails: [
      "blackbox/transcripts-here",
      "A name that is not there is answered with the nearest one in sight, and with nothing else",
    ],
  },
  {
    promise: "A revocation never waits for an answer elsewhere",
    edits: [
      [
        "src/people/keys/credentials.ts",
        '    asks: "if it can",\n    inputs: { id: id(type) },',
        '    asks: "needs --yes",\n    inputs: { id: id(type) },',
      ],
    ],
    fails: ["blackbox/transcripts-here", "A revocation never waits for an answer"],
  },
  {
    promise: "A killed edit leaves no text after the next",
    edits: [["src/cli/terminal/editor.ts", "if (pid === undefined || attempt", 'if (pid !== "" || attempt']],
    fails: [
      "blackbox/transcripts-here",
      "The text is private, in memory if it can be, and the next edit removes what a killed one left",
    ],
  },
  {
    promise: "An edit leaves the text of one that is under way",
    edits: [
      [
        "src/cli/terminal/editor.ts",
        "if (pid === undefined || attempt(() => process.kill(Number(pid), 0))) continue;",
        "if (pid === undefined) continue;",
      ],
    ],
    fails: ["blackbox/transcripts-here", "An edit leaves the text of one that is under way"],
  },
  {
    promise: "An editor has no key",
    edits: [
      [
        "src/cli/terminal/editor.ts",
        "env: withoutSettings(env),",
        "env: (withoutSettings(env), env as Record<string, string>),",
      ],
    ],
    fails: ["blackbox/transcripts-here", "An editor has none of Keyhole's settings"],
  },
  {
    promise: "An edit overwrites nobody's write",
    edits: [
      [
        "src/people/editing/open.ts",
        "  const unlessSeen = { [what]: version };\n",
        "  const unlessSeen = { [what]: version };\n  if (version >= 0) return;\n",
      ],
    ],
    fails: ["blackbox/transcripts-here", "An edit is refused if somebody else wrote in the meantime"],
  },
  {
    promise: "An export is whole, or not there",
    edits: [
      [
        "src/core/whole-file.ts",
        '    const draft = draftIn(above, "folder");\n    mkdirSync(draft, { mode: 0o700 });',
        "    const draft = named;\n    mkdirSync(draft, { mode: 0o700, recursive: true });",
      ],
      ["src/core/whole-file.ts", "      renameSync(draft, named); // fails if somebody has put something there\n", ""],
      [
        "src/core/whole-file.ts",
        "    } finally {\n      rmSync(draft, { force: true, recursive: true });\n    }\n",
        "    } finally {\n      void rmSync;\n    }\n",
      ],
    ],
    fails: ["blackbox/export", "by kill -9 has no folder under its name"],
    hangs: true,
  },
  {
    promise: "Nothing begins by accident on PostgreSQL",
    edits: [
      [
        "src/installation/installation.ts",
        'if (version === 0 && !consent.begin) throw notBegun("in the database at DATABASE_URL");',
        'if (version === 0 && consent.begin === null) throw notBegun("in the database at DATABASE_URL");',
      ],
    ],
    fails: ["blackbox/firstrun", "org list … says where it looked, ends with 4 and makes nothing"],
    on: "PostgreSQL",
  },
];
