/** Gives all callers during one run of `work` the same promise. What the first of them gives it counts. */
export function shared<A extends readonly unknown[], T>(
  work: (...given: A) => Promise<T>,
): (...given: A) => Promise<T> {
  let underWay: Promise<T> | undefined;
  return (...given) => {
    underWay ??= work(...given).finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}
