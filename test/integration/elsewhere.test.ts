import { expect, test } from "bun:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { parseRange } from "../../src/core/addresses.ts";
import { listAccess, rotateKey, showKey } from "../../src/people/keys/keys.ts";
import { createTrust } from "../../src/people/keys/trusts.ts";
import { mintKey } from "../../src/serve/access/api-key.ts";
import { sealGrant } from "../../src/serve/access/grant.ts";
import { Alarms } from "../../src/serve/gates/alarms.ts";
import type { ApiParts } from "../../src/serve/gates/api-parts.ts";
import { answerOf, headersOf, requestOf } from "../support/answer.ts";
import { listAudit } from "../support/audit.ts";
import { audience, compact, newSigningKey, publicJwk, usualClaims } from "../support/issuer.ts";
import { mcpClient, mcpRequest } from "../support/mcp.ts";
import { type Client, describeBoth, describePostgres, everything, type World } from "../support/world.ts";

/* Keys and trusts that may be used only from some addresses (`--from`). */

const read = "/projects/web/variables?environment=staging";
const content = { variables: { staging: { A: "value-of-a" } } };
const [inside, outside] = ["10.1.2.3", "203.0.113.9"];
const ranges = ["10.0.0.0/8", "2001:db8::/32"];

/** Behind a proxy on the Unix socket, which says who asks. */
const proxies = [parseRange("unix")] as ApiParts["proxies"];
const behind = (w: World, change: Parameters<World["client"]>[0] = () => ({})) =>
  w.client((keyhole) => ({ proxies, gate: { ...keyhole.gate, nowUs: () => 0 }, ...change(keyhole) }));
const by = (address?: string) => (address === undefined ? {} : { "x-forwarded-for": address });

async function elsewhereOf({ admin, keyhole }: World, keyId: string) {
  await keyhole.gate.alarms.flush(); // what the server does each second
  return listAudit(admin, { keyId, actions: ["key.elsewhere"], limit: 1000 });
}

