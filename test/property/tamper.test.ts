/**
 * What a stranger with SQL can do to the rows: nothing of it is served. Each suite edits a real database beside the
 * running app, asks, and puts the rows back.
 *
 * Two ways of editing are tried. A loud edit raises the environment's revision, as the triggers see to; a quiet one puts
 * the revision back, so that a sealed set seems current.
 *
 * Not claimed here: whoever asks for variables or files by name is told what the rows say, since only what is read whole
 * is held against its set; and a set that is put back together with its revision and its data key goes unseen.
 */
import { beforeAll, expect, test } from "bun:test";
import { digestKey, mintKey } from "../../src/access/api-key.ts";
import { type Grant, sealGrant } from "../../src/access/grant.ts";
import { deleteAccount, setAccount } from "../../src/admin/accounts.ts";
import { deleteFile, putFile } from "../../src/admin/files.ts";
import { revokeKey } from "../../src/admin/keys.ts";
import { rotateData } from "../../src/admin/rotation.ts";
import { deleteVariable, setVariables } from "../../src/admin/variables.ts";
import { environments } from "../../src/names.ts";
import { SealedSets } from "../../src/read/sets.ts";
import { setQueries } from "../../src/store/sets.ts";
import { seed } from "../seed.ts";
import { type Answer, type Client, describeBoth, type Key, type Placed, type Row, type World } from "../world.ts";
import { type Dice, diceOf, unlimited, verdictOf } from "./attack.ts";

/** In every value, so that one leaves a trace wherever it goes. */
const canary = "KHCANARY";

type Question = { readonly key: Key; readonly path: string };

/** A stored ciphertext: where it stands, and the questions whose answers need it. */
type Slot = {
  readonly label: string;
  readonly table: "variables" | "variable_sets" | "accounts" | "files" | "item_sets" | "data_keys";
  readonly column: "sealed" | "wrapped";
  readonly where: string;
  readonly at: readonly unknown[];
  readonly bytes: Buffer;
  readonly questions: readonly Question[];
};

type Stage = {
  readonly world: World;
  /** Remembers no set: each is read anew. */
  readonly client: Client;
  /** Remembers them, as the server does. */
  readonly remembering: Client;
  readonly web: Placed;
  readonly api: Placed;
  readonly foreign: Placed;
  readonly alphaId: string;
  readonly betaId: string;
  /** Every project of alpha; alpha/web alone; every project of beta. */
  readonly every: Key;
  readonly listed: Key;
  readonly stranger: Key;
  readonly questions: readonly Question[];
  /** What each question was answered before anything was touched, item by item. */
  readonly truth: ReadonlyMap<string, ReadonlySet<string>>;
  readonly slots: readonly Slot[];
  /**
   * "200" for the whole truth, "less" for a part of it and nothing else where that may be, "PARTIAL" for the same where
   * it may not, "LIES" for anything else that was served, and otherwise the code of the failure.
   */
  readonly ask: (question: Question, client?: Client) => Promise<string>;
  /** Puts every environment's revision back. */
  readonly hush: () => Promise<void>;
  /** Puts every row back. */
  readonly restore: () => Promise<void>;
};

/** In an order in which triggers leave what was put back alone. */
const tables = [
  ...["organizations", "projects", "data_keys", "variables", "variable_sets", "accounts", "files", "item_sets"],
  ...["api_keys", "project_environments"],
];
const secretOf = (...parts: readonly string[]) => `${canary}-${parts.join("-")}`;

