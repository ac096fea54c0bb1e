import { beforeAll, expect, test } from "bun:test";
import { Refused } from "../../src/core/refused.ts";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { setVariables } from "../../src/kinds/variables/write.ts";
import { verifyAudit } from "../../src/people/audit-chain.ts";
import { createKey } from "../../src/people/keys.ts";
import { describeBoth, everything, type Key } from "../support/world.ts";

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

describeBoth("an audit table that keeps entries out", (w, dialect) => {
  const path = "/files?project=web&environment=staging";
  let key: Key;
  beforeAll(async () => {
    const acme = await w.organization();
    const file = (name: string) => ({ path: name, environments: ["staging" as const], content: "canary-of-a-file" });
    await w.project(acme, "web", { files: [file("a.txt"), file("b.txt")] });
    key = await w.key(acme, everything);
  });

  test.each(swallowing[dialect])("by $how makes a read unavailable and keeps none of its entries", async (one) => {
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

/** What triggers do to the rows of a change's record: its segment, and the end of the lane. */
type Loss = {
  readonly how: string;
  readonly when: readonly string[];
  readonly postgres: string;
  readonly sqlite?: string;
};
const onSegment = "after insert on audit_segments";
const remove = "delete from audit_segments where lane = 'commands';";
const losses: readonly Loss[] = [
  ...[
    { how: "swallow both rows", when: ["before insert on audit_segments", "before update on audit_heads"] },
    { how: "swallow the segment", when: ["before insert on audit_segments"] },
    { how: "swallow the lane's end", when: ["before update on audit_heads"] },
  ].map((one) => ({ ...one, postgres: "return null;", sqlite: "select raise(ignore);" })),
  ...[
    { how: "delete the segment", when: [onSegment], sqlite: remove },
    { how: "change the segment", when: [onSegment], sqlite: "update audit_segments set entries = '{}';" },
    {
      how: "set the lane's end back",
      when: ["after update of mac on audit_heads"],
      sqlite: "update audit_heads set seq = 0;",
    },
  ].map((one) => ({ ...one, postgres: `${one.sqlite} return null;` })),
  {
    how: "delete the segment at the end of the transaction",
    when: [`${onSegment} deferrable initially deferred`],
    postgres: `${remove} return null;`,
  },
];

describeBoth("triggers that keep what people do out of the audit", (w, dialect) => {
  const make = ({ when, postgres, sqlite }: Loss) => {
    if (dialect === "sqlite") return when.map((one, at) => `create trigger lose_${at} ${one} begin ${sqlite} end`);
    const kind = (one: string) => (one.includes("deferred") ? "constraint trigger" : "trigger");
    return [
      `create function lose() returns trigger language plpgsql as $$begin ${postgres} end$$`,
      ...when.map((one, at) => `create ${kind(one)} lose_${at} ${one} for each row execute function lose()`),
    ];
  };
  const drop = ({ when }: Loss) =>
    dialect === "sqlite" ? when.map((_, at) => `drop trigger lose_${at}`) : ["drop function lose cascade"];

  test.each(losses.filter((one) => one[dialect]))("and $how: nothing is changed or shown", async (one) => {
    const acme = await w.organization();
    const { where } = await w.project(acme, "web", { variables: { staging: { TOKEN: "1" } } });
    const deeds = [
      () => setVariables(w.admin, where, "staging", [{ name: "TOKEN", value: "2" }]),
      () => revealVariable(w.admin, where, "staging", "TOKEN"),
      () => createKey(w.admin, { organization: acme.slug, projects: null, environments: null }),
    ];
    const counts = () =>
      w.run(`select (select count(*) from api_keys) as keys, (select sum(version) from sets) as versions,
        (select count(*) from audit_segments) as segments, (select seq from audit_heads) as seq`);
    const before = await counts();
    for (const statement of make(one)) await w.run(statement);
    const outcomes = await Promise.all(deeds.map((deed) => deed().catch((error: unknown) => error)));
    for (const statement of drop(one)) await w.run(statement);
    for (const outcome of outcomes) {
      expect(outcome).toBeInstanceOf(Refused);
      expect(outcome).toMatchObject({ kind: "unavailable", message: expect.stringContaining("nothing was changed") });
    }
    expect(await counts()).toEqual(before);
    for (const deed of deeds) await deed();
    expect(await verifyAudit(w.admin)).toMatchObject({ flaws: [] });
  });
});
