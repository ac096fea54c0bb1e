import type { Config, WitnessSetting } from "../core/settings.ts";
import type { Installation } from "../installation/installation.ts";
import { openSigners } from "../installation/signers.ts";
import { type Away, openWitnesses } from "../installation/witnessed-heads.ts";
import { threadUrl } from "../thread-url.ts";
import type { Log } from "./log.ts";

/** What the notary's thread is told: where the database is and its keys, then to end. */
export type NotaryOrder =
  | {
      readonly open: string;
      readonly auditKey: Uint8Array;
      /** Of the signers, and the 32 bytes of each, the one that signs first. */
      readonly name: string;
      readonly seeds: readonly Uint8Array[];
      /** Where this host keeps the newest checkpoint. */
      readonly checkpointFile: string | undefined;
      readonly witnesses: readonly WitnessSetting[];
    }
  | { readonly close: true };
/** What it answers. */
export type NotaryNews =
  | { readonly log: Readonly<Record<string, unknown>> }
  | { readonly flaws: number; readonly away: Away }
  | { readonly closed: true };

/** A notary that runs. */
export type RunningNotary = {
  /** How many flaws it knows. */
  readonly flaws: () => number;
  /** Which witnesses have not signed the newest head. */
  readonly away: () => Away;
  readonly close: () => Promise<void>;
};

export const awayMetric = ["keyhole_witnesses_away", "Witnesses that have not signed the newest head."] as const;
export const flawsMetric = ["keyhole_audit_flaws", "Flaws that the notary knows of in the audit."] as const;

/** Starts the notary of the embedded database in a thread of its own. Without one, reads go on and the log says so. */
export async function startNotary(
  installation: Installation,
  file: string,
  { checkpointFile, witnesses = [] }: Pick<Config, "checkpointFile" | "witnesses">,
  log: Log,
): Promise<RunningNotary> {
  const failed = (reason: string) => log({ event: "notary_failed", reason });
  const signers = await signersOf(installation).catch((error: unknown) => {
    failed(error instanceof Error ? error.message : "its keys do not open");
  });
  if (signers === undefined) {
    const unasked = openWitnesses(witnesses).map(({ verifier }) => [verifier.name, "no notary asks it"]);
    return { flaws: () => 1, away: () => Object.fromEntries(unasked), close: async () => {} };
  }
  const thread = new Worker(threadUrl("server/notary-thread.ts"));
  const send = (order: NotaryOrder) => thread.postMessage(order);
  const closed = Promise.withResolvers<void>();
  let flaws = 0;
  let away: Away = {};
  thread.onmessage = ({ data }: MessageEvent<NotaryNews>) => {
    if ("log" in data) log(data.log);
    else if ("flaws" in data) ({ flaws, away } = data);
    else closed.resolve();
  };
  thread.onerror = ({ message }) => {
    failed(`its thread ended: ${message}`);
    flaws += 1;
    closed.resolve();
  };
  const seeds = signers.map(({ seed }) => seed);
  const auditKey = installation.systemKeys.audit;
  send({ open: file, auditKey, name: signers[0].name, seeds, checkpointFile, witnesses });
  return {
    flaws: () => flaws,
    away: () => away,
    close: async () => {
      send({ close: true });
      await closed.promise;
      thread.terminate();
    },
  };
}

async function signersOf({ open, keyring, systemKeys }: Installation) {
  const database = open("notary");
  return openSigners(database, keyring, systemKeys.audit).finally(() => database.close());
}
