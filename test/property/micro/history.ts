import { parseRange } from "../../../src/core/addresses.ts";
import { attempt } from "../../../src/core/attempt.ts";
import { type Environment, environments } from "../../../src/core/names.ts";
import type { AuditEntry } from "../../../src/record/entry.ts";
import { decodeEntries, type Segment } from "../../../src/record/segment.ts";
import { mintKey } from "../../../src/serve/access/api-key.ts";
import type { Token } from "../../../src/serve/access/token.ts";
import { TrustDirectory } from "../../../src/serve/access/trust-directory.ts";
import { Waits } from "../../../src/serve/api/waits.ts";
import type { ApiParts } from "../../../src/serve/gates/api-parts.ts";
import type { Limiter } from "../../../src/serve/limit/limiter.ts";
import { type OpenKeyhole, openKeyhole } from "../../../src/serve/process/compose.ts";
import { trustFinder } from "../../../src/store/lookups.ts";
import { answerOf } from "../../support/answer.ts";
import { type Dice, diceOf } from "../../support/attack.ts";
import { eventually } from "../../support/eventually.ts";
import { compact, newSigningKey, type SigningKey, usualClaims } from "../../support/issuer.ts";
import { numbered } from "../../support/rows.ts";
import { type Client, clientOf, type World } from "../../support/world.ts";
import {
  type Answer,
  type Asked,
  type Clock,
  type Entry,
  type Key,
  type Kind,
  type Organization,
  type Project,
  proxies,
  Server,
  Store,
} from "./keyhole.ts";
import { People } from "./people.ts";

/** One server and its small counterpart. */
type Pair = {
  real: OpenKeyhole;
  client: Client;
  small: Server;
  /** The name of its lane, once it has answered with values. */
  lane: string | undefined;
};

type Request = { readonly pair: Pair; readonly asked: Asked; readonly small: Asked };
/** What a request is about, if that is not left to chance. */
type Aim = { readonly project: Project; readonly kind: Kind; readonly one: Environment };
type Tag = { readonly real: string; readonly small: string; readonly path: string };

/** Two servers on one database, beside the small ones. */
export class Stage {
  readonly w: World;
  readonly store: Store = new Store();
  readonly people: People;
  readonly clock: Clock = { nowMs: Date.now(), nowUs: 1_000_000 };
  readonly pairs: Pair[] = [];
  /** How many answers there were of each code. */
  readonly seen: Map<string, number> = new Map();
  count = 0;
  /** How often servers looked for changes, and by how many ms the clock of reads that wait is ahead. */
  looks = 0;
  waitedMs = 0;

  constructor(w: World) {
    this.w = w;
    this.people = new People(w, this.store);
  }

  async start(pair?: Pair): Promise<void> {
    await pair?.real.close();
    const { w, clock, store } = this;
    const opened = await openKeyhole(w.installation, (event) => w.log.push(event));
    // A server may know of a new trust a tenth of a second late.
    let looks = 0;
    const trusts = new TrustDirectory(trustFinder(w.admin.database), w.admin.systemKeys.grant, () => 1000 * looks++);
    const findTrusts = (token: Token) => trusts.find(token);
    const gate = { ...opened.gate, findTrusts, nowUs: () => clock.nowUs, now: () => clock.nowMs };
    const end = async () => {
      this.looks += 1;
      return JSON.stringify(await w.run("select mac from audit_heads where lane = 'commands'"));
    };
    const waits = new Waits(end, () => performance.now() + this.waitedMs, 10);
    const real = { ...opened, gate, waits, proxies: proxies.map(parseRange) as ApiParts["proxies"] };
    const started: Pair = { real, client: clientOf(real), small: new Server(store, clock), lane: undefined };
    if (pair) Object.assign(pair, started);
    else this.pairs.push(started);
  }

  /** Forgets what a history has left, and fills all buckets. */
  forget(): void {
    const { organizations, projects, keys, jobs, record } = this.store;
    for (const map of [organizations, projects, keys, jobs]) map.clear();
    record.length = 0;
    this.clock.nowUs += 3_600_000_000;
    for (const { small } of this.pairs) for (const map of [small.memory.fullAtUs, small.memory.known]) map.clear();
  }

  /** What a small server would answer, without a trace of it. */
  wouldAnswer(small: Server, asked: Asked): Answer {
    const { jobs, record } = this.store;
    const { fullAtUs, known, seq } = small.memory;
    const before = { jobs: new Map(jobs), entries: record.length };
    const memory = { fullAtUs: new Map(fullAtUs), known: new Map(known), seq };
    const answer = small.answer(asked);
    this.store.jobs = before.jobs;
    record.length = before.entries;
    small.memory = memory;
    return answer;
  }

  async close(): Promise<void> {
    for (const { real } of this.pairs) await real.close();
  }
}

const values = ["plain", "with blanks in it", 'quo"ted', "it's", "two\nlines", "", "$HOME", "\u20ac \u{1F511}", "a\\"];
const oddValue = "it's\n$(b)"; // no dotenv text can carry it
const names = ["A", "API_TOKEN", "B2", "_X", "PORT", "a", "DATABASE_URL", "Z"];
const accountNames = ["mail", "aws", "Mail \u{1F4E7}", "\uff21"];
const paths = ["tls/key.pem", "tls/\u00e9.pem", ".npmrc", "a b.txt"];
const ranges = [
  ...[null, null, null, ["unix", "203.0.113.0/24"], ["unix", "2001:db8::/32", "2001:db8:1::/48", "198.51.100.7/32"]],
  ...[["203.0.113.9/32", "10.0.0.0/8"], ["0.0.0.0/0"], ["::/0", "unix"]],
];
const forwarded = [
  ...["203.0.113.9", "198.51.100.7", "2001:db8:1::1", "10.0.0.9", "::ffff:203.0.113.9"],
  ...["203.0.113.9, 10.0.0.3", "198.51.100.7,203.0.113.10", "2001:db8::1, junk, 10.1.1.1", "fe80::1%eth0", ""],
];
const slugs = ["web", "api", "0", "job-runner"];
const newSlugs = [...slugs, "renamed"];
const tooManyKeys = `keys=${numbered("N", 1001)}`;
const tooManyPaths = numbered("path=", 1001).join("&");

