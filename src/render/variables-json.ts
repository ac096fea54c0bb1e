/** The most bytes of a variables array that is also kept as a sealed set. */
export const setBytesMax = 4 * 1024 * 1024;

/** The listing of a set that would be larger, or hold more variables than an answer may, and is therefore not kept. */
export const noListing = "";

/** The `variables` array of an answer: one spelling, since a set is held against its rows by these bytes. */
export function variablesArray(
  variables: readonly { readonly name: string; readonly value: string; readonly updatedAt: number }[],
): string {
  return JSON.stringify(variables.map(({ name, value, updatedAt }) => ({ key: name, value, updatedAt })));
}

/** The same text in as many pieces as there are variables. */
export function* variablesPieces(
  variables: readonly { readonly name: string; readonly value: string; readonly updatedAt: number }[],
): Generator<string> {
  yield "[";
  let separator = "";
  for (const { name, value, updatedAt } of variables) {
    yield `${separator}${JSON.stringify({ key: name, value, updatedAt })}`;
    separator = ",";
  }
  yield "]";
}

/** The same without values, as a metadata read answers it. */
export function variablesListing(variables: readonly { readonly name: string; readonly updatedAt: number }[]): string {
  return JSON.stringify(variables.map(({ name, updatedAt }) => ({ key: name, updatedAt })));
}
