import { atMost } from "../../core/deadline.ts";
import { Refused } from "../../core/refused.ts";
import type { BucketName, Payer } from "../limit/bucket.ts";
import type { Readiness } from "./health.ts";
import type { Scrape } from "./metrics.ts";
import type { SharedBuckets, SharedDecision } from "./shared-limiter.ts";

/*
 * The channel between `serve --workers` and each of its workers. Workers take orders from this channel only: a terminal
 * or a service manager may send its signals to every process at once, and a second one would cut requests off.
 */

export type ToWorker =
  | { readonly type: "drain" | "portClosed" }
  | { readonly type: "ask"; readonly question: keyof WorkerAnswers; readonly id: number }
  | { readonly type: "taken"; readonly decision: SharedDecision; readonly id: number };
export type ToParent =
  | { readonly type: "listening" | "closed" }
  | { readonly type: "answer"; readonly answer: unknown; readonly id: number }
  | { readonly type: "take"; readonly bucket: BucketName; readonly payer: Payer; readonly id: number };

/** What the parent asks a worker. */
export type WorkerAnswers = { readonly readiness: () => Promise<Readiness>; readonly metrics: () => Promise<Scrape> };

/** A worker's end of the channel. */
export type WorkerLink = {
  readonly buckets: SharedBuckets;
  /** Tells the parent that this worker serves. `drain` is called when the parent says so or is gone. */
  readonly listening: (answers: WorkerAnswers, drain: () => void) => void;
  /** Tells the parent that this worker closed its port; resolves when all workers that stop with it have done so. */
  readonly portClosed: () => Promise<void>;
};

/** The option by which this program starts itself as a worker; its value says how the worker logs. */
export const workerFlag = "--worker";

/** Opens the channel. @throws Refused if no parent holds the other end */
export function openWorkerLink(): WorkerLink {
  if (process.send === undefined) throw new Refused("invalid", `${workerFlag} is for Keyhole itself: use --workers.`);
  const send = (message: ToParent) => void process.send?.(message);
  const decisions = new Pending<SharedDecision>();
  const { promise: allClosed, resolve: portClosed } = Promise.withResolvers<void>();
  let answers: WorkerAnswers | undefined;
  // A worker that is told to stop before it listens has nothing to finish.
  let drain = (): void => process.exit(0);
  process.on("message", async (message: ToWorker) => {
    if (message.type === "taken") decisions.settle(message.id, message.decision);
    else if (message.type === "ask")
      send({ type: "answer", answer: await answers?.[message.question](), id: message.id });
    else if (message.type === "drain") drain();
    else portClosed();
  });
  // Without its parent nobody would ever stop this worker.
  process.on("disconnect", () => {
    portClosed();
    drain();
  });
  return {
    buckets: {
      take: ({ keyId, rate }, bucket) =>
        decisions.open((id) => send({ type: "take", bucket, payer: { keyId, rate }, id })),
      connect: async () => {},
      close: () => {},
    },
    listening: (given, drainNow) => {
      answers = given;
      drain = drainNow;
      send({ type: "listening" });
    },
    portClosed: () => {
      send({ type: "closed" });
      return atMost(portClosedDeadlineMs, allClosed);
    },
  };
}

/** Questions that were sent and not answered yet. */
export class Pending<T> {
  readonly #resolvers = new Map<number, (answer: T) => void>();
  #nextId = 0;

  /** @param send - sends the question with this id */
  open(send: (id: number) => void): Promise<T> {
    const id = this.#nextId++;
    const { promise, resolve } = Promise.withResolvers<T>();
    this.#resolvers.set(id, resolve);
    send(id);
    return promise;
  }

  settle(id: number, answer: T): void {
    this.#resolvers.get(id)?.(answer);
    this.#resolvers.delete(id);
  }
}

/** Well within the deadline of the requests that wait for the port. */
const portClosedDeadlineMs = 1000;
