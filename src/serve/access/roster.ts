import { macOf } from "../../core/hash.ts";
import { everyEnvironment } from "../../core/names.ts";
import { everyRight, type Holding, type Right } from "./rights.ts";

/*
 * The roster: all persons of an installation with their rights, as one sealed text. Each change is a new version with a
 * random id, and the audit's entry of that change names the id (`people/desk/roster.ts`).
 */

/** Who signs in as a person. A group without an issuer is of the issuer that the dashboard asks. */
export type SignInAs =
  | { readonly issuer: string; readonly subject: string }
  | { readonly issuer: string | null; readonly group: string };

export type Person = {
  readonly name: string;
  /** The organization of a grant that names none. */
  readonly organizationId: string;
  /** Null for somebody who comes over SSH only. */
  readonly signIn: SignInAs | null;
  /** Those that have ended, too. */
  readonly holdings: readonly Holding[];
};

/** A version as its row has it. */
export type StoredRoster = { readonly id: string; readonly version: number; readonly listing: string };

/** Seals a version: HMAC-SHA-256 under the grant-seal key over its id, its number and its text. */
export function sealRoster(grantKey: Uint8Array, { id, version, listing }: StoredRoster): Buffer {
  return macOf(grantKey, ["keyhole roster v1", id, version, listing]);
}

/** The text of a version. A right without an end has the text that it had before rights could end. */
export function encodePersons(persons: readonly Person[]): string {
  return JSON.stringify(persons);
}

/** The persons of a sealed text. @throws TypeError if a newer program wrote it */
export function decodePersons(listing: string): readonly Person[] {
  const persons = JSON.parse(listing) as readonly Person[];
  const isKnown = ({ rights, environments, until = 0, by = [""] }: Holding) =>
    rights.every((right: Right) => everyRight.includes(right)) &&
    (environments & ~everyEnvironment) === 0 &&
    Number.isSafeInteger(until) &&
    Array.isArray(by) &&
    by.length > 0;
  if (persons.every(({ holdings }) => holdings.every(isKnown))) return persons;
  throw new TypeError("a right that this program does not know");
}

/** The persons whom a sign-in is: the one with this subject, and the groups that it is in. */
export function personsSignedIn(
  persons: readonly Person[],
  as: { readonly issuer: string; readonly subject: string; readonly groups: readonly string[] },
): readonly Person[] {
  const isThis = (signIn: SignInAs) =>
    "subject" in signIn
      ? signIn.issuer === as.issuer && signIn.subject === as.subject
      : (signIn.issuer ?? as.issuer) === as.issuer && as.groups.includes(signIn.group);
  const found = persons.filter(({ signIn }) => signIn !== null && isThis(signIn));
  // One's own entry gives the name.
  return found.sort((a, b) => Number("group" in (a.signIn as SignInAs)) - Number("group" in (b.signIn as SignInAs)));
}
