import { asc, eq, sql } from "drizzle-orm";
import type { Environment } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { partWithin, rankOf, requirePart } from "../../core/words/name-part.ts";
import { firstLines } from "../../core/words/text.ts";
import { everyKind } from "../../kinds/kind.ts";
import { isMachinesOnly } from "../../seal/canary.ts";
import { hasSomewhere } from "../../serve/access/rights.ts";
import type { Entry } from "../../serve/sets/kind.ts";
import type { AdminContext } from "../desk/context.ts";
import { ofOrganization } from "../desk/organizations.ts";
import { Permit } from "../desk/permit.ts";
import { type FoundProject, projectPath } from "../desk/projects.ts";
import { listingsAcross, type ProjectAsked } from "../editing/across.ts";
import { remarked } from "../editing/remarks.ts";
import { listKeys } from "../keys/keys.ts";
import { listPersons } from "../persons/persons.ts";
import { listRequests } from "../requests/requests.ts";

/** Something with the name that somebody looks for. */
export type Hit = {
  /** `project`, an item such as `variable`, `key`, `trust`, `request` or `person`. */
  readonly type: string;
  /** Its slug; null for a person whose organization was deleted. */
  readonly organization: string | null;
  /** Its slug, if it is a project, or something in one. */
  readonly project: string | null;
  readonly name: string;
  /** In which of them it is, as far as somebody may see them: an item or a request. */
  readonly environments?: readonly Environment[];
  /** Of an item: the first one in these environments. */
  readonly note?: string | undefined;
  /** Whether no right shows its value in one of these environments. */
  readonly machinesOnly?: true;
  /** Of a key, a trust or a request. */
  readonly id?: string;
  readonly status?: string;
  /** Of a person: the projects in which they have rights, as `ORG/PROJECT`, without rights in all of an organization. */
  readonly projects?: readonly string[];
};

/** What a search found. */
export type SearchResult = Awaited<ReturnType<typeof find>>;

/** The most hits of an answer. */
const hitsMax = 200;

/**
 * Finds names, and items by their notes, by a part of them, in all that somebody may see. What they may not see is not
 * looked at, and every set that they may see is verified, whatever is in it. So neither the answer nor its time tells of
 * another name.
 * @param part - of several words, each must be in the name, or in an item's note, its project or its environment; one at
 *   least in the name or the note. Case is ignored
 * @param organization - only in it
 * @param after - the `last` of another answer, after which this one begins
 * @param lately - projects as `ORG/PROJECT`, the newest last. After whole names, all hits in these come before all others
 * @returns `found`: the best ones first, at most {@link hitsMax}: whole names, then names that begin with the part, then
 *   others. `count`: how many hits there are. `before`: how many of them come before these. `last`: what the last of these
 *   is called, if others come after it. `projects`: all that they may see, by path, each with its environments that hold
 *   something. `unread`: how many sets could not be searched. `warnings`: which ones, in sentences
 * @throws Refused as {@link requirePart}; `not_found` for an organization that is not there for them
 */
export async function find(
  admin: AdminContext,
  part: string,
  organization?: string,
  { after, lately = [] }: { readonly after?: string | undefined; readonly lately?: readonly string[] | undefined } = {},
) {
  requirePart(part);
  const projects = new Map<string, SeenProject>();
  const search = { admin, within: partWithin(part), hits: new Hits(part, after, lately), projects };
  const damage = await findInProjects(search, organization);
  await findBeside(search, organization);
  const { best, count, before, last } = search.hits;
  return { found: best, count, before, last, projects, unread: damage.length, warnings: firstLines(damage) };
}

/** A project, and in which environments it has something. */
export type SeenProject = { readonly project: FoundProject; readonly used: ReadonlySet<Environment> };

type Search = {
  readonly admin: AdminContext;
  readonly within: ReturnType<typeof partWithin>;
  readonly hits: Hits;
  /** The projects so far. */
  readonly projects: Map<string, SeenProject>;
};

/** Projects and their items. @returns a sentence for each set that cannot be searched */
async function findInProjects(search: Search, organization: string | undefined): Promise<string[]> {
  const { admin, within, hits, projects: seen } = search;
  const damages: string[] = [];
  const projects = await projectsIn(admin, organization);
  for await (const { project, listings, damage } of listingsAcross(admin, projects, everyKind)) {
    const place = { organization: project.organization.slug, project: project.slug };
    const path = projectPath(project);
    const used = new Set(listings.flatMap(({ environment, text }) => (text === "[]" ? [] : [environment])));
    seen.set(path, { project, used });
    damages.push(...damage);
    const own = `${path} ${project.name}`;
    if (within([...used].join(" ")).isNamed(own)) hits.add({ type: "project", ...place, name: project.slug });
    for (const [{ item, nameOf }, some] of Map.groupBy(listings, ({ descriptor }) => descriptor)) {
      const places = new Map<string, Pick<Hit, "note" | "machinesOnly"> & { environments: Environment[] }>();
      for (const { environment, text } of some) {
        const { isNamed, mayName } = within(`${own} ${environment}`);
        if (!mayName(text)) continue;
        for (const entry of JSON.parse(text) as Entry[]) {
          const name = nameOf(entry);
          if (!isNamed(name) && !(entry.note && isNamed(`${name} ${entry.note}`))) continue;
          const { environments, note, ...marks } = places.get(name) ?? { environments: [] };
          if (isMachinesOnly(admin.systemKeys.listing, entry)) marks.machinesOnly = true;
          places.set(name, { environments: [...environments, environment], ...remarked({ note }, entry), ...marks });
        }
      }
      for (const [name, found] of places) hits.add({ type: item, ...place, name, ...found });
    }
  }
  return damages;
}

