import { and, eq, getTableColumns, inArray, or } from "drizzle-orm";
import type { Environment } from "../../core/names.ts";
import type { SetIdentity } from "../../seal/associated-data.ts";
import { orUndefined } from "../../seal/envelope.ts";
import { type SealedSet, verifyListing } from "../../seal/set.ts";
import type { KindDescriptor } from "../../serve/sets/kind.ts";
import type { AdminContext } from "../desk/context.ts";
import type { Permit } from "../desk/permit.ts";
import { type FoundProject, projectColumns } from "../desk/projects.ts";
import { damageOf } from "./open.ts";

/* The listings of many projects, read together: to look for something that may be anywhere. */

/** A project, whose listings are read in the environments of its permit. */
export type ProjectAsked = {
  readonly id: string;
  readonly permit: Permit;
  /** The bytes of these listings. */
  readonly bytes: number;
};

/** A project with its listings, each verified and not parsed. */
export type Listings = {
  readonly project: FoundProject & { readonly name: string };
  readonly listings: readonly {
    readonly descriptor: KindDescriptor;
    readonly environment: Environment;
    readonly text: string;
  }[];
  /** A sentence for each set that is missing or does not verify. */
  readonly damage: readonly string[];
};

/**
 * Reads the listings of projects, about 1 MiB at a time. Nothing else of sets is read. A project that is gone by then is
 * left out. After each project the process turns to what else waits.
 */
export async function* listingsAcross(
  admin: AdminContext,
  projects: readonly ProjectAsked[],
  kinds: readonly KindDescriptor[],
): AsyncGenerator<Listings> {
  for (const batch of batches(projects)) {
    const rows = Map.groupBy(await rowsOf(admin, batch, kinds), ({ project }) => project.id);
    for (const { id, permit } of batch) {
      const ofProject = rows.get(id);
      if (ofProject !== undefined) yield verified(admin, permit, ofProject, kinds);
      await new Promise(setImmediate);
    }
  }
}

const projectsAtOnce = 64;
const bytesAtOnce = 1024 * 1024;

function* batches(projects: readonly ProjectAsked[]): Generator<readonly ProjectAsked[]> {
  let batch: ProjectAsked[] = [];
  let bytes = 0;
  for (const project of projects) {
    batch.push(project);
    bytes += project.bytes;
    if (batch.length < projectsAtOnce && bytes < bytesAtOnce) continue;
    yield batch;
    batch = [];
    bytes = 0;
  }
  if (batch.length > 0) yield batch;
}

type SetRow = Awaited<ReturnType<typeof rowsOf>>[number];

function verified(
  { systemKeys }: AdminContext,
  permit: Permit,
  rows: readonly SetRow[],
  kinds: readonly KindDescriptor[],
): Listings {
  const { project: own, organization } = rows[0] as SetRow;
  const project = { ...own, organization, permit };
  const places = kinds.flatMap((descriptor) => permit.environments.map((environment) => ({ descriptor, environment })));
  const damage: string[] = [];
  const listings = places.flatMap(({ descriptor, environment }) => {
    const set = rows.find((row) => row.set?.kind === descriptor.kind && row.set.environment === environment)?.set;
    const identity = { organizationId: organization.id, projectId: own.id, slug: own.slug };
    if (set && isWhole(systemKeys.listing, { ...identity, ...set }))
      return [{ descriptor, environment, text: set.listing }];
    damage.push(damageOf({ project, descriptor, environment }));
    return [];
  });
  return { project, listings, damage };
}

function isWhole(listingKey: Uint8Array, set: SetIdentity & Omit<SealedSet, "sealed">): boolean {
  const verify = () => {
    verifyListing(listingKey, set, set);
    return true;
  };
  return orUndefined(verify) ?? false;
}

/** A row for each set; one without a set for a project that has none there. */
function rowsOf(admin: AdminContext, projects: readonly ProjectAsked[], kinds: readonly KindDescriptor[]) {
  const { db, tables } = admin.database;
  const { sets: s, projects: p, organizations: o } = tables;
  const { sealed: _, ...set } = getTableColumns(s);
  const isPermitted = projects.map((one) => {
    return and(eq(s.projectId, one.id), inArray(s.environment, [...one.permit.environments]));
  });
  const ids = projects.map((one) => one.id);
  const isOfKinds = inArray(
    s.kind,
    kinds.map(({ kind }) => kind),
  );
  return db
    .select({ project: { ...projectColumns(admin), name: p.name }, organization: o, set })
    .from(p)
    .innerJoin(o, eq(o.id, p.organizationId))
    .leftJoin(s, and(eq(s.projectId, p.id), isOfKinds, or(...isPermitted)))
    .where(inArray(p.id, ids));
}