describeBoth("what SQL did to a row", (world, dialect) => {
  const onSqlite = dialect === "sqlite";
  let stage: Stage;
  beforeAll(async () => {
    stage = await setUp(world());
  }, 60_000);

  test("every single flipped bit of a variable, an account, a small file, a seal over them and a data key is a 503", async () => {
    for (const label of small) {
      const slot = slotOf(stage, label);
      await refusesEachFlip(stage, slot, range(slot.bytes.length * 8));
    }
  }, 300_000);

  test("every single flipped bit of a sealed set is a 503, whether its environment's revision shows it or not", async () => {
    const slot = slotOf(stage, "set web production");
    const bits = range(slot.bytes.length * 8);
    await refusesEachFlip(stage, slot, onSqlite ? bits : bits.filter((bit) => bit % 8 === 3));
    await refusesEachFlip(stage, slot, onSqlite ? bits : bits.filter((bit) => bit % 8 === 5), stage.hush);
  });

  const flips = onSqlite ? 10_000 : 600;
  test(`${flips} flipped bits of a file, and some of one that is opened in slices, are a 503 each`, async () => {
    const dice = diceOf(seed);
    const medium = slotOf(stage, "file web medium.bin");
    const bits = Array.from({ length: flips }, () => dice.below(medium.bytes.length * 8));
    await refusesEachFlip(stage, medium, bits);
    const large = slotOf(stage, "file api large.bin");
    const some = Array.from({ length: onSqlite ? 100 : 12 }, () => dice.below(large.bytes.length * 8));
    await refusesEachFlip(stage, large, [...some, large.bytes.length * 8 - 1, 18 * 8]);
  }, 300_000);

  test("every length but the right one is a 503: cut at either end, or longer", async () => {
    for (const label of [...small, "set web production"]) {
      const slot = slotOf(stage, label);
      const { bytes } = slot;
      const odd = [
        ...range(bytes.length).map((length) => bytes.subarray(0, length)),
        ...range(bytes.length - 1).map((from) => bytes.subarray(from + 1)),
        Buffer.concat([bytes, Buffer.of(0)]),
        Buffer.concat([bytes, bytes]),
      ];
      for (const cut of odd) {
        await put(stage, slot, cut);
        expect([label, cut.length, await askAny(stage, slot, cut.length)]).toEqual([
          label,
          cut.length,
          "decryption_failed",
        ]);
        if (slot.table !== "files" || cut.length < 34) continue;
        // With a record that fits the new length, the length alone gives nothing away.
        await stage.world.run(`update files set size = ? where ${slot.where}`, [cut.length - 34, ...slot.at]);
        expect(await askAny(stage, slot, 0)).toBe("decryption_failed");
        await stage.world.run(`update files set size = ? where ${slot.where}`, [bytes.length - 34, ...slot.at]);
      }
      await put(stage, slot, bytes);
      expect(await askAny(stage, slot, 0)).toBe("200");
    }
    await stage.restore();
  });

  test("no ciphertext opens in another's place: every pair, across kind, column, project and organization", async () => {
    const opened: string[] = [];
    let turns = 0;
    for (const to of stage.slots) {
      for (const from of stage.slots) {
        if (from === to || from.bytes.length > 4096 || to.bytes.length > 4096) continue;
        await put(stage, to, from.bytes);
        if (to.table === "files" && from.bytes.length !== to.bytes.length) {
          await stage.world.run(`update files set size = ? where ${to.where}`, [from.bytes.length - 34, ...to.at]);
        }
        if (to.table === "variable_sets" && turns++ % 2 === 0) await stage.hush();
        const verdict = await askAny(stage, to, turns);
        if (verdict !== "decryption_failed") opened.push(`${from.label} in the place of ${to.label}: ${verdict}`);
      }
      await stage.world.run(`update ${to.table} set ${to.column} = ? where ${to.where}`, [to.bytes, ...to.at]);
      if (to.table === "files") {
        await stage.world.run(`update files set size = ? where ${to.where}`, [to.bytes.length - 34, ...to.at]);
      }
    }
    expect(opened).toEqual([]);
    expect(turns).toBeGreaterThan(100);
    await stage.restore();
    await expectUntouched(stage);
  }, 300_000);

  test.each(edits)("$what", async ({ edit, verdicts }) => {
    await edit(stage);
    const found: Record<string, string> = {};
    for (const name of Object.keys(verdicts)) found[name] = await stage.ask(named(stage, name));
    await stage.restore();
    expect(found).toEqual({ ...verdicts });
    if (onSqlite) await expectUntouched(stage);
  });

  test("whatever mixture of rows is left, what is served is true for its place", async () => {
    const dice = diceOf(seed + 1);
    const seen = new Map<string, number>();
    for (let round = 0; round < (onSqlite ? 150 : 60); round++) {
      const done: string[] = [];
      for (let left = 1 + dice.below(3); left > 0; left--) done.push(await crossRows(stage, dice));
      if (dice.chance(0.5)) {
        await stage.hush();
        done.push("hushed");
      }
      for (const question of dice.some(stage.questions, 0.4)) {
        const verdict = await stage.ask(question, dice.pick([stage.client, stage.remembering]));
        seen.set(verdict, (seen.get(verdict) ?? 0) + 1);
        if (!["200", "less", "decryption_failed", "project_not_found"].includes(verdict)) {
          throw new Error(`seed ${seed}, round ${round}, ${question.path}: ${verdict} after ${done.join("; ")}`);
        }
      }
      await stage.restore();
    }
    // Else this has shown nothing.
    for (const verdict of ["200", "less", "decryption_failed", "project_not_found"]) {
      expect([verdict, (seen.get(verdict) ?? 0) > 10]).toEqual([verdict, true]);
    }
    await expectUntouched(stage);
  }, 300_000);

  test("a key row that anything but Keyhole wrote is no key: one 401 for all, and the log says so", async () => {
    const { world, client } = stage;
    const unknown = await client.ask("/organization", { key: mintKey() });
    const expected = [unknown.status, unknown.text, [...unknown.headers.keys()].sort()];
    const refused = async (what: string, key: string) => {
      const answer = await client.ask("/projects/web/variables?environment=production", { key });
      const got = [answer.status, answer.text, [...answer.headers.keys()].sort()];
      expect([what, ...got]).toEqual([what, ...expected]);
    };
    const { listed, stranger } = stage;
    for (const { what, change } of forgeries(stage)) {
      await world.run(`update api_keys set ${change.set} where id = ?`, [...change.values, listed.id]);
      await refused(what, listed.key);
      await stage.restore();
    }
    const [row] = await world.sql`select grant_seal from api_keys where id = ${listed.id}`;
    const seal = row?.["grant_seal"] as Buffer;
    for (const bit of range(seal.length * 8)) {
      await world.run("update api_keys set grant_seal = ? where id = ?", [flipped(seal, bit), listed.id]);
      await refused(`bit ${bit} of the grant seal`, listed.key);
    }
    await stage.restore();
    expect(world.log.some(({ reason }) => String(reason).includes(`grant seal of key ${listed.id}`))).toBe(true);

    // Two keys whose digests were exchanged: each text would find the other's rights.
    await world.run("update api_keys set digest = ? where id = ?", [Buffer.alloc(32), listed.id]);
    await swapColumn(stage, "api_keys", "digest", stranger.id, listed.id);
    await refused("an exchanged digest", stranger.key);
    await stage.restore();

    for (const { what, key, digest } of madeUp(stage)) {
      const grant: Grant = {
        keyId: Bun.randomUUIDv7(),
        organizationId: stage.alphaId,
        surfaces: 7,
        resources: 31,
        environments: 7,
        projects: null,
        expiresAt: null,
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
    expect((await client.ask("/organization", { key: listed })).status).toBe(200);
  });

  test("an old row is not made good by the next write, even where the set is gone", async () => {
    const { world, web } = stage;
    await setVariables(world.desk, web.where, "production", [{ name: "FIRST", value: "newer" }]);
    await world.sql`delete from variables where project_id = ${web.id} and name = 'FIRST'`;
    await world.sql`insert into variables select * from kept_variables where project_id = ${web.id} and name = 'FIRST'`;
    await world.sql`delete from variable_sets where project_id = ${web.id} and environment = 'production'`;
    await setVariables(world.desk, web.where, "production", [{ name: "THIRD", value: "innocent" }]).catch(() => {});
    const { status } = await stage.client.ask(variables("web", "production"), { key: stage.every });
    await stage.restore();
    expect(status).toBe(503);
  });

  const broken = [
    ["was changed", column(set, "sealed = ?", Buffer.alloc(64, 1))],
    ["was given another revision", column(set, "revision = revision + 1")],
    ["is gone", (stage: Stage) => stage.world.sql`delete from variable_sets where project_id = ${stage.web.id}`],
  ] as const;
  for (const [what, edit] of broken) {
    test(`a set that ${what} is not made good by a write or a rotation, whether a revision shows it or not`, async () => {
      const { world, web } = stage;
      const innocent = [
        () => setVariables(world.desk, web.where, "production", [{ name: "THIRD", value: "innocent" }]),
        () => deleteVariable(world.desk, web.where, "production", "FIRST"),
        () => rotateData(world.desk, web.where),
      ];
      const found: string[] = [];
      for (const write of innocent) {
        for (const done of [edit, quietly(edit)]) {
          await done(stage);
          await write().catch(() => {});
          found.push(...(await Promise.all(wholeProduction.map((name) => stage.ask(named(stage, name))))));
          await stage.restore();
        }
      }
      expect([...new Set(found)]).toEqual(["decryption_failed"]);
    });
  }

  test("a state that SQL puts back brings nothing back from a server that remembers it", async () => {
    const { world, web, every, remembering } = stage;
    const where = ["project_id = ? and environment = 'production'", web.id] as const;
    const states = () => world.run(`select state from project_environments where ${where[0]}`, [where[1]]);
    const read = async () => (await remembering.ask(variables("web", "production"), { key: every })).text;
    await stage.restore();
    const [before] = await states();
    const old = await read();
    await setVariables(world.desk, web.where, "production", [{ name: "FIRST", value: "rotated since" }]);
    await world.run(`update project_environments set state = ? where ${where[0]}`, [before?.["state"], where[1]]);
    expect(await states()).not.toEqual([before]);
    const now = await read();
    await stage.restore();
    expect(now).not.toBe(old);
    expect(now).toContain("rotated since");
  });

  // SQLite has no TRUNCATE.
  for (const table of onSqlite ? [] : ["variables", "variable_sets", "data_keys"]) {
    test(`${table} that were truncated leave nothing to servers that remember sets`, async () => {
      const asks = () => Promise.all(wholeProduction.map((name) => stage.ask(named(stage, name), stage.remembering)));
      await stage.restore();
      const before = await asks();
      await stage.world.run(`truncate ${table}`);
      const found = await asks();
      await stage.restore();
      expect([...new Set(before)]).toEqual(["200"]);
      expect([...new Set(found)]).toEqual(["decryption_failed"]);
    });
  }

  test.each(noLists)(
    "a key row whose list is %s is a 401 too, and no concern of the requests beside it",
    async (list) => {
      const { world, client, listed, every } = stage;
      await world.sql`update api_keys set projects = ${list} where id = ${listed.id}`;
      const beside = range(12).map((n) => (n === 5 ? listed : every));
      const found: Record<string, number[]> = {};
      const paths = [variables("web", "production"), "/projects", "/projects/web", accounts("web", "production")];
      for (const path of paths) {
        const answers = await Promise.all(beside.map((key) => client.ask(path, { key })));
        found[path] = answers.map(({ status }) => status);
      }
      await stage.restore();
      const expected = beside.map((key) => (key === listed ? 401 : 200));
      expect(found).toEqual(Object.fromEntries(paths.map((path) => [path, expected])));
    },
  );

  test("a key that was revoked stays so, whatever SQL does to the moment of its revocation", async () => {
    const { world, client, listed } = stage;
    await revokeKey(world.desk, listed.id);
    await world.sql`update api_keys set revoked_at = null where id = ${listed.id}`;
    const { status } = await client.ask(variables("web", "production"), { key: listed });
    await stage.restore();
    expect(status).toBe(401);
  });

  test("a row put back whole, or gone, is what its row says to whoever asks by name, and a 503 to whoever reads all", async () => {
    const { world, web } = stage;
    const names = [
      `every ${variables("web", "production")}&keys=FIRST`,
      `every ${variables("web", "production")}&prefix=FIRST`,
      `every ${files("web", "production")}&path=a.txt`,
    ];
    const wholes = [...wholeProduction, `every ${files("web", "production")}`];
    const told = async () => {
      const verdicts = await Promise.all([...names, ...wholes].map((name) => stage.ask(named(stage, name))));
      return { byName: [...new Set(verdicts.splice(0, names.length))], whole: [...new Set(verdicts)] };
    };
    await setVariables(world.desk, web.where, "production", [{ name: "FIRST", value: "newer" }]);
    const newer = { path: "a.txt", environments: ["production"], content: Buffer.from("newer") };
    await putFile(world.desk, web.where, newer);
    await world.sql`delete from variables where project_id = ${web.id} and name = 'FIRST'`;
    await world.sql`insert into variables select * from kept_variables where project_id = ${web.id} and name = 'FIRST'`;
    await world.sql`delete from files where project_id = ${web.id} and path = 'a.txt'`;
    await world.sql`insert into files select * from kept_files where project_id = ${web.id} and path = 'a.txt'`;
    const putBack = await told();
    await world.sql`delete from variables where project_id = ${web.id} and name = 'FIRST'`;
    await world.sql`delete from files where project_id = ${web.id} and path = 'a.txt'`;
    const gone = await told();
    await stage.restore();
    expect(putBack).toEqual({ byName: ["less"], whole: ["decryption_failed"] });
    expect(gone).toEqual({ byName: ["less"], whole: ["decryption_failed"] });
  });

  test("a listing that SQL made up is not shown", async () => {
    const listing = JSON.stringify([{ key: "FIRST", value: "made up", updatedAt: 1 }]);
    await quietly(column(set, "listing = ?", listing))(stage);
    const path = `${variables("web", "production")}&metadata_only=true`;
    const { text } = await stage.client.ask(path, { key: stage.every });
    await stage.restore();
    expect(text).not.toContain("made up");
  });

  test("after the database lost its last writes and got others, no server answers what was lost", async () => {
    const { world, web, every, remembering } = stage;
    await setVariables(world.desk, web.where, "production", [{ name: "FIRST", value: "lost" }]);
    await remembering.ask(variables("web", "production"), { key: every });
    await stage.restore();
    await setVariables(world.desk, web.where, "production", [{ name: "FIRST", value: "kept" }]);
    const { text } = await remembering.ask(variables("web", "production"), { key: every });
    await stage.restore();
    expect(text).toContain('"kept"');
  });

  test("nothing that was asked while rows were wrong left a value in the log", () => {
    expect(stage.world.log.length).toBeGreaterThan(1000);
    expect(JSON.stringify(stage.world.log)).not.toContain(canary);
  });
});

const noLists: readonly string[] = [
  ...[
    "",
    "{",
    "}",
    "no list",
    "null",
    "[]",
    "1",
    '"web"',
    '["web"]',
    "{}",
    '{"web":',
    '{"web":"',
    '"web":"',
    "\\u0000",
  ],
  ...['{"web":null}', '{"web":1}', '{"web":{}}', '{"web":["x"]}', '{"web":"x"}', '{"\\ud800":"x"}', "'", "\u{10FFFF}"],
  `{"web":"${"0".repeat(36)}"`,
  '{"web":"x",'.repeat(5000),
  "[".repeat(100_000),
];

type Edit = {
  readonly what: string;
  readonly edit: (stage: Stage) => Promise<unknown>;
  /** Questions, as `key path`, and how they are answered then. */
  readonly verdicts: Readonly<Record<string, string>>;
};

const [variables, accounts, files] = [
  (slug: string, environment: string) => `/projects/${slug}/variables?environment=${environment}`,
  (slug: string, environment: string) => `/projects/${slug}/accounts?environment=${environment}`,
  (slug: string, environment: string) => `/files?project=${slug}&environment=${environment}`,
];
const others = { [`every ${variables("api", "staging")}`]: "200", [`stranger ${files("web", "production")}`]: "200" };
const closed = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [name, "decryption_failed"]));

