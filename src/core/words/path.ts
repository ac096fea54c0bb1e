/** Bytes of UTF-8. Every system we know opens such a path below a root of usual length. */
const pathBytesMax = 1024;
/** Bytes of UTF-8: the limit of ext4, and less than those of NTFS and APFS. */
const pathPartBytesMax = 255;

/**
 * What is wrong with the path of a secret file, as a clause that follows the path ("has a '..' part"), or undefined.
 *
 * The answer is the same on every platform. An accepted path names the same file below the root on Linux, macOS and
 * Windows, looks like no other, and is not special to git, a shell or a device driver. The clause is safe on a
 * terminal. Paths are checked at upload, and again at pull, because clients do not let the server choose where files
 * go.
 * @see https://learn.microsoft.com/windows/win32/fileio/naming-a-file
 */
export function pathProblem(path: string): string | undefined {
  if (path === "") return "is empty";
  // First, because a text may be of any length and this only counts.
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
 * What is wrong with these paths together, as a sentence about two of them, or undefined. No two may differ only in
 * case, and none may be a folder of another.
 * @param paths - the paths of one environment, each without a {@link pathProblem}
 */
export function pathSetProblem(paths: readonly string[]): string | undefined {
  // No path has a NUL, and it sorts first: with it in place of the slash, a folder's files directly follow the folder.
  const sorted = paths.map((path) => ({ path, folded: fold(path).replaceAll("/", "\0") }));
  sorted.sort((a, b) => (a.folded < b.folded ? -1 : a.folded > b.folded ? 1 : 0));
  for (const [i, { path, folded }] of sorted.entries()) {
    const next = sorted[i + 1];
    if (next === undefined) break;
    if (next.folded === folded) {
      return next.path === path
        ? `'${path}' is there twice`
        : `'${path}' and '${next.path}' are the same file if case is ignored`;
    }
    if (next.folded.startsWith(`${folded}\0`)) return `'${path}' would be both a file and a folder of '${next.path}'`;
  }
  return undefined;
}

/**
 * Characters that no path may contain:
 * - `\` and `:` are separators on Windows (`:` also opens an NTFS stream), and `* ? " < > |` are patterns there;
 * - `\p{C}`: control characters, on which terminals act; format characters such as bidi marks, zero-width ones and the
 *   soft hyphen U+00AD, which make two names look alike and which HFS+ ignores, so that they can spell `.git`; private
 *   use, into which some systems map the eight characters above; and unassigned characters, whose normal form and case
 *   may change with a later Unicode;
 * - line and paragraph separators, and other invisible characters: variation selectors, fillers, joiners (of emoji
 *   too).
 */
const unwelcome = /[\\:*?"<>|\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

/** Names of Windows devices, in every folder and with any extension; COM and LPT also with a superscript digit. */
const device = /^(?:CON|PRN|AUX|NUL|(?:COM|LPT)[0-9¹²³]|CONIN\$|CONOUT\$)$/;

/** A repository's folder and its short name on NTFS. Trailing dots, spaces and `:` streams are refused elsewhere. */
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
  // Windows reads the name up to the first dot, without trailing spaces: "con .tar.gz" is the console.
  const stem = (folded.split(".", 1)[0] as string).trimEnd();
  if (device.test(stem)) return `has a part named like the Windows device ${stem}`;
  return undefined;
}

/**
 * The same text for all names that a file system could treat as equal. JavaScript has no case folding. Lower case,
 * then upper case, makes everything equal that folding does (ẞ and SS, ς and Σ, K and the Kelvin sign) and a little
 * more (ı and I), which is safe. Upper case may split a character (ΐ), so the result is normalized.
 */
function fold(text: string): string {
  return text.toLowerCase().toUpperCase().normalize("NFC");
}

/** The character itself if it is printable ASCII, else its number. */
function describe(character: string): string {
  const codePoint = character.codePointAt(0) as number;
  return codePoint > 0x20 && codePoint < 0x7f
    ? `'${character}'`
    : `U+${codePoint.toString(16).toUpperCase().padStart(4, "0")}`;
}
