/** @jsxImportSource preact */
import type { KindPages } from "../../pages/kind-pages.ts";
import { Steers } from "../../pages/parts.tsx";
import { rightsOf } from "../../pages/route.ts";
import { form } from "./form.tsx";
import { copy } from "./operations.ts";
import { paste, pastePage } from "./paste-page.tsx";
import { applyPlan, planPage } from "./plan-page.tsx";
import { promote, promotePage } from "./promote-page.tsx";
import { revealVariable } from "./reveal.ts";
import { DeedFields, several } from "./several.tsx";

export const pages: KindPages = {
  reveal: ({ admin, where }, environment, name, version) => revealVariable(admin, where, environment, name, version),
  form,
  actions: { Paste: "variables/paste", Promote: "variables/promote" },
  Note: Steers,
  Several: DeedFields,
  firstStep: "Paste the text of an .env file, or write one variable.",
  routes: [
    { method: "GET", path: "/p/:org/:project/variables/paste", rights: ["write"], answer: pastePage },
    { method: "POST", path: "/p/:org/:project/variables/paste", rights: ["write"], answer: paste },
    { method: "GET", path: "/p/:org/:project/variables/paste/:draft", rights: ["write"], answer: planPage },
    { method: "POST", path: "/p/:org/:project/variables/paste/:draft", rights: ["write"], answer: applyPlan },
    { method: "POST", path: "/p/:org/:project/variables/several", rights: ["write"], answer: several },
    { method: "GET", path: "/p/:org/:project/variables/several/:draft", rights: ["write"], answer: planPage },
    { method: "POST", path: "/p/:org/:project/variables/several/:draft", rights: ["write"], answer: applyPlan },
    { method: "GET", path: "/p/:org/:project/variables/promote", rights: ["reveal"], answer: promotePage },
    { method: "POST", path: "/p/:org/:project/variables/promote", rights: rightsOf(copy), answer: promote },
    { method: "GET", path: "/p/:org/:project/variables/promote/:draft", rights: rightsOf(copy), answer: planPage },
    { method: "POST", path: "/p/:org/:project/variables/promote/:draft", rights: rightsOf(copy), answer: applyPlan },
  ],
};
