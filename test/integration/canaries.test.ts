import { expect, test } from "bun:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Environment } from "../../src/core/names.ts";
import { revealVariable, revealVariables } from "../../src/kinds/variables/reveal.ts";
import { listVariables, type Place, variableItem } from "../../src/kinds/variables/write.ts";
import { type AuditFilter, AuditTail, showAudit } from "../../src/people/audit/audit.ts";
import { openEverything } from "../../src/people/backup/verify.ts";
import type { Organization } from "../../src/people/desk/organizations.ts";
import {
  createKey,
  identifyKeys,
  isUnused,
  listAccess,
  listExpiring,
  listKeys,
  neverEnds,
  revokeKey,
  rotateKey,
  showKey,
} from "../../src/people/keys/keys.ts";
import { compareEnvironments } from "../../src/people/projects/comparison.ts";
import { rotateData } from "../../src/people/rotation/rotation.ts";
import { isCanary, newCoin } from "../../src/seal/canary.ts";
import { mintKey } from "../../src/serve/access/api-key.ts";
import { Alarms } from "../../src/serve/gates/alarms.ts";
import { answerOf, headersOf, requestOf } from "../support/answer.ts";
import { listAudit } from "../support/audit.ts";
import { deleteVariable } from "../support/delete.ts";
import { connectAgent, mcpClient } from "../support/mcp.ts";
import { visitorOf } from "../support/pages.ts";
import { personIn } from "../support/persons.ts";
import {
  copyVariables,
  planRollback,
  planUndo,
  renameProject,
  rollBack,
  setVariables,
  undo,
  wouldCopy,
} from "../support/plans.ts";
import { describeBoth, describeOnce, type Placed, refusingJournal, type World } from "../support/world.ts";

const staging = "/projects/web/variables?environment=staging";

/** What is on record of canaries, oldest first. */
async function usesOf({ admin, keyhole }: World, filter: AuditFilter = {}) {
  await keyhole.gate.alarms.flush(); // what the server does each second
  const found = await listAudit(admin, { ...filter, actions: ["canary.key", "canary.variable"], limit: 1000 });
  return found.map(({ action, names }) => `${action} ${names}`);
}

