/**
 * What someone with SQL can do to the rows: none of it is served. Each test edits a real database beside the running
 * app, asks, and puts the rows back.
 *
 * One edit cannot be noticed: a whole set, with the data key and the contents it needs, put back to an earlier version
 * of itself is served as that version. What stands outside the sets, a project's name and counts, is not covered
 * either.
 */

import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import { type Environment, environments } from "../../src/core/names.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { rotateData } from "../../src/people/rotation/rotation.ts";
import { digestKey, mintKey } from "../../src/serve/access/api-key.ts";
import { type Grant, sealGrant } from "../../src/serve/access/grant.ts";
import { setBytesMax } from "../../src/serve/sets/kind.ts";
import { RememberedSets } from "../../src/serve/sets/remembered.ts";
import { type Dice, diceOf, unlimited, verdictOf } from "../support/attack.ts";
import { canary } from "../support/canary.ts";
import { deleteAccount, deleteFile, deleteVariable } from "../support/delete.ts";
import { type Kind, kinds } from "../support/kinds.ts";
import { setAccount, setVariables } from "../support/plans.ts";
import { seed } from "../support/seed.ts";
import { type Client, describeBoth, type Key, type Placed, type Row, type World } from "../support/world.ts";

describeBoth("what SQL did to a row", (w, dialect) => {
  const onSqlite = dialect === "sqlite";
  let stage: Stage;
  beforeAll(async () => {
    stage = await setUp(w);
  });
  afterEach(() => stage.restore());

  for (const kind of onSqlite ? kinds : (["variables"] as const)) {
    test(`flipped bits of a set of ${kind} are noticed, in every column`, async () => {
      for (const column of setColumns) {
        if (kind === "files" && column === "sealed") continue;
        await refusesEachFlip(stage, setTarget(stage, "web", kind, "production", column), onSqlite ? 6 : 64);
      }
    }, 300_000);
  }

  test("every flipped bit of a data key, and of the name of its root key, is noticed", async () => {
    for (const column of ["wrapped", "root_id", "generation"]) {
      await refusesEachFlip(stage, dataKeyTarget(stage, column), onSqlite ? 1 : 32);
    }
  }, 300_000);

  test("flipped bits of a file, and of its row, are noticed", async () => {
    const dice = diceOf(seed);
    const some = (count: number, bytes: number) => Array.from({ length: count }, () => dice.below(bytes * 8));
    const sealed = contentTarget(stage, "web", "medium.bin", "sealed");
    const { length } = (await read(stage, sealed)) as Buffer;
    await refusesEachFlip(stage, sealed, some(onSqlite ? 300 : 30, length));
    // This one is opened in another thread, and PostgreSQL sends it in two pieces.
    const large = contentTarget(stage, "api", "large.bin", "sealed");
    await refusesEachFlip(stage, large, [...some(12, 600 * 1024), 18 * 8, 600 * 1024 * 8 + 34 * 8 - 1]);
    for (const column of ["sealed", "project_id", "size", "generation"]) {
      await refusesEachFlip(stage, contentTarget(stage, "web", "a.txt", column), onSqlite ? 1 : 32);
    }
  }, 300_000);

  test("every length but the right one is noticed: cut at either end, or longer", async () => {
    const targets = [
      ...(["variables", "accounts"] as const).flatMap((kind) =>
        (["sealed", "listing_mac"] as const).map((column) => setTarget(stage, "web", kind, "production", column)),
      ),
      setTarget(stage, "web", "files", "production", "listing_mac"),
      dataKeyTarget(stage, "wrapped"),
      contentTarget(stage, "web", "a.txt", "sealed"),
    ];
    for (const target of targets) {
      const bytes = (await read(stage, target)) as Buffer;
      const step = onSqlite ? 1 : 24;
      for (let length = 0; length < bytes.length; length += step) {
        for (const cut of [bytes.subarray(0, length), bytes.subarray(bytes.length - length)]) {
          await write(stage, target, cut);
          await expectSome(stage, target.damages, `${target.column} cut to ${length} bytes`);
        }
      }
      for (const longer of [Buffer.concat([bytes, Buffer.of(0)]), Buffer.concat([bytes, bytes])]) {
        await write(stage, target, longer);
        await expectSome(stage, target.damages, `a longer ${target.column}`);
      }
      await write(stage, target, bytes);
    }
    await expectAll(stage, nothing);
  }, 300_000);

  test("no set opens with columns of another: every pair, across environment, kind, project and organization", async () => {
    const { world } = stage;
    const rows = await world.run("select * from sets order by project_id, kind, environment");
    // Each pair with one of these, each of which there is with every set.
    const choices = [["listing"], ["listing_mac"], ["sealed"], ["listing", "listing_mac"], [...setColumns]] as const;
    for (const [index, to] of rows.entries()) {
      for (const [at, from] of rows.entries()) {
        const columns = choices[(index + at) % choices.length] as (typeof choices)[number];
        if (from === to || (!onSqlite && (index * rows.length + at) % 12 !== 0)) continue;
        if (columns.every((column) => Bun.deepEquals(from[column], to[column]))) continue;
        await update(world, "sets", to, pick(from, columns));
        // Values in a set of files are not as Keyhole writes one either.
        const part = columns.join() === "sealed" && to["kind"] !== "files" ? "values" : "listing";
        const label = labelOf(stage, to);
        await expectSome(stage, new RegExp(`^${part} ${label}$`), `${columns} of ${labelOf(stage, from)} in ${label}`);
        await update(world, "sets", to, pick(to, setColumns));
      }
      if (index % 9 === 8) await expectAll(stage, nothing);
    }
  }, 300_000);

  test("no content and no data key opens in the place of another", async () => {
    const { world } = stage;
    const contents = await world.run("select * from file_contents where size < 10000 order by id");
    contents.length = onSqlite ? contents.length : 3;
    for (const to of contents) {
      for (const from of contents) {
        if (from === to) continue;
        const damages = new RegExp(`^bytes ${labelOfContent(stage, to)}$`);
        for (const columns of [["sealed"], ["sealed", "generation", "size"]]) {
          const resized = columns.includes("size") && from["size"] !== to["size"];
          const own = pick(to, ["sealed", "generation", "size"]);
          await update(world, "file_contents", to, { ...own, ...pick(from, columns) });
          const damaged = resized ? new RegExp(`^content ${labelOfContent(stage, to)}$`) : damages;
          await expectSome(stage, damaged, `${columns} of another content`);
        }
      }
      await update(world, "file_contents", to, pick(to, ["sealed", "generation", "size"]));
    }
    const dataKeys = await world.run("select * from data_keys order by project_id");
    for (const to of dataKeys) {
      for (const from of dataKeys) {
        if (from === to) continue;
        await update(world, "data_keys", to, pick(from, ["root_id", "wrapped"]));
        await expectSome(stage, new RegExp(`^(values|bytes) ${projectOf(stage, to)} `), "another project's data key");
      }
      await update(world, "data_keys", to, pick(to, ["root_id", "wrapped"]));
    }
    await expectAll(stage, nothing);
  }, 300_000);

  test.each(onSqlite ? listingEdits : listingEdits.slice(-6))(
    "a listing that was edited is neither shown nor used: $kind with $entry",
    async ({ kind, entry }) => {
      const target = setTarget(stage, "web", kind, "production", "listing");
      const entries = JSON.parse(String(await read(stage, target))) as object[];
      const changed = () => [{ ...entries[0], ...JSON.parse(`{${entry}}`) }, ...entries.slice(1)];
      await write(stage, target, Buffer.from(entry.startsWith('"') ? JSON.stringify(changed()) : entry));
      await expectAll(stage, target.damages);
    },
  );

  test("a set that is a little larger than any that Keyhole writes is refused before it is fetched", async () => {
    for (const column of ["listing", "sealed"] as const) {
      const target = setTarget(stage, "web", "variables", "production", column);
      await write(stage, target, Buffer.alloc(setBytesMax + 64 * 1024, "0"));
      const logged = stage.world.log.length;
      await expectSome(stage, target.damages, `8 MiB and more in ${column}`);
      // A checkpoint, once a minute, may come before it.
      const request = stage.world.log.slice(logged).find(({ event }) => event === "request");
      expect(String(request?.["reason"])).toContain("larger than any that Keyhole writes");
      await stage.restore();
    }
  });

  test.each(edits)("$what", async ({ edit, damages }) => {
    await edit(stage);
    await expectAll(stage, damages);
  });

  test.each(moves)("$what", async ({ edit, verdicts }) => {
    await edit(stage);
    const expected = verdicts.split(", ");
    const found = new Set<string>();
    for (const [who, slug, code] of expected.map((one) => one.split(" ") as ["every" | "narrow", string, string])) {
      for (const { path } of questionsOf(stage[who], "any", slug, ["production"])) {
        for (const client of stage.clients) {
          const answer = await client.ask(path, { key: stage[who] });
          found.add(`${who} ${slug} ${verdictOf(answer)}`);
          expect(code !== "200" && answer.text.includes(canary)).toBe(false);
        }
      }
    }
    expect([...found]).toEqual(expected);
    await stage.restore();
    await expectAll(stage, nothing);
  });

  test("a set put together of two of its versions is refused; put back whole, it is served as that version", async () => {
    const { world, web, narrow, questions } = stage;
    const own = questions.filter(({ key }) => key === narrow);
    const before = await world.run("select * from sets where project_id = ? and environment = 'production'", [web.id]);
    for (const kind of kinds) await writesTo(stage, kind)[0]?.();
    const [newer, after] = [await truthOf(stage, own), await world.run("select * from sets")];
    expect(own.filter((question) => newer.get(question) === stage.truth.get(question))).toEqual([]);
    for (const old of before) {
      const label = labelOf(stage, old);
      const now = after.find((row) => labelOf(stage, row) === label) as Row;
      const columns = setColumns.filter((column) => !Bun.deepEquals(old[column], now[column]));
      const mixed = new Map(
        own.map((question) => {
          const truth = isHit(question, new RegExp(`^listing ${label}$`)) ? stage.truth : newer;
          return [question, truth.get(question) ?? ""];
        }),
      );
      for (let choice = 1; choice < 2 ** columns.length - 1; choice++) {
        const chosen = columns.filter((_, index) => choice & (1 << index)).join();
        await update(world, "sets", old, { ...pick(now, columns), ...pick(old, chosen.split(",")) });
        // All but the values put back: metadata reads, which open nothing, are those of the earlier version.
        const isEarlier = chosen === "version,listing,listing_mac" && columns.includes("sealed");
        const part = isEarlier || chosen === "sealed" ? "values" : "listing";
        await expectAll(stage, new RegExp(`^${part} ${label}$`), own, isEarlier ? mixed : newer);
      }
      await update(world, "sets", old, pick(now, columns));
    }
    // Whole: the contents of the earlier version were kept.
    for (const old of before) await update(world, "sets", old, pick(old, setColumns));
    await expectAll(stage, nothing, own, stage.truth);
  });

  test("an older set under a data key that a rotation deleted shows its listing, and no value unless the key is put back", async () => {
    const { world, web } = stage;
    const old = setTarget(stage, "web", "variables", "production", "version");
    const [row] = await world.run(`select * from sets where ${old.where}`, old.at);
    await rotateData(world.admin, web.where);
    await expectAll(stage, nothing);
    await update(world, "sets", row as Row, pick(row as Row, setColumns));
    await expectAll(stage, /^values web variables production$/);
    await world.run("insert into data_keys select * from kept_data_keys where project_id = ?", [web.id]);
    await expectAll(stage, nothing);
  });

  test("whatever mixture of rows is left, an answer is the whole truth or a refusal", async () => {
    const dice = diceOf(seed + 1);
    const seen = new Map<string, number>();
    const isShown = () => seen.size === 3 && [...seen.values()].every((count) => count > 10);
    for (let round = 0; round < 40 && (onSqlite || !isShown()); round++) {
      const done: string[] = [];
      for (let left = 1 + dice.below(3); left > 0; left--) done.push(await crossRows(stage, dice));
      for (const question of dice.some(stage.questions, 0.3)) {
        const verdict = await ask(stage, question);
        seen.set(verdict, (seen.get(verdict) ?? 0) + 1);
        if (!["200", "decryption_failed", "project_not_found"].includes(verdict)) {
          throw new Error(`seed ${seed}, round ${round}, ${question.path}: ${verdict} after ${done.join("; ")}`);
        }
      }
      await stage.restore();
    }
    // Otherwise this has shown nothing.
    expect([isShown(), seen]).toEqual([true, seen]);
    await expectAll(stage, nothing);
  }, 300_000);

  describe("a damaged set refuses every write, which changes nothing, and a rotation leaves and names it:", () => {
    const damages = [
      ["a bit of its listing", "listing = replace(listing, 'updatedAt', 'updatedat')"],
      ["its mac", "listing_mac = substr(listing_mac, 1, 31)"],
      ["its version", "version = version + 1"],
      ["its generation", "generation = generation + 1"],
      ["its values", "sealed = substr(sealed, 1, 40)"],
      ["its values, gone", "sealed = null"],
      [
        "its values, of a data key beyond what a column holds",
        onSqlite
          ? "sealed = cast(substr(sealed, 1, 2) || x'80000001' || substr(sealed, 7) as blob)"
          : "sealed = overlay(sealed placing '\\x80000001'::bytea from 3)",
      ],
      ["values of a set of files", onSqlite ? "sealed = zeroblob(40)" : "sealed = decode(repeat('00', 40), 'hex')"],
      ["the row, deleted", ""],
    ] as const;
    const isOf = (kind: string, what: string) =>
      kind === "files" ? !what.startsWith("its values") : !what.startsWith("values");
    const rows = kinds.flatMap((kind) => damages.map(([what, set]) => ({ kind, what, set })));
    // On PostgreSQL, what it spells in another way.
    const tried = onSqlite ? rows : rows.filter(({ set }) => /overlay|decode/.test(set));
    test.each(tried.filter(({ kind, what }) => isOf(kind, what)))("$kind, $what", async ({ kind, what, set }) => {
      const { world, web } = stage;
      const target = setTarget(stage, "web", kind, "production", "listing");
      await world.run(`${set ? `update sets set ${set}` : "delete from sets"} where ${target.where}`, [...target.at]);
      const before = await dump(world);
      for (const write of writesTo(stage, kind)) {
        await expect(write()).rejects.toMatchObject({ name: "Refused", kind: "conflict" });
        expect(await dump(world)).toEqual(before);
      }
      const { broken, deletedKeys } = await rotateData(world.admin, web.where);
      expect(broken).toEqual([`the ${kind} in production of ${web.where}`]);
      // The data key is kept while anything may be sealed under it. Kept versions name all contents here.
      if (set && what !== "its values, gone" && kind !== "files") expect(deletedKeys).toBe(0);
      const columns = `select * from sets where ${target.where}`;
      expect(await world.run(columns, target.at)).toEqual(before.sets.filter((row) => isAt(row, target)));
      const values = new RegExp(`^values web ${kind} production$`);
      await expectAll(stage, what.startsWith("its values") ? values : target.damages);
      await stage.restore();
    });

    test.each(["wrapped = substr(wrapped, 1, 40)", ""])("a data key: %p", async (set) => {
      const { world, web } = stage;
      const change = set ? `update data_keys set ${set}` : "delete from data_keys";
      await world.run(`${change} where project_id = ?`, [web.id]);
      const before = await dump(world);
      // Values are opened to plan a change. What files hold is not.
      const refused = { name: "Refused", kind: "conflict" };
      const damaged = { name: "Fault", code: "decryption_failed" };
      const writes = kinds.flatMap((kind) => writesTo(stage, kind).map((write) => ({ kind, write })));
      for (const { kind, write } of writes) {
        await expect(write()).rejects.toMatchObject(kind === "files" ? damaged : refused);
        expect(await dump(world)).toEqual(before);
      }
      expect((await rotateData(world.admin, web.where)).broken).not.toEqual([]);
      expect((await dump(world)).sets).toEqual(before.sets);
      await expectAll(stage, /^(values|bytes) web /);
    });

    test("the damage of one environment does not cost another its contents", async () => {
      const { world, web } = stage;
      const target = setTarget(stage, "web", "files", "staging", "listing");
      await write(stage, target, Buffer.from("[]"));
      await deleteFile(world.admin, web.where, "b/c.txt", ["development"]);
      await world.run(
        `update sets set listing = (select k.listing from kept_sets k where ${target.where}) where ${target.where}`,
        [...target.at, ...target.at],
      );
      const path = "/files?project=web&environment=staging&path=b/c.txt";
      const { status } = await stage.clients[0].ask(path, { key: stage.every });
      await stage.restore();
      expect(status).toBe(200);
    });
  });

  test("a key row that Keyhole did not write is no key: one 401 for all, and the log says so", async () => {
    const { world, clients, narrow, stranger } = stage;
    const [client] = clients;
    const unknown = await client.ask("/organization", { key: mintKey() });
    const expected = [unknown.status, unknown.text, [...unknown.headers.keys()].sort()];
    const refused = async (what: string, key: string) => {
      const answer = await client.ask(wholeProduction, { key });
      const got = [answer.status, answer.text, [...answer.headers.keys()].sort()];
      expect([what, ...got]).toEqual([what, ...expected]);
    };
    for (const { what, set, values } of forgeries(stage)) {
      expect((await client.ask("/organization", { key: narrow })).status).toBe(200); // its row is remembered now
      await world.run(`update api_keys set ${set} where id = ?`, [...values, narrow.id]);
      await refused(what, narrow.key);
      await stage.restore();
    }
    const [row] = await world.sql`select grant_seal from api_keys where id = ${narrow.id}`;
    const seal = row?.["grant_seal"] as Buffer;
    for (let bit = 0; bit < seal.length * 8; bit += onSqlite ? 1 : 32) {
      await world.run("update api_keys set grant_seal = ? where id = ?", [flipped(seal, bit), narrow.id]);
      await refused(`bit ${bit} of the grant seal`, narrow.key);
    }
    await stage.restore();
    expect(world.log.some(({ reason }) => String(reason).includes(`grant seal of key ${narrow.id}`))).toBe(true);

    // Each text would find the other's rights.
    await exchange(stage, "api_keys", "digest", stranger.id, narrow.id);
    await refused("an exchanged digest", stranger.key);
    await refused("an exchanged digest", narrow.key);
    await stage.restore();

    for (const { what, key, digest } of madeUp(stage)) {
      const reach = { surfaces: 7, resources: 31, environments: 7, projects: null, expiresAt: null, trust: null };
      const grant: Grant = {
        keyId: Bun.randomUUIDv7(),
        organizationId: stage.alphaId,
        ...reach,
        rate: null,
        from: null,
      };
      for (const grantSeal of [seal, sealGrant(Buffer.alloc(32), digest, grant)]) {
        await world.run(
          `insert into api_keys (id, organization_id, name, digest, surfaces, resources, environments, projects,
            expires_at, revoked_at, created_at, grant_seal) values (?, ?, 'made up', ?, 7, 31, 7, null, null, null, 1, ?)`,
          [grant.keyId, grant.organizationId, digest, grantSeal],
        );
        await refused(what, key);
        await stage.restore();
      }
    }
  });

  test.each(noLists.map((list) => [list.slice(0, 50), list] as const))(
    "a key row whose list is %s is a 401 too, and does not touch the requests beside it",
    async (_, list) => {
      const { world, clients, narrow, every } = stage;
      await world.sql`update api_keys set projects = ${list} where id = ${narrow.id}`;
      const beside = Array.from({ length: 12 }, (_, n) => (n === 5 ? narrow : every));
      const found: number[][] = [];
      for (const path of [wholeProduction, "/projects", "/projects/web", "/projects/web/accounts"]) {
        found.push((await Promise.all(beside.map((key) => clients[0].ask(path, { key })))).map(({ status }) => status));
      }
      await stage.restore();
      const expected = beside.map((key) => (key === narrow ? 401 : 200));
      expect(found).toEqual(found.map(() => expected));
    },
  );

  test("a key that was revoked stays so, whatever SQL did or does to the moment of its revocation", async () => {
    const { world, clients, narrow } = stage;
    for (const before of [null, 1]) {
      await world.sql`update api_keys set revoked_at = ${before} where id = ${narrow.id}`;
      await revokeKey(world.admin, narrow.id);
      await world.sql`update api_keys set revoked_at = null where id = ${narrow.id}`;
      const { status } = await clients[0].ask(wholeProduction, { key: narrow });
      await stage.restore();
      expect(status).toBe(401);
    }
  });

  test("after the database lost its last writes and got others, no server answers what was lost", async () => {
    const { world, web, every, clients } = stage;
    await setVariables(world.admin, web.where, "production", [{ name: "FIRST", value: "lost" }]);
    await clients[0].ask(wholeProduction, { key: every });
    await stage.restore();
    await setVariables(world.admin, web.where, "production", [{ name: "FIRST", value: "kept" }]);
    const { text } = await clients[0].ask(wholeProduction, { key: every });
    await stage.restore();
    expect(text).toContain('"kept"');
  });

  // SQLite cannot drop a primary key.
  if (!onSqlite) {
    test("rows that are there twice, once their unique indexes are dropped, widen no key", async () => {
      const { world, narrow, questions, truth } = stage;
      const rules = await world.run(`select conrelid::regclass as owner, conname from pg_constraint
        where contype = 'p' and conrelid in ('api_keys'::regclass, 'sets'::regclass)`);
      for (const { owner, conname } of rules)
        await world.run(`alter table ${owner} drop constraint ${conname} cascade`);
      await world.run("drop index api_keys_digest");
      const own = new Map(questions.filter(({ key }) => key === narrow).map((one) => [one.path, truth.get(one)]));
      const seen = new Set<string>();
      for (const organizationId of [stage.alphaId, stage.betaId]) {
        for (const isFirst of [true, false]) {
          await world.run(
            `insert into sets select ?, kind, environment, version, generation, listing_mac, listing, sealed
              from kept_sets where project_id = ?`,
            [stage.web.id, stage.foreign.id],
          );
          if (isFirst) await world.run("delete from api_keys where id = ?", [narrow.id]);
          await world.run(
            `insert into api_keys select id, ?, name, digest, trust, 7, 31, 7, null, null, revoked_at, created_at, grant_seal
              from kept_api_keys where id = ?`,
            [organizationId, narrow.id],
          );
          if (isFirst) await world.run("insert into api_keys select * from kept_api_keys where id = ?", [narrow.id]);
          for (const { path } of questions) {
            const answer = await (stage.clients[seen.size % 2] as Client).ask(path, { key: narrow });
            seen.add(answer.text === own.get(path) ? "the truth" : verdictOf(answer));
          }
          await stage.restore();
        }
      }
      const refusals = ["decryption_failed", "environment_not_in_scope", "project_not_found", "unauthorized"];
      expect([...seen].filter((verdict) => verdict !== "the truth" && !refusals.includes(verdict))).toEqual([]);
      expect(seen.size).toBeGreaterThan(2);
    });
  }

  test("nothing that was asked while rows were wrong left a value in the log", () => {
    expect(stage.world.log.length).toBeGreaterThan(500);
    expect(JSON.stringify(stage.world.log)).not.toContain(canary);
  });
});

