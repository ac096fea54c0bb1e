import { afterAll, beforeAll, expect, setSystemTime, test } from "bun:test";
import postgres from "postgres";
import { Refused } from "../../src/core/refused.ts";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { verifyAudit } from "../../src/people/audit/audit-chain.ts";
import { createKey, revokeKey } from "../../src/people/keys/keys.ts";
import { defaultPartition, monthOf } from "../../src/record/store/audit-months.ts";
import { warm } from "../../src/store/database.ts";
import type { Answer } from "../support/answer.ts";
import { setVariables } from "../support/plans.ts";
import { describeBoth, everything, type Key, type World } from "../support/world.ts";

/** The clock stands: else a month might end between two tests. */
const now = Date.now();
beforeAll(() => void setSystemTime(now));
afterAll(() => void setSystemTime());
const month = monthOf(now).name;
const trigger = (when: string, body: string) => [
  `create function swallow() returns trigger language plpgsql as $$begin ${body}; return null; end$$`,
  `create trigger swallow ${when} execute function swallow()`,
];
const triggers = (table: string) => {
  const drop = (rows: string) => `delete from ${table} as t using ${rows} where t.lane = n.lane and t.at = n.at`;
  const each = "referencing new table as added for each statement";
  return [
    { how: "a trigger before each row", make: trigger(`before insert on ${table} for each row`, "null") },
    {
      how: "a trigger after each row",
      make: trigger(`after insert on ${table} for each row`, drop("(select new.*) as n")),
    },
    { how: "a trigger after each statement", make: trigger(`after insert on ${table} ${each}`, drop("added as n")) },
  ];
};
const rules = (table: string) =>
  [
    "do instead nothing",
    "where new.entries like '%b.txt%' do instead nothing",
    `do also delete from ${table}`,
    "do instead insert into lost (lane, first_seq, last_seq, at, mac, texts, entries) values ('a', 1, 1, 1, '', '', '') returning *",
  ].map((rule) => ({
    how: `the rule ${rule.replace(table, "all")}`,
    make: [`create rule swallow as on insert to ${table} ${rule}`],
  }));

/** How a segment of two entries, of the files a.txt and b.txt, is lost on its way into the table. */
const swallowing: Record<"postgres" | "sqlite", readonly { how: string; make: readonly string[]; drop: string }[]> = {
  postgres: Object.entries({ "the month": month, DEFAULT: defaultPartition }).flatMap(([where, table]) => [
    ...triggers(table).map((one) => ({ ...one, how: `${one.how} of ${where}`, drop: "drop function swallow cascade" })),
    ...rules(table).map((one) => ({ ...one, how: `${one.how} of ${where}`, drop: `drop rule swallow on ${table}` })),
    {
      how: `row security of ${where}`,
      make: [
        `create policy swallow on ${table} using (false) with check (true)`,
        `alter table ${table} enable row level security`,
      ],
      drop: `alter table ${table} disable row level security; drop policy swallow on ${table}`,
    },
    {
      how: `a view in place of ${where}`,
      make: [
        `alter table ${table} rename to kept`,
        `create view ${table} as select * from kept`,
        ...trigger(`instead of insert on ${table} for each row`, "return new"),
      ],
      drop: `drop view ${table}; alter table kept rename to ${table}; drop function swallow`,
    },
    {
      how: `a table in place of ${where}`,
      make: [`alter table ${table} rename to kept`, `create table ${table} (like kept)`],
      drop: `drop table ${table}; alter table kept rename to ${table}`,
    },
  ]),
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
  const read = () => w.ask(path, { key });
  const entries = async () => (await w.audit(key)).length;
  beforeAll(async () => {
    const file = (name: string) => ({ path: name, environments: ["staging" as const], content: "canary-of-a-file" });
    const { organization } = await w.place({ files: [file("a.txt"), file("b.txt")] });
    key = await w.key(organization, everything);
    if (dialect === "postgres") await w.run("create table lost (like audit_segments)");
  });

  test.each(swallowing[dialect])("by $how makes a read unavailable and keeps none of its entries", async (one) => {
    // DEFAULT takes the entries of a month without a partition, which each row needs once.
    if (one.how.endsWith("DEFAULT")) await w.run(`drop table if exists ${month}`);
    expect((await read()).status).toBe(200);
    const before = await entries();
    const refused = await beside(w, one.make, read);
    const again = await read();
    await w.run(one.drop);
    for (const { status, json, text } of [refused, again]) {
      expect([status, json]).toMatchObject([503, { code: "unavailable" }]);
      expect(text).not.toContain("canary");
    }
    expect(await entries()).toBe(before);
    // Service returns without a VACUUM.
    expect((await read()).status).toBe(200);
    expect(await entries()).toBe(before + 2);
  });

  if (dialect === "postgres") {
    const detach = `alter table audit_segments detach partition ${month}`;
    const decoy = "create table decoy (like audit_segments) partition by range (at)";
    const swap = [detach, `alter table ${month} rename to kept`];
    const attached = `for values from (${monthOf(now).fromAt}) to (${monthOf(now).toAt})`;
    test.each([
      { how: "detached", make: [detach] },
      { how: "swapped for a table", make: [...swap, `create table ${month} (like kept)`] },
      { how: "another's partition", make: [...swap, decoy, `create table ${month} partition of decoy default`] },
      { how: "dropped", make: [`drop table ${month}`] },
      {
        how: "made again",
        make: [`drop table ${month}`, `create table ${month} partition of audit_segments ${attached}`],
      },
    ])("a month that is $how takes no entry away", async ({ make }) => {
      await w.run(`drop table if exists ${month}, kept, decoy; delete from ${defaultPartition}`);
      await w.run(`create table ${month} partition of audit_segments ${attached}`);
      expect((await read()).status).toBe(200);
      expect((await beside(w, make, read)).status).toBe(200);
      const left = await entries();
      expect((await read()).status).toBe(200);
      expect([left % 2, await entries()]).toEqual([0, left + 2]);
      expect(left).toBeGreaterThan(0);
    });
  }
});