describeBoth("a canary key", (w, _, once) => {
  const bait = async (w: World) => {
    const { organization } = await w.place({ variables: { staging: { A: "1" } } });
    return { organization, key: await w.key(organization, { canary: true, name: "old-deploy" }) };
  };

  /** Keys that have ended in other ways, or never were. */
  const ended = async (organization: Organization) => {
    const [revoked, expired] = [await w.key(organization), await w.key(organization)];
    await revokeKey(w.admin, revoked.id);
    await w.regrant(expired, { expiresAt: 1 });
    return [revoked.key, expired.key, mintKey()];
  };

  test("gets the answer of a key that has ended, byte for byte, and is limited at the same count", async () => {
    const { organization, key } = await bait(w);
    const client = w.client();
    const paths = ["/organization", "/projects", staging, "/files?x", "/secrets?project=web&environment=staging"];
    const answersTo = async (text: string) => {
      const answers: unknown[] = [];
      for (const path of paths) {
        for (let at = 0; at < 3; at++) {
          const answer = await client.ask(path, { key: text, headers: { "x-request-id": "same" } });
          const { "retry-after": _, ...headers } = headersOf(answer);
          answers.push([answer.status, answer.text, headers]);
        }
      }
      return answers;
    };
    const own = await answersTo(key.key);
    expect(own.map((answer) => (answer as [number])[0])).toEqual([...Array(10).fill(401), ...Array(5).fill(429)]);
    for (const text of await ended(organization)) expect(await answersTo(text)).toEqual(own);
  });

  test("moves no number in another key's receipt: a refusal of any key leaves the lane of reads as it is", async () => {
    const { organization, key } = await bait(w);
    const narrow = await w.key(organization);
    const receipt = async () => (await w.ask(staging, { key: narrow })).headers.get("keyhole-audit") ?? "";
    let [lane, seq] = (await receipt()).split(":");
    for (const text of [key.key, ...(await ended(organization)), key.key]) {
      expect((await w.ask("/organization", { key: text })).status).toBe(401);
      const uses = (await usesOf(w, { keyId: key.id })).length;
      const next = await receipt();
      expect(next).toBe(`${lane}:${Number(seq) + 1}`);
      [lane, seq] = next.split(":");
      expect(uses).toBeGreaterThan(0);
    }
    expect((await usesOf(w, { keyId: key.id })).length).toBe(2);
  });

  once("makes its request do nothing that takes time: the log and the journal get its use later", async () => {
    const { key } = await bait(w);
    const done: string[] = [];
    let isAway = true;
    const alarms = new Alarms(
      async (entries) => {
        if (entries.length > 0) done.push("record");
        if (isAway) throw new Error("away");
        return w.keyhole.journal.record(entries);
      },
      ({ event }) => done.push(String(event)),
    );
    const client = w.client(({ gate }) => ({ gate: { ...gate, alarms } }));
    expect((await client.ask("/organization", { key })).status).toBe(401);
    await nextTurn();
    expect([done, alarms.canaries]).toEqual([[], { key: 1, read: 0 }]);
    await alarms.flush();
    expect(done).toEqual(["canary", "record"]);
    expect(await usesOf(w, { keyId: key.id })).toEqual([]);
    isAway = false;
    await alarms.flush();
    expect(done).toEqual(["canary", "record", "record"]);
    expect(await usesOf(w, { keyId: key.id })).toEqual([`canary.key ${key.id}`]);
  });

  test("leaves an entry with its address and request, an event in the log and a last use", async () => {
    const { organization, key } = await bait(w);
    const headers = { "x-request-id": "stolen-1", "user-agent": "curl/8" };
    expect((await w.ask(staging, { key, headers })).status).toBe(401);
    expect(await usesOf(w, { keyId: key.id })).toEqual([`canary.key ${key.id}`]);
    const use = { requestId: "stolen-1", clientAddress: "", userAgent: "curl/8" };
    const [entry] = await listAudit(w.admin, { keyId: key.id, actions: ["canary.key"] });
    expect(entry).toMatchObject({ ...use, actor: { type: "key", id: key.id }, organization: organization.slug });
    const events = w.log.filter(({ event, keyId }) => event === "canary" && keyId === key.id);
    expect(events).toMatchObject([{ ...use, kind: "key", organizationId: organization.id }]);
    const request = w.log.find(({ event, requestId }) => event === "request" && requestId === "stolen-1");
    expect(request).toMatchObject({ status: 401, reason: `key ${key.id} is a canary` });
    expect(request?.["keyId"]).toBeUndefined();
    while ((await showKey(w.admin, key.id)).lastUsedAt === null) await nextTurn();
  });

  once("leaves ten entries of a flood, and all of it in the count", async () => {
    const { key } = await bait(w);
    const alarms = new Alarms((entries) => w.keyhole.journal.record(entries), w.keyhole.log);
    const client = w.client(({ gate }) => ({ gate: { ...gate, alarms, nowUs: () => 0 } }));
    const ask = () => client.handle(requestOf("/organization", { key }));
    const answers = await Promise.all(Array.from({ length: 50 }, ask));
    for (let at = 0; at < 450; at++) answers.push(await ask());
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(10);
    await alarms.flush();
    expect(await usesOf(w, { keyId: key.id })).toEqual(Array(10).fill(`canary.key ${key.id}`));
    expect(alarms.canaries).toEqual({ key: 500, read: 0 });
  });

  test("is listed as what it is, and never as one that works", async () => {
    const { organization, key } = await bait(w);
    const { slug } = organization;
    expect(key.status).toBe("canary");
    expect((await showKey(w.admin, key.id)).status).toBe("canary");
    const listed = (await listKeys(w.admin, slug)).filter(({ id }) => id === key.id);
    expect(listed.map(({ status }) => status)).toEqual(["canary"]);
    expect(listed.filter((one) => isUnused(one, Date.now() + 1) || neverEnds(one))).toEqual([]);
    const expiring = await listExpiring(w.admin, Number.MAX_SAFE_INTEGER / 4);
    expect(expiring.map(({ id }) => id)).not.toContain(key.id);
    const access = await listAccess(w.admin, `${slug}/web`, "staging");
    expect(access).toMatchObject([{ id: key.id, status: "canary", gets: {} }]);
    expect(await identifyKeys(w.admin, [key.key])).toMatchObject([{ id: key.id, status: "canary" }]);
    const sees = await personIn(w.admin, `${slug}/web`, ["see"]);
    expect((await showKey(sees, key.id)).status).toBe("canary");
    await expect(showKey(await personIn(w.admin, `${slug}/web`, ["write", "audit"]), key.id)).rejects.toThrow();
  });

  test("is no key that works after a rotation, has no end, and takes the rights of any key to make", async () => {
    const { organization, key } = await bait(w);
    await expect(rotateKey(w.admin, key.id, 1000)).rejects.toThrow("is a canary and opens nothing");
    const asked = { organization: organization.slug, projects: ["web"], environments: ["staging"], canary: true };
    await expect(createKey(w.admin, { ...asked, expiresInMs: 1000 })).rejects.toThrow("never expires");
    const person = await personIn(w.admin, `${organization.slug}/web`, ["see", "write", "audit"]);
    await expect(createKey(person, asked)).rejects.toThrow("reach further");
  });

  test("ends with its revocation: then nothing tells it from another key that has ended", async () => {
    const { key } = await bait(w);
    expect((await revokeKey(w.admin, key.id)).status).toBe("revoked");
    expect((await w.ask("/organization", { key })).status).toBe(401);
    expect(await usesOf(w, { keyId: key.id })).toEqual([]);
  });

  test("cannot be made of a key in SQL, nor a key of it, and its row has nothing that a key's row lacks", async () => {
    const { organization, key } = await bait(w);
    const real = await w.key(organization, { name: "old-deploy" });
    const rows = await w.sql`select * from api_keys where organization_id = ${organization.id}`;
    const [one, other] = rows as [Record<string, unknown>, Record<string, unknown>];
    const isOther = (column: string) => JSON.stringify(one[column]) !== JSON.stringify(other[column]);
    const own = ["id", "digest", "grant_seal", "created_at"];
    expect(Object.keys(one).filter((column) => isOther(column) && !own.includes(column))).toEqual([]);
    const swap = async (from: { id: string }, to: { id: string }) => {
      const [row] = await w.sql`select grant_seal from api_keys where id = ${from.id}`;
      await w.sql`update api_keys set grant_seal = ${row?.["grant_seal"]} where id = ${to.id}`;
    };
    const [sealed] = await w.sql`select grant_seal from api_keys where id = ${key.id}`;
    await swap(real, key);
    expect((await w.ask("/organization", { key })).status).toBe(401);
    expect((await showKey(w.admin, key.id)).status).toBe("damaged");
    await w.sql`update api_keys set grant_seal = ${sealed?.["grant_seal"]} where id = ${key.id}`;
    await swap(key, real);
    expect((await showKey(w.admin, real.id)).status).toBe("damaged");
    expect((await w.ask("/organization", { key: real })).status).toBe(401);
    expect(await usesOf(w, { keyId: real.id })).toEqual([]);
  });
});

