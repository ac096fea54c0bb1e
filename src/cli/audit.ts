import { open } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { Option } from "@commander-js/extra-typings";
import { personText } from "../audit/entry.ts";
import { describeFlaw, gapName } from "../audit/flaw.ts";
import type { Checkpoint } from "../audit/journal.ts";
import { commandsLane } from "../audit/segment.ts";
import type { Verified } from "../audit/verify.ts";
import { Deadline } from "../core/deadline.ts";
import { Fault } from "../core/fault.ts";
import { environments } from "../core/names.ts";
import { exits, onInterrupt, Problem, usageProblem } from "../core/problem.ts";
import { counted, formatTime } from "../core/text.ts";
import { excerpt, jsonLine, oneLine } from "../core/visible.ts";
import { writeWhole } from "../core/whole-file.ts";
import type { AdminContext } from "../desk/context.ts";
import type { Columns } from "../desk/outcome.ts";
import { csvLine } from "../formats/csv.ts";
import { auditActions } from "../kinds/kind.ts";
import { type AuditFilter, type AuditRecord, AuditTail, auditPages, listAudit, showAudit } from "../people/audit.ts";
import { acceptGaps, pruneAudit, requireAuditor, verifyAudit } from "../people/audit-chain.ts";
import { keyNames, shortKeyIds } from "../people/keys.ts";
import { confirm, withAdmin } from "../terminal/admin.ts";
import { answer, answerOne, cellsOf } from "../terminal/answer.ts";
import { type CommandContext, noun, verb } from "../terminal/command.ts";
import { toProblem } from "../terminal/failure.ts";
import { localName } from "../terminal/input.ts";
import { logEvents } from "../terminal/log-lines.ts";
import { choiceOption, parseCount, parseDuration, parseList, parseMoment } from "../terminal/options.ts";
import { listFound } from "../terminal/records.ts";
import { unlessClosed, withProgress, write } from "../terminal/terminal.ts";
import { wideOption, yesOption } from "../terminal/verbs.ts";

export function auditCommand(context: CommandContext) {
  return noun(
    "audit",
    "The record of every value that was read and of every change.",
    listVerb(context),
    showVerb(context),
    exportVerb(context),
    verifyVerb(context),
    pruneVerb(context),
  );
}

function listVerb(context: CommandContext) {
  return filteredVerb(
    "list",
    "List who read which values, and what people changed, oldest first.",
    "keyhole audit list --org acme --since 24h",
    "keyhole audit list --name STRIPE_KEY --env production --since 7d",
    "keyhole audit list --follow",
  )
    .option("--limit <count>", "only the newest entries (default: 100)", parseCount)
    .option("--follow", "continue with new entries until Ctrl-C")
    .option(...wideOption)
    .action(({ limit, follow, wide, ...options }) => {
      const filter = { ...filterOf(options), limit };
      if (follow) return followAudit(context, filter);
      const find = (admin: AdminContext) => listAudit(admin, filter);
      return listFound(context, wide, find, "No entries match.", (admin) => columnsOf(admin, filter.name));
    });
}

function showVerb(context: CommandContext) {
  return verb("show", "Show one entry whole, with every name.", "keyhole audit show commands:12")
    .argument("<entry>", "LANE:NUMBER, as `audit list --wide` shows it")
    .action(async (asked) => {
      const [record, columns] = await withAdmin(context, async (admin) => [
        await showAudit(admin, asked),
        await columnsOf(admin),
      ]);
      await answerOne(context, record, record, { ...columns, ...wholeColumns });
    });
}

function exportVerb(context: CommandContext) {
  return filteredVerb(
    "export",
    "Write every matching entry, oldest first.",
    "keyhole audit export --format csv --since 2026-01-01 --out audit.csv",
    "keyhole audit export --org acme | gzip > audit.jsonl.gz",
  )
    .addOption(new Option("--format <format>", "JSON lines (the default) or CSV").choices(["jsonl", "csv"]))
    .option("--out <file>", "write to this file, mode 0600, instead of stdout")
    .option("--force", "replace an existing file")
    .action(async ({ format = "jsonl", out, force, ...options }) => {
      if (context.json && out === undefined) {
        throw usageProblem("With --json, name a file with --out: stdout then holds one document about it.");
      }
      const filter = filterOf(options);
      const entries = await withAdmin(context, async (admin) => {
        const exportTo = (put: (text: string) => unknown) => exportAudit(context, admin, filter, format, put);
        if (out === undefined) return exportTo((text) => write(context.terminal.stdout, text));
        let count = 0;
        await writeWhole("export", out, force === true, async (draft) => {
          const file = await open(draft, "a");
          count = await exportTo((text) => file.appendFile(text)).finally(() => file.close());
        });
        return count;
      });
      if (out === undefined) return;
      await answer(context, { file: out, format, entries }, `Wrote ${counted(entries, "entry", "entries")} to ${out}.`);
    });
}

