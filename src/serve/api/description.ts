import { type TSchema, Type } from "typebox";
import { Fault, type FaultCode, faults } from "../../core/fault.ts";
import { compareBytes, slugRule } from "../../core/names.ts";
import { readsHeader, receiptHeader } from "../../core/receipt.ts";
import type { Endpoint, EndpointDescription } from "../gates/endpoint.ts";
import { appliedHeader } from "../gates/prefer.ts";
import { invalidParameter } from "../gates/query.ts";
import { policies } from "../limit/bucket.ts";
import { descriptions } from "./answers.ts";
import { apiRoot, endpoints } from "./app.ts";
import { problemOf } from "./problem.ts";

/*
 * The API as an OpenAPI 3.1 document. Parameters are the schemas that judge requests, errors the table that answers
 * them, and answers the schemas that tests compare every answer with.
 */

const introduction = `A read-only API that hands encrypted environment variables, shared accounts and secret files to machines.

- Every request is a \`GET\` with \`Authorization: Bearer\` and an API key (\`kh_…\`), or a token of an issuer that the installation trusts; the word key means both. Any other method is 405 \`method_not_allowed\`, and a path that is not described here is 404 \`not_found\`.
- An answer has everything that was asked for, or nothing: bounds are refusals, never cuts, and one item that does not decrypt fails the whole request.
- What is outside a key's scope does not exist.
- An unknown, repeated or empty parameter is refused, and so is a request with a body.
- What never reaches Keyhole is answered without a body and a request id: 400 for broken HTTP, 413 for a \`POST\` of more than 16 KiB, 431 for an address and headers of more than 16 KiB, 505 for an unknown version of HTTP.`;

/** The document. @param version - of the program */
export function describeApi(version: string) {
  return {
    openapi: "3.1.0",
    info: {
      title: "Keyhole",
      version,
      description: introduction,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      contact: { name: "The operator of your installation" },
    },
    servers: [
      {
        url: `{origin}${apiRoot}`,
        description: "An installation.",
        variables: { origin: { default: "http://127.0.0.1:4100", description: "Where Keyhole listens." } },
      },
    ],
    security: [{ key: [] }],
    tags: [{ name: "read", description: "What machines read." }],
    paths: Object.fromEntries(described.map((one) => [one.path, { get: describe(one) }])),
    components: {
      securitySchemes: {
        key: {
          type: "http",
          scheme: "bearer",
          description: "An API key, made with `keyhole key create`, or a token that a trust accepts.",
        },
      },
      headers,
      responses: {
        ...Object.fromEntries(Object.entries(everywhere).map(([name, codes]) => [name, refusal(codes)])),
        ...Object.fromEntries(
          Object.values(ofRuntime).map(([name, description]) => [name, { description, headers: {} }]),
        ),
      },
      schemas: { ...referring(Object.assign({}, ...described.map(({ answers }) => answers))), Problem: problem },
    },
  };
}

type Described = Endpoint & EndpointDescription;

const described = endpoints.map((endpoint): Described => {
  const description = descriptions[endpoint.path];
  if (description === undefined) throw new Error(`${endpoint.path} has no description`);
  return { ...endpoint, ...description };
});

