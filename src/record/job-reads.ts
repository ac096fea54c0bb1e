import { Fault } from "../core/fault.ts";
import type { JobRead } from "../core/names.ts";

/** Reads by one job that are counted in the commit that stores their entries. */
export type JobReads = JobRead & { readonly reads: number };

/** The refusal of a job that had all its answers. */
export class Overused extends Fault {
  constructor({ trustId, readsMax }: JobRead) {
    super("unauthorized", `trust ${trustId} gives a job ${readsMax} answers with values, and this job had them`);
  }
}
