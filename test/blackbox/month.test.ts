/** A month of a team, as a page that reads like a story. */
import { join } from "node:path";
import { testTranscript } from "../support/transcript.ts";

testTranscript(join(import.meta.dir, "../../docs/month.md"), "built");
