/*
 * Words of a command line as a POSIX shell reads them: blanks separate them, and quotes and backslashes keep blanks in
 * them. Nothing is expanded, and no shell runs.
 */

/** The words of a command line; undefined if a quote or a backslash at the end has nothing to close it. */
export function wordsOf(line: string): string[] | undefined {
  const words: string[] = [];
  let at = 0;
  for (;;) {
    at += (/^[ \t\n]*/.exec(line.slice(at)) as RegExpExecArray)[0].length;
    if (at === line.length) return words;
    const [whole] = wordPattern.exec(line.slice(at)) ?? [""];
    at += whole.length;
    if (whole === "" || (at < line.length && !/[ \t\n]/.test(line[at] as string))) return undefined;
    // A backslash joins the lines on both sides, and is no word of its own.
    if (!/^(?:\\\n)+$/.test(whole)) words.push(whole.replace(partPattern, unquoted));
  }
}

/** A word as {@link wordsOf} and any POSIX shell read it back. */
export function quoted(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

/** A word for a shell, in quotes if it needs them. `-` alone is stdin. */
export function shellWord(word: string): string {
  return /^(?:-|[\w./:,][\w./:,-]*)$/.test(word) ? word : quoted(word);
}

const part = String.raw`'[^']*'|"(?:[^"\\]|\\[^])*"|\\[^]|[^\s'"\\]|[^\S \t\n]`;
const wordPattern = new RegExp(`^(?:${part})+`);
const partPattern = new RegExp(part, "g");

function unquoted(text: string): string {
  if (text.startsWith("'")) return text.slice(1, -1);
  if (text.startsWith("\\")) return text === "\\\n" ? "" : text.slice(1);
  if (!text.startsWith('"')) return text;
  return text.slice(1, -1).replace(/\\([$`"\\]|\n)/g, (_, kept: string) => (kept === "\n" ? "" : kept));
}
