/** @jsxImportSource preact */
import type { KindPages } from "../../dashboard/parts/kind-pages.ts";
import { severalOf } from "../several.tsx";
import { accounts } from "./entry.ts";
import { form } from "./form.tsx";
import { remove } from "./operations.ts";
import { revealAccount } from "./reveal.ts";

export const pages: KindPages = {
  reveal: async ({ admin, where }, environment, name, version) => {
    const { values } = await revealAccount(admin, where, name, environment, version);
    return Object.entries(values)
      .map(([field, value]) => `${field}: ${value}`)
      .join("\n");
  },
  form,
  ...severalOf(accounts, remove),
  firstStep: "Write one: a name, and its fields such as username and password.",
};
