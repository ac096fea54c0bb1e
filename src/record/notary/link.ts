import type { Log } from "../../core/log.ts";
import type { Config } from "../../core/settings/settings.ts";
import type { Keyring } from "../../seal/keyring.ts";
import type { Database } from "../../store/database.ts";
import { whyFailed } from "../../store/failures.ts";
import { threadUrl } from "../../thread-url.ts";
import type { Flaw } from "../flaw.ts";
import type { Notary, NotaryOptions, Samples } from "./notary.ts";
import { openSigners } from "./signers.ts";
import { openWitnesses } from "./witnessed-heads.ts";

/** What the notary's thread is told: where the database is and its keys, then to end. */
export type NotaryOrder =
  | (Pick<NotaryOptions, "auditKey" | "kindsByRead"> &
      Pick<Config, "checkpointFile" | "witnesses"> & {
        readonly open: string;
        /** Of the signers, and the 32 bytes of each, the one that signs first. */
        readonly name: string;
        readonly seeds: readonly Uint8Array[];
        /** What was wrong with their rows when it started. */
        readonly damaged: readonly Flaw[];
      })
  | { readonly close: true };
/** What it answers. */
export type NotaryNews =
  | { readonly log: Readonly<Record<string, unknown>> }
  | Pick<Notary, KnownParts>
  | { readonly closed: true };

type KnownParts = "flaws" | "away" | "completeAt" | "lookedAt" | "samples";

/** A notary that makes its rounds, in this thread or in another one. */
export type RunningNotary = Pick<Notary, KnownParts | "stop">;

/** Adds to the metrics of its process what a notary knows. */
export function watchNotary(metrics: Watching | undefined, notary: RunningNotary): void {
  const away = () => Object.keys(notary.away).length;
  metrics?.watch("keyhole_audit_flaws", "Flaws that the notary knows of in the audit.", () => notary.flaws);
  metrics?.watch("keyhole_witnesses_away", "Witnesses that have not signed the newest head.", away);
  const ageHelp = "Seconds since the notary's last complete round, or since its start.";
  const since = (at: number) => Math.max(0, Date.now() - at) / 1000;
  metrics?.watch("keyhole_notary_round_age_seconds", ageHelp, () => since(notary.completeAt));
  const lookHelp =
    "Seconds since the oldest look at a segment that no sealed month has, at most; or since the notary's start.";
  metrics?.watch("keyhole_notary_look_age_seconds", lookHelp, () => since(notary.lookedAt));
  const sealedHelp = "Leaves of sealed months whose entries retention has kept.";
  metrics?.watch("keyhole_notary_sealed_leaves", sealedHelp, () => notary.samples.of);
  const sampledHelp = "Leaves of sealed months that the last round looked at.";
  metrics?.watch("keyhole_notary_sampled_leaves", sampledHelp, () => notary.samples.looked);
}

type Watching = { readonly watch: (name: string, help: string, read: () => number) => void };

/**
 * Starts the notary of the embedded database in a thread of its own. The first one writes its key. If it cannot, such as
 * while a command holds the lock, reads go on, the log says so, and it is tried again.
 */
export async function startNotary(
  installation: NotaryNeeds,
  file: string,
  { checkpointFile, witnesses }: Pick<Config, "checkpointFile" | "witnesses">,
  kindsByRead: NotaryOptions["kindsByRead"],
  log: Log,
): Promise<RunningNotary> {
  const unasked = openWitnesses(witnesses).map(({ verifier }) => [verifier.name, "no notary asks it"]);
  const known = {
    ...{ flaws: 1, away: Object.fromEntries(unasked), completeAt: Date.now(), lookedAt: Date.now() },
    ...{ samples: { of: 0, looked: 0 } as Samples, stop },
  };
  let failure: string | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let thread: Worker | undefined;
  let isStopping = false;
  const closed = Promise.withResolvers<void>();
  const failed = (reason: string) => log({ event: "notary_failed", reason });
  const begin = async () => {
    const found = await signersOf(installation).catch((error: unknown) => {
      const reason = whyFailed(error);
      if (reason !== failure) failed(reason);
      failure = reason;
    });
    if (isStopping) return;
    if (found === undefined) {
      timer = setTimeout(begin, againMs);
      return;
    }
    Object.assign(known, { flaws: 0, away: {} });
    thread = new Worker(threadUrl("record/notary/thread.ts"));
    thread.onmessage = ({ data }: MessageEvent<NotaryNews>) => {
      if ("log" in data) log(data.log);
      else if ("flaws" in data) Object.assign(known, data);
      else closed.resolve();
    };
    thread.onerror = ({ message }) => {
      failed(`its thread ended: ${message}`);
      known.flaws += 1;
      closed.resolve();
    };
    const { signers, flaws: damaged } = found;
    const [name, seeds] = [signers[0].name, signers.map(({ seed }) => seed)];
    const auditKey = installation.systemKeys.audit;
    const order: NotaryOrder = { open: file, auditKey, name, seeds, damaged, checkpointFile, witnesses, kindsByRead };
    thread.postMessage(order);
  };
  async function stop() {
    isStopping = true;
    clearTimeout(timer);
    if (thread === undefined) return;
    thread.postMessage({ close: true } satisfies NotaryOrder);
    await closed.promise;
    thread.terminate();
  }
  await begin();
  return known;
}

const againMs = 1000;

/** What a notary needs of an installation. */
type NotaryNeeds = {
  readonly open: (use: "journal") => Database;
  readonly keyring: Keyring;
  readonly systemKeys: { readonly audit: Uint8Array };
};

async function signersOf({ open, keyring, systemKeys }: NotaryNeeds) {
  // For this use nothing waits for a lock: the API's own thread does this.
  const database = open("journal");
  return openSigners(database, keyring, systemKeys.audit).finally(() => database.close());
}
