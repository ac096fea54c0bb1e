import { Database as SqliteFile } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { Fault } from "../../src/core/fault.ts";
import { type Environment, environmentMask } from "../../src/core/names.ts";
import { Refused } from "../../src/core/refused.ts";
import { type Config, readConfig } from "../../src/core/settings/settings.ts";
import { type Installation, openInstallation } from "../../src/installation/installation.ts";
import { type NewFile, putFile } from "../../src/kinds/files/write.ts";
import { resources } from "../../src/kinds/people.ts";
import type { AuditRecord } from "../../src/people/audit/audit.ts";
import { type AdminContext, adminContextOf, operator } from "../../src/people/desk/context.ts";
import type { Organization } from "../../src/people/desk/organizations.ts";
import { createKey, type KeyRecord, type NewKey } from "../../src/people/keys/keys.ts";
import { createOrganization } from "../../src/people/projects/organizations.ts";
import { createProject, type Project } from "../../src/people/projects/projects.ts";
import { newKey } from "../../src/seal/keyring.ts";
import { bitsOf, type Grant, type Surface, sealGrant, surfaces } from "../../src/serve/access/grant.ts";
import { createApp } from "../../src/serve/api/app.ts";
import { fileRequest } from "../../src/serve/api/read-requests.ts";
import type { ApiParts } from "../../src/serve/gates/api-parts.ts";
import { AdmissionQueue } from "../../src/serve/limit/admission-queue.ts";
import { MemoryBudget, smallBytesMax } from "../../src/serve/limit/budget.ts";
import { Limiter } from "../../src/serve/limit/limiter.ts";
import { UnrecognizedLimiter } from "../../src/serve/limit/unrecognized.ts";
import { type OpenKeyhole, openKeyhole } from "../../src/serve/process/compose.ts";
import { type Answer, type Ask, answerOf, leaksIn, requestOf } from "./answer.ts";
import { listAudit } from "./audit.ts";
import { expectDescribed } from "./described.ts";
import { migratedDatabase } from "./migrated.ts";
import { setAccount, setVariables } from "./plans.ts";
import { postgresUrl, withPostgres } from "./postgres.ts";

export type LogEvent = Readonly<Record<string, unknown>>;

/** An app with buckets of its own, and ways to ask it. */
export type Client = {
  /** The API itself: no socket, no server. */
  readonly handle: (request: Request) => Promise<Response>;
  /** Asks for a path below the API's root, with its query, as in `/projects?x=1`. */
  readonly ask: (path: string, ask?: Ask) => Promise<Answer>;
};

export type Key = KeyRecord & { readonly key: string };

/** A row as both databases give it: bytes as Buffer, numbers as number. */
export type Row = Record<string, unknown>;

/** What a project starts with. Omitted parts stay empty. */
export type Content = {
  readonly name?: string;
  readonly variables?: Partial<Readonly<Record<Environment, Readonly<Record<string, string>>>>>;
  readonly accounts?: readonly {
    readonly name: string;
    readonly environments: readonly Environment[];
    readonly values: Readonly<Record<string, string>>;
  }[];
  readonly files?: readonly (Omit<NewFile, "content"> & { readonly content: string | Uint8Array })[];
};

/** A project and the `ORG/PROJECT` by which the functions of `src/people` and `src/kinds` find it. */
export type Placed = Project & { readonly where: string };

/** A project in an organization of its own. */
export type Place = Omit<Placed, "organization"> & { readonly organization: Organization; readonly project: Placed };

/** What {@link World.place} makes: a project with this content, called `web` unless it has another slug. */
type AskedPlace = Content & { readonly slug?: string };

/** Everything a key may be used through and read. */
export const everything = { surfaces: [...surfaces], resources: [...resources] } as const;

/** A key as a test asks for it; every project and every environment unless it says otherwise. */
type AskedKey = Omit<NewKey, "organization" | "projects" | "environments"> & {
  readonly projects?: readonly string[] | undefined;
  readonly environments?: readonly string[] | undefined;
};

