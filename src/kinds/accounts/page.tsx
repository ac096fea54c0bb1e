import type { KindPages } from "../../pages/kind-pages.ts";
import { revealAccount } from "./reveal.ts";

/** The pages of accounts. */
export const pages: KindPages = {
  reveal: async ({ admin, where }, environment, name) => {
    const { values } = await revealAccount(admin, where, name, environment);
    return Object.entries(values)
      .map(([field, value]) => `${field}: ${value}`)
      .join("\n");
  },
  actions: [],
  firstStep: "Write one with `keyhole account set`.",
  routes: [],
};
