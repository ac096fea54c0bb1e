import type { Caller } from "../access/authenticate.ts";
import { Fault } from "../fault.ts";
import { itemsMax, variableValueBytesMax } from "../names.ts";
import { setBytesMax } from "../render/variables-json.ts";
import { overheadBytes } from "../seal/envelope.ts";
import type { PartRow } from "../store/place.ts";

/** What one read has of a {@link Budget}: see `limit/budget.ts`, as for the rest. */
export type Share = {
  readonly bytes: number;
  readonly waitedForMs: () => number;
  readonly resize: (bytes: number) => void;
  readonly release: () => void;
};

/** Where a read asks for the memory that it will take. */
export type Budget = {
  take(bytes: number, holder: string): Share | undefined;
  acquire(bytes: number, holder: string, signal?: AbortSignal, deadlineMs?: number): Promise<Share>;
};

/**
 * Memory for values, in sealed bytes. Small reads, which are nearly all there are, wait for small ones alone, and large
 * ones for large ones: whoever reads 64 MiB must hold up neither an environment of 20 variables nor one of 1000.
 */
export type ValueMemory = { readonly small: Budget; readonly large: Budget; readonly vast: Budget };

/** The most sealed bytes of a small read; its answer is made whole and handed over at once. */
export const smallReadBytesMax: number = 256 * 1024;

/** The most sealed bytes of a large read; what has more is vast. No set that is kept has as many. */
export const largeReadBytesMax: number = 8 * 1024 * 1024;

/** The most sealed bytes that a read can come to: 1000 values of 64 KiB, and the set that they are held against. */
export const readBytesMax: number = itemsMax * (variableValueBytesMax + overheadBytes) + setBytesMax + overheadBytes;

/** How long a read may wait for memory: the request's 5 s hold the read itself, too. */
const waitMsMax = 4000;

/**
 * Memory for a read of so many bytes: at once where it is there, so that the usual read stays one step with what follows.
 * @throws Fault `unavailable` where the client went away or others kept it too long; `decryption_failed` for more bytes
 *   than were ever written here
 */
export function claim(
  memory: ValueMemory,
  bytes: number,
  caller: Caller,
  signal: () => AbortSignal,
  deadlineMs: number = waitMsMax,
): Share | Promise<Share> {
  return (
    takeAtOnce(memory, bytes, caller) ??
    budgetOf(memory, bytes).acquire(bytes, caller.grant.keyId, signal(), deadlineMs)
  );
}

/** The same without waiting: undefined where there is none at this moment. */
export function takeAtOnce(memory: ValueMemory, bytes: number, caller: Caller): Share | undefined {
  if (bytes > readBytesMax) throw new Fault("decryption_failed", `${bytes} sealed bytes: more than is ever written`);
  return budgetOf(memory, bytes).take(bytes, caller.grant.keyId);
}

function budgetOf(memory: ValueMemory, bytes: number): Budget {
  if (bytes <= smallReadBytesMax) return memory.small;
  return bytes <= largeReadBytesMax ? memory.large : memory.vast;
}

/** Rows of items with the memory that they take. Whoever has it gives it back. */
export type ReadRows = { readonly rows: PartRow[]; readonly share: Share };

/**
 * Reads rows into memory that was asked for before they came. They are asked for as a small read, which they nearly
 * always are; where they are not, they come without what is sealed, and are asked for again once there is room.
 *
 * @param read - gives rows with at most so many sealed bytes, or says how many there are (`store/sized.ts`)
 * @returns more items than an answer may hold may come without what is sealed
 * @throws Fault as {@link claim}, and what `read` throws
 */
export async function readRows(
  memory: ValueMemory,
  caller: Caller,
  signal: () => AbortSignal,
  read: (bytesMax: number) => Promise<PartRow[]>,
): Promise<ReadRows> {
  const giveUpAt = performance.now() + waitMsMax;
  let bytesMax = smallReadBytesMax;
  while (performance.now() < giveUpAt) {
    const share = await claim(memory, bytesMax, caller, signal, giveUpAt - performance.now());
    try {
      const rows = await read(bytesMax);
      const found = rows.filter(({ part }) => part >= 2);
      const items = rows.filter(({ part }) => part === 2).length;
      const bytes = found.reduce((sum, row) => sum + (row.sealed?.length ?? row.number), 0);
      if (found.every(({ sealed }) => sealed !== null) || items > itemsMax) {
        share.resize(found.reduce((sum, row) => sum + (row.sealed?.length ?? 0), 0));
        return { rows, share };
      }
      bytesMax = bytes;
      share.release();
    } catch (error) {
      share.release();
      throw error;
    }
  }
  throw new Fault("unavailable", `not read within ${waitMsMax} ms: it grew meanwhile, or there was no time`);
}
