import { describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exits, Problem } from "../../src/core/problem.ts";
import { type Command, supervise } from "../../src/machines/run.ts";
import { watchFor } from "../../src/machines/watch.ts";
import type { Clock } from "../../src/machines/wire.ts";
import { eventually } from "../support/eventually.ts";

describe("a watch", () => {
  test.each([
    [0, 30_000],
    [0.5, 31_500],
    [0.999, 32_997],
  ])("looks after its interval and up to a tenth more: chance %d, %d ms", async (chance, expectedMs) => {
    const { watch, slept } = watching([undefined, undefined, "new"], chance);
    expect(await watch.next()).toBe("new");
    expect(slept).toEqual([expectedMs, expectedMs, expectedMs]);
  });

  test("goes on after a failure, and says what it is until it is another or over", async () => {
    const revoked = new Problem(exits.unauthorized, "unauthorized", "The server answered unauthorized.");
    const busy = new Problem(exits.refused, "rate_limited", "Busy.");
    const hinting = new Problem(exits.refused, "rate_limited", "Busy. To try again, add --wait 60s.", { cause: busy });
    const secret = new Error("it quotes a secret");
    const looks = [revoked, revoked, hinting, secret, undefined, undefined, revoked, "new", "newer"];
    const { watch, said } = watching(looks);
    expect(await watch.next()).toBe("new");
    expect(await watch.next()).toBe("newer");
    const begin = "Not watched for now, and the command runs on:";
    expect(said).toEqual([
      `${begin} The server answered unauthorized.`,
      `${begin} Busy.`,
      `${begin} an error inside Keyhole. Please report it.`,
      "The command is watched again.",
      `${begin} The server answered unauthorized.`,
      "The command is watched again.",
    ]);
  });
});

describe("a command that another takes the place of", () => {
  const begin = "echo began >> log; echo $$ > own; mv own pid";
  test.each([
    // Long enough for the shell to run its trap on any machine.
    ["gets SIGTERM", `trap 'sleep 0.1; echo polite >> log; exit 0' TERM; ${begin}`, 60_000, "began\npolite\nlast\n"],
    ["gets SIGKILL if it stays", `trap '' TERM; ${begin}`, 50, "began\nlast\n"],
  ])("%s, and only after its end the other one begins", async (_, script, stopMs, log) => {
    const folder = mkdtempSync(join(tmpdir(), "keyhole-supervise-"));
    try {
      const inFolder = (text: string) => shell(`cd ${folder}; ${text}`);
      const first = inFolder(`${script}; while :; do sleep 0.02; done`);
      const following = [inFolder("kill -0 $(cat pid) 2> kill && exit 1; echo last >> log; exit 3")];
      const said: string[] = [];
      const next = async () => {
        const command = following.shift();
        if (command !== undefined) await eventually(() => existsSync(join(folder, "pid")));
        return command ?? new Promise<Command>(() => {});
      };
      const changes = { next, say: (line: string) => said.push(line) };
      expect(await supervise(first, { onTerminal: false, changes, stopMs })).toBe(3);
      expect(readFileSync(join(folder, "log"), "utf8")).toBe(log);
      expect(said).toEqual(["Something changed: the command is started again."]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

function shell(script: string): Command {
  return { path: "/bin/sh", argv: ["sh", "-c", script], env: [`PATH=${process.env["PATH"]}`] };
}

/** A watch of 30 s whose looks give these, one after another, and whose clock takes no time. */
function watching(looks: readonly unknown[], chance = 0) {
  const slept: number[] = [];
  const said: string[] = [];
  const clock: Clock = {
    nowMs: () => 0,
    dateMs: () => 0,
    sleep: async (durationMs) => void slept.push(durationMs),
    random: () => chance,
  };
  const left = [...looks];
  const look = async () => {
    const found = left.shift();
    if (found instanceof Error) throw found;
    return found as string | undefined;
  };
  return { watch: watchFor(30_000, look, (line) => said.push(line), clock), slept, said };
}
