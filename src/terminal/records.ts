import type { AdminContext } from "../desk/context.ts";
import type { Columns } from "../desk/outcome.ts";
import { withAdmin } from "./admin.ts";
import { answerList, answerOne } from "./answer.ts";
import type { CommandContext } from "./command.ts";

/** Records that people name by an id, such as keys. */
export type Records<T extends { readonly id: string }> = {
  /** Those of one organization, or of all. */
  readonly list: (admin: AdminContext, organization: string | undefined) => Promise<readonly T[]>;
  readonly show: (admin: AdminContext, id: string) => Promise<T>;
  readonly shortIds: (admin: AdminContext) => Promise<(id: string) => string>;
  /** What is shown of one record. */
  readonly columns: Columns<T>;
  /** What is shown of each record in a list, the most important first. */
  readonly listed: Columns<T>;
};

/** Ends a command with a list of what `find` finds in the installation, as {@link answerList}. */
export async function listFound<T>(
  context: CommandContext,
  wide: boolean | undefined,
  find: (admin: AdminContext) => Promise<readonly T[]>,
  none: string,
  columns: Columns<T> | ((admin: AdminContext) => Promise<Columns<T>>),
): Promise<void> {
  const [items, shown] = await withAdmin(context, async (admin) => {
    return [await find(admin), typeof columns === "function" ? await columns(admin) : columns] as const;
  });
  await answerList(context, items, shown, none, wide);
}

/** Ends a command with a list of records. @param keep - which records to list */
export async function listRecords<T extends { readonly id: string }>(
  context: CommandContext,
  records: Records<T>,
  { org, wide }: { readonly org?: string | undefined; readonly wide?: true | undefined },
  none: string,
  keep: (record: T) => boolean = () => true,
): Promise<void> {
  const find = async (admin: AdminContext) => (await records.list(admin, org)).filter(keep);
  await listFound(context, wide, find, none, async (admin) => {
    const short = await records.shortIds(admin);
    return { ...records.listed, ID: ({ id }) => short(id) };
  });
}

/** Ends a command with one record. @param more - what its JSON document has beside it */
export async function showRecord<T extends { readonly id: string }>(
  context: CommandContext,
  { show, columns }: Records<T>,
  id: string,
  more: (record: T) => object = () => ({}),
): Promise<T> {
  const record = await withAdmin(context, (admin) => show(admin, id));
  await answerOne(context, { ...record, ...more(record) }, record, columns);
  return record;
}
