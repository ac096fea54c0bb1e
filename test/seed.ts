import fc from "fast-check";

/**
 * Of every random choice that a test makes: KEYHOLE_TEST_SEED makes others, and a failure names the seed it was found
 * with. Two runs of the same code try the same; keys and ids alone are new each time.
 */
export const seed = Number(process.env["KEYHOLE_TEST_SEED"] ?? 1);

fc.configureGlobal({ seed });
