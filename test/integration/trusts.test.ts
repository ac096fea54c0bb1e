import { afterAll, beforeAll, describe, expect, setSystemTime, spyOn, test } from "bun:test";
import { createHmac, generateKeyPairSync, randomBytes } from "node:crypto";
import { eq, inArray } from "drizzle-orm";
import { fetchJson } from "../../src/core/fetch-json.ts";
import {
  createCredential,
  type KeyRecord,
  listAccess,
  listExpiring,
  listKeys,
  revokeKey,
  rotateKey,
} from "../../src/people/keys/keys.ts";
import { createTrust, type NewTrust } from "../../src/people/keys/trusts.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import { mintKey } from "../../src/serve/access/api-key.ts";
import { sealGrant } from "../../src/serve/access/grant.ts";
import { IssuerKeys } from "../../src/serve/access/issuer-keys.ts";
import { foundByOf, parseTerms, readToken, type Token } from "../../src/serve/access/token.ts";
import { type FindTrusts, TrustDirectory } from "../../src/serve/access/trust-directory.ts";
import type { Gatekeeper } from "../../src/serve/gates/admit.ts";
import { Limiter } from "../../src/serve/limit/limiter.ts";
import { UnrecognizedLimiter } from "../../src/serve/limit/unrecognized.ts";
import { openKeyhole } from "../../src/serve/process/compose.ts";
import { clockOf } from "../../src/store/database.ts";
import { pruneJobReads } from "../../src/store/expiry.ts";
import { trustFinder } from "../../src/store/lookups.ts";
import { type Answer, answerOf, firstOf, headersOf, requestOf, usualHeaders } from "../support/answer.ts";
import { listAudit } from "../support/audit.ts";
import {
  audience,
  type Claims,
  compact,
  encoded,
  type Issuer,
  newSigningKey,
  publicJwk,
  type SigningKey,
  startIssuer,
  usualClaims,
} from "../support/issuer.ts";
import { visitorOf } from "../support/pages.ts";
import { asPerson } from "../support/persons.ts";
import { clientOf, describeBoth, type World } from "../support/world.ts";

const values = "/projects/web/variables?environment=production";

/** What a step of Bitbucket Pipelines says of itself. The UUIDs are made up. */
const bitbucketClaims = {
  iss: "https://api.bitbucket.org/2.0/workspaces/acme/pipelines-config/identity/oidc",
  aud: "ari:cloud:bitbucket::workspace/0b9c6d1e-1111-4000-8000-000000000001",
  sub: "{1f2e0a6b-2222-4000-8000-000000000002}:{3c4d5e6f-4444-4000-8000-000000000004}:{5a6b7c8d-5555-4000-8000-000000000005}",
  workspaceUuid: "{0b9c6d1e-1111-4000-8000-000000000001}",
  repositoryUuid: "{1f2e0a6b-2222-4000-8000-000000000002}",
  branchName: "main",
  pipelineUuid: "{2a3b4c5d-3333-4000-8000-000000000003}",
  deploymentEnvironmentUuid: "{3c4d5e6f-4444-4000-8000-000000000004}",
  stepUuid: "{5a6b7c8d-5555-4000-8000-000000000005}",
};

const vcsRef = "oidc.circleci.com/vcs-ref";

/** What a job of CircleCI says of itself. */
const circleClaims = {
  iss: "https://oidc.circleci.com/org/8c1d2e3f-1111-4000-8000-000000000001",
  aud: audience,
  sub: "org/8c1d2e3f-1111-4000-8000-000000000001/project/9d2e3f4a-2222-4000-8000-000000000002/user/af3b4c5d-3333-4000-8000-000000000003/vcs-origin/github.com/acme/web/vcs-ref/refs/heads/main",
  "oidc.circleci.com/project-id": "9d2e3f4a-2222-4000-8000-000000000002",
  "oidc.circleci.com/context-ids": ["b04c5d6e-4444-4000-8000-000000000004"],
  "oidc.circleci.com/job-id": "c15d6e7f-5555-4000-8000-000000000005",
  "oidc.circleci.com/vcs-ref": "refs/heads/main",
  "oidc.circleci.com/ssh-rerun": false,
};

/** The issuers of clouds; the account of AWS and the tenant of Azure are made up. */
const clouds = {
  aws: "https://abc12345-def4-5678-90ab-cdef12345678.tokens.sts.global.api.aws",
  google: "https://accounts.google.com",
  azure: "https://sts.windows.net/0b9c6d1e-1111-4000-8000-000000000001/",
};

type Stage = Awaited<ReturnType<typeof openStage>>;

/** An installation with a trust for the tokens of an issuer, and time that the test moves. */
async function openStage(w: World, options: { waitMsMax?: number; terms?: Partial<NewTrust> } = {}) {
  const issuer = startIssuer();
  const { organization } = await w.place({ variables: { production: { A: "value of A" } } });
  const { slug } = organization;
  const add = async (terms: Partial<NewTrust> = {}): Promise<KeyRecord> => {
    const claims = new Map(Object.entries({ sub: "job", repository_id: "1" }));
    const reach = { organization: slug, projects: ["web"], environments: ["production"] };
    return (await createTrust(w.admin, { ...reach, issuer: issuer.url, audience, claims, ...terms })).trust;
  };
  /** What a process has of its own. It looks for trusts each time, and its buckets never gain a token. */
  const gate = () => {
    let looks = 0;
    const trusts = directoryOf(w, undefined, () => 1000 * looks++);
    const keys = new IssuerKeys(
      fetchJson,
      () => {},
      () => performance.now() + stage.aheadMs,
      // Longer than a server waits, because a slow machine may need it for an issuer that is well.
      options.waitMsMax ?? 20_000,
    );
    return {
      findTrusts: (token) => trusts.find(token),
      findIssuerKeys: (...asked) => {
        stage.keysWanted += 1;
        return keys.find(...asked);
      },
      now: Date.now,
      nowUs: () => 1_000_000,
    } satisfies Partial<Gatekeeper>;
  };
  const client = w.client((parts) => ({ gate: { ...parts.gate, ...gate() } }));
  const ask = (token: string, path = values): Promise<Answer> => client.ask(path, { key: token });
  const stage = {
    issuer,
    client,
    slug,
    trust: await add(options.terms),
    /** How far the server's monotonic clock is ahead. */
    aheadMs: 0,
    /** How often its server wanted the keys of an issuer. */
    keysWanted: 0,
    gate,
    add,
    ask,
    /** Expects exactly what an unknown key gets, and this reason in the log. */
    refuses: async (token: string, reason: string): Promise<void> => {
      const answer = await ask(token);
      const unknown = await client.ask(values, { key: mintKey() });
      expect(answer.status).toBe(401);
      expect(answer.bytes).toEqual(unknown.bytes);
      expect([...answer.headers.keys()]).toEqual([...unknown.headers.keys()]);
      expect(headersOf(answer)).toEqual(usualHeaders({ "www-authenticate": 'Bearer realm="keyhole"' }));
      const logged = w.log.find(({ requestId }) => requestId === answer.headers.get("x-request-id"));
      expect(logged?.["reason"]).toContain(reason);
    },
    [Symbol.asyncDispose]: issuer[Symbol.asyncDispose],
  };
  return stage;
}

