import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describeApi } from "../../src/serve/api/description.ts";

/*
 * Compares answers with the description of the API. Every answer of the integration and black-box suites passes here,
 * and is judged by another validator than the server's.
 */

type Response = {
  readonly headers: Readonly<Record<string, unknown>>;
  readonly content?: Readonly<Record<string, { readonly schema: unknown }>>;
};

const document = describeApi("test");
const ajv = new Ajv2020({ strict: false });
addFormats.default(ajv);
// The package's own check is a regular expression that fails for megabytes.
ajv.addFormat("byte", (text) => Buffer.from(text, "base64").toString("base64") === text);
ajv.addSchema(document, "api");

/** Headers that Bun or a test's own proxy adds. */
const transport = new Set(["connection", "content-length", "date", "keep-alive", "transfer-encoding"]);

/**
 * Throws unless the description has this answer: its status, all of its headers, and its body.
 * @param path - below the API's root, with its query
 */
export function expectDescribed(
  path: string,
  status: number,
  headers: Iterable<readonly [string, string]>,
  body: () => string,
): void {
  const problem = problemOf(path, status, headers, body);
  if (problem !== undefined) throw new Error(`docs/openapi.json does not describe ${status} for ${path}: ${problem}`);
}

/** What differs; undefined if nothing does. */
export function problemOf(
  path: string,
  status: number,
  headers: Iterable<readonly [string, string]>,
  body: () => string,
): string | undefined {
  const sent = new Map([...headers].map(([name, value]) => [name.toLowerCase(), value]));
  const type = sent.get("content-type") ?? "";
  const template = templateOf(path.split("?")[0] ?? "");
  if (template === undefined) {
    if (status !== 404 && status !== 400) return "the path is unknown";
    return bodyProblem("#/components/schemas/Problem", body());
  }
  const responses = document.paths[template]?.get.responses as Readonly<Record<string, Response | { $ref: string }>>;
  const found = responses[String(status)];
  if (found === undefined) return "the status is unknown";
  const at = "$ref" in found ? found.$ref : `#/paths/${pointer(template)}/get/responses/${status}`;
  const response = resolved(at) as Response;
  const known = new Set([...Object.keys(response.headers), "content-type"].map((name) => name.toLowerCase()));
  for (const name of sent.keys()) {
    if (!known.has(name) && !transport.has(name)) return `the header ${name} is unknown`;
  }
  if (response.content === undefined) return body() === "" && type === "" ? undefined : "there is a body";
  const media = type.replace(/;.*/, "");
  if (!Object.hasOwn(response.content, media)) return `the type ${type} is unknown`;
  return media === "application/json" ? bodyProblem(`${at}/content/${pointer(media)}/schema`, body()) : undefined;
}

const validators = new Map<string, ValidateFunction>();

function bodyProblem(at: string, body: string): string | undefined {
  const validate = validators.get(at) ?? ajv.compile({ $ref: `api${at}` });
  validators.set(at, validate);
  return validate(JSON.parse(body)) ? undefined : ajv.errorsText(validate.errors);
}

function templateOf(path: string): string | undefined {
  return Object.keys(document.paths).find((template) =>
    new RegExp(`^${template.replace("{slug}", "[^/]+")}$`).test(path),
  );
}

function resolved(at: string): unknown {
  const parts = at
    .slice(2)
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  return parts.reduce<unknown>((value, part) => (value as Readonly<Record<string, unknown>>)[part], document);
}

function pointer(part: string): string {
  return part.replaceAll("~", "~0").replaceAll("/", "~1");
}
