/* A name cannot stand for a value, nor a value for a name. */

import type { Item } from "../../src/people/editing/open.ts";
import { StoredValue } from "../../src/people/editing/stored-value.ts";

declare const item: Item;
declare const value: StoredValue;
declare const print: (name: string) => void;

new StoredValue(Buffer.from("a value"), undefined);
print(value.shown());

// @ts-expect-error a name as a stored value: 'string' is not assignable to .* 'Uint8Array<
new StoredValue("API_TOKEN", undefined);
// @ts-expect-error a name as the value of an item: 'string' is not assignable to type 'StoredValue
export const named: Item = { ...item, value: "API_TOKEN" };
// @ts-expect-error a value as a name: 'StoredValue' is not assignable to .* 'string'
print(value);
// @ts-expect-error a value as a response: 'StoredValue' is not assignable
new Response(value);
