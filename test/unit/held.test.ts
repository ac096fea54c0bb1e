import { describe, expect, test } from "bun:test";
import { inspect } from "node:util";
import { serialize } from "node:v8";
import { Fault } from "../../src/core/fault.ts";
import { type Body, Held, Render } from "../../src/core/held.ts";
import { accountsJson, type OpenedAccounts } from "../../src/kinds/accounts/render.ts";
import { filesJson } from "../../src/kinds/files/render.ts";
import { variablesDotenv, variablesJson } from "../../src/kinds/variables/render.ts";
import type { AuditEntry } from "../../src/record/entry.ts";
import { release } from "../../src/record/release.ts";
import { entry } from "../support/journal.ts";

/** Ways to get a value out before it is on record. Who may import what is house.test.ts. */

const canary = "CANARY-0f1e2d";

describe("a Held", () => {
  const held = new Held({ value: canary, bytes: Buffer.from(canary) });
  const ways: [string, () => unknown][] = [
    ["as a string", () => `${held} ${held as never as string}`],
    ["as JSON", () => JSON.stringify({ held, list: [held] })],
    ["on the console", () => Bun.inspect({ held, map: new Map([[held, held]]) }, { depth: 9 })],
    ["with inspect that ignores our hook", () => inspect(held, { customInspect: false, showHidden: true, depth: 9 })],
    ["in an error", () => Bun.inspect(new Error("with a cause", { cause: held }))],
    ["as a clone", () => Bun.inspect(structuredClone({ held }), { depth: 9 })],
    ["serialized", () => serialize(held).toString("latin1")],
    ["spread", () => JSON.stringify({ ...held })],
    ["by its keys and symbols", () => JSON.stringify(Reflect.ownKeys(held))],
    ["as a body", () => new Response(held as never as string).text()],
    ["to a subclass", () => Bun.inspect(new (class extends Held<string> {})(canary))],
  ];
  test.each(ways)("shows nothing %s", async (_, show) => expect(String(await show())).not.toContain(canary));
  test("equals any other: a guess is not confirmed", () => {
    expect(Bun.deepEquals(new Held(canary), new Held("guess"))).toBe(true);
  });
});

describe("release", () => {
  const render = new Render((value: string): Body => ({ content: value, contentType: "text/plain" }));
  const held = new Held(canary);
  const untouched = { record: () => Promise.reject(new Error("something was recorded")) };

  test("renders, waits for the record, and only then returns the body, whose pieces nobody has made", async () => {
    const events: string[] = [];
    const recorded = Promise.withResolvers<void>();
    function* pieces(value: string) {
      events.push("first piece");
      yield value;
    }
    const lazy = new Render((value: string): Body => {
      events.push("rendered");
      return { content: pieces(value), contentType: "text/plain" };
    });
    const record = async (entries: readonly AuditEntry[]) => {
      events.push(`recording ${entries.length}`);
      await recorded.promise;
      events.push("recorded");
      return "lane:7";
    };
    const released = release({ record }, [entry], held, lazy).then((body) => {
      events.push("returned");
      return body;
    });
    await new Promise(setImmediate);
    expect(events).toEqual(["rendered", "recording 1"]);
    recorded.resolve();
    const { content, headers } = await released;
    expect(headers).toEqual({ "Keyhole-Audit": "lane:7" });
    expect(events).toEqual(["rendered", "recording 1", "recorded", "returned"]);
    expect([...content]).toEqual([canary]);
  });

  test("returns no body, and makes no piece of one, if the journal refuses", async () => {
    let made = 0;
    const lazy = new Render((value: string): Body => {
      const content = {
        *[Symbol.iterator]() {
          made++;
          yield value;
        },
      };
      return { content, contentType: "text/plain" };
    });
    const refusal = new Fault("unavailable", "refused");
    const journal = { record: () => Promise.reject(refusal) };
    const outcome = await release(journal, [entry], held, lazy).catch((error: unknown) => error);
    expect(outcome).toBe(refusal);
    expect(inspect(outcome, { showHidden: true, depth: 9 })).not.toContain(canary);
    expect(made).toBe(0);
  });

  test("records nothing if the render refuses", async () => {
    const unrepresentable = Buffer.from(JSON.stringify({ key: "A", value: `${canary}\u0000`, updatedAt: 1 }));
    const released = release(untouched, [entry], new Held({ objects: unrepresentable }), variablesDotenv);
    expect(await released.catch((error: unknown) => error)).toMatchObject({ code: "env_unrepresentable" });
  });

  const file = { json: "{}", base64: [canary] };
  const rows: [string, (entries: AuditEntry[]) => Promise<Body>, needed: number][] = [
    ["no variable", (e) => release(accepting, e, new Held({ objects: Buffer.alloc(0) }), variablesJson("x")), 1],
    ["no account", (e) => release(accepting, e, new Held<OpenedAccounts>([]), accountsJson(null)), 1],
    ["no file", (e) => release(accepting, e, new Held([]), filesJson("web", "x")), 0],
    ["two files", (e) => release(accepting, e, new Held([file, file]), filesJson("web", "x")), 2],
  ];
  let recordedCount = 0;
  const accepting = {
    record: async (entries: readonly AuditEntry[]) => {
      recordedCount += entries.length;
      return undefined;
    },
  };
  test.each(rows)("refuses a forgotten entry: %s", async (_, releaseWith, needed) => {
    for (const count of [0, 1, 2, 3]) {
      recordedCount = 0;
      const outcome = await releaseWith(Array(count).fill(entry)).catch((error: unknown) => error);
      expect(outcome instanceof Error).toBe(count !== needed);
      expect(recordedCount).toBe(count === needed ? needed : 0);
    }
  });

  const impostors: [string, unknown, unknown][] = [
    ["something that looks like a Held", { value: canary, toString: () => "", toJSON: () => "" }, render],
    ["a proxy of a Held", new Proxy(held, {}), render],
    ["an heir of a Held", Object.create(held), render],
    ["a function for a Render", held, (value: string) => ({ content: value, contentType: "" })],
    ["something that looks like a Render", held, Object.create(Render.prototype)],
  ];
  test.each(impostors)("does not take %s", async (_, someHeld, someRender) => {
    const released = release(untouched, [entry], someHeld as Held<string>, someRender as Render<string>);
    expect(await released.catch((error: unknown) => error)).toBeInstanceOf(TypeError);
  });
});
