/**
 * What someone with SQL can do to the rows: none of it is served. Each test edits a real database beside the running
 * app, asks, and puts the rows back.
 *
 * One edit cannot be noticed: a whole set, with the data key and the contents it needs, put back to an earlier version
 * of itself is served as that version. What stands outside the sets, a project's name and counts, is not covered
 * either.
 */

import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import { digestKey, mintKey } from "../../src/access/api-key.ts";
import { type Grant, sealGrant } from "../../src/access/grant.ts";
import { setVariables } from "../../src/kinds/variables/write.ts";
import { revokeKey } from "../../src/people/keys.ts";
import { rotateData } from "../../src/people/rotation.ts";
import { setBytesMax } from "../../src/sets/kind.ts";
import { diceOf, verdictOf } from "../support/attack.ts";
import { canary } from "../support/canary.ts";
import { deleteFile } from "../support/delete.ts";
import { kinds } from "../support/kinds.ts";
import { seed } from "../support/seed.ts";
import {
  ask,
  contentId,
  contentTarget,
  crossRows,
  dataKeyTarget,
  dump,
  exchange,
  expectAll,
  expectSome,
  flipped,
  insert,
  isAt,
  isHit,
  labelOf,
  labelOfContent,
  nothing,
  pick,
  projectOf,
  questionsOf,
  read,
  refusesEachFlip,
  type Stage,
  setColumns,
  setTarget,
  setUp,
  take,
  truthOf,
  update,
  wholeProduction,
  write,
  writesTo,
} from "../support/tamper.ts";
import { type Client, describeBoth, type Row } from "../support/world.ts";

describeBoth("what SQL did to a row", (w, dialect) => {
  const onSqlite = dialect === "sqlite";
  let stage: Stage;
  beforeAll(async () => {
    stage = await setUp(w);
  }, 60_000);
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
    for (const column of ["project_id", "size", "generation"]) {
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

  describe("a listing that was edited is neither shown nor used:", () => {
    test.each(onSqlite ? listingEdits : listingEdits.slice(-6))("$kind with $entry", async ({ kind, entry }) => {
      const target = setTarget(stage, "web", kind, "production", "listing");
      const entries = JSON.parse(String(await read(stage, target))) as object[];
      const changed = () => [{ ...entries[0], ...JSON.parse(`{${entry}}`) }, ...entries.slice(1)];
      await write(stage, target, Buffer.from(entry.startsWith('"') ? JSON.stringify(changed()) : entry));
      await expectAll(stage, target.damages);
    });
  });

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
      for (const write of kinds.flatMap((kind) => writesTo(stage, kind))) {
        await expect(write()).rejects.toMatchObject({ name: "Fault", code: "decryption_failed" });
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
      const grant: Grant = { keyId: Bun.randomUUIDv7(), organizationId: stage.alphaId, ...reach };
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
