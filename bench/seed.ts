import { createHash, randomBytes } from "node:crypto";
import { sql } from "drizzle-orm";
import { type AdminContext, adminContextOf, operator } from "../src/desk/context.ts";
import { findProject } from "../src/desk/projects.ts";
import { openSet } from "../src/editing/open.ts";
import { writeSets } from "../src/editing/write.ts";
import { writingProject } from "../src/editing/write-project.ts";
import { openInstallation } from "../src/installation/installation.ts";
import { accounts } from "../src/kinds/accounts/entry.ts";
import { putFile } from "../src/kinds/files/write.ts";
import { setVariables } from "../src/kinds/variables/write.ts";
import { createKey } from "../src/people/keys.ts";
import { createOrganization } from "../src/people/organizations.ts";
import { createProject } from "../src/people/projects.ts";
import { readConfig } from "../src/settings/settings.ts";

/** The content of a database. All items are in production, and all values have 50 bytes. */
export type Stock = {
  /** Keys of one organization, for all its projects. */
  readonly keys: number;
  /** Projects of 20 variables: `p0`, `p1`, … */
  readonly projects: number;
  /** Projects of 1000 variables: `large-0`, `large-1`, … */
  readonly large: number;
  /** Projects of these numbers of variables: `size-1`, `size-10`, … */
  readonly sizes: readonly number[];
  /** Projects with files of random bytes. */
  readonly files: readonly { readonly project: string; readonly count: number; readonly bytes: number }[];
};

export const variablesPerProject = 20;
export const variablesPerLarge = 1000;

/**
 * Fills an empty database through the functions behind the commands, so that everything they store is there. Only these
 * commits do not wait for the disk.
 *
 * @param settings - the environment of the server
 * @returns the keys as text
 */
export async function seed(settings: Readonly<Record<string, string>>, stock: Stock): Promise<string[]> {
  const config = readConfig(settings);
  const installation = await openInstallation(config, () => {});
  const embedded = config.postgres === undefined;
  const admins = Array.from({ length: embedded ? 1 : writersAtOnce }, () =>
    adminContextOf(installation, operator("bench@host")),
  );
  try {
    for (const { database } of admins) {
      if (embedded) await database.query(sql`pragma synchronous = off`)({});
      else await database.db.execute(sql`set synchronous_commit = off`);
    }
    const each = (count: number, work: (admin: AdminContext, index: number) => Promise<void>) => {
      let next = 0;
      return Promise.all(
        admins.map(async (admin) => {
          while (next < count) await work(admin, next++);
        }),
      );
    };
    await createOrganization(admins[0] as AdminContext, { slug: organization });
    const project = async (admin: AdminContext, slug: string, variables: number) => {
      await createProject(admin, `${organization}/${slug}`, {});
      await setVariables(admin, `${organization}/${slug}`, "production", variablesOf(slug, variables));
      if (variables === variablesPerProject) await setAccounts(admin, `${organization}/${slug}`);
    };
    await each(stock.projects, (admin, index) => project(admin, `p${index}`, variablesPerProject));
    await each(stock.large, (admin, index) => project(admin, `large-${index}`, variablesPerLarge));
    for (const size of stock.sizes) await project(admins[0] as AdminContext, `size-${size}`, size);
    for (const { project, count, bytes } of stock.files) {
      const where = `${organization}/${project}`;
      await createProject(admins[0] as AdminContext, where, {});
      for (let index = 0; index < count; index++) {
        await putFile(admins[0] as AdminContext, where, {
          content: randomBytes(bytes),
          path: `file-${String(index).padStart(3, "0")}.bin`,
          environments: ["production"],
        });
      }
    }
    const keys: string[] = [];
    await each(stock.keys, async (admin, index) => {
      const made = await createKey(admin, {
        organization,
        resources: ["projects", "variables", "accounts", "files"],
        projects: null,
        environments: null,
      });
      keys[index] = made.key;
    });
    if (!embedded) await (admins[0] as AdminContext).database.db.execute(sql`analyze`);
    return keys;
  } finally {
    for (const admin of admins) await admin.close();
  }
}

export const organization = "bench";
const writersAtOnce = 4;

/** The name of a project's variable with this index. */
export function variableName(index: number): string {
  return `SETTING_${String(index).padStart(3, "0")}`;
}

/** As many accounts as variables, with as many bytes each, in one write. */
async function setAccounts(admin: AdminContext, where: string): Promise<void> {
  await writingProject(admin, await findProject(admin, where, "write"), accounts, async (project) => {
    const items = variablesOf(where, variablesPerProject).map(({ name, value }) => {
      const item = { entry: { name, updatedAt: project.now }, value: Buffer.from(JSON.stringify({ password: value })) };
      return [name, item] as const;
    });
    const set = await openSet(admin, { project, descriptor: accounts, environment: "production" });
    return [undefined, await writeSets(admin, project, accounts, new Map([[set, new Map(items)]]))];
  });
}

/** All values are different, so that no cache or compression helps. */
function variablesOf(slug: string, count: number): { name: string; value: string }[] {
  return Array.from({ length: count }, (_, index) => {
    const name = variableName(index);
    const digest = createHash("sha512").update(`${slug} ${name}`).digest("base64");
    return { name, value: digest.slice(0, valueBytes) };
  });
}

const valueBytes = 50;
