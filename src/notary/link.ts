import type { Log } from "../core/log.ts";
import type { Keyring } from "../seal/keyring.ts";
import type { Config, WitnessSetting } from "../settings/settings.ts";
import { type Database, databaseErrorCode } from "../store/database.ts";
import { threadUrl } from "../thread-url.ts";
import { openSigners } from "./signers.ts";
import { type Away, openWitnesses } from "./witnessed-heads.ts";

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
      /** The kind that each action of machines reads. */
      readonly kindsByRead: Readonly<Record<string, string>>;
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

/**
 * Starts the notary of the embedded database in a thread of its own. The first one writes its key. If it cannot, such as
 * while a command holds the lock, reads go on, the log says so, and it is tried again.
 */
export async function startNotary(
  installation: Opened,
  file: string,
  { checkpointFile, witnesses = [] }: Pick<Config, "checkpointFile" | "witnesses">,
  kindsByRead: Readonly<Record<string, string>>,
  log: Log,
): Promise<RunningNotary> {
  const unasked = openWitnesses(witnesses).map(({ verifier }) => [verifier.name, "no notary asks it"]);
  let flaws = 1;
  let away: Away = Object.fromEntries(unasked);
  let failure: string | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let close = async () => {};
  let closing = false;
  const failed = (reason: string) => log({ event: "notary_failed", reason });
  const begin = async () => {
    const signers = await signersOf(installation).catch((error: unknown) => {
      const code = databaseErrorCode(error);
      const reason = code === "no code" && error instanceof Error ? error.message : code;
      if (reason !== failure) failed(reason);
      failure = reason;
    });
    if (closing) return;
    if (signers === undefined) {
      timer = setTimeout(() => void begin(), againMs);
      return;
    }
    [flaws, away] = [0, {}];
    const thread = new Worker(threadUrl("notary/thread.ts"));
    const send = (order: NotaryOrder) => thread.postMessage(order);
    const closed = Promise.withResolvers<void>();
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
    send({ open: file, auditKey, name: signers[0].name, seeds, checkpointFile, witnesses, kindsByRead });
    close = async () => {
      send({ close: true });
      await closed.promise;
      thread.terminate();
    };
  };
  await begin();
  return {
    flaws: () => flaws,
    away: () => away,
    close: async () => {
      closing = true;
      clearTimeout(timer);
      await close();
    },
  };
}

const againMs = 1000;

/** What a notary needs of an installation. */
type Opened = {
  readonly open: (use: "journal") => Database;
  readonly keyring: Keyring;
  readonly systemKeys: { readonly audit: Uint8Array };
};

async function signersOf({ open, keyring, systemKeys }: Opened) {
  // For this use nothing waits for a lock: the API's own thread does this.
  const database = open("journal");
  return openSigners(database, keyring, systemKeys.audit).finally(() => database.close());
}
