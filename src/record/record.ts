import { isSameMac, macOf } from "../core/hash.ts";
import { excerpt } from "../core/visible.ts";
import type { AuditEntry } from "./entry.ts";
import { type Flaw, parseGap, type Range } from "./flaw.ts";
import { rosterAction } from "./head.ts";

/*
 * What the record says that the tables hold. Somebody with SQL can put a single row back as it was, with its seal: a key
 * that was revoked, or a set at an earlier version. The record of what people did knows better.
 */

/** What the tables hold, by subject: a key is live or revoked, a set has a version, and so on. */
export type State = ReadonlyMap<string, string>;

/** What a table holds against the record. */
export type StateDifference = {
  /** `key:ID` of a key or a trust, `set:PROJECT/KIND/ENVIRONMENT`, `project:ID`, `plan:ORGANIZATION`, or `roster`. */
  readonly subject: string;
  readonly recorded: string;
  readonly found: string;
  /** It was found once, and the table holds by now what the record says. */
  readonly isOver?: true;
};
/** A difference as it is stored. */
export type Exception = StateDifference & { readonly at: number; readonly seal: Buffer };

export function sealException(auditKey: Uint8Array, { subject, recorded, found, at }: Omit<Exception, "seal">): Buffer {
  return macOf(auditKey, ["keyhole audit exception v1", subject, recorded, found, at]);
}

export function isSealed(auditKey: Uint8Array, exception: Exception): boolean {
  return isSameMac(sealException(auditKey, exception), exception.seal);
}

/** Once it was accepted, the record says what was found, unless that is over. */
export function stateFlaw({ subject, recorded, found, isOver }: StateDifference): Flaw {
  const [which, is, was] = [subject, found, recorded].map(excerpt);
  const sentence = `${which} was put back or changed by other means: it is ${is}, and the record says ${was}.`;
  return { what: "state", name: subject, sentence, seals: isOver ? [] : [found] };
}

type KeyState = {
  readonly organizationId: string;
  readonly state: typeof live | typeof revoked;
  /** How many losses of the record came before it. */
  readonly losses: number;
};

const live = "live";
const revoked = "revoked";
const gone = "gone";
/** What a lost entry may have said of a key. */
const unproved = "nothing that can be proved";
const inWords = (version: number) => `version ${version}`;

/** What people put on record, entry after entry. */
export class RecordedState {
  readonly #keys = new Map<string, KeyState>();
  /** The slug of each project, and its organization. */
  readonly #projects = new Map<string, { readonly organizationId: string; readonly slug: string }>();
  /** The entries that were lost and not accepted, in their order. */
  #losses: readonly (Range & { readonly number: number })[] = [];
  #lossCount = 0;
  readonly #plans = new Map<string, string>();
  /** By subject; undefined if the project was deleted. */
  readonly #sets = new Map<string, { readonly organizationId: string; readonly version: number | undefined }>();
  #roster: string | undefined;

  /** Entries are missing behind the last one, or were changed: they may have said anything. */
  lose(range: Range): void {
    this.#lossCount += 1;
    this.#losses = [...this.#losses, { ...range, number: this.#lossCount }];
  }

