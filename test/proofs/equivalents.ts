/** Faults that change nothing anybody could see: the file, the text, what is done to it (`test/support/mutate.ts`), why. */
export const equivalents: readonly (readonly [file: string, text: string, fault: string, why: string])[] = [
  ["src/seal/envelope.ts", "opened?.fill(0);", "left out", "nobody holds the memory any more that it erases"],
  ["src/seal/file-content.ts", "opened.fill(0);", "left out", "nobody holds the memory any more that it erases"],
  ["src/seal/file-content.ts", "piece.fill(0);", "left out", "nobody holds the memory any more that it erases"],
  ["src/seal/file-content.ts", "discard(piece);", "left out", "it gives memory back that nobody holds any more"],
  ["src/seal/file-content.ts", "at < ciphertext.length", "moved by one", "a last piece without a byte"],
  ["src/seal/new-set.ts", "plaintext.fill(0);", "left out", "nobody holds the memory any more that it erases"],
  ["src/seal/set.ts", "plaintext.fill(0);", "left out", "nobody holds the memory any more that it erases"],
  ["src/serve/limit/budget.ts", "this.#waiting.size > 0", "moved by one", "without a waiter, nobody is admitted"],
  [
    "src/serve/limit/unrecognized.ts",
    "(this.#fullAtUs[entry] as number) < (this.#fullAtUs[soonest] as number)",
    "moved by one",
    "of two that are full at one moment, the other one goes",
  ],
  ["src/serve/access/grant-seals.ts", "row.live", "never", "what is not remembered is verified again"],
  [
    "src/serve/sets/lookup.ts",
    "source.remembered.remember(set, descriptor.kind);",
    "left out",
    "what is not remembered is verified again",
  ],
  ["src/serve/sets/remembered.ts", "stored.sealed === null", "always", "a set that is there as this very row stays"],
];
