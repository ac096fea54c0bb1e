import { expect, test } from "bun:test";
import { join } from "node:path";

/** What serve does, with seconds of 10 ms. */
const program = `import { startWatchdog } from ${JSON.stringify(join(import.meta.dir, "../../src/serve/process/watchdog.ts"))};
startWatchdog(false, 10);
for (;;);`;

test("a process whose event loop stands still is ended, with one line in its log", async () => {
  const child = Bun.spawn([process.execPath, "--no-env-file", "-e", program], { stdin: "ignore" });
  const stdout = await child.stdout.text();
  await child.exited;
  expect(child.signalCode).toBe("SIGKILL");
  expect(stdout.match(/"event":"event_loop_stuck"[^\n]*/g)).toEqual([
    `"event":"event_loop_stuck","pid":${child.pid},"seconds":10}`,
  ]);
});
