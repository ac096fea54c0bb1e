const asksMax = 256;

/**
 * Batches calls. A call is sent at the end of its turn of the event loop. Calls that arrive while a batch is under way
 * form the next one. A batch that fails or takes long affects its own members only.
 * @param run - answers a batch, in its order
 * @param patienceMs - how long a batch waits for the one before it
 * @param atOnce - sends a lone call at once, not at the end of the turn, where batches save little
 */
export function grouped<Ask, Answer>(
  run: (asks: readonly Ask[]) => Promise<readonly Answer[]>,
  patienceMs: number = 50,
  atOnce = false,
): (ask: Ask) => Promise<Answer> {
  const waiting: { ask: Ask; resolve: (answer: Answer) => void; reject: (reason: unknown) => void }[] = [];
  let scheduled = false;
  let underWay = 0;
  let lastSentAtMs = 0;
  let [lastSize, sentAlone] = [0, 0];
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
    lastSize = group.length;
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
      if (atOnce && underWay === 0 && lastSize === 1) {
        void send();
        if (++sentAlone % 8 > 0) return;
      }
      scheduled = true;
      setImmediate(() => void send());
    });
}
