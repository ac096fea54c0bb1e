import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { Option } from "@commander-js/extra-typings";
import { type AuditFilter, type AuditRecord, AuditTail, auditPages, countAudit, listAudit } from "../admin/audit.ts";
import { pruneAudit, verifyAudit } from "../admin/audit-chain.ts";
import type { Desk } from "../admin/desk.ts";
import type { Checkpoint } from "../audit/journal.ts";
import type { Flaw } from "../audit/verify.ts";
import { exits, Problem, usageProblem } from "../problem.ts";
import { csvLine } from "../render/csv.ts";
import { writeWhole } from "../whole-file.ts";
import {
  answer,
  answerList,
  atDesk,
  counted,
  noun,
  parseCount,
  parseDuration,
  parseMoment,
  type Surroundings,
  verb,
} from "./command.ts";
import { logEvents } from "./log-lines.ts";
import { formatTime, jsonLine, progressOn, visible, write } from "./terminal.ts";

/** `keyhole audit …` */
export function auditCommand(here: Surroundings) {
  const list = filtered(
    verb(
      "list",
      "List who was given which values, oldest first.",
      "keyhole audit list --org acme --since 24h",
      "keyhole audit list --key 0199a3c4 --limit 20 --json",
      "keyhole audit list --follow",
    ),
  )
    .option("--limit <count>", "only the newest so many (default: 100)", (text) => parseCount("--limit", text))
    .option("--follow", "go on with new entries as they come, until Ctrl-C")
    .action(async ({ org, key, since, limit, follow }) => {
      const filter = { organization: org, keyId: key, sinceAt: since };
      if (follow) return atDesk(here, (desk) => followAudit(here, desk, filter, limit));
      const entries = await atDesk(here, (desk) => listAudit(desk, { ...filter, limit }));
      await answerList(here, entries, header, entries.map(cellsOf), "There are no such entries.");
    });

  const exported = filtered(
    verb(
      "export",
      "Write every entry that fits, oldest first, however many there are.",
      "keyhole audit export --format csv --since 2026-01-01 --out audit.csv",
      "keyhole audit export --org acme | gzip > audit.jsonl.gz",
    ),
  )
    .addOption(
      new Option("--format <format>", "one JSON object a line, or CSV for spreadsheets")
        .choices(["jsonl", "csv"])
        .default("jsonl" as const),
    )
    .option("--out <file>", "write to this file, mode 0600, in place of stdout")
    .option("--force", "replace the file where there is one")
    .action(async ({ org, key, since, format, out, force }) => {
      if (here.json && out === undefined) {
        throw usageProblem("With --json, name a file with --out: what stands on stdout is then one document about it.");
      }
      const filter = { organization: org, keyId: key, sinceAt: since };
      const entries = await atDesk(here, async (desk) => {
        if (out === undefined)
          return exportAudit(here, desk, filter, format, (text) => write(here.terminal.stdout, text));
        let count = 0;
        await writeWhole(out, force === true, async (draft) => {
          const file = createWriteStream(draft, { mode: 0o600 });
          count = await exportAudit(here, desk, filter, format, async (text) => {
            if (!file.write(text)) await once(file, "drain");
          });
          file.end();
          await once(file, "close");
        });
        return count;
      });
      if (out === undefined) return;
      await answer(here, { file: out, format, entries }, `Wrote ${counted(entries, "entry", "entries")} to ${out}.`);
    });

  const verify = verb(
    "verify",
    "Walk the chain of every entry and name the first that was changed, removed, reordered or added.",
    "keyhole audit verify",
    "keyhole audit verify --checkpoint /var/log/keyhole.log",
    "kubectl logs deploy/keyhole | keyhole audit verify --checkpoint -",
  )
    .option("--checkpoint <file>", "the server's log, or its checkpoint lines; - for stdin: shows a missing end too")
    .action(async ({ checkpoint }) => {
      const checkpoints = checkpoint === undefined ? undefined : await readCheckpoints(here, checkpoint);
      const found = await atDesk(here, async (desk) => {
        const progress = await auditProgress(here, desk, "Verifying", {});
        return verifyAudit(desk, checkpoints, progress.report).finally(progress.clear);
      });
      if ("what" in found) throw await flawed(here, found);
      const against =
        checkpoints === undefined ? "" : `, held against ${counted(found.checkpoints, "checkpoint")} of the log`;
      const word = `Every entry is as it was written: ${counted(found.entries, "entry", "entries")} in ${counted(found.lanes, "lane")}${against}.`;
      await answer(here, { verified: true, ...found }, word);
      if (checkpoints === undefined) {
        here.say("Whether the newest ones are missing shows only with --checkpoint and the server's log.");
      }
    });

  const prune = verb(
    "prune",
    "Drop the entries of whole months that are old enough; what is left can still be verified.",
    "keyhole audit prune",
    "keyhole audit prune --keep 800d",
  )
    .option("--keep <duration>", "how long entries are kept at least (default: 400d)", (text) =>
      parseDuration("--keep", text),
    )
    .option("--force", "drop also what does not verify")
    .action(async ({ keep, force }) => {
      const pruned = await atDesk(here, (desk) => pruneAudit(desk, keep ?? keepMs, { unverified: force }));
      if ("what" in pruned) throw await flawed(here, pruned, " Nothing was dropped: --force drops it all the same.");
      const month = formatTime(pruned.keptFromAt).slice(0, 10);
      await answer(here, pruned, `Dropped ${counted(pruned.entries, "entry", "entries")} from before ${month}.`);
    });

  return noun("audit", "The record of every value that was given out.")
    .addCommand(list)
    .addCommand(exported)
    .addCommand(verify)
    .addCommand(prune);
}

