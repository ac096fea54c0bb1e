import { readFileSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { attempt } from "../core/attempt.ts";
import { configProblem } from "../core/problem.ts";

/**
 * Who runs a command: KEYHOLE_ACTOR, or `user@host` with the account that runs it; under sudo, the account that called
 * sudo.
 */
export function actorOf(env: Readonly<Record<string, string | undefined>>): string {
  const { KEYHOLE_ACTOR: given, SUDO_USER: caller } = env;
  if (given === undefined) {
    const uid = process.getuid?.() ?? 0;
    // In a container the account may have no name. Bun's `userInfo` believes the variable USER, so it comes last.
    return `${caller ?? (accountName(uid) || userInfo().username || uid)}@${hostname()}`;
  }
  if (/^[^\p{Cc}\p{Cf}]{1,128}$/u.test(given)) return given;
  throw configProblem("KEYHOLE_ACTOR must have 1 to 128 characters and none that controls a terminal.");
}

/** The name of an account on this machine. */
export function accountName(uid: number): string | undefined {
  const accounts = attempt(() => readFileSync("/etc/passwd", "utf8").split("\n")) ?? [];
  return accounts.map((line) => line.split(":")).find((fields) => fields[2] === String(uid))?.[0];
}