/** Changes to the first entry of a listing, or another text in its place. */
const listingEdits = [
  ...[
    ...["../../etc/cron.d/x", "/etc/passwd", "a.txt\\u0000", "other.txt"].map((path) => `"path":"${path}"`),
    ...['"mode":"0777"', '"mode":"0400"', `"sha256":"${"0".repeat(64)}"`, '"size":1', '"contentType":"text/html"'],
    ...['"name":"other"', '"updatedAt":1', '"id":"01990000-0000-7000-8000-000000000000"', '"value":"more"'],
  ].map((entry) => ({ kind: "files" as const, entry })),
  ...['"key":"LD_PRELOAD"', '"updatedAt":1'].map((entry) => ({ kind: "variables" as const, entry })),
  ...['"name":"other"', '"updatedAt":1'].map((entry) => ({ kind: "accounts" as const, entry })),
  ...["", "[]", "{}", "[", "null", "[null]"].flatMap((entry) => kinds.map((kind) => ({ kind, entry }))),
];

/** A set, and those that differ from it in one column of the primary key; null stands for beta's project. */
const home = ({ web }: Stage) => ({ project_id: web.id, kind: "variables", environment: "production" });
const neighbours = [
  ["environment", "staging", "web variables staging"],
  ["kind", "accounts", "web accounts production"],
  ["project_id", null, "foreign variables production"],
] as const;

