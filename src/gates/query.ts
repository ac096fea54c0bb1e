import { type TProperties, Type } from "typebox";
import { Compile } from "typebox/compile";
import { Fault } from "../core/fault.ts";
import { itemsMax } from "../core/names.ts";

/*
 * Gate 5. Elysia keeps the last of a repeated parameter, drops unknown ones and splits arrays at commas. So the query
 * is parsed here, and anything but one valid value for each known parameter is refused.
 */

/** The parameters of an endpoint: what judges them, and what the description of the API says of them. */
export type QuerySchema<P extends TProperties = TProperties> = {
  readonly properties: P;
  readonly check: ReturnType<typeof Compile>;
};

/** An endpoint's parameters. Any other is refused. */
export function querySchema<P extends TProperties>(properties: P) {
  return { properties, check: Compile(Type.Object(properties, { additionalProperties: false })) };
}

/** The query of an endpoint without parameters. */
export const noParameters = querySchema({});

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
 * The parameters of a query.
 * @throws Fault `invalid_request` that names the first invalid parameter
 */
export function parseQuery<P extends TProperties>(schema: ReturnType<typeof querySchema<P>>, raw: string) {
  const found: unknown = decode(schema.properties, raw);
  if (schema.check.Check(found)) return found;
  const [error] = schema.check.Errors(found);
  if (error?.keyword === "required") throw invalidParameter(error.params.requiredProperties[0] ?? "", "is required");
  const name = error?.instancePath.split("/")[1] ?? "";
  if (error?.keyword === "enum")
    throw invalidParameter(name, `must be one of ${error.params.allowedValues.join(", ")}`);
  if (error?.keyword === "maxItems") throw invalidParameter(name, `may be given at most ${itemsMax} times`);
  throw invalidParameter(name, "is empty");
}

/** The decoded parameters. `path` may be repeated and becomes a list; any other parameter may occur once. */
function decode(known: TProperties, raw: string): Record<string, string | string[]> {
  const found: Record<string, string | string[]> = Object.create(null);
  if (raw === "") return found;
  for (const pair of raw.split("&")) {
    const [name, encoded] = splitPair(pair);
    if (name === undefined || !Object.hasOwn(known, name)) throw invalidParameter(name ?? "", "is not known here");
    const value = decodeText(encoded);
    if (value === undefined) throw invalidParameter(name, "is not percent-encoded UTF-8");
    const earlier = found[name];
    if (Array.isArray(earlier)) earlier.push(value);
    else if (earlier !== undefined) throw invalidParameter(name, "may be given only once");
    else found[name] = name === "path" ? [value] : value;
  }
  return found;
}

/** The decoded name and the encoded value of one `name=value`. */
function splitPair(pair: string): [name: string | undefined, encoded: string] {
  const at = pair.indexOf("=");
  return at < 0 ? [decodeText(pair), ""] : [decodeText(pair.slice(0, at)), pair.slice(at + 1)];
}

/** @returns undefined if the text is not percent-encoded UTF-8 */
function decodeText(encoded: string): string | undefined {
  if (!encoded.includes("%") && !encoded.includes("+")) return encoded;
  try {
    return decodeURIComponent(encoded.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

/** The refusal of a parameter. */
export function invalidParameter(name: string, problem: string): Fault {
  return new Fault("invalid_request", `query parameter ${problem}`, { parameter: { name, problem } });
}
