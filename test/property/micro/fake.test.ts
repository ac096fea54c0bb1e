import { expect, test } from "bun:test";
import { fakeKeyhole } from "../../../src/client/testing.ts";
import { type Environment, environments } from "../../../src/core/names.ts";
import { mintKey } from "../../../src/serve/access/api-key.ts";
import { type Dice, diceOf } from "../../support/attack.ts";
import { numbered, sha256 } from "../../support/rows.ts";
import { parts, seed } from "../../support/seed.ts";
import { type Clock, type Key, type Kind, type Project, Server, Store } from "./keyhole.ts";
import { seal, writeSet } from "./people.ts";

/* `keyhole/testing` against the small Keyhole: one key that reaches everything, and the same random questions. */

const begunAt = 1_700_000_000_000;
const slugs = ["web", "api", "0", "empty"];
const names = ["A", "API_TOKEN", "B2", "PORT", "Z"];
const values = ["plain", 'quo"ted', "it's", "two\nlines", "", "$HOME", "\u20ac \u{1F511}", "it's\n$(b)"];
const paths = ["tls/key.pem", "tls/\u00e9.pem", ".npmrc", "a b.txt"];
const contents = ["one", "another", "\u20ac"];

type Places<T> = Record<string, Record<Environment, Record<string, T>>>;

/** Items of each environment of each project, at random. */
function placesOf<T>(dice: Dice, itemNames: readonly string[], value: () => T): Places<T> {
  const itemsOf = () => Object.fromEntries(dice.some(itemNames, 0.5).map((name) => [name, value()]));
  const place = (slug: string) =>
    Object.fromEntries(environments.map((one) => [one, slug === "empty" ? {} : itemsOf()]));
  return Object.fromEntries(slugs.map((slug) => [slug, place(slug)])) as Places<T>;
}

/** The fake and the small Keyhole with the same items, and what asks both. */
class Both {
  readonly #clock: Clock = { nowMs: begunAt, nowUs: 1_000_000 };
  readonly #dice: Dice;
  readonly #store = new Store();
  readonly #small = new Server(this.#store, this.#clock);
  readonly #fake: ReturnType<typeof fakeKeyhole>;
  readonly #key: Key;
  readonly #projects = new Map<string, Project>();
  /** The tags of the fake by those of the small Keyhole. */
  readonly #tags = new Map<string, string>();
  #writes = 0;

  constructor(dice: Dice) {
    this.#dice = dice;
    const variables = placesOf(dice, names, () => dice.pick(values));
    if (dice.chance(0.2)) variables["api"] = { ...variables["api"], staging: crowd } as Places<string>[string];
    const accounts = placesOf(dice, ["mail", "aws", "\uff21"], () => ({ user: dice.pick(values), pin: "1" }));
    const files = placesOf(dice, paths, () => dice.pick(contents));
    this.#fake = fakeKeyhole(variables, { accounts, files, nowMs: () => this.#clock.nowUs / 1000 });
    this.#store.organizations.set("one", { id: "ID", slug: "fake", name: "Fake", plan: "pro" });
    for (const slug of slugs) this.#project(slug);
    for (const [kind, all] of Object.entries({ variables, accounts, files })) this.#writeAll(kind as Kind, all);
    const all = { resources: ["projects", "variables", "accounts", "files"], environments, projects: null };
    const standing = { expiresAt: null, rate: 1, from: null, isRevoked: false, isSealed: true, text: mintKey() };
    this.#key = { id: "key", organizationId: "one", surfaces: ["rest_api", "ci_action"], ...all, ...standing };
    this.#store.keys.set("key", this.#key);
  }

  #project(slug: string): void {
    const changedAt = { development: begunAt, staging: begunAt, production: begunAt };
    const own = { sets: new Map(), holds: new Map(), contents: new Map() };
    const project = { id: slug, organizationId: "one", slug, name: slug, createdAt: begunAt, changedAt, ...own };
    for (const kind of ["variables", "accounts", "files"] as const) {
      for (const one of environments) writeSet(this.#store, project, kind, one, new Map(), begunAt);
    }
    this.#projects.set(slug, project);
    this.#store.projects.set(slug, project);
  }

