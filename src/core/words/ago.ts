/** Such as `3 days ago` or `in 2 hours`. @param ms - from now; negative in the past */
export function inWords(ms: number): string {
  const size = Math.abs(ms);
  if (size < unitsMs.minute) return ms <= 0 ? "just now" : "in a moment";
  const unit = size < unitsMs.hour ? "minute" : size < 2 * unitsMs.day ? "hour" : "day";
  const count = Math.trunc(size / unitsMs[unit]);
  const words = `${count} ${unit}${count === 1 ? "" : "s"}`;
  return ms < 0 ? `${words} ago` : `in ${words}`;
}

const unitsMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;
