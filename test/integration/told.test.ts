import { expect, test } from "bun:test";
import { putFile } from "../../src/kinds/files/write.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import { Waits } from "../../src/serve/api/waits.ts";
import { Limiter } from "../../src/serve/limit/limiter.ts";
import { answerOf, requestOf } from "../support/answer.ts";
import { moment } from "../support/clock.ts";
import { expectDescribed } from "../support/described.ts";
import { eventually } from "../support/eventually.ts";
import { deleteProject, renameProject, setAccount, setVariables } from "../support/plans.ts";
import { describeBoth, everything, type World } from "../support/world.ts";

const variables = "/projects/web/variables?environment=staging";
const accounts = "/projects/web/accounts?environment=staging";
const files = "/files?project=web&environment=staging";
const secrets = "/secrets?project=web&environment=staging";
const paths = [variables, `${variables}&metadata_only=true`, accounts, files, `${files}&metadataOnly=true`, secrets];

describeBoth("a conditional read that waits", (w, _, once) => {
  const set = (where: string, value: string) => setVariables(w.admin, where, "staging", [{ name: "A", value }]);
  const put = (where: string) =>
    putFile(w.admin, where, { path: "a", environments: ["staging"], content: Buffer.from("two") });

  type Placed = Awaited<ReturnType<typeof furnished>>;
  type Change = (placed: Placed) => Promise<unknown>;
  const cases: readonly (readonly [what: string, status: number, change: Change, paths?: readonly string[]])[] = [
    ["a variable is written", 200, ({ where }) => set(where, "two"), [paths[0], paths[1], secrets] as string[]],
    [
      "an account is written",
      200,
      ({ where }) => setAccount(w.admin, where, "ci", ["staging"], { password: "two" }),
      [accounts],
    ],
    ["a file is written", 200, ({ where }) => put(where), [files, paths[4] as string]],
    ["the key is revoked", 401, ({ key }) => revokeKey(w.admin, key.id)],
    ["the plan ends", 403, ({ organization }) => setPlan(w.admin, organization.slug, "free")],
    ["the project is renamed", 404, ({ where }) => renameProject(w.admin, where, { slug: "other" })],
    ["the project is deleted", 404, ({ where }) => deleteProject(w.admin, where)],
  ];
  test.each(cases)("is answered once %s: %d", async (_, status, change, asked = paths) => {
    const placed = await furnished(w);
    const { waits, begin } = waitingAt(w);
    const before = await Promise.all(asked.map((path) => begin(placed.key, path)));
    await eventually(() => waits.size === asked.length);
    await change(placed);
    for (const { answer } of before) {
      const seen = await answer;
      expect([seen.status, seen.headers.has("preference-applied")]).toEqual([status, status === 200]);
    }
    await eventually(() => waits.size === 0);
  });

  test("pays one metadata token and one of its own, and is on record, once", async () => {
    const placed = await furnished(w);
    const { waits, begin, taken } = waitingAt(w);
    const entries = (await w.audit(placed.key)).length;
    const { tag, answer } = await begin(placed.key, variables);
    await eventually(() => waits.size === 1);
    expect(taken.splice(0)).toEqual(["metadata"]);
    await set(`${placed.organization.slug}/web`, "two");
    const { status, headers, json } = await answer;
    expect(status).toBe(200);
    expect(json).toMatchObject({ variables: [{ key: "A", value: "two" }] });
    expect(headers.get("etag")).not.toBe(tag);
    expect(headers.get("preference-applied")).toBe("wait=60");
    expect(taken).toEqual(["value"]);
    const all = await w.audit(placed.key);
    // One for the read that gave the tag.
    expect(all.length - entries).toBe(2);
    expect(headers.get("keyhole-audit")).toEndWith(`:${all.at(-1)?.seq}`);
  });

  once("is a 304 after its seconds, for one metadata token and without an entry", async () => {
    const placed = await furnished(w);
    const { begin, taken } = waitingAt(w);
    const { tag, answer } = await begin(placed.key, variables, "wait=1");
    const entries = (await w.audit(placed.key)).length;
    const { status, headers, text } = await answer;
    expect({ status, text }).toEqual({ status: 304, text: "" });
    expect(headers.get("etag")).toBe(tag);
    expect(headers.get("preference-applied")).toBe("wait=1");
    expect(taken).toEqual(["metadata"]);
    expect((await w.audit(placed.key)).length).toBe(entries);
  });

  once("waits for nothing without a tag, with another preference, or with a tag that does not fit", async () => {
    const { key } = await furnished(w);
    const { waits, handle } = waitingAt(w);
    const ask = async (headers: Readonly<Record<string, string>>) =>
      answerOf(await handle({ key, headers }, variables));
    const tag = (await ask({ prefer: "wait=60" })).headers.get("etag") ?? "";
    const applied = async (headers: Readonly<Record<string, string>>) => {
      const answer = await ask(headers);
      expect(waits.size).toBe(0);
      return [answer.status, answer.headers.get("preference-applied")];
    };
    expect(await applied({ prefer: "wait=60" })).toEqual([200, null]);
    expect(await applied({ "if-none-match": tag, prefer: "wait=61, respond-async" })).toEqual([304, null]);
    expect(await applied({ "if-none-match": noTag, prefer: "wait=60" })).toEqual([200, "wait=60"]);
    const [status, none] = await applied({ "if-none-match": noTag, prefer: "wait=0" });
    expect([status, none]).toEqual([200, null]);
  });

  once("is not waited for by the 65th request of a key, which does not say that it would have waited", async () => {
    const { key, organization } = await furnished(w);
    const { waits, begin } = waitingAt(w);
    const { tag } = await begin(key, variables);
    await Promise.all(Array.from({ length: 63 }, () => begin(key, variables, "wait=60", tag)));
    await eventually(() => waits.size === 64);
    const more = await (await begin(key, variables, "wait=60", tag)).answer;
    expect([more.status, more.headers.get("preference-applied")]).toEqual([304, null]);
    const other = await w.key(organization, everything);
    await begin(other, variables);
    await eventually(() => waits.size === 65);
    waits.end();
    await eventually(() => waits.size === 0);
  });

  once("ends with its answer and the connection once the server stops, and none begins then", async () => {
    const { key } = await furnished(w);
    const { waits, begin } = waitingAt(w);
    const { tag, answer } = await begin(key, variables);
    await eventually(() => waits.size === 1);
    waits.end();
    const { status, headers } = await answer;
    expect([status, headers.get("connection"), headers.get("etag")]).toEqual([304, "close", tag]);
    const late = await (await begin(key, variables, "wait=60", tag)).answer;
    expect([late.status, late.headers.get("preference-applied")]).toEqual([304, null]);
  });

  once("is forgotten when its caller leaves", async () => {
    const { key } = await furnished(w);
    const { waits, begin } = waitingAt(w);
    const leaving = new AbortController();
    await begin(key, variables, "wait=60", undefined, leaving.signal);
    await eventually(() => waits.size === 1);
    leaving.abort();
    await eventually(() => waits.size === 0);
  });

  test("finds within ten seconds what no command did", async () => {
    const { key } = await furnished(w);
    let ahead = 0;
    const { waits, begin } = waitingAt(w, () => performance.now() + ahead);
    const { answer } = await begin(key, variables);
    await eventually(() => waits.size === 1);
    await moment(2100); // the first look judges it, as no end was known
    await w.sql`update api_keys set revoked_at = ${Date.now() - 1} where id = ${key.id}`;
    ahead = 9000;
    expect((await answer).status).toBe(401);
  });

  test("outlasts a server that answers nothing for a time, and ends as every other read if it does not", async () => {
    const placed = await furnished(w);
    let refusal: string | undefined;
    const { waits, begin } = waitingAt(w, undefined, () => refusal);
    const { answer } = await begin(placed.key, variables);
    const short = await begin(placed.key, variables, "wait=3");
    await eventually(() => waits.size === 2);
    refusal = "put back";
    await set(placed.where, "two");
    expect((await short.answer).status).toBe(503);
    expect(waits.size).toBe(1);
    refusal = undefined;
    expect((await answer).status).toBe(200);
  });
});

