import { listNames, type NamedValue, renderDotenv } from "../../core/formats/dotenv.ts";
import { jsonAround, jsonType, textType } from "../../core/formats/json.ts";
import { type Body, Render } from "../../core/held.ts";

/** Opened variables: the objects of the answer, `{"key","value","updatedAt"}`, with commas between them. */
export type OpenedVariables = { readonly objects: Buffer };

/** The answer of the variables endpoint. */
export function variablesJson(environment: string | null): Render<OpenedVariables> {
  const before = `{"environment":${JSON.stringify(environment)},"variables":[`;
  return new Render(({ objects }) => jsonAround(before, objects, "]}"));
}

/** dotenv text. The render refuses with Fault `env_unrepresentable`. */
export const variablesDotenv: Render<OpenedVariables> = new Render(({ objects }): Body => {
  const { text, nonportable } = renderDotenv(namedValues(objects));
  const headers: Record<string, string> = {};
  if (nonportable.length > 0) headers["Keyhole-Env-Nonportable"] = listNames(nonportable);
  return { content: text, contentType: textType, headers };
});

/** The answer of the legacy endpoint. */
export function secretsJson(slug: string, environment: string): Render<OpenedVariables> {
  return new Render(({ objects }): Body => {
    // Member by member: an object would move names that look like array indices to its front.
    const members = namedValues(objects).map(({ name, value }) => `${JSON.stringify(name)}:${JSON.stringify(value)}`);
    const before = `{"project":${JSON.stringify({ slug })},"environment":"${environment}","secrets":{`;
    return { content: `${before}${members.join(",")}}}`, contentType: jsonType };
  });
}

function namedValues(objects: Buffer): NamedValue[] {
  const parsed = JSON.parse(`[${objects.toString("utf8")}]`) as readonly { key: string; value: string }[];
  objects.fill(0);
  return parsed.map(({ key, value }) => ({ name: key, value }));
}
