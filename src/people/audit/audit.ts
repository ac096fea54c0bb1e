import { Cut } from "../../core/cut.ts";
import { compareBytes, type Environment, environments } from "../../core/names.ts";
import { Refused, unlessRefused } from "../../core/refused.ts";
import { excerpt } from "../../core/visible.ts";
import { hasPart, requirePart, tracesOf } from "../../core/words/name-part.ts";
import { counted, formatTime, listed } from "../../core/words/text.ts";
import type { AuditEntry, NamesWritten } from "../../record/entry.ts";
import { decodeEntries, type Segment } from "../../record/segment.ts";
import {
  newestMoment,
  prunedUntil,
  segmentHolding,
  segmentsByTime,
  segmentsHolding,
} from "../../record/store/segment-search.ts";
import type { Having } from "../../record/store/segments.ts";
import { may, type Rights } from "../../serve/access/rights.ts";
import type { AdminContext } from "../desk/context.ts";
import { findOrganization } from "../desk/organizations.ts";
import { findProject } from "../desk/projects.ts";
import { findKey, keyNames } from "../keys/keys.ts";
import { requireAuditor } from "./audit-chain.ts";

/** An entry as people see it, with what a write did to the names. */
export type AuditRecord = Pick<
  AuditEntry,
  "actor" | "names" | "version" | "canaries" | "requestId" | "clientAddress" | "userAgent" | "token"
> &
  Partial<NamesWritten> & {
    /** Epoch milliseconds. */
    readonly time: number;
    /** Slugs at the time of the entry; null for what concerns no organization, project or environment. */
    readonly organization: string | null;
    readonly project: string | null;
    readonly environment: string | null;
    /** `unreadable`: the segment of this entry was damaged, which `audit verify` finds too. */
    readonly action: string;
    readonly count: number;
    readonly lane: string;
    readonly seq: number;
  };

/**
 * Which entries; an absent field matches all. An organization or project matches all its entries, also under an earlier
 * slug, and the entries of earlier holders of the slug. If it does not exist any more, its slug or its whole id
 * matches.
 */
export type AuditFilter = {
  /** Its slug, or its id. */
  readonly organization?: string | undefined;
  /** `ORG/PROJECT`, or a slug if the organization is given or the only one. */
  readonly project?: string | undefined;
  /** What this key or trust read, and what was done to it. Its id, or the beginning of it if it exists. */
  readonly keyId?: string | undefined;
  /** Any of these. */
  readonly actions?: readonly string[] | undefined;
  /**
   * A part of the name of something that was read or changed, such as a variable, as {@link hasPart} takes it. Ids, such
   * as those of keys, are found whole only.
   */
  readonly name?: string | undefined;
  /** The same, or who did it as {@link AuditFilter.actor}, or a key or a trust to which it was done, by its name. */
  readonly nameOrActor?: string | undefined;
  /** The whole name of such a thing. */
  readonly wholeName?: string | undefined;
  readonly environment?: Environment | undefined;
  /** Who did it: a person as the entries name them, or a key or a trust by its name or id. */
  readonly actor?: string | undefined;
  /** A person by the name in the roster: not an account of the machine with this name. */
  readonly person?: string | undefined;
  /** An account of a machine by its whole name: not a person of the roster, and not a key, with this name. */
  readonly login?: string | undefined;
  /** From this moment on. Epoch milliseconds. */
  readonly sinceAt?: number | undefined;
  /** Before this moment. Epoch milliseconds. */
  readonly beforeAt?: number | undefined;
};

/** Called with each damaged segment that may hold matching entries, and of which nothing is shown. */
export type NoteDamage = (segment: Segment) => void;

/** How much of the audit a list is made of. */
type Bounds = {
  /** The most entries. Default: 100. */
  readonly limit?: number | undefined;
  /** How many times the database is asked for segments; then the search ends, as if it had been cut. */
  readonly pagesMax?: number;
};

/**
 * The newest matching entries, oldest first.
 * @throws Refused `forbidden` if they may read no entry there; `not_found` if the filter names something that neither
 *   exists nor has an entry
 */
