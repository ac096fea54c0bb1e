import { HostRefused } from "../core/refused.ts";

/* A person must not look at a cursor and wonder. What a command waits for in PostgreSQL is said, and has an end. */

/** What a statement of a command waits for. */
export type Wait = {
  /** A line for a person. */
  readonly says: string;
  /** Why the command ends if it waits for too long; undefined if PostgreSQL ends the wait. */
  readonly ends?: string;
};

/**
 * Looks every few seconds what work in PostgreSQL waits for, until it has settled.
 * @param look - undefined if it waits for nothing: it may just take long
 * @param say - called once for each thing that it waits for
 * @param giveUp - called before it is rejected
 * @returns settles as the work does, or rejects with a Refused `unavailable` if that waits for too long
 */
export function watched<T>(
  work: Promise<T>,
  look: () => Promise<Wait | undefined>,
  say: (line: string) => void,
  giveUp: () => void,
): Promise<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isSettled = false;
  let said: string | undefined;
  let waitsSinceMs: number | undefined;
  const next = async () => {
    const wait = await look();
    if (isSettled) return;
    if (wait !== undefined && wait.says !== said) say(wait.says);
    said = wait?.says ?? said;
    waitsSinceMs = wait?.ends === undefined ? undefined : (waitsSinceMs ?? performance.now() - lookEveryMs);
    if (wait?.ends === undefined || waitsSinceMs === undefined || performance.now() - waitsSinceMs < waitMaxMs) {
      timer = setTimeout(next, lookEveryMs);
      return;
    }
    giveUp();
    reject(
      new HostRefused("unavailable", `${wait.ends} ${maybeDone}`, {
        forPersons: `Keyhole waits for its database: ask an operator. ${maybeDone}`,
      }),
    );
  };
  timer = setTimeout(next, lookEveryMs);
  work
    .finally(() => {
      isSettled = true;
      clearTimeout(timer);
    })
    .then(resolve, reject);
  return promise;
}

const maybeDone = "What you asked for may be done all the same, at once or later: look before you run it again.";
const lookEveryMs = 3000;
const waitMaxMs = 30_000;
