import { envelopes } from "./envelopes.ts";
import { keys } from "./keys.ts";
import { machinesOnly } from "./machines-only.ts";
import type { Proof } from "./proof.ts";
import { reads } from "./reads.ts";
import { chain, entries, trees } from "./record.ts";
import { sets } from "./sets.ts";
import { trusts } from "./trusts.ts";

/** Every proof, by what it is about. `docs/maintainers/proofs.md` lists how many there are of each. */
export const tables: Readonly<Record<string, readonly Proof[]>> = {
  "sets: whole, in their place and as they were written": sets,
  "reads: what random histories find": reads,
  "what is for machines only": machinesOnly,
  "envelopes, and keys that wrap keys": envelopes,
  "keys: who may read what": keys,
  "trusts: who may read what, by token": trusts,
  "the audit: no value without its entry": entries,
  "the audit: no entry changed unseen": chain,
  "the audit's signed tree, its notes and proofs": trees,
};
