import { createCipheriv, randomBytes } from "node:crypto";
import { type Environment, environments } from "../../../src/core/names.ts";
import { accounts } from "../../../src/kinds/accounts/entry.ts";
import { planDeletion } from "../../../src/kinds/delete.ts";
import { files } from "../../../src/kinds/files/entry.ts";
import { putFile } from "../../../src/kinds/files/write.ts";
import { applying } from "../../../src/people/desk/plan.ts";
import { revokeKey } from "../../../src/people/keys/keys.ts";
import { createTrust } from "../../../src/people/keys/trusts.ts";
import { createOrganization, setPlan } from "../../../src/people/projects/organizations.ts";
import { createProject } from "../../../src/people/projects/projects.ts";
import { rotateData } from "../../../src/people/rotation/rotation.ts";
import { audience, publicJwk, type SigningKey } from "../../support/issuer.ts";
import { deleteProject, renameProject, setAccount, setVariables } from "../../support/plans.ts";
import { insertAccounts, insertFiles, numbered, sha256 } from "../../support/rows.ts";
import type { Regrant, World } from "../../support/world.ts";
import {
  type Item,
  type Key,
  type Kind,
  type Organization,
  openSet,
  type Project,
  placeOf,
  type Store,
} from "./keyhole.ts";

/* What people do, done to the installation and to the small Keyhole alike. */

type Values = Record<string, unknown>;
type Change = ReadonlyMap<string, { readonly value: unknown; readonly file?: Item["file"] } | null>;

export class People {
  readonly w: World;
  readonly store: Store;

  constructor(w: World, store: Store) {
    this.w = w;
    this.store = store;
  }