type Edit = { readonly what: string; readonly edit: (stage: Stage) => Promise<unknown>; readonly damages: RegExp };

const edits: readonly Edit[] = [
  ...kinds.map((kind) => ({
    what: `a set of ${kind} that was deleted is never taken for an empty one`,
    edit: ({ world, web }: Stage) =>
      world.run("delete from sets where project_id = ? and kind = ? and environment = 'production'", [web.id, kind]),
    damages: new RegExp(`^listing web ${kind} production$`),
  })),
  ...neighbours.flatMap(([column, value, label]): Edit[] => {
    const [here, there] = [home, ({ foreign }: Stage) => ({ [column]: value ?? foreign.id })];
    return [
      {
        what: `sets that exchanged their ${column} with another open nowhere`,
        edit: async (stage) => {
          const [at, other] = [here(stage), { ...here(stage), ...there(stage) }];
          const rows = [await take(stage.world, "sets", at), await take(stage.world, "sets", other)];
          await insert(stage.world, "sets", { ...rows[0], ...other });
          await insert(stage.world, "sets", { ...rows[1], ...at });
        },
        damages: new RegExp(`^listing (web variables production|${label})$`),
      },
      {
        what: `a copy of a set under another ${column} does not open, and the set itself does`,
        edit: async (stage) => {
          const row = await take(stage.world, "sets", here(stage));
          await take(stage.world, "sets", { ...row, ...there(stage) });
          for (const copy of [row, { ...row, ...there(stage) }]) await insert(stage.world, "sets", copy);
        },
        damages: new RegExp(`^listing ${label}$`),
      },
    ];
  }),
  ...[
    ["sets", /^listing /],
    ["data_keys", /^(values|bytes) /],
    ["file_contents", /^content /],
  ].map(([table, damages]) => ({
    what: `all ${table} deleted`,
    edit: ({ world }: Stage) => world.run(world.dialect === "postgres" ? `truncate ${table}` : `delete from ${table}`),
    damages: damages as RegExp,
  })),
  ...[
    ["deleted", "delete from file_contents"],
    ["given to another project", "update file_contents set project_id = 'x'"],
    ["given another id", "update file_contents set id = 'x'"],
    ["given another size", "update file_contents set size = size - 1"],
    ["cut, its size too", "update file_contents set size = size - 1, sealed = substr(sealed, 2)"],
  ].map(([what, statement]) => ({
    what: `a content that was ${what} is missing`,
    edit: (stage: Stage) => stage.world.run(`${statement} where id = ?`, [contentId(stage, "web", "a.txt")]),
    damages: /^content web a\.txt$/,
  })),
  {
    what: "two contents that exchanged their ids do not open",
    edit: (stage) =>
      exchange(stage, "file_contents", "id", contentId(stage, "web", "a.txt"), contentId(stage, "web", "d.json")),
    damages: /^bytes web (a\.txt|d\.json)$/,
  },
  {
    what: "a content under a copy of its data key with another generation does not open",
    edit: async (stage) => {
      const { world, web } = stage;
      await world.sql`insert into data_keys (project_id, generation, root_id, wrapped, created_at)
        select project_id, 2, root_id, wrapped, created_at from data_keys where project_id = ${web.id}`;
      const target = contentTarget(stage, "web", "a.txt", "sealed");
      const bytes = Buffer.from((await read(stage, target)) as Buffer);
      bytes.writeUInt32BE(2, 2);
      await write(stage, target, bytes);
      await write(stage, contentTarget(stage, "web", "a.txt", "generation"), 2);
    },
    damages: /^bytes web a\.txt$/,
  },
];

