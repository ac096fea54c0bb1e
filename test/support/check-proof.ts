import { type Proved, proofChecker, type Unproved } from "../../src/record/proof.ts";

/** Checks one proof, as {@link proofChecker} does. */
export function checkProof(document: unknown, ...keys: Parameters<typeof proofChecker>): Proved | Unproved {
  return proofChecker(...keys)(document);
}
