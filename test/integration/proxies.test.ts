import { afterAll, expect, test } from "bun:test";
import { parseRange } from "../../src/core/addresses.ts";
import { createApp, serveOptions } from "../../src/serve/api/app.ts";
import type { ApiParts } from "../../src/serve/gates/api-parts.ts";
import { listAudit } from "../support/audit.ts";
import { rawAnswer } from "../support/raw.ts";
import { describeOnce, type World } from "../support/world.ts";

describeOnce("behind a proxy", (w) => {
  const apps: ReturnType<typeof createApp>[] = [];
  afterAll(() => Promise.all(apps.map((app) => app.server?.stop(true))));
  /** A server on a port, which trusts these proxies, and what it logs. */
  const start = (w: World, proxies?: readonly string[]) => {
    const log: Readonly<Record<string, unknown>>[] = [];
    const ranges = proxies?.map(parseRange) as ApiParts["proxies"];
    const app = createApp({ ...w.keyhole, proxies: ranges, log: (event) => log.push(event) });
    app.listen({ ...serveOptions(() => {}), hostname: "127.0.0.1", port: 0 });
    apps.push(app);
    const ask = async (key: string, ...lines: readonly string[]) => {
      const target = "/api/v1/projects/web/variables?environment=production";
      const own = [`Host: localhost`, `Authorization: Bearer ${key}`, ...lines, "Connection: close"];
      const answer = await rawAnswer(
        app.server?.port as number,
        `GET ${target} HTTP/1.1\r\n${own.join("\r\n")}\r\n\r\n`,
      );
      return answer.split(" ")[1];
    };
    return { ask, log };
  };
  const newOrganization = async () => (await w.place({ variables: { production: { TOKEN: "made-up" } } })).organization;
  const newestAddress = async (actions: readonly string[]) =>
    (await listAudit(w.admin, { actions, limit: 1 })).at(-1)?.clientAddress;

  test("the entry has the caller's address over all lines of the header, and the proxy that said so", async () => {
    const { key } = await w.key(await newOrganization());
    const { ask, log } = start(w, ["127.0.0.1", "10.0.0.0/8"]);
    const chain = ["X-Forwarded-For: 198.51.100.1, 203.0.113.9", "x-forwarded-for: 10.1.2.3"];
    for (const [lines, address] of [
      [chain, "203.0.113.9 via 127.0.0.1"],
      [["X-Forwarded-For: 203.0.113.9, made up, 10.1.2.3"], "10.1.2.3 via 127.0.0.1"],
      [[], "127.0.0.1"],
    ] as const) {
      expect([lines, await ask(key, ...lines)]).toEqual([lines, "200"]);
      expect([lines, await newestAddress(["variables.read"])]).toEqual([lines, address]);
    }
    expect(log.filter(({ event }) => event === "proxy_not_trusted")).toEqual([]);
  });

  test("the alarm about a canary has the caller's address, too, in the log and in the entry", async () => {
    const { key } = await w.key(await newOrganization(), { canary: true });
    expect(await start(w, ["127.0.0.0/8"]).ask(key, "X-Forwarded-For: 203.0.113.9")).toBe("401");
    await w.keyhole.gate.alarms.flush();
    const clientAddress = "203.0.113.9 via 127.0.0.1";
    expect(await newestAddress(["canary.key"])).toBe(clientAddress);
    expect(w.log).toContainEqual(expect.objectContaining({ event: "canary", clientAddress }));
  });

  test("a header of anybody else changes nothing, and the log says once that it may be a proxy's", async () => {
    const { key } = await w.key(await newOrganization());
    for (const proxies of [undefined, ["10.0.0.0/8", "unix"]]) {
      const { ask, log } = start(w, proxies);
      for (const forwardedFor of ["203.0.113.9", "203.0.113.10"]) {
        expect(await ask(key, `X-Forwarded-For: ${forwardedFor}`, "Forwarded: for=203.0.113.9")).toBe("200");
        expect(await newestAddress(["variables.read"])).toBe("127.0.0.1");
      }
      const address = "127.0.0.1";
      const reason = expect.stringContaining("KEYHOLE_TRUSTED_PROXIES must name it");
      expect(log.filter(({ event }) => event !== "request")).toEqual([{ event: "proxy_not_trusted", address, reason }]);
    }
  });
});
