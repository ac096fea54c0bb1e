import { open } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { Deadline } from "../core/deadline.ts";
import { Fault } from "../core/fault.ts";
import { csvLine } from "../core/formats/csv.ts";
import { modesTo } from "../core/modes.ts";
import { exits, onInterrupt, type Problem, usageProblem } from "../core/problem.ts";
import { jsonLine, oneLine } from "../core/visible.ts";
import { writeWhole } from "../core/whole-file.ts";
import { counted } from "../core/words/text.ts";
import { acceptRestore } from "../people/audit/accept-restore.ts";
import {
  type AuditFilter,
  type AuditRecord,
  AuditTail,
  auditPages,
  NamesFound,
  noneMatch,
} from "../people/audit/audit.ts";
import { provenPages } from "../people/audit/audit-proof.ts";
import {
  columnsOf,
  Damaged,
  earlierMatch,
  filterInputs,
  key,
  listSome,
  prove,
  prune,
  requireSpan,
  show,
  verify,
} from "../people/audit/operations.ts";
import type { AdminContext } from "../people/desk/context.ts";
import { choice, fileOf, flag, force, out } from "../people/desk/inputs.ts";
import { type Columns, cellsOf } from "../people/desk/outcome.ts";
import { personText } from "../record/entry.ts";
import type { EntryProof } from "../record/proof.ts";
import type { Segment } from "../record/segment.ts";
import { check, logKeys, verifyTree } from "./audit-proof.ts";
import { withAdmin } from "./terminal/admin.ts";
import { answer } from "./terminal/answer.ts";
import { type CommandGroup, processCommand } from "./terminal/draw.ts";
import { toProblem } from "./terminal/failure.ts";
import { perform } from "./terminal/perform.ts";
import { withProgress, write } from "./terminal/terminal.ts";
import type { CommandContext } from "./terminal/verb.ts";

const listOrFollow = processCommand({
  ...listSome,
  inputs: { ...listSome.inputs, follow: flag("--follow", "continue with new entries until Ctrl-C") },
  action: async (context, { follow, ...given }) => {
    requireSpan(given);
    await (follow ? followAudit(context, given) : perform(context, listSome, given));
  },
});

const exportAll = processCommand({
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
  action: async (context, { format = "jsonl", proofs, out: named, force, ...filter }) => {
    const out = fileOf(named);
    if (proofs && format === "csv") throw usageProblem("--proofs goes with --format jsonl.");
    if (context.json && out === undefined) {
      throw usageProblem("With --json, name a file with --out: stdout then holds one document about it.");
    }
    requireSpan(filter);
    const found = filter.name === undefined ? undefined : new NamesFound(filter.name);
    let left = 0;
    let ends: Problem | undefined;
    let none = "";
    const entries = await withAdmin(context, async (admin) => {
      const damaged = new Damaged(admin);
      const noteLeft = (count: number) => {
        left += count;
      };
      const pages: AsyncIterable<readonly (AuditRecord | EntryProof)[]> = proofs
        ? provenPages(admin, filter, noteLeft, damaged.note)
        : auditPages(admin, filter, damaged.note);
      const lineOf = (one: AuditRecord | EntryProof) =>
        "entry" in one || format === "jsonl" ? jsonLine(one) : csvLine(csvFields.map((field) => csvCell(one, field)));
      const exportTo = (put: (text: string) => unknown) =>
        withProgress(context.terminal.stderr, "Exporting", "entries", async (report) => {
          let done = 0;
          if (format === "csv") await put(csvLine(csvFields));
          for await (const page of pages) {
            found?.add(page.map((one) => ("entry" in one ? (one.entry as AuditRecord) : one)));
            await put(page.map(lineOf).join(""));
            done += page.length;
            report(done);
          }
          if (done === 0) none = await noneMatch(admin, filter);
          ends = damaged.problem;
          return done;
        });
      if (out === undefined) return exportTo((text) => write(context.terminal.stdout, text));
      let count = 0;
      const fill = async (draft: string) => {
        const file = await open(draft, "a");
        count = await exportTo((text) => file.appendFile(text)).finally(() => file.close());
      };
      await writeWhole("export", out, force === true, fill, modesTo(context.say));
      return count;
    });
    const missing = `Left out: ${counted(left, "entry", "entries")} that no signed head covers yet. If they are older than a minute, run \`audit verify\`.`;
    const more = [none, found?.sentence ?? "", left > 0 ? missing : ""].filter(Boolean);
    if (out === undefined) {
      if (more.length > 0) context.say(more.join("\n"));
    } else {
      const sentence = `Wrote ${counted(entries, "entry", "entries")} to ${out}.`;
      const document = { file: out, format, entries, ...(proofs && { leftOut: left }) };
      await answer(context, document, [sentence, ...more].join("\n"));
    }
    if (ends !== undefined) throw ends;
  },
});

const verifyEither = processCommand({
  ...verify,
  examples: [...verify.examples, 'keyhole audit verify --public --key "$(cat keyhole.pub)"'],
  inputs: {
    ...verify.inputs,
    isPublic: { ...flag("--public", "verify the signed tree instead, without the root key"), isLocal: true },
    keys: { ...logKeys, help: `with --public: ${logKeys.help}`, isLocal: true },
  },
  action: async (context, { isPublic, keys, ...given }) => {
    if (isPublic === undefined && keys === undefined) return perform(context, verify, given);
    if (isPublic === undefined || keys === undefined) throw usageProblem("--public and --key go together.");
    if (Object.values(given).some((value) => value !== undefined))
      throw usageProblem("--checkpoint, --month and --accept do not go with --public.");
    await verifyTree(context, keys);
  },
});

export const audit: CommandGroup = {
  about: "The record of every value that was read and of every change.",
  rows: [listOrFollow, show, exportAll, verifyEither, key, prove, check, acceptRestore, prune],
};

const pollMs = 1000;
/** How long a connection may not answer before it counts as lost. */
const followDeadlineMs = 10_000;

/**
 * Prints the newest entries and then new ones, a line each, until Ctrl-C or until the reader closes the output. If the
 * connection is lost after the first entries, another one continues where it stopped.
 */
async function followAudit(context: CommandContext, filter: AuditFilter & { readonly limit: number | undefined }) {
  const stop = new AbortController();
  using _ = onInterrupt(() => stop.abort());
  // sshd does not say that a session has ended: the process would go on for ever.
  const session = process.ppid;
  const isOver = () => stop.signal.aborted || (context.person !== undefined && process.ppid !== session);
  const rest = () => setTimeout(pollMs, undefined, { signal: stop.signal }).catch(() => {});
  const deadline = new Deadline(followDeadlineMs, () => new Fault("unavailable", "no answer"));
  let columns: Columns<AuditRecord> = {};
  let damaged: Damaged | undefined;
  const noteDamage = (segment: Segment) => {
    if (damaged?.note(segment)) context.say(damaged.problem?.message ?? "");
  };
  const lineOf = (one: AuditRecord) =>
    context.json ? jsonLine(one) : `${cellsOf(columns, one).map(oneLine).join("  ")}\n`;
  const show = (page: readonly AuditRecord[]) => write(context.terminal.stdout, page.map(lineOf).join(""));
  let tail: AuditTail | undefined;
  const follow = async (admin: AdminContext) => {
    if (tail === undefined) {
      columns = await columnsOf(admin, filter.name);
      damaged = new Damaged(admin);
      const begun = new AuditTail(admin, filter, noteDamage);
      const [newest, earlier] = (await begun.newest(filter.limit)).with(earlierMatch(filter));
      await show(newest);
      if (earlier) context.say(earlier);
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
