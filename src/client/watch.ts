import { Problem } from "../core/problem.ts";
import { type LookResult, looks } from "./looks.ts";
import { type Clock, realClock } from "./wire.ts";

/** Finds changes one after another, and tells people what is going on. */
export type Watch<T> = { readonly next: () => Promise<T>; readonly say: (line: string) => void };

/**
 * Looks for changes as {@link looks} does, and says why it cannot, once for a failure that repeats. A look that fails
 * changes nothing, so `next` never rejects.
 * @param look - returns what changed, or undefined
 */
export function watchFor<T>(
  everyMs: number,
  look: (waitS: number) => Promise<LookResult<T | undefined>>,
  say: (line: string) => void,
  clock: Clock = realClock,
): Watch<T> {
  const all = looks(everyMs, look, clock);
  let failure = "";
  const next = async () => {
    for (;;) {
      const { value } = await all.next();
      if (value === undefined) continue; // it has no end
      if ("found" in value) {
        if (failure !== "") say("The command is watched again.");
        failure = "";
        if (value.found !== undefined) return value.found;
      } else {
        const message = messageOf(value.failed);
        if (message !== failure) say(`Not watched for now, and the command runs on: ${message}`);
        failure = message;
      }
    }
  };
  return { next, say };
}

/** The message of the client's own Problem, without its hint about `--wait`. Other errors may quote a secret. */
function messageOf(error: unknown): string {
  if (!(error instanceof Problem)) return "an error inside Keyhole. Please report it.";
  return error.cause instanceof Problem ? error.cause.message : error.message;
}
