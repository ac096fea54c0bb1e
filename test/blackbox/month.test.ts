/** A month of a team, as a page that reads like a story. */
import { setDefaultTimeout } from "bun:test";
import { join } from "node:path";
import { testTranscript } from "../support/transcript.ts";

setDefaultTimeout(60_000);

testTranscript(join(import.meta.dir, "../../docs/month.md"), "built");
