import { Problem } from "../core/problem.ts";
import { type Clock, realClock } from "./wire.ts";

/** Finds changes one after another, and tells people what is going on. */
export type Watch<T> = { readonly next: () => Promise<T>; readonly say: (line: string) => void };

/**
 * Looks for changes again and again, and says why it cannot, once for a failure that repeats. A look that fails changes
 * nothing, so `next` never rejects.
 * @param look - returns what changed, or undefined
 */
export function watchFor<T>(
  everyMs: number,
  look: () => Promise<T | undefined>,
  say: (line: string) => void,
  clock: Clock = realClock,
): Watch<T> {
  let failure = "";
  const tryToLook = async () => {
    try {
      const found = await look();
      if (failure !== "") say("The command is watched again.");
      failure = "";
      return found;
    } catch (error) {
      const message = messageOf(error);
      if (message !== failure) say(`Not watched for now, and the command runs on: ${message}`);
      failure = message;
      return undefined;
    }
  };
  const next = async () => {
    for (;;) {
      // Up to a tenth is added, so that many programs that started together do not ask together.
      await clock.sleep(Math.ceil(everyMs * (1 + clock.random() / 10)));
      const found = await tryToLook();
      if (found !== undefined) return found;
    }
  };
  return { next, say };
}

/** The message of the client's own Problem, without its hint about `--wait`. Other errors may quote a secret. */
function messageOf(error: unknown): string {
  if (!(error instanceof Problem)) return "an error inside Keyhole. Please report it.";
  return error.cause instanceof Problem ? error.cause.message : error.message;
}
