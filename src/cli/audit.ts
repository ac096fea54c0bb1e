import { open } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { personText } from "../audit/entry.ts";
import { describeFlaw, gapName } from "../audit/flaw.ts";
import type { Checkpoint } from "../audit/journal.ts";
import { describeDifference } from "../audit/record.ts";
import { commandsLane } from "../audit/segment.ts";
import { Deadline } from "../core/deadline.ts";
import { Fault } from "../core/fault.ts";
import { environments } from "../core/names.ts";
import { exits, onInterrupt, Problem, usageProblem } from "../core/problem.ts";
import { excerpt, jsonLine, oneLine } from "../core/visible.ts";
import { writeWhole } from "../core/whole-file.ts";
import { commandLine } from "../desk/command-line.ts";
import type { AdminContext } from "../desk/context.ts";
import {
  choice,
  choices,
  completed,
  file,
  fileOf,
  flag,
  force,
  input,
  ofOrganization,
  out,
  type ReadInput,
  wide,
} from "../desk/inputs.ts";
import { operation } from "../desk/operation.ts";
import { type Columns, cellsOf, done, list, one } from "../desk/outcome.ts";
import { csvLine } from "../formats/csv.ts";
import { auditActions } from "../kinds/kind.ts";
import { acceptRestore } from "../operations/audit.ts";
import {
  type AuditFilter,
  type AuditRecord,
  AuditTail,
  auditPages,
  listAudit,
  NamesFound,
  namesWith,
  showAudit,
} from "../people/audit.ts";
import {
  type Audited,
  acceptGaps,
  describeComparison,
  planPruning,
  requireAuditor,
  type Verified,
  verifyAudit,
} from "../people/audit-chain.ts";
import { provenPages } from "../people/audit-proof.ts";
import { keyNames, shortKeyIds } from "../people/keys.ts";
import { withAdmin } from "../terminal/admin.ts";
import { answer } from "../terminal/answer.ts";
import { act, type Noun } from "../terminal/draw.ts";
import { toProblem } from "../terminal/failure.ts";
import { logEvents } from "../terminal/log-lines.ts";
import { perform } from "../terminal/perform.ts";
import { withProgress, write } from "../terminal/terminal.ts";
import type { CommandContext } from "../terminal/verb.ts";
import { parseList } from "../words/lists.ts";
import { parseCount, Unfit } from "../words/parse.ts";
import { counted, formatTime } from "../words/text.ts";
import { parseDuration, parseMoment } from "../words/times.ts";
import { logKeys, proofRows, verifyTree } from "./audit-proof.ts";

const moment = (text: string) => parseMoment(text, Date.now());

const filterInputs = {
  organization: ofOrganization("entries"),
  project: completed(input("--project <project>", "only entries of this project: ORG/PROJECT, or PROJECT"), "projects"),
  keyId: completed(input("--key <id>", "only what this key or trust read, and what was done to it"), "keysAndTrusts"),
  name: input("--name <part>", "only what concerns a variable, account or file with this in its name, in any case"),
  environment: choice("--env <env>", "only entries of this environment", environments),
  actor: input("--actor <actor>", "only what this person did, or a key or a trust with this name or id"),
  actions: choices("--action <list>", "only these actions", auditActions),
  sinceAt: input("--since <moment>", "24h (ago), 2026-01-31 (its start in UTC), or 2026-01-31T12:00Z", moment),
  beforeAt: input("--until <moment>", "only entries from before this moment, in the same forms", moment),
};

/** A list is held in memory as a whole, and the next page of an export is not read before the last one is written. */
const limitMax = 10_000;

function parseLimit(text: string): number {
  const count = parseCount(text);
  if (count <= limitMax) return count;
  throw new Unfit(`takes at most ${limitMax}: \`audit export\` has no end.`);
}

/** @throws Problem if no moment can match */
function requireSpan({ sinceAt, beforeAt }: Pick<AuditFilter, "sinceAt" | "beforeAt">): void {
  if (sinceAt === undefined || beforeAt === undefined || beforeAt > sinceAt) return;
  throw usageProblem("--until is not after --since.");
}

const listSome = operation({
  path: "audit list",
  about: "List who read which values, and what people changed, oldest first.",
  examples: [
    "keyhole audit list --org acme --since 24h",
    "keyhole audit list --name STRIPE_KEY --env production --since 7d",
    "keyhole audit list --follow",
  ],
  right: "audit",
  inputs: {
    ...filterInputs,
    limit: input("--limit <count>", `only the newest entries (default: 100, at most ${limitMax})`, parseLimit),
    wide,
  },
  run: async (admin, filter) => {
    const entries = await listAudit(admin, filter);
    const sentence = filter.name === undefined ? "" : new NamesFound(filter.name).add(entries).sentence;
    // As many as fit 80 columns whatever the entries are: up to the names.
    return { ...list(entries, await columnsOf(admin, filter.name), "No entries match.", 5), sentence };
  },
});

