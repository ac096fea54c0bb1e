/**
 * The command line as a manual: each text in transcripts/ is a list of commands and what they print. `month.test.ts` has
 * the longest. A run plays a third of them with the built program, which third the seed says, and a long run all:
 * `transcripts-here.test.ts` plays each of them sooner.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { seed } from "../support/seed.ts";
import { long } from "../support/server.ts";
import { testTranscript } from "../support/transcript.ts";

const folder = join(import.meta.dir, "transcripts");
for (const [at, name] of readdirSync(folder).sort().entries())
  if (long || at % 3 === seed % 3) testTranscript(join(folder, name), "built");
