import type { Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { didYouMean } from "../../core/words/nearest.ts";
import { isCanary } from "../../seal/canary.ts";
import { may } from "../../serve/access/rights.ts";
import type { Entry, KindDescriptor } from "../../serve/sets/kind.ts";
import type { Change } from "../desk/changes.ts";
import { type AdminContext, writing } from "../desk/context.ts";
import { type FoundProject, findProject, placeOf } from "../desk/projects.ts";
import { findSet, type Item, lastChangedIn, openSetAt, type SetOf } from "./open.ts";

/** Which item somebody wants to see. */
export type RevealAsked = {
  readonly where: string;
  readonly name: string;
  /** By default the one in which it changed last, as in the API, of those in which the person may see values. */
  readonly environment?: Environment | undefined;
  /** A kept version of that environment's set; by default, the current one. */
  readonly version?: number | undefined;
};

/**
 * Opens one item. It is on record as revealed once this resolves.
 * @param use - makes of it what is shown, in the same transaction
 */
export async function revealItem<E extends Entry, T>(
  admin: AdminContext,
  descriptor: KindDescriptor<E>,
  { where, name, environment: only, version }: RevealAsked,
  use: (item: Item<E>, environment: Environment, project: FoundProject, admin: AdminContext) => T | Promise<T>,
): Promise<T> {
  const project = await findProject(admin, where, "reveal", only && [only]);
  return writing(admin, project.permit, async (admin) => {
    const environment = only ?? (await lastChangedIn(admin, { project, descriptor }, name));
    const set = environment && (await openSetAt(admin, { project, descriptor, environment }, version));
    const item = set?.items.get(name);
    if (environment === undefined || item === undefined) {
      const among = only ? [only] : project.permit.environments;
      throw await noItem(admin, { project, descriptor }, name, among, `${where}${only ? ` ${only}` : ""}`, version);
    }
    const shown = await use(item, environment, project, admin);
    return [shown, [revealOf(admin, { project, descriptor, environment }, [item])]];
  });
}

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

/**
 * The refusal of what needs an item that does not exist. It names the nearest one that the person may see.
 * @param among - the environments in which it was looked for
 * @param place - the project, and the environments if they matter
 */
export async function noItem<E extends Entry>(
  admin: AdminContext,
  { project, descriptor }: Pick<SetOf<E>, "project" | "descriptor">,
  name: string,
  among: readonly Environment[],
  place: string,
  version?: number,
): Promise<Refused> {
  const seen = among.filter((environment) => may(admin.rights, "see", placeOf(project), environment));
  const sets = await Array.fromAsync(seen, (environment) =>
    findSet(admin, { project, descriptor, environment }, version),
  );
  const names = sets.flatMap((set) => set?.entries.map(descriptor.nameOf) ?? []);
  const at = version === undefined ? "" : `, version ${version}`;
  const words = `There is no ${descriptor.item} ${JSON.stringify(name)} in ${place}${at}.`;
  return new Refused("not_found", `${words}${didYouMean(name, names)}`);
}
