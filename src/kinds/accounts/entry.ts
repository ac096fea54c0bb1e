import type { Entry, KindDescriptor } from "../../serve/sets/kind.ts";

/** A shared account in a listing. */
export type AccountEntry = Entry & { readonly name: string };

/** The values of accounts are the objects of their fields. */
export const accounts: KindDescriptor<AccountEntry> = {
  kind: "accounts",
  command: "account",
  item: "account",
  counted: "Accounts",
  isCountedInLists: true,
  resource: { name: "accounts", bit: 4 },
  actions: ["accounts.read", "accounts.write", "accounts.reveal", "accounts.rollback"],
  isReadAlone: false,
  isReadByName: false,
  hasValues: true,
  nameOf: ({ name }) => name,
  identityOf: ({ name }) => name,
  textsOf: (fields: Readonly<Record<string, string>>) => fields,
  warningsOf: () => [],
};