  #writeAll(kind: Kind, all: Places<unknown>): void {
    for (const [slug, places] of Object.entries(all)) {
      for (const one of environments) {
        for (const [name, value] of Object.entries(places[one])) this.#write(slug, kind, one, name, value);
      }
    }
  }

  #write(slug: string, kind: Kind, one: Environment, name: string, value: unknown): void {
    const project = this.#projects.get(slug) as Project;
    const now = begunAt + ++this.#writes;
    const written = () => {
      if (kind !== "files") return { value };
      const bytes = Buffer.from(value as string);
      const kept = { mode: "0600", size: bytes.length, sha256: sha256(bytes), contentType: "application/octet-stream" };
      const id = `${name} ${kept.sha256}`;
      project.contents.set(id, seal(this.#store.rootKey, [project.id, id, kept.sha256], bytes));
      return { value: null, file: { id, name: name.split("/").at(-1) as string, ...kept } };
    };
    writeSet(this.#store, project, kind, one, new Map([[name, value === undefined ? null : written()]]), now);
  }

  /** Somebody sets or deletes a variable. */
  change(): void {
    const [slug, one, name] = [this.#dice.pick(slugs), this.#dice.pick(environments), this.#dice.pick(names)];
    const value = this.#dice.chance(0.3) ? undefined : this.#dice.pick(values);
    this.#fake.set(slug, one, name, value);
    this.#write(slug, "variables", one, name, value);
  }

  wait(us: number): void {
    this.#clock.nowUs += us;
  }

  revoke(): void {
    this.#fake.revoke();
    this.#key.isRevoked = true;
  }

  /** One random request to both. */
  async ask(): Promise<{
    readonly code: string;
    readonly asked: unknown;
    readonly found: unknown;
    readonly expected: unknown;
  }> {
    const dice = this.#dice;
    const url = new Request(`https://keyhole.test/api/v1${pathOf(dice)}`).url;
    const path = url.slice("https://keyhole.test/api/v1".length);
    const method = dice.chance(0.97) ? "GET" : dice.pick(["HEAD", "POST", "DELETE"]);
    const spelled = dice.chance(0.95)
      ? "Bearer KEY"
      : dice.pick(["bearer KEY", "Basic KEY", "KEY", "Bearer KEY,", wrong]);
    const tag = dice.chance(0.4) ? dice.pick(["*", "junk", `"${"o".repeat(43)}"`, ...this.#tags.keys()].slice(-6)) : "";
    const headersOf = (key: string, own: string) => ({
      "x-request-id": "same",
      authorization: spelled.replace("KEY", key),
      ...(own !== "" && { "if-none-match": own }),
    });
    const small = this.#small.answer({ method, path, headers: headersOf(this.#key.text as string, tag) });
    const sent = headersOf(this.#fake.apiKey, this.#tags.get(tag) ?? tag);
    const answer = await this.#fake.fetch(url, { method, headers: sent });
    const headers = Object.fromEntries(answer.headers);
    const [own, ours] = [small.headers["etag"], headers["etag"]];
    // A tag is the same again if and only if the answer is.
    if (own !== undefined && ours !== undefined) {
      const isNew = !this.#tags.has(own) && ![...this.#tags.values()].includes(ours);
      if (isNew) this.#tags.set(own, ours);
      headers["etag"] = this.#tags.get(own) === ours ? own : "another tag than before";
    }
    const lane = headers["keyhole-audit"]?.replace("fake:", "LANE:");
    const found = { ...headers, ...(lane && { "keyhole-audit": lane }) };
    const body = (await answer.text()).replace(/"id":"[^"]*"/g, '"id":"ID"');
    return {
      code: small.code,
      asked: { method, path, sent },
      found: { status: answer.status, headers: sorted(found), body },
      expected: {
        status: small.status,
        headers: sorted(small.headers),
        body: small.body.replace(/"id":"[^"]*"/g, '"id":"ID"'),
      },
    };
  }
}

const crowd = Object.fromEntries(numbered("V", 1001).map((name) => [name, name]));
const wrong = `Bearer ${mintKey()}`;

function pathOf(dice: Dice): string {
  const slug = dice.chance(0.9) ? dice.pick(slugs) : dice.pick(["absent", "We%20b", "%77eb", "%zz"]);
  const one = dice.chance(0.95) ? `environment=${dice.pick(environments)}` : dice.pick(["", "environment=prod"]);
  const some = dice.pick([
    "",
    "",
    "",
    "keys=A,PORT,GONE",
    "keys=",
    "prefix=A",
    "prefix=a%20b",
    "keys=A,API_TOKEN&prefix=API",
  ]);
  const flag = dice.chance(0.3) ? dice.pick(["metadata_only=true", "metadata_only=false", "metadata_only=1"]) : "";
  const format = dice.chance(0.3) ? dice.pick(["format=env", "format=json", "format=xml"]) : "";
  const odd = dice.chance(0.04) ? dice.pick(["page=2", "%ff=1", "&"]) : "";
  const file = dice.pick(["", "", "path=.npmrc", "path=.npmrc&path=tls/key.pem", "path=a+b.txt", "path=", "path=none"]);
  const which = dice.pick(["", "", "metadataOnly=1", "metadataOnly=true", "metadataOnly=0"]);
  const query = (...all: string[]) => `?${all.filter(Boolean).join("&")}`.replace(/^\?$/, "");
  return dice.pick([
    `/organization${query(odd)}`,
    `/projects${query(odd)}`,
    `/projects/${slug}${query(odd)}`,
    `/projects/${slug}/variables${query(one, some, flag, format, odd)}`,
    `/projects/${slug}/variables${query("metadata_only=true", some)}`,
    `/projects/${slug}/accounts${query(dice.chance(0.5) ? one : "", flag, odd)}`,
    `/files${query(`project=${slug}`, one, which, file, odd)}`,
    `/secrets${query(`project=${slug}`, one, format, odd)}`,
    dice.pick(["/nothing", "/projects/", "/projects/web/files"]),
  ]);
}

const sorted = (headers: Readonly<Record<string, string>>) => Object.fromEntries(Object.entries(headers).sort());

const codes = new Set<string>();
test.each(parts(20))("keyhole/testing answers as the small Keyhole does, in random history %i", async (number) => {
  const dice = diceOf(seed * 1009 + number);
  const both = new Both(dice);
  const expectSame = async () => {
    const { code, asked, found, expected } = await both.ask();
    codes.add(code);
    expect([asked, found]).toEqual([asked, expected]);
  };
  for (let step = 0; step < 60; step++) {
    if (dice.chance(0.2)) both.change();
    both.wait(dice.pick([0, 0, 1000, 400_000, 2_000_000, 61_000_000]));
    await expectSame();
  }
  // Full buckets: which of two empty ones refuses first is not told here.
  both.wait(3_600_000_000);
  both.revoke();
  for (let step = 0; step < 12; step++) await expectSame();
});

test("it was asked in every way", () => {
  const wanted = ["200", "304", "invalid_request", "unauthorized", "project_not_found", "not_found"];
  const more = ["method_not_allowed", "too_many_items", "env_unrepresentable", "rate_limited"];
  expect([...wanted, ...more].filter((code) => !codes.has(code))).toEqual([]);
});
