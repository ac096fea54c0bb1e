import type { Environment } from "../../src/core/names.ts";
import { accounts } from "../../src/kinds/accounts/entry.ts";
import { type FileEntry, files } from "../../src/kinds/files/entry.ts";
import { storeContent } from "../../src/kinds/files/write.ts";
import { type AdminContext, adminContextOf, operator } from "../../src/people/desk/context.ts";
import type { Organization } from "../../src/people/desk/organizations.ts";
import { findProject } from "../../src/people/desk/projects.ts";
import { openSet } from "../../src/people/editing/open.ts";
import { type NewItem, writeSets } from "../../src/people/editing/write.ts";
import { writingProject } from "../../src/people/editing/write-project.ts";
import type { DataKey } from "../../src/seal/keyring.ts";
import type { Placed, World } from "./world.ts";

/**
 * Flips a bit of a stored column of bytes.
 * @param at - the index of the byte; a negative one counts from the end
 * @param where - an SQL condition that finds one row, with `?` for its values
 */
export async function flipBit(
  w: World,
  [table, column]: readonly [table: string, column: string],
  at: number,
  where: string,
  values: readonly unknown[],
): Promise<void> {
  const [row] = await w.run(`select ${column} as bytes from ${table} where ${where}`, values);
  const bytes = row?.["bytes"] as Buffer;
  const index = at < 0 ? bytes.length + at : at;
  bytes[index] = (bytes[index] as number) ^ 1;
  await w.run(`update ${table} set ${column} = ? where ${where}`, [bytes, ...values]);
}

/** Everything that a write may touch, as it is stored. */
export async function stored(w: World): Promise<string> {
  const tables = "sets,set_versions,projects,api_keys,variable_requests,audit_heads,audit_segments".split(",");
  return JSON.stringify(await Promise.all(tables.map((table) => w.run(`select * from ${table} order by 1, 2, 3`))));
}

/** Names that sort as they are numbered, such as `f/0007`. */
export function numbered(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}${String(i).padStart(4, "0")}`);
}

export function sha256(content: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(content).digest("hex");
}

export function randomContent(size: number): Buffer {
  const bytes = Buffer.alloc(size);
  for (let at = 0; at < size; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
  return bytes;
}

/**
 * Many accounts in one write. Other environments stay as they are, unlike with `setAccount`.
 * @param valueFor - the value of the field `a` of the account of a name; by default the name
 */
export async function insertAccounts(
  w: World,
  { where }: Pick<Placed, "where">,
  names: readonly string[],
  environments: readonly Environment[],
  valueFor: (name: string) => string = (name) => name,
): Promise<void> {
  await writingProject(w.admin, await findProject(w.admin, where, "write"), accounts, async (admin, locked) => {
    const items = names.map((name) => {
      const value = Buffer.from(JSON.stringify({ a: valueFor(name) }));
      return [name, { entry: { name, updatedAt: locked.now }, value }] as const;
    });
    const sets = await Array.fromAsync(environments, (environment) =>
      openSet(admin, { project: locked, descriptor: accounts, environment }),
    );
    return [undefined, await writeSets(admin, locked, accounts, new Map(sets.map((set) => [set, new Map(items)])))];
  });
}

/**
 * Many files in one write, also more than a project may hold.
 * @param content - random content of this size, or what a path has; if omitted: `content of PATH`
 * @param recordedSize - the size on record, if it is not to be the true one
 */
export async function insertFiles(
  w: World,
  project: Placed,
  paths: readonly string[],
  environments: readonly Environment[],
  content: number | ((path: string) => string) = (path) => `content of ${path}`,
  recordedSize?: number,
): Promise<void> {
  const unbounded = { ...files, projectItemsMax: Number.POSITIVE_INFINITY };
  await writingProject(
    w.admin,
    await findProject(w.admin, project.where, "write"),
    unbounded,
    async (admin, locked) => {
      const items: (readonly [string, NewItem<FileEntry>])[] = [];
      for (const path of paths) {
        const bytes = typeof content === "number" ? randomContent(content) : Buffer.from(content(path));
        const entry = {
          id: Bun.randomUUIDv7(),
          path,
          name: "a file",
          mode: "0600" as const,
          size: recordedSize ?? bytes.length,
          sha256: sha256(bytes),
          contentType: "text/plain",
          updatedAt: locked.now,
        };
        await storeContent(admin, locked, entry, bytes);
        items.push([path, { entry, value: null }]);
      }
      const sets = await Array.fromAsync(environments, (environment) =>
        openSet(admin, { project: locked, descriptor: files, environment }),
      );
      return [undefined, await writeSets(admin, locked, files, new Map(sets.map((set) => [set, new Map(items)])))];
    },
  );
}

/** Many projects at once, with nothing in them that could be read. */
export async function insertProjects(w: World, organization: Organization, slugs: readonly string[]): Promise<void> {
  const none = JSON.stringify([0, 0, 0, 0, 0, 0, 0]);
  const rows = slugs.map((slug) => ({
    id: Bun.randomUUIDv7(),
    organizationId: organization.id,
    slug,
    name: slug,
    variableCounts: none,
    accountCounts: none,
    fileCounts: none,
    changedAt: "[0,0,0]",
    createdAt: 1,
  }));
  await w.admin.database.db.insert(w.admin.database.tables.projects).values(rows);
}

/** A project's first data key, for sealing what the functions of `src/people` and `src/kinds` would not. */
export async function dataKeyOf(w: World, project: Placed): Promise<DataKey> {
  const [row] = await w.sql`select root_id, wrapped from data_keys where project_id = ${project.id}`;
  return w.admin.keyring.dataKey(project.id, 1, row?.["root_id"] as string, row?.["wrapped"] as Buffer);
}

/** Runs `work` with admins that write at the same time, each with a connection of its own. */
export async function withAdmins(
  w: World,
  count: number,
  work: (admins: readonly AdminContext[]) => Promise<unknown>,
): Promise<void> {
  const own = Array.from({ length: count }, () => adminContextOf(w.installation, operator("ann@host")));
  try {
    await work(own);
  } finally {
    for (const admin of own) await admin.close();
  }
}
