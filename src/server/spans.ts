import type { Stages } from "../core/stages.ts";

/** The stages that a request has ended, in monotonic milliseconds. */
export function spansOf(stages: Stages): (readonly [name: string, fromMs: number, toMs: number])[] {
  const spans = [
    ["look-up", stages.lookUpFromMs, stages.lookUpToMs],
    ["read", stages.readFromMs, stages.readToMs],
    ["open", stages.readToMs, stages.openToMs],
    ["audit", stages.auditFromMs, stages.auditToMs],
  ] as const;
  return spans.filter(([, , toMs]) => toMs > 0);
}
