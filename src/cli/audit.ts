import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { setTimeout } from "node:timers/promises";
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
  type Columns,
  cellsOf,
  counted,
  noun,
  parseCount,
  parseDuration,
  parsedOption,
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
      "List who read which values, oldest first.",
      "keyhole audit list --org acme --since 24h",
      "keyhole audit list --key 0199a3c4 --limit 20 --json",
      "keyhole audit list --follow",
    ),
  )
    .addOption(parsedOption("--limit <count>", "only the newest entries (default: 100)", parseCount))
    .option("--follow", "continue with new entries until Ctrl-C")
    .action(async ({ org, key, since, limit, follow }) => {
      const filter = { organization: org, keyId: key, sinceAt: since };
      if (follow) return atDesk(here, (desk) => followAudit(here, desk, filter, limit));
      const entries = await atDesk(here, (desk) => listAudit(desk, { ...filter, limit }));
      await answerList(here, entries, columns, "No entries match.");
    });

  const exported = filtered(
    verb(
      "export",
      "Write every matching entry, oldest first.",
      "keyhole audit export --format csv --since 2026-01-01 --out audit.csv",
      "keyhole audit export --org acme | gzip > audit.jsonl.gz",
    ),
  )
    .addOption(
      new Option("--format <format>", "one JSON object per line, or CSV for spreadsheets")
        .choices(["jsonl", "csv"])
        .default("jsonl" as const),
    )
    .option("--out <file>", "write to this file, mode 0600, instead of stdout")
    .option("--force", "replace an existing file")
    .action(async ({ org, key, since, format, out, force }) => {
      if (here.json && out === undefined) {
        throw usageProblem("With --json, name a file with --out: stdout then holds one document about it.");
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
    "Verify the chain of entries and name the first that was changed, removed, reordered or added.",
    "keyhole audit verify",
    "keyhole audit verify --checkpoint /var/log/keyhole.log",
    "kubectl logs deploy/keyhole | keyhole audit verify --checkpoint -",
  )
    .option(
      "--checkpoint <file>",
      "the server's log or its checkpoint lines, - for stdin; also finds missing newest entries",
    )
    .action(async ({ checkpoint }) => {
      const checkpoints = checkpoint === undefined ? undefined : await readCheckpoints(here, checkpoint);
      const found = await atDesk(here, async (desk) => {
        const progress = await auditProgress(here, desk, "Verifying", {});
        return verifyAudit(desk, checkpoints, progress.report).finally(progress.clear);
      });
      if ("what" in found) throw await flawed(here, found);
      const against =
        checkpoints === undefined ? "" : `, compared with ${counted(found.checkpoints, "checkpoint")} of the log`;
      const entries = counted(found.entries, "entry", "entries");
      const message = `Every entry is unchanged: ${entries} in ${counted(found.lanes, "lane")}${against}.`;
      await answer(here, { verified: true, ...found }, message);
      if (checkpoints === undefined) {
        here.say("Only --checkpoint with the server's log shows whether the newest entries are missing.");
      }
    });

  const prune = verb(
    "prune",
    "Delete the entries of whole months that are old enough. The rest can still be verified.",
    "keyhole audit prune",
    "keyhole audit prune --keep 800d",
  )
    .addOption(parsedOption("--keep <duration>", "the least time to keep entries (default: 400d)", parseDuration))
    .option("--force", "also delete entries that do not verify")
    .action(async ({ keep, force }) => {
      const pruned = await atDesk(here, (desk) => pruneAudit(desk, keep ?? keepMs, { unverified: force }));
      if ("what" in pruned) throw await flawed(here, pruned, " Nothing was deleted; --force deletes it anyway.");
      const month = formatTime(pruned.keptFromAt).slice(0, 10);
      await answer(here, pruned, `Deleted ${counted(pruned.entries, "entry", "entries")} from before ${month}.`);
    });

  return noun("audit", "The record of every value that was read.")
    .addCommand(list)
    .addCommand(exported)
    .addCommand(verify)
    .addCommand(prune);
}

const keepMs = 400 * 86_400_000;
const pollMs = 1000;

function filtered(command: ReturnType<typeof verb>) {
  return command
    .option("--org <org>", "only entries of this organization")
    .option("--key <id>", "only entries of this key")
    .addOption(
      parsedOption("--since <moment>", "24h (ago), 2026-01-31, or 2026-01-31T12:00:00Z", (option, text) =>
        parseMoment(option, text, Date.now()),
      ),
    );
}

const columns: Columns<AuditRecord> = {
  TIME: (one) => formatTime(one.time),
  ORG: (one) => one.organization,
  PROJECT: (one) => one.project,
  ENVIRONMENT: (one) => one.environment ?? "-",
  ACTION: (one) => one.action,
  COUNT: (one) => one.count,
  NAMES: (one) => one.names.join(","),
  KEY: (one) => one.keyId,
  CLIENT: (one) => one.clientAddress,
  REQUEST: (one) => one.requestId,
  "USER AGENT": (one) => one.userAgent,
};

/** Prints the newest entries and then new ones, a line each, until Ctrl-C or until the reader closes the output. */
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
      page.map((one) => (here.json ? jsonLine(one) : `${cellsOf(columns, one).map(visible).join("  ")}\n`)).join(""),
    );
  try {
    const shown = await listAudit(desk, { ...filter, limit });
    await show(shown);
    const tail = new AuditTail(desk, filter, shown);
    while (!stop.signal.aborted) {
      for await (const page of tail.news()) await show(page);
      await setTimeout(pollMs, undefined, { signal: stop.signal }).catch(() => {});
    }
  } finally {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, onSignal);
  }
}

