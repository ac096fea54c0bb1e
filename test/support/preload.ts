import { afterAll, setDefaultTimeout } from "bun:test";
import "./seed.ts";
import { reportWaits } from "./eventually.ts";
import { removeFolders } from "./folder.ts";
import { reportMissing } from "./programs.ts";
import { noteFile } from "./report.ts";
import { memoryFolder } from "./scratch.ts";

// `test/run.ts` has set it.
const folder = process.env["TMPDIR"] || memoryFolder();
if (folder !== undefined) process.env["TMPDIR"] = folder;

// The usual one: some tests compare the modes of files that they make without one.
process.umask(0o022);

/** Tests must not depend on this machine's settings, so they are removed. `test/run.ts` passes only KEYHOLE_TEST_*. */
for (const name of Object.keys(process.env)) {
  const ours = name.startsWith("KEYHOLE_") && !name.startsWith("KEYHOLE_TEST_");
  if (ours || ["DATABASE_URL", "HOST", "PORT"].includes(name)) delete process.env[name];
}

// For `bun test FILE`, as in `test/run.ts`: it ends tests that hang, and none that is only slow.
setDefaultTimeout(60_000);
noteFile("begins", Bun.main);
afterAll(() => {
  reportWaits();
  reportMissing();
  removeFolders();
  noteFile("ended", Bun.main);
});