  /** The moment of the next change, of which no two have the same. */
  #tick(): number {
    this.w.clock.nowMs = (this.w.clock.nowMs ?? Date.now() - 3_600_000_000) + 7;
    return this.w.clock.nowMs;
  }

  async organization(slug: string, plan: string): Promise<Organization> {
    this.#tick();
    const { id, name } = await createOrganization(this.w.admin, { slug, name: `The ${slug} \u{1F511}`, plan });
    const made = { id, slug, name, plan };
    this.store.organizations.set(id, made);
    return made;
  }

  async plan(organization: Organization, plan: "free" | "pro"): Promise<void> {
    await setPlan(this.w.admin, organization.slug, plan);
    organization.plan = plan;
  }

  async project(organization: Organization, slug: string): Promise<Project> {
    const now = this.#tick();
    const name = `Project ${slug}`;
    const { id } = await createProject(this.w.admin, `${organization.slug}/${slug}`, { name });
    const changedAt = { development: now, staging: now, production: now };
    const own = { sets: new Map(), holds: new Map(), contents: new Map() };
    const made: Project = { id, organizationId: organization.id, slug, name, createdAt: now, changedAt, ...own };
    for (const kind of ["variables", "accounts", "files"] as const) {
      for (const one of environments) this.#write(made, kind, one, new Map(), now);
    }
    this.store.projects.set(id, made);
    return made;
  }

  async rename(project: Project, slug: string): Promise<void> {
    this.#tick();
    const name = `Renamed ${slug}`;
    await renameProject(this.w.admin, this.whereOf(project), { slug, name });
    const sets = [...project.sets.keys()].map((at) => {
      const set = openSet(this.store, project, ...(at.split(" ") as [Kind, Environment]));
      return { at, ...set, values: set.openValues() };
    });
    project.slug = slug;
    project.name = name;
    for (const { at, version, items, values } of sets) sealSet(this.store, project, at, version, items, values);
  }

  async deleteProject(project: Project): Promise<void> {
    await deleteProject(this.w.admin, this.whereOf(project));
    this.store.projects.delete(project.id);
  }

  /** A new data key, which no reader notices. */
  async rotate(project: Project): Promise<void> {
    await rotateData(this.w.admin, this.whereOf(project));
  }

  async variables(
    project: Project,
    one: Environment,
    written: Values,
    removed: readonly string[],
    when?: "same moment",
  ): Promise<void> {
    const now = (when && this.w.clock.nowMs) ?? this.#tick();
    const entries = Object.entries(written).map(([name, value]) => ({ name, value: value as string }));
    await setVariables(this.w.admin, this.whereOf(project), one, entries, { remove: removed });
    const change: [string, { value: unknown } | null][] = [
      ...entries.map(({ name, value }) => [name, { value }] as [string, { value: unknown }]),
      ...removed.map((name) => [name, null] as [string, null]),
    ];
    this.#write(project, "variables", one, new Map(change), now);
  }

  /** An account is in exactly these environments from now on. */
  async account(project: Project, name: string, among: readonly Environment[], values: Values): Promise<void> {
    const now = this.#tick();
    await setAccount(this.w.admin, this.whereOf(project), name, among, values);
    for (const one of environments) {
      if (among.includes(one)) this.#write(project, "accounts", one, new Map([[name, { value: values }]]), now);
      else if (project.holds.get(`accounts ${one}`)?.includes(name)) {
        this.#write(project, "accounts", one, new Map([[name, null]]), now);
      }
    }
  }

  async deleteAccount(project: Project, name: string): Promise<void> {
    const now = this.#tick();
    await applying(this.w.admin, (admin) => planDeletion(admin, this.whereOf(project), accounts, [name]));
    for (const one of environments) {
      if (!project.holds.get(`accounts ${one}`)?.includes(name)) continue;
      this.#write(project, "accounts", one, new Map([[name, null]]), now);
    }
  }

  async file(project: Project, path: string, among: readonly Environment[], content: string): Promise<void> {
    const now = this.#tick();
    const asked = { mode: content.length % 2 === 0 ? "0600" : "0400", contentType: "text/plain" } as const;
    const bytes = Buffer.from(content);
    const { id } = await putFile(this.w.admin, this.whereOf(project), {
      ...asked,
      path,
      environments: among,
      content: bytes,
    });
    const name = path.split("/").at(-1) as string;
    const file = { id, name, mode: asked.mode, size: bytes.length, sha256: sha256(bytes), contentType: "text/plain" };
    project.contents.set(id, seal(this.store.rootKey, [project.id, id, file.sha256], bytes));
    for (const one of among) this.#write(project, "files", one, new Map([[path, { value: null, file }]]), now);
  }

  async deleteFile(project: Project, path: string, one: Environment): Promise<void> {
    const now = this.#tick();
    await applying(this.w.admin, (admin) => planDeletion(admin, this.whereOf(project), files, [path], [one]));
    this.#write(project, "files", one, new Map([[path, null]]), now);
  }

  /** More variables and accounts than an answer may hold. */
  async crowd(project: Project, one: Environment): Promise<void> {
    await this.variables(project, one, Object.fromEntries(numbered("V", 1001).map((name) => [name, name])), []);
    const now = this.#tick();
    const many = numbered("a", 1001);
    await insertAccounts(this.w, { where: this.whereOf(project) }, many, [one]);
    this.#write(project, "accounts", one, new Map(many.map((name) => [name, { value: { a: name } }])), now);
  }

  /** Two files that are together larger than an answer may be, by their listing. In truth they are small. */
  async heavy(project: Project, one: Environment): Promise<void> {
    const now = this.#tick();
    const paths = ["heavy/one", "heavy/two"];
    await insertFiles(this.w, { ...project, where: this.whereOf(project) } as never, paths, [one], 4, 8_388_608);
    const at = [project.id, one];
    const [row] = await this.w.run(
      "select listing from sets where project_id = ? and kind = 'files' and environment = ?",
      at,
    );
    const listing = JSON.parse(String(row?.["listing"])) as (NonNullable<Item["file"]> & { path: string })[];
    const change = listing
      .filter(({ path }) => paths.includes(path))
      .map(({ id, path, name, mode, size, sha256: sum, contentType }) => {
        project.contents.set(id, Buffer.alloc(0));
        return [path, { value: null, file: { id, name, mode, size, sha256: sum, contentType } }] as const;
      });
    this.#write(project, "files", one, new Map(change), now);
  }

  async key(
    organization: Organization,
    asked: Pick<Key, "surfaces" | "resources" | "environments" | "projects" | "rate" | "from">,
  ) {
    const { surfaces, resources, environments: among, projects, rate, from } = asked;
    this.#tick();
    const made = await this.w.key(organization as never, {
      surfaces: [...surfaces],
      resources: [...resources],
      environments: [...among],
      projects: projects ? Object.keys(projects) : undefined,
      rate,
      from: from ?? undefined,
    });
    const standing = { expiresAt: null, isRevoked: false, isSealed: true };
    const key: Key = { id: made.id, text: made.key, organizationId: organization.id, ...asked, ...standing };
    this.store.keys.set(key.id, key);
    return key;
  }

  async trust(
    organization: Organization,
    issuer: string,
    key: SigningKey,
    reads: number | undefined,
    from: Key["from"],
    event?: string,
  ) {
    const rate = 3;
    this.#tick();
    const jwk = publicJwk("one", key);
    const claims = { sub: "job", repository_id: "1", ...(event && { event_name: event }) };
    const resources = ["projects", "variables", "files"];
    const { trust } = await createTrust(this.w.admin, {
      organization: organization.slug,
      projects: null,
      environments: null,
      resources,
      surfaces: ["rest_api"],
      issuer,
      audience,
      claims: new Map(Object.entries(claims)),
      jwks: JSON.stringify({ keys: [jwk] }),
      readsPerJob: reads,
      rate,
      from: from ?? undefined,
    });
    const perJob = reads === undefined ? {} : { perJob: { reads, claims: ["jti"] } };
    const made: Key = {
      id: trust.id,
      organizationId: organization.id,
      surfaces: ["rest_api"],
      resources,
      environments,
      projects: null,
      expiresAt: null,
      rate,
      from,
      isRevoked: false,
      isSealed: true,
      trust: { issuer, audience, claims, jwk, ...perJob },
    };
    this.store.keys.set(made.id, made);
    return made;
  }

  async regrant(key: Key, change: Regrant): Promise<void> {
    await this.w.regrant(key, change);
    Object.assign(key, change, { isSealed: true });
  }

  async revoke(key: Key): Promise<void> {
    await revokeKey(this.w.admin, key.id);
    key.isRevoked = true;
  }

  whereOf({ organizationId, slug }: Project): string {
    return `${this.store.organizations.get(organizationId)?.slug}/${slug}`;
  }

  #write(...[project, kind, one, change, now]: Written): void {
    writeSet(this.store, project, kind, one, change, now);
  }
}

