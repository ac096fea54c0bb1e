import { dueAtOf } from "../kinds/variables/entry.ts";
import type { NextExpiry } from "../store/expiry.ts";

/**
 * How many days are left until the next key or trust expires and until the next variable is to be rotated; a rotation
 * that is overdue is negative. What has none, or is not known because the database failed, is left out.
 *
 * @param find - asked at most once in a minute, however often somebody scrapes
 */
export function daysLeft(
  find: () => Promise<NextExpiry>,
  nowMs: () => number,
): () => Promise<Readonly<Record<string, number>>> {
  let askedAtMs = Number.NEGATIVE_INFINITY;
  let answer: Promise<NextExpiry> | undefined;
  return async () => {
    // A clock that steps back must not keep an answer for longer.
    if (answer === undefined || Math.abs(nowMs() - askedAtMs) >= keptMs) {
      askedAtMs = nowMs();
      answer = find().catch(() => ({ key: null, variable: null }));
    }
    const { key, variable } = await answer;
    const now = nowMs();
    const dueAt = variable === null ? Number.NaN : dueAtOf(variable); // NaN also if SQL wrote a day that does not exist
    return {
      ...(key !== null && key > now && { key: (key - now) / dayMs }),
      ...(!Number.isNaN(dueAt) && { variable: (dueAt - now) / dayMs }),
    };
  };
}

const keptMs = 60_000;
const dayMs = 86_400_000;
