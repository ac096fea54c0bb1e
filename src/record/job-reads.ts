import { Fault } from "../core/fault.ts";

/** A read by a job whose trust bounds how often it may read. */
export type JobRead = {
  readonly trustId: string;
  /** SHA-256 of the claims that name the job, in hex. */
  readonly job: string;
  readonly readsMax: number;
  /** For how long the count is needed after this read, in milliseconds of the database's clock. */
  readonly keptMs: number;
};

/** Reads by one job that are counted in the commit that stores their entries. */
export type JobReads = JobRead & { readonly reads: number };

/** The refusal of a job that had all its answers. */
export class Overused extends Fault {
  constructor({ trustId, readsMax }: JobRead) {
    super("unauthorized", `trust ${trustId} gives a job ${readsMax} answers with values, and this job had them`);
  }
}
