/** What is waited for right now. */
const waits = new Set<() => unknown>();

/**
 * Polls until the result is neither false nor undefined. It gives up when the test does, and no sooner: how long
 * something takes on a busy machine says nothing about it.
 */
export async function eventually<T>(look: () => Promise<T | false | undefined> | T | false | undefined): Promise<T> {
  waits.add(look);
  for (;;) {
    const found = await look();
    if (found !== undefined && found !== false) {
      waits.delete(look);
      return found;
    }
    await Bun.sleep(10);
  }
}

/** Says what never happened. The report of a test that timed out has its name alone. */
export function reportWaits(): void {
  for (const look of waits) process.stderr.write(`This was waited for, and never happened: ${look}\n`);
}
