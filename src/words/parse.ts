import { listed } from "./text.ts";

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

/** A comma-separated list without empty and repeated members. */
export function parseList(text: string): string[] {
  const members = text.split(",");
  const repeated = members.find((member, at) => members.indexOf(member) < at);
  if (!members.includes("") && repeated === undefined) return members;
  throw new Unfit("takes a comma-separated list without empty or repeated members.", repeated || undefined);
}
/** Parses a list of `allowed` members. */
export function parseChoices<const T extends string>(allowed: readonly T[]) {
  const isAllowed = (member: string): member is T => allowed.some((one) => one === member);
  return (text: string): T[] => {
    const members = parseList(text);
    if (members.every(isAllowed)) return members;
    const wrong = members.find((member) => !isAllowed(member));
    throw new Unfit(`takes a list of ${listed(allowed)}.`, wrong);
  };
}
/** @returns a whole number of at least 1 */
export function parseCount(text: string): number {
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw new Unfit("takes a whole number of at least 1.");
}
