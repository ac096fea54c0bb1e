/** A function whose calls at one moment are answered together. */
export type Grouped<Ask, Answer> = (ask: Ask) => Promise<Answer>;

/** How many asks one group holds at most, and when a group that is under way no longer holds the next one back. */
const asksMax = 256;
const patienceMs = 50;

/**
 * Groups calls: the first goes out at the end of its turn of the event loop, what arrives while a group is under way
 * makes up the next one. A lone caller waits for nobody, and every ask is in a group that began after it arrived. A
 * group that fails, or takes long, does so for its own asks alone.
 *
 * @param run - answers a group, in its order
 */
export function grouped<Ask, Answer>(run: (asks: readonly Ask[]) => Promise<readonly Answer[]>): Grouped<Ask, Answer> {
  const waiting: { ask: Ask; resolve: (answer: Answer) => void; reject: (reason: unknown) => void }[] = [];
  let scheduled = false;
  let underWay = 0;
  let lastSentAtMs = 0;
  let impatience: ReturnType<typeof setTimeout> | undefined;
  const send = async () => {
    scheduled = false;
    clearTimeout(impatience);
    impatience = undefined;
    const group = waiting.splice(0, asksMax);
    if (group.length === 0) return;
    if (waiting.length > 0) impatience = setTimeout(() => void send(), patienceMs);
    underWay += 1;
    lastSentAtMs = performance.now();
    try {
      const answers = await run(group.map(({ ask }) => ask));
      group.forEach(({ resolve }, index) => {
        resolve(answers[index] as Answer);
      });
    } catch (error) {
      for (const { reject } of group) reject(error);
    } finally {
      underWay -= 1;
      if (waiting.length > 0) void send();
    }
  };
  return (ask) =>
    new Promise((resolve, reject) => {
      waiting.push({ ask, resolve, reject });
      if (scheduled) return;
      const patienceLeftMs = underWay > 0 ? lastSentAtMs + patienceMs - performance.now() : 0;
      if (patienceLeftMs > 0) {
        impatience ??= setTimeout(() => void send(), patienceLeftMs);
        return;
      }
      scheduled = true;
      setImmediate(() => void send());
    });
}
