import { createDecipheriv, createHash, createPublicKey, randomBytes, verify } from "node:crypto";
import { BlockList, isIP } from "node:net";
import { attempt } from "../../../src/core/attempt.ts";
import { renderDotenv } from "../../../src/core/formats/dotenv.ts";
import { type Environment, environments } from "../../../src/core/names.ts";
import { isWellFormedKey } from "../../../src/serve/access/api-key.ts";

/*
 * The small Keyhole: how a read works, from its header to its body and its entry in the audit, told once more in plain
 * code. It has no cache, no group, no worker, no stream and no SQL: its database is a few maps. It is slow, and it does
 * everything that the API does. Random histories hold the server to it (`agrees.test.ts`).
 *
 * Read `Server.#judge`: its lines are the gates in their order. The small Keyhole takes from `src` the names of the
 * environments, the spelling of a key and the layout of dotenv text, which have tests of their own, and `attempt`.
 * `people.ts` writes what it reads.
 */

// What is stored.

export type Kind = "variables" | "accounts" | "files";
export type Organization = { id: string; slug: string; name: string; plan: string };
export type File = { id: string; name: string; mode: string; size: number; sha256: string; contentType: string };
/** A variable, an account or a file (by its path) in a listing. `version` is that of the set that wrote it. */
export type Item = { name: string; updatedAt: number; version: number; file?: File };
/** The items of a kind in an environment. Both parts are sealed to their place: moved or edited, they do not open. */
export type StoredSet = { version: number; listing: Buffer; values: Buffer };
export type Project = {
  id: string;
  organizationId: string;
  slug: string;
  name: string;
  createdAt: number;
  changedAt: Record<Environment, number>;
  sets: Map<string, StoredSet>; // by kind and environment, as in `files staging`
  holds: Map<string, readonly string[]>; // what each set holds, for the counts: names, and ids of files
  contents: Map<string, Buffer>; // sealed, by the id of the file
};
/** A key, or a trust that takes a token in place of a key. */
export type Key = {
  id: string;
  organizationId: string;
  surfaces: readonly string[];
  resources: readonly string[];
  environments: readonly Environment[];
  projects: Readonly<Record<string, string>> | null; // slug to id; null: every project
  expiresAt: number | null;
  rate: number; // how many times as large its buckets are
  from: readonly string[] | null; // ranges of addresses; null: from everywhere
  isRevoked: boolean;
  isSealed: boolean; // whether its row is as Keyhole wrote it
  text?: string; // of a key
  trust?: Trust;
};
export type Trust = {
  issuer: string;
  audience: string;
  claims: Readonly<Record<string, string>>;
  jwk: Readonly<Record<string, unknown>>; // the issuer's public key
  perJob?: { reads: number; claims: readonly string[] }; // how many answers with values, and what names the job
};
/** An entry of the audit. */
export type Entry = {
  actor: "key" | "trust";
  id: string;
  organization: string;
  project: string;
  environment: Environment | null;
  action: string;
  names: readonly string[];
  byName: boolean; // whether names were asked for
  requestId: string;
  userAgent: string;
  address: string;
  token: { jti: string; sub: string; run: string } | null;
};

/** The database. Servers share it. */
export class Store {
  organizations: Map<string, Organization> = new Map();
  projects: Map<string, Project> = new Map();
  keys: Map<string, Key> = new Map();
  jobs: Map<string, number> = new Map(); // how many answers with values each had
  record: Entry[] = [];
  rootKey: Buffer = randomBytes(32);
}

/** AES-256-GCM: nonce, ciphertext, tag. What is sealed opens in its own place alone. */
function open(key: Buffer, place: readonly unknown[], sealed: Buffer | undefined): Buffer {
  const opened = attempt(() => {
    if (sealed === undefined) return undefined;
    const cipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, 12));
    cipher.setAAD(Buffer.from(JSON.stringify(place))).setAuthTag(sealed.subarray(-16));
    return Buffer.concat([cipher.update(sealed.subarray(12, -16)), cipher.final()]);
  });
  if (opened === undefined) throw new Refusal("decryption_failed");
  return opened;
}