type Written = [project: Project, kind: Kind, one: Environment, change: Change, now: number];

/** Writes items into a set, or takes them out, in the small Keyhole alone. */
export function writeSet(store: Store, ...[project, kind, one, change, now]: Written): void {
  const at = `${kind} ${one}`;
  const before = project.sets.has(at) ? openSet(store, project, kind, one) : undefined;
  const { items = [] } = before ?? {};
  const values = before?.openValues() ?? {};
  const version = (before?.version ?? 0) + 1;
  const kept = items.filter(({ name }) => !change.has(name));
  for (const [name, written] of change) {
    delete values[name];
    if (written === null) continue;
    kept.push({ name, updatedAt: now, version, ...(written.file && { file: written.file }) });
    values[name] = written.value;
  }
  kept.sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)));
  sealSet(store, project, at, version, kept, values);
  project.holds.set(
    at,
    kept.map(({ name, file }) => file?.id ?? name),
  );
  project.changedAt[one] = now;
}

/** Seals a set to its place. */
function sealSet(
  { rootKey }: Store,
  project: Project,
  at: string,
  version: number,
  items: Item[],
  values: Values,
): void {
  const [kind, one] = at.split(" ") as [Kind, Environment];
  const place = placeOf(project, kind, one, version);
  const listing = seal(rootKey, place, JSON.stringify(items));
  const sealed = seal(rootKey, [...place, listing.toString("hex")], JSON.stringify(values));
  project.sets.set(at, { version, listing, values: sealed });
}

/** AES-256-GCM, as the small Keyhole opens it. */
export function seal(key: Buffer, place: readonly unknown[], plain: string | Uint8Array): Buffer {
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(JSON.stringify(place)));
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}
