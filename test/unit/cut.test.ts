import { expect, test } from "bun:test";
import { Cut } from "../../src/core/cut.ts";

test("a list gives its entries only together with what stands for the others", () => {
  const list = new Cut([1, 2, 3]);
  expect(list.with("more")).toEqual([[1, 2, 3], undefined]);
  expect(list.first(3).with("more")).toEqual([[1, 2, 3], undefined]);
  expect(list.first(2).with("more")).toEqual([[1, 2], "more"]);
  // What was cut once stays so.
  const cut = list.first(2);
  const all = [cut.first(3), cut.map((one) => one), cut.reversed().reversed(), new Cut([1, 2], false)];
  for (const one of all) expect(one.with("more")).toEqual([[1, 2], "more"]);
  // @ts-expect-error: no words for the others
  expect(list.first(2).with()).toEqual([[1, 2], undefined]);
  // @ts-expect-error: the entries without them
  expect(() => [...list]).toThrow();
  // @ts-expect-error: nor one of them
  expect(list[0]).toBeUndefined();
});