function describe(endpoint: Described) {
  const { path, query, admission, answers, example } = endpoint;
  const answer = Object.keys(answers).at(-1);
  const names = Object.keys(query);
  const flag = names.find((name) => /^metadata_?only$/i.test(name));
  const buckets = [...(flag ? [`metadata (with \`${flag}\`)`] : []), policies[admission.bucket].name];
  const { surface, resource, bucket } = admission;
  // A read that costs more than metadata can be conditional.
  const isConditional = bucket !== "metadata";
  const needs = `Needs ${surface ? `the surface \`${surface}\`` : "no surface"} and ${resource ? `the resource \`${resource.name}\`` : "no resource"}.`;
  return {
    operationId: endpoint.id,
    tags: ["read"],
    summary: endpoint.summary,
    description: `${endpoint.description}\n\n${needs} Bucket: ${buckets.join(", else ")}.`,
    parameters: [
      ...(path.includes("{slug}") ? [slugParameter] : []),
      ...Object.entries(query).map(([name, schema]) => parameter(name, schema)),
      ...(isConditional ? [ifNoneMatch, prefer] : []),
    ],
    responses: {
      "200": {
        description: `Everything that was asked for${names.includes("format") ? ", as JSON or as dotenv text" : ""}.`,
        headers: headerRefs([
          ...usual,
          ...limited,
          ...(isConditional ? ["ETag", appliedHeader, receiptHeader, readsHeader] : []),
          ...(names.includes("format") ? [nonportable] : []),
        ]),
        content: {
          "application/json": { schema: { $ref: `#/components/schemas/${answer}` }, example },
          ...(names.includes("format") && {
            "text/plain": { schema: { type: "string" }, example: "API_TOKEN=made-up\n" },
          }),
        },
      },
      ...(isConditional && {
        "304": {
          description: "The answer is still the one with the tag in `If-None-Match`. There is no body.",
          headers: headerRefs([...usual, ...limited, "ETag", appliedHeader]),
        },
      }),
      ...refusalsOf(endpoint),
    },
  };
}

/** The errors that every operation has. */
const everywhere: Readonly<Record<string, readonly [FaultCode, ...FaultCode[]]>> = {
  BadRequest: ["invalid_request"],
  Unauthorized: ["unauthorized"],
  TooManyRequests: ["rate_limited"],
  InternalError: ["internal_error"],
  Unavailable: ["decryption_failed", "unavailable"],
};

/** What the runtime answers, by status, before a request reaches Keyhole: without a body, and without our headers. */
const ofRuntime: Readonly<Record<string, readonly [name: string, description: string]>> = {
  "431": ["HeadTooLarge", "The address and the headers together are over 16 KiB. There is no body."],
  "505": ["UnknownHttpVersion", "The version of HTTP is unknown. There is no body."],
};

/** The errors of an endpoint by status. */
function refusalsOf({ path, query, admission, refusals = [] }: Described) {
  const names = Object.keys(query);
  const codes: FaultCode[] = [
    "plan_required",
    ...(admission.surface ? (["surface_required"] as const) : []),
    ...(admission.resource ? (["resource_required"] as const) : []),
    ...(names.includes("environment") ? (["environment_not_in_scope"] as const) : []),
    ...(names.includes("project") || path.includes("{slug}") ? (["project_not_found"] as const) : []),
    ...refusals,
    ...(names.includes("format") ? (["env_unrepresentable"] as const) : []),
  ];
  const own = Map.groupBy(codes, (code) => faults[code][0]);
  return Object.fromEntries([
    ...[...own].map(([status, some]) => [String(status), refusal(some)]),
    ...Object.entries(everywhere).map(([name, [code]]) => [
      String(faults[code][0]),
      { $ref: `#/components/responses/${name}` },
    ]),
    ...Object.entries(ofRuntime).map(([status, [name]]) => [status, { $ref: `#/components/responses/${name}` }]),
  ]);
}

function refusal(codes: readonly FaultCode[]) {
  const [code] = codes as readonly [FaultCode];
  const fault = code === "invalid_request" ? invalidParameter("x", "is not known here") : new Fault(code, "");
  const { status, body } = problemOf(fault);
  const more = status === 401 ? ["WWW-Authenticate"] : status === 429 ? ["Retry-After"] : [];
  return {
    description: codes.map((one) => `\`${one}\`: ${faults[one][1]}`).join("\n\n"),
    headers: headerRefs([...usual, ...(status === 401 ? [] : limited), ...more]),
    content: {
      "application/json": { schema: { $ref: "#/components/schemas/Problem" }, example: JSON.parse(body) },
    },
  };
}

function parameter(name: string, declared: TSchema & { readonly description?: string }) {
  const required = !Type.IsOptional(declared); // a mark that a copy of the schema does not have
  const { description, ...schema } = declared;
  const list = "items" in schema ? { style: "form", explode: true } : {};
  return { name, in: "query", required, description, ...list, schema };
}