/** A random history of one or two organizations, from its beginning to its end. Throws what differs. */
export class History {
  readonly #stage: Stage;
  readonly #people: People;
  readonly #dice: Dice;
  readonly #name: string;
  readonly #begunAt = Date.now();
  readonly #keys: Key[] = [];
  readonly #texts: string[] = [mintKey(), `kh_${"a".repeat(49)}`, "x", "no.such.token"];
  /** Whose the texts are that were good once. */
  readonly #owners = new Map<string, Key>();
  readonly #organizations: Organization[] = [];
  readonly #signer: SigningKey = newSigningKey("ES256");
  readonly #tags: Tag[] = [];
  readonly #realOf = new Map<string, string>();
  readonly #smallOf = new Map<string, string>();
  readonly #log: string[] = [];
  /** Requests that were answered with a tag. */
  #last: Request[] = [];
  #requests = 0;
  /** Whether reads wait. Nobody else asks then, because each wait gives its token back. */
  #isWaiting = false;

  constructor(stage: Stage, seed: number, name: string) {
    this.#stage = stage;
    this.#people = stage.people;
    this.#dice = diceOf(seed);
    this.#name = name;
  }

  async run(): Promise<void> {
    try {
      await this.#begin();
      for (let step = 0; step < 24; step++) await this.#step(step);
      await this.#probeBuckets();
      await this.#compareRecord();
    } catch (error) {
      throw new Error(`${this.#name}: ${(error as Error).message}\nafter ${this.#log.slice(-12).join("\n      ")}`, {
        cause: error,
      });
    } finally {
      // The list of trusts is read whole.
      for (const key of this.#keys) if (key.trust && !key.isRevoked) await this.#people.revoke(key);
      this.#stage.forget();
    }
  }

  async #begin(): Promise<void> {
    const dice = this.#dice;
    for (let n = 0; n < (dice.chance(0.5) ? 1 : 2); n++) {
      const slug = `${this.#name}-${n}`;
      const organization = await this.#people.organization(slug, dice.chance(0.95) ? "pro" : "free");
      this.#organizations.push(organization);
      for (const one of dice.some(slugs, 0.5)) await this.#newProject(organization, one);
    }
    const project = dice.pick(this.#projects);
    if (project && dice.chance(0.04)) await this.#people.crowd(project, dice.pick(environments));
    if (project && dice.chance(0.1)) await this.#people.heavy(project, dice.pick(environments));
    for (let n = 0; n < 3; n++) await this.#newKey();
    if (dice.chance(0.4)) await this.#newTrust();
  }

  get #projects(): Project[] {
    return [...this.#stage.store.projects.values()].filter(({ organizationId }) =>
      this.#organizations.some(({ id }) => id === organizationId),
    );
  }

  async #step(step: number): Promise<void> {
    const dice = this.#dice;
    const { clock } = this.#stage;
    clock.nowMs = Date.now();
    const free = this.#organizations.find(({ plan }) => plan === "free");
    if (free && dice.chance(0.4)) await this.#people.plan(free, "pro");
    if (step === 5) await this.#refused();
    const job = [...this.#owners].find(([, key]) => key.trust?.perJob && this.#isLive(key));
    if (job && dice.chance(0.15)) await this.#job(...job);
    // Machines repeat their questions.
    if (this.#last.length > 0 && dice.chance(0.5)) {
      for (let n = 0; n < 3; n++) await this.#compare([this.#again(dice.pick(this.#last))]);
    }
    clock.nowUs += dice.pick([0, 0, 1, 400_000, 2_000_000, 61_000_000]);
    const what = dice.fraction();
    if (what < 0.3) await this.#change();
    else if (what < 0.33) await this.#restart();
    else if (what < 0.45) await this.#damage();
    else if (what < 0.5) await this.#drain();
    else if (what < 0.6) await this.#atOnce();
    else if (what < 0.612) await this.#wait();
    else if (what < 0.67) await this.#readAcross();
    else for (let n = 0; n < 5; n++) await this.#compare([this.#request()]);
  }

  // What people do.

