import fc from "fast-check";

/**
 * Of the random choices that properties and attacks make: KEYHOLE_TEST_SEED makes others, and a failure names the seed it
 * was found with. Keys, ids and contents that only have to be some are new each time.
 */
export const seed = Number(process.env["KEYHOLE_TEST_SEED"] ?? 1);
if (!Number.isSafeInteger(seed)) throw new Error("KEYHOLE_TEST_SEED is a whole number.");

fc.configureGlobal({ seed });
