import { describe, expect, test } from "bun:test";
import { fetchJson } from "../../src/core/fetch-json.ts";
import { discoverKeys, IssuerKeys } from "../../src/serve/access/issuer-keys.ts";
import type { KeySet } from "../../src/serve/access/token.ts";
import { newSigningKey, publicJwk, startIssuer } from "../support/issuer.ts";

const issuer = "https://issuer.example/path/";
const jwks = { keys: [publicJwk("one", newSigningKey("ES256"))] };
const minuteMs = 60_000;

/** A network of these documents. */
function network(documents: Readonly<Record<string, unknown>>) {
  const asked: string[] = [];
  return {
    asked,
    fetchJson: async (url: string) => {
      asked.push(url);
      if (!(url in documents)) throw new Error("it answered 404");
      return documents[url];
    },
  };
}

describe("discovery", () => {
  const discovery = "https://issuer.example/path/.well-known/openid-configuration";

  test("asks below the issuer's path, and where the document says", async () => {
    const keysAt = "https://keys.example/jwks";
    const { asked, fetchJson } = network({ [discovery]: { issuer, jwks_uri: keysAt }, [keysAt]: jwks });
    expect((await discoverKeys(issuer, fetchJson)).keys).toEqual(jwks.keys);
    expect(asked).toEqual([discovery, keysAt]);
  });

  const wrong: [what: string, document: unknown, says: string][] = [
    ["another issuer", { issuer: "https://issuer.example", jwks_uri: "https://keys.example" }, "another issuer's"],
    ["no issuer", { jwks_uri: "https://keys.example" }, "another issuer's"],
    ["no object", null, "another issuer's"],
    ["no address", { issuer }, "its jwks_uri is not an https URL"],
    ["plain http", { issuer, jwks_uri: "http://keys.example" }, "its jwks_uri is not an https URL"],
    ["plain http to this machine", { issuer, jwks_uri: "http://127.0.0.1/jwks" }, "its jwks_uri is not an https URL"],
    ["a file", { issuer, jwks_uri: "file:///etc/passwd" }, "its jwks_uri is not an https URL"],
  ];
  test.each(wrong)("refuses a document with %s, and asks no further", async (_, document, says) => {
    const { asked, fetchJson } = network({ [discovery]: document });
    await expect(discoverKeys(issuer, fetchJson)).rejects.toThrow(says);
    expect(asked).toEqual([discovery]);
  });

  test("asks no issuer over plain http, except on this machine", async () => {
    const { asked, fetchJson } = network({});
    for (const url of ["http://issuer.example", "http://127.0.0.1.example", "ftp://x", "issuer"]) {
      await expect(discoverKeys(url, fetchJson)).rejects.toThrow("the issuer is not an https URL");
    }
    expect(asked).toEqual([]);
  });
});

describe("an answer of an issuer", () => {
  const bad: [what: string, answer: () => Response, says: string][] = [
    ["that redirects", () => Response.redirect("https://other.example", 302), "it answered 302"],
    ["of 10 MiB", () => new Response("x".repeat(10 * 1024 * 1024)), "its answer is longer than 256 KiB"],
    ["without an end", () => new Response(endless()), "its answer is longer than 256 KiB"],
    ["that is no JSON", () => new Response("<html>"), "its answer is not complete JSON in UTF-8"],
    ["that is compressed", () => gzip("{}"), "its answer is not complete JSON in UTF-8"],
    ["of another status", () => new Response("{}", { status: 500 }), "it answered 500"],
  ];
  test.each(bad)("%s is refused", async (_, answer, says) => {
    await using one = startIssuer();
    one.answer = answer;
    expect(await fetchJson(one.url, false).catch((error: Error) => error.message)).toBe(says);
  });

  test("that does not come, or comes in drops, is given up", async () => {
    await using one = startIssuer();
    one.answer = () => new Promise(() => {});
    expect(await fetchJson(one.url, false, 50).catch((error: Error) => error.message)).toBe(
      "it did not answer within 0.05 s",
    );
    one.answer = () => new Response(drops());
    expect(await fetchJson(one.url, false, 50).catch((error: Error) => error.message)).toBe(
      "it did not answer within 0.05 s",
    );
  });
});

