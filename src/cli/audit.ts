import { listAudit } from "../admin/audit.ts";
import { answerList, atDesk, noun, parseCount, parseMoment, type Surroundings, verb } from "./command.ts";
import { formatTime } from "./terminal.ts";

/** `keyhole audit …` */
export function auditCommand(here: Surroundings) {
  const list = verb(
    "list",
    "List who was given which values, oldest first.",
    "keyhole audit list --org acme --since 24h",
    "keyhole audit list --key 0199a3c4 --limit 20 --json",
  )
    .option("--org <org>", "only this organization's entries")
    .option("--key <id>", "only what this key was given")
    .option("--since <moment>", "24h ago and the like, 2026-01-31, or 2026-01-31T12:00:00Z", (text) =>
      parseMoment("--since", text, Date.now()),
    )
    .option("--limit <count>", "only the newest so many (default: 100)", (text) => parseCount("--limit", text))
    .action(async ({ org, key, since, limit }) => {
      const entries = await atDesk(here, (desk) =>
        listAudit(desk, { organization: org, keyId: key, sinceAt: since, limit }),
      );
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
      const rows = entries.map((one) => [
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
      ]);
      await answerList(here, entries, header, rows, "There are no such entries.");
    });

  return noun("audit", "The record of every value that was given out.").addCommand(list);
}