const listOrFollow = act({
  ...listSome,
  inputs: { ...listSome.inputs, follow: flag("--follow", "continue with new entries until Ctrl-C") },
  act: async (context, { follow, ...given }) => {
    requireSpan(given);
    await (follow ? followAudit(context, given) : perform(context, listSome, given));
  },
});

const show = operation({
  path: "audit show",
  about: "Show one entry whole, with every name.",
  examples: ["keyhole audit show commands:12"],
  right: "audit",
  inputs: { entry: input("<entry>", "LANE:NUMBER, as `audit list --wide` shows it") },
  run: async (admin, { entry }) => one(await showAudit(admin, entry), { ...(await columnsOf(admin)), ...wholeColumns }),
});

const exportAll = act({
  path: "audit export",
  about: "Write every matching entry, oldest first.",
  examples: [
    "keyhole audit export --format csv --since 2026-01-01 --out audit.csv",
    "keyhole audit export --org acme | gzip > audit.jsonl.gz",
    "keyhole audit export --proofs --since 2026-01-01 --until 2026-02-01 --out january.proofs",
  ],
  right: "audit",
  inputs: {
    ...filterInputs,
    format: choice("--format <format>", "JSON lines (the default) or CSV", ["jsonl", "csv"]),
    proofs: flag("--proofs", "write a proof of each entry, which `audit check` checks"),
    out,
    force,
  },
  act: async (context, { format = "jsonl", proofs, out: named, force, ...filter }) => {
    const out = fileOf(named);
    if (proofs && format === "csv") throw usageProblem("--proofs goes with --format jsonl.");
    if (context.json && out === undefined) {
      throw usageProblem("With --json, name a file with --out: stdout then holds one document about it.");
    }
    requireSpan(filter);
    const found = filter.name === undefined ? undefined : new NamesFound(filter.name);
    let left = 0;
    const entries = await withAdmin(context, async (admin) => {
      const noteLeft = (count: number) => {
        left += count;
      };
      const exported: Exported = proofs
        ? { pages: provenPages(admin, filter, noteLeft), line: jsonLine, entryOf: ({ entry }) => entry }
        : { pages: auditPages(admin, filter), line: format === "csv" ? csvOf : jsonLine, entryOf: (one) => one };
      const exportTo = (put: (text: string) => unknown) => exportAudit(context, exported, format, put, found);
      if (out === undefined) return exportTo((text) => write(context.terminal.stdout, text));
      let count = 0;
      await writeWhole("export", out, force === true, async (draft) => {
        const file = await open(draft, "a");
        count = await exportTo((text) => file.appendFile(text)).finally(() => file.close());
      });
      return count;
    });
    const missing = `Left out: ${counted(left, "entry", "entries")} that no signed head covers yet. If they are older than a minute, run \`audit verify\`.`;
    const more = [found?.sentence ?? "", left > 0 ? missing : ""].filter(Boolean);
    if (out === undefined) return more.length === 0 ? undefined : context.say(more.join("\n"));
    const sentence = `Wrote ${counted(entries, "entry", "entries")} to ${out}.`;
    const document = { file: out, format, entries, ...(proofs && { leftOut: left }) };
    await answer(context, document, [sentence, ...more].join("\n"));
  },
});

