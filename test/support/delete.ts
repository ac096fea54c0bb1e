import { accounts } from "../../src/kinds/accounts/entry.ts";
import { planDeletion } from "../../src/kinds/delete.ts";
import { files } from "../../src/kinds/files/entry.ts";
import { variables } from "../../src/kinds/variables/entry.ts";
import type { AdminContext } from "../../src/people/desk/context.ts";
import { applying, type Seen } from "../../src/people/desk/plan.ts";

/* Deletes an item, in few words. */

export function deleteVariable(admin: AdminContext, where: string, from: string, name: string) {
  return applying(admin, (admin) => planDeletion(admin, where, variables, [name], [from]));
}

export function deleteAccount(
  admin: AdminContext,
  where: string,
  name: string,
  { seen }: { readonly seen?: Seen } = {},
) {
  return applying(admin, (admin) => planDeletion(admin, where, accounts, [name]), seen);
}

export function deleteFile(admin: AdminContext, where: string, name: string, from: readonly string[]) {
  return applying(admin, (admin) => planDeletion(admin, where, files, [name], from));
}
