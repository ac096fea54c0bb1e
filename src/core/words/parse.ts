/* Parsers of what an option or an argument says. Their messages continue after its name, and never quote the text. */

/** Says why a text is no value of an input. */
export class Unfit extends Error {
  /** The member that is wrong, if the text is a list. */
  readonly member: string | undefined;

  constructor(message: string, member?: string) {
    super(message);
    this.member = member;
  }
}

/** @returns a whole number of at least 1 */
export function parseCount(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new Unfit("takes a whole number of at least 1.");
}
