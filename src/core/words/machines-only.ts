/** What the mark of an item does, and what it does not stop: one sentence, because its first half alone is not true. */
export const whoStillReads =
  "no person's right reveals it, but anyone who may create a key for it, and every operator, can still read it with such a key";

/** What is said of an item that has the mark. */
export const machinesOnlySentence = `It is for machines only: ${whoStillReads}.`;