/** A change to one column of the row of a slot. */
const column = (label: string, set: string, ...values: readonly unknown[]) => {
  return async (stage: Stage) => {
    const slot = slotOf(stage, label);
    await stage.world.run(`update ${slot.table} set ${set} where ${slot.where}`, [...values, ...slot.at]);
  };
};
const first = "variable web production FIRST";
const mail = "account web mail";
const file = "file web a.txt";
const set = "set web production";
const seals = ["seal of accounts web production", "seal of files web production"];
const small = [first, mail, file, ...seals, "data key web"];
/** An edit that leaves no trace in the environments' revisions. */
const quietly = (edit: Edit["edit"]) => async (stage: Stage) => {
  await edit(stage);
  await stage.hush();
};
const wholeProduction = [
  `every ${variables("web", "production")}`,
  `every ${variables("web", "production")}&format=env`,
  `listed ${variables("web", "production")}`,
  "every /secrets?project=web&environment=production",
];

const allMail = [
  `every ${accounts("web", "production")}`,
  `listed ${accounts("web", "production")}`,
  "every /projects/web/accounts",
];

const edits: readonly Edit[] = [
  {
    what: "a variable moved to another environment does not open there, and is gone from where it was",
    edit: async (stage) => {
      const { id } = stage.web;
      await stage.world
        .sql`delete from variables where project_id = ${id} and environment = 'staging' and name = 'FIRST'`;
      await column(first, "environment = 'staging'")(stage);
    },
    verdicts: {
      ...closed(`every ${variables("web", "staging")}`, `every ${variables("web", "staging")}&keys=FIRST`),
      ...closed("every /secrets?project=web&environment=staging", `listed ${variables("web", "staging")}`),
      ...closed(...wholeProduction),
      [`every ${variables("web", "production")}&keys=FIRST,SECOND`]: "less",
      ...others,
    },
  },
  {
    what: "a variable moved to another project does not open there",
    edit: (stage) => column(first, "name = 'MOVED', project_id = ?", stage.api.id)(stage),
    verdicts: {
      ...closed(`every ${variables("api", "production")}`, ...wholeProduction),
      [`every ${variables("web", "production")}&prefix=F`]: "less",
      ...others,
    },
  },
  {
    what: "a variable moved to another organization's project does not open there",
    edit: (stage) => column(first, "name = 'MOVED', project_id = ?", stage.foreign.id)(stage),
    verdicts: {
      ...closed(`stranger ${variables("web", "production")}`, ...wholeProduction),
      [`every ${variables("web", "production")}&keys=SECOND`]: "less",
      ...others,
    },
  },
  {
    what: "a variable renamed does not open, in any form",
    edit: column(first, "name = 'RENAMED'"),
    verdicts: {
      ...closed(
        ...wholeProduction,
        `every ${variables("web", "production")}&prefix=REN`,
        `every ${variables("web", "production")}&keys=RENAMED`,
      ),
      [`every ${variables("web", "production")}&keys=SECOND`]: "less",
      ...others,
    },
  },
  {
    what: "two variables that exchanged their names do not open",
    edit: async (stage) => {
      await column(first, "name = 'ASIDE'")(stage);
      await column("variable web production SECOND", "name = 'FIRST'")(stage);
      await stage.world.run("update variables set name = 'SECOND' where name = 'ASIDE'");
    },
    verdicts: { ...closed(`every ${variables("web", "production")}`), ...others },
  },
  {
    what: "a variable with another's id does not open",
    edit: column(first, "id = ?", Bun.randomUUIDv7()),
    verdicts: { ...closed(`every ${variables("web", "production")}`), ...others },
  },
  {
    what: "a variable whose version was raised does not open",
    edit: column(first, "version = version + 1"),
    verdicts: { ...closed(`every ${variables("web", "production")}`), ...others },
  },
  {
    what: "an older value under the newer version does not open, nor the newer under the older",
    edit: async (stage) => {
      const slot = slotOf(stage, first);
      await setVariables(stage.world.desk, stage.web.where, "production", [{ name: "FIRST", value: "newer" }]);
      await put(stage, slot, slot.bytes);
      expect(await stage.ask(named(stage, `every ${variables("web", "production")}`))).toBe("decryption_failed");
      await setVariables(stage.world.desk, stage.web.where, "production", [{ name: "FIRST", value: "newest" }]);
      await column(first, "version = 1")(stage);
    },
    verdicts: { ...closed(`every ${variables("web", "production")}`), ...others },
  },
  {
    what: "a variable that seems to have been changed at another time is no longer what its set says",
    edit: column(first, "updated_at = updated_at + 1"),
    verdicts: { ...closed(...wholeProduction), ...others },
  },
  {
    what: "an environment that lacks a row is a 503, not a part of it",
    edit: column(first, "name = 'GONE', project_id = 'nowhere'"),
    verdicts: { ...closed(...wholeProduction), ...others },
  },
  {
    what: "a row put back whole as it was before is a 503 to whoever reads the environment",
    edit: async (stage) => {
      await setVariables(stage.world.desk, stage.web.where, "production", [{ name: "FIRST", value: "newer" }]);
      await stage.world.sql`delete from variables where project_id = ${stage.web.id} and name = 'FIRST'`;
      await stage.world.sql`insert into variables select * from kept_variables
        where project_id = ${stage.web.id} and name = 'FIRST'`;
    },
    verdicts: { ...closed(...wholeProduction), ...others },
  },
  {
    what: "an older set put back beside newer rows is a 503",
    edit: async (stage) => {
      await setVariables(stage.world.desk, stage.web.where, "production", [{ name: "FIRST", value: "newer" }]);
      await stage.world.sql`delete from variable_sets where project_id = ${stage.web.id}`;
      await stage.world.sql`insert into variable_sets select * from kept_variable_sets
        where project_id = ${stage.web.id}`;
    },
    verdicts: { ...closed(...wholeProduction), ...others },
  },
  {
    what: "an older set put back under the newer revision is a 503",
    edit: async (stage) => {
      const { world, web } = stage;
      await setVariables(world.desk, web.where, "production", [{ name: "FIRST", value: "newer" }]);
      const slot = slotOf(stage, set);
      const kept = await world.sql`select listing from kept_variable_sets
        where project_id = ${web.id} and environment = 'production'`;
      await world.sql`update variable_sets set sealed = ${slot.bytes}, listing = ${kept[0]?.["listing"]}
        where project_id = ${web.id} and environment = 'production'`;
      await world.sql`update project_environments set revision = (select revision from variable_sets as s
        where s.project_id = ${web.id} and s.environment = 'production')
        where project_id = ${web.id} and environment = 'production'`;
    },
    verdicts: { ...closed(...wholeProduction), ...others },
  },
  {
    what: "a set that is gone is a 503",
    edit: column(set, "project_id = 'nowhere'"),
    verdicts: { ...closed(...wholeProduction), ...others },
  },
  ...(
    [
      ["another listing", "listing = '[]'"],
      ["a listing that is no list", "listing = '{}'"],
      ["a listing that is no JSON", "listing = '['"],
      ["a revision of its own", "revision = revision + 1"],
      ["another generation", "generation = 2"],
    ] as const
  ).flatMap(([what, change]) => [
    { what: `a set with ${what} does not open`, edit: column(set, change), verdicts: closed(...wholeProduction) },
    {
      what: `a set with ${what} does not open where nothing else shows it`,
      edit: quietly(column(set, change)),
      verdicts: closed(...wholeProduction),
    },
  ]),
  ...(["project", "environment"] as const).map((unit) => ({
    what: `a whole set moved from another ${unit} does not open`,
    edit: quietly(async (stage: Stage) => {
      const { world, web, api } = stage;
      const [id, environment] = unit === "project" ? [api.id, "production"] : [web.id, "staging"];
      await world.sql`delete from variable_sets where project_id = ${web.id} and environment = 'production'`;
      await world.sql`update variable_sets set project_id = ${web.id}, environment = 'production'
        where project_id = ${id} and environment = ${environment}`;
    }),
    verdicts: closed(...wholeProduction),
  })),
  {
    what: "an account added to another environment opens in neither",
    edit: column(mail, "environments = 7"),
    verdicts: {
      ...closed(
        `every ${accounts("web", "staging")}`,
        `every ${accounts("web", "production")}`,
        "every /projects/web/accounts",
        "listed /projects/web/accounts",
      ),
      ...others,
    },
  },
  {
    what: "an account taken out of an environment does not open in those left",
    edit: column("account web registry", "environments = 1"),
    verdicts: {
      ...closed(`every ${accounts("web", "development")}`, `every ${accounts("web", "production")}`),
      ...others,
    },
  },
  {
    what: "an account renamed does not open",
    edit: column(mail, "name = 'renamed'"),
    verdicts: { ...closed(`every ${accounts("web", "production")}`), ...others },
  },
  {
    what: "an account with another's id does not open",
    edit: column(mail, "id = ?", Bun.randomUUIDv7()),
    verdicts: { ...closed(`every ${accounts("web", "production")}`), ...others },
  },
  {
    what: "an account whose version was changed does not open",
    edit: column(mail, "version = 2"),
    verdicts: { ...closed(`every ${accounts("web", "production")}`), ...others },
  },
  {
    what: "an account moved to another project does not open there",
    edit: (stage) => column(mail, "name = 'moved', project_id = ?", stage.foreign.id)(stage),
    verdicts: {
      ...closed(`stranger ${accounts("web", "production")}`, `every ${accounts("web", "production")}`),
      ...others,
    },
  },
  ...[
    ["path", "path = 'elsewhere.txt'"],
    ["mode", "mode = '0400'"],
    ["display name", "name = 'other'"],
    ["content type", "content_type = 'text/html'"],
    ["size", "size = size + 1"],
    ["checksum", `sha256 = '${"0".repeat(64)}'`],
    ["id", "id = 'other'"],
    ["version", "version = version + 1"],
    ["environments", "environments = 7"],
  ].map(([what, set]) => ({
    what: `a file with another ${what} does not open`,
    edit: column(file, set as string),
    verdicts: { ...closed(`every ${files("web", "production")}`, `listed ${files("web", "production")}`), ...others },
  })),
  {
    what: "a file added to another environment does not open there",
    edit: column(file, "environments = 6"),
    verdicts: {
      ...closed(`every ${files("web", "staging")}`, `every ${files("web", "staging")}&path=a.txt`),
      ...others,
    },
  },
  {
    what: "a file moved to another project does not open there",
    edit: (stage) => column(file, "path = 'moved.txt', project_id = ?", stage.foreign.id)(stage),
    verdicts: {
      ...closed(`stranger ${files("web", "production")}`, `every ${files("web", "production")}`),
      [`every ${files("web", "production")}&path=d.json`]: "less",
      [`every ${variables("api", "staging")}`]: "200",
    },
  },
  {
    what: "a file that seems to have been changed at another time is no longer what its set says",
    edit: column(file, "updated_at = updated_at + 1"),
    verdicts: {
      ...closed(`every ${files("web", "production")}`, `listed ${files("web", "production")}`),
      [`every ${files("web", "production")}&path=a.txt`]: "less",
      ...others,
    },
  },
  {
    what: "an account that seems to have been changed at another time is no longer what its set says",
    edit: column(mail, "updated_at = updated_at + 1"),
    verdicts: { ...closed(...allMail), ...others },
  },
  {
    what: "accounts that lack one are a 503, not a part of them",
    edit: column(mail, "name = 'gone', project_id = 'nowhere'"),
    verdicts: { ...closed(...allMail), [`every ${accounts("web", "development")}`]: "200", ...others },
  },
  {
    what: "files that lack one are a 503, not a part of them",
    edit: column(file, "path = 'gone', project_id = 'nowhere'"),
    verdicts: {
      ...closed(`every ${files("web", "production")}`, `listed ${files("web", "production")}`),
      [`every ${files("web", "staging")}`]: "200",
      [`every ${files("web", "production")}&path=d.json`]: "less",
      ...others,
    },
  },
  {
    what: "accounts and files that are all gone are a 503, not an empty answer",
    edit: async ({ world, web }) => {
      await world.sql`delete from accounts where project_id = ${web.id}`;
      await world.sql`delete from files where project_id = ${web.id}`;
    },
    verdicts: {
      ...closed(...allMail, `every ${accounts("web", "development")}`),
      ...closed(...environments.map((environment) => `every ${files("web", environment)}`)),
      [`every ${accounts("web", "staging")}`]: "200",
      ...others,
    },
  },
  {
    what: "an account and a file put back whole as they were before are a 503 to whoever reads all",
    edit: async ({ world, web }) => {
      const content = Buffer.from("newer");
      await setAccount(world.desk, web.where, "mail", ["production"], { u: "newer" });
      await putFile(world.desk, web.where, { path: "a.txt", environments: ["production"], content });
      for (const [table, row] of [
        ["accounts", "name = 'mail'"],
        ["files", "path = 'a.txt'"],
      ]) {
        await world.run(`delete from ${table} where project_id = ? and ${row}`, [web.id]);
        await world.run(`insert into ${table} select * from kept_${table} where project_id = ? and ${row}`, [web.id]);
      }
    },
    verdicts: { ...closed(...allMail, `every ${files("web", "production")}`), ...others },
  },
  {
    what: "an account and a file that were deleted, and put back, are a 503 to whoever reads all",
    edit: async ({ world, web }) => {
      await deleteAccount(world.desk, web.where, "mail");
      await deleteFile(world.desk, web.where, "a.txt", ["production"]);
      await world.sql`insert into accounts select * from kept_accounts
        where project_id = ${web.id} and name = 'mail'`;
      await world.sql`insert into files select * from kept_files where project_id = ${web.id} and path = 'a.txt'`;
    },
    verdicts: { ...closed(...allMail, `every ${files("web", "production")}`), ...others },
  },
  {
    what: "older seals put back beside newer rows are a 503",
    edit: async ({ world, web }) => {
      const content = Buffer.from("newer");
      await setAccount(world.desk, web.where, "mail", ["production"], { u: "newer" });
      await putFile(world.desk, web.where, { path: "a.txt", environments: ["production"], content });
      await world.sql`delete from item_sets where project_id = ${web.id}`;
      await world.sql`insert into item_sets select * from kept_item_sets where project_id = ${web.id}`;
    },
    verdicts: { ...closed(...allMail, `every ${files("web", "production")}`), ...others },
  },
  ...(
    [
      ["is gone", "project_id = 'nowhere'"],
      ["is of another kind", "kind = kind || 's'"],
      ["is of another environment", "environment = environment || 's'"],
      [
        "is another project's",
        "sealed = (select k.sealed from kept_item_sets k where k.project_id <> item_sets.project_id and k.kind = item_sets.kind and k.environment = item_sets.environment order by k.project_id limit 1)",
      ],
      ["is empty", "sealed = substr(sealed, 1, 0)"],
    ] as const
  ).map(([what, change]) => ({
    what: `accounts and files whose seal ${what} are a 503, where there are none too`,
    edit: async ({ world, web }: Stage) => {
      if (world.dialect === "postgres") {
        await world.run("alter table item_sets drop constraint if exists item_sets_kind_rule");
      } else {
        await world.run("pragma ignore_check_constraints = on");
      }
      await world.run(`update item_sets set ${change} where project_id = ? and environment <> 'development'`, [web.id]);
    },
    verdicts: {
      ...closed(...allMail, `every ${accounts("web", "staging")}`, `every ${files("web", "production")}`),
      ...closed(`every ${files("web", "staging")}`),
      [`every ${accounts("web", "development")}`]: "200",
      [`every ${files("web", "development")}`]: "200",
      [`every ${files("web", "production")}&path=a.txt`]: "less",
      ...others,
    },
  })),
  {
    what: "a project moved to another organization opens for nobody",
    edit: async ({ world, api, betaId }) => {
      await world.sql`update projects set organization_id = ${betaId} where id = ${api.id}`;
    },
    verdicts: {
      ...closed(`stranger ${variables("api", "production")}`, "stranger /projects/api/accounts"),
      ...closed(`stranger ${files("api", "production")}`, "stranger /secrets?project=api&environment=staging"),
      [`every ${variables("api", "production")}`]: "project_not_found",
      [`every ${variables("web", "production")}`]: "200",
      [`stranger ${variables("web", "production")}`]: "200",
    },
  },
  {
    what: "two projects that exchanged their slugs open for nobody, and a key that lists one reaches neither",
    edit: async ({ world, web, api }) => {
      await world.sql`update projects set slug = 'aside' where id = ${web.id}`;
      await world.sql`update projects set slug = 'web' where id = ${api.id}`;
      await world.sql`update projects set slug = 'api' where id = ${web.id}`;
    },
    verdicts: {
      ...closed(`every ${variables("web", "production")}`, `every ${variables("api", "production")}`),
      ...closed("every /projects/web/accounts", `every ${files("web", "production")}`),
      [`listed ${variables("web", "production")}`]: "project_not_found",
      [`stranger ${variables("web", "production")}`]: "200",
    },
  },
  {
    what: "a project renamed opens for nobody",
    edit: async ({ world, web }) => {
      await world.sql`update projects set slug = 'renamed' where id = ${web.id}`;
    },
    verdicts: {
      ...closed(`every ${variables("renamed", "production")}`, "every /projects/renamed/accounts"),
      [`every ${variables("web", "production")}`]: "project_not_found",
      [`listed ${variables("web", "production")}`]: "project_not_found",
      ...others,
    },
  },
  {
    what: "two projects that exchanged their data keys open neither",
    edit: async ({ world, web, foreign }) => {
      await world.sql`update data_keys set project_id = 'aside' where project_id = ${web.id}`;
      await world.sql`update data_keys set project_id = ${web.id} where project_id = ${foreign.id}`;
      await world.sql`update data_keys set project_id = ${foreign.id} where project_id = 'aside'`;
    },
    verdicts: {
      ...closed(`every ${variables("web", "production")}`, `every ${accounts("web", "production")}`),
      ...closed(`stranger ${variables("web", "production")}`, `stranger ${files("web", "production")}`),
      [`every ${variables("api", "production")}`]: "200",
    },
  },
  {
    what: "a data key of another generation, of another root, or gone, opens nothing",
    edit: async (stage) => {
      const { world, web } = stage;
      for (const set of ["generation = 2", "root_id = '0000000000000000'", "root_id = ''"]) {
        await world.run(`update data_keys set ${set} where project_id = ?`, [web.id]);
        expect(await stage.ask(named(stage, `every ${variables("web", "production")}`))).toBe("decryption_failed");
        await stage.restore();
      }
      await world.sql`delete from data_keys where project_id = ${web.id}`;
    },
    verdicts: {
      ...closed(`every ${variables("web", "production")}`, `listed ${files("web", "production")}`),
      ...others,
    },
  },
  {
    what: "a value that was made to name a copy of its data key under another generation does not open",
    edit: async (stage) => {
      const { world, web } = stage;
      await world.sql`insert into data_keys (project_id, generation, root_id, wrapped, created_at)
        select project_id, 2, root_id, wrapped, created_at from data_keys where project_id = ${web.id}`;
      const slot = slotOf(stage, first);
      const bytes = Buffer.from(slot.bytes);
      bytes.writeUInt32BE(2, 2);
      await put(stage, slot, bytes);
    },
    verdicts: { ...closed(`every ${variables("web", "production")}`), ...others },
  },
];

