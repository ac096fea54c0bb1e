import { attempt } from "../../core/attempt.ts";
import {
  type Environment,
  type EnvironmentMask,
  environmentMask,
  environments,
  isEnvironment,
} from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { oneLine } from "../../core/visible.ts";
import { databaseErrorCode } from "../../store/database.ts";

/** A display name: 1 to 255 characters without control characters. People may have to type it again, so it is not blank. */
export function displayName(what: string, name: string): string {
  if (/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]{1,255}$/u.test(name) && oneLine(name).trim() !== "") return name;
  const words = `The ${what} name must have 1 to 255 characters, not blanks alone, and no control characters.`;
  throw new Refused("invalid", words);
}

/** @throws Refused `invalid` */
export function requireEnvironment(text: string): Environment {
  if (isEnvironment(text)) return text;
  throw new Refused("invalid", `${JSON.stringify(text)} is not an environment: ${environments.join(", ")}.`);
}

/** The mask of a list of environments, which must not be empty. */
export function requireEnvironments(list: readonly string[]): EnvironmentMask {
  if (list.length === 0) throw new Refused("invalid", `Name at least one environment: ${environments.join(", ")}.`);
  return environmentMask(...list.map(requireEnvironment));
}

/** The members of `all` that were asked for, in its order. @throws Refused `invalid` if there are none, or others */
export function requireMembers<T extends string>(what: string, all: readonly T[], asked: readonly string[]): T[] {
  const unknown = asked.find((member) => !(all as readonly string[]).includes(member));
  if (asked.length > 0 && unknown === undefined) return all.filter((member) => asked.includes(member));
  throw new Refused("invalid", `${JSON.stringify(unknown ?? "")} is not a ${what}: ${all.join(", ")}.`);
}

/** A name that another system has given, such as an issuer or a claim. */
export function requireWord(what: string, text: string, charactersMax = wordMax): string {
  if (isWord(text, charactersMax)) return text;
  throw new Refused("invalid", `${what} must have ${wordRule(charactersMax)}.`);
}

/** Whether {@link requireWord} takes this text. */
export function isWord(text: string, charactersMax = wordMax): boolean {
  return /^[^\p{C}\p{Zl}\p{Zp}]+$/u.test(text) && [...text].length <= charactersMax;
}

/** What {@link requireWord} asks for. */
export function wordRule(charactersMax = wordMax): string {
  return `1 to ${charactersMax} characters and no control characters`;
}

const wordMax = 512;

/** The text of a value: UTF-8 without NUL. @throws Refused `invalid` that names `what` and does not show the value */
export function requireText(what: string, value: string | Uint8Array): string {
  const decode = (bytes: Uint8Array) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  const text = typeof value === "string" ? value : attempt(() => decode(value));
  if (text === undefined) throw new Refused("invalid", `${what} is not UTF-8 text.`);
  if (text.includes("\0"))
    throw new Refused("invalid", `${what} holds a NUL character, which no environment can carry.`);
  if (!text.isWellFormed())
    throw new Refused("invalid", `${what} holds half a surrogate pair, which is not UTF-8 text.`);
  return text;
}

/** The array that a JSON text spells; an empty one if it is damaged. */
export function arrayOf(json: string): readonly unknown[] {
  const parsed: unknown = attempt(() => JSON.parse(json));
  return Array.isArray(parsed) ? parsed : [];
}

/** @throws Refused `exists` if the work fails because it writes a row that exists already */
export function unlessExists<T>(work: Promise<T>, message: string): Promise<T> {
  const codes = ["23505", "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"];
  return work.catch((error: unknown) => {
    throw codes.includes(databaseErrorCode(error)) ? new Refused("exists", message) : error;
  });
}
