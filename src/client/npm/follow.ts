import { looks } from "../looks.ts";
import { type Question, type Reply, realClock } from "../wire.ts";
import type { Variables } from "./answers.ts";
import { badOption, KeyholeError, requireMs } from "./error.ts";
import type { FollowOptions, Values, VariablesWatch } from "./watch.ts";

export function valuesOf({ variables }: Variables): Record<string, string> {
  return Object.fromEntries(variables.map(({ key, value }) => [key, value]));
}

/** @throws KeyholeError if there is no answer */
export function answered<T>(outcome: Reply<T>) {
  if (!("failure" in outcome)) return outcome;
  const { code, message, requestId, retryAfter } = outcome.failure;
  throw new KeyholeError(code, message, { requestId, retryAfter });
}

/** @param ask - asks once */
export function watchVariables(
  { everyMs = 30_000, staleMsMax = 300_000 }: FollowOptions,
  ask: (more: Pick<Question<Variables>, "ifNoneMatch" | "waitS" | "signal">) => Promise<Reply<Variables>>,
  clock = realClock,
): VariablesWatch {
  requireMs({ everyMs }, 1000);
  if (!(staleMsMax > 0)) throw badOption("staleMsMax must be a number of milliseconds, or Infinity.");
  const listeners = new Set<(values: Values) => void>();
  let held: { readonly values: Values; readonly etag: string | undefined } | undefined;
  let refusal: KeyholeError | undefined = new KeyholeError("not_ready", "No values yet: await ready first.");
  /**
   * When the last successful look began, by a clock that never steps back and by one that counts through sleep. An answer
   * that waited is of the moment that it came, if that was in time.
   */
  let seen = { atMs: 0, date: 0 };
  let isFailing = false;
  const closing = new AbortController();
  const { signal } = closing;

  const look = async (waitS: number) => {
    const [atMs, date] = [clock.nowMs(), clock.dateMs()];
    try {
      const reply = await ask({ ifNoneMatch: held?.etag, waitS, signal });
      const found = "failure" in reply && reply.failure.isUnchanged ? undefined : answered(reply);
      const { waited = false } = reply;
      if (signal.aborted) return { found: undefined, waited };
      const waitedMs = waited ? Math.min(clock.nowMs() - atMs, waitS * 1000) : 0;
      [seen, isFailing, refusal] = [{ atMs: atMs + waitedMs, date: date + waitedMs }, false, undefined];
      if (found !== undefined) hold(Object.freeze(valuesOf(found.answer)), found.etag);
      return { found: undefined, waited };
    } catch (error) {
      isFailing = true;
      if (!signal.aborted && isRefusal(error)) [held, refusal] = [undefined, error];
      throw error;
    }
  };
  const hold = (values: Values, etag: string | undefined) => {
    const before = held?.values;
    const isSame = before !== undefined && JSON.stringify(before) === JSON.stringify(values);
    held = { values: isSame ? before : values, etag };
    // What a listener throws, now or later, would end the program as an unhandled rejection.
    if (!isSame) for (const listener of listeners) (async () => listener(values))().catch(() => {});
  };
  const current = () => {
    if (refusal !== undefined) throw refusal;
    if (held !== undefined && ageMs() <= staleMsMax) return held.values;
    const since = new Date(seen.date).toISOString();
    throw new KeyholeError("too_old", `The values were last seen at ${since}, longer ago than staleMsMax allows.`);
  };
  const ageMs = () => Math.max(clock.nowMs() - seen.atMs, clock.dateMs() - seen.date);
  const all = looks(everyMs, look, clock, { isDue: true, signal });
  const closed = new Promise<undefined>((resolve) => signal.addEventListener("abort", () => resolve(undefined)));
  const ready = Promise.race([all.next(), closed]).then((first) => {
    if (first?.value !== undefined && "failed" in first.value) throw first.value.failed;
    return current();
  });
  ready.catch(() => {}); // current() throws it as well, so nobody need wait for it
  void (async () => {
    for await (const _ of all);
  })();
  return Object.freeze({
    current,
    ready,
    onChange: (listener: (values: Values) => void) => {
      const own = (values: Values) => listener(values);
      listeners.add(own);
      return () => void listeners.delete(own);
    },
    get staleSince() {
      const isLate = held !== undefined && ageMs() > everyMs * 1.1 + lateMsMax;
      return held !== undefined && (isFailing || isLate) ? seen.date : undefined;
    },
    close: () => {
      closing.abort();
      listeners.clear();
      [held, refusal] = [undefined, new KeyholeError("closed", "The watch is closed.")];
    },
  });
}

/** How late a look may be before {@link VariablesWatch.staleSince} tells of it: the process may have stood still. */
const lateMsMax = 5000;

/** Whether the server itself said that this key may not, or no longer, read the values. */
function isRefusal(error: unknown): error is KeyholeError {
  return error instanceof KeyholeError && refusals.includes(error.code);
}

const refusals: readonly string[] = [
  ...(["unauthorized", "plan_required", "surface_required", "resource_required"] as const),
  ...(["environment_not_in_scope", "project_not_found"] as const),
];
