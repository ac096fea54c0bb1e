import type { Entry, KindDescriptor } from "../sets/kind.ts";
import type { Kind } from "../store/tables.ts";
import { accounts } from "./accounts/entry.ts";
import { files } from "./files/entry.ts";
import { variables } from "./variables/entry.ts";

/** The kinds of item. Everything that treats all of them walks this list. */
export const everyKind: readonly KindDescriptor<Entry>[] = [variables, accounts, files];

/** The descriptor of a kind that is known at run time only. */
export function descriptorOf(kind: Kind): KindDescriptor<Entry> {
  return everyKind.find((descriptor) => descriptor.kind === kind) as KindDescriptor<Entry>;
}
