import { and, asc, eq, sql } from "drizzle-orm";
import { type Environment, type EnvironmentMask, environmentsOf, everyEnvironment } from "../names.ts";
import { seal } from "../seal/envelope.ts";
import { accountEntry } from "../seal/item-set.ts";
import { accountPlace } from "../seal/place.ts";
import type { Desk } from "./desk.ts";
import { keepItemSets } from "./item-sets.ts";
import { findProject, noteMove, writingProject } from "./projects.ts";
import { Refused } from "./refused.ts";
import { displayName, requireEnvironments, requireText } from "./words.ts";

export type AccountRecord = {
  readonly name: string;
  readonly environments: readonly Environment[];
  readonly version: number;
  readonly updatedAt: number;
};

/** The most bytes an account's fields may take as JSON. */
export const accountBytesMax = 64 * 1024;

/**
 * Writes an account: its fields and its environments become exactly these.
 *
 * @param values - must be an object of strings, and not empty
 * @throws Refused `invalid`, `bound`, `not_found`, `ambiguous`, `conflict` as {@link keepItemSets}
 */
export async function setAccount(
  desk: Desk,
  where: string,
  name: string,
  environments: readonly string[],
  values: unknown,
): Promise<{ created: boolean }> {
  displayName("account", name);
  const mask = requireEnvironments(environments);
  const plaintext = Buffer.from(JSON.stringify(fieldsOf(values)));
  if (plaintext.length > accountBytesMax) {
    throw new Refused(
      "bound",
      `The account's fields take ${plaintext.length} bytes; at most ${accountBytesMax} are allowed.`,
    );
  }
  const { accounts: a } = desk.database.tables;
  return writingProject(desk, where, async (project) => {
    const [before] = await project.db
      .select()
      .from(a)
      .where(and(eq(a.projectId, project.id), eq(a.name, name)));
    const id = before?.id ?? Bun.randomUUIDv7();
    const version = (before?.version ?? 0) + 1;
    const { generation } = project.dataKey;
    const place = accountPlace({ projectId: project.id, accountId: id, version, environments: mask, name });
    const sealed = seal(project.dataKey.subkey("account"), generation, place, plaintext);
    const row = { id, name, environments: mask, version, generation, sealed, updatedAt: project.now };
    await project.db
      .insert(a)
      .values({ ...row, projectId: project.id })
      .onConflictDoUpdate({
        target: [a.projectId, a.name],
        set: {
          environments: sql`excluded.environments`,
          version: sql`excluded.version`,
          generation: sql`excluded.generation`,
          sealed: sql`excluded.sealed`,
          updatedAt: sql`excluded.updated_at`,
        },
      });
    const entry = accountEntry(project.id, row);
    const change = { entry, environments: mask, before: everyEnvironment };
    const stood = await keepItemSets(desk, project, "accounts", [change]);
    const byMask = new Map<EnvironmentMask, number>();
    noteMove(byMask, stood, mask);
    return {
      result: { created: before === undefined },
      touched: mask | stood | (before?.environments ?? 0),
      counts: { column: "accountCounts", byMask },
    };
  });
}

/** The project's accounts in byte order of name, without their fields. @throws Refused `not_found`, `ambiguous` */
export async function listAccounts(desk: Desk, where: string): Promise<AccountRecord[]> {
  const project = await findProject(desk, where);
  const { accounts: a } = desk.database.tables;
  const rows = await desk.database.db
    .select({ name: a.name, environments: a.environments, version: a.version, updatedAt: a.updatedAt })
    .from(a)
    .where(eq(a.projectId, project.id))
    .orderBy(asc(a.name));
  return rows.map((row) => ({ ...row, environments: environmentsOf(row.environments) }));
}

/**
 * Deletes an account from every environment, also one whose row is gone by other means.
 * @throws Refused `not_found`, `ambiguous`, `conflict` as {@link keepItemSets}
 */
export async function deleteAccount(desk: Desk, where: string, name: string): Promise<void> {
  const { accounts: a } = desk.database.tables;
  await writingProject(desk, where, async (project) => {
    const [gone] = await project.db
      .delete(a)
      .where(and(eq(a.projectId, project.id), eq(a.name, name)))
      .returning();
    const change = { entry: [name, ""] as const, environments: 0, before: everyEnvironment };
    const stood = await keepItemSets(desk, project, "accounts", [change]);
    if (!gone && stood === 0) {
      throw new Refused("not_found", `There is no account ${JSON.stringify(name)} in ${where}.`);
    }
    const byMask = new Map<EnvironmentMask, number>();
    noteMove(byMask, stood, 0);
    return {
      result: undefined,
      touched: stood | (gone?.environments ?? 0),
      counts: { column: "accountCounts", byMask },
    };
  });
}

function fieldsOf(values: unknown): Record<string, string> {
  if (typeof values !== "object" || values === null || Array.isArray(values)) {
    throw new Refused("invalid", 'An account is one JSON object of strings, such as {"username":"ci","password":"…"}.');
  }
  const fields = Object.entries(values);
  if (fields.length === 0) throw new Refused("invalid", "An account needs at least one field.");
  for (const [field, value] of fields) {
    displayName("field", field);
    if (typeof value !== "string") throw new Refused("invalid", `The field ${JSON.stringify(field)} is no string.`);
    requireText(`The field ${JSON.stringify(field)}`, value);
  }
  return values as Record<string, string>;
}
