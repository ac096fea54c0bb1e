import type { Proof } from "./proof.ts";

const parameters = "src/core/settings/postgres-url.ts";
const signIn = "src/store/sign-in.ts";
const falsePostgres = "integration/false-postgres";

/** The database answers, is the right one, and gets no password that it should not have. */
export const database: readonly Proof[] = [
  {
    promise: "A parameter of DATABASE_URL that is unknown is refused",
    edits: [
      [
        parameters,
        "if (!allowedValues.has(name)) throw unknownParameter(name);",
        'if (!allowedValues.has(name) && name === "") throw unknownParameter(name);',
      ],
    ],
    fails: ["unit/postgres-url", "is refused"],
  },
  {
    promise: "Nothing in DATABASE_URL is said twice",
    edits: [[parameters, "if (given.has(name)) throw", 'if (given.has(name) && name === "") throw']],
    fails: ["unit/postgres-url", "may not be given twice"],
  },
  {
    promise: "A NUL in DATABASE_URL adds nothing to what is sent",
    edits: [[parameters, ' || decoded.includes("\\0")', ""]],
    fails: ["unit/postgres-url", "is refused with the form that a URL has"],
  },
  {
    promise: "No piece of a password is shown",
    edits: [[parameters, "(?:\\?([^#@]*))?$/i", "(?:\\?([^#]*))?$/i"]],
    fails: ["unit/postgres-url", "is refused with the form that a URL has"],
  },
  {
    promise: "A server that may be anybody gets no password in the clear",
    edits: [
      [
        signIn,
        'else if (!isVerified) throw failure("SIGN_IN_CLEAR");',
        'else if (!user) throw failure("SIGN_IN_CLEAR");',
      ],
    ],
    fails: [falsePostgres, "does not get the password in the clear"],
  },
  {
    promise: "A server gets no password in the middle of a session",
    edits: [
      [
        signIn,
        "if (type === undefined || !this.#next.includes(type)) {",
        "if (type === undefined || (type !== ok && !this.#next.includes(type) && !this.isDone)) {",
      ],
    ],
    fails: [falsePostgres, "does not get it in the middle of a session"],
  },
  {
    promise: "A server does not stop a process by rounds of SCRAM",
    edits: [[signIn, "if (Number(rounds) > roundsMax) throw", "if (Number(rounds) > roundsMax * 2) throw"]],
    fails: [falsePostgres, "of more than 600,000 rounds"],
  },
  {
    promise: "A read that cannot begin is 503, not 500",
    edits: [
      [
        "src/store/sqlite.ts",
        "          statement.run();\n        } catch (error) {\n          throw unavailable(error);",
        "          statement.run();\n        } catch (error) {\n          throw error;",
      ],
    ],
    fails: ["unit/sqlite-file", "a read transaction that cannot begin is a Fault"],
  },
  {
    promise: "The embedded journal gets the lock in time",
    edits: [
      ["src/store/sqlite-file.ts", "pauseMs = Math.min(pauseMs + 1, pauseMsMax)", "pauseMs = pauseMs * 2 + pauseMsMax"],
    ],
    fails: ["unit/sqlite-file", "a lock that is held is asked for at short, growing intervals"],
  },
  {
    promise: "The wait for the embedded database's lock does not count time in which the process stood still",
    edits: [
      ["src/store/sqlite-file.ts", "if (lostMs > lostMsMin) lastMs += lostMs;", "if (lostMs > lostMsMin) lastMs += 0;"],
    ],
    fails: ["unit/sqlite-file", "the time in which the process stood still does not count"],
  },
  {
    promise: "An answer that arrived while another one was read counts",
    edits: [
      [
        "src/core/deadline.ts",
        "      setTimeout(() => {\n        if (this.#waits.delete(wait)) wait.refuse();\n      }, 0);",
        "      if (this.#waits.delete(wait)) wait.refuse();",
      ],
    ],
    fails: ["unit/deadline", "an answer that arrived while another one was read counts"],
  },
  {
    promise: "A batch of lookups gives each its own answer",
    edits: [
      [
        "src/store/lookups.ts",
        "      found[row.n] = keyRowOf(",
        "      found[(row.n + 1) % lookups.length] = keyRowOf(",
      ],
    ],
    fails: ["property/concurrency", "each get their own answer"],
    on: "PostgreSQL",
  },
  {
    promise: "A set larger than any that Keyhole writes is refused before it is fetched",
    edits: [
      [
        "src/serve/sets/lookup.ts",
        "set.listingBytes > setBytesMax || valueBytes([set], values) > sealedBytesMax",
        "set.listingBytes > 2 ** 40 || valueBytes([set], values) > sealedBytesMax * 2 ** 20",
      ],
    ],
    fails: ["property/tamper", "a set that is a little larger than any that Keyhole writes"],
  },
  {
    promise: "Another application's migrations do not count as Keyhole's",
    edits: [
      ["src/store/migrate.ts", "!rows.some(({ hash }) => hash === one.hash)", 'rows.length === 0 || one.hash === ""'],
    ],
    fails: ["integration/other-applications", "stay where they are as an earlier Keyhole is upgraded"],
  },
  {
    promise: "A large list of a key stays in the database",
    edits: [
      [
        "src/store/reach.ts",
        "boundedText(k.projects, projectsBytesMax)",
        "boundedText(k.projects, projectsBytesMax * 2 ** 12 - 1)",
      ],
    ],
    fails: ["blackbox/large-rows", "in api_keys.projects, where true, cost no memory and are never served"],
  },
  {
    promise: "Large terms of a trust stay in the database",
    edits: [
      [
        "src/store/reach.ts",
        "boundedText(k.trust, termsBytesMax)",
        "boundedText(k.trust, termsBytesMax * 2 ** 16 - 1)",
      ],
    ],
    fails: ["blackbox/large-rows", "in api_keys.trust, where true, cost no memory and are never served"],
  },
  {
    promise: "A large content stays in the database",
    edits: [
      ["src/store/contents.ts", "<= ${literal(sealedBytesMax)} then", "<= ${literal(sealedBytesMax * 100)} then"],
    ],
    fails: ["blackbox/large-rows", "in file_contents.sealed, where true, cost no memory and are never served"],
  },
  {
    promise: "Large columns stay in the database",
    edits: [
      [
        "src/store/reach.ts",
        "case when octet_length(${column}) <= ${literal(bytesMax)} then ${column} end`",
        "case when ${literal(bytesMax)} > 0 then ${column} end`",
      ],
    ],
    fails: ["blackbox/large-rows", "in organizations.name, where true, cost no memory and are never served"],
  },
  {
    promise: "Counts have their form",
    edits: [
      [
        "src/serve/sets/counts.ts",
        "/^\\[\\d{1,15}(?:,\\d{1,15})*\\]$/.test(text) ? (JSON.parse(text) as number[]) : [];\n  if (numbers.length === length) return numbers;",
        'text.startsWith("[") ? (JSON.parse(text) as number[]) : [];\n  if (numbers.length >= 0 || numbers.length === length) return numbers;',
      ],
    ],
    fails: ["blackbox/large-rows", "in projects.variable_counts, where true, cost no memory and are never served"],
  },
  {
    promise: "Large columns of a set stay in the database",
    edits: [["src/store/sets.ts", "+ ${valueBytes} <= ${bytesMax}`", "+ ${valueBytes} * 0 >= ${bytesMax} * 0`"]],
    fails: [
      "blackbox/large-rows",
      "in sets.sealed, where environment = 'staging' and kind <> 'files', cost no memory and are never served",
    ],
  },
  {
    promise: "A standby is not read",
    edits: [["src/store/postgres.ts", "\\noffset -pg_is_in_recovery()::integer`", "`"]],
    fails: ["blackbox/failover", "a standby alone is not served from"],
    on: "PostgreSQL",
    hangs: true,
  },
  {
    promise: "A process that a malformed answer made deaf is ended",
    edits: [
      [
        "src/cli/serve.ts",
        "if (config.postgres !== undefined) startWatchdog(pretty);",
        "if (config.postgres === null) startWatchdog(pretty);",
      ],
    ],
    fails: ["blackbox/stuck", "ends the process, which hears no SIGTERM"],
    on: "PostgreSQL",
    hangs: true,
  },
  {
    promise: "A released migration stays as it is",
    edits: [
      [
        "drizzle/sqlite/0000_tables.sql",
        'CONSTRAINT "api_keys_surfaces_rule" CHECK(surfaces between 1 and 7)',
        'CONSTRAINT "api_keys_surfaces_rule" CHECK(surfaces between 1 and 8)',
      ],
    ],
    fails: ["blackbox/releases", "was made by migrations that stand in drizzle/ unchanged"],
  },
  {
    promise: "A system key that is put back does not begin an upgrade's sealing again",
    edits: [
      [
        "src/installation/system-keys.ts",
        "if (formats.size > 1 || format > sealFormat) {",
        "if (format > sealFormat) {",
      ],
    ],
    fails: ["blackbox/releases", "is sealed by its upgrade, and only then"],
  },
  {
    promise: "No pooler stands before PostgreSQL",
    edits: [
      [
        "src/installation/serving.ts",
        'if (database.dialect === "sqlite" || !(await isPooled(database, use))) return;',
        'if (database.dialect !== "" || !(await isPooled(database, use))) return;',
      ],
    ],
    fails: ["blackbox/pooler", "PgBouncer before the database is not served through one"],
    on: "PostgreSQL",
    hangs: true,
  },
  {
    promise: "A dead transaction does nothing on the next connection",
    edits: [["node_modules/postgres/src/index.js", "        if (lost)\n          return q.reject(lost)\n", ""]],
    fails: ["integration/database", "runs no statement of a dead transaction on the connection that follows"],
    on: "PostgreSQL",
  },
  {
    promise: "Of two primaries, a command takes the one whose commits pass",
    edits: [
      [
        "src/installation/find-primary.ts",
        "if (different.length === 1) return first;",
        "if (different.length > 0) return first;",
      ],
    ],
    fails: ["blackbox/two-primaries", "are told apart: a command goes to the one whose commits pass"],
    on: "PostgreSQL",
  },
  {
    promise: "A command that waits for a commit says so, and ends",
    edits: [
      [
        "src/store/postgres.ts",
        "return watched(Promise.resolve(work(clients.client)), () => waitOf(server, name), servers.say, giveUp);",
        "void [watched, waitOf, giveUp];\n    return Promise.resolve(work(clients.client));",
      ],
    ],
    fails: ["blackbox/two-primaries", "and one alone whose standby is away keeps a command for 30 s"],
    on: "PostgreSQL",
    hangs: true,
  },
  {
    promise: "A command does not wait for a lock for ever",
    edits: [["src/store/postgres.ts", "admin: { ...everySession, lock_timeout: 30_000 },", "admin: everySession,"]],
    fails: ["blackbox/two-primaries", "or somebody's lock keeps it"],
    on: "PostgreSQL",
    hangs: true,
  },
  {
    promise: "One pool that finds the new primary moves all of them",
    edits: [["src/store/postgres.ts", 'if (use !== "admin") servers.watch(', "if (use === undefined) servers.watch("]],
    fails: ["integration/database", "that stands still is left by what waits for it"],
    on: "PostgreSQL",
  },
  {
    promise: "Deadlines do not count time in which the process stood still",
    edits: [["src/core/deadline.ts", "wait.endsAtMs += lostMs;", "wait.endsAtMs += 0;"]],
    fails: ["unit/deadline", "work that stood still with it has the rest of its time"],
  },
  {
    promise: "A newer server serves no older tables",
    edits: [
      [
        "src/serve/process/await-upgrade.ts",
        "    if (error instanceof OlderTables) return error;\n    throw error;",
        "    throw error;",
      ],
    ],
    fails: ["blackbox/upgrade", "is waited for by servers and notaries of the newer version"],
    on: "PostgreSQL",
  },
  {
    promise: "No secret stays in the environment while a server waits for an upgrade",
    edits: [
      ["src/cli/serve.ts", "  harden(); // the wait for an upgrade may be long\n", ""],
      [
        "src/cli/serve.ts",
        "  if (installation === undefined) return undefined;\n",
        "  if (installation === undefined) return undefined;\n  harden();\n",
      ],
    ],
    fails: ["blackbox/upgrade", "is waited for by servers and notaries of the newer version"],
    on: "PostgreSQL",
  },
  {
    promise: "No secret stays in the environment while a notary waits for an upgrade",
    edits: [
      ["src/cli/notary.ts", "    harden();\n", ""],
      [
        "src/cli/notary.ts",
        "    if (installation === undefined) return flush();\n",
        "    if (installation === undefined) return flush();\n    harden();\n",
      ],
    ],
    fails: ["blackbox/upgrade", "is waited for by servers and notaries of the newer version"],
    on: "PostgreSQL",
  },
  {
    promise: "A standby is not dumped unnoticed, and its host's unit does not fail",
    edits: [["docs/deploy/keyhole-backup.sh", 'if [ "$standby" != f ]; then', 'if [ "$standby" = "" ]; then']],
    fails: ["blackbox/production", "docs/production.md"],
    on: "PostgreSQL",
  },
  {
    promise: "A dump counts only if everything in it opens",
    edits: [["docs/deploy/keyhole-backup.sh", "/usr/local/bin/keyhole rotate data #", "#"]],
    fails: ["blackbox/production", "docs/production.md"],
    on: "PostgreSQL",
  },
];