const failed = "decryption_failed";
const absent = "project_not_found";

/** Who asks for which slug after an edit, and how all such questions are answered. */
type Move = { readonly what: string; readonly edit: (stage: Stage) => Promise<unknown>; readonly verdicts: string };

const exchangedProjects = (column: string) => (stage: Stage) =>
  exchange(stage, "projects", column, stage.web.id, stage.api.id);
const closed = `every web ${failed}, every api ${failed}, narrow web ${absent}, stranger web 200`;
const moves: readonly Move[] = [
  {
    what: "a project moved to another organization opens for nobody",
    edit: ({ world, api, betaId }) => world.sql`update projects set organization_id = ${betaId} where id = ${api.id}`,
    verdicts: `stranger api ${failed}, every api ${absent}, every web 200, stranger web 200`,
  },
  {
    what: "two projects that exchanged their organizations open for nobody",
    edit: (stage) => exchange(stage, "projects", "organization_id", stage.web.id, stage.foreign.id),
    verdicts: `stranger web ${failed}, every web ${failed}, narrow web ${absent}, every api 200`,
  },
  {
    what: "two projects that exchanged their slugs open for nobody, and a key that lists one reaches neither",
    ...{ edit: exchangedProjects("slug"), verdicts: closed },
  },
  {
    what: "two projects that exchanged their ids open for nobody",
    ...{ edit: exchangedProjects("id"), verdicts: closed },
  },
  {
    what: "a project with an edited slug opens for nobody",
    edit: ({ world, web }) => world.sql`update projects set slug = 'renamed' where id = ${web.id}`,
    verdicts: `every renamed ${failed}, every web ${absent}, narrow web ${absent}, every api 200`,
  },
  {
    what: "projects that were deleted by SQL are gone, whatever else of them is left",
    edit: ({ world }) => world.run("delete from projects"),
    verdicts: `every web ${absent}, narrow web ${absent}, stranger web ${absent}`,
  },
];

