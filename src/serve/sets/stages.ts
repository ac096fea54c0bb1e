/**
 * The moments that one request has passed, in monotonic milliseconds; 0 before that. Made only with metrics or traces:
 * without them, noting a moment costs a comparison.
 */
export function newStages() {
  return {
    lookUpFromMs: 0,
    lookUpToMs: 0,
    readFromMs: 0,
    /** Reading ends and opening begins. */
    readToMs: 0,
    openToMs: 0,
    auditFromMs: 0,
    auditToMs: 0,
    /** The items that were opened, as in "variable", and how many. */
    openedItem: undefined as string | undefined,
    opened: 0,
  };
}

export type Stages = ReturnType<typeof newStages>;

/** Notes that a moment has come. */
export function passed(stages: Stages | undefined, moment: Exclude<keyof Stages, "openedItem" | "opened">): void {
  if (stages !== undefined) stages[moment] = performance.now();
}

/** Records how many sealed values were opened. @param item - what one of them is called */
export function noteOpened(stages: Stages | undefined, item: string, count: number): void {
  if (stages === undefined) return;
  stages.openToMs = performance.now();
  stages.openedItem = item;
  stages.opened = count;
}

/** The stages that a request has finished, in monotonic milliseconds. */
export function spansOf(stages: Stages): (readonly [name: string, fromMs: number, toMs: number])[] {
  const spans = [
    ["look-up", stages.lookUpFromMs, stages.lookUpToMs],
    ["read", stages.readFromMs, stages.readToMs],
    ["open", stages.readToMs, stages.openToMs],
    ["audit", stages.auditFromMs, stages.auditToMs],
  ] as const;
  return spans.filter(([, , toMs]) => toMs > 0);
}
