/**
 * The moments that one request has passed, in monotonic milliseconds; 0 where it has not come so far. Made where
 * somebody measures: elsewhere there is none, and noting a moment costs a comparison.
 */
export type Stages = {
  lookUpFromMs: number;
  lookUpToMs: number;
  readFromMs: number;
  /** Where reading ends opening begins. */
  readToMs: number;
  openToMs: number;
  auditFromMs: number;
  auditToMs: number;
  /** What was opened, and how many of them. */
  openedKind: OpenedKind | undefined;
  opened: number;
};

export type OpenedKind = "variable" | "account" | "file";
export type Moment = Exclude<keyof Stages, "openedKind" | "opened">;

export function newStages(): Stages {
  return {
    lookUpFromMs: 0,
    lookUpToMs: 0,
    readFromMs: 0,
    readToMs: 0,
    openToMs: 0,
    auditFromMs: 0,
    auditToMs: 0,
    openedKind: undefined,
    opened: 0,
  };
}

/** Notes that a moment has come. */
export function passed(stages: Stages | undefined, moment: Moment): void {
  if (stages !== undefined) stages[moment] = performance.now();
}

/** Notes that so many sealed values of a kind were opened, all of them well. */
export function noteOpened(stages: Stages | undefined, kind: OpenedKind, count: number): void {
  if (stages === undefined) return;
  stages.openToMs = performance.now();
  stages.openedKind = kind;
  stages.opened = count;
}
