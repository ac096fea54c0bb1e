/** @jsxImportSource preact */
import { Refused } from "../../core/refused.ts";
import type { KindPages } from "../../dashboard/parts/kind-pages.ts";
import { Field, Steers } from "../../dashboard/parts/parts.tsx";
import { rightsOf } from "../../dashboard/parts/route.ts";
import { drafted, planRoutes } from "../plan-page.tsx";
import { severalOf } from "../several.tsx";
import { variables } from "./entry.ts";
import { comingDay, edit, form } from "./form.tsx";
import { copy, importAll, mark, remove, set } from "./operations.ts";
import { neededForText, paste, pastePage, showText, textPage } from "./paste-page.tsx";
import { promote, promotePage } from "./promote-page.tsx";
import { revealVariable } from "./reveal.ts";

const several = severalOf(variables, remove, {
  deeds: {
    "rotate by": ({ admin, where, form }, { environment, names }) => {
      const rotateBy = comingDay(form.read("rotateBy"), admin.now());
      return drafted(mark, { project: where, environments: [environment], names, rotateBy });
    },
    "copy from": ({ where, form }, { from, environment, names }) => {
      const to = form.find("to")?.trim() || where;
      if (to === where && from === environment)
        throw new Refused("invalid", "Choose two different environments. Nothing was copied.", { field: "from" });
      const given = { project: where, environment: from, to, toEnvironment: environment, names };
      return { where: to, ...drafted(copy, given) };
    },
  },
  Fields: ({ where, shown }) => (
    <>
      <Field name="rotateBy" label="Rotate by" type="date" />
      <Field name="from" label="Copy from" options={shown} />
      <Field name="to" label="To project" value={where} />
    </>
  ),
});

const text = {
  path: "/p/:org/:project/variables/text",
  rights: ["reveal"] as const,
  needs: neededForText,
};

export const pages: KindPages = {
  reveal: ({ admin, where }, environment, name, version) => revealVariable(admin, where, environment, name, version),
  form,
  actions: { Paste: "variables/paste", "Edit as text": "variables/text", Promote: "variables/promote" },
  Note: Steers,
  ...several,
  isEditedInRows: true,
  firstStep: "Paste the text of an .env file, or write one variable.",
  routes: [
    { method: "POST", path: "/p/:org/:project/variables/edit", rights: rightsOf(set), answer: edit },
    { method: "GET", path: "/p/:org/:project/variables/paste", rights: rightsOf(importAll), answer: pastePage },
    { method: "POST", path: "/p/:org/:project/variables/paste", rights: rightsOf(importAll), answer: paste },
    ...planRoutes("/p/:org/:project/variables/paste", importAll),
    { method: "GET", ...text, answer: textPage },
    { method: "POST", ...text, isSecret: true, answer: showText },
    ...several.routes,
    {
      method: "GET",
      path: "/p/:org/:project/variables/promote",
      rights: ["reveal"],
      needs: ["see", "reveal"],
      answer: promotePage,
    },
    { method: "POST", path: "/p/:org/:project/variables/promote", rights: rightsOf(copy), answer: promote },
    ...planRoutes("/p/:org/:project/variables/promote", copy),
  ],
};