/** What a hit is, in words. */
export function whatIs({ type, status, machinesOnly }: Hit): string {
  return [type, status, machinesOnly && "for machines only"].filter(Boolean).join(", ");
}

/** Keys, trusts and requests; persons for whoever may list them. */
async function findBeside({ admin, within, hits, projects }: Search, organization: string | undefined): Promise<void> {
  const { isNamed } = within("");
  for (const { type, name, id, status, ...key } of await listKeys(admin, organization, isNamed)) {
    hits.add({ type, organization: key.organization, project: null, name, id, status });
  }
  for (const { name, environment, id, status, ...request } of await listRequests(admin, organization)) {
    const place = { organization: request.organization, project: request.project };
    const { isNamed } = within(`${place.organization}/${place.project} ${environment}`);
    if (isNamed(name)) hits.add({ type: "request", ...place, name, environments: [environment], id, status });
  }
  if (!hasSomewhere(admin.rights, "grant")) return;
  for (const { name, rights, ...person } of await listPersons(admin, organization)) {
    const held = new Set(rights.map((one) => `${one.organization}/${one.project}`));
    const theirs = {
      organization: person.organization,
      project: null,
      projects: [...projects.keys()].filter((one) => held.has(one)),
    };
    if (isNamed(name)) hits.add({ type: "person", ...theirs, name });
  }
}

/** The best hits, or the best after one of them, and how many there are. */
class Hits {
  count = 0;
  before = 0;
  /** Sparse. */
  readonly #byRank: Hit[][] = [];
  readonly #rank: (name: string) => number;
  readonly #after: string | undefined;
  readonly #lately: readonly string[];
  #isPast: boolean;

  constructor(part: string, after: string | undefined, lately: readonly string[]) {
    this.#rank = rankOf(part);
    this.#after = after;
    this.#lately = lately;
    this.#isPast = after === undefined;
  }

  add(hit: Hit): void {
    this.count += 1;
    const rank = this.#rankIn(hit);
    const first = this.#after === undefined ? -1 : Number.parseInt(this.#after, 10);
    if (rank < first || (rank === first && !this.#isPast)) {
      this.before += 1;
      this.#isPast ||= this.#idOf(hit) === this.#after;
      return;
    }
    const alike = this.#byRank[rank] ?? [];
    this.#byRank[rank] = alike;
    if (alike.length < hitsMax) alike.push(hit);
  }

  /** Whole names first. Then hits of the newest project by their fit, of the one before it, and so on. */
  #rankIn({ organization, project, name, type }: Hit): number {
    const where = `${organization}/${project}`;
    const fit = Math.min(this.#rank(name), type === "project" ? this.#rank(where) : 2);
    const others = this.#lately.length;
    const at = others - 1 - this.#lately.lastIndexOf(where);
    return fit === 0 ? at : others + 2 * at + fit;
  }

  /** @throws Refused `not_found` if the one before them is gone */
  get best(): readonly Hit[] {
    if (this.#isPast) return this.#byRank.flat().slice(0, hitsMax);
    throw new Refused("not_found", "The name after which this page began is gone: begin with the first page.");
  }

  /** What the last of them is called, if there are others after it. */
  get last(): string | undefined {
    const { best } = this;
    const last = best.at(-1);
    return last && this.before + best.length < this.count ? this.#idOf(last) : undefined;
  }

  #idOf(hit: Hit): string {
    const { type, organization, project, name, id } = hit;
    return [this.#rankIn(hit), type, organization, project, id ?? name].join(" ");
  }
}

/** The projects in which somebody may see names, by the bytes of organization and slug. */
async function projectsIn(admin: AdminContext, organization: string | undefined): Promise<ProjectAsked[]> {
  const { projects: p, organizations: o, sets: s } = admin.database.tables;
  const { db } = admin.database;
  const rows = await db
    .select({ id: p.id, organizationId: p.organizationId })
    .from(p)
    .innerJoin(o, eq(o.id, p.organizationId))
    .where(await ofOrganization(admin, p, organization))
    .orderBy(asc(o.slug), asc(p.slug));
  const seen = rows.flatMap(({ id, organizationId }) => {
    const permit = Permit.find(admin, ["see"], { organizationId, projectId: id });
    return permit === undefined ? [] : [{ id, permit }];
  });
  const ids = JSON.stringify(seen.map(({ id }) => id));
  const sizes = await db
    .select({
      id: s.projectId,
      environment: s.environment,
      bytes: sql`sum(octet_length(${s.listing}))`.mapWith(Number),
    })
    .from(s)
    .where(admin.database.isMember(s.projectId, sql`${ids}`))
    .groupBy(s.projectId, s.environment);
  const sizesOf = Map.groupBy(sizes, ({ id }) => id);
  return seen.map(({ id, permit }) => {
    const read = sizesOf.get(id)?.filter(({ environment }) => permit.environments.includes(environment)) ?? [];
    return { id, permit, bytes: read.reduce((sum, { bytes }) => sum + bytes, 0) };
  });
}
