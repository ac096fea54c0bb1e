/* A list that may be cut cannot hide that it is. */

import { Cut } from "../../src/core/cut.ts";
import { type AuditRecord, listAudit } from "../../src/people/audit/audit.ts";
import type { AdminContext } from "../../src/people/desk/context.ts";

declare const admin: AdminContext;
const list = await listAudit(admin, {}, () => {});
const count = (entries: readonly unknown[]) => entries.length;

const [entries, more] = list.with("There are older ones.");
console.log(count(entries), more);

// @ts-expect-error a cut list as a whole one: 'Cut<AuditRecord>' is (not assignable|missing)
export const whole: readonly AuditRecord[] = list;
// @ts-expect-error the length of a cut list: 'length' does not exist
console.log(list.length);
// @ts-expect-error a walk over a cut list: '\[Symbol.iterator\]\(\)'
for (const entry of list) console.log(entry);
// @ts-expect-error an index of a cut list: can't be used to index|has no .*index signature|'0' does not exist
console.log(list[0]);
// @ts-expect-error its entries without a word for the others: Expected 1 arguments
list.with();
// @ts-expect-error its entries without the word: not assignable to .* 'readonly unknown\[\]'
console.log(count(list.with("more")[1]));
console.log(new Cut([1]).first(1));