/** @returns how many entries were written */
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
    if (format === "csv") await put(csvLine(Object.keys(csvColumns)));
    for await (const page of auditPages(desk, filter)) {
      await put(page.map((one) => (format === "csv" ? csvLine(cellsOf(csvColumns, one)) : jsonLine(one))).join(""));
      done += page.length;
      progress.report(done);
    }
  } finally {
    progress.clear();
  }
  return done;
}

const csvColumns: Columns<AuditRecord> = {
  time: (one) => new Date(one.time).toISOString(),
  organization: (one) => one.organization,
  project: (one) => one.project,
  environment: (one) => one.environment ?? "",
  action: (one) => one.action,
  count: (one) => one.count,
  names: (one) => JSON.stringify(one.names),
  keyId: (one) => one.keyId,
  clientAddress: (one) => one.clientAddress,
  requestId: (one) => one.requestId,
  userAgent: (one) => one.userAgent,
  lane: (one) => one.lane,
  seq: (one) => one.seq,
};

/** Counts the entries first, but only if stderr is a terminal. */
async function auditProgress(here: Surroundings, desk: Desk, what: string, filter: AuditFilter) {
  const { stderr } = here.terminal;
  const total = stderr.isTTY ? await countAudit(desk, filter) : 0;
  const progress = progressOn(stderr, what, "entries");
  return { report: (done: number) => progress.report(done, Math.max(done, total)), clear: () => progress.clear() };
}

/** The highest checkpoint of each lane in a log. @throws Problem if there is none */
async function readCheckpoints(here: Surroundings, path: string): Promise<Map<string, Checkpoint>> {
  const highest = new Map<string, Checkpoint>();
  for await (const { event, lane, seq, mac } of logEvents(here, path)) {
    if (event !== "checkpoint" || typeof lane !== "string" || !Number.isSafeInteger(seq)) continue;
    if (typeof mac !== "string" || !/^[0-9a-f]{64}$/.test(mac)) continue;
    const before = highest.get(lane);
    if (!before || before.seq < (seq as number)) highest.set(lane, { lane, seq: seq as number, mac });
  }
  if (highest.size > 0) return highest;
  throw new Problem(exits.failed, "no_checkpoints", `${path === "-" ? "Stdin" : path} has no checkpoint line.`);
}

/** Makes a Problem of a flaw; with `--json` the flaw itself is printed, too. */
async function flawed(here: Surroundings, flaw: Flaw, more = ""): Promise<Problem> {
  if (here.json) await write(here.terminal.stdout, jsonLine({ verified: false, ...flaw }));
  return new Problem(exits.failed, `audit_${flaw.what}`, `Lane ${flaw.lane}: ${sentences[flaw.what](flaw)}${more}`);
}

const sentences = {
  changed: ({ seq }) => `entry ${seq} was changed.`,
  removed: ({ seq, lastSeq = seq }) =>
    lastSeq === seq ? `entry ${seq} was removed.` : `entries ${seq} to ${lastSeq} were removed.`,
  reordered: ({ seq }) => `entries were reordered: another entry is in the place of entry ${seq}.`,
  added: ({ seq }) => `entry ${seq} was added: Keyhole did not write it.`,
} as const satisfies Record<Flaw["what"], (flaw: Flaw) => string>;
