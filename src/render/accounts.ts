import { type Body, Render } from "../held.ts";
import { jsonType } from "./body.ts";

/** An account as metadata shows it. */
export type AccountRecord = {
  readonly name: string;
  readonly environments: readonly string[];
  readonly updatedAt: number;
};
/** An account with its fields as the JSON object of the answer. */
export type OpenedAccount = { readonly record: AccountRecord; readonly values: Buffer };

/** The answer of the accounts endpoint. */
export function accountsJson(environment: string | null): Render<readonly OpenedAccount[]> {
  return new Render((accounts): Body => {
    const objects = accounts.map(({ record, values }) => {
      const text = `${JSON.stringify(record).slice(0, -1)},"values":${values.toString("utf8")}}`;
      values.fill(0);
      return text;
    });
    const before = `{"environment":${JSON.stringify(environment)},"accounts":[`;
    return { content: `${before}${objects.join(",")}]}`, contentType: jsonType };
  });
}
