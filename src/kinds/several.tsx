/** @jsxImportSource preact */
import type { Environment } from "../core/names.ts";
import { Refused } from "../core/refused.ts";
import { carryOut } from "../dashboard/parts/carry-out.ts";
import type { KindPages } from "../dashboard/parts/kind-pages.ts";
import { Field } from "../dashboard/parts/parts.tsx";
import { projectPagePath } from "../dashboard/parts/paths.ts";
import { type Route, rightsOf } from "../dashboard/parts/route.ts";
import type { Visit } from "../dashboard/parts/visit.ts";
import { findProject } from "../people/desk/projects.ts";
import { requireSet } from "../people/editing/open.ts";
import type { Entry, KindDescriptor } from "../serve/sets/kind.ts";
import type { deletionOf } from "./delete.ts";
import { drafted, keepDraft, planRoutes } from "./plan-page.tsx";

/** What was chosen in a grid: these items of one environment, and the environment whose button was pressed. */
export type Chosen = {
  readonly from: Environment;
  readonly environment: Environment;
  readonly names: string[];
};

/** What can be done with chosen items, as a plan. It is in the project of the grid unless it says another one. */
type Deed = (visit: Visit, chosen: Chosen) => ReturnType<typeof drafted> & { readonly where?: string };

/** What a kind can do with chosen items beside deleting them: by the words in the list, and the fields that it takes. */
type More = {
  readonly deeds: Readonly<Record<string, Deed>>;
  readonly Fields: NonNullable<KindPages["Several"]>;
};

/** The deletion of one item; the fields below the grid in which items are chosen; and the pages to which both lead. */
export function severalOf<E extends Entry>(
  descriptor: KindDescriptor<E>,
  deletion: ReturnType<typeof deletionOf>,
  { deeds: more, Fields }: Partial<More> = {},
) {
  const { kind } = descriptor;
  const deeds: Readonly<Record<string, Deed>> = {
    delete: ({ where }, { environment, names }) =>
      drafted(deletion, { project: where, environments: [environment], names }),
    ...more,
  };
  const Several: KindPages["Several"] = (place) => (
    <div class="actions">
      <Field name="deed" label="With them" options={Object.keys(deeds)} />
      {Fields && <Fields {...place} />}
    </div>
  );
  const path = `/p/:org/:project/${kind}/several` as const;
  const routes: readonly Route[] = [
    { method: "POST", path, rights: rightsOf(deletion), answer: (visit) => several(visit, descriptor, deeds) },
    ...planRoutes(path, deletion),
  ];
  const remove: KindPages["remove"] = (visit, name, environments, to) =>
    carryOut(visit, deletion, { project: visit.where, names: [name], environments }, to);
  return { remove, Several, routes };
}

/** Finds out what would be done with the chosen items that are there, and keeps it. Nothing is written yet. */
async function several(visit: Visit, descriptor: KindDescriptor, deeds: Readonly<Record<string, Deed>>) {
  const { admin, where, form } = visit;
  const { kind, item } = descriptor;
  const environment = form.environment();
  const deed = form.read("deed");
  const from = deed === "copy from" ? form.environment("from") : environment;
  const project = await findProject(admin, where, "see", [from]);
  const set = await requireSet(admin, { project, descriptor, environment: from });
  const names = [...new Set(form.all("names")).intersection(new Set(set.names))];
  const begin = Object.hasOwn(deeds, deed) ? deeds[deed] : undefined;
  if (begin === undefined) {
    throw new Refused("invalid", `There is no ${JSON.stringify(deed)}: load the page again.`, { field: "deed" });
  }
  if (names.length === 0) {
    throw new Refused("invalid", `No ${item} of ${from} is chosen. Nothing was changed.`, { field: "names" });
  }
  const again = ["Choose others", projectPagePath(where, kind, { choose: "yes" })] as const;
  const draft = { where, kind, environment, again, ...begin(visit, { from, environment, names }) };
  return keepDraft(visit, projectPagePath(where, `${kind}/several`), draft);
}