function verifyVerb(context: CommandContext) {
  return verb(
    "verify",
    "Verify the chain and say where it breaks.",
    "keyhole audit verify --checkpoint /var/log/keyhole.log",
    "kubectl logs deploy/keyhole | keyhole audit verify --checkpoint -",
  )
    .option("--checkpoint <file>", "the server's log, or - for stdin; also finds missing newest entries")
    .option("--accept <gaps>", "record that these losses are known: LANE:FIRST-LAST, …", parseList)
    .action(async ({ checkpoint, accept = [] }) => {
      const found = await withProgress(context.terminal.stderr, "Verifying", "entries", (report) =>
        withAdmin(context, async (admin) => {
          requireAuditor(admin);
          const checkpoints = checkpoint === undefined ? undefined : await readCheckpoints(context, checkpoint);
          const verified = await verifyAudit(admin, checkpoints, (done) => report(done));
          return accept.length > 0 ? acceptGaps(admin, verified, accept) : verified;
        }),
      );
      if (found.flaws.length > 0) throw await flawed(context, found);
      const { entries, lanes, accepted } = found;
      const against =
        checkpoint !== undefined ? `, compared with ${counted(found.checkpoints, "checkpoint")} of the log` : "";
      const message = `Every entry is unchanged: ${counted(entries, "entry", "entries")} in ${counted(lanes, "lane")}${against}.`;
      const document = { verified: true, entries, lanes, checkpoints: found.checkpoints, accepted };
      await answer(context, document, message + knownLosses(found));
      if (checkpoint === undefined) {
        context.say("Only --checkpoint with the server's log shows whether the newest entries are missing.");
      }
    });
}

function pruneVerb(context: CommandContext) {
  return verb(
    "prune",
    "Delete the entries of whole months that are old enough. The rest can still be verified.",
    "keyhole audit prune --keep 800d",
  )
    .option("--keep <duration>", "the least time to keep entries (default: 400d)", parseDuration)
    .option("--force", "also delete entries that do not verify")
    .option(...yesOption)
    .action(async ({ keep = keepMs, force, yes }) => {
      const day = (at: number) => formatTime(at).slice(0, 10);
      const which = force ? "audit entries, even those that do not verify," : "audit entries";
      const agree = (keptFromAt: number) => confirm(context, yes, `delete all ${which} from before ${day(keptFromAt)}`);
      const pruned = await withAdmin(context, (admin) => pruneAudit(admin, keep, { unverified: force, agree }));
      if ("flaws" in pruned) throw await flawed(context, pruned, ["Nothing was deleted; --force deletes it anyway."]);
      const entries = counted(pruned.entries, "entry", "entries");
      await answer(context, pruned, `Deleted ${entries} from before ${day(pruned.keptFromAt)}.`);
    });
}

/** Of different lanes, or of the one that commands share. */
const checkpointsMax = 100_000;
const keepMs = 400 * 86_400_000;
const pollMs = 1000;
/** How long a connection may not answer before it counts as lost. */
const followDeadlineMs = 10_000;

function filteredVerb(...description: Parameters<typeof verb>) {
  const moment = (text: string) => parseMoment(text, Date.now());
  return verb(...description)
    .option("--org <org>", "only entries of this organization")
    .option("--project <project>", "only entries of this project: ORG/PROJECT, or PROJECT")
    .option("--key <id>", "only what this key or trust read, and what was done to it")
    .option("--name <name>", "only what concerns this variable, account or file")
    .addOption(new Option("--env <env>", "only entries of this environment").choices(environments))
    .option("--actor <actor>", "only what this person did, or a key or a trust with this name or id")
    .addOption(choiceOption("--action <list>", "only these actions", auditActions))
    .option("--since <moment>", "from then on: 24h (ago), 2026-01-31, or 2026-01-31T12:00:00Z", moment)
    .option("--until <moment>", "only entries from before this moment", moment);
}

