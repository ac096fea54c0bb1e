import type { Proof } from "./proof.ts";

const persons = "integration/persons";
const roster = "src/people/desk/roster.ts";
const find = "integration/find";
const heads = "integration/heads";
const upgrade = "src/installation/upgrade.ts";
const projects = "src/people/desk/projects.ts";
const signIn = "integration/sign-in";
const gate = "src/dashboard/gate.ts";
const context = "src/people/desk/context.ts";

/** Where rights are asked, and by whom. */
export const asked: readonly Proof[] = [
  {
    promise: "Rights end by the database's clock",
    edits: [
      [
        roster,
        "const [end, now] = await Promise.all([laneEnd(admin.database, commandsLane), clockOf(admin.database)]);",
        "const [end, now] = await Promise.all([laneEnd(admin.database, commandsLane), clockOf && Date.now()]);",
      ],
    ],
    fails: [
      "integration/rights-end",
      "are there until that millisecond by the database's clock, whatever the process's clock says",
    ],
  },
  {
    promise: "Every page asks for its right",
    edits: [
      [
        "src/dashboard/app.ts",
        'if (!hasSomewhere(admin.rights, ...rights)) throw new Refused("not_found", "There is no such page.");',
        "void rights;",
      ],
    ],
    fails: ["integration/routes-rights", "is not there for somebody without its right"],
  },
  {
    promise: "What is forbidden is answered like what is not there",
    edits: [
      [
        projects,
        'throw admin.rights === "operator" ? noProject(where, nearest) : noRight(where, rights, among, nearest);',
        'throw admin.rights === "operator" || found === undefined ? noProject(where, nearest) : noRight(where, rights, among, nearest);',
      ],
    ],
    fails: [
      "integration/routes-rights",
      "shows and changes nothing of a project in which they have no right, as if it did not exist",
    ],
  },
  {
    promise: "No project is suggested that somebody may not see",
    edits: [
      [
        projects,
        'return Permit.find(admin, needed, place, among) && Permit.find(admin, ["see"], place) ? [slug] : [];',
        "return place && needed && among !== null ? [slug] : [];",
      ],
    ],
    fails: [
      "blackbox/transcripts-here",
      "A name that is not there is answered with the nearest one in sight, and with nothing else",
    ],
  },
  {
    promise: "Taking back a change tells nothing about a value",
    edits: [
      [
        "src/people/history/rollback.ts",
        "    const wanted = new Map(back.map((name) => [name, earlier.get(name)]));",
        '    const shown = (item: Item | undefined) => JSON.parse(String(item?.value?.shown() ?? "{}")).value as string | undefined;\n    const differ = back.filter((name) => shown(earlier.get(name)) !== shown(before.items.get(name)));\n    const wanted = new Map(differ.map((name) => [name, earlier.get(name)]));',
      ],
    ],
    fails: ["integration/undo", "takes no right to reveal, and tells nothing about a value"],
  },
  {
    promise: "A comparison tells nothing to who may not reveal",
    edits: [
      [
        "src/people/projects/comparison.ts",
        "groupsOf(\n      holders.map(({ isOpen, item }) => (isOpen && !item.isHidden ? contentOf(descriptor, item) : null)),",
        "groupsOf(\n      holders.map(({ item }) => (!item.isHidden ? contentOf(descriptor, item) : null)),",
      ],
    ],
    fails: ["integration/comparison", "agrees with a model in memory, for every kind and after any writes"],
  },
  {
    promise: "A key reaches no further than who makes it",
    edits: [
      [
        "src/people/keys/keys.ts",
        "return permits.length > 0 && permits.every((permit) => permit !== undefined) ? permits : undefined;",
        "const some = permits.filter((permit) => permit !== undefined);\n  return some.length > 0 ? some : undefined;",
      ],
    ],
    fails: [persons, "make, rotate and revoke keys that reach no further than their own rights"],
  },
  {
    promise: "An id that is shortened tells of no key elsewhere",
    edits: [
      [
        "src/people/desk/ids.ts",
        'const fitting = (rows as T["$inferSelect"][]).filter(isSeen);',
        'const fitting = (rows as T["$inferSelect"][]).filter((row) => row || isSeen(row));',
      ],
    ],
    fails: [persons, "find out by nothing that they type which keys there are elsewhere"],
  },
  {
    promise: "Writing alone names no file",
    edits: [
      [
        "src/kinds/files/write.ts",
        '      const maySee = may(admin.rights, "see", placeOf(found), environment);\n',
        '      const maySee = may(admin.rights, "write", placeOf(found), environment);\n',
      ],
    ],
    fails: [persons, "who may write and not see are told no name of a file"],
  },
  {
    promise: "A command that waits does not outlast its rights",
    edits: [[context, "    await admin.requireSameRights?.(admin);\n", ""]],
    fails: [persons, "change and see nothing by a command that waited until their rights were taken"],
  },
  {
    promise: "A list or an export that goes on does not outlast its rights",
    edits: [["src/people/audit/audit.ts", "    await admin.requireSameRights?.(admin);\n", ""]],
    fails: [persons, "export the audit of before, and nothing more once they are removed"],
  },
  {
    promise: "An export of the audit ends with what was there when it began",
    edits: [
      [
        "src/people/audit/audit.ts",
        'const beforeAt = order === "newest first" ? filter.beforeAt : await untilNow();',
        'const beforeAt = order === "newest first" || untilNow ? filter.beforeAt : undefined;',
      ],
    ],
    fails: [persons, "export the audit of before, and nothing more once they are removed"],
  },
  {
    promise: "Who may not read the audit is refused",
    edits: [
      [
        "src/people/audit/audit-chain.ts",
        'if (hasSomewhere(rights === "operator" ? rights : rights.filter(isThere), "audit")) return;',
        "if (hasSomewhere && isThere) return;",
      ],
    ],
    fails: [persons, "without the right `audit` are refused the audit, and told apart from an empty one"],
  },
  {
    promise: "The audit shows a person what concerns their places",
    edits: [
      [
        "src/people/audit/audit.ts",
        "if (!mayRead(rights, one) || !conditions.every(({ isMetBy }) => isMetBy(one))) return [];",
        "if ((!mayRead(rights, one) && seq < 0) || !conditions.every(({ isMetBy }) => isMetBy(one))) return [];",
      ],
      ["src/people/audit/audit.ts", 'if (rights !== "operator") having.push(', "if (rights === null) having.push("],
    ],
    fails: [persons, "with `audit` see the entries of their places alone"],
  },
  {
    promise: "A search finds and counts what somebody may see, and nothing else",
    edits: [
      [
        "src/people/projects/find.ts",
        'const permit = Permit.find(admin, ["see"], { organizationId, projectId: id });',
        "const permit = organizationId && Permit.ofProgram();",
      ],
    ],
    fails: [find, "it finds and counts exactly what the model does"],
  },
  {
    promise: "The number of a search's statements tells of nothing that somebody may not see",
    edits: [
      [
        "src/people/projects/find.ts",
        "const read = sizesOf.get(id)?.filter(({ environment }) => permit.environments.includes(environment)) ?? [];",
        "const read = sizesOf.get(id) ?? [];",
      ],
    ],
    fails: [find, "nor does the number of its statements tell how much is there"],
  },
  {
    promise: "A search does not keep quiet about a set that SQL emptied",
    edits: [
      [
        "src/people/editing/across.ts",
        "    verifyListing(listingKey, set, set);\n",
        "    void [verifyListing, listingKey, set];\n",
      ],
    ],
    fails: [find, "names each set that was changed, emptied or deleted in SQL, whatever the part"],
  },
  {
    promise: "A head without a seal is sealed only by an upgrade",
    edits: [["src/seal/keyring.ts", "export const sealFormat = 2;", "export const sealFormat = 1;"]],
    fails: [heads, "is sealed by an upgrade alone, with the list that its lane names, and only then"],
  },
  {
    promise: "A head without a seal is sealed only if its lane is unbroken",
    edits: [
      [
        upgrade,
        "else if (roster !== null || named !== undefined) roster = undefined;",
        "else roster = named ?? roster;",
      ],
    ],
    fails: [heads, "lets nobody in if SQL had"],
  },
  {
    promise: "A head without a seal is sealed only if its lane ends there",
    edits: [
      [
        upgrade,
        "const isHere = and(eq(h.lane, last.lane), eq(h.seq, last.seq), eq(h.mac, last.mac));",
        "const isHere = and(eq(h.lane, last.lane));",
      ],
    ],
    fails: [heads, "lets nobody in if SQL had"],
  },
  {
    promise: "A head without a seal is sealed from where retention cut its lane off",
    edits: [
      [upgrade, "mac: Buffer.alloc(0), ...dropped, at: 0 };", "mac: Buffer.alloc(0), ...(dropped && {}), at: 0 };"],
    ],
    fails: [heads, "is sealed with the list in the first entry that retention has left"],
  },
  {
    promise: "Organizations are sealed once, by the upgrade of a database of 0.2.0",
    edits: [
      [upgrade, "if (formats.includes(sealFormat)) return;", "void formats;"],
      [upgrade, "if (formats.includes(0)) {", "if (formats.length > 0) {"],
    ],
    fails: [
      "integration/organization-seal",
      "stays refused if SQL undoes the migrations that brought its seal and what came after",
    ],
  },
  {
    promise: "Of two changes of persons at once none is lost",
    edits: [["src/people/persons/persons.ts", "await lockCommands(admin);", "void lockCommands;"]],
    fails: [persons, "who are changed by two operators at once lose nothing"],
    on: "PostgreSQL",
  },
  {
    promise: "The role of people can change no list of persons that there was",
    edits: [
      [
        "src/store/roles.ts",
        '["INSERT", [tables.dataKeys, tables.auditSegments, tables.rosters].map(getTableName)],',
        '["INSERT, UPDATE", [tables.dataKeys, tables.auditSegments, tables.rosters].map(getTableName)],',
      ],
    ],
    fails: ["integration/roles", "may not change persons"],
    on: "PostgreSQL",
  },
  {
    promise: "The notary's role reads no secret and changes nothing",
    edits: [
      [
        "src/store/roles.ts",
        '["SELECT (project_id, kind, environment, version)", [getTableName(tables.sets)]],',
        '["SELECT", [getTableName(tables.sets)]],',
      ],
    ],
    fails: ["integration/roles", "may not read a value that is sealed"],
    on: "PostgreSQL",
  },
  {
    promise: "A command of operators is no command of people",
    edits: [
      [
        "src/cli/door.ts",
        'return right !== "operator";',
        'return right !== "operator" || rowOf(command)?.path === "person add";',
      ],
    ],
    fails: ["unit/door", "has the commands of people, and none of these"],
  },
  {
    promise: "What comes through the door ends at 256 MiB",
    edits: [["src/cli/terminal/input.ts", "      left -= chunk.length;\n", ""]],
    fails: ["unit/bounded-input", "what comes through the door ends at 256 MiB, and an operator's log does not"],
    hangs: true,
  },
  {
    promise: "An import of too many names is refused before it is built",
    edits: [["src/kinds/variables/import-text.ts", "  refuseTooMany(source);\n", "  void refuseTooMany;\n"]],
    fails: ["unit/bounded-input", "is refused before it is built, as yaml of a list"],
    hangs: true,
  },
  {
    promise: "A person is told nothing of folders, hosts and settings",
    edits: [
      [
        "src/people/desk/failure.ts",
        'const isPerson = audience === "person";',
        'const isPerson = audience === "person" && error === null;',
      ],
    ],
    fails: ["integration/failures", "is explained to operators alone, by commands"],
  },
  {
    promise: "Strangers end nobody's attempt to sign in",
    edits: [
      [
        "src/dashboard/attempts.ts",
        "  async open(cookie: string): Promise<Attempt | undefined> {\n",
        "  async open(cookie: string): Promise<Attempt | undefined> {\n    if (this.#begun.length > 10_000 && !this.#begun.slice(-10_000).includes(cookie)) return undefined;\n",
      ],
      [
        "src/dashboard/attempts.ts",
        "    return sealing.setProtectedHeader({ alg: algorithm, enc: cipher }).encrypt(this.#key);",
        "    return sealing.setProtectedHeader({ alg: algorithm, enc: cipher }).encrypt(this.#key).then((one) => (this.#begun.push(one), one));",
      ],
      [
        "src/dashboard/attempts.ts",
        "  readonly #key = randomBytes(32);\n",
        "  readonly #key = randomBytes(32);\n  readonly #begun: string[] = [];\n",
      ],
    ],
    fails: [signIn, "lets nobody be pushed out by strangers who begin to sign in"],
  },
  {
    promise: "Rights end at once for who signed in",
    edits: [
      [
        gate,
        "...(await entrance.signIn.whoIs(admin, identity)),",
        "...(await (firstSeen.get(identity) ?? firstSeen.set(identity, entrance.signIn.whoIs(admin, identity)).get(identity))),",
      ],
      [
        gate,
        "function noDatabase(",
        'const firstSeen = new WeakMap<object, ReturnType<SignIn["whoIs"]>>();\n\nfunction noDatabase(',
      ],
    ],
    fails: [signIn, "takes rights away at the next request"],
  },
  {
    promise: "A session is new at each sign-in",
    edits: [
      [
        "src/dashboard/sessions.ts",
        "if (isSame) this.#sessions.delete(sha256Of(before));\n    else this.end(before);",
        'if (!isSame) this.end("");',
      ],
    ],
    fails: [signIn, "gives a new session at each sign-in, and ends the one before"],
  },
  {
    promise: "Every command asks for what it needs",
    edits: [
      [
        "src/people/requests/requests.ts",
        'const decideRights = ["decide", "write"] as const;',
        'const decideRights = ["write"] as const;',
      ],
    ],
    fails: ["integration/commands-rights", "works for exactly those who have what it needs"],
  },
  {
    promise: "The log has no text of the provider's error",
    edits: [
      [
        "src/dashboard/provider.ts",
        "return notSignedIn(`its token endpoint answered ${error.status}, ${codeOf(error.error)}`);",
        "return notSignedIn(`its token endpoint answered ${error.status}, ${error.error} ${error.error_description}`);",
      ],
    ],
    fails: ["integration/identity-providers", "a wrong client secret"],
  },
  {
    promise: "Nothing of an import is read before the person has the right",
    edits: [
      [
        "src/kinds/variables/operations.ts",
        '    const found = await findToChange(admin, project, prune ? ["write", "see"] : "write", [environment]);\n    requireFreshToCompare(admin, placeOf(found), [environment]); // before anything is read\n',
        '    await file.read();\n    const found = await findToChange(admin, project, prune ? ["write", "see"] : "write", [environment]);\n    requireFreshToCompare(admin, placeOf(found), [environment]); // before anything is read\n',
      ],
    ],
    fails: ["integration/commands-rights", "reads nothing of what is sent by somebody who may not"],
  },
  {
    promise: "One name removes whoever signs in",
    edits: [
      [
        "src/people/persons/persons.ts",
        "const same = signIn && others.find((one) => one.signIn && mayBeOne(one.signIn, signIn));",
        'const same = signIn && others.find((one) => one.signIn && mayBeOne(one.signIn, signIn) && name === "");',
      ],
    ],
    fails: [persons, "are never two whom one sign-in is"],
  },
  {
    promise: "A token by unknown keys has the provider's keys asked for once",
    edits: [
      [
        "src/dashboard/provider.ts",
        "    timeoutDuration: timeoutMs,\n  });",
        "    timeoutDuration: timeoutMs,\n    cooldownDuration: 0,\n  });",
      ],
    ],
    fails: [
      "integration/identity-providers",
      "an ID token by an unknown key has the keys asked for once, however often it comes",
    ],
  },
  {
    promise: "What the provider says of groups is of the same subject",
    edits: [
      [
        "src/dashboard/provider.ts",
        ".fetchUserInfo(configuration, tokens.access_token, claims.sub)",
        ".fetchUserInfo(configuration, tokens.access_token, oidc.skipSubjectCheck)",
      ],
    ],
    fails: [
      "integration/identity-providers",
      "asks userinfo only if the ID token names no groups, and believes it of the same subject alone",
    ],
  },
  {
    promise: "A comparison of environments shows no value and no checksum",
    edits: [
      [
        "src/people/projects/comparison.ts",
        "group: groups[index] ?? null,",
        "group: (groups[index] ?? null) && (String(contentOf(descriptor, item)) as never),",
      ],
    ],
    fails: ["integration/comparison", "of variables tells the same values apart from others"],
  },
  {
    promise: "Nobody without `see` gets a note",
    edits: [
      [
        "src/kinds/variables/write.ts",
        "chosen.map((item) => copied(admin, item, maySee))",
        "chosen.map((item) => copied(admin, item, maySee || true))",
      ],
    ],
    fails: ["integration/notes", "goes along with a copy by somebody who may see it, and with no other"],
  },
];
