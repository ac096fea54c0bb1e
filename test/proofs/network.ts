import type { Proof } from "./proof.ts";

const outgoing = "blackbox/outgoing";
const signIn = "src/store/sign-in.ts";
const liar = "integration/false-postgres";
const postgres = "src/store/postgres.ts";
const postgresOnly = { on: "PostgreSQL" } as const;

/** What a database may be, and what it may do to a process. */
export const network: readonly Proof[] = [
  {
    promise: "SQLite's files are those that were opened, for reads",
    edits: [["src/store/sqlite.ts", "if (!isSame()) throw", "if (!isSame() && nowMs < 0) throw"]],
    fails: ["blackbox/lost-database", "that was replaced by a copy is a 503 within a second"],
    hangs: true,
  },
  {
    promise: "SQLite's files are those that were opened, for entries",
    edits: [
      [
        "src/record/store/journal-worker.ts",
        "  isInPlace = isSameDatabase(path);\n",
        "  isInPlace = () => isSameDatabase !== undefined;\n",
      ],
    ],
    fails: ["blackbox/lost-database", "that was moved away takes no entries, from the very next segment on"],
  },
  {
    promise: "A server that may be anybody gets no password before its proof",
    edits: [[signIn, "if (type === undefined || !this.#next.includes(type)) {", "if (type === undefined) {"]],
    fails: [liar, "is refused with the last step without a proof"],
  },
  {
    promise: "A server that may be anybody knows the password itself",
    edits: [
      [
        signIn,
        "if (proof.length !== this.#serverProof.length || !timingSafeEqual(proof, this.#serverProof)) {",
        "if (proof.length !== this.#serverProof.length || !timingSafeEqual(proof, proof)) {",
      ],
    ],
    fails: [liar, "is refused with a proof by another password"],
  },
  {
    promise: "A server that may be anybody lets nobody in unasked",
    edits: [
      [signIn, 'if (isMethod && password !== "" && !isVerified) throw failure("SIGN_IN_UNASKED");', "void isMethod;"],
    ],
    fails: [liar, "must ask for it if there is one"],
  },
  {
    promise: "A server that may be anybody gets no proof of few rounds",
    edits: [
      [
        signIn,
        'if (Number(rounds) < roundsMin && !this.#login.isVerified) throw failure("SIGN_IN_FEW_ROUNDS");',
        "void roundsMin;",
      ],
    ],
    fails: [liar, "of fewer than 4,096 rounds"],
  },
  {
    promise: "Rounds of SCRAM stop nothing else",
    edits: [
      [
        signIn,
        "const derive = promisify(pbkdf2);",
        "const derive = async (...asked: Parameters<typeof pbkdf2Sync>) => pbkdf2Sync(...asked);\nvoid [pbkdf2, promisify];",
      ],
      [signIn, "createHmac, pbkdf2, randomBytes", "createHmac, pbkdf2, pbkdf2Sync, randomBytes"],
    ],
    fails: [liar, "of 600,000 rounds lets everything else go on"],
  },
  {
    promise: "A server that does not let us in is asked a few times",
    edits: [["src/store/postgres-clients.ts", "/^(?:28\\w{3}|SIGN_IN_\\w+)$/", "/^(?:28\\w{3})$/"]],
    fails: [liar, "and after a refusal no more for ten seconds"],
  },
  {
    promise: "A new connection is on the list of all",
    edits: [
      [
        "src/core/names.ts",
        "export const itemsMax",
        'export const other = () => fetch("https://example.com");\nexport const itemsMax',
      ],
    ],
    fails: ["unit/outgoing", "every file that connects to something is on the list"],
  },
  {
    promise: "What was given up is not asked again",
    edits: [
      [
        "src/store/postgres-clients.ts",
        'if (givenUp) throw new Fault("unavailable", "the query was given up");',
        "void givenUp;",
      ],
    ],
    fails: ["unit/clients", "a statement that is given up is not repeated"],
  },
  {
    promise: "Keyhole's migrations are not those of another application",
    edits: [
      ["src/store/migrate.ts", "if (isShared) await takeOver(dialect, ask, from);", "if (isShared) void takeOver;"],
    ],
    fails: ["integration/other-applications", "stay where they are as an earlier Keyhole is upgraded"],
  },
  {
    promise: "Nothing is made in a database that is another application's",
    edits: [["src/store/migrate.ts", "if (found === 0) await requireRoom", "if (found < 0) await requireRoom"]],
    fails: ["integration/other-applications", "is refused by its name, and nothing is made in it"],
  },
  {
    promise: "A change of the tables needs a migration",
    edits: [
      [
        "src/store/tables.ts",
        'plan: text("plan").$type<"free" | "pro">().notNull(),',
        'plan: text("plan").$type<"free" | "pro">(),',
      ],
    ],
    fails: ["integration/migrate", "of sqlite ends at the tables in src/store/tables.ts"],
  },
  {
    promise: "A lock on a table that a server does not use holds up no server",
    edits: [
      [
        "src/store/postgres-guard.ts",
        '(use === "admin" || use === "notary" ? names : ofServer)',
        '(use === "admin" || ofServer ? names : ofServer)',
      ],
    ],
    fails: ["integration/waits", "which serving does not use, holds up no server"],
    ...postgresOnly,
  },
  {
    promise: "No server starts that may not append to a month",
    edits: [
      [
        "src/installation/serving.ts",
        'if (database.dialect === "postgres") await requireOpenMonths(database);',
        "void requireOpenMonths;",
      ],
    ],
    fails: ["integration/grants", "appends to each month that is made, and without that right"],
    ...postgresOnly,
  },
  {
    promise: "No redirect is followed to an issuer's keys",
    edits: [["src/core/json-request.ts", 'redirect: "manual"', 'redirect: "follow"']],
    fails: ["unit/issuer-keys", "that redirects is refused"],
  },
  {
    promise: "No entry of a job is refused for a text of its token",
    edits: [
      [
        "src/record/store/journal.ts",
        "return { trust, job, reads, most, kept };",
        "return { trust, job, reads, most, kept, ...one };",
      ],
      [
        "src/record/store/journal.ts",
        "reads.map(({ trustId: trust, job, reads, readsMax: most, keptMs: kept }) => {",
        "reads.map((one) => {\n    const { trustId: trust, job, reads, readsMax: most, keptMs: kept } = one;",
      ],
    ],
    fails: ["integration/journal", "is sent without anything else of the job"],
    ...postgresOnly,
  },
  {
    promise: "A job gets no more answers with values than its trust allows, on PostgreSQL",
    edits: [
      [
        "src/record/store/journal.ts",
        " and not exists (select 1 from counted join asked using (trust, job) where counted.reads > asked.most)",
        "",
      ],
    ],
    fails: ["integration/trusts", "gives no more over two servers, whatever asks at once"],
    ...postgresOnly,
  },
  {
    promise: "A job gets no more answers with values than its trust allows, on SQLite",
    edits: [
      [
        "src/record/store/journal-worker.ts",
        "if (counts.some((count, at) => count > (reads[at]?.readsMax ?? 0))) return",
        "if (counts.some((count, at) => count < (reads[at]?.readsMax ?? 0) * 0)) return",
      ],
    ],
    fails: ["integration/trusts", "gives no more over two servers, whatever asks at once"],
  },
  {
    promise: "The counts of jobs end by the database's clock",
    edits: [["src/store/expiry.ts", "sql`(select ${nowMs})`", "sql`(select ${Date.now()} + 0 * ${nowMs})`"]],
    fails: ["integration/trusts", "forgets the counts of jobs that have ended by the database's clock"],
  },
  {
    promise: "A count of a job is kept as long whatever the clock of the server that counts",
    edits: [
      [
        "src/record/store/journal.ts",
        'const nowMs = "(extract(epoch from pg_catalog.clock_timestamp()) * 1000)::bigint";',
        "const nowMs = { toString: () => `${Date.now()}::bigint` };",
      ],
    ],
    fails: ["integration/trusts", "keeps a count as long whatever the clock of the server that counts"],
    ...postgresOnly,
  },
  {
    promise: "A 401 has no RateLimit fields",
    edits: [["src/serve/api/app.ts", '  if (fault.code === "unauthorized") exchange.rateLimit = undefined;\n', ""]],
    fails: ["integration/keys", "GET /projects, before projects of a key that is now revoked"],
  },
  {
    promise: "A 429 for attempts has no RateLimit fields, although a bucket of the key was charged",
    edits: [["src/serve/gates/admit.ts", '("latin1"));\n  exchange.rateLimit = undefined;', '("latin1"));']],
    fails: ["integration/elsewhere", "once its job had its answers and thieves used up its attempts"],
  },
  {
    promise: "A command's query has parameters that it knows",
    edits: [
      [
        "src/serve/gates/query.ts",
        "if (name === undefined || !Object.hasOwn(known, name)) throw",
        'if (name === undefined || name === "") throw',
      ],
    ],
    fails: ["integration/gates", "query answers, alone and before"],
  },
  {
    promise: "Failures say nothing of their own",
    edits: [
      ["src/serve/api/problem.ts", "let error: string = sentence;", "let error: string = `${sentence} ${message}`;"],
      ["src/serve/api/problem.ts", "problemOf({ code, detail }: Fault)", "problemOf({ code, detail, message }: Fault)"],
    ],
    fails: ["property/fuzz", "is answered according to the contract"],
  },
  {
    promise: "The log does not repeat the message of a defect",
    edits: [
      [
        "src/serve/api/problem.ts",
        "return { defect: error.name, at:",
        "return { defect: `${error.name} ${error.message}`, at:",
      ],
    ],
    fails: ["integration/organization", "does not repeat the message of a defect"],
  },
  {
    promise: "A server imports nothing that writes",
    edits: [
      [
        "src/cli/serve.ts",
        'import { harden } from "./harden.ts";',
        'import { harden } from "./harden.ts";\nimport "../people/keys/keys.ts";',
      ],
    ],
    fails: ["unit/house", "serves by no path of imports or threads that reaches what writes"],
  },
  {
    promise: "Only a trusted proxy says who asks",
    edits: [["src/core/addresses.ts", "if (nearest === undefined || !isWithin(nearest, proxies)) return peer;", ""]],
    fails: ["integration/proxies", "a header of anybody else changes nothing"],
  },
  {
    promise: "What a caller writes before a proxy's word is not believed",
    edits: [["src/core/addresses.ts", ".reverse().slice(", ".slice("]],
    fails: ["property/addresses", "the caller is the first from the right who is no trusted proxy"],
  },
  {
    promise: "A header of a thousand addresses takes no longer than one of a few",
    edits: [["src/core/addresses.ts", ".slice(0, proxiesMax)", ""]],
    fails: ["property/addresses", "at most 32 proxies are believed"],
  },
  {
    promise: "A scrape reads no table through",
    edits: [["src/store/expiry.ts", 'sql.raw(`\'"rotateBy":"\'`))} > 0`', 'sql.raw(`\'"rotateBy":"\'`))} >= 1`']],
    fails: ["integration/expiry", "are found by two indexes"],
  },
  {
    promise: "The path of the Model Context Protocol exists only if it is turned on",
    edits: [
      ["src/serve/process/compose.ts", "mcp: mcpOrigins && (await", "mcp: (mcpOrigins ?? true) && (await"],
      ["src/serve/process/compose.ts", "new Set(mcpOrigins)", "new Set(mcpOrigins ?? [])"],
    ],
    fails: ["integration/mcp", "does not exist unless it is turned on"],
  },
  {
    promise: "The reason of a decision in the database costs no memory",
    edits: [["src/store/requests.ts", "bounded(r.decisionReason, 8192)", "bounded(r.decisionReason, 1e12)"]],
    fails: ["integration/mcp", "tell their own key, and no other, what became of them"],
  },
  {
    promise: "A statement that is built has a deadline, too",
    edits: [
      [postgres, "    db: asked,\n", "    get db() {\n      return dbOf(clients.client) as unknown as Db;\n    },\n"],
    ],
    fails: ["integration/waits", "of the audit's tree holds up no read"],
    ...postgresOnly,
    hangs: true,
  },
  {
    promise: "The log has no key",
    edits: [
      [
        "src/serve/api/app.ts",
        "    reason: fault?.message,\n",
        "    reason: fault?.message,\n    presented: exchange.presented,\n",
      ],
    ],
    fails: ["property/canary", "no value, API key, data key or root key is found anywhere except sealed"],
  },
  {
    promise: "Nothing of authority outlives a request",
    edits: [
      [
        "src/store/lookups.ts",
        "    const found = await find(lookup);\n",
        '    const name = [Buffer.from(lookup.digest).toString("hex"), lookup.slug, lookup.kind, lookup.environments].join();\n    const found = known.get(name) ?? (await find(lookup));\n    if (found) known.set(name, found);\n',
      ],
      [
        "src/store/lookups.ts",
        "  const except = exceptionsOf(database);\n",
        "  const except = exceptionsOf(database);\n  const known = new Map<string, FoundKey>();\n",
      ],
    ],
    fails: ["property/authority", "no 200 that began after a change was acknowledged goes beyond it"],
  },
  {
    promise: "A scrape goes on if the database is away",
    edits: [
      [
        "src/serve/process/metrics.ts",
        "answer = find().catch(() => ({ key: null, variable: null }));",
        "answer = find();",
      ],
    ],
    fails: ["integration/expiry", "are left out while the database fails"],
  },
  {
    promise: "A damaged row of a key is 503, never 401",
    edits: [
      [
        postgres,
        'if (rows.command === "SELECT" && rows.length !== rows.count) throw malformed();',
        'if (rows.command === "-") throw malformed();',
      ],
    ],
    fails: ["blackbox/damaged-rows", "is a 503, never a 401"],
    ...postgresOnly,
  },
  {
    promise: "A row of a lookup answers what was asked, or is 503",
    edits: [["src/store/lookups.ts", "if (!answers(row, lookups[row.n])) throw malformed();", "void answers;"]],
    fails: ["blackbox/damaged-rows", "is a 503, never a 401"],
    ...postgresOnly,
  },
  {
    promise: "The certificate of the store for limits is verified",
    edits: [
      [
        "src/serve/process/redis-buckets.ts",
        "new RedisClient(url, { ...options, ...strict });",
        "new RedisClient(url, { ...options, ...(strict && {}) });",
      ],
    ],
    fails: [outgoing, "its store for limits takes no stranger's certificate"],
  },
  {
    promise: "The certificate of the collector of traces is verified",
    edits: [["src/serve/process/traces.ts", '  delete process.env["NODE_TLS_REJECT_UNAUTHORIZED"];\n', ""]],
    fails: [outgoing, "its collector of traces takes no stranger's certificate"],
  },
  {
    promise: "Nothing is loaded into the program",
    edits: [
      [
        "src/main.ts",
        "const another = othersRuntime.find((name) => env[name]);",
        'const another = othersRuntime.find((name) => env[name] === "-");',
      ],
    ],
    fails: [outgoing, "stops keyhole run with its name"],
  },
  {
    promise: "Approving warns about the same things as `var set`",
    edits: [
      [
        "src/people/requests/requests.ts",
        '  if (status !== "pending") return [];\n  const ofKey',
        "  if (status) return [];\n  const ofKey",
      ],
    ],
    fails: ["blackbox/mcp", "an approver sees what var set warns of"],
  },
  {
    promise: "No server starts where any certificate would do",
    edits: [
      [
        "src/main.ts",
        'if (isServer && env["NODE_TLS_REJECT_UNAUTHORIZED"] === "0") {',
        'if (isServer && env["NODE_TLS_REJECT_UNAUTHORIZED"] === "none") {',
      ],
    ],
    fails: ["blackbox/outgoing", "does not start if any certificate would do"],
    hangs: true,
  },
  {
    promise: "PostgreSQL's certificate is verified",
    edits: [
      [
        "src/core/settings/postgres-url.ts",
        'if (mode === "verify-full") return { ...files, rejectUnauthorized: true };',
        'if (mode === "verify-full") return { ...files, rejectUnauthorized: false };',
      ],
    ],
    fails: ["blackbox/postgres-url", "and the certificate verified, whatever the environment turns off"],
  },
  {
    promise: "Parameters of DATABASE_URL are known ones",
    edits: [
      [
        "src/core/settings/postgres-url.ts",
        "if (!allowedValues.has(name)) throw unknownParameter(name);",
        "if (!allowedValues.has(name)) continue;",
      ],
    ],
    fails: ["blackbox/postgres-url", "never less than it should be, because a word was misspelt"],
  },
  {
    promise: "Values of DATABASE_URL's parameters are known ones",
    edits: [
      [
        "src/core/settings/postgres-url.ts",
        'if (value === undefined || (allowed?.includes(value) ?? value !== "")) continue;',
        'if (value !== "") continue;',
      ],
    ],
    fails: ["blackbox/postgres-url", "never less than it should be, because a word was misspelt"],
  },
  {
    promise: "PostgreSQL's certificate is verified for its host",
    edits: [
      [
        "src/core/settings/postgres-url.ts",
        'if (mode === "verify-full") return { ...files, rejectUnauthorized: true };',
        'if (mode === "verify-full") return { ...files, rejectUnauthorized: true, checkServerIdentity: () => undefined };',
      ],
    ],
    fails: ["blackbox/postgres-url", "for the host that is asked, and for no other"],
  },
  {
    promise: "`channel_binding=require` is never dropped",
    edits: [
      [
        "src/core/settings/postgres-url.ts",
        'values("channel_binding") === "require" || rootPath === "system"',
        'rootPath === "system"',
      ],
    ],
    fails: ["blackbox/postgres-url", "and the certificate verified, whatever the environment turns off"],
  },
];

