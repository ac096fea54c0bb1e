/** What the mark of an item does, and what it does not stop: one sentence, because its first half alone is not true. */
export const whoStillReads =
  "no right shows it, but whoever may make a key for it (an operator, who holds the root key, always may) can still read it by a key that they make";

/** What is said of an item that has the mark. */
export const machinesOnlySentence = `It is for machines only: ${whoStillReads}.`;