describe("the keys of an issuer", () => {
  /** Keys of an issuer that has `kids` by now and is away if there are none. */
  function stage() {
    const now = { ms: 0 };
    const state = { kids: ["one"], asked: 0, notes: [] as (string | undefined)[] };
    const fetchJson = async (url: string) => {
      if (!url.endsWith("openid-configuration")) return { keys: state.kids.map((kid) => ({ ...jwks.keys[0], kid })) };
      state.asked += 1;
      if (state.kids.length === 0) throw new Error("it answered 503");
      return { issuer, jwks_uri: "https://issuer.example/jwks" };
    };
    const keys = new IssuerKeys(
      fetchJson,
      (_, failure) => state.notes.push(failure),
      () => now.ms,
    );
    const kidsOf = (set: KeySet | undefined) => set?.keys.map((one) => (one as { kid?: string }).kid) ?? [];
    const kids = async (unfit?: KeySet) => kidsOf(await keys.find(issuer, false, unfit));
    return { keys, now, state, kids };
  }

  test("are replaced as a whole when they do not verify a token, at most every 30 s", async () => {
    const { keys, now, state, kids } = stage();
    const first = await keys.find(issuer, false);
    state.kids = ["two"];
    expect(await kids(first)).toEqual(["one"]);
    now.ms = 29_999;
    expect(await kids(first)).toEqual(["one"]);
    expect(state.asked).toBe(1);
    now.ms = 30_000;
    expect(await kids(first)).toEqual(["two"]);
    expect(state.asked).toBe(2);
    now.ms = 60_000; // others have made it ask since
    expect(await kids(first)).toEqual(["two"]);
    expect(state.asked).toBe(2);
  });

  test("are fetched again after 50 minutes, while the token that comes then is judged by those there are", async () => {
    const { now, state, kids } = stage();
    expect(await kids()).toEqual(["one"]);
    now.ms = 49 * minuteMs;
    expect([await kids(), state.asked]).toEqual([["one"], 1]);
    state.kids = ["two"];
    now.ms = 50 * minuteMs;
    expect([await kids(), state.asked]).toEqual([["one"], 2]);
    for (let n = 0; n < 10; n++) await Promise.resolve();
    expect([await kids(), state.asked]).toEqual([["two"], 2]);
  });

  test("that may be had on the internet alone say nothing of those that an operator's trust may reach", async () => {
    const { keys, state, kids } = stage();
    state.kids = [];
    expect(await keys.find(issuer, true)).toBeUndefined();
    state.kids = ["one"];
    expect([await kids(), state.asked]).toEqual([["one"], 2]);
  });

  test("stay for a day if the issuer is away, which the log says once, and then that it is back", async () => {
    const { now, state, kids } = stage();
    expect(await kids()).toEqual(["one"]);
    state.kids = [];
    for (now.ms = 0; now.ms < 24 * 60 * minuteMs; now.ms += 30 * minuteMs) {
      expect(await kids()).toEqual(["one"]);
    }
    expect(await kids()).toEqual([]);
    expect(state.notes).toEqual(["it answered 503"]);
    state.kids = ["one"];
    now.ms += minuteMs;
    expect(await kids()).toEqual(["one"]);
    expect(state.notes).toEqual(["it answered 503", undefined]);
  });

  test("are asked for once by many requests at the same time, and no more than 1,024 wait for one issuer", async () => {
    const { keys, state, kids } = stage();
    const waiting = Array.from({ length: 1024 }, () => kids());
    await expect(keys.find(issuer, false)).rejects.toMatchObject({ code: "rate_limited", detail: { retryAfterS: 1 } });
    expect(await keys.find("https://other.example", false)).toBeUndefined();
    expect(new Set((await Promise.all(waiting)).flat())).toEqual(new Set(["one"]));
    expect([state.asked, await kids()]).toEqual([2, ["one"]]);
  });
});

function endless(): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: (controller) => controller.enqueue(new Uint8Array(64 * 1024).fill(0x20)) });
}

/** A byte, and then nothing more. */
function drops(): ReadableStream<Uint8Array> {
  return new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array([0x20])) });
}

function gzip(text: string): Response {
  return new Response(Bun.gzipSync(text), { headers: { "content-encoding": "gzip" } });
}