/** Texts that are no list of projects, or not the key's. */
const noLists: readonly string[] = [
  ...'|{|}|no list|null|[]|1|"web"|["web"]|{}|{"web":|{"web":"|"web":"|\\u0000|\'|\u{10FFFF}'.split("|"),
  ...["null", "1", "{}", '["x"]', '"x"', `"${"0".repeat(36)}"`].map((id) => `{"web":${id}}`),
  '{"\\ud800":"x"}',
  `{"web":"${"0".repeat(36)}"`,
  '{"web":"x",'.repeat(5000),
  "[".repeat(100_000),
];

/** Every change to the narrow key's row. */
function forgeries({ betaId, web, api, foreign }: Stage) {
  const change = (what: string, set: string, ...values: readonly unknown[]) => ({ what, set, values });
  return [
    change("more surfaces", "surfaces = 7"),
    change("fewer surfaces", "surfaces = 1"),
    change("more resources", "resources = 31"),
    change("fewer resources", "resources = 2"),
    change("more environments", "environments = 7"),
    change("other environments", "environments = 1"),
    change("no list of projects", "projects = null"),
    change("the terms of a trust", "trust = '{}'"),
    change("a longer list", "projects = ?", JSON.stringify({ api: api.id, web: web.id })),
    change("another's project", "projects = ?", JSON.stringify({ web: foreign.id })),
    change("a list of its own slug to another project", "projects = ?", JSON.stringify({ web: api.id })),
    change("the same list spelled otherwise", "projects = ?", `{ "web":"${web.id}"}`),
    change("an empty list", "projects = '{}'"),
    change("no list but text", "projects = 'null'"),
    change("no expiry", "expires_at = null"),
    change("larger buckets", "rate = 100"),
    change("every address", "ranges = null"),
    change("more addresses", "ranges = ranges || ',0.0.0.0/0'"),
    change("more ranges than are read", "ranges = ?", "10.0.0.0/8,".repeat(1000)),
    change("a later expiry", "expires_at = expires_at + 1"),
    change("an earlier expiry", "expires_at = expires_at - 1"),
    change("another organization", "organization_id = ?", betaId),
    change("no seal", "grant_seal = ?", Buffer.alloc(0)),
    change("a seal of zeros", "grant_seal = ?", Buffer.alloc(32)),
    change("another's digest for a seal", "grant_seal = digest"),
    change("everything", "surfaces = 7, resources = 31, environments = 7, projects = null, expires_at = null"),
    change("another digest", "digest = ?", Buffer.alloc(32, 1)),
    change("another id", "id = 'other'"),
  ];
}

