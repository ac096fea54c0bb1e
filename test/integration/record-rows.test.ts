import { afterEach, beforeEach, expect, test } from "bun:test";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { NewestCheckpoint } from "../../src/record/notary/newest-checkpoint.ts";
import { findVerifiers } from "../../src/record/notary/signers.ts";
import type { Database } from "../../src/store/database.ts";
import { newFolder } from "../support/folder.ts";
import { notaryOf } from "../support/notarize.ts";
import { savedTables } from "../support/saved.ts";
import { describeBoth, type LogEvent, type Row } from "../support/world.ts";

/** The tables of the record, and the column of which a copy of a row has another value. */
const tables: Readonly<Record<string, string>> = {
  audit_signers: "generation",
  audit_leaves: "leaf",
  audit_checkpoints_signed: "size",
  audit_heads: "lane",
  audit_segments: "first_seq",
  audit_checkpoints: "lane",
  audit_exceptions: "subject",
  audit_cosignatures: "size",
  last_reads: "name",
  last_reads_known: "size",
};

describeBoth("a row of the record", (w) => {
  let database: Database;
  beforeEach(() => {
    database = w.installation.open("notary");
  });
  afterEach(() => database.close());

  const insert = (table: string, row: Row) => {
    const names = Object.keys(row);
    const places = names.map(() => "?").join();
    return w.run(`insert into ${table} (${names.join()}) values (${places})`, Object.values(row));
  };
  const other = (value: unknown) => {
    if (typeof value === "string") return `${value}x`;
    if (value instanceof Uint8Array) return Buffer.from(value).map((byte, at) => (at === 0 ? byte ^ 1 : byte));
    return Number(value) + 1000;
  };

  /** A row that is removed, doubled, and changed in each column, as far as the database has no rule against it. */
  const harmsOf = (table: string, id: string, row: Row): [what: string, harm: () => Promise<unknown>][] => {
    const where = `where ${id} = ?`;
    const copy = {
      ...row,
      [id]: other(row[id]),
      ...(table === "audit_leaves" && { last_seq: other(row["last_seq"]) }),
    };
    const isFixed = /^(?:id|kind|environment|project_id)$/;
    const columns = Object.keys(row).filter((name) => row[name] !== null && !isFixed.test(name));
    return [
      [`${table} ${row[id]}: removed`, () => w.run(`delete from ${table} ${where}`, [row[id]])],
      ...(table === "last_reads_known" ? [] : [[`${table} ${row[id]}: doubled`, () => insert(table, copy)] as never]),
      ...columns.map((name): [string, () => Promise<unknown>] => [
        `${table} ${row[id]}: another ${name}`,
        () => w.run(`update ${table} set ${name} = ? ${where}`, [other(row[name]), row[id]]),
      ]),
    ];
  };

  test("that is removed, doubled or changed keeps no key that was put back from being found within a round", async () => {
    const { organization, project, key } = await w.place({ variables: { staging: { A: "1" } }, key: {} });
    const already = await w.key(organization, {});
    const file = `${newFolder()}/checkpoint`;
    const live = await savedTables(w, ["api_keys"]);
    await revokeKey(w.admin, already.id);
    const putBack = await savedTables(w, ["api_keys"]);
    await revokeKey(w.admin, key.id);
    const auditKey = w.admin.systemKeys.audit;
    const found = () => findVerifiers(database, w.admin.keyring, auditKey);
    const notary = async (log: LogEvent[]) =>
      notaryOf(w, {
        database,
        checkpoint: new NewestCheckpoint({ auditKey, signers: async () => (await found()).signers, file }),
        damaged: async () => (await found()).flaws,
        log: (event) => log.push(event),
      });
    await (await notary([])).round();
    // So that each table has a row: `already` is put back and found.
    const revoked = await savedTables(w, ["api_keys"]);
    await live();
    await (await notary([])).round();
    await w.sql`delete from audit_exceptions where subject <> ${`key:${already.id}`}`;
    await revoked();
    await insert("audit_cosignatures", { size: 1, witness: "w", at: 1, line: "l" });
    await insert("audit_checkpoints", { lane: "commands", seq: 1, mac: Buffer.alloc(32), seal: Buffer.alloc(32) });
    await insert("last_reads", { project_id: project.id, kind: "variables", environment: "staging", name: "A", at: 1 });
    const back = await savedTables(w, Object.keys(tables));

    const missed: string[] = [];
    let harms = 0;
    for (const [table, id] of Object.entries(tables)) {
      const rows = await w.run(`select * from ${table} order by ${id}`);
      expect([table, rows.length > 0]).toEqual([table, true]);
      for (const row of new Set([rows[0] as Row, rows.at(-1) as Row])) {
        for (const [what, harm] of harmsOf(table, id, row)) {
          await harm();
          await putBack();
          const log: LogEvent[] = [];
          const failed = await (await notary(log)).round().then(() => "", String);
          const named = log.some(({ flaw }) => String(flaw).startsWith(`key:${key.id} was put back`));
          const { status } = await w.ask("/organization", { key });
          if (!named || status === 200 || failed)
            missed.push(`${what}: ${named ? "named" : "unnamed"} ${status} ${failed}`);
          harms += 1;
          await revoked();
          await back();
        }
      }
    }
    expect(missed).toEqual([]);
    expect(harms).toBeGreaterThan(60);
    await w.run("delete from audit_exceptions");
  });
});
