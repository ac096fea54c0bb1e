/*
 * The reference of the API as Markdown, made of `openapi.json`. It knows the parts of OpenAPI that this document uses.
 */

type Schema = {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly (string | null)[];
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly format?: string;
  readonly pattern?: string;
};
type Response = {
  readonly $ref?: string;
  readonly description?: string;
  readonly content?: Readonly<Record<string, { readonly schema: Schema; readonly example: unknown }>>;
};
type Parameter = {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly description: string;
  readonly schema: Schema;
};
type Operation = {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters?: readonly Parameter[];
  readonly responses: Readonly<Record<string, Response>>;
};
/** What this page reads of the document. */
export type Description = {
  readonly paths: Readonly<Record<string, { readonly get: Operation }>>;
  readonly components: {
    readonly responses: Readonly<Record<string, Response>>;
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly headers: Readonly<Record<string, { readonly description: string; readonly example: string }>>;
  };
};

/** Values of the example requests, by the parameter's name. */
const samples: Readonly<Record<string, string>> = { slug: "web", project: "web", environment: "production" };

/** Every endpoint with its parameters, fields and errors, then what all of them share. Headings begin at level 2. */
export function referenceOf(description: Description): string {
  const { components, paths } = description;
  const all = Object.values(paths).flatMap(({ get }) => Object.entries(get.responses));
  const shared = new Map(all.map(([status, { $ref }]) => [$ref?.split("/").at(-1) ?? "", status]));
  return [
    ...Object.entries(paths).flatMap(([path, { get }]) => endpoint(path, get, components.schemas)),
    "## Errors of every endpoint",
    errors(Object.entries(components.responses).map(([name, response]) => [shared.get(name) ?? "", response])),
    "## Headers of answers",
    table(
      ["header", "meaning", "example"],
      Object.entries(components.headers).map(([name, { description, example }]) => [
        code(name),
        description,
        code(example),
      ]),
    ),
  ].join("\n\n");
}

function endpoint(path: string, get: Operation, schemas: Description["components"]["schemas"]): string[] {
  const { summary, description, parameters = [], responses } = get;
  const own = Object.entries(responses).filter(([status, { $ref }]) => $ref === undefined && status >= "400");
  const examples = Object.values(responses["200"]?.content ?? {}).map(({ example }) =>
    typeof example === "string" ? fence("sh", example.trimEnd()) : fence("json", JSON.stringify(example, undefined, 2)),
  );
  return [
    `## ${code(`GET ${path}`)} {#${get.operationId}}`,
    `${summary}. ${description}`,
    fence("sh", requestOf(path, parameters)),
    ...examples,
    ...(parameters.length === 0
      ? []
      : [
          table(
            ["parameter", "where", "value", "meaning"],
            parameters.map(({ name, in: where, required, description, schema }) => [
              code(name),
              required ? `${where}, required` : where,
              textOf(schema),
              description,
            ]),
          ),
        ]),
    table(
      ["field of the answer", "value", "meaning"],
      fieldsOf(responses["200"]?.content?.["application/json"]?.schema ?? {}, schemas, "").map(([name, ...rest]) => [
        code(name),
        ...rest,
      ]),
    ),
    errors(own),
    "It also has the [errors of every endpoint](#errors-of-every-endpoint).",
  ];
}

function requestOf(path: string, parameters: readonly Parameter[]): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => samples[name] ?? name);
  const query = parameters
    .filter((one) => one.in === "query" && samples[one.name] !== undefined)
    .map(({ name }) => `${name}=${samples[name]}`);
  const url = `$KEYHOLE_URL/api/v1${filled}${query.length > 0 ? `?${query.join("&")}` : ""}`;
  return `curl -s -H "Authorization: Bearer $KEYHOLE_API_KEY" \\\n  "${url}"`;
}

/** Fields with those within them: `variables[].key`. */
function fieldsOf(
  schema: Schema,
  schemas: Description["components"]["schemas"],
  prefix: string,
): [name: string, value: string, meaning: string][] {
  const { properties = {}, required = [] } = resolve(schema, schemas);
  return Object.entries(properties).flatMap(([key, declared]) => {
    const field = resolve(declared, schemas);
    const name = `${prefix}${key}`;
    const inner = resolve(field.items ?? {}, schemas);
    const meaning = field.description ?? inner.description ?? "";
    const value = textOf(field.items?.$ref ? { type: "list of objects" } : field);
    return [
      [name, required.includes(key) ? value : `${value}, may be absent`, meaning] as [string, string, string],
      ...fieldsOf(field, schemas, `${name}.`),
      ...fieldsOf(inner, schemas, `${name}[].`),
    ];
  });
}

function resolve(schema: Schema, schemas: Description["components"]["schemas"]): Schema {
  const name = schema.$ref?.split("/").at(-1);
  if (name === undefined) return schema;
  const found = schemas[name];
  if (found === undefined) throw new Error(`openapi.json has no schema ${name}`);
  return found;
}

function textOf(schema: Schema): string {
  if (schema.enum) return schema.enum.map((one) => code(String(one))).join(", ");
  if (schema.items) return `list of ${textOf(schema.items)}`;
  if (schema.patternProperties) return "object: name to text";
  if (schema.pattern) return code(schema.pattern);
  return [schema.type].flat().join(" or ");
}

/** One row for each code. A response's description has a paragraph for each: the code, a colon, the sentence. */
function errors(responses: readonly (readonly [status: string, Response])[]): string {
  const rows = responses.flatMap(([status, { description = "" }]) =>
    description.split("\n\n").map((one) => [status, ...one.split(/: (.*)/s).slice(0, 2)]),
  );
  return table(["status", "code", "sentence"], rows);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

function code(text: string): string {
  return `\`${text}\``;
}

function fence(language: string, text: string): string {
  return `\`\`\`${language}\n${text}\n\`\`\``;
}
