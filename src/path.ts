/** The longest path, in bytes of UTF-8: what every system we know of still opens below a root of usual length. */
export const pathBytesMax = 1024;
/** The longest part of a path, in bytes of UTF-8: the limit of ext4, and below that of NTFS and APFS. */
export const pathPartBytesMax = 255;

/**
 * What is wrong with the path of a secret file, as a clause to put after its name ("has a '..' part"), or undefined.
 * The verdict is the same on every platform: a path is accepted only if it means one and the same file below the root
 * on Linux, macOS and Windows, is no file that git, a shell or a device driver gives a meaning of its own, and looks
 * like what it is. At most 1024 bytes in all and 255 bytes in each part, `/` between the parts. Never throws, and the
 * clause holds no character that a terminal could act on.
 *
 * Used at upload, and again at pull, where the server is not trusted with where files land.
 *
 * @see https://learn.microsoft.com/windows/win32/fileio/naming-a-file
 */
export function pathProblem(path: string): string | undefined {
  if (path === "") return "is empty";
  // First, so that nothing dearer than counting runs over a text of any length.
  if (Buffer.byteLength(path) > pathBytesMax) return `is longer than ${pathBytesMax} bytes`;
  if (!path.isWellFormed()) return "is not well-formed Unicode";
  if (path.startsWith("/")) return "is absolute, not relative";
  const character = unwelcome.exec(path)?.[0];
  if (character !== undefined) return `has the character ${describe(character)}`;
  if (path !== path.normalize("NFC")) return "is not in Unicode normal form C";
  for (const part of path.split("/")) {
    const problem = partProblem(part);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/**
 * What is wrong with these paths together, naming two of them, or undefined: no two may be one file where case does not
 * matter (or differ only there), and none may be a folder that another needs. Takes n log n steps.
 *
 * @param paths - each without a {@link pathProblem}; those of one environment, since only they land in one folder
 */
export function pathSetProblem(paths: readonly string[]): string | undefined {
  // With NUL for the slash, which no path holds and nothing sorts before, everything below a folder follows it directly.
  const sorted = paths.map((path) => ({ path, folded: fold(path).replaceAll("/", "\0") }));
  sorted.sort((a, b) => (a.folded < b.folded ? -1 : a.folded > b.folded ? 1 : 0));
  for (const [i, { path, folded }] of sorted.entries()) {
    const next = sorted[i + 1];
    if (next === undefined) break;
    if (next.folded === folded) {
      return next.path === path
        ? `'${path}' is there twice`
        : `'${path}' and '${next.path}' are the same file where case does not matter`;
    }
    if (next.folded.startsWith(`${folded}\0`)) return `'${path}' would be both a file and a folder of '${next.path}'`;
  }
  return undefined;
}

/**
 * Characters that no path may hold:
 * - `\` and `:` are separators on Windows (`:` also opens a stream of NTFS), `* ? " < > |` are patterns there;
 * - `\p{C}`: control characters (terminals act on them); format characters, among them bidi marks, zero-width ones and
 *   the soft hyphen U+00AD, which make two names look alike and which HFS+ ignores, so that they spell `.git` too;
 *   private use, where several systems hide the eight characters above; and unassigned ones, whose normal form and case
 *   a later Unicode may change;
 * - line and paragraph separators, and whatever else is invisible by default: variation selectors, fillers, joiners.
 *
 * That also refuses those emoji that are sequences with a joiner or a variation selector.
 */
const unwelcome = /[\\:*?"<>|\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

/** Windows gives these names to devices in every folder, with any extension; COM and LPT also with a superscript digit. */
const device = /^(?:CON|PRN|AUX|NUL|(?:COM|LPT)[0-9¹²³]|CONIN\$|CONOUT\$)$/;

/** The folder of a repository and its short name on NTFS. Trailing dots, spaces and `:` streams are refused anyway. */
const git = /^(?:\.GIT|GIT~[0-9]+)$/;

function partProblem(part: string): string | undefined {
  if (part === "") return "has an empty part";
  if (part === "." || part === "..") return `has a '${part}' part`;
  if (Buffer.byteLength(part) > pathPartBytesMax) return `has a part longer than ${pathPartBytesMax} bytes`;
  if (/^\p{Zs}/u.test(part)) return "has a part that begins with a space";
  if (/\p{Zs}$/u.test(part)) return "has a part that ends with a space";
  if (part.endsWith(".")) return "has a part that ends with a dot"; // Windows drops it: "a." would be "a"
  const folded = fold(part);
  if (git.test(folded)) return "has a '.git' part";
  // Windows looks at what precedes the first dot, without the spaces before that dot: "con .tar.gz" is the console.
  const stem = (folded.split(".", 1)[0] as string).trimEnd();
  if (device.test(stem)) return `has a part named like the Windows device ${stem}`;
  return undefined;
}

/**
 * One spelling for all that a file system could take for the same name. JavaScript has no case folding; lower then
 * upper case joins all that folding joins (ẞ and SS, ς and Σ, K and the Kelvin sign) and a few more (ı and I), which is
 * the safe side. Upper case may come apart (ΐ has none in one piece), hence the normal form.
 */
function fold(text: string): string {
  return text.toLowerCase().toUpperCase().normalize("NFC");
}

/** The character itself where it is plain to see, else its number. */
function describe(character: string): string {
  const codePoint = character.codePointAt(0) as number;
  return codePoint > 0x20 && codePoint < 0x7f
    ? `'${character}'`
    : `U+${codePoint.toString(16).toUpperCase().padStart(4, "0")}`;
}
