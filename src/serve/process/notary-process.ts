import type { Log } from "../../core/log.ts";
import type { Config } from "../../core/settings/settings.ts";
import { version } from "../../core/version.ts";
import type { Installation } from "../../installation/installation.ts";
import { refusePooler } from "../../installation/serving.ts";
import { kindsByRead } from "../../kinds/kind.ts";
import { watchNotary } from "../../record/notary/link.ts";
import type { NewestCheckpoint } from "../../record/notary/newest-checkpoint.ts";
import { Notary, shared } from "../../record/notary/notary.ts";
import { findVerifiers, openSigners } from "../../record/notary/signers.ts";
import { type Database, databaseErrorCode, isStrayConnectionFailure, warm } from "../../store/database.ts";
import { isInTime, watchReadiness } from "./health.ts";
import { openOps } from "./serve.ts";

/** Runs the notary of a database on PostgreSQL, until SIGTERM or SIGINT. */
export async function runNotary(
  config: Config,
  { open, keyring, systemKeys, checkpoint, servers }: Installation,
  log: Log,
  say: (line: string) => void,
): Promise<void> {
  if (servers !== undefined) servers.tell = log;
  const database = open("notary");
  await refusePooler(database, "notary");
  const auditKey = systemKeys.audit;
  const { signers } = await openSigners(database, keyring, auditKey);
  const damaged = async () => (await findVerifiers(database, keyring, auditKey)).flaws;
  const options = { database, auditKey, signers, damaged, kindsByRead, checkpoint, witnesses: config.witnesses };
  const notary = new Notary({ ...options, log, now: Date.now, rest: shared(workedMs, Bun.sleep) });
  // Of its own: a check must not wait behind a round.
  const asked = open("watch");
  const ops = config.ops && (await notarysOps(config.ops, asked, servers, notary, checkpoint, log, say));
  const signalled = untilSignal(log);
  notary.run();
  say("The notary looks for new audit entries every 60 s.");
  await signalled;
  await notary.stop();
  await ops?.stop();
  await asked.close();
}

/** Processor time of this process so far. */
function workedMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Health and metrics, as a server has them. */
async function notarysOps(
  address: NonNullable<Config["ops"]>,
  database: Database,
  servers: Installation["servers"],
  notary: Notary,
  checkpoint: NewestCheckpoint,
  log: Log,
  say: (line: string) => void,
) {
  const { Metrics, summed, watchCheckpoint } = await import("./metrics.ts");
  const metrics = new Metrics(version, database.dialect);
  watchNotary(metrics, notary);
  watchCheckpoint(metrics, checkpoint);
  const isThere = () => warm(database).then(() => true);
  const readiness = watchReadiness(
    { database: isThere, notary: async () => isInTime(notary) },
    () => false,
    log,
    () => notary.away,
    () => servers?.refusal ?? notary.failure,
  );
  return openOps(address, { readiness, metrics: async (ready) => summed([await metrics.scrape()], ready) }, say);
}

/** Resolves on SIGTERM and SIGINT. A connection that is lost does not end the notary: its next round makes another. */
function untilSignal(log: Log): Promise<void> {
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, (error: unknown) => {
      if (!isStrayConnectionFailure(error)) throw error;
      log({ event: "connection_lost", code: databaseErrorCode(error) });
    });
  }
  return new Promise((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => resolve());
  });
}
