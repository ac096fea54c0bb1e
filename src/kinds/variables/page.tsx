/** @jsxImportSource preact */
import type { KindPages } from "../../pages/kind-pages.ts";
import { pasteRoutes } from "./paste-page.tsx";
import { promoteRoutes } from "./promote-page.tsx";
import { revealVariable } from "./reveal.ts";
import { setRoutes } from "./set-page.tsx";

/** The pages of variables. */
export const pages: KindPages = {
  reveal: ({ admin, where }, environment, name) => revealVariable(admin, where, environment, name),
  actions: [
    { page: "variables/set", label: "New variable" },
    { page: "variables/paste", label: "Paste" },
    { page: "variables/promote", label: "Promote" },
  ],
  change: "variables/set",
  firstStep: "Paste the text of an .env file, or write one variable.",
  routes: [...setRoutes, ...pasteRoutes, ...promoteRoutes],
};
