import { afterEach, beforeEach, expect, test } from "bun:test";
import { environments, everyEnvironment } from "../../src/core/names.ts";
import { acceptFlaws, verifyAudit } from "../../src/people/audit/audit-chain.ts";
import { revokeKey, rotateKey } from "../../src/people/keys/keys.ts";
import { setPlan } from "../../src/people/projects/organizations.ts";
import { rotateData } from "../../src/people/rotation/rotation.ts";
import type { Notary } from "../../src/record/notary/notary.ts";
import { StateWatch } from "../../src/record/notary/state-watch.ts";
import { sealException } from "../../src/record/record.ts";
import { encodeEntries } from "../../src/record/segment.ts";
import type { Database } from "../../src/store/database.ts";
import { listAudit } from "../support/audit.ts";
import { entry } from "../support/journal.ts";
import { notaryOf } from "../support/notarize.ts";
import { visitorOf } from "../support/pages.ts";
import { deleteOrganization, deleteProject, renameProject, setVariables } from "../support/plans.ts";
import { savedTables } from "../support/saved.ts";
import { describeBoth, everything, type LogEvent, type Row } from "../support/world.ts";

describeBoth("what the tables hold against the record", (w) => {
  let database: Database;
  let log: LogEvent[];
  let notary: Notary;

  const flaws = () => log.filter(({ event }) => event === "audit_flaw").map(({ flaw }) => flaw);
  const savedRow = async (table: string, where: string) => {
    const [row] = await w.run(`select * from ${table} where ${where}`);
    return async () => {
      await w.run(`delete from ${table} where ${where}`);
      const names = Object.keys(row as Row);
      const places = names.map(() => "?").join();
      await w.run(`insert into ${table} (${names.join()}) values (${places})`, Object.values(row as Row));
    };
  };
  const start = async () => {
    notary = await notaryOf(w, { database, log: (event) => log.push(event) });
    await notary.round();
  };
  const differing = async () =>
    (await verifyAudit(w.admin)).flaws.flatMap(({ what, name }) => (what === "state" ? name : []));
  const accept = async (...names: string[]) => acceptFlaws(w.admin, await verifyAudit(w.admin), names);

  beforeEach(async () => {
    log = [];
    database = w.installation.open("notary");
    await w.run("delete from audit_exceptions");
    await start();
    expect(flaws()).toEqual([]);
  });
  afterEach(async () => {
    expect(await differing()).toEqual([]);
    await database.close();
  });

  test("a key that was revoked and put back is 401 within a round, is named, and is accepted on record", async () => {
    const { key } = await w.place({ key: {} });
    const status = async () => (await w.ask("/organization", { key })).status;
    const putBack = await savedRow("api_keys", `id = '${key.id}'`);
    await revokeKey(w.admin, key.id);
    await notary.round();
    expect([await status(), notary.flaws]).toEqual([401, 0]);
    await putBack();
    expect(await status()).toBe(200);
    await notary.round();
    await notary.round();
    expect(await status()).toBe(401);
    const subject = `key:${key.id}`;
    const sentence = `${subject} was put back or changed by other means: it is live, and the record says revoked.`;
    expect(flaws()).toEqual([sentence]);
    expect(notary.flaws).toBe(1);
    expect((await verifyAudit(w.admin)).flaws).toMatchObject([{ what: "state", name: subject, sentence }]);
    const visitor = await visitorOf(w);
    for (const path of ["/", "/audit", "/audit?verify=yes"])
      expect((await visitor.page(path)).html).toContain(sentence);
    // A notary that starts later reads the whole record.
    log = [];
    await start();
    expect(flaws()).toEqual([sentence]);
    // To take the row away again hides nothing, and neither does to delete what was found.
    await w.run("delete from audit_exceptions");
    await notary.round();
    expect(await status()).toBe(401);
    expect((await accept(subject)).flaws).toEqual([]);
    const [entry] = (await listAudit(w.admin, { actions: ["audit.accept"] })).slice(-1);
    expect(entry).toMatchObject({ names: [subject, "live"] });
    await notary.round();
    expect([await status(), notary.flaws]).toEqual([200, 0]);
    await revokeKey(w.admin, key.id);
    await notary.round();
    expect([await status(), notary.flaws]).toEqual([401, 0]);
  });

  test("a key is 401 and named if the record of its revocation was broken, too; accepting it is on record", async () => {
    const { organization, key } = await w.place({ key: {} });
    const status = async () => (await w.ask("/organization", { key })).status;
    const putBack = await savedRow("api_keys", `id = '${key.id}'`);
    await revokeKey(w.admin, key.id);
    const seq = Number((await w.run("select seq from audit_heads"))[0]?.["seq"]);
    const where = `lane = 'commands' and first_seq = ${seq}`;
    for (let count = 0; count < 3; count++) await setPlan(w.admin, organization.slug, count % 2 ? "free" : "pro");
    await notary.round();
    await putBack();
    const back = await savedTables(w, ["audit_segments", "audit_heads", "audit_leaves", "audit_checkpoints_signed"]);
    const revoked = "the record says revoked.";
    const breaks: Readonly<Record<string, readonly [harm: string, says: string]>> = {
      "its mac": [
        `update audit_segments set mac = (select mac from audit_segments as other
          where lane = 'commands' and first_seq = ${seq - 1}) where ${where}`,
        revoked,
      ],
      "another in front": [
        `insert into audit_segments (lane, first_seq, last_seq, at, mac, texts, entries)
          select lane, first_seq, last_seq + 1, at - 1, mac, texts, entries from audit_segments where ${where}`,
        revoked,
      ],
      "its entries": [`update audit_segments set entries = '{}' where ${where}`, "nothing that can be proved."],
      "all of it": [`delete from audit_segments where ${where}`, "nothing that can be proved."],
    };
    for (const [what, [harm, says]] of Object.entries(breaks)) {
      await w.run(harm);
      await start();
      const named = flaws().filter((flaw) => String(flaw).startsWith(`key:${key.id} was put back`));
      const found = { what, named, status: await status() };
      expect(found).toEqual({ what, named: [expect.stringContaining(says)], status: 401 });
      if (what !== "all of it") await back();
      log = [];
      await w.run("delete from audit_exceptions");
    }
    await start();
    await accept(...(await differing()));
    expect(await differing()).toEqual([]);
    await notary.round();
    expect(await status()).toBe(200);
    await back();
    await w.run("delete from audit_exceptions");
    await revokeKey(w.admin, key.id);
  });

  test("while one difference stands, the record is not read again, and each further one is found", async () => {
    const { organization, key } = await w.place({ key: {} });
    const other = await w.key(organization, {});
    const live = await savedTables(w, ["api_keys"]);
    for (const one of [key, other]) await revokeKey(w.admin, one.id);
    const revoked = await savedTables(w, ["api_keys"]);
    const watch = new StateWatch(w.admin.systemKeys.audit);
    let segments = 0;
    const look = async () => {
      segments = 0;
      const found = await watch.compare(database, undefined, async () => {
        segments += 1;
      });
      return found.map(({ subject }) => subject).toSorted();
    };
    expect(await look()).toEqual([]);
    const putBack = async (id: string) => {
      await w.sql`update api_keys set revoked_at = null where id = ${id}`;
    };
    await putBack(key.id);
    expect(await look()).toEqual([`key:${key.id}`]);
    const whole = segments;
    expect(whole).toBeGreaterThan(2);
    expect([await look(), segments]).toEqual([[`key:${key.id}`], 0]);
    await setPlan(w.admin, organization.slug, "free");
    expect([await look(), segments]).toEqual([[`key:${key.id}`], 1]);
    await putBack(other.id);
    expect(await look()).toEqual([`key:${key.id}`, `key:${other.id}`].toSorted());
    expect(segments).toBe(whole + 1);
    await live();
    await revoked();
    expect(await look()).toEqual([]);
  });

  test("a slug that was put back by a project's rows of before a rename is named, in no list, and 503", async () => {
    const placed = await w.place({ variables: { staging: { A: "of-the-renamed" } }, key: { ...everything } });
    const { organization, project, key } = placed;
    const listed = await w.key(organization, { ...everything, projects: [project.slug] });
    const before: (() => Promise<void>)[] = [];
    const places = environments.flatMap((at) =>
      ["variables", "accounts", "files"].map((kind) => `kind = '${kind}' and environment = '${at}'`),
    );
    for (const place of places) before.push(await savedRow("sets", `project_id = '${project.id}' and ${place}`));
    const slug = `r-${project.slug}`.slice(0, 60);
    await renameProject(w.admin, project.where, { slug });
    await notary.round();
    expect(flaws()).toEqual([]);
    const path = `/projects/${project.slug}/variables?environment=staging`;
    expect((await w.ask(path, { key })).status).toBe(404);
    await w.sql`update projects set slug = ${project.slug} where id = ${project.id}`;
    for (const row of before) await row();
    expect((await w.ask(path, { key })).status).toBe(200);
    await notary.round();
    expect((await w.ask(path, { key })).status).toBe(503);
    expect((await w.ask(`/projects/${project.slug}`, { key })).status).toBe(503);
    for (const one of [key, listed]) expect((await w.ask("/projects", { key: one })).json).toEqual({ projects: [] });
    const subject = `project:${project.id}`;
    expect(flaws()).toEqual([expect.stringContaining(`${subject} was put back`)]);
    await accept(subject);
    await notary.round();
    expect([(await w.ask(path, { key })).status, notary.flaws]).toEqual([200, 0]);
  });

  test("a set that was put back is 503 within a round, by name, whole and in metadata; others are served", async () => {
    const values = { staging: { TOKEN: "the-first-of-it" }, production: { TOKEN: "of-production" } };
    const { project, key } = await w.place({ variables: values, key: { ...everything } });
    const path = `/projects/${project.slug}/variables?environment=`;
    const status = async (rest: string) => (await w.ask(path + rest, { key })).status;
    const where = `project_id = '${project.id}' and kind = 'variables' and environment = 'staging'`;
    const putBack = await savedRow("sets", where);
    await setVariables(w.admin, project.where, "staging", [{ name: "TOKEN", value: "the-second-of-it" }]);
    await notary.round();
    await putBack();
    expect(await status("staging")).toBe(200);
    await notary.round();
    for (const rest of ["staging", "staging&keys=TOKEN", "staging&metadata_only=true"])
      expect(await status(rest)).toBe(503);
    const { json } = await w.ask(`${path}staging`, { key });
    expect(json).toMatchObject({ code: "decryption_failed" });
    expect(await status("production")).toBe(200);
    const subject = `set:${project.id}/variables/staging`;
    expect(flaws()).toEqual([expect.stringContaining(`${subject} was put back`)]);
    // A write that begins from what was put back does not end it.
    await setVariables(w.admin, project.where, "staging", [{ name: "OTHER", value: "written-after-that" }]);
    await notary.round();
    expect([await status("staging"), notary.flaws]).toEqual([503, 1]);
    await accept(subject);
    await notary.round();
    expect([await status("staging"), notary.flaws]).toEqual([200, 0]);
  });

  test("a set that was put back with its records is named, although the next write has a number of before", async () => {
    const { project, key } = await w.place({ variables: { staging: { TOKEN: "the-first-of-it" } }, key: {} });
    const where = `project_id = '${project.id}' and kind = 'variables' and environment = 'staging'`;
    const write = (value: string) => setVariables(w.admin, project.where, "staging", [{ name: "TOKEN", value }]);
    const putBack = await savedRow("sets", where);
    for (const value of ["the-second-of-it", "the-third-of-it"]) await write(value);
    await notary.round();
    await putBack();
    await w.run(`delete from set_versions where ${where} and version > 2`);
    await write("written-after-that");
    await notary.round();
    const subject = `set:${project.id}/variables/staging`;
    const says = "was put back or changed by other means: it is version 3, and the record says version 4.";
    expect(flaws()).toEqual([`${subject} ${says}`]);
    expect((await w.ask(`/projects/${project.slug}/variables?environment=staging`, { key })).status).toBe(503);
    await accept(subject);
  });

  test("what is done by Keyhole is no difference: writes, rotations, new plans, deletions", async () => {
    const { organization, project, key } = await w.place({ variables: { staging: { A: "1" } }, key: {} });
    const second = await w.place({ variables: { staging: { A: "1" } }, key: {} });
    await rotateKey(w.admin, key.id, 60_000);
    for (const plan of ["free", "pro"] as const) await setPlan(w.admin, organization.slug, plan);
    await rotateData(w.admin, project.where);
    await setVariables(w.admin, project.where, "staging", [{ name: "A", value: "2" }]);
    await deleteProject(w.admin, second.project.where);
    const third = await w.place({ variables: { staging: { A: "1" } }, key: {} });
    await deleteOrganization(w.admin, third.organization.slug);
    await notary.round();
    await start();
    expect(flaws()).toEqual([]);
  });

  test("nor is what changes while it is compared", async () => {
    const { organization } = await w.place({});
    await setPlan(w.admin, organization.slug, "pro");
    const watch = new StateWatch(w.admin.systemKeys.audit);
    let changes = 0;
    const changing = new Proxy(database.db, {
      get: (db, name) => {
        if (name !== "select") return Reflect.get(db, name);
        return (columns?: Record<string, unknown>) => ({
          from: (table: never) => {
            const query = (columns === undefined ? db.select() : db.select(columns as never)).from(table);
            if (table !== database.tables.apiKeys) return query;
            const { execute } = query;
            // Between the tables, which were read, and the record.
            const change = async () => {
              const rows = await execute.call(query);
              changes += 1;
              await setPlan(w.admin, organization.slug, changes % 2 ? "free" : "pro");
              return rows;
            };
            return Object.assign(query, { execute: change });
          },
        });
      },
    });
    expect(await watch.compare({ ...database, db: changing })).toEqual([]);
    expect(changes).toBe(1);
  });

  test("nor is a database that was exchanged while it was compared", async () => {
    const { key } = await w.place({ key: {} });
    await notary.round();
    const back = await savedTables(w, ["api_keys", "audit_segments", "audit_heads"]);
    await revokeKey(w.admin, key.id);
    let isBack = false;
    const exchanged = new Proxy(database.db, {
      get: (db, name) => {
        if (name !== "select") return Reflect.get(db, name);
        return (...columns: []) => ({
          from: (table: never) => {
            const query = db.select(...columns).from(table);
            if (table !== database.tables.auditSegments) return query;
            const { execute } = query;
            // Behind the end of people's lane, which was read, and before its segments.
            const change = async () => {
              if (!isBack) await back();
              isBack = true;
              return execute.call(query);
            };
            return Object.assign(query, { execute: change });
          },
        });
      },
    });
    expect(await new StateWatch(w.admin.systemKeys.audit).compare({ ...database, db: exchanged })).toEqual([]);
    expect(isBack).toBe(true);
  });

  test("a set that was put back is not fetched after a wait", async () => {
    const { project, key } = await w.place({ variables: { staging: { A: "1" }, production: { A: "1" } }, key: {} });
    await setVariables(w.admin, project.where, "staging", [{ name: "A", value: "2" }]);
    const where = `project_id = '${project.id}' and kind = 'variables' and environment = 'staging'`;
    await w.run(`update sets set version = 1 where ${where}`);
    await notary.round();
    const at = { keyId: key.id, slug: project.slug, projectId: project.id };
    const ask = { kind: "variables", environments: everyEnvironment, values: 0, bytesMax: 1_000_000 };
    const rows = await w.keyhole.source.sets.fetch(at, ask);
    expect(rows.map(({ environment }) => environment).sort()).toEqual(["development", "production"]);
    await accept(`set:${project.id}/variables/staging`);
    expect(await w.keyhole.source.sets.fetch(at, ask)).toHaveLength(3);
  });

  test("an entry that nobody wrote is no record", async () => {
    const { organization, key } = await w.place({ key: {} });
    const [head] = await w.run("select seq, at from audit_heads");
    const { seq, at } = head as { seq: number; at: number };
    const made = encodeEntries([
      { ...entry, action: "key.revoke", organizationId: organization.id, names: [key.id], projectId: "", project: "" },
    ]);
    await w.sql`insert into audit_segments (lane, first_seq, last_seq, at, mac, texts, entries)
      values ('commands', ${seq + 1}, ${seq + 1}, ${at}, ${Buffer.alloc(32, 1)}, ${made.texts}, ${made.entries})`;
    await notary.round();
    expect((await w.ask("/organization", { key })).status).toBe(200);
    expect(flaws()).toEqual([
      `Lane commands: the chain breaks at entry ${seq + 1}.`,
      expect.stringContaining("its row in audit_heads does not fit its end"),
    ]);
    await w.sql`delete from audit_segments where lane = 'commands' and first_seq = ${seq + 1}`;
  });

  test("a plan, and what belonged to a project or an organization that was deleted, is named, too", async () => {
    const { organization, project, key } = await w.place({ variables: { staging: { A: "1" } }, key: {} });
    const other = await w.place({ key: {} });
    await setPlan(w.admin, organization.slug, "free");
    await w.sql`update organizations set plan = 'pro' where id = ${organization.id}`;
    const where = `project_id = '${project.id}' and kind = 'variables' and environment = 'staging'`;
    const putBack = [
      await savedRow("projects", `id = '${project.id}'`),
      await savedRow("data_keys", `project_id = '${project.id}'`),
      await savedRow("sets", where),
    ];
    await deleteProject(w.admin, project.where);
    for (const row of putBack) await row();
    await w.sql`delete from key_uses where key_id = ${other.key?.id}`;
    await w.sql`delete from api_keys where id = ${other.key?.id}`;
    await notary.round();
    const subjects = [`key:${other.key?.id}`, `plan:${organization.id}`, `set:${project.id}/variables/staging`];
    expect((await differing()).sort()).toEqual(subjects.sort());
    expect(flaws()).toHaveLength(3);
    expect((await w.ask("/organization", { key })).status).toBe(200);
    await accept(...subjects);
    await w.sql`delete from sets where project_id = ${project.id}`;
    await w.sql`delete from data_keys where project_id = ${project.id}`;
    await w.sql`delete from projects where id = ${project.id}`;
    await accept(...(await differing()));
    await notary.round();
    expect(notary.flaws).toBe(0);
  });

  test("what is over by the time that it is accepted, the roster too, leaves the record as it is", async () => {
    const { organization, key } = await w.place({ key: {} });
    const putBack = await savedRow("api_keys", `id = '${key.id}'`);
    await revokeKey(w.admin, key.id);
    await putBack();
    await notary.round();
    await revokeKey(w.admin, key.id);
    await setPlan(w.admin, organization.slug, "free");
    // As if two changes had been made while they were compared.
    for (const subject of ["roster", `plan:${organization.id}`]) {
      const one = { subject, recorded: "free", found: "pro", at: 1 };
      const seal = sealException(w.admin.systemKeys.audit, one);
      await w.sql`insert into audit_exceptions values (${subject}, ${one.recorded}, ${one.found}, 1, ${seal})`;
    }
    await notary.round();
    expect(notary.flaws).toBe(3);
    const subjects = await differing();
    expect(subjects.toSorted()).toEqual([`key:${key.id}`, `plan:${organization.id}`, "roster"]);
    await accept(...subjects);
    await notary.round();
    expect(notary.flaws).toBe(0);
    // A key that was revoked again before that does not come back a second time.
    await putBack();
    await notary.round();
    expect([(await w.ask("/organization", { key })).status, notary.flaws]).toEqual([401, 1]);
    await accept(`key:${key.id}`);
  });

  test("an exception that nobody signed is named, and what it names stays shut until it ends", async () => {
    const { key } = await w.place({ key: {} });
    const subject = `key:${key.id}`;
    await w.sql`insert into audit_exceptions values (${subject}, 'revoked', 'live', 1, ${Buffer.alloc(32)})`;
    expect((await w.ask("/organization", { key })).status).toBe(401);
    await notary.round();
    expect(flaws()).toEqual([expect.stringContaining("made up in audit_exceptions")]);
    await accept(subject);
    await notary.round();
    expect([(await w.ask("/organization", { key })).status, notary.flaws]).toEqual([200, 0]);
  });
});