/** A real installation on a database of its own, with the API on top and an admin context beside it. */
export type World = Client & {
  readonly dialect: "postgres" | "sqlite";
  readonly config: Config;
  /** DATABASE_URL; undefined on SQLite. */
  readonly databaseUrl: string | undefined;
  readonly installation: Installation;
  readonly keyhole: OpenKeyhole;
  /** For the functions of `src/people` and `src/kinds`; its clock is `clock`. */
  readonly admin: AdminContext;
  /** The admin's clock: epoch milliseconds, or undefined for the real one. Database and server keep their own. */
  readonly clock: { nowMs: number | undefined };
  /** Every event that the apps of this world logged, oldest first. */
  readonly log: LogEvent[];
  /** The text of every key made here, and every value of 8 characters or more that `project` wrote. */
  readonly secrets: Set<string>;
  /** SQL past everything, with values in place: `sql\`update files set size = ${1} where id = ${id}\``. */
  readonly sql: (text: TemplateStringsArray, ...values: readonly unknown[]) => Promise<Row[]>;
  /** The same with text and values apart; `?` stands for a value on both databases. */
  readonly run: (text: string, values?: readonly unknown[]) => Promise<Row[]>;
  /** Another app on the same installation, with fresh buckets; `change` may put other parts in. */
  readonly client: (change?: (keyhole: ApiParts) => Partial<ApiParts>) => Client;
  /** A new organization with a slug of its own, on the pro plan unless another is asked for. */
  readonly organization: (asked?: { name?: string; plan?: "free" | "pro" }) => Promise<Organization>;
  readonly project: (organization: Organization, slug: string, content?: Content) => Promise<Placed>;
  /** A new project in a new organization, and a new key of it if one is asked for; see `project` and `key`. */
  readonly place: {
    (asked: AskedPlace & { readonly key: AskedKey }): Promise<Place & { readonly key: Key }>;
    (asked?: AskedPlace): Promise<Place>;
  };
  /** A new key, with the defaults of `createKey`: `rest_api`, `projects` and `variables`, everywhere. */
  readonly key: (organization: Organization, asked?: AskedKey) => Promise<Key>;
  /** Files a request for a variable, as an agent with this key does. @returns its id */
  readonly request: (
    organizationId: string,
    keyId: string,
    project: Pick<Project, "id" | "slug">,
    asked: Parameters<typeof fileRequest>[2],
  ) => Promise<string>;
  /** Changes what a key may do and seals it again, which takes the root key. */
  readonly regrant: (key: { readonly id: string }, change: Regrant) => Promise<void>;
  /** What a key read, oldest first. */
  readonly audit: (key: { readonly id: string }) => Promise<AuditRecord[]>;
  readonly close: () => Promise<void>;
};

export type Regrant = {
  readonly surfaces?: readonly Surface[];
  readonly resources?: readonly string[];
  readonly environments?: readonly Environment[];
  /** Slug to project id; null: every project. */
  readonly projects?: Readonly<Record<string, string>> | null;
  readonly expiresAt?: number | null;
};

/**
 * Runs one suite on both databases. Each gets a world of its own, opened before the suite's first test. At its end no
 * secret of that world may be in the log. Without PostgreSQL its half is skipped, by a name that says so.
 *
 * @param suite - declares tests. The world is empty until they run. `once` declares those that no statement decides,
 * such as what is parsed, judged or drawn in this process: it is `test` on SQLite, and nothing on PostgreSQL.
 */
export function describeBoth(
  name: string,
  suite: (w: World, dialect: "postgres" | "sqlite", once: typeof test) => void,
  dialects: readonly ("postgres" | "sqlite")[] = ["sqlite", "postgres"],
): void {
  for (const dialect of dialects) {
    const declare = dialect === "sqlite" ? describe : withPostgres;
    declare(`${name}, on ${dialect === "sqlite" ? "SQLite" : "PostgreSQL"}`, () => {
      const world = {} as World;
      beforeAll(async () => void Object.assign(world, await openWorld(dialect)), 60_000);
      afterAll(() => world.close?.(), 60_000);
      suite(world, dialect, dialect === "sqlite" ? test : nothing);
      test("neither a key nor a value was logged", () => {
        expect(leaksIn(world.secrets, JSON.stringify(world.log))).toEqual([]);
      }, 600_000); // thousands of histories log for minutes
    });
  }
}

/**
 * The same on SQLite alone: for what the code treats the same on both databases, such as the words of a page or what is
 * decided before any statement. A file that touches SQL has a suite of {@link describeBoth} as well.
 */
export function describeOnce(name: string, suite: (w: World, dialect: "postgres" | "sqlite") => void): void {
  describeBoth(name, suite, ["sqlite"]);
}

/** The same on PostgreSQL alone. */
export function describePostgres(name: string, suite: (w: World) => void): void {
  describeBoth(name, suite, ["postgres"]);
}

const nothing = Object.assign(() => {}, { each: () => () => {} }) as unknown as typeof test;

