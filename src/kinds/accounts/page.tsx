/** @jsxImportSource preact */
import type { KindPages } from "../../pages/kind-pages.ts";
import { revealAccount } from "./reveal.ts";
import { setRoutes } from "./set-page.tsx";

/** The pages of accounts. */
export const pages: KindPages = {
  reveal: async ({ admin, where }, environment, name) => {
    const { values } = await revealAccount(admin, where, name, environment);
    return Object.entries(values)
      .map(([field, value]) => `${field}: ${value}`)
      .join("\n");
  },
  actions: [{ page: "accounts/set", label: "New account" }],
  change: "accounts/set",
  firstStep: "Write one: a name, and its fields such as username and password.",
  routes: setRoutes,
};