async function setUp(world: World): Promise<Stage> {
  if (world.dialect === "sqlite") await world.run("PRAGMA synchronous = OFF"); // of this connection: it only edits
  const alpha = await world.organization();
  const beta = await world.organization();
  const content = (...place: readonly string[]) => ({
    variables: Object.fromEntries(
      environments.map((at) => [
        at,
        { FIRST: secretOf(...place, at, "FIRST"), SECOND: secretOf(...place, at, "SECOND") },
      ]),
    ),
    accounts: [
      {
        name: "registry",
        environments: ["development", "production"] as const,
        values: { token: secretOf(...place, "registry") },
      },
      { name: "mail", environments: ["production"] as const, values: { u: secretOf(...place, "mail") } },
    ],
    files: [
      { path: "a.txt", environments: ["production"], content: secretOf(...place, "a") },
      { path: "b/c.txt", environments: ["development", "staging"], content: secretOf(...place, "c") },
      { path: "d.json", environments: ["production"], content: secretOf(...place, "d") },
    ],
  });
  const web = await world.project(alpha, "web", content("alpha", "web"));
  const api = await world.project(alpha, "api", content("alpha", "api"));
  const foreign = await world.project(beta, "web", content("beta", "web"));
  const extra = [
    [web, "medium.bin", 8 * 1024],
    [api, "large.bin", 300 * 1024],
  ] as const;
  for (const [project, path, size] of extra) {
    await world.project(project === web ? alpha : alpha, `spare-${size}`); // neighbours that hold nothing
    await putExtra(world, project, path, size);
  }
  const wide = { surfaces: ["rest_api", "ci_action"], resources: ["projects", "variables", "accounts", "files"] };
  const every = await world.key(alpha, wide);
  const listed = await world.key(alpha, { ...wide, projects: ["web"], expiresInMs: 3_600_000 });
  const stranger = await world.key(beta, wide);
  const remembering = unlimited(world);
  const client = unlimited(world, (keyhole) => ({
    source: {
      ...keyhole.source,
      sets: new SealedSets(setQueries(world.keyhole.database), world.keyhole.source.keyring, 0),
    },
  }));
  const questions = [
    ...[every, listed].flatMap((key) => questionsOf(key, "web")),
    ...[every, stranger].flatMap((key) => questionsOf(key, "api")),
    ...questionsOf(stranger, "web"),
  ];
  // A writer of the database may drop its rules as well.
  if (world.dialect === "postgres") {
    const rules = await world.run(
      "select conrelid::regclass::text as owner, conname from pg_constraint where contype = 'f'",
    );
    for (const { owner, conname } of rules) await world.run(`alter table ${owner} drop constraint ${conname}`);
  }
  for (const table of tables) await world.run(`create table kept_${table} as select * from ${table}`);
  const put = async (table: string) => {
    await world.run(`delete from ${table}`);
    await world.run(`insert into ${table} select * from kept_${table}`);
  };
  const restore = async () => {
    for (const table of tables) await put(table);
  };
  const hush = () => put("project_environments");
  const truth = new Map<string, ReadonlySet<string>>();
  for (const { key, path } of questions) {
    const answer = await client.ask(path, { key });
    if (verdictOf(answer) === "200") truth.set(`${key.id} ${path}`, itemsOf(answer));
  }
  const ask = async ({ key, path }: Question, asked = client) => {
    const answer = await asked.ask(path, { key });
    const verdict = verdictOf(answer);
    if (verdict !== "200") return answer.text.includes(canary) ? `LEAKS ${answer.text}` : verdict;
    const known =
      truth.get(`${key.id} ${path}`) ?? truth.get(`${key.id} ${path.replace(/&(keys|prefix|path)=.*/, "")}`);
    const items = itemsOf(answer);
    for (const item of items) if (!known?.has(item)) return `LIES ${item}`;
    if (items.size === known?.size) return "200";
    return /&(keys|prefix|path)=/.test(path) ? "less" : `PARTIAL ${path}`;
  };
  const current = await world.run(`select 1 as one from kept_variable_sets s join kept_project_environments e
    on e.project_id = s.project_id and e.environment = s.environment and e.revision = s.revision`);
  expect(current.length).toBe(environments.length * (3 + extra.length)); // every project's, or hushing would hide nothing
  const clients = { client, remembering, ask, hush, restore };
  const base = { world, web, api, foreign, every, listed, stranger, questions, truth, ...clients };
  const stage = { ...base, alphaId: alpha.id, betaId: beta.id, slots: [] };
  return { ...stage, slots: await findSlots(stage) };
}

