import { attempt } from "../../core/attempt.ts";
import { Fault } from "../../core/fault.ts";
import type { Render } from "../../core/held.ts";
import { type Environment, environmentMask, everyEnvironment, slugPattern } from "../../core/names.ts";
import type { Lookup } from "../../core/set-rows.ts";
import { overuseAction, printable, type ReadAction } from "../../record/entry.ts";
import { Overused } from "../../record/job-reads.ts";
import type { Caller } from "../access/authenticate.ts";
import { reaches } from "../access/grant.ts";
import type { KindDescriptor } from "../sets/kind.ts";
import type { Read, Reading } from "../sets/lookup.ts";
import { type Admission, admit, charge, noLookup, refuseOveruse } from "./admit.ts";
import type { ApiParts } from "./api-parts.ts";
import type { Endpoint } from "./endpoint.ts";
import { etagOf, isAmong } from "./etag.ts";
import { type Exchange, json, notModified } from "./exchange.ts";
import { isMetadataRead } from "./query.ts";
import { auditEntry, released } from "./record.ts";

/** What every read of items asks. An endpoint spells one query in one way: the tag of the answer is made of it. */
export type ItemsQuery = {
  readonly project: string;
  /** Null: every environment that the key reaches. */
  readonly environment: Environment | null;
  readonly metadataOnly: boolean;
};

/** What a kind gives for a read of its items; {@link readEndpoint} calls it in the order of the gates. */
type ItemsRead<Q extends ItemsQuery, T> = {
  readonly kind: Pick<KindDescriptor, "kind" | "isReadAlone" | "hasValues">;
  readonly action: ReadAction;
  /** For a read with values that is not conditional. */
  readonly admission: Admission;
  /** The parameter that asks for metadata; undefined if there is none. */
  readonly metadataFlag?: "metadata_only" | "metadataOnly";
  /** Gate 5. @param slug - of the path; empty if it has none. */
  readonly parse: (raw: string, slug: string) => Q;
  /** Whether the query asks for some names; left out for a kind whose items are always read together. */
  readonly isByName?: (query: Q) => boolean;
  /** Gates 7 to 9 for metadata: the body of the answer. Nothing is opened, and the fingerprint covers values too. */
  readonly list: (reading: Reading, query: Q) => Promise<{ readonly body: string; readonly fingerprint: string }>;
  /** Gates 7 to 9 for the fingerprint alone; without it, {@link list} finds that. */
  readonly find?: (reading: Reading, query: Q) => Promise<{ readonly fingerprint: string }>;
  /** Gates 7 to 9 for values. */
  readonly read: (reading: Reading, query: Q) => Promise<Read<T>>;
  readonly render: (query: Q) => Render<T>;
};

/**
 * A GET of the items of a kind, with or without values. Its comments name the statuses that each line can answer.
 *
 * @example
 * readEndpoint({ kind: notes, action: "notes.read", admission, parse, list, read, render: notesJson })
 */
export function readEndpoint<Q extends ItemsQuery, T>(items: ItemsRead<Q, T>): Pick<Endpoint, "get" | "admission"> {
  const { kind, action, admission, metadataFlag, list, find = list } = items;
  const asMetadata: Admission = { ...admission, bucket: "metadata" };
  return {
    admission,
    async get(parts, exchange, token, slug) {
      const { rawQuery, ifNoneMatch } = exchange;
      const onlyLists = isMetadataRead(rawQuery, metadataFlag) || ifNoneMatch !== undefined;
      // The query says what to look up with the key. An invalid query is refused only after the key has been checked.
      const asked = attempt(() => items.parse(rawQuery, slug));
      const lookup = asked === undefined ? noLookup : lookupOf(kind, asked, !onlyLists);
      const caller = await admit(parts.gate, exchange, token, onlyLists ? asMetadata : admission, lookup); // 401 429 403
      const query = asked ?? items.parse(rawQuery, slug); // 400
      const { environment, metadataOnly } = query;
      if (environment !== null) inScope(caller, environment); // 403
      const reading = readingOf(parts, exchange, caller);
      const etag = (fingerprint: string) => etagOf(parts.etagKey, caller, [action, query], fingerprint);
      if (metadataOnly) {
        const { body, fingerprint } = await list(reading, query); // 404 422 503
        return json(exchange, body, etag(fingerprint));
      }
      if (ifNoneMatch !== undefined) {
        const found = etag((await find(reading, query)).fingerprint); // 404 422 503
        if (isAmong(found, ifNoneMatch)) return notModified(exchange, found);
        await charge(parts.gate, exchange, caller.grant, admission.bucket); // 429
      }
      const read = await items.read(reading, query); // 404 422 503
      const { canaries } = read;
      const entry = {
        ...auditEntry(exchange, caller, read.project, environment, action, []),
        ...(items.isByName?.(query) && { byName: true as const }),
        ...(canaries && { canaries }),
      };
      const entries = read.entries.map((names) => ({ ...entry, names }));
      const [render, tag] = [items.render(query), etag(read.fingerprint)];
      const answer = await released(parts, exchange, caller, entries, read, render, tag).catch((error: unknown) => {
        if (!(error instanceof Overused)) throw error; // 422 503
        const names = [printable(caller.job?.claims ?? "")];
        const overuse = auditEntry(exchange, caller, read.project, environment, overuseAction, names);
        throw refuseOveruse(parts.gate, exchange, token ?? "", overuse, error); // 401
      }); // on record
      if (canaries !== undefined) parts.gate.alarms.noteRead(entry);
      return answer;
    },
  };
}

/** What to look up with the key for a query. @param values - whether values are needed, not only names */
export function lookupOf(
  { kind, isReadAlone, hasValues }: Pick<KindDescriptor, "kind" | "isReadAlone" | "hasValues">,
  { project, environment }: Pick<ItemsQuery, "project" | "environment">,
  values: boolean,
): Lookup {
  const asked = environment === null ? everyEnvironment : environmentMask(environment);
  return {
    slug: slugPattern.test(project) ? project : "",
    kind,
    environments: isReadAlone ? asked : everyEnvironment,
    values: values && hasValues ? asked : 0,
  };
}

/** Gate 6. */
export function inScope({ grant }: Caller, environment: Environment): void {
  if (reaches(grant, environment)) return;
  throw new Fault("environment_not_in_scope", `key ${grant.keyId} does not reach ${environment}`);
}

/** What the request carries through its read. */
export function readingOf({ source }: ApiParts, { signal, stages }: Exchange, caller: Caller): Reading {
  return { source, caller, signal, stages };
}