/** Opens a world on a fresh database; PostgreSQL needs {@link postgresUrl}. The caller closes it. */
export async function openWorld(dialect: "postgres" | "sqlite"): Promise<World> {
  const folder = mkdtempSync(join(tmpdir(), "keyhole-world-"));
  const database = dialect === "postgres" ? await migratedDatabase(postgresUrl as string) : undefined;
  const config = readConfig({
    DATABASE_URL: database?.url,
    KEYHOLE_DATA: join(folder, "data"),
    KEYHOLE_ROOT_KEY: Buffer.from(newKey()).toString("base64"),
    PORT: "0",
  });
  const log: LogEvent[] = [];
  const secrets = new Set<string>();
  const clock: { nowMs: number | undefined } = { nowMs: undefined };
  const installation = await openInstallation(config, () => {});
  const keyhole = await openKeyhole(installation, (event) => log.push(event));
  const admin = adminContextOf(installation, operator("ann@host"), () => clock.nowMs ?? Date.now());
  const raw = database ? rawPostgres(database.url) : rawSqlite(join(config.dataFolder, "keyhole.db"));
  let organizations = 0;
  const spare: App[] = [];
  const client: World["client"] = (change = () => ({})) => {
    // It shares the database, the journal, the remembered sets and the memory budget with the world's own app.
    const [limiter, lookupQueue] = [new Limiter(), new AdmissionQueue()];
    const fresh = { limiter, unrecognized: new UnrecognizedLimiter(undefined, 2 ** 10), lookupQueue };
    const own = { ...keyhole, gate: { ...keyhole.gate, ...fresh } };
    return clientOf({ ...own, ...change(own) }, spare);
  };
  const organization: World["organization"] = ({ name, plan = "pro" } = {}) => {
    organizations += 1;
    return createOrganization(admin, { slug: `org-${organizations}`, name, plan });
  };
  const project: World["project"] = async (organization, slug, content = {}) => {
    const where = `${organization.slug}/${slug}`;
    const project = await createProject(admin, where, { name: content.name });
    for (const value of valuesOf(content)) if (value.length >= 8) secrets.add(value);
    for (const [environment, values] of Object.entries(content.variables ?? {})) {
      const entries = Object.entries(values).map(([name, value]) => ({ name, value }));
      await setVariables(admin, where, environment, entries);
    }
    for (const { name, environments, values } of content.accounts ?? []) {
      await setAccount(admin, where, name, environments, values);
    }
    for (const file of content.files ?? []) {
      const bytes = typeof file.content === "string" ? Buffer.from(file.content) : file.content;
      await putFile(admin, where, { ...file, content: bytes });
    }
    return { ...project, where };
  };
  const key: World["key"] = async (organization, asked = {}) => {
    const { projects = null, environments = null } = asked;
    const made = await createKey(admin, { ...asked, projects, environments, organization: organization.slug });
    secrets.add(made.key);
    return made;
  };
  const place = async ({ slug = "web", key: asked, ...content }: AskedPlace & { key?: AskedKey } = {}) => {
    const own = await organization();
    const placed = await project(own, slug, content);
    return { ...placed, organization: own, project: placed, key: asked && (await key(own, asked)) };
  };
  return {
    ...client(),
    dialect,
    config,
    databaseUrl: database?.url,
    installation,
    keyhole,
    admin,
    clock,
    log,
    secrets,
    run: raw.run,
    sql: (text, ...values) => raw.run(text.join("?"), values),
    client,
    organization,
    project,
    key,
    place: place as World["place"],
    request: async (organizationId, keyId, project, asked) => {
      const caller = { grant: { keyId, organizationId } } as never;
      return (await fileRequest({ source: keyhole.source, caller }, project, asked)).id;
    },
    regrant: async ({ id }, change) => {
      const [row] = await raw.run(
        `select id as "keyId", organization_id as "organizationId", surfaces, resources, environments, projects,
          expires_at as "expiresAt", trust, rate, ranges as "from", digest from api_keys where id = ?`,
        [id],
      );
      const { digest, ...before } = row as Grant & { digest: Buffer };
      const grant: Grant = {
        ...before,
        ...(change.surfaces && { surfaces: bitsOf(surfaces, change.surfaces) }),
        ...(change.resources && { resources: bitsOf(resources, change.resources) }),
        ...(change.environments && { environments: environmentMask(...change.environments) }),
        ...(change.projects !== undefined && { projects: change.projects && JSON.stringify(change.projects) }),
        ...(change.expiresAt !== undefined && { expiresAt: change.expiresAt }),
      };
      await raw.run(
        `update api_keys set surfaces = ?, resources = ?, environments = ?, projects = ?, expires_at = ?, grant_seal = ?
          where id = ?`,
        [
          grant.surfaces,
          grant.resources,
          grant.environments,
          grant.projects,
          grant.expiresAt,
          sealGrant(admin.systemKeys.grant, digest, grant),
          id,
        ],
      );
    },
    audit: async ({ id }) => {
      const entries = await listAudit(admin, { keyId: id, limit: 100_000 }).catch((error: unknown) => {
        // A deleted key is found by its entries, so one without any does not exist.
        if (error instanceof Refused && error.kind === "not_found") return [];
        throw error;
      });
      return entries.filter(({ actor }) => actor.type === "key");
    },
    close: async () => {
      await keyhole.close();
      await (admin as ReturnType<typeof adminContextOf>).close();
      await raw.close();
      await database?.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** An app whose parts can be replaced. */
type App = {
  readonly parts: { -readonly [Part in keyof ApiParts]: ApiParts[Part] };
  readonly handle: Client["handle"];
};

/**
 * An app made of these parts, and ways to ask it. Making one takes ten times as long as a request, so a client that
 * asks one thing at a time takes an app from `spare` for each.
 */
export function clientOf(keyhole: ApiParts, spare: App[] = []): Client {
  // These are looked at when an app is made.
  const needsOwn = keyhole.meter !== undefined || keyhole.trace !== undefined || keyhole.mcp !== undefined;
  let own: App | undefined;
  let borrowed: App | undefined;
  const handle: Client["handle"] = (request) => {
    own ??= makeApp(keyhole);
    return own.handle(request);
  };
  const ask: Client["ask"] = async (path, ask) => {
    let app: App | undefined;
    if (!needsOwn && own === undefined && borrowed === undefined) {
      app = borrowed = spare.pop() ?? makeApp({ ...keyhole });
      Object.assign(app.parts, keyhole);
    }
    const answer = await answerOf(await (app?.handle ?? handle)(requestOf(path, ask)));
    if (app) {
      borrowed = undefined;
      spare.push(app);
    }
    if ((ask?.method ?? "GET") === "GET") expectDescribed(path, answer.status, answer.headers, () => answer.text);
    return answer;
  };
  return { handle, ask };
}

function makeApp(parts: ApiParts): App {
  const app = createApp(parts);
  return { parts, handle: async (request) => app.handle(request) };
}

/** A journal whose database refuses. */
export const refusingJournal: ApiParts["journal"] = {
  record: async () => {
    throw new Fault("unavailable", "refused");
  },
};

/**
 * Asks for what is large in every way that such an answer can end, and expects its memory back each time.
 * @returns the answer that was read whole
 */
export async function expectMemoryBack(w: World, path: string, key: Key, bytes: number): Promise<Answer> {
  const memory = new MemoryBudget();
  const taken = () => Object.values(memory.bytesTaken);
  const { handle } = w.client(({ source }) => ({ source: { ...source, memory } }));
  const get = async () => {
    const response = await handle(requestOf(path, { key }));
    const { small, large } = memory.bytesTaken;
    expect([path, response.status, small, large >= bytes]).toEqual([path, 200, 0, true]);
    return response;
  };
  const answer = await answerOf(await get());
  expect(taken()).toEqual([0, 0]);

  const half = (await get()).body?.getReader();
  await half?.read();
  expect(memory.bytesTaken.large).toBeGreaterThanOrEqual(bytes);
  await half?.cancel();
  expect(taken()).toEqual([0, 0]);

  await (await get()).body?.cancel();
  expect(taken()).toEqual([0, 0]);

  const refusing = w.client(({ source }) => ({ source: { ...source, memory }, journal: refusingJournal }));
  expect((await refusing.ask(path, { key })).status).toBe(503);
  expect(taken()).toEqual([0, 0]);
  return answer;
}

/** Memory whose large part another key has taken, so that only small reads are served. */
export function memoryWithoutLarge(): MemoryBudget {
  const memory = new MemoryBudget(undefined, 1, 1);
  void memory.claim(smallBytesMax + 1, "another key", () => AbortSignal.abort(), 0);
  return memory;
}

function valuesOf({ variables = {}, accounts = [], files = [] }: Content): string[] {
  return [
    ...Object.values(variables).flatMap((values) => Object.values(values)),
    ...accounts.flatMap(({ values }) => Object.values(values)),
    ...files.flatMap(({ content }) => (typeof content === "string" ? [content] : [])),
  ];
}

type Raw = {
  readonly run: (text: string, values?: readonly unknown[]) => Promise<Row[]>;
  readonly close: () => Promise<void>;
};

function rawPostgres(url: string): Raw {
  const client = postgres(url, {
    max: 1,
    fetch_types: false,
    onnotice: () => {},
    types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
  });
  return {
    run: async (text, values = []) => {
      let place = 0;
      const numbered = text.replaceAll("?", () => `$${++place}`);
      return [...((await client.unsafe(numbered, values as never[])) as Row[])];
    },
    close: () => client.end({ timeout: 1 }),
  };
}

function rawSqlite(path: string): Raw {
  const file = new SqliteFile(path, { readwrite: true, create: false });
  file.run("PRAGMA busy_timeout = 5000");
  // Anyone who can write the file can leave orphans behind.
  file.run("PRAGMA foreign_keys = OFF");
  return {
    run: async (text, values = []) => {
      const rows = file.query(text).all(...(values as never[])) as Row[];
      for (const row of rows) {
        for (const [name, value] of Object.entries(row))
          if (value instanceof Uint8Array) row[name] = Buffer.from(value);
      }
      return rows;
    },
    close: async () => file.close(false),
  };
}
