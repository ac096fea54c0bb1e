import { type Body, Render } from "../held.ts";
import { jsonType } from "./body.ts";

/** An account as metadata shows it. */
export type AccountRecord = {
  readonly name: string;
  readonly environments: readonly string[];
  readonly updatedAt: number;
};
/** An account: its record up to where its values stand, and its fields as the JSON object of the answer. */
export type OpenedAccount = { readonly before: string; readonly values: Buffer };

/** The JSON of an account before its values. */
export function beforeValues(record: AccountRecord): string {
  return `${JSON.stringify(record).slice(0, -1)},"values":`;
}

/** The answer of the accounts endpoint. */
export function accountsJson(environment: string | null): Render<readonly OpenedAccount[]> {
  return new Render((accounts): Body => {
    const objects = accounts.map(({ before, values }) => {
      const text = `${before}${values.toString("utf8")}}`;
      values.fill(0);
      return text;
    });
    const before = `{"environment":${JSON.stringify(environment)},"accounts":[`;
    return { content: `${before}${objects.join(",")}]}`, contentType: jsonType };
  });
}