describeBoth("a canary variable", (w, _, once) => {
  const value = "made-up-password";
  const bait = async (w: World) => {
    const { organization, project, key } = await w.place({
      variables: { staging: { PLAIN: "plain-value-1" } },
      key: { surfaces: ["rest_api", "ci_action", "mcp_server"] },
    });
    await set(w, project, { name: "BAIT", value, canary: true });
    return { organization, project, key, where: project.where };
  };
  const set = (w: World, { where }: Placed, entry: { name: string; value: string; canary?: boolean }) =>
    setVariables(w.admin, where, "staging", [entry]);
  const placeOf = (project: string, environment: Environment): Place => ({ project, environment });
  const canariesOf = async (w: World, where: string, environment = "staging") =>
    (await listVariables(w.admin, where, environment)).flatMap(({ name, canary }) => (canary ? [name] : []));

  test("is read like any other, and each read of its value is on record as a use", async () => {
    const { project, key } = await bait(w);
    const inProject = { project: project.where };
    const reads = ["&keys=BAIT", "", "&prefix=BA", "&format=env"].map((more) => `${staging}${more}`);
    for (const path of [...reads, "/secrets?project=web&environment=staging"]) {
      const answer = await w.ask(path, { key });
      expect([answer.status, answer.text.includes(value)]).toEqual([200, true]);
      expect((await usesOf(w, inProject)).splice(0)).toHaveLength(reads.indexOf(path) + 1 || 5);
    }
    expect(new Set(await usesOf(w, inProject))).toEqual(new Set(["canary.variable BAIT"]));
    for (const path of [`${staging}&keys=PLAIN`, `${staging}&metadata_only=true`, "/projects", "/projects/web"]) {
      expect((await w.ask(path, { key })).status).toBe(200);
    }
    const etag = (await w.ask(`${staging}&metadata_only=true`, { key })).headers.get("etag") ?? "";
    const again = await w.ask(`${staging}&metadata_only=true`, { key, headers: { "if-none-match": etag } });
    expect(again.status).toBe(304);
    expect(await usesOf(w, inProject)).toHaveLength(5);
    const events = w.log.filter(({ event, keyId }) => event === "canary" && keyId === key.id);
    expect(events).toHaveLength(5);
    expect(events[0]).toMatchObject({ kind: "read", names: ["BAIT"], project: "web", environment: "staging" });
  });

  test("cannot be told by a machine: not by an answer, its headers, or the numbers of its receipts", async () => {
    const { organization, project, key } = await bait(w);
    await set(w, project, { name: "SAME", value });
    const seqs: number[] = [];
    for (const name of ["SAME", "BAIT", "BAIT", "SAME"]) {
      const answer = await w.ask(`${staging}&keys=${name}`, { key });
      const receipt = answer.headers.get("keyhole-audit") ?? "";
      expect(receipt).toMatch(/^[0-9a-f-]{36}:\d+$/);
      seqs.push(Number(receipt.split(":")[1]));
      const { ratelimit: _, etag: __, "keyhole-audit": ___, "x-request-id": ____, ...headers } = headersOf(answer);
      const usual = ["cache-control", "content-length", "content-type", "ratelimit-policy", "x-content-type-options"];
      expect(Object.keys(headers).sort()).toEqual(usual.filter((header) => answer.headers.has(header)));
      const { variables } = answer.json as { readonly variables: readonly object[] };
      expect(variables.map((one) => Object.keys(one))).toEqual([["key", "value", "updatedAt"]]);
    }
    expect(seqs.map((seq) => seq - (seqs[0] ?? 0))).toEqual([0, 1, 2, 3]);
    const names = await w.ask(`${staging}&metadata_only=true`, { key });
    const { variables } = names.json as { readonly variables: readonly object[] };
    expect(variables.map((one) => Object.keys(one).join())).toEqual(Array(3).fill("key,updatedAt"));
    const agents = await w.key(organization, { surfaces: ["mcp_server"] });
    const agent = await connectAgent(mcpClient(w), agents);
    const listed = await agent.call("list_variables", { project: "web", environment: "staging" });
    expect(JSON.stringify(listed)).toContain("BAIT");
    expect(JSON.stringify(listed)).not.toMatch(/canar|coin/i);
  });

  test("is on record before its value leaves: without a journal there is neither", async () => {
    const { project, key } = await bait(w);
    const client = w.client(() => ({ journal: refusingJournal }) as never);
    const answer = await answerOf(await client.handle(requestOf(`${staging}&keys=BAIT`, { key })));
    expect([answer.status, answer.text.includes(value)]).toEqual([503, false]);
    expect(await usesOf(w, { project: project.where }).catch(() => [])).toEqual([]);
    expect(w.log.filter(({ event, keyId }) => event === "canary" && keyId === key.id)).toEqual([]);
  });

  test("is used, too, by a person who sees, exports or copies its value, or a value that it had", async () => {
    const { where } = await bait(w);
    const uses = () => usesOf(w, { project: where });
    await revealVariable(w.admin, where, "staging", "PLAIN");
    expect(await uses().catch(() => [])).toEqual([]);
    await revealVariable(w.admin, where, "staging", "BAIT");
    await revealVariables(w.admin, where, "staging", () => "");
    await copyVariables(w.admin, placeOf(where, "staging"), placeOf(where, "production"));
    await deleteVariable(w.admin, where, "staging", "BAIT");
    await revealVariable(w.admin, where, "staging", "BAIT", 3);
    expect(await uses()).toEqual(Array(4).fill("canary.variable BAIT"));
    const [entry] = await listAudit(w.admin, { project: where, actions: ["canary.variable"] });
    expect(entry?.actor).toEqual({ type: "person", name: "ann@host", from: "os" });
    const { action, names, canaries } = await showAudit(w.admin, `${entry?.lane}:${entry?.seq}`);
    expect({ action, canaries }).toEqual({ action: "variables.reveal", canaries: ["BAIT"] });
    expect(names).toContain("BAIT");
  });

  once("is shown as one to people with the right to see it, and in no other environment", async () => {
    const { where } = await bait(w);
    expect(await canariesOf(w, where)).toEqual(["BAIT"]);
    const { items } = await compareEnvironments(w.admin, where, "variables");
    expect(items.map(({ environments }) => environments.staging?.isCanary)).toEqual([true, undefined]);
    const writer = await personIn(w.admin, where, ["write"]);
    const write = { name: "BAIT", value: "other" };
    expect((await setVariables(writer, where, "staging", [write])).warnings).toEqual([]);
    expect((await setVariables(w.admin, where, "staging", [write])).warnings).toEqual([
      "BAIT is a canary and stays one. To make it an ordinary variable, delete it first.",
    ]);
  });

  once("stays one whatever is written over it, and ends with its deletion", async () => {
    const { where, project } = await bait(w);
    await set(w, project, { name: "BAIT", value: "another" });
    await setVariables(w.admin, where, "staging", [
      { name: "PLAIN", value: "1" },
      { name: "BAIT", value: "2" },
    ]);
    await setVariables(w.admin, where, "production", [{ name: "BAIT", value: "3" }]);
    await copyVariables(w.admin, placeOf(where, "production"), placeOf(where, "staging"));
    expect([await canariesOf(w, where), await canariesOf(w, where, "production")]).toEqual([["BAIT"], []]);
    await set(w, project, { name: "BAIT", value: "4", canary: false });
    expect(await canariesOf(w, where)).toEqual([]);
    await set(w, project, { name: "BAIT", value: "4", canary: true });
    await deleteVariable(w.admin, where, "staging", "BAIT");
    await set(w, project, { name: "BAIT", value: "5" });
    expect(await canariesOf(w, where)).toEqual([]);
  });

  once("is one in a copy, also over the same value, after a rename, a rotation, and on the ways back", async () => {
    const { where, organization, project } = await bait(w);
    const [from, to] = [placeOf(where, "staging"), placeOf(where, "production")];
    await setVariables(w.admin, where, "production", [{ name: "BAIT", value }]);
    expect(await copyVariables(w.admin, from, to)).toMatchObject({ added: ["PLAIN"], same: [] });
    expect(await copyVariables(w.admin, from, to)).toMatchObject({ added: [], same: ["BAIT", "PLAIN"] });
    expect(await canariesOf(w, where, "production")).toEqual(["BAIT"]);
    const staging = { where, environment: "staging", kind: "variables" } as const;
    await deleteVariable(w.admin, where, "staging", "BAIT"); // version 4
    await undo(w.admin, staging, await planUndo(w.admin, staging, 4));
    expect(await canariesOf(w, where)).toEqual(["BAIT"]);
    const back = async (version: number) => rollBack(w.admin, staging, await planRollback(w.admin, staging, version));
    await set(w, project, { name: "BAIT", value, canary: false }); // version 6
    expect(await planRollback(w.admin, staging, 3)).toMatchObject({ changed: ["BAIT"] });
    await set(w, project, { name: "PLAIN", value: "plain-value-1" });
    expect(await planRollback(w.admin, staging, 6)).toMatchObject({ changed: [] });
    await back(3);
    expect(await canariesOf(w, where)).toEqual(["BAIT"]);
    await back(2);
    expect(await canariesOf(w, where)).toEqual([]);
    await back(3);
    await renameProject(w.admin, where, { slug: "shop" });
    await rotateData(w.admin, `${organization.slug}/shop`, () => {});
    expect(await canariesOf(w, `${organization.slug}/shop`)).toEqual(["BAIT"]);
    await openEverything(w.admin, () => {});
  });

  once("is not told by a copy over it to somebody who may not see it", async () => {
    const { where } = await bait(w);
    const names = ["BAIT", "LIKE_BAIT"];
    const own = names.map((name) => ({ name, value, canary: true }));
    await setVariables(w.admin, where, "development", own);
    await setVariables(w.admin, where, "staging", [{ name: "LIKE_BAIT", value }]);
    const [from, to] = [placeOf(where, "development"), placeOf(where, "staging")];
    const copies = await personIn(w.admin, where, ["reveal", "write"]);
    expect(await wouldCopy(copies, from, to, names)).toMatchObject({ same: names });
    const sees = await personIn(w.admin, where, ["see", "reveal", "write"]);
    expect(await wouldCopy(sees, from, to, names)).toMatchObject({ same: ["BAIT"] });
  });

  test("cannot be made or unmade in SQL, and its listing looks like any other's", async () => {
    const { project, key } = await bait(w);
    const set = `where project_id = '${project.id}' and kind = 'variables' and environment = 'staging'`;
    const listing = String((await w.run(`select listing from sets ${set}`))[0]?.["listing"]);
    const entries = JSON.parse(listing) as { key: string; coin: string }[];
    expect(entries.map((entry) => Object.keys(entry).join())).toEqual(Array(2).fill("key,updatedAt,coin,version"));
    expect(entries.map(({ coin }) => /^[\w-]{16}$/.test(coin))).toEqual([true, true]);
    const [one, other] = entries.map(({ coin }) => coin) as [string, string];
    const swapped = listing.replace(one, "#").replace(other, one).replace("#", other);
    await w.run(`update sets set listing = ? ${set}`, [swapped]);
    expect((await w.ask(`${staging}&keys=PLAIN`, { key })).status).toBe(503);
  });

  test("shows in the list of entries beside its read, and is followed once", async () => {
    const { where, key } = await bait(w);
    const tail = new AuditTail(w.admin, { project: where }, () => {});
    await tail.newest(10);
    await w.ask(`${staging}&keys=BAIT`, { key });
    const news: string[] = [];
    for (let round = 0; round < 2; round++) {
      for await (const page of tail.news()) news.push(...page.map(({ action, names }) => `${action} ${names}`));
    }
    expect(news).toEqual(["variables.read BAIT", "canary.variable BAIT"]);
    const auditor = await personIn(w.admin, where, ["audit"], 2);
    expect(await listAudit(auditor, { actions: ["canary.variable"] })).toHaveLength(1);
    const elsewhere = await personIn(w.admin, where, ["audit"], 4);
    expect(await listAudit(elsewhere, { actions: ["canary.variable"] })).toEqual([]);
  });
});