const verify = operation({
  path: "audit verify",
  about: "Verify the chain and say where it breaks.",
  examples: [
    "keyhole audit verify --checkpoint /var/log/keyhole.log",
    "kubectl logs deploy/keyhole | keyhole audit verify --checkpoint -",
  ],
  right: "audit",
  progress: ["Verifying", "entries"],
  inputs: {
    checkpoint: file("--checkpoint <file>", "the server's log, or - for stdin; also finds missing newest entries", {
      bytesMax: Number.POSITIVE_INFINITY,
    }),
    accept: {
      ...input("--accept <names>", "record that these losses or rows are known: LANE:FIRST-LAST, key:ID, …", parseList),
      isLocal: true,
    },
  },
  run: async (admin, { checkpoint, accept = [] }, { report }) => {
    requireAuditor(admin);
    const checkpoints = checkpoint === undefined ? undefined : await readCheckpoints(checkpoint);
    const verified = await verifyAudit(admin, checkpoints, (entries) => report(entries));
    const found = accept.length > 0 ? await acceptGaps(admin, verified, accept) : verified;
    if (found.flaws.length + found.tree.length + found.differences.length > 0) throw flawed(found, { checkpoint });
    // A database that was put back is in order, and lacks what this host or a witness has seen.
    await admin.checkpoint.look(admin.database, false);
    admin.checkpoint.requireGoingOn("conflict");
    const compared = admin.checkpoint.comparisons;
    const { entries, lanes, accepted } = found;
    const against =
      checkpoint !== undefined ? `, compared with ${counted(checkpoints?.length ?? 0, "checkpoint")} of the log` : "";
    const sentences = [
      `Every entry is unchanged: ${counted(entries, "entry", "entries")} in ${counted(lanes, "lane")}${against}.${knownLosses(found)}`,
      ...compared.map(describeComparison),
      ...(checkpoint === undefined
        ? ["Only --checkpoint with the server's log shows whether entries are missing that no notary has signed."]
        : []),
    ];
    const document = { verified: true, entries, lanes, checkpoints: checkpoints?.length ?? 0, accepted, compared };
    const missing = compared.filter(({ reason }) => reason !== undefined).map(describeComparison);
    if (missing.length > 0) {
      const lines = new Set([...missing, ...sentences]);
      const options = { document: { ...document, verified: false } };
      throw new Problem(exits.failed, "audit_not_compared", [...lines].join("\n"), options);
    }
    return done(document, sentences.join("\n"));
  },
});

const verifyEither = act({
  ...verify,
  examples: [...verify.examples, 'keyhole audit verify --public --key "$(cat keyhole.pub)"'],
  inputs: {
    ...verify.inputs,
    isPublic: { ...flag("--public", "verify the signed tree instead, without the root key"), isLocal: true },
    keys: { ...logKeys, help: `with --public: ${logKeys.help}`, isLocal: true },
  },
  act: async (context, { isPublic, keys, ...given }) => {
    if (isPublic === undefined && keys === undefined) return perform(context, verify, given);
    if (isPublic === undefined || keys === undefined) throw usageProblem("--public and --key go together.");
    if (given.checkpoint !== undefined || given.accept !== undefined) {
      throw usageProblem("--checkpoint and --accept do not go with --public.");
    }
    await verifyTree(context, keys);
  },
});

const prune = operation({
  path: "audit prune",
  about: "Delete the entries of whole months that are old enough. The rest can still be verified.",
  examples: ["keyhole audit prune --keep 800d"],
  right: "operator",
  asks: "needs --yes",
  inputs: {
    keepMs: input("--keep <duration>", "the least time to keep entries (default: 400d)", parseDuration),
    force: flag("--force", "also delete entries that do not verify"),
  },
  plan: async (admin, { keepMs = 400 * dayMs, force }) => {
    const plan = await planPruning(admin, keepMs, force);
    if (!("apply" in plan)) throw flawed(plan, { more: ["Nothing was deleted; --force deletes it anyway."] });
    const { keptFromAt, entries } = plan.pruned;
    const which = force ? "audit entries, even those that do not verify," : "audit entries";
    const deed = `delete all ${which} from before ${formatTime(keptFromAt).slice(0, 10)}`;
    return { deed, seen: { keptFromAt, entries }, document: plan.pruned, apply: plan.apply };
  },
  run: async (_admin, _given, { document: pruned, apply }) => {
    await apply();
    const entries = counted(pruned.entries, "entry", "entries");
    return done(pruned, `Deleted ${entries} from before ${formatTime(pruned.keptFromAt).slice(0, 10)}.`);
  },
});

export const audit: Noun = {
  about: "The record of every value that was read and of every change.",
  rows: [listOrFollow, show, exportAll, verifyEither, ...proofRows, acceptRestore, prune],
};

/** Of different lanes, or of the one that commands share. */
const checkpointsMax = 100_000;
const dayMs = 86_400_000;
const pollMs = 1000;
/** How long a connection may not answer before it counts as lost. */
const followDeadlineMs = 10_000;

/** @param part - names with it come first in an entry that has many */
async function columnsOf(admin: AdminContext, part?: string): Promise<Columns<AuditRecord>> {
  const fits = part === undefined ? () => false : namesWith(part);
  const [short, names] = [await shortKeyIds(admin), await keyNames(admin)];
  return {
    TIME: (one) => ({ at: one.time }),
    // The word "key" or "trust" comes first, so that no name of a key looks like a person's.
    ACTOR: ({ actor }) =>
      actor.type === "person" ? personText(actor) : `${actor.type} ${excerpt(names.get(actor.id) ?? short(actor.id))}`,
    ACTION: (one) => one.action,
    WHERE: (one) => [one.project, one.environment].filter(Boolean).join("/") || "-",
    NAMES: ({ names }) => names.toSorted((a, b) => Number(fits(b)) - Number(fits(a))).join(","),
    KEY: ({ actor }) => (actor.type === "person" ? "-" : short(actor.id)),
    REQUEST: (one) => one.requestId || "-",
    ORG: (one) => one.organization ?? "-",
    COUNT: (one) => one.count,
    CLIENT: (one) => one.clientAddress || "-",
    "USER AGENT": (one) => ({ name: one.userAgent || null }),
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
  CANARIES: (one) => one.canaries?.join(",") ?? "",
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
      if (tail === undefined || toProblem(error, context).exitCode !== exits.unavailable) throw error;
      if (!isLost) context.say("The connection to the database was lost. Trying again until it is back or Ctrl-C.");
      isLost = true;
    }
  }
}

