import type { Environment } from "../../core/names.ts";
import { everyKind } from "../../kinds/kind.ts";
import { resources } from "../../kinds/people.ts";
import {
  bitsOf,
  type OrganizationPlan,
  type Resource,
  refusalOf,
  type Surface,
  surfaces,
} from "../../serve/access/grant.ts";
import type { Right } from "../../serve/access/rights.ts";
import type { KindDescriptor } from "../../serve/sets/kind.ts";
import type { AdminContext } from "../desk/context.ts";
import { findProject } from "../desk/projects.ts";
import { findSet } from "../editing/open.ts";

/* Who can get a value: the answer for `keyhole access`, for its page and for an item's page. */

/** What somebody gets of a kind. Undefined: nothing. */
export type Gets = "values" | "names" | undefined;

/** What a key or a trust gets of a kind, wherever it reaches: gate 4 judges it as it judges a request. */
export function keyGets(
  plan: OrganizationPlan,
  key: { readonly surfaces: readonly Surface[]; readonly resources: readonly string[] },
  { resource, surfaceAlone }: Pick<KindDescriptor, "resource" | "surfaceAlone">,
): Gets {
  const grant = { surfaces: bitsOf(surfaces, key.surfaces), resources: bitsOf(resources, key.resources) };
  const passes = (surface: Surface, needed: Resource | null) =>
    refusalOf(plan, grant, { surface, resource: needed }) === undefined;
  if (passes("rest_api", resource) || (surfaceAlone && passes(surfaceAlone, null))) return "values";
  return passes("mcp_server", resource) ? "names" : undefined;
}

/** What a person with these rights gets, of every kind. */
export function personGets(rights: readonly Right[] = []): Gets {
  if (rights.includes("reveal")) return "values";
  return rights.includes("see") ? "names" : undefined;
}

/** The items of a project that no right shows, in words, as far as somebody may see them. Nobody reads a damaged set. */
export async function namesForMachines(admin: AdminContext, where: string, environment?: Environment) {
  const project = await findProject(admin, where, "see", environment && [environment]);
  const places = everyKind.flatMap((descriptor) =>
    project.permit.environments.map((environment) => ({ project, descriptor, environment })),
  );
  const names = await Array.fromAsync(places, async (of) => {
    const set = await findSet(admin, of);
    const hidden = set?.entries.filter((entry) => set.isMachinesOnly(entry)) ?? [];
    return hidden.map((entry) => `${of.descriptor.nameOf(entry)} in ${of.environment}`);
  });
  return names.flat();
}