const keepMs = 400 * 86_400_000;
const pollMs = 1000;

function filtered(command: ReturnType<typeof verb>) {
  return command
    .option("--org <org>", "only this organization's entries")
    .option("--key <id>", "only what this key was given")
    .option("--since <moment>", "24h ago and the like, 2026-01-31, or 2026-01-31T12:00:00Z", (text) =>
      parseMoment("--since", text, Date.now()),
    );
}

const header = [
  "TIME",
  "ORG",
  "PROJECT",
  "ENVIRONMENT",
  "ACTION",
  "COUNT",
  "NAMES",
  "KEY",
  "CLIENT",
  "REQUEST",
  "USER AGENT",
];

function cellsOf(one: AuditRecord): string[] {
  return [
    formatTime(one.time),
    one.organization,
    one.project,
    one.environment ?? "-",
    one.action,
    String(one.count),
    one.names.join(","),
    one.keyId,
    one.clientAddress,
    one.requestId,
    one.userAgent,
  ];
}

/** The newest entries, then what comes, a line each, until Ctrl-C or until nobody reads any more. */
async function followAudit(
  here: Surroundings,
  desk: Desk,
  filter: AuditFilter,
  limit: number | undefined,
): Promise<void> {
  const stop = new AbortController();
  const onSignal = () => stop.abort();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, onSignal);
  const show = (page: readonly AuditRecord[]) =>
    write(
      here.terminal.stdout,
      page.map((one) => (here.json ? jsonLine(one) : `${cellsOf(one).map(visible).join("  ")}\n`)).join(""),
    );
  try {
    const shown = await listAudit(desk, { ...filter, limit });
    await show(shown);
    const tail = new AuditTail(desk, filter, shown);
    while (!stop.signal.aborted) {
      for await (const page of tail.news()) await show(page);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, pollMs);
        stop.signal.addEventListener(
          "abort",
          () => {
            clearTimeout(timer);
            resolve();
          },
          { once: true },
        );
      });
    }
  } finally {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, onSignal);
  }
}

/** @returns how many there were */
async function exportAudit(
  here: Surroundings,
  desk: Desk,
  filter: AuditFilter,
  format: "jsonl" | "csv",
  put: (text: string) => Promise<void>,
): Promise<number> {
  const progress = await auditProgress(here, desk, "Exporting", filter);
  let done = 0;
  try {
    if (format === "csv") await put(csvLine(csvColumns));
    for await (const page of auditPages(desk, filter)) {
      await put(page.map((one) => (format === "csv" ? csvLine(csvCells(one)) : jsonLine(one))).join(""));
      done += page.length;
      progress.report(done);
    }
  } finally {
    progress.clear();
  }
  return done;
}

const csvColumns = [
  "time",
  "organization",
  "project",
  "environment",
  "action",
  "count",
  "names",
  "keyId",
  "clientAddress",
  "requestId",
  "userAgent",
  "lane",
  "seq",
];

function csvCells(one: AuditRecord): (string | number)[] {
  return [
    new Date(one.time).toISOString(),
    one.organization,
    one.project,
    one.environment ?? "",
    one.action,
    one.count,
    JSON.stringify(one.names),
    one.keyId,
    one.clientAddress,
    one.requestId,
    one.userAgent,
    one.lane,
    one.seq,
  ];
}

/** Counts first, but only where a person watches. */
async function auditProgress(here: Surroundings, desk: Desk, what: string, filter: AuditFilter) {
  const { stderr } = here.terminal;
  const total = stderr.isTTY ? await countAudit(desk, filter) : 0;
  const progress = progressOn(stderr, what, "entries");
  return { report: (done: number) => progress.report(done, Math.max(done, total)), clear: () => progress.clear() };
}

/** The highest checkpoint of each lane in a log. @throws Problem where there is none: nothing would be held against it */
async function readCheckpoints(here: Surroundings, path: string): Promise<Map<string, Checkpoint>> {
  const highest = new Map<string, Checkpoint>();
  for await (const { event, lane, seq, mac } of logEvents(here, path)) {
    if (event !== "checkpoint" || typeof lane !== "string" || !Number.isSafeInteger(seq)) continue;
    if (typeof mac !== "string" || !/^[0-9a-f]{64}$/.test(mac)) continue;
    const before = highest.get(lane);
    if (!before || before.seq < (seq as number)) highest.set(lane, { lane, seq: seq as number, mac });
  }
  if (highest.size > 0) return highest;
  throw new Problem(exits.failed, "no_checkpoints", `${path === "-" ? "Stdin" : path} holds no checkpoint line.`);
}

/** A flaw as a failure that programs can read, too. */
async function flawed(here: Surroundings, flaw: Flaw, more = ""): Promise<Problem> {
  if (here.json) await write(here.terminal.stdout, jsonLine({ verified: false, ...flaw }));
  return new Problem(exits.failed, `audit_${flaw.what}`, `Lane ${flaw.lane}: ${sentences[flaw.what](flaw)}${more}`);
}

const sentences = {
  changed: ({ seq }) => `entry ${seq} is not as it was written: it was changed.`,
  removed: ({ seq, lastSeq = seq }) =>
    lastSeq === seq ? `entry ${seq} was removed.` : `entries ${seq} to ${lastSeq} were removed.`,
  reordered: ({ seq }) => `entries were reordered: another one stands in the place of entry ${seq}.`,
  added: ({ seq }) => `entry ${seq} was added: it is none that Keyhole wrote there.`,
} as const satisfies Record<Flaw["what"], (flaw: Flaw) => string>;
