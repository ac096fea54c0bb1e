import { createCipheriv, createDecipheriv, createHash, createPublicKey, randomBytes, verify } from "node:crypto";
import { BlockList, isIP } from "node:net";
import { renderDotenv } from "../../../src/core/formats/dotenv.ts";
import { type Environment, environments } from "../../../src/core/names.ts";
import { isWellFormedKey } from "../../../src/serve/access/api-key.ts";

/*
 * The small Keyhole: how a read works, from its header to its body and its entry in the audit, told once more in plain
 * code. It has no cache, no group, no worker, no stream and no SQL: its database is a few maps. It is slow, and it does
 * everything that the API does. Random histories hold the server to it (`agrees.test.ts`).
 *
 * Read `Server.#judge`: its lines are the gates in their order. The small Keyhole takes from `src` the names of the
 * environments, the spelling of a key and the layout of dotenv text, which have tests of their own.
 */

// What is stored.

export type Kind = "variables" | "accounts" | "files";
export type Organization = { readonly id: string; readonly slug: string; readonly name: string; plan: string };
/** A variable, an account or a file in a listing. `version` is that of the set that wrote it. */
export type Item = {
  readonly name: string;
  readonly updatedAt: number;
  readonly version: number;
  readonly file?: File;
};
export type File = {
  readonly id: string;
  readonly name: string;
  readonly mode: string;
  readonly size: number;
  readonly sha256: string;
  readonly contentType: string;
};
/** The items of a kind in an environment. Both are sealed to their place: moved or edited, they do not open. */
export type StoredSet = { readonly version: number; readonly listing: Buffer; readonly values: Buffer };
export type Project = {
  readonly id: string;
  readonly organizationId: string;
  slug: string;
  name: string;
  readonly createdAt: number;
  readonly changedAt: Record<Environment, number>;
  readonly sets: Map<string, StoredSet>;
  /** What each set holds, for the counts: names of variables and accounts, ids of files. */
  readonly holds: Map<string, readonly string[]>;
  /** The sealed contents of files by id. */
  readonly contents: Map<string, Buffer>;
};
/** A key, or a trust that takes a token in place of a key. */
export type Key = {
  readonly id: string;
  readonly organizationId: string;
  surfaces: readonly string[];
  resources: readonly string[];
  environments: readonly Environment[];
  /** Slug to id; null: every project. */
  projects: Readonly<Record<string, string>> | null;
  expiresAt: number | null;
  /** How many times as large its buckets are. */
  readonly rate: number;
  /** The ranges of the addresses from which it may be used; null: from everywhere. */
  readonly from: readonly string[] | null;
  isRevoked: boolean;
  /** Whether its row is as Keyhole wrote it. */
  isSealed: boolean;
  /** The text of a key; undefined for a trust. */
  readonly text?: string;
  readonly trust?: Trust;
};
export type Trust = {
  readonly issuer: string;
  readonly audience: string;
  readonly claims: Readonly<Record<string, string>>;
  /** The issuer's public key. */
  readonly jwk: Readonly<Record<string, unknown>>;
  /** How many answers with values a job gets, and the claims that name it. */
  readonly perJob?: { readonly reads: number; readonly claims: readonly string[] };
};
export type Entry = {
  readonly actor: "key" | "trust";
  readonly id: string;
  readonly organization: string;
  readonly project: string;
  readonly environment: Environment | null;
  readonly action: string;
  readonly names: readonly string[];
  readonly requestId: string;
  readonly userAgent: string;
  readonly address: string;
  readonly byName: boolean;
  readonly token: { readonly jti: string; readonly sub: string; readonly run: string } | null;
};

/** The database. Servers share it. */
export class Store {
  readonly organizations: Map<string, Organization> = new Map();
  readonly projects: Map<string, Project> = new Map();
  readonly keys: Map<string, Key> = new Map();
  /** How many answers with values each job had. */
  readonly jobs: Map<string, number> = new Map();
  readonly record: Entry[] = [];
  readonly rootKey: Buffer = randomBytes(32);
}

