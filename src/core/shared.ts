/** Gives all callers during one run of `work` the same promise. The first caller's arguments count. */
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
