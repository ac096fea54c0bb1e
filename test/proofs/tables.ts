import { machinesOnly } from "./machines-only.ts";
import type { Proof } from "./proof.ts";
import { sets } from "./sets.ts";
import { trusts } from "./trusts.ts";

/** Every proof, by what it is about. `docs/maintainers/proofs.md` lists how many there are of each. */
export const tables: Readonly<Record<string, readonly Proof[]>> = {
  "sets: whole, in their place and as they were written": sets,
  "what is for machines only": machinesOnly,
  "trusts: who may read what, by token": trusts,
};