/** AES-256-GCM: nonce, ciphertext, tag. It opens in its own place alone. */
export function seal(key: Buffer, place: readonly unknown[], plain: string | Uint8Array): Buffer {
  const nonce = randomBytes(12);
  const cipher = createCipheriv("aes-256-gcm", key, nonce).setAAD(Buffer.from(JSON.stringify(place)));
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

export function open(key: Buffer, place: readonly unknown[], sealed: Buffer | undefined): Buffer {
  try {
    if (sealed === undefined) throw new Error("it is missing");
    const cipher = createDecipheriv("aes-256-gcm", key, sealed.subarray(0, 12));
    cipher.setAAD(Buffer.from(JSON.stringify(place))).setAuthTag(sealed.subarray(-16));
    return Buffer.concat([cipher.update(sealed.subarray(12, -16)), cipher.final()]);
  } catch {
    throw new Refusal("decryption_failed");
  }
}

export function placeOf({ organizationId, id, slug }: Project, kind: Kind, environment: Environment, version: number) {
  return [organizationId, id, slug, kind, environment, version];
}

// What is answered.

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

class Refusal extends Error {
  readonly code: keyof typeof refusals;
  readonly sentence: string;
  readonly headers: Record<string, string>;

  constructor(code: keyof typeof refusals, headers: Record<string, string> = {}, sentence: string = refusals[code][1]) {
    super(code);
    this.code = code;
    this.sentence = sentence;
    this.headers = headers;
  }
}

export type Asked = {
  readonly method: string;
  /** Below the API's root, with its query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
};
export type Answer = {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
  readonly code: string;
};
export type Clock = { nowMs: number; nowUs: number };

export type Bucket = "metadata" | "value" | "content" | "unrecognized";
/** CONTRACT §6: how many tokens a bucket holds, how long one takes to come back, and what its header says. */
const buckets: Readonly<Record<Bucket, { name: string; capacity: number; intervalUs: number; windowS: number }>> = {
  metadata: { name: "metadata", capacity: 120, intervalUs: 500_000, windowS: 60 },
  value: { name: "value", capacity: 30, intervalUs: 2_000_000, windowS: 60 },
  content: { name: "file-content", capacity: 1000, intervalUs: 1_000_000, windowS: 1000 },
  unrecognized: { name: "unrecognized", capacity: 10, intervalUs: 6_000_000, windowS: 60 },
};

/** What a query asks for: one spelling for each question, since the tag of the answer is made of it. */
type Question = {
  readonly project: string;
  readonly environment: Environment | null;
  readonly metadataOnly: boolean;
  readonly isEnv: boolean;
  readonly isLegacy: boolean;
  readonly names: readonly string[] | null;
  readonly prefix: string;
};
/** What the gates after the key found out. */
type Read = {
  readonly key: Key;
  readonly question: Question;
  readonly project: Project;
  readonly reach: readonly Environment[];
};
type Found = {
  /** The body without values. */
  readonly metadata: unknown;
  /** Differs if an answer with values would. */
  readonly fingerprint: unknown;
  /** Gate 9: opens the values. `entries` are the names that each entry of the audit records. */
  readonly open: () => { body: string; entries: readonly (readonly string[])[]; headers?: Record<string, string> };
};
type Endpoint = {
  readonly path: RegExp;
  readonly surface: string | null;
  readonly resource: string | null;
  readonly bucket: Bucket;
  /** The parameter that asks for metadata. */
  readonly flag?: string;
  /** Each parameter in the order in which they are judged, with its values if they are a list. */
  readonly parameters: Readonly<Record<string, "text" | "needed text" | "needed environment" | readonly string[]>>;
  readonly action?: string;
  readonly find?: (store: Store, read: Read) => Found;
};

const anyone = { surface: "rest_api", bucket: "value" } as const;
const booleans = ["true", "false"];
const endpoints: readonly Endpoint[] = [
  { path: /^\/organization$/, surface: null, resource: null, bucket: "metadata", parameters: {} },
  { path: /^\/projects$/, ...anyone, resource: "projects", bucket: "metadata", parameters: {} },
  { path: /^\/projects\/([^/]+)$/, ...anyone, resource: "projects", bucket: "metadata", parameters: {} },
  {
    path: /^\/projects\/([^/]+)\/variables$/,
    ...anyone,
    resource: "variables",
    flag: "metadata_only",
    parameters: {
      environment: environments,
      keys: "text",
      prefix: "text",
      metadata_only: booleans,
      format: ["json", "env"],
    },
    action: "variables.read",
    find: findVariables,
  },
  {
    path: /^\/projects\/([^/]+)\/accounts$/,
    ...anyone,
    resource: "accounts",
    flag: "metadata_only",
    parameters: { environment: environments, metadata_only: booleans },
    action: "accounts.read",
    find: findAccounts,
  },
  {
    path: /^\/files$/,
    ...anyone,
    resource: "files",
    bucket: "content",
    flag: "metadataOnly",
    parameters: {
      project: "needed text",
      environment: "needed environment",
      metadataOnly: ["true", "1", "false", "0"],
      path: "text",
    },
    action: "file.read",
    find: findFiles,
  },
  {
    path: /^\/secrets$/,
    surface: "ci_action",
    resource: null,
    bucket: "value",
    parameters: { project: "needed text", environment: "needed environment", format: ["json", "env"] },
    action: "secrets.read",
    find: findVariables,
  },
];

/** A process that serves the store. What it remembers, it forgets when it starts again. */
export class Server {
  readonly #store: Store;
  readonly #clock: Clock;
  /** The moment at which each bucket is full again, by kind and by key or presented text. */
  #fullAtUs = new Map<string, number>();
  /** Texts that were recognized last time, with the id of their key. */
  #known = new Map<string, string>();
  /** How many entries its lane has. */
  #seq = 0;
  /** What was answered when the wait began whose end is judged. */
  #waited: Answer | undefined;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** What {@link answer} would say, without a trace of it. */
  wouldAnswer(asked: Asked): Answer {
    const { record, jobs } = this.#store;
    const before = [new Map(this.#fullAtUs), new Map(this.#known), this.#seq, record.length, new Map(jobs)] as const;
    const answer = this.answer(asked);
    [this.#fullAtUs, this.#known, this.#seq, record.length] = before;
    for (const job of jobs.keys()) jobs.delete(job);
    for (const [job, reads] of before[4]) jobs.set(job, reads);
    return answer;
  }

  /** Takes tokens until there are none. */
  drain(keyId: string, bucket: Bucket): void {
    while (this.#spareUs(bucket, keyId) >= 0) this.#charge(keyId, bucket, {});
  }

  /**
   * A request that prefers to wait, and whose answer is a 304, is answered with what this gives once something changed,
   * or when its time is over.
   * @param waited - that 304
   */
  answerAfter(waited: Answer, asked: Asked): Answer {
    this.#waited = waited;
    const answer = this.answer(asked);
    this.#waited = undefined;
    return answer;
  }

  answer(asked: Asked): Answer {
    const id = asked.headers["x-request-id"] ?? "";
    const headers: Record<string, string> = {
      "x-request-id": /^[A-Za-z0-9._-]{1,128}$/.test(id) ? id : "MADE",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
    };
    try {
      const body = this.#judge(asked, headers);
      if (body === undefined) return { status: 304, headers, body: "", code: "304" };
      return { status: 200, headers: { "content-type": jsonType, ...headers }, body, code: "200" };
    } catch (refusal) {
      if (!(refusal instanceof Refusal)) throw refusal;
      const { code, sentence: error } = refusal;
      for (const name of ["etag", "preference-applied", ...(code === "unauthorized" ? rateLimitFields : [])])
        delete headers[name];
      Object.assign(headers, { "content-type": jsonType }, refusal.headers);
      return { status: refusals[code][0], headers, body: JSON.stringify({ error, code }), code };
    }
  }

  /** The gates in their order. @returns the body; undefined if the client has it already */
  #judge({ method, path: address, headers: sent }: Asked, headers: Record<string, string>): string | undefined {
    const store = this.#store;
    // 1. Route.
    const [path = "", ...rest] = address.split("?");
    const rawQuery = rest.join("?");
    const endpoint = endpoints.find((one) => one.path.test(path));
    if (endpoint === undefined) throw new Refusal("not_found");
    if (method !== "GET") throw new Refusal("method_not_allowed", { allow: "GET" });
    // 2. Key, with the limiter of unrecognized keys. 3. The key's bucket.
    const tags = tagsIn(sent["if-none-match"]);
    const isMetadata = tags !== undefined || asksForMetadata(rawQuery, endpoint.flag);
    const { key, claims } = this.#recognize(sent, isMetadata ? "metadata" : endpoint.bucket, headers);
    // 4. Plan, surface, resource.
    const organization = store.organizations.get(key.organizationId) as Organization;
    if (organization.plan !== "pro") throw new Refusal("plan_required");
    const { surface, resource } = endpoint;
    if (surface !== null && !key.surfaces.includes(surface)) throw new Refusal("surface_required");
    if (resource !== null && !key.resources.includes(resource)) throw new Refusal("resource_required");
    // 5. Query.
    const question = questionOf(endpoint, slugIn(endpoint.path.exec(path)?.[1]), rawQuery);
    // 6. The environment is in the key's scope.
    const { environment, metadataOnly } = question;
    if (environment !== null && !key.environments.includes(environment)) throw new Refusal("environment_not_in_scope");
    if (path === "/organization") {
      const { id, name, slug, plan } = organization;
      return JSON.stringify({ id, name, slug, plan });
    }
    // 7. The project exists and is in the key's scope.
    const inScope = [...store.projects.values()].filter((project) => isReached(key, project)).sort(bySlug);
    const reach = environments.filter((one) => key.environments.includes(one));
    if (path === "/projects") {
      if (inScope.length > 1000) throw new Refusal("too_many_items");
      return JSON.stringify({ projects: inScope.map((project) => summaryOf(project, reach)) });
    }
    const project = inScope.find(({ slug }) => slug === question.project);
    if (project === undefined) throw new Refusal("project_not_found");
    const { find, action = "" } = endpoint;
    if (find === undefined) {
      const updatedAt = Math.max(project.createdAt, ...reach.map((one) => project.changedAt[one]));
      const fileCount = countOf(project, "files", reach);
      const { createdAt } = project;
      return JSON.stringify({ ...summaryOf(project, reach), environments: reach, fileCount, createdAt, updatedAt });
    }
    // 8. Bounds.
    const found = find(store, { key, question, project, reach });
    headers["etag"] = tagOf([key.id, project.id, action, question, found.fingerprint]);
    const wait = /^wait=([1-9]|[1-5]\d|60)$/.exec(sent["prefer"] ?? "")?.[0];
    if (tags !== undefined && wait !== undefined) headers["preference-applied"] = wait;
    const isKnown = tags?.some((tag) => tag === "*" || tag === headers["etag"]);
    if (isKnown) return undefined;
    if (metadataOnly) return JSON.stringify(found.metadata);
    if (tags !== undefined) this.#charge(key.id, endpoint.bucket, headers);
    // 9. Decryption.
    const { body, entries, headers: own } = found.open();
    // 10. The audit.
    const word = (name: string) => (typeof claims?.[name] === "string" ? claims[name] : "");
    const entry: Omit<Entry, "names"> = {
      actor: key.trust ? "trust" : "key",
      id: key.id,
      organization: organization.slug,
      project: project.slug,
      environment,
      action,
      requestId: headers["x-request-id"] as string,
      userAgent: sent["user-agent"] ?? "",
      address: addressOf(callerIn(sent)),
      byName: question.names !== null || question.prefix !== "",
      token: claims ? { jti: word("jti"), sub: word("sub"), run: word("run_id") } : null,
    };
    const perJob = key.trust?.perJob;
    if (perJob) {
      const job = perJob.claims.map((name) => `${name}=${word(name)}`).join(" ");
      const had = store.jobs.get(`${key.id} ${job}`) ?? 0;
      const isCounted = entries.some((names) => names.length > 0);
      if (isCounted && had >= perJob.reads) {
        const text = (sent["authorization"] ?? "").replace(/^bearer +/i, "");
        this.#refuse(text, headers, { ...entry, action: "trust.overused", names: [job], byName: false });
      }
      if (isCounted) store.jobs.set(`${key.id} ${job}`, had + 1);
      headers["keyhole-reads-per-job"] = String(perJob.reads);
    }
    for (const names of entries) store.record.push({ ...entry, names });
    const first = this.#seq + 1;
    this.#seq += entries.length;
    if (entries.length > 0) headers["keyhole-audit"] = `LANE:${first}${this.#seq > first ? `-${this.#seq}` : ""}`;
    // 11. 200.
    Object.assign(headers, own);
    return body;
  }

  /** Gates 2 and 3. A text that was recognized before pays first, any other once it is recognized. */
  #recognize(sent: Asked["headers"], bucket: Bucket, headers: Record<string, string>) {
    const [header, caller] = [sent["authorization"], callerIn(sent)];
    if (header === undefined) throw new Refusal("unauthorized", challenge);
    const text = /^bearer +([\w.-]+)$/i.exec(header)?.[1];
    const isToken = text !== undefined && text.length <= 8192 && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(text);
    if (text === undefined || !(isToken || isWellFormedKey(text))) return this.#refuseUnknown(text ?? header, headers);
    const owner = this.#known.get(text);
    const known = isFrom(caller, this.#store.keys.get(owner ?? "")?.from) ? owner : undefined;
    if (known !== undefined) this.#charge(known, bucket, headers);
    else if (this.#spareUs("unrecognized", text) < 0) this.#charge(text, "unrecognized", headers);
    const claims = isToken ? claimsOf(text) : undefined;
    const { nowMs } = this.#clock;
    const isLive = (key: Key) =>
      key.isSealed &&
      !key.isRevoked &&
      (key.expiresAt === null || key.expiresAt > nowMs) &&
      fits(key, text, claims, nowMs);
    const [key, another] = [...this.#store.keys.values()].filter(isLive);
    if (key === undefined || another !== undefined) return this.#refuse(text, headers);
    this.#known.set(text, key.id);
    if (!isFrom(caller, key.from)) {
      const organization = (this.#store.organizations.get(key.organizationId) as Organization).slug;
      const actor = { actor: key.trust ? "trust" : "key", id: key.id, organization, project: "" } as const;
      const what = { environment: null, action: "key.elsewhere", names: [key.id], byName: false, token: null };
      const who = { requestId: headers["x-request-id"] as string, userAgent: sent["user-agent"] ?? "" };
      return this.#refuse(text, headers, { ...actor, ...what, ...who, address: addressOf(caller) });
    }
    if (known === undefined) this.#charge(key.id, bucket, headers);
    return { key, claims };
  }

  /** The one 401, whatever the reason, until the text has used up its attempts. @param alarm - what goes on record */
  #refuse(text: string, headers: Record<string, string>, alarm?: Entry): never {
    if (alarm?.action !== "key.elsewhere") this.#known.delete(text);
    this.#refuseUnknown(text, headers, alarm);
  }

  #refuseUnknown(text: string, headers: Record<string, string>, alarm?: Entry): never {
    for (const name of rateLimitFields) delete headers[name];
    this.#charge(text, "unrecognized", {});
    if (alarm) this.#store.record.push(alarm);
    throw new Refusal("unauthorized", challenge);
  }

  /** Takes one token. A read that waited has paid its first one. */
  #charge(whose: string, bucket: Bucket, headers: Record<string, string>): void {
    if (this.#waited !== undefined && bucket === "metadata") {
      for (const name of rateLimitFields) headers[name] = this.#waited.headers[name] as string;
      return;
    }
    const { name, capacity, intervalUs, windowS } = this.#bucket(bucket, whose);
    const { nowUs } = this.#clock;
    const spareUs = this.#spareUs(bucket, whose);
    const fullAtUs = nowUs + capacity * intervalUs - spareUs;
    const retryAfterS = Math.max(1, Math.ceil(-spareUs / 1_000_000));
    const [r, t] =
      spareUs < 0 ? [0, retryAfterS] : [Math.floor(spareUs / intervalUs), Math.ceil((fullAtUs - nowUs) / 1_000_000)];
    if (bucket !== "unrecognized") {
      headers["ratelimit-policy"] = `"${name}";q=${capacity};w=${windowS}`;
      headers["ratelimit"] = `"${name}";r=${r};t=${t}`;
    }
    if (spareUs < 0) throw new Refusal("rate_limited", { "retry-after": String(retryAfterS) });
    this.#fullAtUs.set(`${bucket} ${whose}`, fullAtUs);
  }

  #bucket(bucket: Bucket, whose: string) {
    const { name, capacity, intervalUs, windowS } = buckets[bucket];
    const rate = this.#store.keys.get(whose)?.rate ?? 1;
    return { name, capacity: capacity * rate, intervalUs: Math.floor(intervalUs / rate), windowS };
  }

  /** What one more token would leave, in microseconds; below 0 there is none. */
  #spareUs(bucket: Bucket, whose: string): number {
    const { capacity, intervalUs } = this.#bucket(bucket, whose);
    const { nowUs } = this.#clock;
    const fullAtUs = Math.max(this.#fullAtUs.get(`${bucket} ${whose}`) ?? nowUs, nowUs);
    return nowUs + capacity * intervalUs - (fullAtUs + intervalUs);
  }
}

const jsonType = "application/json; charset=utf-8";
const challenge = { "www-authenticate": 'Bearer realm="keyhole"' };
const rateLimitFields = ["ratelimit", "ratelimit-policy"];

// Gate 2: who asks.

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

function isFrom(caller: string, ranges: Key["from"] | undefined): boolean {
  if (ranges == null || caller === "unix") return ranges?.includes(caller) ?? true;
  const family = (address: string) => (isIP(address) === 4 ? "ipv4" : "ipv6");
  const list = new BlockList(); // of one family: by itself it would find IPv4 in ::/0
  for (const range of ranges) {
    const [net = "", length] = range.split("/");
    if (range !== "unix" && family(net) === family(caller)) list.addSubnet(net, Number(length), family(net));
  }
  return list.check(caller, family(caller));
}

function addressOf(caller: string): string {
  return caller === "unix" ? "" : `${caller} via unix`;
}

// Whose text it is.

function fits({ text: own, trust }: Key, text: string, claims: Claims | undefined, nowMs: number): boolean {
  if (trust === undefined) return own === text;
  if (claims === undefined || claims["iss"] !== trust.issuer || claims["aud"] !== trust.audience) return false;
  const [head = "", body = "", signature = ""] = text.split(".");
  const key = createPublicKey({ format: "jwk", key: trust.jwk as never });
  const signed = Buffer.from(`${head}.${body}`);
  if (!verify("sha256", signed, { key, dsaEncoding: "ieee-p1363" }, Buffer.from(signature, "base64url"))) return false;
  const [nowS, issuedS, endsS] = [Math.floor(nowMs / 1000), Number(claims["iat"]), Number(claims["exp"])];
  if (!(issuedS <= nowS + 30 && nowS - issuedS <= 600 + 30 && endsS > nowS - 30)) return false;
  if (Object.entries(trust.claims).some(([name, value]) => claims[name] !== value)) return false;
  if (trust.perJob?.claims.some((name) => typeof claims[name] !== "string")) return false;
  const event = claims["event_name"];
  return trust.claims["event_name"] === event || !["pull_request_target", "issue_comment"].includes(String(event));
}

type Claims = Readonly<Record<string, unknown>>;

function claimsOf(text: string): Claims | undefined {
  try {
    const parts = text.split(".").slice(0, 2);
    const [head, body] = parts.map((part) => JSON.parse(Buffer.from(part, "base64url").toString()) as Claims);
    return head?.["alg"] === "ES256" ? body : undefined;
  } catch {
    return undefined;
  }
}

// Gate 3: which bucket. It is chosen before the query is judged: only a flag that is exactly true counts.

function asksForMetadata(rawQuery: string, flag: string | undefined): boolean {
  const pairs = rawQuery.split("&").filter((pair) => pair.startsWith(`${flag}=`));
  return pairs.length === 1 && (pairs[0] === `${flag}=true` || pairs[0] === "metadataOnly=1");
}

/** The tags of `If-None-Match` that can be Keyhole's; undefined if there is none. */
function tagsIn(header: string | undefined): readonly string[] | undefined {
  if (header === "*") return ["*"];
  const isList = /^[\t ,]*((W\/)?"[!#-~\x80-\xff]*"[\t ]*(,[\t ,]*|$))+$/.test(header ?? "");
  const tags = isList ? (header?.match(/"[0-9A-Za-z_-]{43}"/g) ?? []) : [];
  return tags.length > 0 ? tags : undefined;
}

// Gate 5: what is asked.

function slugIn(encoded = ""): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return "";
  }
}

function questionOf({ parameters, surface }: Endpoint, slug: string, rawQuery: string): Question {
  const found = new Map<string, string[]>();
  for (const pair of rawQuery === "" ? [] : rawQuery.split("&")) {
    const [encodedName = "", ...rest] = pair.split("=");
    const name = textOf(encodedName) ?? "";
    if (!Object.hasOwn(parameters, name)) throw invalid(name, "is not known here");
    const value = textOf(rest.join("="));
    if (value === undefined) throw invalid(name, "is not percent-encoded UTF-8");
    const values = found.get(name) ?? [];
    if (name === "path" && values.length === 1000) throw invalid(name, "may be given at most 1000 times");
    if (name !== "path" && values.length > 0) throw invalid(name, "may be given only once");
    found.set(name, [...values, value]);
  }
  for (const [name, rule] of Object.entries(parameters)) {
    const [value] = found.get(name) ?? [];
    const allowed = rule === "needed environment" ? environments : typeof rule === "string" ? undefined : rule;
    if (value === undefined && String(rule).startsWith("needed")) throw invalid(name, "is required");
    if (value !== undefined && allowed?.some((one) => one === value) === false) {
      throw invalid(name, `must be one of ${allowed.join(", ")}`);
    }
    if (found.get(name)?.includes("")) throw invalid(name, "is empty");
  }
  const one = (name: string) => found.get(name)?.[0];
  const environment = (one("environment") ?? null) as Environment | null;
  const metadataOnly = ["true", "1"].includes(one("metadata_only") ?? one("metadataOnly") ?? "");
  const isEnv = one("format") === "env";
  const paths = found.get("path");
  const [keys, prefix = ""] = [one("keys")?.split(","), one("prefix")];
  if ("keys" in parameters && environment === null && !metadataOnly) throw invalid("environment", "is required");
  if (isEnv && metadataOnly) throw invalid("format", "must not be env with metadata_only=true");
  if (keys !== undefined && keys.length > 1000) throw invalid("keys", "may hold at most 1000 names");
  if (keys?.includes("")) throw invalid("keys", "has an empty name");
  const isLegacy = surface === "ci_action";
  const question = { project: one("project") ?? slug, environment, metadataOnly, isEnv, isLegacy };
  if (paths !== undefined) return { ...question, names: [...new Set(paths)].sort(), prefix: "" };
  // What no name of a variable can be, nobody asks for.
  if (keys === undefined) {
    return /^\w*$/.test(prefix) ? { ...question, names: null, prefix } : { ...question, names: [], prefix: "" };
  }
  const isName = (name: string) => /^[A-Za-z_]\w{0,254}$/.test(name) && name !== "_" && name !== "__proto__";
  const names = [...new Set(keys)].filter((name) => isName(name) && name.startsWith(prefix)).sort();
  return { ...question, names, prefix: "" };
}

function textOf(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded.replaceAll("+", " "));
  } catch {
    return undefined;
  }
}

function invalid(name: string, problem: string): Refusal {
  const shown = /^[A-Za-z_][A-Za-z0-9_.-]{0,31}$/.test(name) ? `'${name}'` : "with an unusual name";
  return new Refusal("invalid_request", {}, `The query parameter ${shown} ${problem}.`);
}

// Gate 7: what a key reaches, and what lists of projects say of it.

function isReached(key: Key, { organizationId, id, slug }: Project): boolean {
  return organizationId === key.organizationId && (key.projects === null || key.projects[slug] === id);
}

function summaryOf(project: Project, reach: readonly Environment[]) {
  const [variableCount, accountCount] = [countOf(project, "variables", reach), countOf(project, "accounts", reach)];
  return { id: project.id, name: project.name, slug: project.slug, variableCount, accountCount };
}

function countOf({ holds }: Project, kind: Kind, reach: readonly Environment[]): number {
  return new Set(reach.flatMap((environment) => holds.get(`${kind} ${environment}`) ?? [])).size;
}

// Gates 8 and 9: what is found, and what it holds.

function listingOf({ rootKey }: Store, project: Project, kind: Kind, environment: Environment): Item[] {
  const set = project.sets.get(`${kind} ${environment}`);
  return JSON.parse(open(rootKey, placeOf(project, kind, environment, set?.version ?? 0), set?.listing).toString());
}

function valuesOf<T>({ rootKey }: Store, project: Project, kind: Kind, environment: Environment): Record<string, T> {
  const { version, listing, values } = project.sets.get(`${kind} ${environment}`) as StoredSet;
  const place = [...placeOf(project, kind, environment, version), listing.toString("hex")];
  return JSON.parse(open(rootKey, place, values).toString()) as Record<string, T>;
}

/** Variables of one environment, or the names of all that the key reaches, each with its latest change. */
function findVariables(store: Store, { question, project, reach }: Read): Found {
  const { environment, names, prefix, isEnv } = question;
  const isAsked = (name: string) => (names === null ? name.startsWith(prefix) : names.includes(name));
  const sets = (environment === null ? reach : [environment]).map((one) => ({
    one,
    items: listingOf(store, project, "variables", one).filter(({ name }) => isAsked(name)),
  }));
  const latest = new Map<string, number>();
  for (const { name, updatedAt } of sets.flatMap(({ items }) => items)) {
    latest.set(name, Math.max(latest.get(name) ?? 0, updatedAt));
  }
  if (latest.size > 1000) throw new Refusal("too_many_items");
  const listed = [...latest].map(([name, updatedAt]) => ({ name, updatedAt })).sort(byName);
  return {
    metadata: { environment, variables: listed.map(({ name: key, updatedAt }) => ({ key, updatedAt })) },
    fingerprint: sets.map(({ one, items }) => [one, items]),
    open: () => {
      const values = valuesOf<string>(store, project, "variables", environment as Environment);
      const found = listed.map(({ name, updatedAt }) => ({ name, value: values[name] as string, updatedAt }));
      const entries = [found.map(({ name }) => name)];
      if (isEnv) return { ...dotenvOf(found), entries };
      const secrets = found.map(({ name, value }) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join();
      const legacy = `{"project":{"slug":"${project.slug}"},"environment":"${environment}","secrets":{${secrets}}}`;
      const variables = found.map(({ name: key, value, updatedAt }) => ({ key, value, updatedAt }));
      return { body: question.isLegacy ? legacy : JSON.stringify({ environment, variables }), entries };
    },
  };
}

function dotenvOf(found: readonly { readonly name: string; readonly value: string }[]) {
  try {
    const { text: body, nonportable } = renderDotenv(found);
    const headers: Record<string, string> = { "content-type": "text/plain; charset=utf-8" };
    if (nonportable.length > 0) headers["keyhole-env-nonportable"] = nonportable.join(", ");
    return { body, headers };
  } catch (fault) {
    const { names } = (fault as { detail: { names: string[] } }).detail;
    const sentence = `${refusals.env_unrepresentable[1]} They are: ${names.join(", ")}.`;
    throw new Refusal("env_unrepresentable", {}, sentence);
  }
}

/** Accounts, each as it is in the environment asked for, or in the one in which it changed last. */
function findAccounts(store: Store, { question: { environment }, project, reach }: Read): Found {
  const all = reach.flatMap((one) => listingOf(store, project, "accounts", one).map((item) => ({ ...item, one })));
  const asked = all.filter(({ one }) => environment === null || one === environment);
  const latest = new Map<string, (typeof all)[number]>();
  for (const item of asked) if (item.updatedAt > (latest.get(item.name)?.updatedAt ?? -1)) latest.set(item.name, item);
  if (latest.size > 1000) throw new Refusal("too_many_items");
  const found = [...latest.values()].sort(byName);
  const holders = (name: string) => all.filter((item) => item.name === name).map(({ one }) => one);
  const shown = found.map(({ name, updatedAt }) => ({ name, environments: holders(name), updatedAt }));
  return {
    metadata: { environment, accounts: shown },
    fingerprint: [shown, found],
    open: () => {
      const accounts = found.map(({ name, one }, index) => {
        const values = valuesOf<object>(store, project, "accounts", one);
        return { ...shown[index], values: values[name] };
      });
      return { body: JSON.stringify({ environment, accounts }), entries: [found.map(({ name }) => name)] };
    },
  };
}

/** Files of one environment, with all environments that hold the same one. */
function findFiles(store: Store, { question, project, reach }: Read): Found {
  const { environment, names } = question;
  const sets = reach.map((one) => ({ one, items: listingOf(store, project, "files", one) }));
  if (countOf(project, "files", environments) > 1000) throw new Refusal("too_many_items");
  const own = sets.find(({ one }) => one === environment)?.items ?? [];
  const found = own.filter(({ name: path }) => names === null || names.includes(path)).sort(byName);
  const holders = (id: string) => sets.filter(({ items }) => items.some(({ file }) => file?.id === id));
  const shown = found.map(({ name: path, updatedAt, file }) => {
    const { id, name, mode, size, sha256, contentType } = file as File;
    return { name, path, mode, size, sha256, contentType, environments: holders(id).map(({ one }) => one), updatedAt };
  });
  const bodyOf = (files: readonly object[]) => ({ project: { slug: project.slug }, environment, files });
  const isThere = ({ file }: Item) => project.contents.has(file?.id ?? "");
  if (question.metadataOnly && !found.every(isThere)) throw new Refusal("decryption_failed");
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
