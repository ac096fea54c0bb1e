/** Questions to the record that only both databases with a server's entries show; the others: docs/month.md. */
import { beforeAll, expect, test } from "bun:test";
import { keyOf, onBoth, serverOf, siteOf } from "../support/server.ts";

type Entry = { lane: string; seq: number; action: string; actor: { type: string; id?: string }; names: string[] };

onBoth("questions to the record", (dialect) => {
  const site = siteOf(dialect, { production: { STRIPE_KEY: "s", OTHER: "o" } });
  const ci = keyOf(site, "--org", "acme", "--name", "ci");
  const server = serverOf(site);
  const list = async (...args: string[]) => (await site.json(["audit", "list", ...args])) as Entry[];

  beforeAll(() => server.get("/projects/web/variables?environment=production", ci.key));

  test("are answered by a key's name as by the beginning of its id", async () => {
    expect(await list("--actor", "ci")).toMatchObject([{ actor: { type: "key", id: ci.id } }]);
    expect(await list("--actor", ci.id.slice(0, 13))).toEqual(await list("--actor", "ci"));
  });

  test("an entry is shown whole by its name", async () => {
    const entries = await list();
    for (const entry of [entries[0], entries.at(-1)] as Entry[]) {
      expect(await site.json(["audit", "show", `${entry.lane}:${entry.seq}`])).toEqual(entry);
      const begun = entry.lane.slice(0, 13);
      expect(await site.json(["audit", "show", `${begun}:${entry.seq}`])).toEqual(entry);
    }
    const shown = (await site.here(["audit", "show", `${entries.at(-1)?.lane}:${entries.at(-1)?.seq}`])).stdout;
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
});
