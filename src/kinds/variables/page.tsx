import type { KindPages } from "../../pages/kind-pages.ts";
import { revealVariable } from "./reveal.ts";

/** The pages of variables. */
export const pages: KindPages = {
  reveal: ({ admin, where }, environment, name) => revealVariable(admin, where, environment, name),
  actions: [],
  firstStep: "Paste the text of an .env file, or set one variable.",
  routes: [],
};
