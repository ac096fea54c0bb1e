import { sql } from "drizzle-orm";
import { configProblem } from "../core/problem.ts";
import { HostRefused } from "../core/refused.ts";
import type { PostgresServer } from "../core/settings/postgres-url.ts";
import { databaseErrorCode, textValue } from "../store/database.ts";
import { describeUnreachable } from "../store/failures.ts";
import { openPostgres, protocolViolation, requiredSettings, Servers } from "../store/postgres.ts";

/**
 * Asks all servers which of them is the primary, which is then the current one of `servers`. Of several, it is the one
 * whose commits pass: an old primary that was cut off waits for its standbys.
 * @throws Refused if there is none or more than one, Problem if its sessions have a setting that Keyhole cannot work with
 */
export async function findPrimary(servers: Servers): Promise<void> {
  const asked = servers.all.map((server) => askServer(server, servers.alone(server)));
  const first = Promise.any(asked.map(async (one) => ("why" in (await one) ? Promise.reject() : one)));
  // One that is away must not keep every command waiting.
  const late = first.then(() => Bun.sleep(othersMs)).catch(() => new Promise<never>(() => {}));
  const answers = await Promise.all(asked.map((one) => Promise.race([one, late])));
  const primaries = answers.filter((one): one is Primary => one !== undefined && "startedAt" in one);
  const whys = answers.flatMap((one) => (one !== undefined && "why" in one ? [one] : []));
  const { cause } = whys.at(-1) ?? {};
  if (primaries.length === 0) throw noPrimary(whys, cause);
  const found = await theOne(primaries);
  servers.isPooled = found.own.isPooled;
  servers.answered(found.own.current);
  requireSettings(found.settings);
}

/** No server that can be asked is a primary. */
export function noPrimary(whys: readonly { readonly why: string }[], cause?: unknown): HostRefused {
  return new HostRefused("unavailable", `DATABASE_URL: ${whys.map(({ why }) => why).join(" ")}`, { cause });
}

/** A server that answers as primary. */
export type Primary = {
  /** It alone. */
  readonly own: Servers;
  readonly startedAt: string;
  readonly settings: readonly Setting[];
};

/** Asks a server whether it is a primary. */
export async function askServer(
  server: PostgresServer,
  own = new Servers([server]),
): Promise<Primary | { readonly why: string; readonly cause: unknown }> {
  const asking = async (): Promise<Primary> => {
    await using database = openPostgres(own, "admin");
    const isAsked = database.isMember(sql`name`, textValue("names"));
    const startedAt = sql`extract(epoch from pg_postmaster_start_time())::text`;
    const text = sql`select name, setting, ${startedAt} as "startedAt" from pg_settings where ${isAsked}`;
    const settings = await database.query<Setting & { startedAt: string }>(text, { retry: false })({ names });
    return { own, settings, startedAt: settings[0]?.startedAt ?? "" };
  };
  try {
    return await asking().catch((error: unknown) => {
      if (databaseErrorCode(error) !== protocolViolation) throw error;
      own.isPooled = true;
      return asking();
    });
  } catch (cause) {
    return { why: describeUnreachable(server.name, cause), cause };
  }
}

/** @throws Refused unless the commits of exactly one pass; several names may lead to it */
async function theOne([first, ...others]: readonly Primary[]): Promise<Primary> {
  if (first === undefined) throw new Error("there is no primary");
  const different = [first, ...others.filter(({ startedAt }) => startedAt !== first.startedAt)];
  if (different.length === 1) return first;
  const passed = await Promise.all(different.map(async (one) => ((await commits(one)) ? [one] : [])));
  const [right, ...more] = passed.flat();
  if (right !== undefined && more.length === 0) return right;
  const all = different.map(({ own }) => own.current.name).join(" and ");
  const whichOf = right === undefined ? "commits of none of them pass" : "commits of more than one pass";
  const words = `DATABASE_URL: ${all} answer as primary, and ${whichOf}: shut down the old one, or name the right one alone.`;
  throw new HostRefused("unavailable", words);
}

/** Whether a commit passes within 2 s. It changes nothing. */
export async function commits({ own }: Pick<Primary, "own">): Promise<boolean> {
  await using database = openPostgres(own, "admin");
  const text = sql`select pg_logical_emit_message(true, 'keyhole', '')::text as at`;
  const passed = await database
    .query(text, { retry: false })({})
    .catch(() => undefined);
  return passed !== undefined;
}

const othersMs = 1000;

type Setting = { readonly name: string; readonly setting: string };

const names = JSON.stringify(Object.keys(requiredSettings));

/** @throws Problem that names the first setting that a database, a role or a pooler gave otherwise */
function requireSettings(rows: readonly Setting[]): void {
  for (const { name, setting } of rows) {
    const wanted = requiredSettings[name];
    if (setting === wanted) continue;
    const words = `The sessions of DATABASE_URL have ${name} = ${setting}, and Keyhole needs ${wanted}: alter role … or alter database … set ${name} = ${wanted}.`;
    throw configProblem(words);
  }
}
