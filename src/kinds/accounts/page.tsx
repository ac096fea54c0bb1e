/** @jsxImportSource preact */
import type { KindPages } from "../../pages/kind-pages.ts";
import { revealAccount } from "./reveal.ts";
import { remove, set, setPage } from "./set-page.tsx";

export const pages: KindPages = {
  reveal: async ({ admin, where }, environment, name) => {
    const { values } = await revealAccount(admin, where, name, environment);
    return Object.entries(values)
      .map(([field, value]) => `${field}: ${value}`)
      .join("\n");
  },
  actions: { "New account": "accounts/set" },
  change: "accounts/set",
  firstStep: "Write one: a name, and its fields such as username and password.",
  routes: [
    { method: "GET", path: "/p/:org/:project/accounts/set", rights: ["write"], answer: setPage },
    { method: "POST", path: "/p/:org/:project/accounts/set", rights: ["write"], answer: set },
    { method: "POST", path: "/p/:org/:project/accounts/delete", rights: ["write"], answer: remove },
  ],
};
