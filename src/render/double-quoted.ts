/**
 * Text in double quotes, with the escapes that YAML, TOML and HCL have in common. Escaped are quotes, backslashes, and
 * characters that some reader folds, drops or refuses: line separators, control, format, private and unassigned
 * characters. Letters of all scripts are not.
 */
export function doubleQuoted(value: string): string {
  const text = value.replace(/["\\\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
    const short = shortEscapes[character];
    if (short !== undefined) return short;
    const hex = (character.codePointAt(0) as number).toString(16);
    return hex.length > 4 ? `\\U${hex.padStart(8, "0")}` : `\\u${hex.padStart(4, "0")}`;
  });
  return `"${text}"`;
}

const shortEscapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
};

/** Reads lines `NAME = "text"` by the rules that TOML and HCL share. @throws Error if the text contains anything else */
export function readAssignments(text: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of text.split("\n").slice(0, -1)) {
    const [, name, quoted] = /^([A-Za-z_][A-Za-z0-9_]*) = "(.*)"$/su.exec(line) ?? [];
    if (name === undefined || quoted === undefined || found.has(name)) throw new Error("not an assignment");
    found.set(name, quoted.replace(/["\p{Cc}]|\\(?:u(.{4})|U(.{8})|.)?/gsu, unescaped));
  }
  return found;
}

function unescaped(matched: string, short?: string, long?: string): string {
  const hex = short ?? long;
  if (hex !== undefined && /^[0-9a-f]+$/.test(hex)) return String.fromCodePoint(Number.parseInt(hex, 16));
  const found = Object.keys(shortEscapes).find((character) => shortEscapes[character] === matched);
  if (found === undefined) throw new Error("a character that must be escaped, or an unknown escape");
  return found;
}
