import { attempt } from "../core/attempt.ts";
import { atMost } from "../core/deadline.ts";
import { readAtMost } from "../core/json-request.ts";
import { usageProblem } from "../core/problem.ts";
import { withoutSettings } from "../core/settings/inherited.ts";
import { isToken, NoToken, type TokenContext, type TokenSource } from "./token-giver.ts";

/**
 * Tokens that a program prints. No shell reads its line, it gets none of Keyhole's settings, and what it says on stderr
 * is passed on.
 * @param text - the program and its arguments, a JSON array of texts
 * @throws Problem
 */
export function commandTokens(text: string, { env, timeoutMs }: Omit<TokenContext, "audience">): TokenSource {
  const argv = attempt(() => JSON.parse(text)) as unknown;
  const isLine = Array.isArray(argv) && argv.every((word) => typeof word === "string" && !word.includes("\0"));
  if (!isLine || !argv[0]) {
    throw usageProblem('KEYHOLE_OIDC takes a program as command:["PROGRAM","ARGUMENT"], in JSON: no shell reads it.');
  }
  const giver = { name: `The program ${JSON.stringify(argv[0])} of KEYHOLE_OIDC` };
  return async () => {
    const own = withoutSettings(env);
    const child = attempt(() => {
      // A group of its own, so that what it started ends with it.
      return Bun.spawn(argv, { env: own, stdin: "ignore", stdout: "pipe", stderr: "inherit", detached: true });
    });
    if (child === undefined) throw new NoToken(giver, "it cannot be started.", false);
    const printed = readAtMost(new Response(child.stdout), tokenBytesMax);
    const ended = await atMost(timeoutMs, Promise.all([printed, child.exited]));
    attempt(() => process.kill(-child.pid, "SIGKILL"));
    if (ended === undefined) throw new NoToken(giver, `it did not end within ${timeoutMs / 1000} s.`, true);
    const [output, code] = ended;
    if (code !== 0) throw new NoToken(giver, `it ended with ${code}.`, true);
    const token = (await output?.text())?.trim() ?? "";
    if (!isToken(token)) throw new NoToken(giver, "what it printed is none.", false);
    return token;
  };
}

const tokenBytesMax = 16 * 1024;