export async function listAudit(
  admin: AdminContext,
  { limit = 100, pagesMax = Number.POSITIVE_INFINITY, ...filter }: AuditFilter & Bounds,
  noteDamage: NoteDamage,
): Promise<Cut<AuditRecord>> {
  const newestFirst: AuditRecord[] = [];
  let pages = 0;
  for await (const page of auditSegments(admin, filter, noteDamage, "newest first")) {
    for (const { records } of page) for (const record of records) newestFirst.push(record);
    pages += 1;
    if (newestFirst.length > limit || pages === pagesMax) break;
  }
  const isWhole = newestFirst.length <= limit && pages < pagesMax;
  return new Cut(newestFirst.slice(0, limit).reverse(), isWhole);
}

/** The newest matching entry. @throws Refused as {@link listAudit} */
export async function findNewest(admin: AdminContext, filter: AuditFilter, noteDamage: NoteDamage) {
  for await (const [newest] of auditPages(admin, filter, noteDamage, "newest first")) return newest;
  return undefined;
}

/**
 * All matching entries, in pages of at least one. Memory is bounded, every statement is short, and a caller may stop
 * early. A refusal comes before the first page, unless the person loses rights during the read. Oldest first, the last
 * entry is the newest one that existed at the beginning.
 * @throws Refused as {@link listAudit}; `forbidden`, `conflict` if the person has other rights by then
 */
export async function* auditPages(
  admin: AdminContext,
  filter: AuditFilter,
  noteDamage: NoteDamage,
  order: Order = "oldest first",
): AsyncGenerator<readonly AuditRecord[]> {
  for await (const page of auditSegments(admin, filter, noteDamage, order)) {
    for (const { records } of page) yield records;
  }
}

/** The matching entries of one segment, at least one. */
type Matching = { readonly segment: Segment; readonly records: readonly AuditRecord[] };

/** The same as {@link auditPages}, with the segments of the entries: those that one statement found, or none of them. */
export async function* auditSegments(admin: AdminContext, filter: AuditFilter, noteDamage: NoteDamage, order: Order) {
  const conditions = await conditionsOf(admin, filter);
  // Now is when the newest entry was written, because clocks differ: no later entry is dated before it.
  const untilNow = async () => Math.min(filter.beforeAt ?? Infinity, (await newestMoment(admin.database)) + 1);
  const beforeAt = order === "newest first" ? filter.beforeAt : await untilNow();
  let isEmpty = true;
  const note = (segment: Segment) => {
    if (admin.rights === "operator") isEmpty = false; // it may hold what was looked for
    noteDamage(segment);
  };
  for await (const page of matching(admin, conditions, { ...filter, beforeAt }, note, order)) {
    if (page.length > 0) isEmpty = false;
    yield page;
  }
  if (isEmpty) await requireEntries(admin, conditions, filter);
}

type Order = Parameters<typeof segmentsByTime>[2];

/**
 * One entry, whole.
 * @param name - `LANE:SEQ`; the lane may be shortened to its first 8 or more characters
 * @throws Refused `forbidden`, `invalid`, or `not_found` if nothing or several entries fit
 */
export async function showAudit(admin: AdminContext, name: string): Promise<AuditRecord> {
  const [, lane = "", seq] = /^(\S{1,64}):([1-9]\d{0,15})$/.exec(name) ?? [];
  requireAuditor(admin);
  if (seq === undefined) {
    throw new Refused("invalid", "An entry is called LANE:NUMBER, as `keyhole audit list --wide` shows it.");
  }
  const segment = await findSegment(admin, lane, Number(seq));
  const records = recordsOf(admin, segment, []);
  // A damaged segment is one entry.
  const isDamaged = records[0]?.action === unreadable;
  const found = isDamaged ? records[0] : records.find((record) => record.seq === Number(seq));
  if (found === undefined) throw noEntry(name);
  return found;
}

/**
 * The segment that holds an entry.
 * @param start - its lane, or the first 8 or more characters of it
 * @throws Refused `not_found` if there is none, or several lanes begin so
 */
export async function findSegment({ database }: AdminContext, start: string, seq: number): Promise<Segment> {
  const exact = await segmentHolding(database, { lane: start, seq });
  if (exact !== undefined) return exact;
  const [segment, second] = await segmentsHolding(database, start, seq);
  if (segment === undefined) throw noEntry(`${start}:${seq}`);
  const isAmbiguous = second !== undefined && segment.lane !== second.lane;
  if (isAmbiguous) throw new Refused("not_found", `Several lanes begin with ${start}: give more of it.`);
  return segment;
}