async function putExtra(world: World, project: Placed, path: string, size: number): Promise<void> {
  const content = Buffer.alloc(size, secretOf(project.where, path));
  await putFile(world.desk, project.where, { path, environments: ["staging"], content });
}

function questionsOf(key: Key, slug: string): Question[] {
  const paths = environments.flatMap((environment) => [
    variables(slug, environment),
    `${variables(slug, environment)}&format=env`,
    `${variables(slug, environment)}&keys=FIRST,SECOND`,
    `${variables(slug, environment)}&prefix=S`,
    accounts(slug, environment),
    files(slug, environment),
    `${files(slug, environment)}&path=a.txt&path=b/c.txt`,
    `/secrets?project=${slug}&environment=${environment}`,
  ]);
  return [...paths, `/projects/${slug}/accounts`].map((path) => ({ key, path }));
}

/** The items of an answer, each as text; when it was changed is nobody's secret, and not sealed. */
function itemsOf({ text }: Answer): ReadonlySet<string> {
  if (!text.startsWith("{")) return new Set(text.split("\n"));
  const body = JSON.parse(text) as Record<string, unknown>;
  const list = body["variables"] ?? body["accounts"] ?? body["files"] ?? Object.entries(body["secrets"] as object);
  return new Set((list as object[]).map((item) => JSON.stringify({ ...item, updatedAt: 0 })));
}

