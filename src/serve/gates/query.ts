import { type Static, type TObject, type TProperties, Type } from "typebox";
import { attempt } from "../../core/attempt.ts";
import { Fault } from "../../core/fault.ts";
import { environments, itemsMax } from "../../core/names.ts";

/*
 * Gate 5. Elysia keeps the last of a repeated parameter, drops unknown ones and splits arrays at commas. So the query
 * is parsed here, and anything but one valid value for each known parameter is refused.
 */

/** The parameters of an endpoint, for checking queries and for the description. Any other parameter is refused. */
export type QuerySchema = TProperties;

/** One of some texts. */
export function oneOf<const T extends string>(values: readonly T[], description: string) {
  return Type.Enum([...values], { type: "string", description });
}

/** A text that is not empty. */
export function text(description: string) {
  return Type.String({ minLength: 1, description });
}

/** Parameters that several endpoints have. */
const namesOnly = "With `true`, the answer has no values, and the request is charged to the metadata bucket.";
export const parameters = {
  project: text("The slug of a project."),
  environment: oneOf(environments, "The environment to read."),
  format: Type.Optional(oneOf(["json", "env"], "The form of the answer; `env` is dotenv text. Default: `json`.")),
  metadataOnly: Type.Optional(oneOf(["true", "false"], namesOnly)),
  metadataOnlyOrOne: Type.Optional(oneOf(["true", "1", "false", "0"], namesOnly.replace("`true`", "`true` or `1`"))),
};

/** The query of an endpoint without parameters. */
export const noParameters: QuerySchema = {};

/**
 * Whether a request is charged as a metadata read: if the flag occurs once, is true and is not percent-encoded, since
 * gate 5 comes later. Never throws.
 */
export function isMetadataRead(raw: string, flagName: "metadata_only" | "metadataOnly" | undefined): boolean {
  if (flagName === undefined || !raw.includes(flagName)) return false;
  const [flag, second] = raw.split("&").filter((pair) => pair.startsWith(`${flagName}=`));
  if (flag === undefined || second !== undefined) return false;
  const value = flag.slice(flagName.length + 1);
  return value === "true" || (value === "1" && flagName === "metadataOnly");
}

/**
 * The parameters of a query: each is a text that is not empty, but `path`, which is a list of them.
 * @throws Fault `invalid_request` that names the first invalid parameter
 */
export function parseQuery<P extends QuerySchema>(schema: P, raw: string): Static<TObject<P>> {
  const found = decode(schema, raw);
  for (const [name, parameter] of Object.entries<QuerySchema[string] & { readonly enum?: readonly unknown[] }>(
    schema,
  )) {
    const value = found[name];
    if (value === undefined) {
      if (!Type.IsOptional(parameter)) throw invalidParameter(name, "is required");
    } else if (parameter.enum?.includes(value) === false) {
      throw invalidParameter(name, `must be one of ${parameter.enum.join(", ")}`);
    } else if ([value].flat().includes("")) throw invalidParameter(name, "is empty");
  }
  return found as Static<TObject<P>>;
}

/** The decoded parameters. `path` may be repeated and becomes a list; any other parameter may occur once. */
function decode(known: TProperties, raw: string): Record<string, string | string[]> {
  const found: Record<string, string | string[]> = Object.create(null);
  if (raw === "") return found;
  for (const pair of raw.split("&")) {
    const at = pair.indexOf("=");
    const [name, encoded] = at < 0 ? [decodeText(pair), ""] : [decodeText(pair.slice(0, at)), pair.slice(at + 1)];
    if (name === undefined || !Object.hasOwn(known, name)) throw invalidParameter(name ?? "", "is not known here");
    const value = decodeText(encoded);
    if (value === undefined) throw invalidParameter(name, "is not percent-encoded UTF-8");
    const earlier = found[name];
    if (Array.isArray(earlier)) {
      if (earlier.length === itemsMax) throw invalidParameter(name, `may be given at most ${itemsMax} times`);
      earlier.push(value);
    } else if (earlier !== undefined) throw invalidParameter(name, "may be given only once");
    else found[name] = name === "path" ? [value] : value;
  }
  return found;
}

/** @returns undefined if the text is not percent-encoded UTF-8 */
function decodeText(encoded: string): string | undefined {
  if (!encoded.includes("%") && !encoded.includes("+")) return encoded;
  return attempt(() => decodeURIComponent(encoded.replaceAll("+", " ")));
}

export function invalidParameter(name: string, problem: string): Fault {
  return new Fault("invalid_request", `query parameter ${problem}`, { parameter: { name, problem } });
}