/** The numbers of the entries of a segment that somebody may see; none if the segment is damaged. */
export function seenSeqs(admin: AdminContext, segment: Segment): number[] {
  const records = recordsOf(admin, segment, []);
  return records[0]?.action === unreadable ? [] : [...new Set(records.map(({ seq }) => seq))];
}

export function noEntry(name: string): Refused {
  return new Refused("not_found", `There is no entry ${name}.`);
}

/** The names that a part of a name has found in entries. */
export class NamesFound {
  /** As the filter has it. */
  readonly part: string;
  readonly #fits: (name: string) => boolean;
  readonly #names = new Set<string>();

  constructor(part: string) {
    this.part = part;
    this.#fits = namesWith(part);
  }

  add(entries: readonly Pick<AuditRecord, "names">[]): this {
    for (const { names } of entries) {
      for (const name of names) if (this.#names.size < namesMax && this.#fits(name)) this.#names.add(name);
    }
    return this;
  }

  /** Each once, at most 1,000; none if only the whole name that was given is there. */
  get names(): readonly string[] {
    const names = [...this.#names].sort(compareBytes);
    return names.every((name) => name === this.part) ? [] : names;
  }

  /** How many there are, in words. */
  get count(): string {
    return `${this.#names.size === namesMax ? "at least " : ""}${counted(this.#names.size, "name")}`;
  }

  /** Says which they are, unless there are none to say. */
  get sentence(): string {
    if (this.names.length === 0) return "";
    return `${JSON.stringify(this.part)} is in ${this.count}: ${listed(this.names.map(excerpt))}.`;
  }
}

const namesMax = 1000;

/** Follows the entries that are recorded after those already shown. */
export class AuditTail {
  readonly #filter: AuditFilter;
  readonly #noteDamage: NoteDamage;
  #admin: AdminContext;
  /** The times of entries that must not be shown again. Those more than `lateMs` before the newest are forgotten. */
  readonly #seen = new Map<string, number>();
  #conditions: readonly Condition[] | undefined;
  #newestAt = 0;

  constructor(admin: AdminContext, filter: AuditFilter, noteDamage: NoteDamage) {
    this.#admin = admin;
    this.#filter = filter;
    this.#noteDamage = noteDamage;
  }

  /** Continues with another connection. */
  goOnWith(admin: AdminContext): void {
    this.#admin = admin;
  }

  /** The newest entries, oldest first, as {@link listAudit}. Older entries are never reported as new. */
  async newest(limit: number | undefined): Promise<Cut<AuditRecord>> {
    const now = this.#admin.now();
    const last = await findNewest(this.#admin, this.#filter, this.#noteDamage);
    this.#newestAt = Math.max(this.#filter.sinceAt ?? now, Math.min(last?.time ?? 0, now));
    const note = (record: AuditRecord) => {
      this.#note(record);
      return record;
    };
    for await (const page of auditPages(this.#admin, { ...this.#filter, sinceAt: this.#sinceAt }, this.#noteDamage)) {
      page.forEach(note);
    }
    return (await listAudit(this.#admin, { ...this.#filter, limit }, this.#noteDamage)).map(note);
  }

  /** New entries, oldest first, in pages. */
  async *news(): AsyncGenerator<AuditRecord[]> {
    this.#conditions ??= await conditionsOf(this.#admin, this.#filter);
    const sinceAt = this.#sinceAt;
    for (const [entry, time] of this.#seen) if (time < sinceAt) this.#seen.delete(entry);
    for await (const page of matching(this.#admin, this.#conditions, { sinceAt }, this.#noteDamage)) {
      const fresh = page.flatMap(({ records }) => records.filter((record) => !this.#seen.has(nameOf(record))));
      for (const record of fresh) this.#note(record);
      if (fresh.length > 0) yield fresh;
    }
  }

  /** Another server may write an entry a little after a newer one. */
  get #sinceAt(): number {
    return Math.max(this.#newestAt - lateMs, this.#filter.sinceAt ?? 0);
  }

  #note(record: AuditRecord): void {
    this.#seen.set(nameOf(record), record.time);
    // An entry with a time in the future must not hide the ones after it.
    this.#newestAt = Math.max(Math.min(record.time, this.#admin.now()), this.#newestAt);
  }
}

/**
 * The time, too: after a failover that lost entries of people's changes, new entries have their numbers. And the action:
 * a read of canaries is shown twice.
 */
function nameOf({ lane, seq, time, action }: AuditRecord): string {
  return `${lane} ${seq} ${time} ${action}`;
}

const lateMs = 5000;

/** The segment of an entry that meets it has this: the traces are {@link tracesOf} a part. */
type Condition = Having & {
  readonly isMetBy: (entry: AuditEntry) => boolean;
  /** The refusal if no entry at all meets the condition. */
  readonly otherwise?: string;
};

type ValuesOf = (entry: AuditEntry) => readonly string[];

const valuesOf = {
  // An empty id must not match an empty slug.
  organization: (entry: AuditEntry) => [entry.organizationId, entry.organization].filter((one) => one !== ""),
  project: (entry: AuditEntry) => [entry.projectId, entry.project],
  key: ({ actor, action, names }: AuditEntry) => [
    ...(actor.type === "person" ? [] : [actor.id]),
    ...(/^(?:key|trust)\./.test(action) ? names : []),
  ],
  action: ({ action }: AuditEntry) => [action],
  environment: ({ environment }: AuditEntry) => (environment === null ? [] : [environment]),
  person: ({ actor }: AuditEntry) => (actor.type === "person" && actor.from !== "os" ? [actor.name] : []),
  login: ({ actor }: AuditEntry) => (actor.type === "person" && actor.from === "os" ? [actor.name] : []),
  actor: ({ actor }: AuditEntry) => [actor.type === "person" ? actor.name : actor.id],
};

/** @throws Refused `forbidden`, `not_found` as {@link listAudit}, `invalid`, `ambiguous` */
async function conditionsOf(admin: AdminContext, filter: AuditFilter): Promise<Condition[]> {
  const { project, keyId, actions, name, nameOrActor, wholeName, environment, person, login, actor } = filter;
  requireAuditor(admin, undefined, environment);
  const conditions: Condition[] = [];
  const [ofProject] = project?.includes("/") ? project.split("/") : [];
  const organization = filter.organization ?? ofProject ?? (project && (await findOrganization(admin, undefined)).slug);
  if (organization !== undefined) {
    const find = async () => {
      const { id } = await findOrganization(admin, organization);
      requireAuditor(admin, id, environment);
      return id;
    };
    conditions.push(await conditionOn(admin, valuesOf.organization, organization, find));
  }
  if (project !== undefined) {
    const where = ofProject === undefined ? `${organization}/${project}` : project;
    if (!where.startsWith(`${organization}/`)) {
      throw new Refused("invalid", `${project} is not a project of ${organization}.`);
    }
    const slug = where.slice(`${organization}/`.length);
    const find = async () => (await findProject(admin, where, "audit", environment && [environment])).id;
    conditions.push(await conditionOn(admin, valuesOf.project, slug, find, conditions));
  }
  if (keyId !== undefined)
    conditions.push(await conditionOn(admin, valuesOf.key, keyId, async () => (await findKey(admin, keyId)).id));
  if (actions !== undefined) conditions.push(isOneOf(actions, valuesOf.action));
  if (environment !== undefined) conditions.push(isOneOf([environment], valuesOf.environment));
  if (name !== undefined) conditions.push(conditionOnName(admin, name));
  if (wholeName !== undefined) {
    // Whether SQL finds it as JSON, with its quotation marks.
    const isPlain = /^[\x20-\x7e]{1,255}$/.test(wholeName);
    const traces = isPlain ? [JSON.stringify(wholeName).toLowerCase()] : tracesOf(wholeName);
    const otherwise = `No ${entryFor(admin)} names ${JSON.stringify(wholeName)}.`;
    conditions.push({ isMetBy: ({ names }) => names.includes(wholeName), traces, otherwise });
  }
  if (person !== undefined) conditions.push(isOneOf([person], valuesOf.person));
  if (login !== undefined) conditions.push(isOneOf([login], valuesOf.login));
  if (actor !== undefined) conditions.push(await conditionOnActor(admin, actor));
  if (nameOrActor !== undefined) {
    const [named, did] = [conditionOnName(admin, nameOrActor), await conditionOnActor(admin, nameOrActor)];
    // The id of a key is a name in the entries of what was done to it.
    const isMetBy = (entry: AuditEntry) =>
      named.isMetBy(entry) || did.isMetBy(entry) || entry.names.some((one) => did.texts?.includes(one));
    const otherwise = `No ${entryFor(admin)} has ${JSON.stringify(nameOrActor)} in a name, or is by it.`;
    conditions.push({ ...named, ...did, isMetBy, otherwise });
  }
  return conditions;
}

/** The condition that one of the values is one of the texts. */
function isOneOf(texts: readonly string[], valuesOf: ValuesOf): Condition {
  return { isMetBy: (entry) => valuesOf(entry).some((value) => texts.includes(value)), texts };
}

/** The condition that a name has this part. @throws Refused as {@link requirePart} */
function conditionOnName(admin: AdminContext, part: string): Condition {
  requirePart(part);
  const otherwise = `No ${entryFor(admin)} has ${JSON.stringify(part)} in a name.`;
  const has = namesWith(part);
  return { isMetBy: ({ names }) => names.some(has), traces: tracesOf(part), otherwise };
}

/** What was looked at, in words. */
function entryFor({ rights }: AdminContext): string {
  return rights === "operator" ? "entry" : "entry that you may read";
}

/** Says that no entry matches, and if the record does not go back as far as was asked, when it begins. */
export async function noneMatch(admin: AdminContext, { sinceAt }: Times): Promise<string> {
  const which = admin.rights === "operator" ? "entries" : "entries that you may read";
  return [`No ${which} match.`, await recordBegins(admin, sinceAt)].filter(Boolean).join(" ");
}

/** Says when the record begins, if older entries were deleted and this moment is before that. */
export async function recordBegins(admin: AdminContext, sinceAt = 0): Promise<string | undefined> {
  const begins = await prunedUntil(admin.database);
  return begins > sinceAt ? `The audit begins at ${formatTime(begins)}: older entries were deleted.` : undefined;
}

/** Whether a name in an entry is what somebody looks for: it has the part; an id is it. */
export function namesWith(part: string): (name: string) => boolean {
  const has = hasPart(part);
  return (name) => name === part || (has(name) && !/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(name));
}

/** After a search that found nothing. @throws Refused `not_found` if there is a condition that no entry at all meets */
async function requireEntries(admin: AdminContext, conditions: readonly Condition[], times: Times): Promise<void> {
  // With one condition and no times, the search has looked at all entries already.
  const isKnown = conditions.length === 1 && times.sinceAt === undefined && times.beforeAt === undefined;
  for (const condition of conditions) {
    if (condition.otherwise !== undefined && (isKnown || !(await hasEntries(admin, [condition])))) {
      throw new Refused("not_found", condition.otherwise);
    }
  }
}

/** Whether an entry meets the conditions, or for an operator may, because it is damaged. */
async function hasEntries(admin: AdminContext, conditions: readonly Condition[]): Promise<boolean> {
  let isDamaged = false;
  const note = () => {
    isDamaged = true;
  };
  for await (const page of matching(admin, conditions, {}, note)) if (page.length > 0) return true;
  return isDamaged && admin.rights === "operator";
}

/** The condition that this person, or a key or a trust with this name or id, did it. */
async function conditionOnActor(admin: AdminContext, actor: string): Promise<Condition> {
  const named = [...(await keyNames(admin))].filter(([, name]) => name === actor).map(([id]) => id);
  const one = await unlessRefused(findKey(admin, actor), ["not_found"], () => undefined);
  const found = one === undefined ? named : [...named, one.id];
  // An account of a machine is found without its host, too.
  const [texts, account] = [[...found, actor], `${actor}@`];
  const fits = (value: string) => texts.includes(value) || value.startsWith(account);
  const isMetBy = (entry: AuditEntry) => valuesOf.actor(entry).some(fits);
  const condition = { isMetBy, texts: [...texts, account] };
  const word = JSON.stringify(actor);
  // The name of a key beyond their rights is answered as one that no key has.
  if (admin.rights !== "operator") return { ...condition, otherwise: `No ${entryFor(admin)} is by ${word}.` };
  if (found.length > 0) return condition;
  return { ...condition, otherwise: `Nobody called ${word} has an entry, and no key or trust has that name or id.` };
}

/**
 * The condition that an entry has the id that `find` returns, or the word itself.
 * @param within - other conditions that the entries must meet
 * @throws whatever `find` throws; but if it is `not_found` and the journal has such an entry, the word is enough
 */
async function conditionOn(
  admin: AdminContext,
  values: ValuesOf,
  word: string,
  find: () => Promise<string>,
  within: readonly Condition[] = [],
): Promise<Condition> {
  const found = find().then((id) => isOneOf([id, word], values));
  return unlessRefused(found, ["not_found"], async (refusal) => {
    const condition = isOneOf([word], values);
    if (await hasEntries(admin, [...within, condition])) return condition;
    throw refusal;
  });
}

/** For each page of segments, those that hold matching entries. */
async function* matching(
  admin: AdminContext,
  conditions: readonly Condition[],
  times: Times,
  noteDamage: NoteDamage,
  order: Order = "oldest first",
): AsyncGenerator<readonly Matching[]> {
  for await (const page of segmentsByTime(admin.database, segmentsWith(admin, conditions, times), order)) {
    await admin.requireSameRights?.(admin);
    yield page.flatMap((segment) => {
      const records = recordsOf(admin, segment, conditions, noteDamage);
      return records.length === 0 ? [] : [{ segment, records: order === "oldest first" ? records : records.reverse() }];
    });
  }
}

/** Which segments may hold an entry that meets the conditions, and that somebody may see. */
function segmentsWith({ rights }: AdminContext, conditions: readonly Condition[], { sinceAt, beforeAt }: Times) {
  const having: Having[] = [...conditions];
  if (rights !== "operator") having.push({ texts: rights.map((one) => one.projectId ?? one.organizationId) });
  return { having, sinceAt, beforeAt };
}

type Times = Pick<AuditFilter, "sinceAt" | "beforeAt">;

/**
 * The entries of a segment that somebody may see and that meet all conditions. Without conditions, a damaged segment is
 * one entry for an operator.
 */
function recordsOf(
  { rights }: AdminContext,
  segment: Segment,
  conditions: readonly Condition[],
  noteDamage: NoteDamage = () => {},
): AuditRecord[] {
  const { lane, firstSeq, at } = segment;
  const entries = decodeEntries(segment);
  if (entries === undefined && conditions.length === 0 && rights === "operator")
    return [{ time: at, ...unreadableEntry, lane, seq: firstSeq }];
  if (entries === undefined) {
    noteDamage(segment);
    return [];
  }
  const numbered = entries.flatMap((entry, index) => shownAs(entry).map((one) => ({ one, seq: firstSeq + index })));
  return numbered.flatMap(({ one, seq }) => {
    if (!mayRead(rights, one) || !conditions.every(({ isMetBy }) => isMetBy(one))) return [];
    const { organizationId: _, projectId: __, organization, project, names, write, ...shown } = one;
    const slugs = { organization: organization || null, project: project || null };
    return [{ time: at, ...shown, ...slugs, names, count: names.length, ...write, lane, seq }];
  });
}

/** An entry; and if it is a read of canaries, their use, which has its number. */
function shownAs(entry: AuditEntry): readonly AuditEntry[] {
  const { canaries, ...rest } = entry;
  return canaries === undefined ? [entry] : [entry, { ...rest, action: "canary.variable", names: canaries }];
}

/** What concerns no project takes the right for all of them; what concerns no environment, in all three. */
function mayRead(rights: Rights, { organizationId, projectId, environment }: AuditEntry): boolean {
  const place = { organizationId, projectId: projectId || null };
  const among = environment === null ? environments : [environment];
  return among.every((one) => may(rights, "audit", place, one));
}

/** The action of a damaged segment, which is shown as one entry. */
export const unreadable = "unreadable";

const unreadableEntry = {
  actor: { type: "person", name: "", from: "os" },
  organization: null,
  project: null,
  environment: null,
  action: unreadable,
  names: [],
  count: 0,
  requestId: "",
  clientAddress: "",
  userAgent: "",
} as const;
