import { write } from "node:fs";
import { openLog } from "./log.ts";
import { type Alive, aliveEveryMs } from "./watchdog.ts";

declare const self: Worker;

const silentSecondsMax = 10;

/** Counted by this thread, not by a clock: a container that was stopped as a whole has not been silent. */
let silentSeconds = 0;
let pretty = false;

self.onmessage = ({ data }: MessageEvent<Alive>) => {
  silentSeconds = 0;
  pretty = data.pretty;
};

const watching = setInterval(() => {
  silentSeconds += 1;
  if (silentSeconds <= silentSecondsMax) return;
  clearInterval(watching);
  // Only this signal ends a process whose event loop stands still. What it acknowledged is stored.
  const end = () => process.kill(process.pid, "SIGKILL");
  setTimeout(end, 1000); // even if nobody reads the log
  const { log, flush } = openLog((line) => write(1, line, end), { pretty, now: Date.now });
  log({ event: "event_loop_stuck", pid: process.pid, seconds: silentSecondsMax });
  flush();
}, aliveEveryMs);
