/** Takes one event of the log; what is undefined in it is left out. Returns at once and never throws. */
export type Log = (event: Readonly<Record<string, unknown>>) => void;

/**
 * A log that writes one line for each event: JSON, or with `pretty` words for a person. Lines are gathered for a few
 * milliseconds, since a write for each would cost more than a small request does.
 *
 * Refusals (4xx) are the caller's to cause, so of each code at most 100 a second are written; how many were not stands
 * as `suppressed` on the next line of that code, so the counts stay exact.
 */
export function openLog(
  write: (text: string) => void,
  options: { readonly pretty: boolean; readonly now: () => number },
): { readonly log: Log; readonly flush: () => void } {
  let pending = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  const written = new Map<string, { second: number; lines: number; suppressed: number }>();
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const text = pending;
    pending = "";
    if (text !== "") write(text);
  };
  const log: Log = (event) => {
    const now = options.now();
    const { status, code } = event;
    let suppressed = 0;
    if (typeof status === "number" && status >= 400 && status < 500 && typeof code === "string") {
      const second = Math.floor(now / 1000);
      const counter = written.get(code) ?? { second, lines: 0, suppressed: 0 };
      written.set(code, counter);
      if (counter.second !== second) Object.assign(counter, { second, lines: 0 });
      if (++counter.lines > refusalsPerSecondMax) {
        counter.suppressed += 1;
        return;
      }
      suppressed = counter.suppressed;
      counter.suppressed = 0;
    }
    const said = suppressed > 0 ? { ...event, suppressed } : event;
    const time = new Date(now).toISOString();
    const line = options.pretty ? prettyLine(time, said) : `{"time":"${time}",${JSON.stringify(said).slice(1)}`;
    pending += `${escaped(line)}\n`;
    if (pending.length > flushBytesMin) flush();
    else timer ??= setTimeout(flush, flushDelayMs);
  };
  return { log, flush };
}

const plain = /^[ -~]*$/;
const refusalsPerSecondMax = 100;
const flushDelayMs = 20;
const flushBytesMin = 64 * 1024;

function prettyLine(time: string, { event, ...rest }: Readonly<Record<string, unknown>>): string {
  const words = Object.entries(rest)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  return `${time.slice(11, 23)} ${event} ${words.join(" ")}`;
}

/** What a terminal would act on, spelled out; JSON leaves some of it as it is. */
function escaped(text: string): string {
  if (plain.test(text)) return text;
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
