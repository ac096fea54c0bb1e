/** @jsxImportSource preact */
import type { Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { findProject } from "../../desk/projects.ts";
import { requireSet } from "../../editing/open.ts";
import { Field } from "../../pages/parts.tsx";
import { projectPagePath } from "../../pages/paths.ts";
import type { Answer } from "../../pages/route.ts";
import type { Visit } from "../../pages/visit.ts";
import { variables } from "./entry.ts";
import { comingDay } from "./form.tsx";
import { copy, mark, remove } from "./operations.ts";
import { drafted, keepDraft } from "./plan-page.tsx";

const deeds = ["delete", "rotate by", "copy from"] as const;

/** What can be done with the variables that are chosen in the grid. */
export function DeedFields({ shown }: { readonly shown: readonly Environment[] }) {
  return (
    <div class="actions">
      <Field name="deed" label="With them" options={deeds} />
      <Field name="rotateBy" label="Rotate by" type="date" />
      <Field name="from" label="Copy from" options={shown} />
    </div>
  );
}

/**
 * Finds out what would be done with the chosen variables in an environment, and keeps it. Those that are not there are
 * left out. Nothing is written yet.
 */
export async function several(visit: Visit): Promise<Answer> {
  const { admin, where, form } = visit;
  const environment = form.environment();
  const deed = form.read("deed");
  const from = deed === "copy from" ? form.environment("from") : environment;
  const project = await findProject(admin, where, "see", [from]);
  const set = await requireSet(admin, { project, descriptor: variables, environment: from });
  const names = [...new Set(form.all("names")).intersection(new Set(set.names))];
  if (names.length === 0) {
    throw new Refused("invalid", `No variable of ${from} is chosen. Nothing was changed.`, { field: "names" });
  }
  const given = { project: where, environments: [environment], names };
  const deedOf = () => {
    if (deed === "delete") return drafted(remove, given);
    if (deed === "rotate by")
      return drafted(mark, { ...given, rotateBy: comingDay(form.read("rotateBy"), admin.now()) });
    if (from !== environment)
      return drafted(copy, { ...given, environment: from, to: where, toEnvironment: environment });
    throw new Refused("invalid", "Choose two different environments. Nothing was copied.", { field: "from" });
  };
  const again = ["Choose others", projectPagePath(where, "variables", { choose: "yes" })] as const;
  return keepDraft(visit, projectPagePath(where, "variables/several"), { environment, again, ...deedOf() });
}
