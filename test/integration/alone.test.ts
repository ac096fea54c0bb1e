/** A caller alone has its lookup and its entry in one statement, and gets what any other caller gets. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readConfig } from "../../src/core/settings/settings.ts";
import { openInstallation } from "../../src/installation/installation.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { createTrust } from "../../src/people/keys/trusts.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import { TrustDirectory } from "../../src/serve/access/trust-directory.ts";
import { type OpenKeyhole, openKeyhole } from "../../src/serve/process/compose.ts";
import { trustFinder } from "../../src/store/lookups.ts";
import { requestOf } from "../support/answer.ts";
import { listAudit } from "../support/audit.ts";
import { audience, compact, newSigningKey, publicJwk, usualClaims } from "../support/issuer.ts";
import { deleteProject, renameProject, setVariables } from "../support/plans.ts";
import { startProxy } from "../support/proxy.ts";
import { savedTables } from "../support/saved.ts";
import { clientOf, describePostgres, everything, type Key, type Place, type World } from "../support/world.ts";

const read = "/projects/web/variables?environment=production";

describePostgres("a caller alone", (w) => {
  const place = () => w.place({ ...content, key: everything });

  test("has a lookup of its own once, and then one statement for each read", async () => {
    const { key } = await place();
    const { client, asked } = watching(w);
    const answers = [];
    for (let count = 0; count < 31; count++) answers.push(await client.ask(read, { key }));
    const left = answers.map(({ status, headers }) => `${status} ${headers.get("ratelimit")?.split(";")[1]}`);
    expect(left).toEqual([...Array.from({ length: 30 }, (_, n) => `200 r=${29 - n}`), "429 r=0"]);
    expect(asked).toEqual({ lookups: 1, entries: 1, both: 29, uses: 30 });
    expect(await w.audit(key)).toHaveLength(30);
    expect(await gapsIn(w)).toEqual([]);
  });

  test("shares statements with others as soon as there are some", async () => {
    const { key } = await place();
    const { client, asked } = watching(w);
    for (let count = 0; count < 2; count++) await client.ask(read, { key });
    const answers = await Promise.all(Array.from({ length: 4 }, () => client.handle(requestOf(read, { key }))));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(asked).toEqual({ lookups: 5, entries: 5, both: 1, uses: 6 });
    expect(await gapsIn(w)).toEqual([]);
  });

  test("with a token pays for its trust's lookup again only if it was refused, or is new", async () => {
    const { id, token } = await trusted(w, 4);
    const { client, asked } = watching(w);
    const before = await entriesIn(w);
    const [one, two] = [token("1"), token("2")];
    const statuses = [];
    for (const key of [one, one, one, one, two, one]) {
      statuses.push((await client.ask(read, { key })).status);
    }
    expect(statuses).toEqual([200, 200, 200, 200, 200, 401]);
    expect(asked).toEqual({ lookups: 3, entries: 3, both: 4, uses: 6 });
    const counts = await w.sql`select reads::int from job_reads where trust_id = ${id} order by 1`;
    expect(counts).toEqual([{ reads: 1 }, { reads: 6 }]);
    expect((await entriesIn(w)) - before).toBe(5);
    expect(await gapsIn(w)).toEqual([]);
  });

  describeMoments((when, isBetween) => {
    test(`gets nothing, and no read of its job is counted, if its trust is revoked ${when}`, async () => {
      const { id, token } = await trusted(w, 4);
      let due: () => Promise<unknown> = async () => {};
      const { client, asked } = watching(w, () => due());
      const key = token("1");
      for (let count = 0; count < 2; count++) expect((await client.ask(read, { key })).status).toBe(200);
      const before = await entriesIn(w);
      const revoke = () => revokeKey(w.admin, id);
      if (isBetween) due = revoke;
      else await revoke();
      expect((await client.ask(read, { key })).status).toBe(401);
      expect(asked).toEqual({ lookups: 1, entries: 1, both: isBetween ? 2 : 1, uses: 2 });
      expect(await w.sql`select reads::int from job_reads where trust_id = ${id}`).toEqual([{ reads: 2 }]);
      expect(await entriesIn(w)).toBe(before);
    });
  });

  const changes: readonly [what: string, change: (of: Place & { key: Key }) => Promise<unknown>, status: number][] = [
    ["its key is revoked", ({ key }) => revokeKey(w.admin, key.id), 401],
    ["its key ends", ({ key }) => w.regrant(key, { expiresAt: Date.now() - 1 }), 401],
    ["its key is deleted", ({ key }) => w.sql`delete from api_keys where id = ${key.id}`, 401],
    ["SQL changes its key", ({ key }) => w.sql`update api_keys set surfaces = 1 where id = ${key.id}`, 401],
    ["the notary finds its key put back", ({ key }) => except(w, `key:${key.id}`), 401],
    ["its key loses the environment", ({ key }) => w.regrant(key, { environments: ["development"] }), 403],
    ["its key loses the resource", ({ key }) => w.regrant(key, { resources: ["files"] }), 403],
    ["the plan ends", ({ organization }) => setPlan(w.admin, organization.slug, "free"), 403],
    ["its key loses the project", ({ key }) => w.regrant(key, { projects: { other: "none" } }), 404],
    ["the project has another slug", ({ project: { where } }) => renameProject(w.admin, where, { slug: "other" }), 404],
    ["the project is deleted", ({ project: { where } }) => deleteProject(w.admin, where), 404],
    ["the notary finds its set put back", ({ id }) => except(w, `set:${id}/variables/production`), 503],
    ["SQL changes its set", ({ id }) => w.sql`update sets set listing = '[]' where project_id = ${id}`, 503],
    ["SQL deletes its data key", ({ id }) => w.sql`delete from data_keys where project_id = ${id}`, 503],
    ["a value is written", ({ project }) => setVariables(w.admin, project.where, "production", [written]), 200],
    ["another project is written", place, 200],
    ["SQL names its organization", ({ organization }) => rename(w, organization.id), 200],
  ];
  describeMoments((when, isBetween) => {
    test.each(changes)(`gets what any other gets if %s ${when}`, async (_, change, status) => {
      const made = await place();
      const { key } = made;
      let due: () => Promise<unknown> = async () => {};
      const { client, asked } = watching(w, () => due());
      for (let count = 0; count < 2; count++) expect((await client.ask(read, { key })).status).toBe(200);
      expect(asked).toEqual({ lookups: 1, entries: 1, both: 1, uses: 2 });

      const before = { events: w.log.length, entries: await entriesIn(w) };
      if (isBetween) due = () => change(made);
      else await change(made);
      const answer = await client.ask(read, { key });
      const events = w.log.slice(before.events).filter(({ event }) => event === "request");
      expect(answer.status).toBe(status);
      expect(events).toEqual([expect.objectContaining({ status, keyId: key.id })]);
      expect("organizationId" in (events[0] ?? {}) && events[0]?.["organizationId"] !== undefined).toBe(status !== 401);
      expect(asked).toEqual({ lookups: 2, entries: status === 200 ? 2 : 1, both: 2, uses: status === 401 ? 2 : 3 });
      expect(answer.headers.get("ratelimit")).toBe(status === 401 ? null : '"value";r=27;t=6');
      expect((await entriesIn(w)) - before.entries).toBe(status === 200 ? 1 : 0);
      expect(await gapsIn(w)).toEqual([]);

      due = async () => {};
      expect((await w.client().ask(read, { key })).text).toBe(answer.text);
      await w.sql`delete from audit_exceptions`;
    });
  });
});

describePostgres("a caller alone, whose connections break", (w) => {
  let proxy: Awaited<ReturnType<typeof startProxy>>;
  let keyhole: OpenKeyhole;
  beforeAll(async () => {
    const url = new URL(w.databaseUrl ?? "");
    proxy = await startProxy(new URL(url));
    url.port = String(proxy.port);
    const { postgres } = readConfig({ DATABASE_URL: url.href, KEYHOLE_ROOT_KEY: Buffer.alloc(32).toString("base64") });
    const installation = await openInstallation({ ...w.config, postgres }, () => {});
    keyhole = await openKeyhole(installation, (event) => w.log.push(event));
  });
  afterAll(async () => {
    await keyhole.close();
    await proxy.stop();
  });

  test.each([
    // Of the statement as it is sent first, and later.
    ...[0, 1, 3000].map((bytes) => ({ bytes, of: "its statement", ofServer: true, readsBefore: 1 })),
    ...[0, 5, 300].map((bytes) => ({ bytes, of: "its next statement", ofServer: true, readsBefore: 2 })),
    ...[0, 1, 5, 6, 40, 70, 80].map((bytes) => ({ bytes, of: "the answer", ofServer: false, readsBefore: 2 })),
  ])("is answered with its entry, or not at all, if they do after $bytes bytes of $of", async (row) => {
    const { ofServer, readsBefore } = row;
    const { key } = await w.place({ ...content, key: everything });
    let cuts = 0;
    const breakAll = () => {
      proxy.cut();
      proxy.mend();
    };
    const cutting = async () => {
      if (cuts++ > 0) return;
      let left = row.bytes;
      proxy.alter((piece) => {
        const part = piece.subarray(0, left);
        left -= part.length;
        if (part.length < piece.length) setImmediate(breakAll);
        return part;
      }, ofServer);
    };
    let isDue = false;
    const { client } = watching(w, async () => (isDue ? cutting() : undefined), keyhole);
    for (let count = 0; count < readsBefore; count++) expect((await client.ask(read, { key })).status).toBe(200);
    const before = await entriesIn(w);
    isDue = true;
    const { status, headers } = await client.ask(read, { key });
    expect(cuts).toBe(1);
    expect([200, 503]).toContain(status);
    const more = (await entriesIn(w)) - before;
    if (status === 200) {
      const [lane, seq] = (headers.get("keyhole-audit") ?? "").split(":");
      expect(await w.sql`select 1 as one from audit_segments where lane = ${lane} and first_seq = ${seq}`).toHaveLength(
        1,
      );
      expect(more).toBe(1);
    } else expect(more).toBeLessThanOrEqual(1);
    isDue = false;
    let again = await client.ask(read, { key });
    for (let turn = 0; turn < 20 && again.status !== 200; turn++) again = await client.ask(read, { key });
    expect(again.status).toBe(200);
    expect(await gapsIn(w)).toEqual([]);
  });
});

describeMoments((when, isBetween) => {
  describePostgres(`a caller alone, if the database is put back ${when}`, (w) => {
    test("gets nothing, although its own rows are as they were", async () => {
      const [{ key }, other] = [await w.place({ ...content, key: everything }), await w.place({ key: {} })];
      let due: () => Promise<unknown> = async () => {};
      const { client, asked } = watching(w, () => due());
      for (let count = 0; count < 2; count++) expect((await client.ask(read, { key })).status).toBe(200);
      const putBack = async () => {
        const back = await savedTables(w, ["audit_heads", "api_keys"]);
        await revokeKey(w.admin, other.key.id);
        expect((await w.ask("/organization", other)).status).toBe(401);
        await back();
      };
      if (isBetween) due = putBack;
      else await putBack();
      expect((await client.ask(read, { key })).status).toBe(503);
      expect(asked).toMatchObject({ lookups: 2, both: isBetween ? 2 : 1 });
      expect(w.log.at(-1)).toMatchObject({ reason: expect.stringContaining("what people did ends with entry") });
    });
  });
});

const content = { variables: { production: { A: "value of A" } } };
const written = { name: "A", value: "another value of A" };

function describeMoments(declare: (when: string, isBetween: boolean) => void): void {
  declare("before it asks", false);
  declare("after it was presumed that nothing has changed", true);
}

/** A client that counts what it asks of the database, and does something before each statement of both. */
function watching(w: World, between: () => Promise<unknown> = async () => {}, keyhole?: OpenKeyhole) {
  const asked = { lookups: 0, entries: 0, both: 0, uses: 0 };
  let looks = 0; // so that it looks each time
  const trusts = new TrustDirectory(trustFinder(w.admin.database), w.admin.systemKeys.grant, () => 1000 * looks++);
  const make = keyhole === undefined ? w.client : clientFor(w, keyhole);
  const client = make(({ gate, journal }) => ({
    gate: {
      ...gate,
      nowUs: () => 0,
      findTrusts: (token) => trusts.find(token),
      lookUp: (lookup) => {
        asked.lookups += 1;
        return gate.lookUp(lookup);
      },
      used: () => {
        asked.uses += 1;
      },
    },
    journal: {
      record: (entries, read) => {
        asked.entries += 1;
        return journal.record(entries, read);
      },
      recordIf: async (...call) => {
        asked.both += 1;
        await between();
        return journal.recordIf?.(...call);
      },
    },
  }));
  return { client, asked };
}

