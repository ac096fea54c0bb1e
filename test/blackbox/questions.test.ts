import { beforeAll, expect, test } from "bun:test";
import { type Key, onBoth, type Server, siteOf } from "../support/server.ts";

type Entry = { lane: string; seq: number; action: string; actor: { type: string; id?: string }; names: string[] };

/** "Who read STRIPE_KEY in production since Tuesday?" */
onBoth("questions to the record", (dialect) => {
  const site = siteOf(dialect, { production: { STRIPE_KEY: "s", OTHER: "o" }, staging: { STRIPE_KEY: "t" } });
  let ci: Key;
  let server: Server;
  const list = async (...args: string[]) => (await site.json(["audit", "list", ...args])) as Entry[];
  const read = (key: Key, query: string) => server.get(`/projects/web/variables?${query}`, key.key);

  beforeAll(async () => {
    ci = await site.key("--org", "acme", "--name", "ci");
    const other = await site.key("--org", "acme", "--name", "deploy");
    server = await site.serve();
    await read(ci, "environment=production&keys=STRIPE_KEY");
    await read(ci, "environment=staging");
    await read(other, "environment=production&keys=OTHER");
    await read(other, "environment=production");
  });

  test("are answered by name, environment and actor", async () => {
    const readers = await list("--name", "STRIPE_KEY", "--env", "production", "--action", "variables.read");
    expect(readers.map(({ names }) => names)).toEqual([["STRIPE_KEY"], ["OTHER", "STRIPE_KEY"]]);
    expect(await list("--name", "STRIPE_KEY", "--env", "production", "--actor", "ci")).toMatchObject([
      { actor: { type: "key", id: ci.id }, names: ["STRIPE_KEY"] },
    ]);
    expect(await list("--actor", ci.id.slice(0, 13))).toEqual(await list("--actor", "ci"));
    const [first] = await list();
    const person = (first as unknown as { actor: { name: string } }).actor.name;
    const changes = await list("--actor", person);
    expect(changes.length).toBeGreaterThan(4);
    expect(changes.every(({ actor }) => actor.type === "person")).toBeTrue();
    const table = await site.keyhole(["audit", "list", "--name", "STRIPE_KEY", "--action", "variables.read"]);
    expect(table.stdout).toContain("key deploy");
  });

  test("an entry is shown whole by its name", async () => {
    const entries = await list();
    for (const entry of [entries[0], entries.at(-1)] as Entry[]) {
      expect(await site.json(["audit", "show", `${entry.lane}:${entry.seq}`])).toEqual(entry);
      const begun = entry.lane.slice(0, 13);
      expect(await site.json(["audit", "show", `${begun}:${entry.seq}`])).toEqual(entry);
    }
    const shown = (await site.keyhole(["audit", "show", `${entries.at(-1)?.lane}:${entries.at(-1)?.seq}`])).stdout;
    expect(shown).toMatch(/^NAMES +OTHER,STRIPE_KEY$/m);
  });

  test("an entry is shown whatever other lanes SQL adds", async () => {
    const [first] = await list();
    const { lane, seq } = first as Entry;
    const columns = "first_seq, last_seq, at, texts, entries, mac";
    const copy = `select ?, ${columns} from audit_segments where lane = ? and first_seq = ?`;
    await site.sql(`insert into audit_segments (lane, ${columns}) ${copy}`, [`${lane}-more`, lane, seq]);
    expect(await site.json(["audit", "show", `${lane}:${seq}`])).toEqual(first);
    await site.sql("delete from audit_segments where lane = ?", [`${lane}-more`]);
  });

  test("keys that nobody used, or that never expire, are listed", async () => {
    const names = async (...args: string[]) =>
      ((await site.json(["key", "list", ...args])) as { name: string }[]).map(({ name }) => name);
    await site.key("--org", "acme", "--name", "short", "--expires-in", "90d");
    const revoked = await site.key("--org", "acme", "--name", "gone");
    await site.json(["key", "revoke", revoked.id]);
    expect((await names("--never-expires")).sort()).toEqual(["ci", "deploy"]);
    expect(await names("--unused", "1d")).toEqual([]);
    const old = Date.now() - 100 * 86_400_000;
    await site.sql("update api_keys set created_at = ? where name in ('short', 'gone')", [old]);
    expect(await names("--unused", "90d")).toEqual(["short"]);
    const none = await site.keyhole(["key", "list", "--unused", "1000d"]);
    expect(none).toEqual({ exitCode: 0, stdout: "", stderr: "No active key has been unused for this long.\n" });
    expect((await site.keyhole(["expiring"])).stderr).toEndWith(
      "2 keys never expire: keyhole key list --never-expires\n",
    );
  });
});
