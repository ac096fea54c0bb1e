import { openSqlite } from "../../store/sqlite.ts";
import { signerOf } from "../note.ts";
import type { NotaryNews, NotaryOrder } from "./link.ts";
import { NewestCheckpoint } from "./newest-checkpoint.ts";
import { Notary, shared } from "./notary.ts";

// The embedded database's notary, in its own thread: it reads and hashes much, and no request may wait for that.
declare const self: Worker;

const say = (news: NotaryNews) => self.postMessage(news);
let notary: Notary | undefined;

self.onmessage = ({ data }: MessageEvent<NotaryOrder>) => {
  if ("close" in data) return void notary?.stop().then(() => say({ closed: true }));
  const { open, name, seeds, damaged, checkpointFile: file, ...order } = data;
  const [first, ...older] = seeds.map((seed) => signerOf(name, seed));
  if (first === undefined) throw new Error("the notary was given no key to sign with");
  const signers = [first, ...older] as const;
  const made = new Notary({
    ...order,
    database: openSqlite(open, "notary"),
    signers,
    damaged: async () => damaged,
    checkpoint: new NewestCheckpoint({ ...order, signers: async () => signers, file }),
    log: (event) => say({ log: event }),
    now: Date.now,
    told: () => {
      const { flaws, away, completeAt, lookedAt, samples } = made;
      say({ flaws, away, completeAt, lookedAt, samples });
    },
    rest: shared(threadMs, Bun.sleep),
  });
  notary = made;
  made.run();
};

/** Processor time of this thread so far. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