/** A trust that gives each job so many reads, and its tokens by job. */
async function trusted(w: World, readsPerJob: number) {
  const { organization } = await w.place(content);
  const signer = newSigningKey("ES256");
  const issuer = `https://${crypto.randomUUID()}.example.com`;
  const { trust } = await createTrust(w.admin, {
    organization: organization.slug,
    projects: ["web"],
    environments: ["production"],
    issuer,
    audience,
    claims: new Map(Object.entries({ sub: "job", repository_id: "1" })),
    jwks: JSON.stringify({ keys: [publicJwk("one", signer)] }),
    readsPerJob,
  });
  const token = (jti: string) =>
    compact({ alg: "ES256", kid: "one", typ: "JWT" }, usualClaims(issuer, { jti, iat, exp: iat + 300 }), signer);
  const iat = Math.floor(Date.now() / 1000);
  return { id: trust.id, token };
}

function clientFor(_: World, keyhole: OpenKeyhole): World["client"] {
  return (change) => clientOf({ ...keyhole, ...change?.(keyhole) });
}

function except(w: World, subject: string) {
  return w.sql`insert into audit_exceptions values (${subject}, 'revoked', 'live', 1, ${Buffer.alloc(32)})`;
}

function rename(w: World, organizationId: string) {
  return w.sql`update organizations set name = 'Another' where id = ${organizationId}`;
}

/** How many entries there are of reads. Those of alarms come later. */
async function entriesIn(w: World): Promise<number> {
  return (await listAudit(w.admin, { actions: ["variables.read"], limit: 100_000 })).length;
}

/** Lanes whose numbers do not go on. */
function gapsIn(w: World) {
  return w.run(`select lane, first_seq from (
    select lane, first_seq, lag(last_seq, 1, 0::bigint) over (partition by lane order by first_seq) as before
    from audit_segments) as each where first_seq <> before + 1`);
}