/** What an export writes, and the line of each. */
type Exported = {
  readonly pages: AsyncIterable<readonly unknown[]>;
  readonly line: (one: never) => string;
  readonly entryOf: (one: never) => Pick<AuditRecord, "names">;
};

/** @returns how many entries were written */
function exportAudit(
  context: CommandContext,
  { pages, line, entryOf }: Exported,
  format: "jsonl" | "csv",
  put: (text: string) => unknown,
  found?: NamesFound,
): Promise<number> {
  return withProgress(context.terminal.stderr, "Exporting", "entries", async (report) => {
    let done = 0;
    if (format === "csv") await put(csvLine(csvFields));
    for await (const page of pages) {
      found?.add(page.map((one) => entryOf(one as never)));
      await put(page.map((one) => line(one as never)).join(""));
      done += page.length;
      report(done);
    }
    return done;
  });
}

function csvOf(one: AuditRecord): string {
  return csvLine(csvFields.map((field) => csvCell(one, field)));
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
async function readCheckpoints({ name, chunks }: ReadInput): Promise<Checkpoint[]> {
  const found = new Map<string, Checkpoint>();
  for await (const { event, lane, seq, mac } of logEvents(chunks())) {
    if (event !== "checkpoint" || typeof lane !== "string" || lane.length > 64 || !Number.isSafeInteger(seq)) continue;
    if (typeof mac !== "string" || !/^[0-9a-f]{64}$/.test(mac)) continue;
    const which = lane === commandsLane ? `${lane} ${seq} ${mac}` : lane;
    const before = found.get(which);
    if (!before || before.seq < (seq as number)) found.set(which, { lane, seq: seq as number, mac });
    if (found.size > checkpointsMax) {
      throw new Problem(exits.refused, "bound", `${name} has more than ${checkpointsMax} checkpoints.`);
    }
  }
  if (found.size > 0) return [...found.values()];
  throw new Problem(exits.failed, "no_checkpoints", `${name} has no checkpoint line.`);
}

/**
 * Makes a Problem of the flaws. Its document has the first one, and a list of all.
 * @param options - the log that was given, and sentences of the caller
 */
function flawed(
  found: Verified & Partial<Audited>,
  { checkpoint, more = [] }: { checkpoint?: ReadInput | undefined; more?: readonly string[] },
): Problem {
  const flaws = found.flaws.map(({ seals: _, ...flaw }) => flaw);
  const [first] = flaws;
  const { tree, moreFlaws, accepted, differences = [] } = found;
  const document = { verified: false, ...first, flaws, tree, moreFlaws, accepted, differences };
  const log = checkpoint && (checkpoint.name === "stdin" ? "-" : checkpoint.name);
  const accepting = (accept: readonly string[], words: string) =>
    accept.length > 0 ? [words, `  ${commandLine(verify, { checkpoint: log, accept })}`] : [];
  // As `acceptGaps` judges them.
  const changed = new Set(found.flaws.filter(({ seals }) => seals.length === 0).map(gapName));
  const losses = found.flaws.map(gapName).filter((name) => !changed.has(name));
  const rows = differences.map(({ subject }) => subject);
  const lines = [
    ...found.flaws.map(describeFlaw),
    ...tree,
    ...(found.moreFlaws > 0 ? [`There are ${found.moreFlaws} more flaws.`] : []),
    ...differences.map(describeDifference),
    ...accepting(rows, "If all of these rows are as they should be, record that:"),
    ...more,
    ...accepting([...new Set(losses)], "If you know of these losses, such as from a failover, record that:"),
  ];
  return new Problem(
    exits.failed,
    `audit_${first?.what ?? (tree.length > 0 ? "broken" : "state")}`,
    lines.join("\n") + knownLosses(found),
    {
      document,
    },
  );
}

function knownLosses({ accepted }: Verified): string {
  return accepted.length > 0 ? `\nAccepted as known losses: ${accepted.map(gapName).join(", ")}.` : "";
}
