import { flag } from "../desk/inputs.ts";

/* The mark of items whose values no person reads. Where it is sealed: `seal/canary.ts`. Where it is kept: `open.ts`. */

/** For what writes an item. */
export const machinesOnlyInput = flag(
  "--machines-only",
  "no person reads it from now on, keys and trusts do, until it is deleted; whoever may make a key for it (an operator, who holds the root key, always may) can still read it by a key that they make",
);

/** For what has written one. */
export const machinesOnlySentence =
  "It is for machines only: no person reads it, but whoever may make a key for it (an operator, who holds the root key, always may) can still read it by a key that they make.";