async function findSlots(stage: Stage): Promise<Slot[]> {
  const { world, web, api, foreign, every, stranger } = stage;
  const slots: Slot[] = [];
  for (const [name, project] of Object.entries({ web, api, foreign })) {
    const key = project === foreign ? stranger : every;
    const { id, slug } = project;
    const asks = (...paths: readonly string[]) => paths.map((path) => ({ key, path }));
    for (const row of await world.sql`select * from variables where project_id = ${id}`) {
      const at = row["environment"] as string;
      slots.push({
        label: `variable ${name} ${at} ${row["name"]}`,
        table: "variables",
        column: "sealed",
        where: "project_id = ? and environment = ? and name = ?",
        at: [id, at, row["name"]],
        bytes: row["sealed"] as Buffer,
        questions: asks(
          variables(slug, at),
          `${variables(slug, at)}&format=env`,
          `/secrets?project=${slug}&environment=${at}`,
        ),
      });
    }
    for (const row of await world.sql`select * from variable_sets where project_id = ${id}`) {
      const at = row["environment"] as string;
      slots.push({
        label: `set ${name} ${at}`,
        table: "variable_sets",
        column: "sealed",
        where: "project_id = ? and environment = ?",
        at: [id, at],
        bytes: row["sealed"] as Buffer,
        questions: asks(
          variables(slug, at),
          `${variables(slug, at)}&format=env`,
          `/secrets?project=${slug}&environment=${at}`,
        ),
      });
    }
    for (const row of await world.sql`select * from accounts where project_id = ${id}`) {
      slots.push({
        label: `account ${name} ${row["name"]}`,
        table: "accounts",
        column: "sealed",
        where: "project_id = ? and name = ?",
        at: [id, row["name"]],
        bytes: row["sealed"] as Buffer,
        questions: asks(`/projects/${slug}/accounts`, accounts(slug, "production")),
      });
    }
    for (const row of await world.sql`select * from files where project_id = ${id}`) {
      const at = (row["environments"] as number) & 2 ? "staging" : "production";
      slots.push({
        label: `file ${name} ${row["path"]}`,
        table: "files",
        column: "sealed",
        where: "project_id = ? and path = ?",
        at: [id, row["path"]],
        bytes: row["sealed"] as Buffer,
        questions: asks(files(slug, at), `${files(slug, at)}&path=${row["path"]}`),
      });
    }
    for (const row of await world.sql`select * from item_sets where project_id = ${id}`) {
      const at = row["environment"] as string;
      const every = row["kind"] === "accounts" ? [`/projects/${slug}/accounts`, accounts(slug, at)] : [files(slug, at)];
      slots.push({
        label: `seal of ${row["kind"]} ${name} ${at}`,
        table: "item_sets",
        column: "sealed",
        where: "project_id = ? and kind = ? and environment = ?",
        at: [id, row["kind"], at],
        bytes: row["sealed"] as Buffer,
        questions: asks(...every),
      });
    }
    for (const row of await world.sql`select * from data_keys where project_id = ${id}`) {
      slots.push({
        label: `data key ${name}`,
        table: "data_keys",
        column: "wrapped",
        where: "project_id = ?",
        at: [id],
        bytes: row["wrapped"] as Buffer,
        questions: asks(variables(slug, "production"), accounts(slug, "production"), files(slug, "production")),
      });
    }
  }
  return slots;
}

