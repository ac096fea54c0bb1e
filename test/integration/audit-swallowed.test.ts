import { beforeAll, expect, test } from "bun:test";
import { describeBoth, everything, type Key } from "../world.ts";

/** How a segment of two entries, of the files a.txt and b.txt, is lost on its way into the table. */
const swallowing: Record<"postgres" | "sqlite", readonly { how: string; make: readonly string[]; drop: string }[]> = {
  postgres: [
    {
      how: "a trigger that drops the row",
      make: [
        "create function swallow() returns trigger language plpgsql as 'begin return null; end'",
        "create trigger swallow before insert on audit_segments for each row execute function swallow()",
      ],
      drop: "drop function swallow cascade",
    },
    {
      how: "a rule that does nothing instead",
      make: ["create rule swallow as on insert to audit_segments do instead nothing"],
      drop: "drop rule swallow on audit_segments",
    },
    {
      how: "a rule that does nothing instead of some rows",
      make: ["create rule swallow as on insert to audit_segments where new.entries like '%b.txt%' do instead nothing"],
      drop: "drop rule swallow on audit_segments",
    },
  ],
  sqlite: [
    {
      how: "a trigger that drops the row",
      make: ["create trigger swallow before insert on audit_segments begin select raise(ignore); end"],
      drop: "drop trigger swallow",
    },
    {
      how: "a trigger that writes something else in its place",
      make: [
        "create trigger swallow before insert on audit_segments begin insert or replace into key_uses (key_id, last_used_at) select id, 1 from api_keys limit 1; select raise(ignore); end",
      ],
      drop: "drop trigger swallow",
    },
  ],
};

describeBoth("an audit table that keeps entries out", (world, dialect) => {
  const path = "/files?project=web&environment=staging";
  let key: Key;
  beforeAll(async () => {
    const acme = await world().organization();
    const file = (name: string) => ({ path: name, environments: ["staging" as const], content: "canary-of-a-file" });
    await world().project(acme, "web", { files: [file("a.txt"), file("b.txt")] });
    key = await world().key(acme, everything);
  });

  test.each(swallowing[dialect])("by $how makes a read unavailable and keeps none of its entries", async (one) => {
    const w = world();
    expect((await w.ask(path, { key })).status).toBe(200);
    const before = (await w.audit(key)).length;
    for (const statement of one.make) await w.run(statement);
    const refused = await w.ask(path, { key });
    await w.run(one.drop);
    expect([refused.status, refused.json]).toMatchObject([503, { code: "unavailable" }]);
    expect(refused.text).not.toContain("canary");
    expect((await w.audit(key)).length).toBe(before);
    expect((await w.ask(path, { key })).status).toBe(200);
    expect((await w.audit(key)).length).toBe(before + 2);
  });
});
