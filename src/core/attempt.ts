/** What a step returns; undefined if it throws. For what must not stop yet, or at all. */
export function attempt<T>(step: () => T): T | undefined {
  try {
    return step();
  } catch {
    return undefined;
  }
}
