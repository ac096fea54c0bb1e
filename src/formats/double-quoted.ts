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