  /** Takes in the next entry of people. */
  apply({ action, names, organizationId, projectId, project, environment, version }: AuditEntry): void {
    const [first = "", second = ""] = names;
    const key = (state: KeyState["state"]) => ({ organizationId, state, losses: this.#lossCount });
    if (action === "key.create" || action === "trust.create") this.#keys.set(first, key(live));
    else if (action === "key.revoke" || action === "trust.revoke") this.#keys.set(first, key(revoked));
    else if (action === "key.rotate") this.#keys.set(second, key(live));
    else if (action === "organization.plan") this.#plans.set(organizationId, first);
    else if (action === "organization.delete") this.#deleteOrganization(organizationId);
    else if (action === "project.create") this.#projects.set(projectId, { organizationId, slug: project });
    else if (action === "project.rename") this.#projects.set(projectId, { organizationId, slug: first });
    else if (action === "project.delete") {
      this.#projects.delete(projectId);
      this.#deleteSets((subject) => subject.startsWith(`set:${projectId}/`));
    } else if (action === rosterAction) this.#roster = first;
    else if (action === "audit.accept") this.#accept(first, second);
    else if (version !== undefined && environment !== null) {
      const subject = `set:${projectId}/${action.slice(0, action.indexOf("."))}/${environment}`;
      // A set that was put back with its records is given a number of before. The highest stays.
      const before = this.#sets.get(subject)?.version ?? 0;
      this.#sets.set(subject, { organizationId, version: Math.max(before, version) });
    }
  }

  /** What the tables hold against the record. What the record does not have, such as its older part, is passed over. */
  differences(state: State): StateDifference[] {
    const found: StateDifference[] = [];
    const compare = (subject: string, recorded: string, isFit: (is: string | undefined) => boolean) => {
      const is = state.get(subject);
      if (!isFit(is)) found.push({ subject, recorded, found: is ?? gone });
    };
    for (const [id, { state }] of this.#keys) {
      compare(`key:${id}`, state, (is) => is !== (state === live ? undefined : live));
    }
    const lost = this.#losses.at(-1)?.number ?? 0;
    for (const [subject, is] of state) {
      if (lost === 0 || is !== live || !subject.startsWith("key:")) continue;
      const recorded = this.#keys.get(subject.slice("key:".length));
      if (recorded?.state !== revoked && (recorded?.losses ?? 0) < lost)
        found.push({ subject, recorded: unproved, found: is });
    }
    for (const [id, { slug }] of this.#projects) compare(`project:${id}`, slug, (is = slug) => is === slug);
    for (const [id, plan] of this.#plans) compare(`plan:${id}`, plan, (is = plan) => is === plan);
    for (const [subject, { version }] of this.#sets) {
      if (version === undefined) compare(subject, gone, (is) => is === undefined);
      else compare(subject, inWords(version), (is = "") => versionOf(is) >= version);
    }
    if (this.#roster !== undefined) compare("roster", this.#roster, (is) => is === this.#roster);
    return found;
  }

  #deleteOrganization(organizationId: string): void {
    for (const [id, key] of this.#keys)
      if (key.organizationId === organizationId) this.#keys.set(id, { ...key, state: revoked });
    this.#plans.delete(organizationId);
    for (const [id, project] of this.#projects)
      if (project.organizationId === organizationId) this.#projects.delete(id);
    this.#deleteSets((_, set) => set.organizationId === organizationId);
  }

  #deleteSets(isOne: (subject: string, set: { readonly organizationId: string }) => boolean): void {
    for (const [subject, set] of this.#sets)
      if (isOne(subject, set)) this.#sets.set(subject, { ...set, version: undefined });
  }

  /**
   * Somebody accepted a difference, and the record says from then on what was found, unless that was over; or they
   * accepted a loss.
   */
  #accept(subject: string, found: string): void {
    const gap = parseGap(subject);
    const isIn = (one: Range) => gap?.lane === one.lane && gap.seq <= one.seq && one.lastSeq <= gap.lastSeq;
    this.#losses = this.#losses.filter((one) => !isIn(one));
    if (found === "") return;
    if (subject === "roster") this.#roster = found === gone ? undefined : found;
    const [, of, id = ""] = /^(key|set|plan|project):(.+)$/.exec(subject) ?? [];
    const key = this.#keys.get(id);
    const project = this.#projects.get(id);
    const set = this.#sets.get(subject);
    const version = versionOf(found);
    if (of === "key" && found === gone) this.#keys.delete(id);
    else if (of === "key" && found === live)
      this.#keys.set(id, { organizationId: key?.organizationId ?? "", state: live, losses: this.#lossCount });
    else if (of === "project" && project) this.#projects.set(id, { ...project, slug: found });
    else if (of === "plan" && /^(free|pro)$/.test(found)) this.#plans.set(id, found);
    else if (of === "set" && found === gone) this.#sets.delete(subject);
    else if (of === "set" && set && version >= 0) this.#sets.set(subject, { ...set, version });
  }
}

/** The number of {@link inWords}; not a number for another text. */
function versionOf(words: string): number {
  return Number(/^version (\d{1,15})$/.exec(words)?.[1]);
}
