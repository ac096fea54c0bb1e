import type { Entry, KindDescriptor } from "../../sets/kind.ts";

/** A shared account in a listing. */
export type AccountEntry = Entry & { readonly name: string };

/** The values of accounts are the objects of their fields. */
export const accounts: KindDescriptor<AccountEntry> = {
  kind: "accounts",
  command: "account",
  nameOf: ({ name }) => name,
  identityOf: ({ name }) => name,
  hasValues: true,
  countsColumn: "accountCounts",
  datedValue: (value) => value,
};