const wire = "src/client/wire.ts";
const watch = "unit/watch";

/** What the command's client takes, and what `run --watch` starts. */
export const watching: readonly Proof[] = [
  {
    promise: "A client takes a 304 only if it asked for one",
    edits: [
      [
        wire,
        'if (ifNoneMatch === undefined) return untrusted("it says that nothing changed since an answer that was not named");',
        "void ifNoneMatch;",
      ],
    ],
    fails: ["unit/lies", "refuses a 304 that nobody asked for, and does not ask again"],
  },
  {
    promise: "A file that cannot be written is read once",
    edits: [
      [
        "src/client/files-pull.ts",
        "const unread = stale.filter(({ sha256 }) => !contents.has(sha256));",
        "const unread = stale;",
      ],
    ],
    fails: ["unit/files-pull", "contents that could not be written are not read again"],
  },
  {
    promise: "A look that fails loses no change of a file",
    edits: [
      [
        "src/client/files-pull.ts",
        "  const files: FetchedFile[] = [];\n",
        "  memory.placed = listed;\n  const files: FetchedFile[] = [];\n",
      ],
    ],
    fails: [watch, "puts changed files in place first, and loses no change"],
  },
  {
    promise: "A change that cannot be used is read once",
    edits: [
      [
        "src/client/client.ts",
        "this.#remembered.set(url, { etag, value });",
        'this.#remembered.set(url, { etag: "", value });',
      ],
    ],
    fails: [watch, "reads a change once that it cannot use"],
  },
  {
    promise: "A command that ignores SIGTERM ends",
    edits: [["src/client/run.ts", '  if (isLate) child.kill("SIGKILL");\n', "  void isLate;\n"]],
    fails: [watch, "gets SIGTERM, and SIGKILL after 10 s"],
    hangs: true,
  },
  {
    promise: "What changes nothing for the command restarts nothing",
    edits: [["src/client/recipe.ts", "Bun.deepEquals(found.env, running.env)", "found === running"]],
    fails: [watch, "reads and starts again what changed"],
  },
  {
    promise: "Nothing starts again after SIGTERM",
    edits: [["src/client/run.ts", "isEnding ||= endings.includes(signal);", "isEnding ||= endings.length === 0;"]],
    fails: ["blackbox/watch", "starts nothing again after SIGTERM"],
    hangs: true,
  },
  {
    promise: "A command that is started again does not get the key either",
    edits: [
      [
        "src/cli/run.ts",
        "const recipe = {\n      ...options,",
        "const recipe = Object.defineProperty({\n      ...options,",
      ],
      [
        "src/cli/run.ts",
        "preserve: preserveEnv, allowName },\n    };",
        'preserve: preserveEnv, allowName },\n    }, "own", { get: inheritedEntries });',
      ],
    ],
    fails: ["blackbox/watch", "starts the command again with the new values and files"],
  },
];
