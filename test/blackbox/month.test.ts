/** A month of a team, which reads like a story. */
import { join } from "node:path";
import { testTranscript } from "../support/transcript.ts";

testTranscript(join(import.meta.dir, "month.md"), "built");
