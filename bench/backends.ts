import { Database as SqliteFile } from "bun:sqlite";
import { randomBytes } from "node:crypto";
import { cpSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { createDatabase, type Postgres, runOn } from "../test/support/postgres.ts";
import { postmasterOf } from "./processes.ts";
import type { Backend } from "./rig.ts";

/** Creates databases of both kinds, and drops them at the end. Folders of SQLite are the caller's to remove. */
export class Backends {
  readonly #cluster: Postgres | undefined;
  readonly #folder: string;
  readonly #databases: { drop: () => Promise<void> }[] = [];

  /** @param cluster - undefined if there is no PostgreSQL */
  constructor(cluster: Postgres | undefined, folder: string) {
    this.#cluster = cluster;
    this.#folder = folder;
  }

  /** Creates an empty database of each kind. */
  async create(): Promise<Backend[]> {
    const backends: Backend[] = [];
    const rootKey = { KEYHOLE_ROOT_KEY: randomBytes(32).toString("base64") };
    if (this.#cluster) {
      const url = await this.#database();
      const postmaster = this.#cluster.pid ?? (await findPostmaster(url));
      backends.push({ name: "PostgreSQL", settings: { DATABASE_URL: url, ...rootKey }, postmaster });
    }
    const data = mkdtempSync(join(this.#folder, "data-"));
    backends.push({ name: "SQLite", settings: { KEYHOLE_DATA: data, ...rootKey }, postmaster: undefined });
    return backends;
  }

  /** Copies a database that nobody has open. */
  async copy({ settings, ...backend }: Backend): Promise<Backend> {
    const { DATABASE_URL: url, KEYHOLE_DATA: data } = settings;
    if (url !== undefined) {
      return {
        ...backend,
        settings: { ...settings, DATABASE_URL: await this.#database(new URL(url).pathname.slice(1)) },
      };
    }
    const copied = mkdtempSync(join(this.#folder, "data-"));
    cpSync(data as string, copied, { recursive: true });
    return { ...backend, settings: { ...settings, KEYHOLE_DATA: copied } };
  }

  async drop(): Promise<void> {
    for (const database of this.#databases) await database.drop().catch(() => {});
  }

  async #database(template?: string): Promise<string> {
    const database = await createDatabase((this.#cluster as Postgres).url, template);
    this.#databases.push(database);
    return database.url;
  }
}

/** Runs a statement on a database that may be served meanwhile. @returns its rows */
export async function look({ settings }: Backend, statement: string): Promise<Readonly<Record<string, unknown>>[]> {
  const { DATABASE_URL: url, KEYHOLE_DATA: data } = settings;
  if (url !== undefined) return runOn(url, statement);
  const file = new SqliteFile(join(data as string, "keyhole.db"), { readonly: true });
  try {
    return file.query(statement).all() as Record<string, unknown>[];
  } finally {
    file.close();
  }
}

async function findPostmaster(url: string): Promise<number | undefined> {
  if (!["127.0.0.1", "localhost", "[::1]"].includes(new URL(url).hostname)) return undefined;
  const sql = postgres(url, { max: 1, fetch_types: false });
  try {
    const [row] = await sql<{ pid: number }[]>`select pg_backend_pid() as pid`;
    return row && postmasterOf(row.pid);
  } finally {
    await sql.end({ timeout: 5 });
  }
}