/** Texts with the digests that somebody without the pepper could come up with. */
function madeUp({ world }: Stage) {
  const made = (what: string, digest: (key: string) => Uint8Array) => {
    const key = mintKey();
    return { what, key, digest: Buffer.from(digest(key)) };
  };
  return [
    made("a plain SHA-256", (key) => new Bun.CryptoHasher("sha256").update(key).digest()),
    made("an empty pepper", (key) => digestKey(Buffer.alloc(32), key)),
    // Sealed with the right digest, but by nobody who has the grant key.
    made("the right digest", (key) => digestKey(world.installation.systemKeys.pepper, key)),
  ];
}

/* A world of three projects, every question that its keys can ask, what each answer depends on, and ways to edit rows. */

/** It is in every value, so that none can leave unnoticed. */
const secretOf = (...parts: readonly string[]) => `${canary}-${parts.join("-")}`;
const setColumns = ["version", "generation", "listing", "listing_mac", "sealed"] as const;
/** The tables that the tests edit. */
const tables = ["organizations", "projects", "data_keys", "sets", "set_versions", "file_contents", "api_keys"] as const;

/**
 * What a question's answer depends on, in words: `listing web files staging` and `values web accounts staging` of a
 * set, `content web a.txt` and `bytes web a.txt` of a file. What an edit damages is a pattern of such words.
 */
type Question = { readonly key: Key; readonly path: string; readonly needs: readonly string[] };

/** A column of a row, and what is damaged when it changes. */
type Target = {
  readonly table: (typeof tables)[number];
  readonly column: string;
  readonly where: string;
  readonly at: readonly unknown[];
  readonly damages: RegExp;
};

type Stage = {
  readonly world: World;
  /** One app remembers sets where the database allows it, as a server does; the other remembers none. */
  readonly clients: readonly [Client, Client];
  readonly web: Placed;
  readonly api: Placed;
  readonly foreign: Placed;
  readonly alphaId: string;
  readonly betaId: string;
  /** Every project of alpha; production of alpha/web; every project of beta. */
  readonly every: Key;
  readonly narrow: Key;
  readonly stranger: Key;
  readonly questions: readonly Question[];
  /** The bodies before anything was edited. */
  readonly truth: ReadonlyMap<Question, string>;
  /** Puts every row back. */
  readonly restore: () => Promise<void>;
};

const wholeProduction = "/projects/web/variables?environment=production";
const nothing = /^$/;
let turns = 0;

async function setUp(world: World): Promise<Stage> {
  if (world.dialect === "sqlite") await world.run("PRAGMA synchronous = OFF"); // of this connection: it only edits
  const [alpha, beta] = [await world.organization(), await world.organization()];
  const content = (label: string) => ({
    variables: Object.fromEntries(
      environments.map((at) => [at, { FIRST: secretOf(label, at, "FIRST"), SECOND: secretOf(label, at, "SECOND") }]),
    ),
    accounts: [
      ...environments.map((at) => ({ name: `own ${at}`, environments: [at], values: { token: secretOf(label, at) } })),
      { name: "registry", environments: ["development", "production"] as const, values: { u: secretOf(label, "u") } },
    ],
    files: [
      { path: "a.txt", environments: ["production"], content: secretOf(label, "a") },
      { path: "b/c.txt", environments: ["development", "staging"], content: secretOf(label, "c") },
      { path: "d.json", environments: ["production"], content: secretOf(label, "d") },
      ...(label === "web" ? [{ path: "medium.bin", environments: ["staging"], content: canary.repeat(1024) }] : []),
      ...(label === "api" ? [{ path: "large.bin", environments: ["staging"], content: canary.repeat(75 * 1024) }] : []),
    ],
  });
  const web = await world.project(alpha, "web", content("web"));
  const api = await world.project(alpha, "api", content("api"));
  const foreign = await world.project(beta, "web", content("foreign"));
  const wide = { surfaces: ["rest_api", "ci_action"], resources: ["projects", "variables", "accounts", "files"] };
  const every = await world.key(alpha, wide);
  const reach = { projects: ["web"], environments: ["production"], expiresInMs: 3_600_000 };
  const narrow = await world.key(alpha, { ...wide, ...reach, from: ["unix", "10.0.0.0/8"] });
  const stranger = await world.key(beta, wide);
  const forgetful = unlimited(world, ({ source }) => ({ source: { ...source, remembered: new RememberedSets(0) } }));
  const questions = [
    ...questionsOf(every, "web", "web", environments),
    ...questionsOf(every, "api", "api", environments),
    ...questionsOf(stranger, "foreign", "web", environments),
    ...questionsOf(narrow, "web", "web", ["production"]),
  ];
  // Someone who can write to the database can drop its rules as well.
  if (world.dialect === "postgres") {
    const rules = await world.run("select conrelid::regclass::text as owner, conname, contype from pg_constraint");
    for (const { owner, conname, contype } of rules) {
      if (!/[cf]/.test(String(contype)) || !(tables as readonly unknown[]).includes(owner)) continue;
      await world.run(`alter table ${owner} drop constraint ${conname}`);
    }
  } else {
    await world.run("pragma ignore_check_constraints = on");
  }
  for (const table of tables) await world.run(`create table kept_${table} as select * from ${table}`);
  const back = (table: string) => [`delete from ${table}`, `insert into ${table} select * from kept_${table}`];
  const statements = tables.flatMap(back);
  const restore = async () => {
    // PostgreSQL runs several statements of one text as one transaction. SQLite runs the first alone.
    for (const text of world.dialect === "postgres" ? [statements.join("; ")] : statements) await world.run(text);
  };
  const base = { world, clients: [unlimited(world), forgetful] as const, web, api, foreign, every, narrow, stranger };
  const stage = { ...base, alphaId: alpha.id, betaId: beta.id, questions, truth: new Map<Question, string>(), restore };
  for (const row of await world.run("select * from sets where kind = 'files'")) {
    for (const { id, path } of JSON.parse(row["listing"] as string))
      contentIds.set(`${world.dialect} ${projectOf(stage, row)} ${path}`, id);
  }
  return { ...stage, truth: await truthOf(stage, questions) };
}

