/**
 * The tests in three sizes, by file. A size includes the smaller ones.
 *
 * A file has the size of its folder, unless a line of {@link exceptions} gives it another, and says why. A file that
 * took more than 10 s (`timings.json`) is `full`, unless it is the only proof of a promise: then its line says of which.
 */
import { readdirSync } from "node:fs";
import { dirname } from "node:path";

/** `quick` is for the inner loop; `usual` is what a change in `src` can break; `full` is all that there is. */
export const sizes = ["quick", "usual", "full"] as const;
export type Size = (typeof sizes)[number];

/** Nothing in `quick` needs the built program or a browser. Suites that need PostgreSQL are skipped there. */
const folders: Readonly<Record<string, Size>> = {
  "test/unit": "quick",
  "test/property": "quick",
  "test/property/micro": "quick",
  "test/integration": "quick",
  "test/blackbox": "usual",
};

export const exceptions: Readonly<Record<string, readonly [size: Size, reason: string]>> = {
  // Too long for the inner loop, or in need of what `quick` does without.
  "test/blackbox/server.test.ts": ["usual", "starts and ends servers under load, again and again"],
  "test/integration/advisories-pages.test.ts": ["usual", "sends every form, and spoils every column that a page shows"],
  "test/integration/backup.test.ts": ["usual", "makes backups and restores them"],
  "test/integration/brought-back.test.ts": ["usual", "lets a primary fail"],
  "test/integration/changes.test.ts": ["usual", "makes many changes at once, and verifies the whole chain"],
  "test/integration/commands-rights.test.ts": ["usual", "runs every command with just enough rights and with too few"],
  "test/integration/comparison.test.ts": ["usual", "compares with a model after many writes"],
  "test/integration/conditional.test.ts": ["usual", "asks for every kind of read again after each kind of change"],
  "test/integration/dashboard-set.test.ts": ["usual", "opens every form of every kind"],
  "test/integration/database.test.ts": ["usual", "is about PostgreSQL"],
  "test/integration/db-check.test.ts": ["usual", "the only proof that db check knows what a failover could lose"],
  "test/integration/elsewhere.test.ts": ["usual", "the only proof that keys are refused from elsewhere"],
  "test/integration/failures.test.ts": ["usual", "breaks an installation in every way, and runs commands on it"],
  "test/integration/files.test.ts": ["usual", "reads files of every size up to 8 MiB"],
  "test/integration/history.test.ts": ["usual", "writes more versions than are kept"],
  "test/integration/imports.test.ts": ["usual", "imports many texts in many ways"],
  "test/integration/journal.test.ts": ["usual", "writes batches of thousands of entries"],
  "test/integration/limits.test.ts": ["usual", "empties every bucket"],
  "test/integration/mcp.test.ts": ["usual", "calls every tool of an agent"],
  "test/integration/migrate.test.ts": ["usual", "migrates databases of both kinds from each earlier state"],
  "test/integration/readers.test.ts": ["usual", "asks for each combination of rights and environments"],
  "test/integration/reads.test.ts": ["usual", "reads the largest answers side by side"],
  "test/integration/rotation.test.ts": ["usual", "stops rotations after each of their transactions"],
  "test/integration/routes-rights.test.ts": ["usual", "asks every route with each right"],
  "test/integration/sets.test.ts": ["usual", "fills sets to their bounds, and writes from four processes"],
  "test/integration/trusts.test.ts": ["usual", "forges tokens in many ways, with keys of its own"],
  "test/integration/unreachable.test.ts": ["usual", "is about PostgreSQL"],
  "test/integration/waits.test.ts": ["usual", "the only proof that each wait for PostgreSQL ends"],
  "test/property/dashboard.test.ts": ["usual", "starts the built program"],
  "test/property/dotenv-readers.test.ts": ["usual", "starts other programs that read dotenv text"],
  "test/property/formats.test.ts": ["usual", "starts other programs that read each format"],
  "test/property/fuzz.test.ts": ["usual", "asks 50,000 times"],
  "test/property/given.test.ts": ["usual", "the only proof that nobody gives a right beyond their own"],
  "test/property/mcp.test.ts": ["usual", "asks agents' tools thousands of times"],
  "test/property/rights.test.ts": ["usual", "ten thousand random worlds"],
  "test/property/strangers.test.ts": ["usual", "asks a thousand times, with others beside"],
  "test/unit/bounded-input.test.ts": ["usual", "reads texts with more names than an environment can hold"],
  "test/property/tamper.test.ts": ["usual", "the only proof that an edit of any column of a set fails its reads"],
  "test/integration/lists.test.ts": ["usual", "the only proof that no list is cut, whatever is hidden in it"],
  "test/integration/witnesses.test.ts": ["usual", "the only proof that a witness who lies counts for nothing"],
  "test/blackbox/transcripts-here.test.ts": ["usual", "the only proof that each command prints what the manual says"],
  "test/integration/no-modes.test.ts": ["usual", "mounts a file system"],
  "test/integration/absences.test.ts": ["usual", "runs commands"],
  "test/integration/put-back.test.ts": ["usual", "the only proof that a database that was put back is not served"],
  "test/integration/record-rows.test.ts": [
    "usual",
    "the only proof that no row of the record hides a key that was put back",
  ],
  "test/integration/heads.test.ts": ["usual", "the only proof that a head of people's lane is not put back"],
  "test/blackbox/firstrun.test.ts": ["usual", "the only proof that the README's first lines work as pasted"],
  "test/blackbox/dashboard-pages.test.ts": ["usual", "the only proof that each page fits each width and the keyboard"],
  "test/integration/months.test.ts": ["usual", "the only proof that months are sealed, and looked at by samples"],
  "test/integration/notary.test.ts": ["usual", "the only proof that the notary names what is against the tree"],
  "test/blackbox/clouds.test.ts": ["usual", "the only proof that a machine of a cloud reads a value by its page"],
  "test/blackbox/door.test.ts": ["usual", "the only proof that people come in by a real sshd"],
  "test/property/audit-edits.test.ts": ["usual", "the only proof that any edit of the audit is named"],
  "test/integration/audit-verify.test.ts": ["usual", "the only proof that audit verify names each damage"],
  "test/blackbox/workers.test.ts": ["usual", "the only proof that workers serve as one server does"],
  "test/blackbox/outgoing.test.ts": ["usual", "the only proof that no connection trusts a stranger or prints a key"],
  "test/blackbox/ops.test.ts": ["usual", "the only proof that readiness and metrics say what is"],
  "test/integration/dashboard-look.test.ts": ["usual", "the only proof that pages show what one may see, and no more"],
  "test/unit/advisories.test.ts": ["usual", "the only proof that the faults of others' servers are not ours"],
  // What comes with Keyhole, and long worlds. Shorter tests cover the rules that the long ones try again.
  "test/blackbox/alerts-recipe.test.ts": ["full", "runs the alarms that a page recommends"],
  "test/blackbox/clients.test.ts": ["full", "runs clients in Python and Go against a server that lies"],
  "test/blackbox/coming-from.test.ts": ["full", "runs the pages about moving from other tools"],
  "test/blackbox/docs.test.ts": ["full", "runs every block of commands in the documentation"],
  "test/blackbox/dashboard-widths.test.ts": ["full", "opens every page in thirteen widths, in two browsers"],
  "test/blackbox/two-primaries.test.ts": ["full", "starts two primaries, and waits for half a minute twice"],
  "test/blackbox/failover.test.ts": ["full", "starts primaries and standbys, and makes them change places"],
  "test/blackbox/faults.test.ts": ["full", "kills servers, commands and PostgreSQL, again and again"],
  "test/blackbox/going-back.test.ts": [
    "full",
    "builds a newer version, and pastes the page of upgrades there and back",
  ],
  "test/blackbox/large-rows.test.ts": ["full", "blows each row up to 100 MiB by SQL, on both databases"],
  "test/blackbox/log-in-go.test.ts": ["full", "compiles a program in Go, which judges our tree and notes"],
  "test/blackbox/limits.test.ts": ["full", "reads 8 MiB many times at once, and measures memory"],
  "test/blackbox/lossy-failover.test.ts": ["full", "starts primaries, and standbys that lack their last writes"],
  "test/blackbox/patroni.test.ts": ["full", "runs three nodes with Patroni and etcd, and makes them fail over"],
  "test/blackbox/put-back.test.ts": ["full", "waits for servers to look again, and starts standbys"],
  "test/blackbox/month.test.ts": ["full", "lives a month of a team, on both databases"],
  "test/blackbox/notary-under-load.test.ts": [
    "full",
    "kills notaries again and again, and puts 25,000 large segments before them",
  ],
  "test/blackbox/npm-package.test.ts": ["full", "packs the package, and installs it for three runtimes"],
  "test/blackbox/production.test.ts": ["full", "installs as the pages about production say"],
  "test/blackbox/release.test.ts": ["full", "packs a release four times, installs it and uses it"],
  "test/blackbox/releases.test.ts": ["full", "opens the databases of each release, and rotates all that they hold"],
  "test/blackbox/rotation.test.ts": ["full", "rotates under 64 clients that read without a pause"],
  "test/integration/stalled.test.ts": ["full", "waits for the ends of locks, table after table"],
  "test/blackbox/told.test.ts": ["full", "waits with a thousand clients, and cuts a server off its database"],
  "test/integration/told.test.ts": ["full", "waits for the looks of a server, one a second"],
  "test/unit/told.test.ts": ["full", "waits for looks, one a second"],
  "test/blackbox/stuck.test.ts": ["full", "waits until the watchdog has counted to ten, and unit/watchdog does not"],
  "test/blackbox/site.test.ts": ["full", "builds the documentation's site, and opens every page in Chromium"],
  "test/blackbox/transcripts.test.ts": ["full", "every command of the manual is a process of its own"],
  "test/blackbox/upgrade.test.ts": ["full", "builds a newer version, and upgrades to it"],
  "test/property/authority.test.ts": ["full", "changes of authority under load"],
  "test/property/micro/agrees.test.ts": ["full", "random histories against the small Keyhole"],
  "test/property/concurrency.test.ts": ["full", "hundreds of requests in one moment, many times"],
  "test/property/equality.test.ts": ["full", "compares times, which takes many samples"],
  "test/property/history.test.ts": ["full", "a thousand random histories against a model"],
  "test/property/last-reads.test.ts": ["full", "random histories against a model; integration/last-reads has rules"],
  "test/blackbox/dashboard-daily.test.ts": ["full", "a day of clicks in Chromium; integration sends the same forms"],
  "test/blackbox/dashboard-firefox.test.ts": ["full", "a second browser"],
  "test/blackbox/postgres-url.test.ts": ["full", "starts servers with every DATABASE_URL that providers give"],
  "test/blackbox/interrupted.test.ts": ["full", "interrupts runs of the tests themselves"],
};

/** Every file of tests, with its path from the root of the repository. Packages that a test installs have none. */
export function allTestFiles(): string[] {
  const paths = readdirSync(import.meta.dir, { recursive: true, encoding: "utf8" });
  return paths.filter((path) => /^(?!.*node_modules).*\.test\.ts$/.test(path)).map((path) => `test/${path}`);
}

/** The size of a file of tests. @throws Error if its folder has none */
export function sizeOf(file: string): Size {
  const size = exceptions[file]?.[0] ?? folders[dirname(file)];
  if (size === undefined) throw new Error(`test/sizes.ts says no size for ${dirname(file)}`);
  return size;
}

/** The files that run in a size: its own, and those of the smaller ones. */
export function testFiles(size: Size): string[] {
  return allTestFiles().filter((file) => sizes.indexOf(sizeOf(file)) <= sizes.indexOf(size));
}
