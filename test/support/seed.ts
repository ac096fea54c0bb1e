import fc from "fast-check";

/**
 * Seeds the random choices of property tests and attacks. Set KEYHOLE_TEST_SEED to make other choices; a failure
 * reports its seed. Keys, ids and contents whose value does not matter are random in every run.
 */
export const seed = Number(process.env["KEYHOLE_TEST_SEED"] ?? 1);
if (!Number.isSafeInteger(seed)) throw new Error("KEYHOLE_TEST_SEED is a whole number.");

fc.configureGlobal({ seed });

/** Numbers the tests that share the work of one, so that none takes long on a slow machine: 1, 2, … */
export function parts(count: number): number[] {
  return Array.from({ length: count }, (_, at) => at + 1);
}