  async #change(): Promise<void> {
    const dice = this.#dice;
    const project = dice.pick(this.#projects);
    const key = dice.pick(this.#keys);
    const one = dice.pick(environments);
    const what = dice.fraction();
    if (what < 0.06) {
      const organization = dice.pick(this.#organizations);
      await this.#say(`plan of ${organization.slug}`, () =>
        this.#people.plan(organization, organization.plan === "pro" ? "free" : "pro"),
      );
    } else if (what < 0.2) await this.#newKey();
    else if (what < 0.25) await this.#newTrust();
    else if (what < 0.3) {
      if (!key.isRevoked) await this.#say(`revoke ${key.id}`, () => this.#people.revoke(key));
    } else if (what < 0.38) await this.#regrant(key);
    else if (what < 0.45) {
      const organization = dice.pick(this.#organizations);
      const slug = dice.pick(slugs);
      if (!this.#find(organization, slug)) await this.#newProject(organization, slug);
    } else if (project === undefined) return;
    else if (what < 0.51) {
      await this.#rename(project);
    } else if (what < 0.53) {
      await this.#say(`delete ${project.slug}`, () => this.#people.deleteProject(project));
    } else if (what < 0.56) await this.#say(`rotate ${project.slug}`, () => this.#people.rotate(project));
    else if (what < 0.75) await this.#writeVariables(project, one);
    else if (what < 0.88) await this.#writeAccount(project);
    else await this.#writeFile(project);
  }

  async #newProject(organization: Organization, slug: string): Promise<void> {
    const dice = this.#dice;
    const project = await this.#say(`project ${organization.slug}/${slug}`, () =>
      this.#people.project(organization, slug),
    );
    for (const one of environments) if (dice.chance(0.6)) await this.#writeVariables(project, one);
    if (dice.chance(0.6)) await this.#writeAccount(project);
    if (dice.chance(0.6)) await this.#writeFile(project);
  }

  async #rename(project: Project, slug = this.#dice.pick(newSlugs)): Promise<void> {
    const owner = this.#organizations.find(({ id }) => id === project.organizationId) as Organization;
    if (this.#find(owner, slug)) return;
    await this.#say(`rename ${project.slug} to ${slug}`, () => this.#people.rename(project, slug));
  }

  async #newKey(): Promise<void> {
    const dice = this.#dice;
    const organization = dice.pick(this.#organizations);
    const own = this.#projects.filter(({ organizationId }) => organizationId === organization.id);
    const listed = dice.chance(0.4) ? dice.some(own, 0.7) : [];
    const key = await this.#people.key(organization, {
      surfaces: atLeastOne(dice, ["rest_api", "mcp_server", "ci_action"], 0.85),
      resources: atLeastOne(dice, ["projects", "variables", "accounts", "files", "requests"], 0.9),
      environments: atLeastOne(dice, environments, 0.8),
      rate: dice.pick([1, 1, 2, 7]),
      from: dice.pick(ranges),
      projects: listed.length > 0 ? Object.fromEntries(listed.map(({ slug, id }) => [slug, id])) : null,
    });
    this.#log.push(`key ${key.id} ${JSON.stringify({ ...key, text: "" })}`);
    this.#keys.push(key);
    this.#texts.push(key.text as string);
    this.#owners.set(key.text as string, key);
  }

  async #newTrust(): Promise<void> {
    const dice = this.#dice;
    const organization = dice.pick(this.#organizations);
    const event = dice.chance(0.2) ? "issue_comment" : undefined;
    const reads = dice.chance(0.5) ? dice.below(3) + 1 : undefined;
    const issuer = `https://${this.#name}.example.com`;
    const trust = await this.#people.trust(organization, issuer, this.#signer, reads, dice.pick(ranges), event);
    this.#log.push(`trust ${trust.id} ${JSON.stringify(trust)}`);
    this.#keys.push(trust);
    const good = this.#token(issuer, event === undefined ? {} : { event_name: event });
    this.#owners.set(good, trust);
    this.#texts.push(good, this.#token(issuer));
  }

  #token(issuer: string, good?: object): string {
    const dice = this.#dice;
    const nowS = Math.floor(Date.now() / 1000);
    const odd =
      good ??
      dice.pick([
        {},
        { event_name: "issue_comment" },
        { aud: "https://other.example.com" },
        { sub: "another" },
        { iat: nowS - 700, exp: nowS + 100 },
        { iat: nowS - 100, exp: nowS - 60 },
        { iat: nowS + 90, exp: nowS + 300 },
      ]);
    const claims = usualClaims(issuer, { jti: `job-${dice.below(3)}`, run_id: "7", ...odd });
    const signer = good || dice.chance(0.8) ? this.#signer : newSigningKey("ES256");
    return compact({ alg: "ES256", kid: "one", typ: "JWT" }, claims, signer);
  }

  async #regrant(key: Key): Promise<void> {
    const dice = this.#dice;
    const now = Date.now();
    this.#stage.clock.nowMs = now; // a key that has ended for the one has ended for the other
    const change = dice.pick([
      { environments: atLeastOne(dice, environments, 0.6) },
      { expiresAt: dice.pick([null, now - 1, now - 1000, now + 3_600_000]) },
      { resources: atLeastOne(dice, ["projects", "variables", "accounts", "files"], 0.7) },
      { projects: null },
      { projects: Object.fromEntries(dice.some(this.#projects).map(({ slug, id }) => [slug, id])) },
    ]);
    await this.#say(`regrant ${key.id} ${JSON.stringify(change)}`, () => this.#people.regrant(key, change));
  }

  async #writeVariables(project: Project, one: Environment): Promise<void> {
    const dice = this.#dice;
    const held = project.holds.get(`variables ${one}`) ?? [];
    const value = () => (dice.chance(0.06) ? oddValue : dice.pick(values));
    const written = Object.fromEntries(dice.some(names, 0.3).map((name) => [name, value()]));
    const removed = dice.some(held, 0.2).filter((name) => !Object.hasOwn(written, name));
    if (Object.keys(written).length + removed.length === 0) return;
    await this.#say(`variables of ${project.slug} in ${one}: ${Object.keys(written)} without ${removed}`, () =>
      this.#people.variables(project, one, written, removed),
    );
    if (this.#isWaiting || this.#keys.length === 0 || dice.chance(0.8)) return;
    // Again in the same moment: times alone do not tell two values apart.
    const other = Object.fromEntries(Object.keys(written).map((name) => [name, value()]));
    if (Object.keys(other).length === 0) return;
    await this.#compare([this.#request({ project, kind: "variables", one })]);
    await this.#say("and again", () => this.#people.variables(project, one, other, [], "same moment"));
    if (this.#last.length > 0) await this.#compare([this.#again(this.#last.at(-1) as Request)]);
  }

  async #writeAccount(project: Project): Promise<void> {
    const dice = this.#dice;
    const name = dice.pick(accountNames);
    const isHeld = environments.some((one) => project.holds.get(`accounts ${one}`)?.includes(name));
    if (isHeld && dice.chance(0.3)) {
      await this.#say(`delete account ${name}`, () => this.#people.deleteAccount(project, name));
      return;
    }
    const among = atLeastOne(dice, environments, 0.5);
    const fields = { user: dice.pick(values), secret: `of ${name} ${dice.below(99)}` };
    await this.#say(`account ${name} of ${project.slug} in ${among}`, () =>
      this.#people.account(project, name, among, fields),
    );
  }

  async #writeFile(project: Project): Promise<void> {
    const dice = this.#dice;
    const path = dice.pick(paths);
    const among = atLeastOne(dice, environments, 0.5);
    await this.#say(`file ${path} of ${project.slug} in ${among}`, () =>
      this.#people.file(project, path, among, `content ${dice.below(999)} of ${path}`),
    );
    if (dice.chance(0.2)) {
      const from = dice.pick(among);
      await this.#say(`delete file ${path} from ${from}`, () => this.#people.deleteFile(project, path, from));
    }
  }

  #find(organization: Organization, slug: string): Project | undefined {
    return this.#projects.find((one) => one.organizationId === organization.id && one.slug === slug);
  }

  async #say<T>(what: string, work: () => Promise<T>): Promise<T> {
    this.#log.push(what);
    return work();
  }

  /** The same read of values before and after a change that concerns it. Its server hears of nothing else between. */
  async #readAcross(): Promise<void> {
    const dice = this.#dice;
    const project = dice.pick(this.#projects);
    if (project === undefined) return;
    const [kind, one] = [dice.pick(["variables", "variables", "accounts", "files"] as const), dice.pick(environments)];
    const good = [...this.#owners].filter(
      ([, key]) =>
        this.#isLive(key) && key.resources.includes(kind) && (key.from === null || key.from.includes("unix")),
    );
    const own = good.filter(([, { organizationId }]) => organizationId === project.organizationId);
    const listed = own.filter(([, { projects }]) => projects?.[project.slug] === project.id);
    const [text, key] = dice.pick(listed.length > 0 && dice.chance(0.5) ? listed : own) ?? [];
    const organization = this.#organizations.find(({ id }) => id === project.organizationId);
    if (text === undefined || key === undefined || organization === undefined) return;
    const pair = dice.pick(this.#stage.pairs);
    const { slug } = project;
    const pathOf = (slug: string) =>
      kind === "files" ? `/files?project=${slug}&environment=${one}` : `/projects/${slug}/${kind}?environment=${one}`;
    const ask = async (path = pathOf(slug)) => {
      const headers = { "x-request-id": `${this.#name}-${++this.#requests}`, authorization: `Bearer ${text}` };
      const asked = { method: "GET", path, headers };
      await this.#compare([{ pair, asked, small: asked }]);
    };
    const plan = organization.plan === "pro" ? "free" : "pro";
    const change = dice.pick([
      () => this.#say(`revoke ${key.id}`, () => this.#people.revoke(key)),
      () => this.#regrant(key),
      () => this.#say(`plan of ${organization.slug}`, () => this.#people.plan(organization, plan)),
      () => this.#rename(project),
      // A slug that is a part of a listed one is not listed.
      ...Array(key.projects === null ? 0 : 4).fill(() => this.#rename(project, slug.slice(slug.length >> 1))),
      () => this.#say(`rotate ${slug}`, () => this.#people.rotate(project)),
      () => this.#writeVariables(project, one),
      () => this.#writeAccount(project),
      () => this.#writeFile(project),
    ]);
    this.#log.push(`across ${pathOf(slug)}`);
    for (let n = 0; n < 3; n++) await ask();
    for (const some of kind === "variables" ? dice.some(["&keys=A", "&prefix=A", "&prefix=AP"]) : []) {
      await ask(`${pathOf(slug)}${some}`);
    }
    await change();
    for (let n = 0; n < 2; n++) await ask();
    if (project.slug !== slug) for (const path of [pathOf(project.slug), "/projects"]) await ask(path);
  }

  // What happens to servers and rows.

  async #restart(): Promise<void> {
    this.#log.push("restart");
    await this.#stage.start(this.#dice.pick(this.#stage.pairs));
  }

  #drainOf(pair: Pair, key: Key, bucket: "metadata" | "value" | "content"): void {
    this.#log.push(`drain ${bucket} of ${key.id}`);
    const limiter: Limiter = pair.real.gate.limiter;
    const payer = { keyId: key.id, rate: key.rate === 1 ? null : key.rate };
    while (limiter.take(payer, bucket, this.#stage.clock.nowUs).allowed);
    const take = () => pair.small.charge(bucket, key.id, {}) ?? true;
    while (attempt(take));
  }

  /** A text that is refused until it has no attempts left; some were good before. */
  async #refused(): Promise<void> {
    const dice = this.#dice;
    const text = dice.pick(this.#texts);
    const key = this.#owners.get(text);
    if (key && this.#isLive(key) && dice.chance(0.7)) {
      for (let n = 0; n < 3; n++) await this.#compare([this.#request(undefined, text)]);
      await this.#say(`revoke ${key.id}`, () => this.#people.revoke(key));
    }
    for (let n = 0; n < 8; n++) await this.#compare([this.#request(undefined, text)]);
    // Who is refused pays nothing from the buckets of the key any more.
    for (const pair of key ? this.#stage.pairs : []) {
      for (const bucket of ["metadata", "value", "content"] as const) this.#drainOf(pair, key as Key, bucket);
    }
    for (let n = 0; n < 8; n++) await this.#compare([this.#request(undefined, text)]);
  }

  /** A job that asks for values until it has had all its answers. */
  async #job(text: string, { organizationId }: Key): Promise<void> {
    const dice = this.#dice;
    const project = dice.pick(this.#projects.filter((one) => one.organizationId === organizationId));
    if (project === undefined) return;
    const [kind, one] = [dice.pick(["variables", "accounts"] as const), dice.pick(environments)];
    for (let n = 0; n < 6; n++) await this.#compare([this.#request({ project, kind, one }, text)]);
  }

  async #drain(): Promise<void> {
    const dice = this.#dice;
    const pair = dice.pick(this.#stage.pairs);
    const [text, key] = dice.pick([...this.#owners]);
    const bucket = dice.pick(["metadata", "value", "content"] as const);
    this.#drainOf(pair, key, bucket);
    for (let n = 0; n < 5; n++) await this.#compare([this.#request(undefined, text)]);
  }

  /** Edits a row with SQL, reads, and puts the row back. */
  async #damage(): Promise<void> {
    const dice = this.#dice;
    const { w } = this.#stage;
    const project = dice.pick(this.#projects);
    if (project === undefined) return;
    const kind = dice.pick(["variables", "accounts", "files"] as const);
    const one = dice.pick(environments);
    const at = `${kind} ${one}`;
    const where = `project_id = ? and kind = ? and environment = ?`;
    const set = [project.id, kind, one];
    const small = project.sets.get(at);
    if (small === undefined) return;
    const what = dice.pick(["listing", "sealed", "sealed", "moved", "contents", "missing", "key", "piled"] as const);
    this.#log.push(`damage ${what}: ${at} of ${project.slug}`);
    const aim = { project, kind: what === "contents" || what === "piled" ? "files" : kind, one } as const;
    const reads = async (count = 6) => {
      for (let n = 0; n < count; n++) await this.#compare([this.#request(aim)]);
    };
    await reads(3); // what a server remembers must not hide the damage
    if (what === "key") {
      const key = dice.pick(this.#keys);
      const [row] = await w.run("select resources, environments, ranges from api_keys where id = ?", [key.id]);
      if (row?.["resources"] === 31 && row["environments"] === 7 && row["ranges"] === null) return;
      await w.run("update api_keys set resources = 31, environments = 7, ranges = null where id = ?", [key.id]);
      key.isSealed = false;
      await reads();
      const before = [row?.["resources"], row?.["environments"], row?.["ranges"], key.id];
      await w.run("update api_keys set resources = ?, environments = ?, ranges = ? where id = ?", before);
      key.isSealed = true;
      return;
    }
    if (what === "piled") {
      const held = new Map(project.holds);
      const [row] = await w.run("select file_counts from projects where id = ?", [project.id]);
      await w.run("update projects set file_counts = '[0,0,0,0,0,0,1001]' where id = ?", [project.id]);
      for (const every of environments) project.holds.set(`files ${every}`, numbered("f", 1001));
      await reads();
      await w.run("update projects set file_counts = ? where id = ?", [row?.["file_counts"], project.id]);
      for (const [place, names] of held) project.holds.set(place, names);
      return;
    }
    if (what === "contents") {
      const [id] = project.holds.get(`files ${one}`) ?? [];
      const content = project.contents.get(id ?? "");
      if (id === undefined || content === undefined) return;
      const [row] = await w.run("select sealed from file_contents where id = ?", [id]);
      const sealed = row?.["sealed"] as Buffer;
      await w.run("update file_contents set sealed = ? where id = ?", [flipped(sealed), id]);
      project.contents.set(id, flipped(content));
      await reads();
      await w.run("update file_contents set sealed = ? where id = ?", [sealed, id]);
      project.contents.set(id, content);
      return;
    }
    const columns = "version, generation, listing, listing_mac, sealed";
    const [row = {}] = await w.run(`select ${columns} from sets where ${where}`, set);
    const put = async (of: Record<string, unknown>) => {
      const changed = columns.split(", ").map((column) => of[column]);
      await w.run(
        `update sets set version = ?, generation = ?, listing = ?, listing_mac = ?, sealed = ? where ${where}`,
        [...changed, ...set],
      );
    };
    if (what === "listing") {
      await put({ ...row, listing: `${row["listing"]} ` });
      project.sets.set(at, { ...small, listing: flipped(small.listing) });
    } else if (what === "sealed") {
      const sealed = row["sealed"] as Buffer | null;
      if (sealed === null) return;
      await put({ ...row, sealed: flipped(sealed) });
      project.sets.set(at, { ...small, values: flipped(small.values) });
    } else if (what === "moved") {
      const other = dice.pick(this.#projects.filter(({ id }) => id !== project.id));
      const theirs = other?.sets.get(at);
      if (other === undefined || theirs === undefined) return;
      const [copy = {}] = await w.run(`select ${columns} from sets where ${where}`, [other.id, kind, one]);
      await put(copy);
      project.sets.set(at, theirs);
    } else {
      const [whole = {}] = await w.run(`select * from sets where ${where}`, set);
      await w.run(`delete from sets where ${where}`, set);
      project.sets.delete(at);
      await reads();
      const marks = Object.keys(whole).map(() => "?");
      await w.run(`insert into sets (${Object.keys(whole)}) values (${marks})`, Object.values(whole));
      project.sets.set(at, small);
      return;
    }
    await reads();
    await put(row);
    project.sets.set(at, small);
  }

  // What machines ask.

  #request(aim?: Aim, text?: string): Request {
    const dice = this.#dice;
    const pair = dice.pick(this.#stage.pairs);
    const id = dice.chance(0.97) ? `${this.#name}-${++this.#requests}` : dice.pick(["", "two words", "x".repeat(129)]);
    const good = [...this.#owners].filter(
      ([, key]) => this.#isLive(key) && (!aim || aim.project.organizationId === key.organizationId),
    );
    const presented = text ?? (dice.chance(0.85) && good.length > 0 ? dice.pick(good)[0] : dice.pick(this.#texts));
    const key = this.#owners.get(presented) ?? dice.pick(this.#keys);
    const asIs = this.#pathOf(key, aim);
    const spelt = dice.chance(0.1) ? asIs.replace(/=[^&%]+/g, (value) => `=${percent(value.slice(1))}`) : asIs;
    const url = new globalThis.Request(`http://localhost/api/v1${spelt}`).url;
    const path = url.slice("http://localhost/api/v1".length);
    const headers: Record<string, string> = {};
    if (id !== "") headers["x-request-id"] = id;
    const odd = oddHeaders(presented);
    if (dice.chance(0.98)) headers["authorization"] = dice.chance(0.95) ? `Bearer ${presented}` : dice.pick(odd);
    if (dice.chance(0.3)) headers["user-agent"] = "a machine/1.0";
    if (dice.chance(0.3)) headers["x-forwarded-for"] = dice.pick(forwarded);
    const method = dice.chance(0.97) ? "GET" : dice.pick(["HEAD", "POST", "PUT", "DELETE", "OPTIONS"]);
    const asked = { method, path, headers };
    const tags = this.#tags.filter((tag) => tag.path === path);
    const tag = tags.at(-1) ?? dice.pick(this.#tags);
    if (tag === undefined || !dice.chance(tags.length > 0 ? 0.5 : 0.1)) return { pair, asked, small: asked };
    const spell = dice.pick([
      ...Array<(tag: string) => string>(5).fill((tag) => tag),
      (tag: string) => `W/${tag}`,
      (tag: string) => `"other", ${tag}`,
      () => "*",
      () => '"other"',
      () => "junk",
      () => `"${"o".repeat(43)}"`,
    ]);
    const withTag = (one: string) => ({ ...asked, headers: { ...headers, "if-none-match": spell(one) } });
    return { pair, asked: withTag(tag.real), small: withTag(tag.small) };
  }

  #isLive(key: Key): boolean {
    const { isSealed, isRevoked, expiresAt } = key;
    return isSealed && !isRevoked && (expiresAt === null || expiresAt > this.#stage.clock.nowMs);
  }

  /** The same once more, mostly with the tag of its last answer. */
  #again({ asked }: Request): Request {
    const dice = this.#dice;
    const pair = dice.pick(this.#stage.pairs);
    const tag = this.#tags.findLast(({ path }) => path === asked.path);
    const { "if-none-match": _, prefer: __, ...before } = asked.headers;
    const headers = { ...before, "x-request-id": `${this.#name}-${++this.#requests}` };
    const asking = (one?: string) => ({ ...asked, headers: { ...headers, ...(one && { "if-none-match": one }) } });
    const isTagged = dice.chance(0.7);
    return { pair, asked: asking(isTagged ? tag?.real : undefined), small: asking(isTagged ? tag?.small : undefined) };
  }

  #pathOf(key: Key, aim?: Aim): string {
    const dice = this.#dice;
    const own = this.#projects.filter(({ organizationId }) => organizationId === key.organizationId);
    const reached = own.filter(({ id, slug }) => key.projects === null || key.projects[slug] === id);
    const any = [...this.#projects.map((project) => project.slug), ...slugs, "absent", "We b", "\u00df"];
    const slug =
      aim?.project.slug ?? (reached.length > 0 && dice.chance(0.85) ? dice.pick(reached).slug : dice.pick(any));
    const at = aim?.one ?? (dice.chance(0.9) ? dice.pick(key.environments) : dice.pick(environments));
    const encoded = spelled(dice, slug);
    const environment = dice.chance(0.95)
      ? `environment=${at}`
      : dice.pick(["", "environment=prod", `environment=${at}&environment=${at}`]);
    const format = dice.chance(0.35)
      ? dice.pick(["format=env", "format=env", "format=env", "format=json", "format=xml"])
      : "";
    const flags = [...Array(6).fill("metadata_only=true"), "metadata_only=false", "metadata_only=1"];
    const flag = dice.chance(0.3) ? dice.pick(flags) : "";
    const some = dice.pick([
      ...[
        ...Array(16).fill(""),
        "keys=A",
        "keys=A,PORT,B2,A",
        "keys=API_TOKEN,A,GONE",
        "keys=a%2CA",
        "prefix=A",
        "prefix=AP",
      ],
      ...[
        "keys=",
        "keys=A,,B",
        "prefix=",
        "prefix=a%20b",
        "keys=A,API_TOKEN&prefix=API",
        "keys=-&prefix=A",
        "keys=%ff",
        tooManyKeys,
      ],
    ]);
    const odd = dice.chance(0.05) ? dice.pick(["metdata_only=true", "page=2", "x y=1", "%ff=1", "&", "path=a"]) : "";
    const join = (...parts: string[]) => {
      const query = parts.filter((part) => part !== "").join("&");
      return query === "" ? "" : `?${query}`;
    };
    const file = dice.pick([
      ...Array(6).fill(""),
      "path=.npmrc",
      "path=.npmrc&path=tls/key.pem",
      "path=a+b.txt",
      "path=",
      "path=none",
      dice.chance(0.2) ? tooManyPaths : "",
    ]);
    const which = dice.pick([
      ...Array(6).fill(""),
      "metadataOnly=1",
      "metadataOnly=true",
      "metadataOnly=0",
      "metadata_only=true",
    ]);
    const project = dice.chance(0.95) ? `project=${encodeURIComponent(slug)}` : "";
    const ofVariables = dice.pick([
      ...Array(4).fill(`/projects/${encoded}/variables${join(environment, some, flag, format, odd)}`),
      `/projects/${encoded}/variables${join("metadata_only=true", some)}`,
      `/secrets${join(project, environment, format, odd)}`,
    ]);
    const ofAccounts = `/projects/${encoded}/accounts${join(dice.chance(0.5) ? environment : "", flag, odd)}`;
    const ofFiles = `/files${join(project, environment, which, file, odd)}`;
    if (aim && dice.chance(0.9)) return { variables: ofVariables, accounts: ofAccounts, files: ofFiles }[aim.kind];
    return dice.pick([
      () => `/organization${join(odd)}`,
      ...Array(2).fill(() => `/projects${join(odd)}`),
      ...Array(2).fill(() => `/projects/${encoded}${join(odd)}`),
      ...Array(6).fill(() => ofVariables),
      ...Array(3).fill(() => ofAccounts),
      ...Array(3).fill(() => ofFiles),
      () =>
        dice.pick([
          "/nothing",
          "/projects/",
          "/projects/web/files",
          "/organization/x",
          "/projects/%zz",
          "/projects/a%2Fb",
        ]),
    ])();
  }

  /** Up to 64 requests in one moment, to both servers. */
  async #atOnce(): Promise<void> {
    const dice = this.#dice;
    const count = dice.pick([2, 5, 16, 64]);
    this.#log.push(`${count} at once`);
    const used = new Map<string, number>();
    const text = dice.chance(0.4) ? dice.pick(this.#texts) : undefined;
    const requests: Request[] = [];
    while (requests.length < count) {
      const request = this.#request(undefined, text);
      const header = request.asked.headers["authorization"];
      const own = this.#keys.find((key) => key.text !== undefined && header === `Bearer ${key.text}`);
      const isLive = own !== undefined && own.from === null && this.#isLive(own);
      // Of a text that is refused meanwhile, or counted, the order of its requests would show in its buckets.
      const uses = (used.get(header ?? "") ?? 0) + 1;
      if (!isLive && header !== undefined && uses > 1) {
        if (text !== undefined) break;
        continue;
      }
      used.set(header ?? "", uses);
      requests.push(request);
    }
    await this.#compare(requests);
  }

  /** Reads that wait, one of each key, while people do something. A wait pays one token of the metadata bucket. */
  async #wait(): Promise<void> {
    const dice = this.#dice;
    const prefer = dice.pick(["wait=59", "wait=60"]);
    this.#stage.waitedMs = 0;
    this.#log.push(prefer);
    const begun = new Map<string, { chosen: Request; refund: () => void; first: Answer; real: Promise<Real> }>();
    for (const last of this.#last) {
      const { pair, asked, small } = this.#again(last);
      const { authorization = "", "if-none-match": tag } = asked.headers;
      const who = pair.small.memory.known.get(authorization.split(" ").at(-1) ?? "") ?? "";
      const key = this.#stage.store.keys.get(who);
      if (tag === undefined || key === undefined || !this.#isLive(key) || begun.has(who)) continue;
      const preferring = (one: Asked) => ({ ...one, headers: { ...one.headers, prefer } });
      const chosen = { pair, asked: preferring(asked), small: preferring(small) };
      const { fullAtUs } = pair.small.memory;
      const fullBefore = fullAtUs.get(`metadata ${who}`) ?? 0;
      const refund = () => void fullAtUs.set(`metadata ${who}`, fullBefore);
      begun.set(who, { chosen, refund, first: pair.small.answer(chosen.small), real: askReal(chosen) });
    }
    const all = [...begun.values()];
    const count = all.filter(({ first }) => first.status === 304).length;
    await Promise.all(all.flatMap(({ first, real }) => (first.status === 304 ? [] : real)));
    const waiting = () => this.#stage.pairs.reduce((sum, { real }) => sum + (real.waits as Waits).size, 0);
    await eventually(() => waiting() >= count);
    this.#isWaiting = true;
    await this.#change();
    this.#isWaiting = false;
    // Some are told of the change. The time of the others ends now.
    const enough = this.#stage.looks + 4;
    await eventually(() => waiting() === 0 || this.#stage.looks > enough);
    this.#stage.waitedMs += 70_000;
    for (const { chosen, refund, first, real } of all) {
      const { pair, small } = chosen;
      const answer = await real;
      if (first.status === 304) refund();
      const expected = first.status === 304 ? pair.small.answer(small) : first;
      const problem = this.#problem(pair, answer, expected, false);
      if (problem !== undefined) throw new Error(`${JSON.stringify(chosen.asked)}\n${problem}`);
      this.#note(chosen, answer, expected);
    }
  }

  /** What is left of each bucket: the next answer of each key says so. */
  async #probeBuckets(): Promise<void> {
    this.#log.push("buckets");
    const project = this.#projects[0]?.slug ?? "none";
    for (const pair of this.#stage.pairs) {
      for (const [text, key] of this.#owners) {
        if (!this.#isLive(key)) continue;
        for (const path of ["/organization", `/secrets?project=${project}`, "/files"]) {
          const asked = {
            method: "GET",
            path,
            headers: { "x-request-id": `${this.#name}-${++this.#requests}`, authorization: `Bearer ${text}` },
          };
          await this.#compare([{ pair, asked, small: asked }]);
        }
      }
    }
  }

  // The comparison.

  /** Asks the servers at once, and the small ones in an order in which they give the same answers. */
  async #compare(requests: readonly Request[]): Promise<void> {
    const real = await Promise.all(requests.map(askReal));
    const isAlone = requests.length === 1;
    let pending = requests.map((request, index) => ({ ...request, answer: real[index] as Real }));
    // In the order in which they were charged, as far as their answers say. A conditional read may have paid twice.
    pending.sort((a, b) => orderOf(b) - orderOf(a));
    while (pending.length > 0) {
      const next = pending.findIndex(({ pair, small, answer }) => {
        return (
          isAlone || this.#problem(pair, answer, this.#stage.wouldAnswer(pair.small, small), isAlone) === undefined
        );
      });
      const chosen = pending[Math.max(0, next)] as (typeof pending)[number];
      const { pair, asked, small, answer } = chosen;
      const expected = pair.small.answer(small);
      const problem = isAlone || next < 0 ? this.#problem(pair, answer, expected, isAlone) : undefined;
      if (problem !== undefined) {
        throw new Error(
          `${isAlone ? "" : `${pending.length} left of ${requests.length}: `}${JSON.stringify(asked)}\n${problem}`,
        );
      }
      this.#note(chosen, answer, expected);
      pending = pending.filter((one) => one !== chosen);
    }
  }

  /** Keeps what later requests and comparisons are about. */
  #note({ pair, asked, small }: Request, answer: Real, expected: Answer): void {
    const { seen } = this.#stage;
    this.#stage.count += 1;
    seen.set(expected.code, (seen.get(expected.code) ?? 0) + 1);
    const [realTag, smallTag] = [answer.headers["etag"], expected.headers["etag"]];
    if (realTag !== undefined && smallTag !== undefined) {
      this.#realOf.set(smallTag, realTag);
      this.#smallOf.set(realTag, smallTag);
      this.#last = [...this.#last.slice(-9), { pair, asked, small }];
      this.#tags.push({ real: realTag, small: smallTag, path: asked.path });
    }
    pair.lane ??= answer.headers["keyhole-audit"]?.split(":")[0];
  }

  /** What differs, or undefined. */
  #problem(pair: Pair, real: Real, small: Answer, isAlone: boolean): string | undefined {
    const headers = { ...real.headers };
    const expected = { ...small.headers };
    const tag = headers["etag"];
    const known = tag === undefined ? undefined : this.#smallOf.get(tag);
    const smallTag = expected["etag"] ?? "";
    // Two answers have one tag if and only if they are the same.
    const isNew = known === undefined && !this.#realOf.has(smallTag);
    if (tag !== undefined) headers["etag"] = isNew ? smallTag : (known ?? "another tag than before");
    headers["x-request-id"] = madeOr(headers["x-request-id"] ?? "");
    if (headers["keyhole-audit"] !== undefined) {
      const [lane = "", numbers = ""] = headers["keyhole-audit"].split(":");
      const isOwn = pair.lane === undefined || pair.lane === lane;
      headers["keyhole-audit"] = `${isOwn ? "LANE" : "ANOTHER LANE"}:${isAlone ? numbers : countOf(numbers)}`;
      if (!isAlone) expected["keyhole-audit"] = `LANE:${countOf(expected["keyhole-audit"]?.split(":")[1] ?? "")}`;
    }
    const [found, wanted] = [
      { status: real.status, headers: sorted(headers), body: real.body },
      { status: small.status, headers: sorted(expected), body: small.body },
    ];
    if (Bun.deepEquals(found, wanted)) return undefined;
    return `answered ${JSON.stringify(found).slice(0, 1500)}\nexpected ${JSON.stringify(wanted).slice(0, 1500)}`;
  }

  async #compareRecord(): Promise<void> {
    const { store, pairs } = this.#stage;
    const slugs = this.#organizations.map(({ slug }) => slug);
    const own = store.record.filter(({ organization }) => slugs.includes(organization));
    // Alarms are written after the answer. One that never comes is a difference, not a test that hangs.
    const giveUpAt = performance.now() + 5000;
    const found = await eventually(async () => {
      for (const { real } of pairs) await real.gate.alarms.flush();
      const found = (await this.#entries()).filter(({ organization }) => slugs.includes(organization));
      return (found.length >= own.length || performance.now() > giveUpAt) && found;
    });
    const textsOf = (entries: readonly Entry[]) => entries.map((entry) => JSON.stringify(sorted(entry))).sort();
    const [a, b] = [textsOf(found), textsOf(own)];
    const at = a.findIndex((entry, index) => entry !== b[index]);
    if (a.length !== b.length || at >= 0) {
      throw new Error(
        `the record has ${a.length} entries of ${b.length}: ${a[at]}\nexpected ${b[at < 0 ? a.length : at]}`,
      );
    }
  }

  /** What the servers have recorded since this history began. */
  async #entries(): Promise<Entry[]> {
    const columns = `lane, first_seq as "firstSeq", last_seq as "lastSeq", at, texts, entries, mac`;
    const rows = await this.#stage.w.run(`select ${columns} from audit_segments where at >= ?`, [this.#begunAt]);
    return (rows as Segment[]).flatMap((row) => decodeEntries(row) ?? []).flatMap(entryOf);
  }
}

/** An entry of a key or a trust as the small Keyhole has it. */
function entryOf({ actor, ...entry }: AuditEntry): Entry[] {
  if (actor.type === "person") return [];
  const { organization, project, environment, action, names, byName = false, userAgent, token = null } = entry;
  const [requestId, address] = [madeOr(entry.requestId), entry.clientAddress];
  const what = { project, environment, action, names, byName, requestId, userAgent, address, token };
  return [{ actor: actor.type, id: actor.id, organization, ...what }];
}

type Real = { readonly status: number; readonly headers: Record<string, string>; readonly body: string };

async function askReal({ pair, asked: { method, path, headers } }: Request): Promise<Real> {
  const request = new globalThis.Request(`http://localhost/api/v1${path}`, { method, headers });
  const { status, headers: sent, text } = await answerOf(await pair.client.handle(request));
  return { status, headers: Object.fromEntries(sent) as Record<string, string>, body: text };
}

/** What its bucket had left after it; of those that paid twice, their answers say it of the second bucket alone. */
function orderOf({ asked, answer: { headers, status } }: Request & { readonly answer: Real }): number {
  const rateLimit = headers["ratelimit"] ?? "";
  if (asked.headers["if-none-match"] !== undefined && !rateLimit.startsWith('"metadata"')) return -2;
  return status === 429 ? -1 : Number(/;r=(\d+)/.exec(rateLimit)?.[1] ?? 0);
}

function countOf(numbers: string): string {
  const [first, last = first] = numbers.split("-").map(Number);
  return `${(last ?? 0) - (first ?? 0) + 1} entries`;
}

function sorted(members: object): object {
  return Object.fromEntries(Object.entries(members).sort());
}

/** A request id, or "MADE" for one that the server made. */
function madeOr(id: string): string {
  return /^[0-9a-f-]{36}$/.test(id) ? "MADE" : id;
}

function flipped(bytes: Buffer): Buffer {
  const copy = Buffer.from(bytes);
  copy[20] = (copy[20] ?? 0) ^ 1;
  return copy;
}

function atLeastOne<T>(dice: Dice, list: readonly T[], probability: number): T[] {
  const some = dice.some(list, probability);
  return some.length > 0 ? some : [dice.pick(list)];
}

function spelled(dice: Dice, slug: string): string {
  if (dice.chance(0.9)) return encodeURIComponent(slug);
  return percent(slug);
}

function percent(text: string): string {
  return [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
}

function oddHeaders(text: string): string[] {
  return [
    `bearer ${text}`,
    `BEARER   ${text}`,
    text,
    `Basic ${text}`,
    `Bearer${text}`,
    `Bearer ${text}, Bearer ${text}`,
  ];
}
