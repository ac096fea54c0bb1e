/** What `transcripts.test.ts` proves of the built program on both databases, sooner: most commands run in this process. */
import { setDefaultTimeout } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { testTranscript } from "../support/transcript.ts";

setDefaultTimeout(60_000);

const folder = join(import.meta.dir, "transcripts");
const names = readdirSync(folder).filter((name) => name !== "month.txt");
for (const name of names.sort()) testTranscript(join(folder, name), "here");
