import type { Log } from "../../core/log.ts";
import { visible } from "../../core/visible.ts";

/**
 * A log of one line per event: JSON, or short text for a person if `pretty`. Lines are collected for 20 ms, because a
 * write per line would cost more than a small request.
 *
 * Anybody can cause refusals (4xx). So at most 100 lines per second and code are written, and the next line of that
 * code says in `suppressed` how many are missing.
 */
export function openLog(
  write: (text: string) => void,
  { pretty, now }: { readonly pretty: boolean; readonly now: () => number },
): { readonly log: Log; readonly flush: () => void } {
  let pending = "";
  let timer: ReturnType<typeof setTimeout> | undefined;
  const counters = new Map<string, { second: number; lines: number; suppressed: number }>();
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    const text = pending;
    pending = "";
    if (text !== "") write(text);
  };
  const log: Log = (event) => {
    const nowMs = now();
    const { status, code } = event;
    let suppressed = 0;
    if (typeof status === "number" && status >= 400 && status < 500 && typeof code === "string") {
      const second = Math.floor(nowMs / 1000);
      const counter = counters.getOrInsert(code, { second, lines: 0, suppressed: 0 });
      if (counter.second !== second) Object.assign(counter, { second, lines: 0 });
      if (++counter.lines > refusalsPerSecondMax) {
        counter.suppressed += 1;
        return;
      }
      suppressed = counter.suppressed;
      counter.suppressed = 0;
    }
    const shown = suppressed > 0 ? { ...event, suppressed } : event;
    const line = (pretty ? prettyLine : jsonLine)(new Date(nowMs).toISOString(), shown);
    pending += `${plain.test(line) ? line : visible(line)}\n`;
    if (pending.length > flushCharsMin) flush();
    else timer ??= setTimeout(flush, flushDelayMs);
  };
  return { log, flush };
}

const refusalsPerSecondMax = 100;
const flushDelayMs = 20;
const flushCharsMin = 64 * 1024;
const plain = /^[ -~]*$/;

function jsonLine(time: string, event: Readonly<Record<string, unknown>>): string {
  return `{"time":"${time}",${JSON.stringify(event).slice(1)}`;
}

function prettyLine(time: string, { event, ...rest }: Readonly<Record<string, unknown>>): string {
  const words = Object.entries(rest)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  return `${time.slice(11, 23)} ${event} ${words.join(" ")}`;
}

/**
 * Writes lines to a stream whose reader may be slow or gone. While 16 MiB wait in memory, lines are dropped. Afterwards
 * the event `log_dropped` says how many.
 */
export function boundedOutput(stream: {
  write(lines: string | Uint8Array, done: () => void): unknown;
}): (lines: string | Uint8Array) => void {
  let waitingBytes = 0;
  let dropped = 0;
  const write = (lines: string | Uint8Array) => {
    const bytes = Buffer.byteLength(lines);
    waitingBytes += bytes;
    stream.write(lines, () => {
      waitingBytes -= bytes;
    });
  };
  return (lines) => {
    if (waitingBytes + Buffer.byteLength(lines) > waitingBytesMax) {
      dropped += Buffer.from(lines).filter((byte) => byte === newline).length;
      return;
    }
    if (dropped > 0) write(`${jsonLine(new Date().toISOString(), { event: "log_dropped", lines: dropped })}\n`);
    dropped = 0;
    write(lines);
  };
}

const waitingBytesMax = 16 * 1024 * 1024;
const newline = 0x0a;
