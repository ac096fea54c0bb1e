import { Problem } from "../../src/core/problem.ts";

/** The Problem with which a promise fails. Anything else is thrown on. */
export async function failing(promise: Promise<unknown>): Promise<Problem> {
  const error = await promise.then(
    () => new Error("it did not fail"),
    (thrown: unknown) => thrown,
  );
  if (error instanceof Problem) return error;
  throw error;
}
