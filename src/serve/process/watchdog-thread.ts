import { write } from "node:fs";
import { openLog } from "./log.ts";
import type { Alive } from "./watchdog.ts";

declare const self: Worker;

const silentSecondsMax = 10;

/** Counted by this thread, not by a clock: a container that was stopped as a whole has not been silent. */
let silentSeconds = 0;
let watching: Timer | undefined;

self.onmessage = ({ data }: MessageEvent<Alive>) => {
  silentSeconds = 0;
  watching ??= setInterval(look, data.everyMs, data.pretty);
};

function look(pretty: boolean): void {
  silentSeconds += 1;
  if (silentSeconds <= silentSecondsMax) return;
  clearInterval(watching);
  // Only this signal ends a process whose event loop stands still. What it acknowledged is stored.
  const end = () => process.kill(process.pid, "SIGKILL");
  setTimeout(end, 1000); // even if nobody reads the log
  const { log, flush } = openLog((line) => write(1, line, end), { pretty, now: Date.now });
  log({ event: "event_loop_stuck", pid: process.pid, seconds: silentSecondsMax });
  flush();
}
