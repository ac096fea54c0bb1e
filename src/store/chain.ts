import { eq } from "drizzle-orm";
import { type Acceptance, parseGap } from "../audit/flaw.ts";
import { commandsLane, decodeEntries } from "../audit/segment.ts";
import type { Chain } from "../audit/verify.ts";
import type { Database } from "./database.ts";
import { laneEnd, segmentsByLane } from "./segments.ts";

/** A chain, with what the database holds beside its segments. */
export async function chainOf(
  database: Database,
  segments: Chain["segments"] = (from) => segmentsByLane(database, {}, from),
): Promise<Chain> {
  const acceptances: Acceptance[] = [];
  const start = { lane: commandsLane, seq: 0 };
  for await (const segment of segmentsByLane(database, { texts: [["audit.accept"]] }, start)) {
    for (const { action, names } of decodeEntries(segment) ?? []) {
      const [gap = "", ...seals] = names;
      const range = parseGap(gap);
      if (action === "audit.accept" && range) acceptances.push({ ...range, seals });
    }
  }
  const { auditCheckpoints: c } = database.tables;
  const dropped = async (lane: string) => (await database.db.select().from(c).where(eq(c.lane, lane)))[0];
  return { segments, dropped, acceptances, end: () => laneEnd(database, commandsLane) };
}
