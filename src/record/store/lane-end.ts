import { desc, eq, sql } from "drizzle-orm";
import type { Database } from "../../store/database.ts";
import type { LaneEnd } from "../head.ts";

/* Where a lane of the audit ends. */

/** The head of a lane and the newest segment of it, both of one moment. */
export async function laneEnd({ db, tables }: Pick<Database, "db" | "tables">, lane: string): Promise<LaneEnd> {
  const { auditHeads: h, auditSegments: s } = tables;
  const head = db.select().from(h).where(eq(h.lane, lane)).as("head");
  const newest = db
    .select({ lane: s.lane, firstSeq: s.firstSeq, lastSeq: s.lastSeq, mac: s.mac })
    .from(s)
    .where(eq(s.lane, lane))
    .orderBy(desc(s.firstSeq), desc(s.at))
    .limit(1)
    .as("newest");
  const [end] = await db.select().from(head).fullJoin(newest, eq(newest.lane, head.lane));
  return { lane, head: null, newest: null, ...end };
}

/** Reads the head of a lane that several processes write; undefined if there is none, or its mac has not 32 bytes. */
export function laneHead(database: Database, lane: string): () => Promise<LaneEnd["head"] | undefined> {
  const { auditHeads: h } = database.tables;
  const find = database.query<NonNullable<LaneEnd["head"]>>(sql`
    select ${h.lane} as lane, ${h.seq} as seq, ${h.at} as at, ${h.mac} as mac, ${h.roster} as roster, ${h.seal} as seal
    from ${h} where ${h.lane} = ${sql.placeholder("lane")} and length(${h.mac}) = 32`);
  return async () => (await find({ lane }))[0];
}