export function placeOf({ organizationId, id, slug }: Project, kind: Kind, environment: Environment, version: number) {
  return [organizationId, id, slug, kind, environment, version];
}

/** A set. Its values are opened when they are asked for; those of files are contents of their own. */
export function openSet({ rootKey }: Store, project: Project, kind: Kind, environment: Environment) {
  const { version = 0, listing, values } = project.sets.get(`${kind} ${environment}`) ?? {};
  const place = placeOf(project, kind, environment, version);
  const items: Item[] = JSON.parse(open(rootKey, place, listing).toString());
  const openValues = (): Record<string, unknown> =>
    JSON.parse(open(rootKey, [...place, listing?.toString("hex")], values).toString());
  return { environment, version, items, openValues };
}

// What is asked and answered.

/** `path` is below the API's root and has its query; headers have lower-case names. */
export type Asked = { method: string; path: string; headers: Readonly<Record<string, string>> };
export type Answer = { status: number; headers: Record<string, string>; body: string; code: string };
export type Clock = { nowMs: number; nowUs: number };

/** CONTRACT §3. */
const refusals = {
  invalid_request: [400, "A query parameter is missing, unknown or invalid."],
  unauthorized: [401, "A valid API key is required."],
  plan_required: [403, "The organization's plan does not include the API."],
  surface_required: [403, "This key may not be used for this endpoint."],
  resource_required: [403, "This key may not read this kind of resource."],
  environment_not_in_scope: [403, "This key may not read this environment."],
  project_not_found: [404, "No such project, or this key may not read it."],
  not_found: [404, "No such path."],
  method_not_allowed: [405, "Only GET is allowed."],
  too_many_items: [422, "The answer would hold more than 1000 items; narrow the request or use a narrower key."],
  env_unrepresentable: [422, "No harmless dotenv text can carry these variables; ask for format=json instead."],
  content_too_large: [422, "The files hold more than 8 MiB; ask for fewer at a time with path."],
  rate_limited: [429, "Too many requests; wait as long as Retry-After says."],
  decryption_failed: [503, "Decryption failed for one or more items; nothing is returned."],
} as const;

/** Ends a request. Its message is the sentence of the answer. */
class Refusal extends Error {
  code: keyof typeof refusals;
  headers: Record<string, string>;

  constructor(code: keyof typeof refusals, headers: Record<string, string> = {}, sentence: string = refusals[code][1]) {
    super(sentence);
    this.code = code;
    this.headers = headers;
  }
}

export type Bucket = "metadata" | "value" | "content" | "unrecognized";
/** CONTRACT §6: how many tokens a bucket holds, how long one takes to come back, and what its header says. */
const buckets: Readonly<Record<Bucket, { name: string; capacity: number; intervalUs: number; windowS: number }>> = {
  metadata: { name: "metadata", capacity: 120, intervalUs: 500_000, windowS: 60 },
  value: { name: "value", capacity: 30, intervalUs: 2_000_000, windowS: 60 },
  content: { name: "file-content", capacity: 1000, intervalUs: 1_000_000, windowS: 1000 },
  unrecognized: { name: "unrecognized", capacity: 10, intervalUs: 6_000_000, windowS: 60 },
};

type Endpoint = readonly [
  path: RegExp,
  surface: "rest_api" | "ci_action" | null,
  resource: string | null,
  bucket: Bucket,
  action: string,
  find: ((read: Read) => Found) | null,
  /** What each may be, in the order in which they are judged; null: any text. */
  parameters: Parameters,
];
type Parameters = Readonly<Record<string, readonly string[] | null>>;
/** What the gates after the key found out, and the store. */
type Read = { store: Store; question: Question; project: Project; action: string; reach: readonly Environment[] };
type Found = {
  metadata: unknown; // the body without values
  fingerprint: unknown; // differs if an answer with values would
  /** Gate 9: opens the values. `entries` are the names that each entry of the audit records. */
  open: () => { body: string; entries: readonly (readonly string[])[]; headers?: Record<string, string> };
};