type FilterOptions = ReturnType<ReturnType<typeof filteredVerb>["opts"]>;

/** @throws Problem if no moment can match */
function filterOf(options: FilterOptions): AuditFilter {
  const { org, project, key, action, name, env, actor, since, until } = options;
  if (since !== undefined && until !== undefined && until <= since) throw usageProblem("--until is not after --since.");
  const where = { organization: org, project, environment: env };
  return { ...where, keyId: key, actor, actions: action, name, sinceAt: since, beforeAt: until };
}

/** @param name - comes first in an entry that has many */
async function columnsOf(admin: AdminContext, name?: string): Promise<Columns<AuditRecord>> {
  const [short, names] = [await shortKeyIds(admin), await keyNames(admin)];
  return {
    TIME: (one) => formatTime(one.time),
    // The word "key" or "trust" comes first, so that no name of a key looks like a person's.
    ACTOR: ({ actor }) =>
      actor.type === "person" ? personText(actor) : `${actor.type} ${excerpt(names.get(actor.id) ?? short(actor.id))}`,
    ACTION: (one) => one.action,
    WHERE: (one) => [one.project, one.environment].filter(Boolean).join("/") || "-",
    NAMES: ({ names }) => names.toSorted((a, b) => Number(b === name) - Number(a === name)).join(","),
    KEY: ({ actor }) => (actor.type === "person" ? "-" : short(actor.id)),
    REQUEST: (one) => one.requestId || "-",
    ORG: (one) => one.organization ?? "-",
    COUNT: (one) => one.count,
    CLIENT: (one) => one.clientAddress || "-",
    "USER AGENT": (one) => excerpt(one.userAgent || "-"),
    ENTRY: ({ lane, seq }) => `${lane}:${seq}`,
    TOKEN: (one) => (one.token ? `${one.token.sub} ${one.token.run}`.trimEnd() : "-"),
  };
}

/** The ids that a list shortens. */
const wholeColumns: Columns<AuditRecord> = {
  KEY: ({ actor }) => (actor.type === "person" ? "" : actor.id),
  "USER AGENT": (one) => one.userAgent,
  ADDED: (one) => one.added?.join(",") ?? "",
  CHANGED: (one) => one.changed?.join(",") ?? "",
  DELETED: (one) => one.deleted?.join(",") ?? "",
};

/**
 * Prints the newest entries and then new ones, a line each, until Ctrl-C or until the reader closes the output. If the
 * connection is lost after the first entries, another one continues where it stopped.
 */
async function followAudit(
  context: CommandContext,
  filter: AuditFilter & { readonly limit: number | undefined },
): Promise<void> {
  const stop = new AbortController();
  using _ = onInterrupt(() => stop.abort());
  // sshd does not say that a session has ended: the process would go on for ever.
  const session = process.ppid;
  const isOver = () => stop.signal.aborted || (context.person !== undefined && process.ppid !== session);
  const rest = () => setTimeout(pollMs, undefined, { signal: stop.signal }).catch(() => {});
  const deadline = new Deadline(followDeadlineMs, () => new Fault("unavailable", "no answer"));
  let columns: Columns<AuditRecord> = {};
  const lineOf = (one: AuditRecord) =>
    context.json ? jsonLine(one) : `${cellsOf(columns, one).map(oneLine).join("  ")}\n`;
  const show = (page: readonly AuditRecord[]) => write(context.terminal.stdout, page.map(lineOf).join(""));
  let tail: AuditTail | undefined;
  const follow = async (admin: AdminContext) => {
    if (tail === undefined) {
      columns = await columnsOf(admin, filter.name);
      const begun = new AuditTail(admin, filter);
      await show(await begun.newest(filter.limit));
      tail = begun;
    } else {
      tail.goOnWith(admin);
      context.say("The database is connected again.");
    }
    while (!isOver()) {
      const news = tail.news();
      for (let page = await deadline.of(news.next()); !page.done; page = await deadline.of(news.next())) {
        await show(page.value);
      }
      await rest();
    }
  };
  for (let isLost = false; !isOver(); await rest()) {
    try {
      // The messages about the installation are not repeated.
      await withAdmin(tail ? { ...context, say: () => {} } : context, (admin) => {
        isLost = false;
        return follow(admin);
      });
    } catch (error) {
      if (tail === undefined || toProblem(error).exitCode !== exits.unavailable) throw error;
      if (!isLost) context.say("The connection to the database was lost. Trying again until it is back or Ctrl-C.");
      isLost = true;
    }
  }
}

