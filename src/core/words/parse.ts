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

/**
 * A parser of whole numbers.
 * @param more - ends the sentence, such as `, or unlimited`
 */
export function wholeNumber(min: number, max: number, more = "") {
  return (text: string): number => {
    if (/^[1-9]\d{0,8}$/.test(text) && Number(text) >= min && Number(text) <= max) return Number(text);
    throw new Unfit(`takes a whole number ${max < Infinity ? `from ${min} to ${max}` : `of at least ${min}`}${more}.`);
  };
}

/** A whole number of at least 1, of at most nine digits. */
export const parseCount = wholeNumber(1, Infinity);
