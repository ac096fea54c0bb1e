import { Unfit } from "./parse.ts";
import { listed } from "./text.ts";

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
