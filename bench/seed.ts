import { createHash, generateKeyPairSync, randomBytes } from "node:crypto";
import { sql } from "drizzle-orm";
import { readConfig } from "../src/core/settings/settings.ts";
import { openInstallation } from "../src/installation/installation.ts";
import { accounts } from "../src/kinds/accounts/entry.ts";
import { putFile } from "../src/kinds/files/write.ts";
import { type AdminContext, adminContextOf, operator } from "../src/people/desk/context.ts";
import { findProject } from "../src/people/desk/projects.ts";
import { openSet } from "../src/people/editing/open.ts";
import { writeSets } from "../src/people/editing/write.ts";
import { writingProject } from "../src/people/editing/write-project.ts";
import { createKey } from "../src/people/keys/keys.ts";
import { createTrust } from "../src/people/keys/trusts.ts";
import { addPerson } from "../src/people/persons/persons.ts";
import { createOrganization } from "../src/people/projects/organizations.ts";
import { createProject } from "../src/people/projects/projects.ts";
import { encodeEntries, type Segment, segmentMac } from "../src/record/segment.ts";
import { setVariables } from "../test/support/plans.ts";

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
  /** Each key lists as many of `p0`, `p1`, … and those with files; by default it has all projects. */
  readonly listed?: number;
  /** Trusts of as many issuers. */
  readonly trusts?: number;
  /** Persons of the organization, without rights. */
  readonly persons?: number;
  /** Rows beside the keys that nobody has the text of. */
  readonly otherKeys?: number;
  /** Segments of the audit, of one entry each. */
  readonly segments?: number;
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
    const named = Array.from({ length: stock.listed ?? 0 }, (_, index) => `p${index}`);
    const projects = stock.listed ? [...named, ...stock.files.map((file) => file.project)] : null;
    await each(stock.keys, async (admin, index) => {
      const made = await createKey(admin, {
        organization,
        resources: ["projects", "variables", "accounts", "files"],
        projects,
        environments: null,
      });
      keys[index] = made.key;
    });
    const admin = admins[0] as AdminContext;
    for (let index = 0; index < (stock.trusts ?? 0); index++) await addTrust(admin, index);
    for (let index = 0; index < (stock.persons ?? 0); index++) {
      await addPerson(admin, { name: `person-${index}`, signIn: null });
    }
    await addKeys(admin, stock.otherKeys ?? 0);
    await addSegments(admin, stock.segments ?? 0);
    if (!embedded) await admin.database.db.execute(sql`analyze`);
    return keys;
  } finally {
    for (const admin of admins) await admin.close();
  }
}

async function addTrust(admin: AdminContext, index: number): Promise<void> {
  const key = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({ format: "jwk" });
  await createTrust(admin, {
    ...{ organization, resources: ["variables"], projects: null, environments: null },
    ...{ issuer: `https://issuer-${index}.example`, audience: "bench", claims: new Map([["sub", "job"]]) },
    jwks: JSON.stringify({ keys: [{ ...key, kid: "1", alg: "ES256" }] }),
  });
}

/** Copies of a key under digests of nothing. */
async function addKeys({ database: { db, tables, dialect } }: AdminContext, count: number): Promise<void> {
  const k = tables.apiKeys;
  const digest = dialect === "postgres" ? sql`sha256(cast(cast(n as text) as bytea))` : sql`randomblob(32)`;
  const shared = sql`trust, surfaces, resources, environments, projects, expires_at, revoked_at, created_at, grant_seal`;
  for (let from = 0; from < count; from += rowsAtOnce) {
    const [first, last] = [sql.raw(String(from)), sql.raw(String(Math.min(count, from + rowsAtOnce) - 1))];
    const numbers = sql`with recursive numbers(n) as (select ${first} union all select n + 1 from numbers where n < ${last})`;
    await db.insert(k).select(sql`
      select 'other-' || n, organization_id, name, ${digest}, ${shared} from (${numbers} select n from numbers) as each
      cross join (select * from ${k} where id not like 'other-%' limit 1) as one`);
  }
}

const rowsAtOnce = 50_000;

async function addSegments({ database: { db, tables }, systemKeys }: AdminContext, count: number): Promise<void> {
  const entry = {
    ...{
      actor: { type: "key" as const, id: "bench" },
      organizationId: "bench",
      organization,
      projectId: "p",
      project: "p",
    },
    ...{ environment: "production" as const, action: "variables.read" as const, names: [variableName(0)] },
    ...{ requestId: "bench", clientAddress: "", userAgent: "" },
  };
  const lane = crypto.randomUUID();
  const encoded = encodeEntries([entry]);
  let mac = Buffer.alloc(0);
  for (let seq = 1; seq <= count; ) {
    const rows: Segment[] = [];
    for (; rows.length < segmentsAtOnce && seq <= count; seq++) {
      const segment = { lane, firstSeq: seq, lastSeq: seq, at: Date.now(), ...encoded };
      mac = segmentMac(systemKeys.audit, mac, segment) as typeof mac;
      rows.push({ ...segment, mac });
    }
    await db.insert(tables.auditSegments).values(rows);
  }
}

const segmentsAtOnce = 1000;

export const organization = "bench";
const writersAtOnce = 4;

/** The name of a project's variable with this index. */
export function variableName(index: number): string {
  return `SETTING_${String(index).padStart(3, "0")}`;
}

/** As many accounts as variables, with as many bytes each, in one write. */
async function setAccounts(admin: AdminContext, where: string): Promise<void> {
  await writingProject(admin, await findProject(admin, where, "write"), accounts, async (admin, project) => {
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
