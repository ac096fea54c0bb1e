import { write } from "node:fs";
import { openLog } from "./log.ts";
import { aliveEveryMs, Silence, stuck } from "./silence.ts";
import type { Alive } from "./watchdog.ts";

declare const self: Worker;

const silence = new Silence();
let pretty = false;

self.onmessage = ({ data }: MessageEvent<Alive>) => {
  silence.heard();
  pretty = data.pretty;
};

const watching = setInterval(() => {
  if (!silence.isTooLong()) return;
  clearInterval(watching);
  // Nothing else ends a process whose event loop stands still. What it acknowledged is stored.
  const end = () => process.kill(process.pid, "SIGKILL");
  setTimeout(end, 1000); // even if nobody reads the log
  const { log, flush } = openLog((line) => write(1, line, end), { pretty, now: Date.now });
  log(stuck(process.pid));
  flush();
}, aliveEveryMs);