describeBoth("a key that may be used from some addresses", (w, _, once) => {
  const place = async () => {
    const { organization } = await w.place(content);
    return { organization, key: await w.key(organization, { ...everything, from: ranges }) };
  };
  const answersTo = async (client: Client, key: string, address: string) => {
    const answers: unknown[] = [];
    for (const path of ["/organization", "/projects", read, "/files?x", "/secrets?project=web&environment=staging"]) {
      for (let at = 0; at < 3; at++) {
        const answer = await client.ask(path, { key, headers: { "x-request-id": "same", ...by(address) } });
        answers.push([answer.status, answer.text, headersOf(answer)]);
      }
    }
    return answers;
  };

  test.each([false, true])(
    "gets the answers of an unknown key from elsewhere, which cost it nothing and hold up nobody; remembered: %p",
    async (isRemembered) => {
      const { key } = await place();
      const client = behind(w);
      const ask = (address: string) => client.ask(read, { key, headers: by(address) });
      if (isRemembered) expect((await ask(inside)).status).toBe(200);
      const own = await answersTo(client, key.key, outside);
      expect(own.map((answer) => (answer as [number])[0])).toEqual([...Array(10).fill(401), ...Array(5).fill(429)]);
      expect(await answersTo(client, mintKey(), outside)).toEqual(own);
      for (const address of [inside, "::ffff:10.1.2.3", "2001:db8:1::1"]) expect((await ask(address)).status).toBe(200);
      const { status, headers } = await ask(inside);
      expect([status, headers.get("ratelimit")]).toEqual([
        200,
        `"value";r=${isRemembered ? 25 : 26};t=${isRemembered ? 10 : 8}`,
      ]);
      // A proxy that says nothing, or that is not trusted, is the caller.
      expect((await client.ask(read, { key })).status).toBe(429);
      expect((await w.ask(read, { key, headers: by(inside) })).status).toBe(401);
    },
  );

  test("leaves an entry with its address, an event that says which ranges it missed, and a count, but no use", async () => {
    const { organization, key } = await place();
    const before = w.keyhole.gate.alarms.elsewhere;
    const used: string[] = [];
    const client = behind(w, ({ gate }) => ({ gate: { ...gate, used: (id) => used.push(id) } }));
    const headers = { "x-request-id": "stolen-1", "user-agent": "curl/8", ...by(outside) };
    expect((await client.ask(read, { key, headers })).status).toBe(401);
    const use = { requestId: "stolen-1", clientAddress: `${outside} via unix`, userAgent: "curl/8" };
    const actor = { type: "key", id: key.id };
    const entries = await elsewhereOf(w, key.id);
    expect(entries).toMatchObject([{ ...use, actor, organization: organization.slug, names: [key.id] }]);
    const events = w.log.filter(({ event, keyId }) => event === "elsewhere" && keyId === key.id);
    expect(events).toMatchObject([{ ...use, from: ranges.join(), organizationId: organization.id }]);
    const request = w.log.find(({ event, requestId }) => event === "request" && requestId === "stolen-1");
    expect(request).toMatchObject({ status: 401, reason: `key ${key.id} may not be used from this address` });
    expect(request?.["keyId"]).toBeUndefined();
    expect(w.keyhole.gate.alarms.elsewhere).toBe(before + 1);
    expect(used).toEqual([]);
    expect(await w.audit(key)).toEqual(entries);
  });

  once(
    "makes its request do nothing that takes time, and leaves ten entries of a flood, and all of it in the count",
    async () => {
      const { key } = await place();
      const done: string[] = [];
      const record: ConstructorParameters<typeof Alarms>[0] = async (entries) => {
        if (entries.length > 0) done.push("record");
        return w.keyhole.journal.record(entries);
      };
      const alarms = new Alarms(record, ({ event }) => done.push(String(event)));
      const client = behind(w, ({ gate }) => ({ gate: { ...gate, alarms, nowUs: () => 0 } }));
      const ask = () => client.handle(requestOf("/organization", { key, headers: by(outside) }));
      const answers = await Promise.all(Array.from({ length: 50 }, ask));
      for (let at = 0; at < 450; at++) answers.push(await ask());
      await nextTurn();
      expect([done, alarms.elsewhere]).toEqual([[], 500]);
      expect(answers.filter(({ status }) => status === 401)).toHaveLength(10);
      await alarms.flush();
      expect(done).toEqual([...Array(10).fill("elsewhere"), "record"]);
      expect(await elsewhereOf(w, key.id)).toHaveLength(10);
    },
  );

  test("is refused from elsewhere by a token of its trust, too, remembered or not", async () => {
    const { organization } = await w.place(content);
    const signer = newSigningKey("ES256");
    const issuer = `https://${organization.slug}.example.com`;
    const { trust } = await createTrust(w.admin, {
      ...{ organization: organization.slug, projects: null, environments: null, from: ["unix", "192.0.2.0/24"] },
      ...{ issuer, audience, claims: new Map([["sub", "job"]]) },
      jwks: JSON.stringify({ keys: [publicJwk("one", signer)] }),
    });
    const key = compact({ alg: "ES256", kid: "one", typ: "JWT" }, usualClaims(issuer), signer);
    const client = behind(w);
    const statusBy = async (address?: string) => (await client.ask(read, { key, headers: by(address) })).status;
    for (const address of [outside, "192.0.2.1", outside, undefined, "192.0.2.255", "::1"]) {
      const isIn = address === undefined || address.startsWith("192.");
      expect([address, await statusBy(address)]).toEqual([address, isIn ? 200 : 401]);
    }
    const actor = { type: "trust", id: trust.id };
    expect((await elsewhereOf(w, trust.id)).map((entry) => entry.actor)).toEqual(Array(3).fill(actor));
    expect(w.log).toContainEqual(expect.objectContaining({ event: "elsewhere", trustId: trust.id }));
  });

  test("is refused like an unknown one once its job had its answers and thieves used up its attempts", async () => {
    const { organization } = await w.place(content);
    const signer = newSigningKey("ES256");
    const issuer = `https://${organization.slug}.example.com`;
    await createTrust(w.admin, {
      ...{ organization: organization.slug, projects: null, environments: null, from: ranges, readsPerJob: 1 },
      ...{ issuer, audience, claims: new Map(Object.entries({ sub: "job", repository_id: "1" })) },
      jwks: JSON.stringify({ keys: [publicJwk("one", signer)] }),
    });
    const key = compact({ alg: "ES256", kid: "one", typ: "JWT" }, usualClaims(issuer, { jti: "1" }), signer);
    const client = behind(w);
    const answers = [];
    for (const address of [inside, ...Array<string>(10).fill(outside), inside]) {
      const { status, headers } = await client.ask(read, { key, headers: by(address) });
      answers.push([status, headers.get("ratelimit")]);
    }
    expect(answers).toEqual([[200, '"value";r=29;t=2'], ...Array(10).fill([401, null]), [429, null]]);
  });

  once(
    "is refused from elsewhere over the Model Context Protocol, and over the Unix socket unless that is named",
    async () => {
      const { organization, key } = await place();
      const local = await w.key(organization, { ...everything, from: ["unix"] });
      const client = mcpClient(w, () => ({ proxies }));
      const ask = async (of: { readonly key: string }, address?: string) =>
        answerOf(await client.handle(mcpRequest({ key: of.key, headers: { "x-request-id": "same", ...by(address) } })));
      for (const [of, address] of [
        [key, outside],
        [key, undefined],
        [local, inside],
      ] as const) {
        const [own, unknown] = [await ask(of, address), await ask({ key: mintKey() }, address)];
        expect([own.status, own.text, headersOf(own)]).toEqual([401, unknown.text, headersOf(unknown)]);
      }
      expect((await ask(key, inside)).status).toBe(200);
      expect((await ask(local)).status).toBe(200);
    },
  );

  test("keeps its ranges in its successor and wherever it is shown, and the entry of its creation has them", async () => {
    const { organization, key } = await place();
    const { successor } = await rotateKey(w.admin, key.id, 1000);
    const shown = [key, successor, await showKey(w.admin, key.id), await showKey(w.admin, successor.id)];
    expect(shown.map(({ from }) => from)).toEqual(Array(4).fill(ranges));
    const access = await listAccess(w.admin, `${organization.slug}/web`, "staging");
    expect(access.map(({ from }) => from)).toEqual([ranges, ranges]);
    const [entry] = await listAudit(w.admin, { organization: organization.slug, actions: ["key.create"] });
    expect(entry?.names).toEqual([key.id, ...ranges]);
    const client = behind(w);
    const statusBy = async (address: string) =>
      (await client.ask(read, { key: successor, headers: by(address) })).status;
    expect([await statusBy(inside), await statusBy(outside)]).toEqual([200, 401]);
    expect((await w.key(organization)).from).toBeNull();
  });

  test("is no key any more once SQL has given it other ranges", async () => {
    const { key } = await place();
    const client = behind(w);
    const statusBy = async (address: string) => (await client.ask(read, { key, headers: by(address) })).status;
    const sets = ["ranges = null", "ranges = '0.0.0.0/0,::/0'", "ranges = '10.0.0.0/8'", "ranges = ''"];
    for (const set of sets) {
      expect([set, await statusBy(inside)]).toEqual([set, 200]);
      const [row] = await w.run("select ranges from api_keys where id = ?", [key.id]);
      await w.run(`update api_keys set ${set} where id = ?`, [key.id]);
      expect([set, await statusBy(inside), await statusBy(outside)]).toEqual([set, 401, 401]);
      await w.run("update api_keys set ranges = ? where id = ?", [row?.["ranges"], key.id]);
    }
    expect(await elsewhereOf(w, key.id)).toEqual([]);
  });

  once("has another seal if its ranges stand in the column of another term", () => {
    const grant = { keyId: "k", organizationId: "o", surfaces: 1, resources: 1, environments: 1 as const };
    const sealOf = (rate: number | null, from: string | null) =>
      sealGrant(Buffer.alloc(32), Buffer.alloc(32), {
        ...{ ...grant, projects: null, expiresAt: null, trust: null },
        ...{ rate, from },
      }).toString("hex");
    const seals = [
      sealOf(null, "unix"),
      sealOf("unix" as never, null),
      sealOf(2, "unix"),
      sealOf(2, null),
      sealOf(null, null),
    ];
    expect(new Set(seals).size).toBe(5);
  });
});

describePostgres("a key that may be used from some addresses, by a caller alone", (w) => {
  test("is judged at each read, and refused once for each", async () => {
    const { organization } = await w.place(content);
    const key = await w.key(organization, { from: ranges });
    let both = 0;
    const client = behind(w, ({ journal }) => ({
      journal: {
        record: (...call) => journal.record(...call),
        recordIf: async (...call) => {
          both += 1;
          return journal.recordIf?.(...call);
        },
      },
    }));
    const before = w.keyhole.gate.alarms.elsewhere;
    const statuses: number[] = [];
    for (const address of [inside, inside, outside, inside, inside, outside]) {
      statuses.push((await client.ask(read, { key, headers: by(address) })).status);
    }
    expect(statuses).toEqual([200, 200, 401, 200, 200, 401]);
    expect(both).toBe(3);
    expect(w.keyhole.gate.alarms.elsewhere).toBe(before + 2);
    expect(await elsewhereOf(w, key.id)).toHaveLength(2);
  });
});
