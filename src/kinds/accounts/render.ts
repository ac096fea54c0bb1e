import { jsonType } from "../../core/formats/json.ts";
import { type Body, Render } from "../../core/held.ts";

/** An account as metadata shows it. */
export type AccountRecord = {
  readonly name: string;
  readonly environments: readonly string[];
  readonly updatedAt: number;
};
/** Opened accounts: for each, the JSON before its values, and where its values are. */
export type OpenedAccounts = readonly {
  readonly before: string;
  readonly index: number;
  readonly opened: { readonly all: Buffer; readonly starts: Uint32Array };
}[];

/** The JSON of an account before its values: its UTF-8 bytes as text, one character for each byte. */
export function beforeValues(record: AccountRecord): string {
  return Buffer.from(`${JSON.stringify(record).slice(0, -1)},"values":`).toString("latin1");
}

/** The answer of the accounts endpoint. Opened bytes are zeroed. */
export function accountsJson(environment: string | null): Render<OpenedAccounts> {
  return new Render((accounts): Body => {
    // Bytes as text, one character for each: cutting text costs less than cutting bytes.
    const texts = new Map<Buffer, string>();
    const objects = accounts.map(({ before, index, opened: { all, starts } }) => {
      let text = texts.get(all);
      if (text === undefined) {
        text = all.toString("latin1");
        texts.set(all, text);
      }
      return `${before}${text.slice(starts[index], (starts[index + 1] ?? 1) - 1)}}`;
    });
    for (const all of texts.keys()) all.fill(0);
    const content = `{"environment":${JSON.stringify(environment)},"accounts":[${objects.join(",")}]}`;
    return { content: Buffer.from(content, "latin1"), contentType: jsonType };
  });
}
