import { type Body, Render } from "../held.ts";
import { jsonType } from "./body.ts";

/** An account as metadata shows it. */
export type AccountRecord = {
  readonly name: string;
  readonly environments: readonly string[];
  readonly updatedAt: number;
};
/** Opened accounts. */
export type OpenedAccounts = {
  /** Each: its record up to where its values stand, and its fields as the JSON object of the answer. */
  readonly accounts: readonly { readonly before: string; readonly values: Buffer }[];
  /** All bytes that were opened, to be zeroed. */
  readonly opened: readonly Buffer[];
};

/** The JSON of an account before its values. */
export function beforeValues(record: AccountRecord): string {
  return `${JSON.stringify(record).slice(0, -1)},"values":`;
}

/** The answer of the accounts endpoint. */
export function accountsJson(environment: string | null): Render<OpenedAccounts> {
  return new Render(({ accounts, opened }): Body => {
    const objects = accounts.map(({ before, values }) => `${before}${values.toString("utf8")}}`);
    for (const bytes of opened) bytes.fill(0);
    const before = `{"environment":${JSON.stringify(environment)},"accounts":[`;
    return { content: `${before}${objects.join(",")}]}`, contentType: jsonType };
  });
}
