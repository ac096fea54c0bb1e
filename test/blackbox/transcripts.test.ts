/** The command line as a manual: each text in transcripts/ is a list of commands and what they print. `month.test.ts` has the longest. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { testTranscript } from "../support/transcript.ts";

const folder = join(import.meta.dir, "transcripts");
for (const name of readdirSync(folder).sort()) testTranscript(join(folder, name), "built");