const format = ["json", "env"];
const ofProject = { project: null, environment: environments };
const ofVariables = { environment: environments, keys: null, prefix: null, metadata_only: ["true", "false"], format };
const ofAccounts = { environment: environments, metadata_only: ["true", "false"] };
const ofFiles = { ...ofProject, metadataOnly: ["true", "1", "false", "0"], path: null };
const endpoints: readonly Endpoint[] = [
  [/^\/organization$/, null, null, "metadata", "", null, {}],
  [/^\/projects$/, "rest_api", "projects", "metadata", "", null, {}],
  [/^\/projects\/([^/]+)$/, "rest_api", "projects", "metadata", "", null, {}],
  [/^\/projects\/([^/]+)\/variables$/, "rest_api", "variables", "value", "variables.read", findVariables, ofVariables],
  [/^\/projects\/([^/]+)\/accounts$/, "rest_api", "accounts", "value", "accounts.read", findAccounts, ofAccounts],
  [/^\/files$/, "rest_api", "files", "content", "file.read", findFiles, ofFiles],
  [/^\/secrets$/, "ci_action", null, "value", "secrets.read", findVariables, { ...ofProject, format }],
];

/** A process that serves the store. */
export class Server {
  readonly #store: Store;
  readonly #clock: Clock;
  /** What it forgets when it starts again. */
  memory = {
    fullAtUs: new Map<string, number>(), // the moment at which a bucket is full again, by its kind and key or text
    known: new Map<string, string>(), // texts that were recognized last time, with the id of their key
    seq: 0, // how many entries its lane has
  };

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  answer(asked: Asked): Answer {
    const id = asked.headers["x-request-id"] ?? "";
    // Those of every answer. The buckets add theirs.
    const headers: Record<string, string> = {
      "x-request-id": /^[A-Za-z0-9._-]{1,128}$/.test(id) ? id : "MADE",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    };
    const json = { "content-type": "application/json; charset=utf-8" };
    try {
      const { body, headers: own } = this.#judge(asked, headers);
      if (body === undefined) return { status: 304, headers: { ...headers, ...own }, body: "", code: "304" };
      return { status: 200, headers: { ...headers, ...json, ...own }, body, code: "200" };
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      const { code, message: error, headers: own } = refusal;
      const body = JSON.stringify({ error, code });
      return { status: refusals[code][0], headers: { ...headers, ...json, ...own }, body, code };
    }
  }