describeOnce("the pages of canaries", (w) => {
  test("make them, mark them, and show on Today who used one, to those with the right `audit`", async () => {
    const { organization, project } = await w.place();
    const visitor = await visitorOf(w);
    const reach = { projects: "web", environments: "staging", resources: "variables", surfaces: "rest_api" };
    const asked = { ...reach, org: organization.slug, name: "old-deploy", expires: "90 days", canary: "yes" };
    const { secret = "", to } = await visitor.send("/keys", asked);
    w.secrets.add(secret);
    expect(to).toMatch(/^\/keys\/./);
    expect((await visitor.page(to ?? "")).html).toContain("This key is a canary");
    expect((await visitor.page("/keys")).html).not.toContain("old-deploy");
    expect((await visitor.page("/keys?show=canaries")).html).toContain("old-deploy");
    const set = `/p/${project.where}/variables/set`;
    const fields = await visitor.form(set, set);
    const sent = { ...fields, name: "BAIT", "value.staging": "bait-value-1", canary: "yes" };
    expect((await visitor.send(set, sent)).status).toBe(200);
    expect((await visitor.page(`/p/${project.where}/variables`)).html).toContain('<b class="due"> canary</b>');
    expect((await visitor.page(`/p/${project.where}/variables/item?name=BAIT`)).html).toContain("A canary:");
    const heading = "Alarms of the last 7 days";
    expect((await visitor.page("/")).html).not.toContain(heading);
    await w.ask("/organization", { key: secret });
    await revealVariable(w.admin, project.where, "staging", "BAIT");
    expect(await usesOf(w, { organization: organization.slug })).toHaveLength(2);
    const { html } = await visitor.page("/");
    expect(html).toContain(heading);
    const entries = [...html.matchAll(/"(\/audit\/entry\/[^"]+)"/g)].map(([, to]) => to ?? "");
    expect(entries).toHaveLength(2);
    const told = (await Promise.all(entries.map((to) => visitor.page(to)))).map(({ html }) => html).join();
    expect(told).toContain("canary.key");
    expect(told).toMatch(/<dt>Canaries<\/dt><dd><bdi>BAIT</);
    expect(html.replace(/<[^>]*>/g, "")).toContain(`used canaries: BAIT in staging of ${project.where}`);
    expect(html.replace(/<[^>]*>/g, "")).toContain(`was presented: it is a canary of ${organization.slug}`);
    expect((await visitor.page("/audit?action=canary.variable")).html).toContain("BAIT");
  });
});

test("a coin tells the holder of the key alone, and an entry without one is no canary", () => {
  const [key, other] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
  const coins = (canary: boolean) => Array.from({ length: 400 }, () => newCoin(key, canary));
  expect(coins(true).every((coin) => isCanary(key, { coin }))).toBe(true);
  expect(coins(false).some((coin) => isCanary(key, { coin }))).toBe(false);
  const guessed = coins(true).filter((coin) => isCanary(other, { coin })).length;
  expect(guessed).toBeWithin(100, 300);
  expect(isCanary(key, {})).toBe(false);
  const { entry } = variableItem({ key: "A", updatedAt: 1, coin: coins(true)[0] ?? "" }, "1");
  expect(Object.keys(entry)).toEqual(["key", "updatedAt", "coin"]);
});