/** @returns how many entries were written */
function exportAudit(
  context: CommandContext,
  admin: AdminContext,
  filter: AuditFilter,
  format: "jsonl" | "csv",
  put: (text: string) => unknown,
): Promise<number> {
  return withProgress(context.terminal.stderr, "Exporting", "entries", async (report) => {
    let done = 0;
    if (format === "csv") await put(csvLine(csvFields));
    for await (const page of auditPages(admin, filter)) {
      await put(
        page
          .map((one) => (format === "csv" ? csvLine(csvFields.map((field) => csvCell(one, field))) : jsonLine(one)))
          .join(""),
      );
      done += page.length;
      report(done);
    }
    return done;
  });
}

const csvFields = [
  ...(["time", "organization", "project", "environment", "action", "count", "names"] as const),
  ...(["added", "changed", "deleted", "actor"] as const),
  ...(["clientAddress", "requestId", "userAgent", "lane", "seq", "token"] as const),
];

function csvCell(one: AuditRecord, field: (typeof csvFields)[number]): string {
  if (field === "time") return Number.isNaN(new Date(one.time).getTime()) ? "" : new Date(one.time).toISOString();
  if (field === "actor") return one.actor.type === "person" ? personText(one.actor) : one.actor.id;
  const value = one[field] ?? "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/**
 * The checkpoints of a log that matter. Only one process writes to a lane of its own, so its highest checkpoint covers
 * the others. All commands share one lane and continue from the database, so each of its checkpoints matters.
 */
async function readCheckpoints(context: CommandContext, path: string): Promise<Checkpoint[]> {
  const found = new Map<string, Checkpoint>();
  for await (const { event, lane, seq, mac } of logEvents(context, path)) {
    if (event !== "checkpoint" || typeof lane !== "string" || lane.length > 64 || !Number.isSafeInteger(seq)) continue;
    if (typeof mac !== "string" || !/^[0-9a-f]{64}$/.test(mac)) continue;
    const which = lane === commandsLane ? `${lane} ${seq} ${mac}` : lane;
    const before = found.get(which);
    if (!before || before.seq < (seq as number)) found.set(which, { lane, seq: seq as number, mac });
    if (found.size > checkpointsMax) {
      throw new Problem(exits.refused, "bound", `${localName(path)} has more than ${checkpointsMax} checkpoints.`);
    }
  }
  if (found.size > 0) return [...found.values()];
  throw new Problem(exits.failed, "no_checkpoints", `${localName(path)} has no checkpoint line.`);
}

/** Makes a Problem of the flaws. With `--json` it also prints them: the first one, and a list of all. */
async function flawed(context: CommandContext, found: Verified, more: readonly string[] = []): Promise<Problem> {
  const flaws = found.flaws.map(({ seals: _, ...flaw }) => flaw);
  const [first] = flaws;
  if (context.json) {
    const { moreFlaws, accepted } = found;
    const document = { verified: false, ...first, flaws, moreFlaws, accepted };
    await write(context.terminal.stdout, jsonLine(document)).catch(unlessClosed);
  }
  const losses = found.flaws.filter(({ seals }) => seals.length > 0).map(gapName);
  const lines = [
    ...found.flaws.map(describeFlaw),
    ...(found.moreFlaws > 0 ? [`There are ${found.moreFlaws} more flaws.`] : []),
    ...more,
    ...(losses.length > 0
      ? [`If you know of a loss, such as from a failover, audit verify --accept ${losses[0]} records that it is known.`]
      : []),
  ];
  return new Problem(exits.failed, `audit_${first?.what}`, lines.join("\n") + knownLosses(found));
}

function knownLosses({ accepted }: Verified): string {
  return accepted.length > 0 ? `\nAccepted as known losses: ${accepted.map(gapName).join(", ")}.` : "";
}