function slotOf(stage: Stage, label: string): Slot {
  const slot = stage.slots.find((slot) => slot.label === label);
  if (!slot) throw new Error(`there is no ${label}`);
  return slot;
}

/** A question by its name: `every`, `listed` or `stranger`, and a path. */
function named(stage: Stage, name: string): Question {
  const [who, path] = name.split(" ", 2) as ["every" | "listed" | "stranger", string];
  return { key: stage[who], path };
}

async function put({ world }: Stage, slot: Slot, bytes: Buffer): Promise<void> {
  await world.run(`update ${slot.table} set ${slot.column} = ? where ${slot.where}`, [bytes, ...slot.at]);
}

/** Asks one of the slot's questions, each in turn. */
function askAny(stage: Stage, slot: Slot, turn: number): Promise<string> {
  return stage.ask(slot.questions[turn % slot.questions.length] as Question);
}

/** @param before - done between each flip and its question */
async function refusesEachFlip(
  stage: Stage,
  slot: Slot,
  bits: readonly number[],
  before: () => Promise<void> = async () => {},
): Promise<void> {
  const neighbour = slotOf(stage, slot.label.startsWith("file api") ? "file foreign a.txt" : "file api a.txt");
  const opened: string[] = [];
  for (const [turn, bit] of bits.entries()) {
    await put(stage, slot, flipped(slot.bytes, bit));
    await before();
    const verdict = await askAny(stage, slot, turn);
    if (verdict !== "decryption_failed") opened.push(`bit ${bit} of ${slot.label}: ${verdict}`);
    if (turn % 64 === 0 && (await askAny(stage, neighbour, 0)) !== "200")
      opened.push(`${neighbour.label} with bit ${bit}`);
  }
  await put(stage, slot, slot.bytes);
  expect(opened).toEqual([]);
  // One that asks for this file alone is served less than all of them.
  for (const turn of range(slot.questions.length)) expect(["200", "less"]).toContain(await askAny(stage, slot, turn));
  await stage.restore();
}