const noTag = `"${"A".repeat(43)}"`;

async function furnished(w: World) {
  const placed = await w.place({
    variables: { staging: { A: "one" } },
    accounts: [{ name: "ci", environments: ["staging"], values: { password: "one" } }],
    files: [{ path: "a", environments: ["staging"], content: "one" }],
    key: everything,
  });
  return { ...placed, where: `${placed.organization.slug}/web` };
}

/** A client with waits and buckets of its own. */
function waitingAt(w: World, nowMs?: () => number, refusal = () => undefined as string | undefined) {
  const end = async () => JSON.stringify(await w.run("select mac from audit_heads where lane = 'commands'"));
  const waits = new Waits(end, nowMs);
  const taken: string[] = [];
  const limiter = new Limiter();
  const take = (...call: Parameters<Limiter["take"]>) => {
    taken.push(call[1]);
    return limiter.take(...call);
  };
  const client = w.client(({ gate }) => ({ waits, gate: { ...gate, limiter, shared: { take }, refusal } }));
  const handle = (ask: Parameters<typeof requestOf>[1], path: string, signal?: AbortSignal) =>
    client.handle(new Request(requestOf(path, ask), signal && { signal }));
  const begin = async (
    key: { readonly key: string },
    path: string,
    prefer = "wait=60",
    known?: string,
    signal?: AbortSignal,
  ) => {
    const tag = known ?? (await handle({ key }, path)).headers.get("etag") ?? "";
    taken.length = 0;
    const answer = handle({ key, headers: { "if-none-match": tag, prefer } }, path, signal).then(answerOf);
    void answer.then(({ status, headers, text }) => expectDescribed(path, status, headers, () => text));
    return { tag, answer };
  };
  return { waits, taken, begin, handle };
}