/**
 * Runs statements in a transaction that is under way when `read` begins, and commits it once the journal waits for it.
 * The embedded database has one writer: there they run first.
 */
async function beside(w: World, statements: readonly string[], read: () => Promise<Answer>): Promise<Answer> {
  if (w.databaseUrl === undefined) {
    for (const statement of statements) await w.run(statement);
    return read();
  }
  const other = postgres(w.databaseUrl, { max: 1, fetch_types: false, onnotice: () => {} });
  const { answer } = await other.begin(async (session) => {
    for (const statement of statements) await session.unsafe(statement);
    let answered = false;
    const answer = read().finally(() => {
      answered = true;
    });
    const waiting = () =>
      w.run(`select pid from pg_stat_activity where datname = current_database()
      and application_name = 'keyhole journal' and wait_event_type = 'Lock'`);
    while (!answered && (await waiting()).length === 0);
    return { answer };
  });
  await other.end();
  return answer;
}

type Addition = {
  readonly what: string;
  readonly make: readonly string[];
  readonly drop: readonly string[];
  /** Whether it is of a table that serving uses. */
  readonly isServed: boolean;
  readonly reads: string;
};

const addition = (what: string, make: string | string[], drop: string | string[], isServed = true): Addition => {
  const reads = isServed ? "makes reads unavailable" : "holds up no read";
  return { what, make: [make].flat(), drop: [drop].flat(), isServed, reads };
};

/** What somebody adds to the schema, so that what people or machines do is lost, hidden or undone. */
const additions: Record<"postgres" | "sqlite", readonly Addition[]> = {
  postgres: [
    addition(
      "trigger lose on table audit_segments",
      [
        "create table lost (seq bigint)",
        "create function lose_later() returns trigger language plpgsql as $$begin set constraints all deferred; insert into lost values (new.first_seq); return null; end$$",
        `create function lose() returns trigger language plpgsql as $$begin
          delete from audit_segments where lane = 'commands' and first_seq = new.seq;
          update audit_heads as h set (seq, at, mac) = (select s.last_seq, s.at, s.mac from audit_segments as s
            where s.lane = 'commands' order by s.last_seq desc limit 1); return null; end$$`,
        "create constraint trigger lose after insert on lost deferrable initially deferred for each row execute function lose()",
        "create constraint trigger lose after insert on audit_segments deferrable initially deferred for each row execute function lose_later()",
      ],
      ["drop function lose_later cascade", "drop table lost", "drop function lose"],
    ),
    addition(
      "policy hide on table audit_segments",
      [
        "create policy hide on audit_segments using (first_seq <= 3 or xmin = pg_current_xact_id_if_assigned()::xid) with check (true)",
        "alter table audit_segments enable row level security",
        "alter table audit_segments force row level security",
      ],
      [
        "drop policy hide on audit_segments",
        "alter table audit_segments disable row level security",
        "alter table audit_segments no force row level security",
      ],
    ),
    addition(
      "table rosters with row security",
      "alter table rosters enable row level security",
      "alter table rosters disable row level security",
      false,
    ),
    addition(
      "view audit_heads",
      ["alter table audit_heads rename to heads", "create view audit_heads as select * from heads"],
      ["drop view audit_heads", "alter table heads rename to audit_heads"],
    ),
    addition(
      "trigger keep on table api_keys",
      [
        "create function keep() returns trigger language plpgsql as 'begin return old; end'",
        "create trigger keep before update on api_keys for each row execute function keep()",
      ],
      "drop function keep cascade",
    ),
    addition(
      "trigger keep on table audit_segments_default",
      [
        "create function keep() returns trigger language plpgsql as 'begin return new; end'",
        "create trigger keep before insert on audit_segments_default for each row execute function keep()",
      ],
      "drop function keep cascade",
    ),
    addition(
      "rule keep on table api_keys",
      "create rule keep as on update to api_keys do also notify keep",
      "drop rule keep on api_keys",
    ),
    addition("table heirs that inherits", "create table heirs () inherits (api_keys)", "drop table heirs"),
    addition(
      "constraint heirs_key_fkey on table heirs",
      'create table heirs (key text collate "C" references api_keys (id) on delete cascade)',
      "drop table heirs",
    ),
    addition(
      "table rosters that is not durable",
      "alter table rosters set unlogged",
      "alter table rosters set logged",
      false,
    ),
    addition(
      "constraint asks on table audit_segments that calls a function",
      "alter table audit_segments add constraint asks check (set_config('a.b', lane, true) is not null) not valid",
      "alter table audit_segments drop constraint asks",
    ),
    addition(
      "default value for column asks of table sets that calls a function",
      "alter table sets add column asks text default set_config('a.b', 'c', true)",
      "alter table sets drop column asks",
    ),
    addition(
      "index asks that is not of PostgreSQL alone",
      [
        "create function ask(text) returns text immutable language sql as 'select $1'",
        "create index asks on audit_heads (ask(lane))",
      ],
      "drop function ask cascade",
    ),
    addition(
      "function sqrt(integer) in the schema public",
      "create function sqrt(integer) returns double precision language sql as 'select 1::double precision'",
      "drop function sqrt(integer)",
    ),
  ],
  sqlite: [
    addition(
      "trigger lose on audit_segments",
      "create trigger lose after insert on audit_segments begin delete from audit_segments where lane = 'lost'; end",
      "drop trigger lose",
    ),
    addition(
      "view audit_segments",
      [
        "alter table audit_segments rename to kept",
        "create view audit_segments as select * from kept",
        "create trigger keep instead of insert on audit_segments begin insert into kept values (new.lane, new.first_seq, new.last_seq, new.at, new.mac, new.texts, new.entries); end",
      ],
      ["drop view audit_segments", "alter table kept rename to audit_segments"],
    ),
    addition(
      "trigger keep on api_keys",
      "create trigger keep after update on api_keys when new.revoked_at > 0 begin update api_keys set revoked_at = null where id = new.id; end",
      "drop trigger keep",
    ),
  ],
};

