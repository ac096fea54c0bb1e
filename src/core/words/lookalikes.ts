import { excerpt } from "../visible.ts";

/**
 * What a name looks like on a page: names with one look cannot be told apart by eye. Forms of one letter, Cyrillic and
 * Greek letters that look like Latin ones, dashes of all kinds, and blanks at the ends make no difference; upper and
 * lower case do.
 */
export function lookOf(name: string): string {
  if (/^[!-~]{0,99}$/.test(name)) return name;
  return excerpt(name.normalize("NFKC"))
    .trim()
    .replace(/[\u2010-\u2015\u2212]/g, "-")
    .replace(/[\p{Script=Cyrillic}\p{Script=Greek}]/gu, (letter) => latin.get(letter) ?? letter);
}

/**
 * Those of a list whose name looks like another one's. One thing may be in it several times.
 * @returns for each of them, the first letters of its id, 8 or as many as tell it from those that it looks like
 */
export function lookalikes<T extends { readonly id: string; readonly name: string }>(
  all: readonly T[],
): ReadonlyMap<string, string> {
  const different = new Map(all.map((one) => [one.id, one])).values();
  const groups = [...Map.groupBy(different, ({ name }) => lookOf(name)).values()];
  return new Map(
    groups.flatMap((same) => {
      if (same.length === 1) return [];
      const ids = same.map(({ id }) => id);
      let length = 8;
      while (length < 36 && new Set(ids.map((id) => id.slice(0, length))).size < ids.length) length++;
      return ids.map((id): [string, string] => [id, id.slice(0, length)]);
    }),
  );
}

// Cyrillic, then Greek letters, each followed by the Latin one that it looks like.
const pairs =
  "аaеeоoрpсcуyхxіiїïјjѕsһhԁdԛqԝwӏlАAВBЕEЗ3КKМMНHОOРPСCТTУYХXІIЇÏЈJЅSԚQԜWҮYӀI" +
  "αaγyιiκkνvοoρpυuχxϲcϳjΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXϹC";
const latin: ReadonlyMap<string, string> = new Map(
  [...pairs].flatMap((letter, at, all) => (at % 2 === 0 ? [[letter, all[at + 1] ?? letter] as const] : [])),
);
