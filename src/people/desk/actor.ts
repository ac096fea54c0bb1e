import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { attempt } from "../../core/attempt.ts";
import { configProblem } from "../../core/problem.ts";
import { accountName } from "../../installation/data-folder.ts";

/**
 * Who runs a command: KEYHOLE_ACTOR, or `user@host` with the account that runs it; under sudo, the account that called
 * sudo. An account without a name, as in a container, is a number. No variable but KEYHOLE_ACTOR is believed.
 */
export function actorOf(env: Readonly<Record<string, string | undefined>>): string {
  const { KEYHOLE_ACTOR: given, SUDO_USER: caller } = env;
  if (given === undefined) {
    const uid = (caller === undefined ? undefined : callerOfSudo()) ?? process.getuid?.() ?? 0;
    return `${accountName(uid) ?? directoryName(uid) ?? uid}@${hostname()}`;
  }
  if (/^[^\p{Cc}\p{Cf}]{1,128}$/u.test(given)) return given;
  throw configProblem("KEYHOLE_ACTOR must have 1 to 128 characters and none that controls a terminal.");
}

/**
 * The account that called sudo, if a process above this one is sudo: root's, and of that name. On Linux alone, and if
 * processes of others are shown.
 */
export function callerOfSudo(statusOf = (pid: string) => readFileSync(`/proc/${pid}/status`, "utf8")) {
  let belowSudo = false;
  for (let pid = "self"; pid !== "0"; ) {
    const status = attempt(() => statusOf(pid));
    const [, name, parent, uid, effective] = statusPattern.exec(status ?? "") ?? [];
    if (parent === undefined) return undefined;
    const isSudo = name === "sudo" && effective === "0";
    if (belowSudo && !isSudo) return Number(uid);
    belowSudo = isSudo;
    pid = parent;
  }
  return undefined;
}

const statusPattern = /^Name:\s+([^\n]*)$.*^PPid:\s+(\d+)$.*^Uid:\s+(\d+)\s+(\d+)/ms;

/** The name of an account that /etc/passwd does not have: that of macOS, or of a directory such as LDAP. */
function directoryName(uid: number): string | undefined {
  const options = { env: {}, timeout: 2000, stdio: "pipe" } as const;
  return (
    attempt(() =>
      execFileSync("/usr/bin/id", ["-un", String(uid)], options)
        .toString()
        .trim(),
    ) || undefined
  );
}
