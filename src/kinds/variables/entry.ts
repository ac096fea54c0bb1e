import type { Entry, KindDescriptor } from "../../sets/kind.ts";

/** A variable in a listing. */
export type VariableEntry = Entry & {
  readonly key: string;
  /** The last day, in UTC, on which it should be rotated, such as `2030-01-31`. The API does not show it. */
  readonly rotateBy?: string;
};

/** The values of variables are the objects of the answer. */
export const variables: KindDescriptor<VariableEntry> = {
  kind: "variables",
  command: "var",
  nameOf: ({ key }) => key,
  identityOf: ({ key }) => key,
  hasValues: true,
  countsColumn: "variableCounts",
  datedValue: (value, updatedAt) => Buffer.from(JSON.stringify({ ...JSON.parse(value.toString("utf8")), updatedAt })),
};

/** When a variable that is marked with this day is overdue: at the day's end in UTC, in epoch milliseconds. */
export function dueAtOf(rotateBy: string): number {
  return Date.parse(rotateBy) + 86_400_000;
}