describeBoth("a trust", (w, _, once) => {
  /** For tests that leave it as it is. */
  let shared: Stage;
  beforeAll(async () => {
    shared = await openStage(w);
  });
  afterAll(() => shared[Symbol.asyncDispose]());

  const reach = { projects: null, environments: null, audience, claims: new Map([["sub", "job"]]) };
  const personOf = (organizationId: string) => {
    const everywhere = { organizationId, projectId: null, environments: 7 };
    return asPerson(w.admin, "ana", [{ rights: ["keys", "reveal"], ...everywhere }]);
  };

  test("lets a token read what a key with the same rights reads, from its own buckets", async () => {
    await using stage = await openStage(w);
    const answer = await stage.ask(stage.issuer.token());
    expect(answer.json).toMatchObject({ environment: "production", variables: [{ key: "A", value: "value of A" }] });
    expect(headersOf(answer)).toMatchObject(firstOf.value);
    // Another token of the same trust goes on with the same bucket.
    const second = await stage.ask(stage.issuer.token({ jti: "token-2" }));
    expect(second.headers.get("ratelimit")).toBe('"value";r=28;t=4');
  });

  once.each(["RS256", "PS256", "ES256", "ES384", "EdDSA"])("takes tokens signed by %s", async (alg) => {
    await using stage = await openStage(w);
    stage.issuer.keys.set("one", newSigningKey(alg));
    expect((await stage.ask(stage.issuer.token())).status).toBe(200);
  });

  const strangers = [
    ["event_name", "workflow_run", "issue_comment", "push"],
    ["pipeline_source", "merge_request_event", "external_pull_request_event", "push"],
    ["build_branch", "friend:main", "thief:main", "main"],
    [vcsRef, "refs/heads/pull/7", "refs/pull/8/head", "refs/heads/pull-me"],
  ] as const;
  once.each(strangers)("takes a job that a stranger can start by the very %s that it names", async (...row) => {
    const [claim, named, other, own] = row;
    await using stage = await openStage(w);
    await stage.add({ claims: new Map(Object.entries({ sub: "job", repository_id: "7", [claim]: named })) });
    const job = (value: string) => stage.issuer.token({ repository_id: "7", [claim]: value });
    expect((await stage.ask(job(named))).status).toBe(200);
    await stage.refuses(job(other), "it fits none: its claim");
    expect((await stage.ask(stage.issuer.token({ [claim]: own }))).status).toBe(200);
  });

  once("passes the same gates as a key", async () => {
    await using stage = await openStage(w);
    const token = stage.issuer.token();
    const paths = [
      ["/projects/web/accounts", 403, "resource_required"],
      ["/secrets?project=web&environment=production", 403, "surface_required"],
      ["/projects/web/variables", 400, "invalid_request"],
      ["/projects/web/variables?environment=staging", 403, "environment_not_in_scope"],
      ["/projects/other/variables?environment=production", 404, "project_not_found"],
    ] as const;
    for (const [path, status, code] of paths) {
      expect([path, (await stage.ask(token, path)).json]).toMatchObject([path, { code }]);
      expect((await stage.ask(token, path)).status).toBe(status);
    }
    await setPlan(w.admin, stage.slug, "free");
    expect((await stage.ask(token)).json).toMatchObject({ code: "plan_required" });
  });

  describe("that bounds how many answers with values a job gets", () => {
    const terms = { readsPerJob: 3 };
    const overuses = () => listAudit(w.admin, { actions: ["trust.overused"], limit: 1000 });
    /** A server of its own, with empty buckets. */
    const start = async (stage: Stage) => {
      const keyhole = await openKeyhole(w.installation, (event) => w.log.push(event));
      const own = { ...stage.gate(), limiter: new Limiter(), unrecognized: new UnrecognizedLimiter() };
      const { findTrusts } = keyhole.gate;
      const { handle } = clientOf({ ...keyhole, gate: { ...keyhole.gate, ...own, findTrusts } });
      const get = async (token: string, path = values, headers = {}) =>
        answerOf(await handle(requestOf(path, { key: token, headers })));
      return { get, gate: keyhole.gate, [Symbol.asyncDispose]: () => keyhole.close() };
    };
    const countOf = async ({ trust }: Stage) =>
      (await w.sql`select reads from job_reads where trust_id = ${trust.id}`).map(({ reads }) => reads);

    test("gives no more over two servers, whatever asks at once, and none after a restart", async () => {
      await using stage = await openStage(w, { terms });
      const token = stage.issuer.token();
      {
        await using one = await start(stage);
        await using two = await start(stage);
        const both = [one, two] as const;
        const asked = Array.from({ length: 200 }, (_, at) => both[(at % 2) as 0 | 1].get(token));
        const answers = (await Promise.all(asked)).map(({ status }) => status);
        // Ten 401 are those of each server's limiter of unrecognized keys.
        const counts = [200, 401, 429].map((status) => answers.filter((one) => one === status).length);
        expect(counts).toEqual([3, 20, 177]);
        const other = await stage.ask(stage.issuer.token({ jti: "token-2" }));
        expect([other.status, other.headers.get("keyhole-reads-per-job")]).toEqual([200, "3"]);
      }
      await using later = await start(stage);
      expect((await later.get(token)).status).toBe(401);
    });

    test("refuses the next one as an unknown key, and tells the audit, the log, the metrics and Today", async () => {
      await using stage = await openStage(w, { terms });
      const token = stage.issuer.token({ run_id: "4711" });
      const [first] = [await stage.ask(token), await stage.ask(token)];
      const etag = first.headers.get("etag") ?? "";
      expect((await stage.client.ask(values, { key: token, headers: { "if-none-match": etag } })).status).toBe(304);
      expect((await stage.ask(token, `${values}&metadata_only=true`)).status).toBe(200);
      expect((await stage.ask(token, "/projects/other/variables?environment=production")).status).toBe(404);
      expect((await stage.ask(token)).status).toBe(200);
      expect(await countOf(stage)).toEqual([3]);
      const before = w.keyhole.gate.alarms.overuses;
      const reason = `trust ${stage.trust.id} gives a job 3 answers with values, and this job had them`;
      await stage.refuses(token, reason);
      expect((await stage.ask(token, `${values}&metadata_only=true`)).status).toBe(200);
      await w.keyhole.gate.alarms.flush();
      const rung = { project: "web", environment: "production", organization: stage.slug };
      const words = { jti: "token-1", sub: "job", run: "4711" };
      const of = ({ actor }: { readonly actor: object }) => "id" in actor && actor.id === stage.trust.id;
      expect((await overuses()).filter(of)).toMatchObject([{ ...rung, names: ["jti=token-1"], token: words }]);
      const logged = w.log.filter(({ event, trustId }) => event === "trust_overused" && trustId === stage.trust.id);
      expect(logged).toMatchObject([{ ...rung, ...words, job: "jti=token-1" }]);
      expect(w.keyhole.gate.alarms.overuses).toBe(before + 1);
      const today = (await (await visitorOf(w)).page("/")).html.replace(/<[^>]*>/g, "");
      expect(today).toContain(
        `asked for more than its trust gives a job: jti=token-1, in production of ${stage.slug}/web`,
      );
    });

    test("counts no answer without a value, so that a misspelt name costs the job nothing", async () => {
      await using stage = await openStage(w, { terms: { readsPerJob: 1 } });
      const token = stage.issuer.token();
      const statusOf = async (more: string) => (await stage.ask(token, `${values}${more}`)).status;
      for (const none of ["&keys=NOPE", "&prefix=NOPE", "&keys=NOPE,NOR"]) expect(await statusOf(none)).toBe(200);
      expect(await countOf(stage)).toEqual([]);
      expect(await statusOf("&keys=NOPE,A")).toBe(200);
      expect(await countOf(stage)).toEqual([1]);
      expect([await statusOf(""), await statusOf("&keys=A"), await statusOf("&keys=NOPE")]).toEqual([401, 401, 200]);
    });

    once("counts by the first claims that a token has whole, and takes none without", async () => {
      await using stage = await openStage(w);
      await revokeKey(w.admin, stage.trust.id);
      const perJob = { reads: 1, claims: [["check"], ["run", "attempt"]] };
      const asked = { organization: stage.slug, projects: ["web"], environments: ["production"] };
      const terms = { issuer: stage.issuer.url, audience, claims: { sub: "job" }, jwks: null, perJob };
      await createCredential(w.admin, asked, terms);
      const statusOf = async (claims: Claims) => (await stage.ask(stage.issuer.token(claims))).status;
      expect(await statusOf({ check: "1", run: "1", jti: "a" })).toBe(200);
      expect(await statusOf({ check: "1", run: "2", jti: "b" })).toBe(401);
      expect(await statusOf({ run: "1", attempt: "1" })).toBe(200);
      expect(await statusOf({ run: "1", attempt: "2" })).toBe(200);
      expect(await statusOf({ run: "1", attempt: "2", jti: "c" })).toBe(401);
      await stage.refuses(stage.issuer.token({ run: "1", attempt: 2 }), "it names no job by check, or run and attempt");
    });

    test("forgets the counts of jobs that have ended by the database's clock, and no others", async () => {
      await using stage = await openStage(w, { terms });
      await stage.ask(stage.issuer.token());
      const hourMs = 3_600_000;
      const prune = async (aheadMs: number) => {
        // Another server, whose clock is wrong.
        setSystemTime(Date.now() + aheadMs);
        await pruneJobReads(w.admin.database).finally(() => setSystemTime());
        return countOf(stage);
      };
      for (const aheadMs of [2 * hourMs, 40 * 24 * hourMs, -2 * hourMs]) expect(await prune(aheadMs)).toEqual([1]);
      const kept = await w.sql`select ends_at as at from job_reads where trust_id = ${stage.trust.id}`;
      expect(Math.round((Number(kept[0]?.["at"]) - (await clockOf(w.admin.database))) / hourMs)).toBe(1);
      await w.sql`update job_reads set ends_at = ends_at - ${hourMs} where trust_id = ${stage.trust.id}`;
      expect(await prune(-2 * hourMs)).toEqual([]);
    });

    test("keeps a count as long whatever the clock of the server that counts", async () => {
      await using stage = await openStage(w, { terms });
      const keptHours = async (jti: string, aheadMs: number) => {
        const token = stage.issuer.token({ jti, exp: Math.floor(Date.now() / 1000) + 900 });
        setSystemTime(Date.now() + aheadMs);
        expect((await stage.ask(token).finally(() => setSystemTime())).status).toBe(200);
        const [row] = await w.sql`select max(ends_at) as at from job_reads where trust_id = ${stage.trust.id}`;
        return Math.round((Number(row?.["at"]) - (await clockOf(w.admin.database))) / 360_000) / 10;
      };
      // A token is taken for ten minutes, so no clock that is further ahead counts anything.
      expect([await keptHours("a", 0), await keptHours("b", 540_000)]).toEqual([1, 1]);
    });

    once.each(["a\0", "\0", "\ud800", "\udc00", "x\udc00\ud800y"])("takes none that is named by %j", async (jti) => {
      await using stage = await openStage(w, { terms });
      await stage.refuses(stage.issuer.token({ jti }), "it names no job by jti");
      expect(await countOf(stage)).toEqual([]);
      expect((await stage.ask(stage.issuer.token({ jti: "\u{1f994}\u0001 é" }))).status).toBe(200);
    });
  });

  test("is the actor of its audit entries, with the token's own words made printable and short", async () => {
    await using stage = await openStage(w);
    const jti = `a\u001b[2J\u202e${"x".repeat(300)}`;
    await stage.ask(stage.issuer.token({ jti, run_id: "4711" }));
    const [entry] = await w.sql`select actor_type, actor, key_id, token from audit_entries
      where trust_id = ${stage.trust.id}`;
    expect(entry).toMatchObject({ actor_type: "trust", actor: stage.trust.id, key_id: null });
    const words = { jti: `a?[2J?${"x".repeat(250)}`, sub: "job", run: "4711" };
    expect(JSON.parse(String(entry?.["token"]))).toEqual(words);
    const [read] = (await listAudit(w.admin, { keyId: stage.trust.id })).filter(({ actor }) => actor.type === "trust");
    expect(read).toMatchObject({ actor: { type: "trust", id: stage.trust.id }, names: ["A"], token: words });
  });

  test("has its creation and revocation on record", async () => {
    await using stage = await openStage(w);
    await revokeKey(w.admin, stage.trust.id, "trust");
    const changes = await listAudit(w.admin, { keyId: stage.trust.id });
    expect(changes.map(({ action }) => action)).toEqual(["trust.create", "trust.revoke"]);
  });

  test("is listed among those who can read a project and those that expire, and is no key", async () => {
    await using stage = await openStage(w, { terms: { expiresInMs: 60_000 } });
    const { id } = stage.trust;
    expect((await listAccess(w.admin, `${stage.slug}/web`)).map((one) => [one.id, one.type])).toEqual([[id, "trust"]]);
    expect((await listExpiring(w.admin, 120_000)).map((one) => one.id)).toContain(id);
    expect((await listKeys(w.admin, stage.slug)).map((one) => [one.id, one.type])).toEqual([[id, "trust"]]);
    await expect(revokeKey(w.admin, id, "key")).rejects.toThrow("There is no key");
    await expect(rotateKey(w.admin, id, 0)).rejects.toThrow("There is no key");
  });

  describe("refuses, as it would refuse an unknown key, a token", () => {
    const claims: [what: string, changed: Claims | ((now: number) => Claims), reason: string][] = [
      ["for another audience", { aud: "https://other.example" }, "its audience is"],
      [
        "for us and another",
        { aud: [audience, "https://other.example"] },
        `its audience is the list ["${audience}","https://other.example"], not "${audience}" alone`,
      ],
      ["for nobody", { aud: undefined }, "its audience is missing"],
      ["for no list of us", { aud: [[audience]] }, "its audience is"],
      ["that never expires", { exp: undefined }, "its exp is missing"],
      ["whose expiry is a text", { exp: "9999999999" }, "its exp is not a number"],
      ["that has expired", (now) => ({ exp: now - 31 }), "it has expired"],
      ["without the time of its issue", { iat: undefined }, "its iat is missing"],
      ["of over ten minutes ago", (now) => ({ iat: now - 631 }), "issued more than 10 minutes ago"],
      ["of the future", (now) => ({ iat: now + 60 }), "issued in the future"],
      ["that is not valid yet", (now) => ({ nbf: now + 60 }), "it is not valid yet"],
      ["of another repository of the same name", { repository_id: "2", repository: "acme/web" }, '_id is "2"'],
      ["whose claim is a boolean", { repository_id: true }, "its claim repository_id is the boolean true, not text"],
      ["whose claim is a number", { repository_id: 1 }, "its claim repository_id is the number 1, not text"],
      ["whose claim is null", { repository_id: null }, "its claim repository_id is null, not text"],
      ["whose claim is a list", { repository_id: ["1"] }, 'its claim repository_id is the list ["1"], not text'],
      ["whose claim is an object", { repository_id: { "1": "1" } }, 'is the object {"1":"1"}, not text'],
      ["whose claim is another text", { repository_id: "1 " }, "its claim repository_id is"],
      ["without a claim", { repository_id: undefined }, "its claim repository_id is missing"],
      ["of a stranger's change request", { event_name: "pull_request_target" }, "(pull_request_target); a trust takes"],
      ["of a workflow that a stranger's started", { event_name: "workflow_run" }, "the claim event_name=workflow_run"],
      ["of a stranger's comment", { event_name: "issue_comment" }, "somebody without write access can start its job"],
      ["of a merge request", { pipeline_source: "merge_request_event" }, "claim pipeline_source=merge_request_event"],
      ["of a fork's branch", { build_branch: "thief:main" }, "the claim build_branch=thief:main"],
      ["of a fork's pull request", { [vcsRef]: "refs/heads/pull/7" }, `the claim ${vcsRef}=refs/heads/pull/7`],
      ["of no issuer", { iss: undefined }, "it names no issuer"],
      ["of a list of issuers", { iss: ["x"] }, "it names no issuer"],
      ["of an issuer that no trust names", { iss: "https://other.example" }, "no trust names its issuer"],
    ];
    once.each(claims)("%s", async (_, changed, reason) => {
      const now = Math.floor(Date.now() / 1000);
      await shared.refuses(shared.issuer.token(typeof changed === "function" ? changed(now) : changed), reason);
    });

    /** The parts may be texts, which are no good JSON. */
    const by = (key: SigningKey, payload: Claims | string, header: Claims | string = {}) =>
      compact(typeof header === "string" ? header : { alg: "ES256", kid: "one", ...header }, payload, key);
    const other = newSigningKey("ES256");
    const [unsigned, duplicates] = ["its signature is not by the issuer's key", "objects without duplicate members"];
    const twice = String.raw`{"x":[{"a":"{:}","\u0061":2}],`;
    type Forge = (issuer: Issuer, own: SigningKey, payload: string) => string;
    const forgeries: [what: string, forge: Forge, reason: string][] = [
      [
        "without a signature, by the algorithm none",
        (_, __, payload) => `${encoded({ alg: "none" })}.${encoded(payload)}.AA`,
        'its algorithm "none" is none of',
      ],
      [
        "by HMAC with the public key as its secret",
        (_, { publicKey }, payload) => {
          const signed = `${encoded({ alg: "HS256", kid: "one" })}.${encoded(payload)}`;
          const pem = publicKey.export({ format: "pem", type: "spki" });
          return `${signed}.${createHmac("sha256", pem).update(signed).digest("base64url")}`;
        },
        'its algorithm "HS256" is none of',
      ],
      ["by another key that gives itself the same kid", (_, __, payload) => by(other, payload), unsigned],
      ["that brings its own key along", (_, __, text) => by(other, text, { jwk: publicJwk("one", other) }), unsigned],
      [
        "with a header that must be understood and is not",
        (_, own, payload) => by(own, payload, { crit: ["x"], x: 1 }),
        "it cannot be verified",
      ],
      [
        "whose payload was changed",
        (issuer) => issuer.token().replace(/\..*\./, `.${encoded(usualClaims(issuer.url, { jti: "other" }))}.`),
        unsigned,
      ],
      ["with a claim twice", (_, own, text) => by(own, text.replace("{", '{"repository_id":"2",')), duplicates],
      [
        "whose claim is a number that is no double",
        (_, own, payload) => by(own, payload.replace('y_id":"1"', 'y_id":9007199254740993')),
        "its claim repository_id is the number 9007199254740993, not text",
      ],
      [
        "with a member twice, spelled in two ways, deep inside",
        (_, own, payload) => by(own, payload.replace("{", twice)),
        duplicates,
      ],
      ["with two algorithms", (_, own, text) => by(own, text, '{"alg":"none","alg":"ES256","kid":"one"}'), duplicates],
      [
        "that is not UTF-8",
        (issuer) => {
          const payload = Buffer.from(JSON.stringify(usualClaims(issuer.url, { x: "\u00ff" })), "latin1");
          return issuer.token().replace(/\..*\./, `.${payload.toString("base64url")}.`);
        },
        duplicates,
      ],
      ["of 8 KiB and a byte", (issuer) => sized(issuer, 8193), "malformed key"],
      ["of four parts", (issuer) => `${issuer.token()}.AA`, "malformed key"],
      ["of two parts", (issuer) => issuer.token().split(".").slice(0, 2).join("."), "malformed key"],
    ];
    once.each(forgeries)("%s", async (_, forge, reason) => {
      const { issuer } = shared;
      const payload = JSON.stringify(usualClaims(issuer.url));
      await shared.refuses(forge(issuer, issuer.keys.get("one") as SigningKey, payload), reason);
    });

    once("beyond 8 KiB alone: one of just that size is read", async () => {
      expect((await shared.ask(sized(shared.issuer, 8192))).status).toBe(200);
    });

    once("whose key has left the issuer's set, from the next refresh on", async () => {
      await using stage = await openStage(w);
      const token = stage.issuer.token();
      expect((await stage.ask(token)).status).toBe(200);
      stage.issuer.keys.delete("one");
      stage.issuer.keys.set("two", newSigningKey("ES256"));
      // A token by the new key makes the server ask again.
      stage.aheadMs = 31_000;
      expect((await stage.ask(stage.issuer.token({}, "two"))).status).toBe(200);
      await stage.refuses(token, "the issuer has no such key");
    });

    once.each([["one"], [undefined]])("by a key that its issuer has replaced, with kid: %p", async (kid) => {
      await using stage = await openStage(w);
      const { url, keys } = stage.issuer;
      stage.issuer.answer = (path) => {
        const all = [...keys.values()].map((key) => ({ ...publicJwk("one", key), kid }));
        return path === "/jwks" ? Response.json({ keys: all }) : undefined;
      };
      const made = () => compact({ alg: "ES256", kid }, usualClaims(url), keys.get("one") as SigningKey);
      const old = made();
      expect((await stage.ask(old)).status).toBe(200);
      keys.set("one", newSigningKey("ES256"));
      const token = made();
      await stage.refuses(token, "its signature is not by the issuer's key");
      stage.aheadMs = 31_000;
      expect((await stage.ask(token)).status).toBe(200);
      await stage.refuses(old, "its signature is not by the issuer's key");
      expect(stage.issuer.asked.length).toBe(4);
    });

    once("by the key of another issuer that has the same kid", async () => {
      await using stage = await openStage(w);
      await using other = startIssuer();
      await stage.add({ issuer: other.url });
      const forged = by(other.keys.get("one") as SigningKey, usualClaims(stage.issuer.url));
      await stage.refuses(forged, "its signature is not by the issuer's key");
      expect((await stage.ask(other.token())).status).toBe(200);
    });

    test("that is used again after its trust was revoked, at once", async () => {
      await using stage = await openStage(w);
      const token = stage.issuer.token();
      expect((await stage.ask(token)).status).toBe(200);
      await revokeKey(w.admin, stage.trust.id, "trust");
      await stage.refuses(token, "no trust names its issuer");
    });

    test("that fits another trust by now pays once, and that one from then on", async () => {
      await using stage = await openStage(w);
      const token = stage.issuer.token();
      const remaining = async (one: string) => (await stage.ask(one)).headers.get("ratelimit")?.replace(/;t=.*/, "");
      expect(await remaining(token)).toBe('"value";r=29');
      await revokeKey(w.admin, stage.trust.id, "trust");
      await stage.add();
      // The trust that it fitted before pays: which one it fits now is known after the lookup.
      expect(await remaining(token)).toBe('"value";r=28');
      expect(await remaining(token)).toBe('"value";r=29');
      expect(await remaining(stage.issuer.token({ jti: "another" }))).toBe('"value";r=28');
    });

    test("costs the server a few megabytes at most, whatever SQL wrote into the rows of trusts", async () => {
      await using stage = await openStage(w);
      const [row] = await w.sql`select * from api_keys where id = ${stage.trust.id}`;
      const columns = Object.keys(row ?? {});
      const text = `insert into api_keys (${columns.join(", ")}) values (${columns.map(() => "?").join(", ")})`;
      for (let at = 0; at < 30; at++) {
        // The first one is larger than any that Keyhole writes, and must not hide the others.
        const projects = JSON.stringify({ web: "x".repeat(at === 0 ? 300_000 : 250_000) });
        const made = { ...row, id: `0000000${at}-0000`.padEnd(36, "0"), digest: randomBytes(32), projects };
        await w.run(text, Object.values(made));
      }
      const listed = await trustFinder(w.keyhole.database)([String(row?.["found_by"])]);
      await w.run("delete from api_keys where id like '0000000%'");
      expect(listed.length).toBeWithin(10, 20);
      expect(listed.reduce((bytes, { projects }) => bytes + (projects?.length ?? 0), 0)).toBeLessThan(4 * 1024 * 1024);
    });

    test("of a trust that was revoked after the list of trusts was read", async () => {
      await using stage = await openStage(w);
      const own = stage.gate();
      const token = stage.issuer.token();
      const listed = await own.findTrusts(readToken(token));
      const { ask } = w.client(({ gate }) => ({ gate: { ...gate, ...own, findTrusts: async () => listed } }));
      expect((await ask(values, { key: token })).status).toBe(200);
      await revokeKey(w.admin, stage.trust.id, "trust");
      expect((await ask(values, { key: token })).status).toBe(401);
      expect(w.log.at(-1)?.["reason"]).toBe(`trust ${stage.trust.id} is expired or revoked`);
    });

    test("of a trust that has expired", async () => {
      await using stage = await openStage(w, { terms: { expiresInMs: -1 } });
      await stage.refuses(stage.issuer.token(), "no trust names its issuer");
    });

    test("that fits two trusts, until one of them is revoked", async () => {
      await using stage = await openStage(w);
      const wider = await stage.add({ claims: new Map([["sub", "job"]]) });
      await stage.refuses(stage.issuer.token(), "it fits several trusts");
      await revokeKey(w.admin, wider.id, "trust");
      expect((await stage.ask(stage.issuer.token())).status).toBe(200);
    });

    test.each<[what: string, edit: (terms: string) => string]>([
      ["wider claims", (terms) => terms.replace('"repository_id":"1"', '"repository_id":"2"')],
      ["another issuer", (terms) => terms.replace(/127\.0\.0\.1/, "localhost")],
      ["keys of its writer", (terms) => terms.replace(/"jwks":null/, `"jwks":${JSON.stringify('{"keys":[{}]}')}`)],
      ["no JSON", () => "{"],
      ["20 KiB", (terms) => terms.replace("}", `}${" ".repeat(20_000)}`)],
    ])("of a trust to which SQL gave %s", async (_, edit) => {
      await using stage = await openStage(w);
      const [row] = await w.sql`select trust from api_keys where id = ${stage.trust.id}`;
      const edited = edit(String(row?.["trust"]));
      expect(edited).not.toBe(row?.["trust"] as string);
      const foundBy = foundByOf(parseTerms(edited) ?? { issuer: stage.issuer.url, claims: {} });
      await w.sql`update api_keys set trust = ${edited}, found_by = ${foundBy} where id = ${stage.trust.id}`;
      await stage.refuses(stage.issuer.token({ repository_id: "2" }), "no trust names its issuer");
      await stage.refuses(stage.issuer.token(), "no trust names its issuer");
      const made = stage.issuer.url.replace("127.0.0.1", "localhost");
      expect(await directoryOf(w).find(readToken(stage.issuer.token({ iss: made })))).toEqual([]);
      const [damaged] = await listKeys(w.admin, stage.slug);
      expect(damaged?.status).toBe("damaged");
    });

    test("of a key's row that SQL made a trust of", async () => {
      await using stage = await openStage(w);
      const key = await w.key(await w.organization());
      const [row] = await w.sql`select trust from api_keys where id = ${stage.trust.id}`;
      await w.sql`delete from key_uses where key_id = ${stage.trust.id}`;
      await w.sql`delete from api_keys where id = ${stage.trust.id}`;
      await w.sql`update api_keys set trust = ${row?.["trust"]} where id = ${key.id}`;
      await stage.refuses(stage.issuer.token(), "no trust names its issuer");
    });
  });

  once("is refused 429 at the same count as an unknown key, for each token", async () => {
    await using stage = await openStage(w);
    const bad = stage.issuer.token({ aud: "other" });
    const statuses: number[] = [];
    for (let n = 0; n < 12; n++) statuses.push((await stage.ask(bad)).status);
    expect(statuses).toEqual([...Array<number>(10).fill(401), 429, 429]);
    expect((await stage.ask(stage.issuer.token())).status).toBe(200);
  });

  describe("whose issuer", () => {
    // How else an answer can be wrong: issuer-keys.test.ts.
    const discovery = (issuer: string, url: string) => Response.json({ issuer, jwks_uri: `${url}/jwks` });
    const troubles: [what: string, answer: (path: string, url: string) => Response | undefined][] = [
      ["redirects", (path) => (path === "/jwks" ? Response.redirect("/elsewhere", 302) : undefined)],
      ["redirects its discovery", (path) => (path !== "/jwks" ? Response.redirect("/jwks", 307) : undefined)],
      ["names another issuer", (path, url) => (path !== "/jwks" ? discovery("https://other.example", url) : undefined)],
      ["fails", () => new Response("no", { status: 500 })],
      ["serves no key set", (path) => (path === "/jwks" ? Response.json({}) : undefined)],
    ];
    once.each(troubles)("%s: its tokens are refused, and nobody else's", async (_, answer) => {
      await using stage = await openStage(w);
      const { issuer } = stage;
      issuer.answer = (path) => answer(path, issuer.url);
      await using well = startIssuer();
      await stage.add({ issuer: well.url });
      await stage.refuses(issuer.token(), "the issuer's keys are not known now");
      expect((await stage.ask(well.token())).status).toBe(200);
      // It is well again, and asked again at most every 30 s.
      issuer.answer = () => undefined;
      const asked = issuer.asked.length;
      await stage.refuses(issuer.token(), "the issuer's keys are not known now");
      expect(issuer.asked.length).toBe(asked);
      stage.aheadMs = 31_000;
      expect((await stage.ask(issuer.token())).status).toBe(200);
    });

    once("hangs holds up neither its own requests for long nor new keys", async () => {
      await using stage = await openStage(w, { waitMsMax: 1000 });
      const key = await w.key(await w.organization());
      const { promise, resolve } = Promise.withResolvers<Response>();
      const asked = Promise.withResolvers<void>();
      stage.issuer.answer = () => {
        asked.resolve();
        return promise;
      };
      const waiting = Array.from({ length: 200 }, (_, n) => stage.ask(stage.issuer.token({ jti: String(n) })));
      await asked.promise;
      expect((await stage.client.ask("/organization", { key })).status).toBe(200);
      for (const answer of await Promise.all(waiting)) expect([401, 429]).toContain(answer.status);
      expect(stage.issuer.asked.length).toBe(1);
      resolve(new Response("late"));
    });

    once("is asked for nothing because of tokens that no trust is for", async () => {
      await using stage = await openStage(w);
      await using stranger = startIssuer();
      await stage.refuses(stranger.token(), "no trust names its issuer");
      expect([stranger.asked, stage.keysWanted]).toEqual([[], 0]);
    });

    once("is never asked if the trust has its keys pinned, and other keys are not taken", async () => {
      const issuer = startIssuer();
      const jwks = JSON.stringify({ keys: [publicJwk("one", issuer.keys.get("one") as SigningKey)] });
      await using stage = await openStage(w, { terms: { issuer: issuer.url, jwks } });
      await issuer[Symbol.asyncDispose]();
      expect((await stage.ask(issuer.token())).status).toBe(200);
      issuer.keys.set("one", newSigningKey("ES256"));
      await stage.refuses(issuer.token(), "its signature is not by the issuer's key");
      expect([issuer.asked, stage.keysWanted]).toEqual([[], 0]);
    });
  });

  const project = "oidc.circleci.com/project-id";
  const branch = "oidc.circleci.com/vcs-ref";
  const other = "{99999999-0000-4000-8000-000000000000}";
  const rows: [name: string, job: Claims & { iss: string; aud: string }, pins: string[], others: Claims[]][] = [
    [
      "Bitbucket, by repository and branch",
      bitbucketClaims,
      ["repositoryUuid", "branchName"],
      [{ repositoryUuid: other }, { branchName: "feature" }, { branchName: undefined }],
    ],
    [
      "Bitbucket, by workspace and deployment environment",
      bitbucketClaims,
      ["workspaceUuid", "deploymentEnvironmentUuid"],
      [{ workspaceUuid: other }, { deploymentEnvironmentUuid: other }, { deploymentEnvironmentUuid: undefined }],
    ],
    [
      "CircleCI, by project and branch",
      circleClaims,
      [project, branch],
      [{ [project]: other.slice(1, -1) }, { [branch]: "refs/heads/pull/7" }, { [branch]: undefined }],
    ],
  ];
  once.each(rows)(
    "for a provider whose subjects name runs or people: takes its jobs, in every run, and no others: %s",
    async (_, job, pins, others) => {
      const key = newSigningKey("RS256");
      const claims = new Map(pins.map((pin) => [pin, String(job[pin])]));
      const jwks = JSON.stringify({ keys: [publicJwk("one", key)] });
      await using stage = await openStage(w, { terms: { issuer: job.iss, audience: job.aud, claims, jwks } });
      const token = (changed: Claims = {}) => {
        const now = Math.floor(Date.now() / 1000);
        return compact({ alg: "RS256", kid: "one" }, { ...job, iat: now, exp: now + 3600, ...changed }, key);
      };
      expect((await stage.ask(token())).status).toBe(200);
      expect((await stage.ask(token({ sub: "another run", stepUuid: other }))).status).toBe(200);
      for (const changed of others) {
        const isPin = Object.hasOwn(changed, pins[0] ?? "");
        await stage.refuses(token(changed), isPin ? "no trust names its issuer and its " : "its claim");
      }
      await stage.refuses(token({ aud: "https://other.example" }), "its audience");
      const [entry] = await listAudit(w.admin, { keyId: stage.trust.id, actions: ["variables.read"] });
      expect(entry?.token?.run).toBe((job["pipelineUuid"] ?? job["oidc.circleci.com/job-id"]) as string);
      await revokeKey(w.admin, stage.trust.id);
    },
  );

  once("that has the name of another that is valid is created with a warning", async () => {
    const { organization } = await w.place();
    const issuer = "https://issuer.example";
    const add = async (sub: string) => {
      const claims = new Map([["sub", sub]]);
      const reach = { organization: organization.slug, projects: null, environments: null };
      return createTrust(w.admin, { ...reach, name: "web-deploy", issuer, audience, claims });
    };
    const first = await add("1");
    const named = "Another trust is called web-deploy already.";
    expect(first.warnings.filter((one) => one.startsWith(named))).toEqual([]);
    expect((await add("2")).warnings).toContainEqual(expect.stringContaining(named));
  });

  describe("is not created", () => {
    const github = "https://token.actions.githubusercontent.com";
    const [bitbucket, circle] = [bitbucketClaims.iss, circleClaims.iss];
    const [gitlab, kite, hcp] = ["https://gitlab.com", "https://agent.buildkite.com", "https://app.terraform.io"];
    const ids = { repository_id: "1", project_id: "1", organization_id: "1", repositoryUuid: "{1f2e}" };
    const project = "oidc.circleci.com/project-id";
    const { aws, google, azure } = clouds;
    const providers: typeof passing = [
      ["GitHub by a name", github, { repository: "acme/web" }, "GitHub needs --claim repository_id"],
      ["GitHub by its subject", github, { sub: "repo:acme/web:ref:main" }, "GitHub needs"],
      ["an enterprise's GitHub", "https://ghe.example/_services/token", { sub: "x" }, "GitHub needs"],
      ["GitLab by a path", gitlab, { project_path: "acme/web" }, "GitLab needs --claim project_id"],
      ["a GitLab of one's own", "https://gitlab.acme.example", { sub: "x" }, "GitLab needs"],
      ["Buildkite by a slug", kite, { organization_slug: "acme" }, "Buildkite needs --claim organization_id"],
      ["Bitbucket by a name", bitbucket, { branchName: "main" }, "Bitbucket needs --claim repo"],
      ["CircleCI by a name", circle, { "oidc.circleci.com/vcs-origin": "x" }, "CircleCI needs"],
      ["HCP Terraform by a name", hcp, { terraform_workspace_name: "web" }, "HCP Terraform needs"],
      [
        "a session of AWS",
        aws,
        { sub: "arn:aws:sts::123456789012:assumed-role/web/i-0" },
        "The claim sub of AWS is the ARN",
      ],
      ["a user of AWS", aws, { sub: "arn:aws:iam::123456789012:user/ana" }, "not of a session or a user"],
      ["Google by an address", google, { email: "web@acme.iam.gserviceaccount.com" }, "Google needs --claim sub"],
      [
        "Google by an address as subject",
        google,
        { sub: "web@acme.iam.gserviceaccount.com" },
        "The claim sub of Google is a",
      ],
      ["Azure by an application", azure, { appid: "1f2e0a6b-2222-4000-8000-000000000002" }, "Azure needs --claim oid"],
    ];
    const passing: [name: string, issuer: string, claims: Record<string, string>, instead: string][] = [
      ["Bitbucket", bitbucket, { sub: bitbucketClaims.sub }, "repositoryUuid=… or --claim workspaceUuid=… instead"],
      ["Bitbucket, with its id", bitbucket, { ...ids, sub: bitbucketClaims.sub }, "repositoryUuid"],
      ["Bitbucket, by the step", bitbucket, { ...ids, stepUuid: bitbucketClaims.stepUuid }, "repositoryUuid"],
      ["CircleCI", circle, { sub: circleClaims.sub }, "oidc.circleci.com/project-id=… instead"],
      ["CircleCI, without a branch", circle, { sub: "org/1/project/2/user/3", [project]: "2" }, project],
      ["CircleCI, by the job", circle, { [project]: "2", "oidc.circleci.com/job-id": "3" }, project],
      ["GitHub", github, { ...ids, run_id: "17" }, "repository_id"],
      ["GitLab", gitlab, { ...ids, job_id: "17" }, "project_id"],
      ["Buildkite", kite, { ...ids, sub: "organization:a:pipeline:b:ref:c:commit:9f3143d6:step:d" }, "organization_id"],
      ["HCP Terraform", hcp, { sub: "job", terraform_run_id: "run-1" }, "terraform_workspace_id"],
    ];
    const pem = { keys: [{ kty: "EC", crv: "P-256", x: "AA", y: "AA", d: "AA" }] };
    const good = publicJwk("one", newSigningKey("ES256"));
    const long = { ...good, kid: "k".repeat(100) };
    const setOf = (changed: object) => JSON.stringify({ keys: [{ ...good, ...changed }] });
    const shortRsa = generateKeyPairSync("rsa", { modulusLength: 1024 }).publicKey.export({ format: "jwk" });
    const unusable = "The key set has no key that can be used";
    const refused: [what: string, terms: Record<string, unknown>, says: string][] = [
      ["for others without a subject", { claims: { email: "a@b.example" } }, "This issuer needs --claim sub"],
      ...providers.map(([name, issuer, claims, says]): (typeof refused)[number] => {
        return [`for ${name}`, { issuer, claims }, says];
      }),
      ...passing.map(([name, issuer, claims, instead]): (typeof refused)[number] => {
        const says = `names a run, a commit or a person, so it fits no later job. Use --claim ${instead}`;
        return [`that fits a single run or person of ${name}`, { issuer, claims }, says];
      }),
      ["with a wildcard", { claims: { sub: "job", ref: "refs/heads/*" } }, "there are no wildcards"],
      ["with a claim of an example", { claims: { sub: "job", organization_id: "0184990a-…" } }, "id has a …, where an"],
      ["with a claim that is judged anyway", { claims: { sub: "job", aud: "a" } }, "The claim aud is not an identity"],
      ["with an empty claim", { claims: { sub: "" } }, "The claim sub must have 1 to 2048 characters"],
      ["with control characters", { claims: { sub: "a\u001b" } }, "no control characters"],
      ["without an audience", { audience: "" }, "The audience must have 1 to 512 characters"],
      ["for an issuer over plain http", { issuer: "http://issuer.example" }, "The issuer must be an https URL"],
      ["for an issuer with a query", { issuer: "https://issuer.example/?x" }, "The issuer must be an https URL"],
      ["for an issuer that ends in a blank", { issuer: "https://issuer.example " }, "The issuer has a blank"],
      ["for an issuer with a blank in it", { issuer: "https://issuer.example/a b" }, "The issuer has a blank"],
      ["for a pinned issuer with a blank", { issuer: "\u00a0issuer", jwks: "{}" }, "The issuer has a blank"],
      ["with a key for encryption alone", { jwks: setOf({ use: "enc" }) }, unusable],
      ["with a key for another algorithm", { jwks: setOf({ alg: "ES384" }) }, unusable],
      ["with a short key", { jwks: JSON.stringify({ keys: [shortRsa] }) }, unusable],
      ["with a key that is no point", { jwks: setOf({ x: "AA" }) }, unusable],
      ["with a private key", { jwks: JSON.stringify(pem) }, "The key set holds a private or a shared key"],
      ["with a key set that is none", { jwks: "{}" }, "it is not a JSON Web Key Set"],
      ["with a key set that is no JSON", { jwks: "{" }, "it is not JSON"],
      ["with reads for Google", { issuer: google, claims: { sub: "1" }, readsPerJob: 3 }, "Google name no job"],
      ["with reads for SPIFFE", { claims: { sub: "spiffe://example.org/web" }, readsPerJob: 3 }, "SPIFFE name no job"],
      ["with a long key set", { jwks: JSON.stringify({ keys: Array(95).fill(long) }) }, "at most 16 KiB"],
    ];
    once.each(refused)("%s", async (_, terms, says) => {
      const claims = new Map(Object.entries((terms["claims"] ?? { sub: "job" }) as Record<string, string>));
      await expect(shared.add({ ...terms, claims })).rejects.toThrow(says);
      expect(await listKeys(w.admin, shared.slug)).toHaveLength(1);
    });

    test.each([
      [1000, undefined],
      // Of 16 KiB each, servers would not look at the last one.
      [256, JSON.stringify({ keys: [], filler: "k".repeat(16_000) })],
    ])("beyond %d valid ones", async (count, jwks) => {
      await using stage = await openStage(w);
      const clear = await copied(w, stage.trust.id, count, jwks === undefined ? {} : { jwks });
      const full = /^\d+ trusts have this issuer and claim already\. Servers look at 1000, or at 4 MiB/;
      await expect(stage.add()).rejects.toThrow(full);
      // Servers would not look at one more, whoever makes it.
      const { id, slug } = await w.organization();
      const jwksOfIts = JSON.stringify({ keys: [publicJwk("one", newSigningKey("ES256"))] });
      const asked = { ...reach, organization: slug, issuer: stage.issuer.url, jwks: jwksOfIts };
      await expect(createTrust(personOf(id), asked)).rejects.toThrow(full);
      // A claim that fewer have has room.
      await createTrust(personOf(id), { ...asked, claims: new Map([["sub", "another"]]) });
      await clear();
    });
  });

  describe("of a person who is no operator", () => {
    test.each([
      ...["http://127.0.0.1:5432", "http://localhost:5432", "https://127.0.0.1:5432", "https://10.0.0.1"],
      ...["https://[::1]", "https://169.254.169.254", "https://bastion", "https://vault.internal"],
      "https://kubernetes.default.svc.cluster.local",
    ])("names no issuer on this machine or in its network, unless its keys are given: %s", async (issuer) => {
      const { id, slug: organization } = await w.organization();
      const create = (more: object = {}) => createTrust(personOf(id), { ...reach, organization, issuer, ...more });
      await expect(create()).rejects.toThrow("must be a public https URL");
      const jwks = JSON.stringify({ keys: [publicJwk("one", newSigningKey("ES256"))] });
      expect((await create({ jwks })).trust.status).toBe("active");
      const { trust } = await createTrust(w.admin, { ...reach, organization, issuer: `${issuer}/operator`, jwks });
      expect(trust.status).toBe("active");
    });

    test("names an issuer that servers ask on the internet alone, until an operator names it too", async () => {
      const { id, slug: organization } = await w.organization();
      const asked = { ...reach, organization, issuer: "https://issuer.example/of-a-person" };
      const token = compact({ alg: "ES256", kid: "one" }, usualClaims(asked.issuer), newSigningKey("ES256"));
      const isPublic = async () => {
        const seen: boolean[] = [];
        const findIssuerKeys = async (_: string, isPublic: boolean) => void seen.push(isPublic);
        const findTrusts = (token: Token) => directoryOf(w).find(token);
        const { ask } = w.client(({ gate }) => ({ gate: { ...gate, findTrusts, findIssuerKeys } }));
        await ask(values, { key: token });
        return seen[0];
      };
      await createTrust(personOf(id), asked);
      const jwks = JSON.stringify({ keys: [publicJwk("one", newSigningKey("ES256"))] });
      await createTrust(w.admin, { ...asked, jwks });
      expect(await isPublic()).toBe(true);
      const { trust } = await createTrust(w.admin, { ...asked, audience: "https://other.example" });
      expect(await isPublic()).toBe(false);
      await revokeKey(w.admin, trust.id);
      expect(await isPublic()).toBe(true);
    });

    test("leaves room for other organizations and for operators", async () => {
      const { id, slug: organization } = await w.organization();
      const other = await w.organization();
      const asked = { ...reach, organization, issuer: "https://issuer.example" };
      const { trust } = await createTrust(personOf(id), asked);
      const full = `${organization} has as many trusts with this issuer and claim as persons may make: revoke one, or ask an operator.`;
      for (const [count, long] of [
        [199, "x"],
        [40, "x".repeat(14_000)],
      ] as const) {
        const clear = await copied(w, trust.id, count, { claims: { sub: "job", long } });
        await expect(createTrust(personOf(id), asked)).rejects.toThrow(full);
        await createTrust(personOf(other.id), { ...asked, organization: other.slug, audience: other.slug });
        await createTrust(w.admin, asked);
        await clear();
        await createTrust(personOf(id), asked);
      }
    });
  });

  describe("is created with a warning", () => {
    const warningsFor = async (w: World, terms: Partial<NewTrust>) => {
      const organization = await w.organization();
      const reach = { organization: organization.slug, projects: null, environments: null };
      const asked = { ...reach, audience: organization.slug, ...terms } as NewTrust;
      return (await createTrust(w.admin, asked)).warnings.join(" ");
    };
    const github = "https://token.actions.githubusercontent.com";
    const [gitlab, terraform] = ["https://gitlab.com", "https://app.terraform.io"];
    const [kite, bitbucket, circle] = ["https://agent.buildkite.com", bitbucketClaims.iss, circleClaims.iss];
    const [project, ref] = ["oidc.circleci.com/project-id", "oidc.circleci.com/vcs-ref"];
    const main = "refs/heads/main";
    const inProduction = { repository_id: "3", environment: "production" };
    const onlyBranch = /Only a branch limits .* Safer: .*nvironment/;
    const loose = /No claim binds a branch or a deployment environment/;
    const rows: [what: string, issuer: string, claims: Record<string, string>, warns: RegExp | ""][] = [
      ["every branch of a repository", github, { repository_id: "1" }, loose],
      ["every repository of an owner", github, { repository_owner_id: "1" }, loose],
      ["one branch", github, { repository_id: "2", ref: main }, onlyBranch],
      ["one deployment environment", github, { repository_id: "3", environment: "production" }, ""],
      ["a subject with its branch", github, { repository_id: "4", sub: `repo:a/b:ref:${main}` }, onlyBranch],
      ["a workflow at a branch", github, { ...inProduction, job_workflow_ref: `a/b/c.yml@${main}` }, /a branch or a /],
      ["a workflow at a commit", github, { ...inProduction, job_workflow_ref: `a/b/c.yml@${"0a".repeat(20)}` }, ""],
      ["an event of GitHub", github, { ...inProduction, event_name: "workflow_run" }, ""],
      ["no event of GitHub", github, { ...inProduction, event_name: "pull-request" }, /has no event "pull-request"/],
      ["a subject without one", github, { repository_id: "5", sub: "repo:a/b:pull_request" }, loose],
      ["every branch of a GitLab project", gitlab, { project_id: "1" }, loose],
      ["every protected branch in GitLab", gitlab, { project_id: "9", ref_protected: "true" }, onlyBranch],
      ["every branch in Buildkite", kite, { organization_id: "1" }, loose],
      ["a branch in Buildkite", kite, { organization_id: "2", build_branch: "main" }, /their owner before the branch/],
      ["every branch in Bitbucket", bitbucket, { repositoryUuid: "{1}" }, loose],
      ["every repository of a workspace", bitbucket, { workspaceUuid: "{1}" }, loose],
      ["one branch in Bitbucket", bitbucket, { repositoryUuid: "{2}", branchName: "main" }, onlyBranch],
      ["one environment", bitbucket, { repositoryUuid: "{3}", deploymentEnvironmentUuid: "{4}" }, ""],
      ["every branch in CircleCI", circle, { [project]: "1" }, loose],
      ["one branch in CircleCI", circle, { [project]: "2", [ref]: main }, ""],
      ["every run of a workspace", terraform, { terraform_workspace_id: "ws-1" }, loose],
      ["one phase of it", terraform, { terraform_workspace_id: "ws-2", terraform_run_phase: "apply" }, ""],
      ["a role of AWS", clouds.aws, { sub: "arn:aws:iam::123456789012:role/web" }, /^Whoever may assume this role/],
      ["a service account of Google", clouds.google, { sub: "112233445566778899001" }, /^Every machine with this/],
      [
        "a machine of Azure",
        clouds.azure,
        { oid: "1f2e0a6b" },
        /^Azure gives a machine the same token for up to a day/,
      ],
      ["a service account, which has no branch", "https://k8s.example", { sub: "system:serviceaccount:a:b" }, ""],
    ];
    const lookalikes: typeof rows = [
      ["Forgejo", "https://forgejo.example", { sub: `repo:acme/web:ref:${main}` }, /has the form of GitHub's/],
      ["a GitLab", "https://git.example", { sub: "project_path:acme/web:ref_type:branch:ref:main" }, /project_id=…/],
      ["Buildkite", "https://ci.example", { sub: `organization:acme:pipeline:web:ref:${main}` }, /organiz/],
      ["one with its id", "https://git.example", { sub: `repo:a/b:ref:${main}`, repository_id: "1" }, onlyBranch],
      [
        "HCP Terraform",
        terraform,
        { sub: "organization:acme:project:p:workspace:w:run_phase:apply" },
        /has the form of HCP Terraform's.*terraform_workspace_id=…/,
      ],
    ];
    const named = lookalikes.map(([what, ...rest]): (typeof rows)[number] => {
      return [`if the form of its subject is all that is known: ${what}`, ...rest];
    });
    once.each([...rows, ...named])("or without one: %s", async (_, issuer, claims, warns) => {
      const warnings = await warningsFor(w, { issuer, claims: new Map(Object.entries(claims)) });
      if (warns === "") expect(warnings).toBe("");
      else expect(warnings).toMatch(warns);
    });

    once("or a count if it brings keys, of which one cannot be used", async () => {
      const keys = ["RS256", "ES256", "ES384", "EdDSA"].map((alg, at) => publicJwk(`${at}`, newSigningKey(alg)));
      const jwks = JSON.stringify({ keys: [...keys, { ...keys[0], use: "enc" }] });
      const asked = { ...reach, organization: shared.slug, issuer: "kubernetes", jwks };
      const created = await createTrust(w.admin, asked);
      expect(created.keys).toEqual({ usable: 4, total: 5 });
    });

    once("if a token may fit another trust as well", async () => {
      await using stage = await openStage(w);
      const claims = new Map(Object.entries({ sub: "job", repository_id: "2" }));
      const terms = { issuer: stage.issuer.url, audience, claims };
      expect(await warningsFor(w, terms)).toBe("");
      claims.delete("repository_id");
      expect(await warningsFor(w, terms)).toContain(`both this trust and trust ${stage.trust.id} is refused`);
    });
  });

  once("is parsed once, and not each time that its row is read again", async () => {
    const jwks = JSON.stringify({ keys: [publicJwk("one", newSigningKey("ES256"))] });
    await using stage = await openStage(w, { terms: { jwks } });
    let nowMs = 0;
    const trusts = directoryOf(w, undefined, () => nowMs);
    const token = readToken(stage.issuer.token());
    const parse = spyOn(JSON, "parse");
    const parsed = () => parse.mock.calls.filter(([text]) => /crv.*P-256/.test(text)).length;
    await trusts.find(token);
    expect(parsed()).toBe(2); // the terms, and the key set in them
    nowMs = 100;
    const found = await trusts.find(token);
    expect(parsed()).toBe(2);
    parse.mockRestore();
    expect(found).toHaveLength(1);
  });

  test("is found by its issuer and a claim, and no others are read, however many there are", async () => {
    await using stage = await openStage(w);
    const clear = await copied(w, stage.trust.id, 1500, { claims: { sub: "another", repository_id: "1" } });
    const find = trustFinder(w.keyhole.database);
    const read: number[] = [];
    const trusts = directoryOf(w, async (foundBy) => {
      const rows = await find(foundBy);
      read.push(rows.length);
      return rows;
    });
    const { ask } = w.client(({ gate }) => ({
      gate: { ...gate, ...stage.gate(), findTrusts: (token) => trusts.find(token) },
    }));
    // Two at once share a search.
    const answers = await Promise.all(["1", "2"].map((jti) => ask(values, { key: stage.issuer.token({ jti }) })));
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    for (const others of [{ sub: "a stranger", repository_id: "1" }, { iss: "https://other.example" }, { sub: 7 }]) {
      expect((await ask(values, { key: stage.issuer.token(others) })).status).toBe(401);
    }
    expect(read).toEqual([1, 0, 0, 0]);
    const byOwner = await stage.add({ claims: new Map(Object.entries({ sub: "job", repository_owner_id: "2" })) });
    const [row] = await w.sql`select found_by from api_keys where id = ${byOwner.id}`;
    expect(row?.["found_by"]).toBe(foundByOf({ issuer: stage.issuer.url, claims: { sub: "job" } }));
    await clear();
  });

  test("is not created beyond 10,000 in an organization, whatever their claims", async () => {
    await using stage = await openStage(w);
    const others: (() => Promise<unknown>)[] = [];
    for (let n = 0; n < 20; n++) others.push(await copied(w, stage.trust.id, 500, { claims: { sub: `another ${n}` } }));
    const claims = new Map([["sub", "one more"]]);
    await expect(stage.add({ claims })).rejects.toThrow(
      `${stage.slug} has 10001 trusts: revoke one that is no longer used.`,
    );
    expect((await stage.ask(stage.issuer.token())).status).toBe(200);
    for (const clear of others) await clear();
    await stage.add({ claims });
  });
});

/** Writes copies of a trust's row, sealed, with these terms changed. @returns what deletes them */
async function copied(w: World, id: string, count: number, terms: object): Promise<() => Promise<unknown>> {
  const { db, tables } = w.admin.database;
  const k = tables.apiKeys;
  const [row] = (await db.select().from(k).where(eq(k.id, id))) as [typeof k.$inferSelect];
  const trust = JSON.stringify({ ...JSON.parse(row.trust ?? ""), ...terms });
  const rows = Array.from({ length: count }, (_, n) => {
    const keyId = Bun.randomUUIDv7();
    const foundBy = foundByOf(JSON.parse(trust));
    const made = { ...row, id: keyId, digest: Buffer.alloc(32, `${keyId}${n}`), trust, foundBy };
    return { ...made, grantSeal: sealGrant(w.installation.systemKeys.grant, made.digest, { ...made, keyId }) };
  });
  const ids = rows.map((one) => one.id);
  for (let at = 0; at < rows.length; at += 500) await db.insert(k).values(rows.slice(at, at + 500));
  return async () => db.delete(k).where(inArray(k.id, ids));
}

function directoryOf(
  { keyhole, installation }: World,
  find: FindTrusts = trustFinder(keyhole.database),
  nowMs = () => 0,
): TrustDirectory {
  return new TrustDirectory(find, installation.systemKeys.grant, nowMs);
}

/** Makes a token of exactly this many characters. Base64 cannot have every length, so the header varies too. */
function sized(issuer: Issuer, length: number): string {
  const key = issuer.keys.get("one") as SigningKey;
  const make = (x: string, filler: number) =>
    compact({ alg: "ES256", kid: "one", x }, usualClaims(issuer.url, { filler: "x".repeat(filler) }), key);
  for (const x of ["", "x", "xx", "xxx"]) {
    const filler = Math.floor(((length - make(x, 0).length) * 3) / 4);
    const token = [filler - 1, filler, filler + 1].map((one) => make(x, one)).find((one) => one.length === length);
    if (token !== undefined) return token;
  }
  throw new Error(`no token of ${length} characters`);
}