/** Content ids by dialect, project and path. */
const contentIds = new Map<string, string>();

/** Everything a key can ask of a project, with what the answers depend on. */
function questionsOf(key: Key, label: string, slug: string, reach: readonly Environment[]): Question[] {
  const large = label === "foreign" ? [] : [label === "web" ? "medium.bin" : "large.bin"];
  const pathsOf = (at: Environment) =>
    at === "production" ? ["a.txt", "d.json"] : ["b/c.txt", ...(at === "staging" ? large : [])];
  const listings = (kind: string) => reach.map((at) => `listing ${label} ${kind} ${at}`);
  const contents = (paths: readonly string[]) => paths.map((path) => `content ${label} ${path}`);
  const bytes = (paths: readonly string[]) => [...contents(paths), ...paths.map((path) => `bytes ${label} ${path}`)];
  const asked = reach.flatMap((at): [path: string, needs: string[]][] => {
    const variables = `/projects/${slug}/variables?environment=${at}`;
    const accounts = `/projects/${slug}/accounts?environment=${at}`;
    const files = `/files?project=${slug}&environment=${at}`;
    const listing = `listing ${label} variables ${at}`;
    const values = [listing, `values ${label} variables ${at}`];
    const [first = ""] = pathsOf(at);
    return [
      [variables, values],
      [`${variables}&format=env`, values],
      [`${variables}&keys=FIRST,SECOND`, values],
      [`${variables}&prefix=S`, values],
      [`/secrets?project=${slug}&environment=${at}`, values],
      [`${variables}&metadata_only=true`, [listing]],
      [accounts, [...listings("accounts"), `values ${label} accounts ${at}`]],
      [`${accounts}&metadata_only=true`, listings("accounts")],
      [files, [...listings("files"), ...bytes(pathsOf(at))]],
      [`${files}&path=${first}`, [...listings("files"), ...bytes([first])]],
      [`${files}&metadataOnly=true`, [...listings("files"), ...contents(pathsOf(at))]],
    ];
  });
  asked.push(
    [`/projects/${slug}/variables?metadata_only=true`, listings("variables")],
    [`/projects/${slug}/accounts`, [...listings("accounts"), ...reach.map((at) => `values ${label} accounts ${at}`)]],
    [`/projects/${slug}/accounts?metadata_only=true`, listings("accounts")],
  );
  return asked.map(([path, needs]) => ({ key, path, needs }));
}

async function truthOf({ clients }: Pick<Stage, "clients">, questions: readonly Question[]) {
  const truth = new Map<Question, string>();
  for (const question of questions) {
    const answer = await clients[1].ask(question.path, { key: question.key });
    expect([question.path, verdictOf(answer)]).toEqual([question.path, "200"]);
    truth.set(question, answer.text);
  }
  return truth;
}

/** How one app answers, each in turn: "200" for the truth only. */
async function ask(stage: Stage, question: Question, truth = stage.truth): Promise<string> {
  const answer = await (stage.clients[turns++ % 2] as Client).ask(question.path, { key: question.key });
  const verdict = verdictOf(answer);
  if (verdict === "200") return answer.text === truth.get(question) ? "200" : `LIES ${answer.text}`;
  return answer.text.includes(canary) ? `LEAKS ${answer.text}` : verdict;
}

const isHit = ({ needs }: Question, damaged: RegExp) => needs.some((need) => damaged.test(need));

/** Every question that needs what is damaged is refused, and every other one answered as before. */
async function expectAll(
  stage: Stage,
  damaged: RegExp,
  questions = stage.questions,
  truth = stage.truth,
): Promise<void> {
  const found = await Promise.all(
    questions.map(async ({ path }, n) => [path, await ask(stage, questions[n] as Question, truth)]),
  );
  const expected = questions.map((question) => [question.path, isHit(question, damaged) ? "decryption_failed" : "200"]);
  expect(found).toEqual(expected);
}

/** The same of one question that is hit and sometimes of one that is not, each in turn. */
async function expectSome(stage: Stage, damaged: RegExp, what: string): Promise<void> {
  const hit = stage.questions.filter((question) => isHit(question, damaged));
  const question = hit[turns % hit.length] as Question;
  expect([what, question.path, await ask(stage, question)]).toEqual([what, question.path, "decryption_failed"]);
  if (turns % 8 !== 0) return;
  const other = stage.questions[turns % stage.questions.length] as Question;
  const expected = isHit(other, damaged) ? "decryption_failed" : "200";
  expect([what, other.path, await ask(stage, other)]).toEqual([what, other.path, expected]);
}

/** @param bits - which to flip, or one of how many */
async function refusesEachFlip(stage: Stage, target: Target, bits: readonly number[] | number): Promise<void> {
  const value = await read(stage, target);
  const width = typeof value === "number" ? (target.column === "version" ? 63 : 31) : value.length * 8;
  const all = Array.from({ length: width }, (_, bit) => bit);
  const chosen = typeof bits === "number" ? all.filter((bit) => width < 64 || bit % bits === (bit % 7) % bits) : bits;
  for (const bit of chosen) {
    const changed = typeof value === "number" ? BigInt(value) ^ (1n << BigInt(bit)) : flipped(value, bit);
    if (!(await write(stage, target, changed))) continue;
    await expectSome(stage, target.damages, `bit ${bit} of ${target.table}.${target.column}`);
  }
  await stage.restore();
  await expectAll(stage, nothing);
}

function setTarget(
  stage: Stage,
  label: "web" | "api",
  kind: string,
  at: Environment,
  column: (typeof setColumns)[number],
): Target {
  const part = column === "sealed" ? "values" : "listing";
  return {
    table: "sets",
    column,
    where: "project_id = ? and kind = ? and environment = ?",
    at: [stage[label].id, kind, at],
    damages: new RegExp(`^${part} ${label} ${kind} ${at}$`),
  };
}

function dataKeyTarget({ web }: Stage, column: string): Target {
  return { table: "data_keys", column, where: "project_id = ?", at: [web.id], damages: /^(values|bytes) web / };
}

function contentTarget(stage: Stage, label: "web" | "api", path: string, column: string): Target {
  const part = column === "sealed" || column === "generation" ? "bytes" : "content";
  const at = [contentId(stage, label, path)];
  return { table: "file_contents", column, where: "id = ?", at, damages: new RegExp(`^${part} ${label} ${path}$`) };
}