async function expectUntouched(stage: Stage): Promise<void> {
  const verdicts = new Set<string>();
  for (const question of stage.questions) {
    const known = stage.truth.has(`${question.key.id} ${question.path}`);
    verdicts.add(`${known ? "there" : "absent"}: ${await stage.ask(question)}`);
  }
  expect([...verdicts].sort()).toEqual(["absent: project_not_found", "there: 200"]);
}

/** Takes two rows of one table and gives the first some columns of the second, or exchanges them. */
async function crossRows({ world }: Stage, dice: Dice): Promise<string> {
  const table = dice.pick(Object.keys(orderOf) as (keyof typeof orderOf)[]);
  const rows = await world.run(
    `select * from ${table} ${table === "files" ? "where size < 1000" : ""} order by ${orderOf[table]}`,
  );
  const [one, two] = [dice.pick(rows), dice.pick(rows)];
  const names = dice.some(Object.keys(one).filter((name) => !/_counts$|_at$/.test(name)));
  const pick = (row: Row) => Object.fromEntries(names.map((name) => [name, row[name]]));
  const exchange = dice.chance(0.5);
  const after = [{ ...one, ...pick(two) }, exchange ? { ...two, ...pick(one) } : two];
  for (const row of [one, two]) await remove(world, table, row);
  for (const row of dice.chance(0.2) ? after.slice(0, 1) : after) {
    // What a unique index does not take is lost: as good a mixture as any.
    await insert(world, table, row).catch(() => {});
  }
  return `${exchange ? "exchanged" : "copied"} ${names.join(", ")} in ${table}`;
}

const orderOf = {
  variables: "project_id, environment, name",
  variable_sets: "project_id, environment",
  project_environments: "project_id, environment",
  accounts: "project_id, name",
  files: "id",
  item_sets: "project_id, kind, environment",
  data_keys: "project_id, generation",
  projects: "id",
} as const;

async function remove(world: World, table: keyof typeof orderOf, row: Row): Promise<void> {
  const columns = orderOf[table].split(", ");
  const where = columns.map((name) => `${name} = ?`).join(" and ");
  await world.run(
    `delete from ${table} where ${where}`,
    columns.map((name) => row[name]),
  );
}

async function insert(world: World, table: string, row: Row): Promise<void> {
  const names = Object.keys(row);
  await world.run(
    `insert into ${table} (${names.join(", ")}) values (${names.map(() => "?").join(", ")})`,
    Object.values(row),
  );
}

/** Gives `to` the value that `from` had before, and `from` the one of `to`: through an aside, for unique indexes. */
async function swapColumn({ world }: Stage, table: string, name: string, from: string, to: string): Promise<void> {
  const [row] = await world.run(`select ${name} as value from ${table} where id = ?`, [from]);
  const [kept] = await world.run(`select ${name} as value from kept_${table} where id = ?`, [to]);
  await world.run(`update ${table} set ${name} = ? where id = ?`, [kept?.["value"], from]);
  await world.run(`update ${table} set ${name} = ? where id = ?`, [row?.["value"], to]);
}

/** Every way to make the listed key's row say something else. */
function forgeries({ betaId, web, api, foreign }: Stage) {
  const change = (what: string, set: string, ...values: readonly unknown[]) => ({ what, change: { set, values } });
  return [
    change("more surfaces", "surfaces = 7"),
    change("fewer surfaces", "surfaces = 1"),
    change("more resources", "resources = 31"),
    change("fewer resources", "resources = 2"),
    change("fewer environments", "environments = 4"),
    change("no list of projects", "projects = null"),
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
function madeUp({ world, listed }: Stage) {
  const made = (what: string, digest: (key: string) => Uint8Array) => {
    const key = mintKey();
    return { what, key, digest: Buffer.from(digest(key)) };
  };
  return [
    made("a plain SHA-256", (key) => new Bun.CryptoHasher("sha256").update(key).digest()),
    made("an empty pepper", (key) => digestKey(Buffer.alloc(32), key)),
    // Sealed with the right digest, but by nobody who has the grant key.
    made("the right digest", (key) => digestKey(world.installation.systemKeys.pepper, key)),
    made("the right digest and a copied row", (key) =>
      digestKey(world.installation.systemKeys.pepper, key === listed.key ? "" : key),
    ),
  ];
}

function flipped(bytes: Buffer, bit: number): Buffer {
  const changed = Buffer.from(bytes);
  changed[bit >> 3] = (changed[bit >> 3] as number) ^ (1 << (bit & 7));
  return changed;
}

function range(length: number): number[] {
  return Array.from({ length }, (_, index) => index);
}