const slugParameter = {
  name: "slug",
  in: "path",
  required: true,
  description: "The slug of a project.",
  schema: { type: "string", pattern: slugRule },
};

const ifNoneMatch = {
  name: "If-None-Match",
  in: "header",
  required: false,
  description:
    "The `ETag` of an earlier answer to the same question of the same key. The request is charged to the metadata bucket, and to its own bucket too if the answer has changed. A list, a weak tag (`W/`) and `*` are compared as RFC 9110 says. Anything else is ignored.",
  schema: { type: "string" },
};

const prefer = {
  name: "Prefer",
  in: "header",
  required: false,
  description:
    "`wait=N` with `If-None-Match`: while the tag fits, the answer waits, at most N seconds, and is then the one of that moment. N is 1 to 60; anything else is ignored, as RFC 7240 says. A key may have 64 such requests at a time, and a process 10,000: beyond that the answer comes at once.",
  schema: { type: "string", example: "wait=55" },
};

const usual = ["x-request-id", "Cache-Control", "X-Content-Type-Options"] as const;
/** Headers of answers to a key that was recognized. */
const limited = ["RateLimit-Policy", "RateLimit"] as const;
const nonportable = "Keyhole-Env-Nonportable";

const headers: Readonly<Record<string, unknown>> = {
  "x-request-id": header("The caller's own id if it is well-formed, else a generated one.", "0f6e2c1a-5b7d-4e0a-9c39"),
  "Cache-Control": header("Nothing may be stored.", "no-store"),
  "X-Content-Type-Options": header("Browsers must not guess the type.", "nosniff"),
  "RateLimit-Policy": header("The bucket that was charged (IETF draft).", policies.value.announcement),
  RateLimit: header("What is left in it: `r` requests, full again in `t` seconds (IETF draft).", '"value";r=29;t=2'),
  ETag: header(
    "The tag of this answer for this key and question. It tells nothing about the content.",
    '"0123456789abcdefghijklmnopqrstuvwxyzABCDEFG"',
  ),
  [appliedHeader]: header("The server waited as `Prefer` says, or would have. Absent if it does not wait.", "wait=55"),
  [receiptHeader]: header(
    "The audit entries of this answer, which were on the disk before it left: `LANE:NUMBER`, or `LANE:FIRST-LAST` for several files. Absent if the answer has no value.",
    "0199a3c4-5b1e-7c53-9d0f-3f6f5ab1c2d4:12",
  ),
  [readsHeader]: header(
    "How many answers with values the trust gives one job, this one included. Absent if it gives as many as it is asked for, and for a key.",
    "10",
  ),
  "Retry-After": header("Whole seconds after which one request will pass.", "2"),
  "WWW-Authenticate": header("The same for every refused key.", 'Bearer realm="keyhole"'),
  [nonportable]: header("Variables that some readers of dotenv text cannot read exactly.", "MOTD"),
};

function header(description: string, example: string) {
  return { description, schema: { type: "string" }, example };
}

function headerRefs(names: readonly string[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const problem = Type.Object(
  {
    error: Type.String({ description: "A sentence for a person." }),
    code: Type.Enum(Object.keys(faults), { type: "string", description: "What programs compare." }),
  },
  { description: "Why nothing was returned.", additionalProperties: false },
);

/** Schemas that refer to each other by name, so that generators give each a type. */
function referring(schemas: Readonly<Record<string, TSchema>>) {
  const names = new Map(Object.entries(schemas).map(([name, schema]) => [schema as unknown, name]));
  const plain = (value: unknown, isTop: boolean): unknown => {
    const name = names.get(value);
    if (name !== undefined && !isTop) return { $ref: `#/components/schemas/${name}` };
    if (Array.isArray(value)) return value.map((one) => plain(one, false));
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one, false)]));
  };
  const sorted = Object.entries(schemas).sort(([a], [b]) => compareBytes(a, b));
  return Object.fromEntries(sorted.map(([name, schema]) => [name, plain(schema, true)]));
}