async function read({ world }: Stage, { table, column, where, at }: Target): Promise<Buffer | number> {
  const [row] = await world.run(`select ${column} as value from ${table} where ${where}`, at);
  const value = row?.["value"] as Buffer | number | string;
  return typeof value === "string" ? Buffer.from(value) : value;
}

/** @returns whether the database takes the value */
async function write({ world }: Stage, target: Target, value: Buffer | number | bigint): Promise<boolean> {
  const { table, column, where, at } = target;
  const isText = ["listing", "root_id", "project_id"].includes(column);
  if (!isText || !Buffer.isBuffer(value)) {
    await world.run(`update ${table} set ${column} = ? where ${where}`, [value, ...at]);
  } else if (world.dialect === "sqlite") {
    await world.run(`update ${table} set ${column} = cast(? as text) where ${where}`, [value, ...at]);
  } else {
    // PostgreSQL stores no text that is not UTF-8.
    if (!isUtf8(value) || value.includes(0)) return false;
    await world.run(`update ${table} set ${column} = ? where ${where}`, [value.toString(), ...at]);
  }
  return true;
}

function projectOf(stage: Stage, row: Row): "web" | "api" | "foreign" {
  return (["web", "api", "foreign"] as const).find((label) => stage[label].id === row["project_id"]) ?? "foreign";
}

function labelOf(stage: Stage, row: Row): string {
  return `${projectOf(stage, row)} ${row["kind"]} ${row["environment"]}`;
}

function contentId({ world }: Stage, label: string, path: string): string {
  return contentIds.get(`${world.dialect} ${label} ${path}`) as string;
}

function labelOfContent(stage: Stage, { id }: Row): string {
  const [found = ""] = [...contentIds].find(([, content]) => content === id) ?? [];
  return found.slice(stage.world.dialect.length + 1);
}

const primaryKeys = {
  sets: ["project_id", "kind", "environment"],
  file_contents: ["id"],
  data_keys: ["project_id", "generation"],
  projects: ["id"],
} as const;
type Keyed = keyof typeof primaryKeys;

function pick(row: Row, columns: readonly string[]): Row {
  return Object.fromEntries(columns.map((column) => [column, row[column]]));
}

async function update(world: World, table: Keyed, row: Row, change: Row): Promise<void> {
  const [where, values] = keyed(table, row);
  const set = Object.keys(change).map((name) => `${name} = ?`);
  await world.run(`update ${table} set ${set} where ${where}`, [...Object.values(change), ...values]);
}

/** Deletes a row and returns it. */
async function take(world: World, table: Keyed, row: Row): Promise<Row> {
  const [where, values] = keyed(table, row);
  const [taken] = await world.run(`delete from ${table} where ${where} returning *`, values);
  return taken as Row;
}

function keyed(table: Keyed, row: Row): [where: string, values: unknown[]] {
  const keys: readonly string[] = primaryKeys[table];
  return [keys.map((name) => `${name} = ?`).join(" and "), keys.map((name) => row[name])];
}

async function insert(world: World, table: Keyed, row: Row): Promise<void> {
  const names = Object.keys(row);
  const [columns, places] = [names.join(", "), names.map(() => "?").join(", ")];
  await world.run(`insert into ${table} (${columns}) values (${places})`, Object.values(row));
}

/** Exchanges a column of two rows, by way of a third value: unique indexes allow no other. */
async function exchange({ world }: Stage, table: string, column: string, ...[one, other]: [string, string]) {
  const rows = await world.run(`select id, ${column} as value from ${table}`);
  const [first, second] = [one, other].map((id) => rows.find((row) => row["id"] === id)?.["value"]);
  const put = (value: unknown, id: string) => world.run(`update ${table} set ${column} = ? where id = ?`, [value, id]);
  await put(Buffer.isBuffer(first) ? Buffer.alloc(32) : "aside", one);
  await put(first, other);
  await put(second, column === "id" ? "aside" : one);
}

/** Takes two rows of one table and gives the first some columns of the second, or exchanges them. */
async function crossRows({ world }: Stage, dice: Dice): Promise<string> {
  const table = dice.pick(Object.keys(primaryKeys) as Keyed[]);
  const small = table === "file_contents" ? "where size < 1000" : "";
  const rows = await world.run(`select * from ${table} ${small} order by ${primaryKeys[table].join(", ")}`);
  if (rows.length === 0) return "nothing";
  const [one, two] = [dice.pick(rows), dice.pick(rows)];
  const names = dice.some(Object.keys(one));
  const exchange = dice.chance(0.5);
  const after = [{ ...one, ...pick(two, names) }, exchange ? { ...two, ...pick(one, names) } : two];
  for (const row of new Set([one, two])) await take(world, table, row);
  for (const row of dice.chance(0.2) ? after.slice(0, 1) : after) {
    // A row that a unique index refuses is left out: the rest is still a mixture worth trying.
    await insert(world, table, row).catch(() => {});
  }
  return `${exchange ? "exchanged" : "copied"} ${names.join(", ")} in ${table}`;
}

/** Writes to each kind in production of alpha/web, each of which must open its set. */
function writesTo({ world: { admin }, web: { where } }: Stage, kind: Kind) {
  const content = Buffer.from("newer");
  const both = ["FIRST", "SECOND"].map((name) => ({ name, value: "newer" }));
  return {
    variables: [
      () => setVariables(admin, where, "production", both),
      () => deleteVariable(admin, where, "production", "SECOND"),
    ],
    accounts: [
      () => setAccount(admin, where, "own production", ["production"], { token: "newer" }),
      () => deleteAccount(admin, where, "registry"),
    ],
    files: [
      () => putFile(admin, where, { path: "a.txt", environments: ["production"], content }),
      () => deleteFile(admin, where, "d.json", ["production"]),
    ],
  }[kind] as readonly (() => Promise<unknown>)[];
}

/** Everything that a write could change. */
async function dump(world: World) {
  const rows = async (table: Keyed) => world.run(`select * from ${table} order by ${primaryKeys[table].join(", ")}`);
  return {
    sets: await rows("sets"),
    contents: await rows("file_contents"),
    dataKeys: await rows("data_keys"),
    projects: await rows("projects"),
  };
}

function isAt(row: Row, { at }: Target): boolean {
  return primaryKeys.sets.every((name, index) => row[name] === at[index]);
}

function flipped(bytes: Buffer, bit: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
  return changed;
}