  /** The gates in their order. @returns a body, unless the client has it already, and headers of its own */
  #judge(asked: Asked, headers: Record<string, string>): { body?: string; headers?: Record<string, string> } {
    const { method, headers: sent } = asked;
    // 1. Route.
    const [path = "", ...rest] = asked.path.split("?");
    const rawQuery = rest.join("?");
    const endpoint = endpoints.find(([one]) => one.test(path));
    if (endpoint === undefined) throw new Refusal("not_found");
    if (method !== "GET") throw new Refusal("method_not_allowed", { allow: "GET" });
    const [pattern, surface, resource, bucket, action, find, parameters] = endpoint;
    // 2. Key, with the limiter of unrecognized keys. 3. The key's bucket.
    const tags = tagsIn(sent["if-none-match"]);
    const isMetadata = tags !== undefined || asksForMetadata(rawQuery, parameters);
    const { text, key, claims } = this.#recognize(sent, isMetadata ? "metadata" : bucket, headers);
    // 4. Plan, surface, resource.
    const { id, name, slug, plan } = this.#store.organizations.get(key.organizationId) as Organization;
    if (plan !== "pro") throw new Refusal("plan_required");
    if (surface !== null && !key.surfaces.includes(surface)) throw new Refusal("surface_required");
    if (resource !== null && !key.resources.includes(resource)) throw new Refusal("resource_required");
    // 5. Query.
    const question = questionOf(parameters, textOf(pattern.exec(path)?.[1] ?? "") ?? "", rawQuery);
    // 6. The environment is in the key's scope.
    const { environment } = question;
    if (environment !== null && !key.environments.includes(environment)) throw new Refusal("environment_not_in_scope");
    if (path === "/organization") return { body: JSON.stringify({ id, name, slug, plan }) };
    // 7. The project exists and is in the key's scope.
    const inScope = [...this.#store.projects.values()].filter((project) => isReached(key, project)).sort(bySlug);
    const reach = environments.filter((one) => key.environments.includes(one));
    if (path === "/projects") {
      if (inScope.length > 1000) throw new Refusal("too_many_items");
      return { body: JSON.stringify({ projects: inScope.map((project) => summaryOf(project, reach)) }) };
    }
    const project = inScope.find((one) => one.slug === question.project);
    if (project === undefined) throw new Refusal("project_not_found");
    if (find === null) return { body: JSON.stringify(detailsOf(project, reach)) };
    // 8. Bounds.
    const found = find({ store: this.#store, question, project, action, reach });
    const own: Record<string, string> = { etag: tagOf([key.id, project.id, action, question, found.fingerprint]) };
    const wait = /^wait=([1-9]|[1-5]\d|60)$/.exec(sent["prefer"] ?? "")?.[0];
    if (tags !== undefined && wait !== undefined) own["preference-applied"] = wait;
    if (tags?.some((tag) => tag === "*" || tag === own["etag"])) return { headers: own };
    if (question.metadataOnly) return { body: JSON.stringify(found.metadata), headers: own };
    if (tags !== undefined) this.charge(bucket, key.id, headers);
    // 9. Decryption.
    const { body, entries, headers: more } = found.open();
    // 10. The audit.
    const word = (claim: string) => String(claims?.[claim] ?? "");
    const token = claims ? { jti: word("jti"), sub: word("sub"), run: word("run_id") } : null;
    const byName = question.names !== null || question.prefix !== "";
    const what = { project: project.slug, environment, byName, token };
    const entry = { ...this.#entry(key, sent, headers, action), ...what };
    const perJob = key.trust?.perJob;
    if (perJob !== undefined) {
      const job = perJob.claims.map((claim) => `${claim}=${word(claim)}`).join(" ");
      const had = this.#store.jobs.get(`${key.id} ${job}`) ?? 0;
      // An answer without an item is not counted.
      const reads = entries.some((names) => names.length > 0) ? had + 1 : 0;
      if (reads > perJob.reads) {
        this.memory.known.delete(text);
        this.#refuse(text, headers, { ...entry, action: "trust.overused", names: [job], byName: false });
      }
      if (reads > 0) this.#store.jobs.set(`${key.id} ${job}`, reads);
      own["keyhole-reads-per-job"] = String(perJob.reads);
    }
    for (const names of entries) this.#store.record.push({ ...entry, names });
    const first = this.memory.seq + 1;
    this.memory.seq += entries.length;
    const last = this.memory.seq;
    if (last >= first) own["keyhole-audit"] = `LANE:${first}${last > first ? `-${last}` : ""}`;
    // 11. 200.
    return { body, headers: { ...own, ...more } };
  }

  /** Gates 2 and 3. A text that was recognized before pays first, any other once it is recognized. */
  #recognize(sent: Asked["headers"], bucket: Bucket, headers: Record<string, string>) {
    const { keys } = this.#store;
    const { known } = this.memory;
    const header = sent["authorization"];
    if (header === undefined) throw new Refusal("unauthorized", challenge);
    const text = /^bearer +([\w.-]+)$/i.exec(header)?.[1];
    const isToken = text !== undefined && text.length <= 8192 && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text);
    if (text === undefined || !(isToken || isWellFormedKey(text))) return this.#refuse(text ?? header, headers);
    const caller = callerIn(sent);
    const before = keys.get(known.get(text) ?? "");
    const payer = before && isFrom(caller, before.from) ? before : undefined;
    if (payer) this.charge(bucket, payer.id, headers);
    else this.charge("unrecognized", text, {}, true);
    const claims = isToken ? claimsOf(text) : undefined;
    const [key, another] = [...keys.values()].filter((one) => isLive(one, text, claims, this.#clock.nowMs));
    if (key === undefined || another !== undefined) {
      known.delete(text);
      return this.#refuse(text, headers);
    }
    known.set(text, key.id);
    if (!isFrom(caller, key.from)) {
      const alarm = { ...this.#entry(key, sent, headers, "key.elsewhere"), names: [key.id] };
      return this.#refuse(text, headers, alarm);
    }
    if (!payer) this.charge(bucket, key.id, headers);
    return { text, key, claims };
  }

  /** The one 401, whatever the reason, until the text has used up its attempts. @param alarm - what goes on record */
  #refuse(text: string, headers: Record<string, string>, alarm?: Entry): never {
    for (const name of ["ratelimit", "ratelimit-policy"]) delete headers[name];
    this.charge("unrecognized", text, {});
    if (alarm) this.#store.record.push(alarm);
    throw new Refusal("unauthorized", challenge);
  }

  /** An entry that says who asked, and not yet for what. */
  #entry(key: Key, sent: Asked["headers"], headers: Record<string, string>, action: string): Entry {
    const { slug: organization } = this.#store.organizations.get(key.organizationId) as Organization;
    const caller = callerIn(sent);
    const address = caller === "unix" ? "" : `${caller} via unix`;
    const from = { requestId: headers["x-request-id"] as string, userAgent: sent["user-agent"] ?? "", address };
    const nothing = { project: "", environment: null, names: [], byName: false, token: null };
    return { actor: key.trust ? "trust" : "key", id: key.id, organization, action, ...from, ...nothing };
  }

  /** Takes one token, or only looks whether there is one. A bucket is one number: when it is full again. */
  charge(bucket: Bucket, whose: string, headers: Record<string, string>, onlyLooks = false): void {
    const { name, capacity, intervalUs, windowS } = buckets[bucket];
    const rate = this.#store.keys.get(whose)?.rate ?? 1;
    const [tokens, everyUs] = [capacity * rate, Math.floor(intervalUs / rate)];
    const { nowUs } = this.#clock;
    const fullAtUs = Math.max(this.memory.fullAtUs.get(`${bucket} ${whose}`) ?? 0, nowUs) + everyUs;
    const spareUs = nowUs + tokens * everyUs - fullAtUs; // below 0, there is no token
    const inS = (us: number) => Math.ceil(us / 1_000_000);
    const retryAfterS = Math.max(1, inS(-spareUs));
    const [left, endsInS] = spareUs < 0 ? [0, retryAfterS] : [Math.floor(spareUs / everyUs), inS(fullAtUs - nowUs)];
    headers["ratelimit-policy"] = `"${name}";q=${tokens};w=${windowS}`;
    headers["ratelimit"] = `"${name}";r=${left};t=${endsInS}`;
    if (spareUs < 0) throw new Refusal("rate_limited", { "retry-after": String(retryAfterS) });
    if (!onlyLooks) this.memory.fullAtUs.set(`${bucket} ${whose}`, fullAtUs);
  }
}

const challenge = { "www-authenticate": 'Bearer realm="keyhole"' };

// Gate 2: who asks, and whose text it is.

/** The proxies are on the Unix socket, and in this network. */
export const proxies = ["unix", "10.0.0.0/8"];

/** From the right, the first address that is no proxy's; a part that is no address ends the search. */
function callerIn(sent: Asked["headers"]): string {
  let caller = "unix";
  for (const part of (sent["x-forwarded-for"] ?? "").split(",").reverse()) {
    const address = part.trim().replace(/^::ffff:(?=\d+\.)/, "");
    if (isIP(address) === 0 || address.includes("%")) break;
    caller = address;
    if (!isFrom(address, proxies)) break;
  }
  return caller;
}

function isFrom(caller: string, ranges: Key["from"]): boolean {
  if (ranges === null || caller === "unix") return ranges?.includes(caller) ?? true;
  const family = (address: string) => (isIP(address) === 4 ? "ipv4" : "ipv6");
  const list = new BlockList(); // of one family: by itself it would find IPv4 in ::/0
  for (const range of ranges) {
    const [net = "", length] = range.split("/");
    if (range !== "unix" && family(net) === family(caller)) list.addSubnet(net, Number(length), family(net));
  }
  return list.check(caller, family(caller));
}

type Claims = Readonly<Record<string, unknown>>;

/** Whether this is the key of a text, or the trust of a token, and can be used now. */
function isLive(key: Key, text: string, claims: Claims | undefined, nowMs: number): boolean {
  const { isSealed, isRevoked, expiresAt, trust } = key;
  if (!isSealed || isRevoked || (expiresAt !== null && expiresAt <= nowMs)) return false;
  if (trust === undefined) return key.text === text;
  if (claims === undefined || claims["iss"] !== trust.issuer || claims["aud"] !== trust.audience) return false;
  const [head = "", body = "", signature = ""] = text.split(".");
  const issuerKey = createPublicKey({ format: "jwk", key: trust.jwk as never });
  const how = { key: issuerKey, dsaEncoding: "ieee-p1363" } as const;
  if (!verify("sha256", Buffer.from(`${head}.${body}`), how, Buffer.from(signature, "base64url"))) return false;
  const [nowS, issuedS, endsS] = [Math.floor(nowMs / 1000), Number(claims["iat"]), Number(claims["exp"])];
  if (!(issuedS <= nowS + 30 && nowS - issuedS <= 600 + 30 && endsS > nowS - 30)) return false;
  if (Object.entries(trust.claims).some(([name, value]) => claims[name] !== value)) return false;
  if (trust.perJob?.claims.some((name) => typeof claims[name] !== "string")) return false;
  // Somebody without write access can start such a job.
  const event = claims["event_name"];
  return trust.claims["event_name"] === event || !["pull_request_target", "issue_comment"].includes(String(event));
}

function claimsOf(text: string): Claims | undefined {
  const inPart = (at: number) => JSON.parse(Buffer.from(text.split(".")[at] ?? "", "base64url").toString()) as Claims;
  return attempt(() => (inPart(0)["alg"] === "ES256" ? inPart(1) : undefined));
}

// Gate 3: which bucket. It is chosen before the query is judged: only a flag that is exactly true counts.

function asksForMetadata(rawQuery: string, parameters: Parameters): boolean {
  const flag = ["metadata_only", "metadataOnly"].find((name) => name in parameters);
  const [value, second] = rawQuery.split("&").filter((pair) => pair.startsWith(`${flag}=`));
  return second === undefined && (value === `${flag}=true` || value === "metadataOnly=1");
}

/** The tags of `If-None-Match` that can be Keyhole's; undefined if there is none. */
function tagsIn(header: string | undefined): readonly string[] | undefined {
  if (header === "*") return ["*"];
  const isList = /^[\t ,]*((W\/)?"[!#-~\x80-\xff]*"[\t ]*(,[\t ,]*|$))+$/.test(header ?? "");
  const tags = isList ? (header?.match(/"[0-9A-Za-z_-]{43}"/g) ?? []) : [];
  return tags.length > 0 ? tags : undefined;
}

// Gate 5: what is asked.

type Question = ReturnType<typeof questionOf>;

/** One spelling for each question, since the tag of the answer is made of it. */
function questionOf(parameters: Parameters, slug: string, rawQuery: string) {
  const given = new Map<string, string[]>();
  for (const pair of rawQuery === "" ? [] : rawQuery.split("&")) {
    const [encodedName = "", ...rest] = pair.replaceAll("+", " ").split("=");
    const name = textOf(encodedName) ?? "";
    if (!Object.hasOwn(parameters, name)) throw invalid(name, "is not known here");
    const value = textOf(rest.join("="));
    if (value === undefined) throw invalid(name, "is not percent-encoded UTF-8");
    const values = given.get(name) ?? [];
    if (name === "path" && values.length === 1000) throw invalid(name, "may be given at most 1000 times");
    if (name !== "path" && values.length > 0) throw invalid(name, "may be given only once");
    given.set(name, [...values, value]);
  }
  for (const [name, allowed] of Object.entries(parameters)) {
    const [value] = given.get(name) ?? [];
    if (value === undefined) {
      if ("project" in parameters && name in ofProject) throw invalid(name, "is required");
    } else if (allowed && !allowed.includes(value)) throw invalid(name, `must be one of ${allowed.join(", ")}`);
    else if (given.get(name)?.includes("")) throw invalid(name, "is empty");
  }
  const one = (name: string) => given.get(name)?.[0];
  const environment = (one("environment") ?? null) as Environment | null;
  const metadataOnly = ["true", "1"].includes(one("metadata_only") ?? one("metadataOnly") ?? "");
  const isEnv = one("format") === "env";
  if ("keys" in parameters && environment === null && !metadataOnly) throw invalid("environment", "is required");
  if (isEnv && metadataOnly) throw invalid("format", "must not be env with metadata_only=true");
  const keys = one("keys")?.split(",");
  if (keys !== undefined && keys.length > 1000) throw invalid("keys", "may hold at most 1000 names");
  if (keys?.includes("")) throw invalid("keys", "has an empty name");
  const question = { project: one("project") ?? slug, environment, metadataOnly, isEnv };
  return { ...question, ...namesAsked(given.get("path"), keys, one("prefix") ?? "") };
}

type Names = { names: readonly string[] | null; prefix: string };

/** Paths, or names of variables; null: all that begin with the prefix. What no name can be, nobody asks for. */
function namesAsked(paths: readonly string[] | undefined, keys: readonly string[] | undefined, prefix: string): Names {
  if (paths !== undefined) return { names: [...new Set(paths)].sort(), prefix: "" };
  if (keys === undefined) return /^\w*$/.test(prefix) ? { names: null, prefix } : { names: [], prefix: "" };
  const isName = (name: string) => /^[A-Za-z_]\w{0,254}$/.test(name) && name !== "_" && name !== "__proto__";
  return { names: [...new Set(keys)].filter((name) => isName(name) && name.startsWith(prefix)).sort(), prefix: "" };
}

function textOf(encoded: string): string | undefined {
  return attempt(() => decodeURIComponent(encoded));
}

function invalid(name: string, problem: string): Refusal {
  const shown = /^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/.test(name) ? `'${name}'` : "with an unusual name";
  return new Refusal("invalid_request", {}, `The query parameter ${shown} ${problem}.`);
}

// Gate 7: what a key reaches, and what is shown of a project.

function isReached(key: Key, { organizationId, id, slug }: Project): boolean {
  return organizationId === key.organizationId && (key.projects === null || key.projects[slug] === id);
}

function summaryOf(project: Project, reach: readonly Environment[]) {
  const [variableCount, accountCount] = [countOf(project, "variables", reach), countOf(project, "accounts", reach)];
  return { id: project.id, name: project.name, slug: project.slug, variableCount, accountCount };
}

function detailsOf(project: Project, reach: readonly Environment[]) {
  const { createdAt, changedAt } = project;
  const updatedAt = Math.max(createdAt, ...reach.map((one) => changedAt[one]));
  const fileCount = countOf(project, "files", reach);
  return { ...summaryOf(project, reach), environments: reach, fileCount, createdAt, updatedAt };
}

function countOf({ holds }: Project, kind: Kind, reach: readonly Environment[]): number {
  return new Set(reach.flatMap((environment) => holds.get(`${kind} ${environment}`) ?? [])).size;
}

// Gates 8 and 9: what is found, and what it holds.

/** Variables of one environment, or the names of all that the key reaches, each with its latest change. */
function findVariables({ store, question, project, action, reach }: Read): Found {
  const { environment, names, prefix, isEnv } = question;
  const isAsked = ({ name }: Item) => (names === null ? name.startsWith(prefix) : names.includes(name));
  const sets = (environment === null ? reach : [environment]).map((one) => openSet(store, project, "variables", one));
  const items = sets.map((set) => set.items.filter(isAsked));
  const latest = new Map<string, number>();
  for (const { name, updatedAt } of items.flat()) latest.set(name, Math.max(latest.get(name) ?? 0, updatedAt));
  if (latest.size > 1000) throw new Refusal("too_many_items");
  const listed = [...latest].map(([key, updatedAt]) => ({ key, updatedAt })).sort((a, b) => (a.key < b.key ? -1 : 1));
  return {
    metadata: { environment, variables: listed },
    fingerprint: sets.map((set, index) => [set.environment, items[index]]),
    open: () => {
      const values = sets[0]?.openValues() as Record<string, string>;
      const variables = listed.map(({ key, updatedAt }) => ({ key, value: values[key] as string, updatedAt }));
      const entries = [listed.map(({ key }) => key)];
      if (isEnv) return { ...dotenvOf(variables), entries };
      const secrets = Object.fromEntries(variables.map(({ key, value }) => [key, value]));
      const legacy = { project: { slug: project.slug }, environment, secrets };
      return { body: JSON.stringify(action === "secrets.read" ? legacy : { environment, variables }), entries };
    },
  };
}

function dotenvOf(variables: readonly { key: string; value: string }[]) {
  try {
    const { text: body, nonportable } = renderDotenv(variables.map(({ key: name, value }) => ({ name, value })));
    const odd = nonportable.length > 0 && { "keyhole-env-nonportable": nonportable.join(", ") };
    return { body, headers: { "content-type": "text/plain; charset=utf-8", ...odd } };
  } catch (fault) {
    const { names } = (fault as { detail: { names: string[] } }).detail;
    const sentence = `${refusals.env_unrepresentable[1]} They are: ${names.join(", ")}.`;
    throw new Refusal("env_unrepresentable", {}, sentence);
  }
}

/** Accounts, each as it is in the environment asked for, or in the one in which it changed last. */
function findAccounts({ store, question: { environment }, project, reach }: Read): Found {
  const sets = reach.map((one) => openSet(store, project, "accounts", one));
  const all = sets.flatMap((set) => set.items.map((item) => ({ ...item, set, one: set.environment })));
  const latest = new Map<string, (typeof all)[number]>();
  for (const item of all.filter(({ one }) => environment === null || one === environment)) {
    if (item.updatedAt > (latest.get(item.name)?.updatedAt ?? -1)) latest.set(item.name, item);
  }
  if (latest.size > 1000) throw new Refusal("too_many_items");
  const found = [...latest.values()].sort(byName);
  const holders = (name: string) => all.filter((item) => item.name === name).map(({ one }) => one);
  const shown = found.map(({ name, updatedAt }) => ({ name, environments: holders(name), updatedAt }));
  return {
    metadata: { environment, accounts: shown },
    fingerprint: [shown, found.map(({ version, one }) => [version, one])],
    open: () => {
      const accounts = found.map(({ name, set }, index) => ({ ...shown[index], values: set.openValues()[name] }));
      return { body: JSON.stringify({ environment, accounts }), entries: [found.map(({ name }) => name)] };
    },
  };
}

/** Files of one environment, with all environments that hold the same one. */
function findFiles({ store, question: { environment, names, metadataOnly }, project, reach }: Read): Found {
  const sets = reach.map((one) => openSet(store, project, "files", one));
  if (countOf(project, "files", environments) > 1000) throw new Refusal("too_many_items");
  const own = sets.find((set) => set.environment === environment)?.items ?? [];
  const found = own.filter(({ name: path }) => names === null || names.includes(path)).sort(byName);
  const shown = found.map(({ name: path, updatedAt, file }) => {
    const { id, name, mode, size, sha256, contentType } = file as File;
    const holders = sets.filter(({ items }) => items.some((item) => item.file?.id === id));
    const among = holders.map((set) => set.environment);
    return { name, path, mode, size, sha256, contentType, environments: among, updatedAt };
  });
  const isThere = ({ file }: Item) => project.contents.has(file?.id ?? "");
  if (metadataOnly && !found.every(isThere)) throw new Refusal("decryption_failed");
  const bodyOf = (files: readonly object[]) => ({ project: { slug: project.slug }, environment, files });
  return {
    metadata: bodyOf(shown),
    fingerprint: shown,
    open: () => {
      if (shown.reduce((sum, { size }) => sum + size, 0) > 8 * 1024 * 1024) throw new Refusal("content_too_large");
      const files = found.map(({ file }, index) => {
        const { id, sha256 } = file as File;
        const content = open(store.rootKey, [project.id, id, sha256], project.contents.get(id));
        return { ...shown[index], content: content.toString("base64") };
      });
      return { body: JSON.stringify(bodyOf(files)), entries: found.map(({ name }) => [name]) };
    },
  };
}

function tagOf(parts: readonly unknown[]): string {
  return `"${createHash("sha256").update(JSON.stringify(parts)).digest("base64url")}"`;
}

const byName = (a: { name: string }, b: { name: string }) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name));
const bySlug = (a: { slug: string }, b: { slug: string }) => (a.slug < b.slug ? -1 : 1);
