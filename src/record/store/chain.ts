import { eq } from "drizzle-orm";
import type { Database } from "../../store/database.ts";
import { type Acceptance, parseGap } from "../flaw.ts";
import { commandsLane, decodeEntries } from "../segment.ts";
import type { Chain } from "../verify.ts";
import { laneEnd } from "./lane-end.ts";
import { segmentsByLane } from "./segments.ts";
import { leavesAt, segmentBefore } from "./tree.ts";

/** What a database holds beside the segments that are verified. */
export function chainOf(database: Database): Chain {
  const { auditCheckpoints: c } = database.tables;
  return {
    before: ({ lane, firstSeq }) => segmentBefore(database, { lane, seq: firstSeq }),
    dropped: async (lane) => (await database.db.select().from(c).where(eq(c.lane, lane)))[0],
    known: async () => {
      const acceptances: Acceptance[] = [];
      const prunes: string[] = [];
      const start = { lane: commandsLane, seq: 0 };
      for await (const segment of segmentsByLane(
        database,
        { having: [{ texts: ["audit.accept", "audit.prune"] }] },
        start,
      )) {
        for (const { action, names } of decodeEntries(segment) ?? []) {
          const [gap = "", ...seals] = names;
          const range = parseGap(gap);
          if (action === "audit.accept" && range) acceptances.push({ ...range, seals });
          if (action === "audit.prune") prunes.push(...seals);
        }
      }
      return { acceptances, prunes };
    },
    leavesAt: (leaves) => leavesAt(database, leaves),
    end: () => laneEnd(database, commandsLane),
  };
}
