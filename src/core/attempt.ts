/** What a step returns; undefined if it throws. For what must not stop a command, such as cleaning up. */
export function attempt<T>(step: () => T): T | undefined {
  try {
    return step();
  } catch {
    return undefined;
  }
}
