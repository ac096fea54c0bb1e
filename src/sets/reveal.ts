import type { Change } from "../desk/changes.ts";
import type { AdminContext } from "../desk/context.ts";
import { isCanary } from "../seal/canary.ts";
import type { Entry } from "./kind.ts";
import type { Item, SetOf } from "./open.ts";

/** What a person sees of secrets is on record before it is shown, like what a machine reads. */
export function revealOf<E extends Entry>(
  { systemKeys }: Pick<AdminContext, "systemKeys">,
  { project, descriptor, environment }: SetOf<E>,
  items: Iterable<Item<E>>,
): Change {
  const entries = [...items].map(({ entry }) => entry);
  const canaries = entries.filter((entry) => isCanary(systemKeys.listing, entry)).map(descriptor.nameOf);
  return {
    action: `${descriptor.kind}.reveal`,
    organization: project.organization,
    project: { id: project.id, slug: project.slug },
    environment,
    names: entries.map(descriptor.nameOf),
    ...(canaries.length > 0 && { canaries }),
  };
}
