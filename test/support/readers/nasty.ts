import fc from "fast-check";
import { renderDotenv } from "../../../src/core/formats/dotenv.ts";
import { canary } from "../canary.ts";
import corpus from "./nasty.json" with { type: "json" };

/** Values that some reader of dotenv text reads wrongly in some form, or might. */
export const nastyValues: readonly string[] = Object.values(corpus).flat();

/** Those that an environment can carry. */
export const carriedValues = nastyValues.filter((value) => value.isWellFormed() && !value.includes("\0"));

const token = fc.constantFrom(
  ...`'"\`\\$(){}[]<>#=:,;!~*?%^_-/abZ09 \t\n\r`,
  ...["\u2028", "\u2029", "\u0085", "\u00a0", "\u3000", "\ufeff", "\u0001", "\u001b", "\u007f", "\uffff", "é", "🔑"],
  ...["$(", "$$", "$1", "$!", "$HOME", `\${HOME}`, `\${KH_UNSET:-x}`, "\\n", "\\r", "\\'", '\\"', "\\$", "\\\\"],
  ...["\r\n", `$(touch ${canary})`, `\`touch ${canary}\``, `;touch ${canary};`, `|touch ${canary}`],
  ...[`&touch ${canary}&`, `>${canary}`, "\nKH_GAINED=1\n", '"\nKH_GAINED=1\n"', "'\nKH_GAINED=1\n'"],
  ...["\nexport KH_GAINED=1\n", "\n#", " # ", ":=", "A=b", "export ", "encrypted:"],
);
const jsonToken = fc.constantFrom(...`{}[]:,='">;x`, "a b", "\\\\", '\\"');
const pathToken = fc.constantFrom(..."C:\\/.", "Temp");

/** Values made of what some reader interprets. */
export const nastyValue: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: text(token) },
  { weight: 2, arbitrary: text(jsonToken) },
  { weight: 1, arbitrary: text(pathToken).map((value) => `${value}\\`) },
  { weight: 1, arbitrary: text(token).map((value) => `${value}\\`) },
);

function text(part: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.array(part, { maxLength: 12, size: "max" }).map((parts) => parts.join(""));
}

/** Whether a dotenv text can carry the value. */
export function isRepresentable(value: string): boolean {
  try {
    renderDotenv([{ name: "V", value }]);
    return true;
  } catch {
    return false;
  }
}
