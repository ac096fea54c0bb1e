import { dayMs, itemsMax } from "../../core/names.ts";
import type { Entry, KindDescriptor } from "../../serve/sets/kind.ts";

/** A variable in a listing. */
export type VariableEntry = Entry & {
  readonly key: string;
  /** The last day, in UTC, on which it should be rotated, such as `2030-01-31`. The API does not show it. */
  readonly rotateBy?: string | undefined;
};

/** The values of variables are the objects of the answer. */
export const variables: KindDescriptor<VariableEntry> = {
  kind: "variables",
  command: "var",
  item: "variable",
  counted: "Distinct names of variables",
  isCountedInLists: true,
  resource: { name: "variables", bit: 2 },
  surfaceAlone: "ci_action",
  actions: ["variables.read", "secrets.read", "variables.write", "variables.reveal", "variables.rollback"],
  isReadAlone: true,
  isReadByName: true,
  hasValues: true,
  nameOf: ({ key }) => key,
  identityOf: ({ key }) => key,
  dueAtOf: ({ rotateBy }) => (rotateBy === undefined ? undefined : dueAtOf(rotateBy)),
  datedValue: (value, updatedAt) => Buffer.from(JSON.stringify({ ...JSON.parse(value.toString("utf8")), updatedAt })),
  textsOf: ({ value }: { readonly value: string }) => ({ "": value }),
  isValueOf(value, { key, updatedAt }) {
    const of = value as Partial<VariableEntry>;
    return of.key === key && of.updatedAt === updatedAt;
  },
  warningsOf(where, environment, { total, replaced }) {
    const unmarked = replaced.filter(([old, now]) => old.rotateBy !== undefined && now.rotateBy === undefined);
    const days = unmarked.map(([{ key, rotateBy }]) => `${key} (${rotateBy})`);
    return [
      ...(days.length > 0 ? [`In ${environment}, this day to rotate by is gone: ${days.join(", ")}.`] : []),
      ...(total > itemsMax
        ? [
            `${where} has ${total} variables in ${environment}, and the API never answers with more than ${itemsMax}: reading all of them is refused from now on. Reads by keys or prefix still work.`,
          ]
        : []),
    ];
  },
};

/** When a variable that is marked with this day is overdue: at the day's end in UTC, in epoch milliseconds. */
export function dueAtOf(rotateBy: string): number {
  return Date.parse(rotateBy) + dayMs;
}