describeBoth("what somebody added to the schema", (w, dialect) => {
  const path = "/projects/web/variables?environment=staging";
  const canary = "canary-of-the-schema";

  test.each(additions[dialect])("$what: is named, refuses every change, and $reads", async (one) => {
    const { organization, where, key } = await w.place({ variables: { staging: { TOKEN: canary } }, key: everything });
    const deeds = [
      () => setVariables(w.admin, where, "staging", [{ name: "TOKEN", value: canary }]),
      () => revealVariable(w.admin, where, "staging", "TOKEN"),
      () => createKey(w.admin, { organization: organization.slug, projects: null, environments: null }),
      () => revokeKey(w.admin, key.id),
    ];
    const counts = () =>
      w.run(`select (select count(*) from api_keys where revoked_at is null) as keys,
        (select sum(version) from sets) as versions, (select count(*) from audit_segments) as segments,
        (select seq from audit_heads) as seq`);
    expect((await w.ask(path, { key })).status).toBe(200);
    const before = await counts();
    for (const statement of one.make) await w.run(statement);
    const outcomes = await Promise.all(deeds.map((deed) => deed().catch((error: unknown) => error)));
    const serving = w.installation.open("serve");
    const served = await warm(serving).catch((error: unknown) => error);
    await serving.close();
    const store = w.installation.openJournal();
    const appended = await store.append(undefined, false);
    await store.close();
    for (const statement of one.drop) await w.run(statement);
    const named = expect.stringContaining(one.what);
    for (const outcome of outcomes) {
      expect(outcome).toBeInstanceOf(Refused);
      expect(outcome).toMatchObject({ kind: "unavailable", message: named });
    }
    if (one.isServed) {
      expect(served).toMatchObject({ code: "unavailable", message: named });
      expect(appended).toMatchObject({ outcome: "refused", reason: named });
    } else expect([served, appended]).toEqual([undefined, { outcome: "durable" }]);
    expect(await counts()).toEqual(before);
    for (const deed of deeds) await deed();
    expect(await verifyAudit(w.admin)).toMatchObject({ flaws: [] });
    expect((await w.ask(path, { key })).status).toBe(401);
  });

  // Of what is elsewhere on PostgreSQL, a server that runs hears within a minute.
  const ofTheJournal = additions[dialect].filter(({ what }) => /(?:trigger|view)\b.*audit_segments$/.test(what));
  test.each(ofTheJournal)("$what: no value leaves a server that runs", async (one) => {
    const { key } = await w.place({ variables: { staging: { TOKEN: canary } }, key: everything });
    expect((await w.ask(path, { key })).status).toBe(200);
    for (const statement of one.make) await w.run(statement);
    const refused = await w.ask(path, { key });
    for (const statement of one.drop) await w.run(statement);
    expect([refused.status, refused.json]).toMatchObject([503, { code: "unavailable" }]);
    expect(refused.text).not.toContain(canary);
    expect(JSON.stringify(w.log)).toContain(one.what);
    expect((await w.ask(path, { key })).status).toBe(200);
    expect((await w.audit(key)).length).toBe(2);
  });
});
