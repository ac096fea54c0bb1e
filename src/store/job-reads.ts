import { lte } from "drizzle-orm";
import type { Database } from "./database.ts";

/** Removes the counts that are not needed any more. The journal writes them, with the entries of the reads. */
export async function pruneJobReads({ db, tables }: Database, nowMs: number): Promise<void> {
  await db.delete(tables.jobReads).where(lte(tables.jobReads.endsAt, nowMs));
}
