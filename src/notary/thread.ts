import { signerOf } from "../audit/note.ts";
import { openSqlite } from "../store/sqlite.ts";
import type { NotaryNews, NotaryOrder } from "./link.ts";
import { NewestCheckpoint } from "./newest-checkpoint.ts";
import { Notary } from "./notary.ts";
import { quarterOf } from "./rests.ts";

// The embedded database's notary, in its own thread: it reads and hashes much, and no request may wait for that.
declare const self: Worker;

const say = (news: NotaryNews) => self.postMessage(news);
let stop = async () => {};

self.onmessage = ({ data }: MessageEvent<NotaryOrder>) => {
  if ("open" in data) stop = open(data);
  else void stop().then(() => say({ closed: true }));
};

function open(order: Extract<NotaryOrder, { open: string }>): () => Promise<void> {
  const { open, auditKey, name, seeds, checkpointFile: file, witnesses, kindsByRead } = order;
  const database = openSqlite(open, "notary");
  const [first, ...older] = seeds.map((seed) => signerOf(name, seed));
  if (first === undefined) throw new Error("the notary was given no key to sign with");
  const signers = [first, ...older] as const;
  const checkpoint = new NewestCheckpoint({ auditKey, signers: async () => signers, file, witnesses });
  const log = (event: Readonly<Record<string, unknown>>) => say({ log: event });
  const told = () => say({ flaws: notary.flaws, away: notary.away });
  const options = { database, auditKey, signers, kindsByRead, checkpoint, witnesses };
  const rest = quarterOf(threadMs, Bun.sleep);
  const notary = new Notary({ ...options, log, now: Date.now, told, rest });
  notary.run();
  return async () => {
    await notary.stop();
    await database.close();
  };
}

/** Processor time of this thread so far. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
