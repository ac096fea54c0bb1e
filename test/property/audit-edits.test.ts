/** Random histories of an audit, and whatever SQL does to a row of them: it is named, and a host refuses what was put back. */

import { beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import fc from "fast-check";
import { verifyAudit } from "../../src/people/audit/audit-chain.ts";
import { NewestCheckpoint } from "../../src/record/notary/newest-checkpoint.ts";
import { findVerifiers } from "../../src/record/notary/signers.ts";
import { sealedMonths } from "../../src/record/store/tree.ts";
import { treeEnd } from "../../src/record/store/tree-end.ts";
import { newFolder } from "../support/folder.ts";
import { entry, writeLane } from "../support/journal.ts";
import { notaryOf } from "../support/notarize.ts";
import { pruneAudit } from "../support/prune.ts";
import { savedTables } from "../support/saved.ts";
import { describeBoth, type Row } from "../support/world.ts";

/** KEYHOLE_TEST_WORLDS=10000 for as many. */
const worlds = Number(process.env["KEYHOLE_TEST_WORLDS"] ?? 80);
const perHistory = 20;
const dayMs = 86_400_000;
setDefaultTimeout(60_000 + worlds * 500);
const seed = fc.readConfigureGlobal()?.seed ?? 1;

/** The columns by which something is believed: not the time of a signed head, nor that of a key. */
const columns: Readonly<Record<string, readonly string[]>> = {
  audit_segments: ["lane", "first_seq", "last_seq", "at", "mac", "texts", "entries"],
  audit_leaves: ["leaf", "lane", "last_seq", "hashes"],
  audit_heads: ["lane", "seq", "at", "mac", "roster", "seal"],
  audit_checkpoints_signed: ["size", "root", "note"],
  audit_signers: ["generation", "public_key", "root_id", "wrapped"],
  audit_checkpoints: ["lane", "seq", "mac", "seal"],
  audit_cosignatures: ["size", "witness", "line"],
};
const tables = Object.keys(columns);
const steps = fc.constantFrom("command", "lane", "old lane", "prune", "sign");
const history = fc.array(steps, { minLength: 4, maxLength: 12 });
const picks = fc.record({
  table: fc.constantFrom(...Object.keys(columns)),
  edit: fc.constantFrom("delete", "change", "move", "copy"),
  row: fc.nat(),
  other: fc.nat(),
  column: fc.nat(),
  second: fc.option(fc.record({ row: fc.nat(), column: fc.nat(2), other: fc.nat() })),
});
type Picks = typeof picks extends fc.Arbitrary<infer T> ? T : never;

describeBoth("an audit that somebody changes with SQL", (w, dialect) => {
  const folder = newFolder();
  const auditKey = () => w.admin.systemKeys.audit;
  const verifiers = async () => (await findVerifiers(w.admin.database, w.installation.keyring, auditKey())).signers;
  const hostWith = (file: string | undefined) =>
    new NewestCheckpoint({ auditKey: auditKey(), signers: verifiers, file });
  const round = async (file?: string, at = Date.now()) => {
    const notary = await notaryOf(w, { file, now: () => at });
    await notary.round();
    return notary.flaws;
  };
  const lane = async (count: number, daysAgo = 0) => {
    const batches = Array.from({ length: count }, (_, done) => [entry, { ...entry, requestId: `${done}` }]);
    await writeLane(w, batches, Date.now() - daysAgo * dayMs);
  };
  const live = async (steps: readonly string[]) => {
    for (const step of steps) {
      if (step === "command") await w.organization();
      else if (step === "lane") await lane(3);
      else if (step === "old lane") await lane(3, 500);
      else await round();
      if (step === "prune") await pruneAudit(w.admin, 400 * dayMs);
    }
  };
  const rowsOf = (table: string) => w.run(`select * from ${table} order by 1, 2`);
  const insert = (table: string, row: Row) => {
    const names = Object.keys(row);
    return w.run(`insert into ${table} (${names.join()}) values (${names.map(() => "?").join()})`, Object.values(row));
  };
  const where = (row: Row) => ({
    text: Object.keys(row)
      .map((name) => `${name} is not distinct from ?`)
      .join(" and "),
    values: Object.values(row),
  });
  /** A value of the same kind that is not this one. */
  const another = (value: unknown, of: unknown): unknown => {
    if (of !== undefined && !Bun.deepEquals(of, value)) return of;
    if (typeof value === "number") return value + 1;
    if (typeof value === "string") return `${value} `;
    if (value === null) return "other";
    const bytes = Buffer.from(value as Uint8Array);
    bytes[0] = (bytes[0] ?? 0) ^ 1;
    return bytes;
  };
  const keyOf = { audit_segments: "first_seq", audit_leaves: "leaf", audit_heads: "lane" } as Readonly<
    Record<string, string>
  >;

  /** @returns what was done; undefined if nothing was, or nothing that anybody believes */
  const harm = async ({ table, edit, row: at, other, column, second }: Picks): Promise<string | undefined> => {
    const rows = await rowsOf(table);
    const newest = table === "audit_checkpoints_signed" ? rows.slice(-1) : rows;
    const row = newest[at % newest.length];
    if (row === undefined) return undefined;
    const named = (columns[table] ?? [])[column % (columns[table]?.length ?? 1)] as string;
    const { text, values } = where(row);
    const leaf = [row["lane"] ?? "", row["last_seq"] ?? -1];
    const inTree = await w.run("select 1 from audit_leaves where lane = ? and last_seq = ?", leaf);
    // Of what retention dropped, only hashes and numbers of leaves are believed, and where a lane goes on.
    const ends = await w.run("select last_seq from audit_segments where lane = ?", [row["lane"] ?? ""]);
    const isNamed = table === "audit_leaves" && /^la/.test(named);
    if (isNamed && ends.every((end) => end["last_seq"] !== row["last_seq"])) return undefined;
    if (table === "audit_checkpoints" && ends.length === 0) return undefined;
    if (edit === "delete") {
      // The first key is made again of the root key; the newest entries are in no head yet.
      if (table === "audit_signers" || (table === "audit_segments" && inTree.length === 0)) return undefined;
      await w.run(`delete from ${table} where ${text}`, values);
    } else if (edit === "copy") {
      const key = keyOf[table];
      if (key === undefined) return undefined;
      await insert(table, { ...row, [key]: typeof row[key] === "number" ? Number(row[key]) + 1000 : "other" });
      if (table === "audit_heads") return undefined;
    } else {
      const from = edit === "move" ? rows[other % rows.length]?.[named] : undefined;
      await w.run(`update ${table} set ${named} = ? where ${text}`, [another(row[named], from), ...values]);
    }
    if (second !== null) {
      const leaves = await rowsOf("audit_leaves");
      const leaf = leaves[second.row % Math.max(leaves.length, 1)];
      const changed = (["lane", "last_seq", "hashes"] as const)[second.column] as string;
      const from = leaves[second.other % Math.max(leaves.length, 1)]?.[changed];
      if (leaf !== undefined) {
        const value = changed === "last_seq" ? -1 - Number(leaf["leaf"]) : another(leaf[changed], from);
        await w.run(`update audit_leaves set ${changed} = ? where leaf = ?`, [value, leaf["leaf"]]).catch(() => {});
      }
    }
    // The second edit may have undone the first.
    if (Bun.deepEquals(await rowsOf(table), rows)) return undefined;
    return `${edit} ${table} ${named} ${second?.column ?? "-"}`;
  };

  /** The segments of sealed months. */
  const sealedSegments = async () => {
    const { head } = await treeEnd(w.admin.database);
    const size = head === undefined ? 0 : (await sealedMonths(w.admin.database, head)).at(-1)?.size;
    return w.run(`select * from audit_segments s where ${size ?? 0} > (select min(leaf) from audit_leaves l
      where l.lane = s.lane and l.last_seq >= s.last_seq)`);
  };

  const clear = async () => {
    for (const table of tables) await w.run(`delete from ${table}`);
  };
  beforeEach(clear);

  const runs = Math.ceil(worlds / (dialect === "sqlite" ? 1 : 4) / perHistory);
  test(`names each of ${runs * perHistory} random edits, or two, in random histories`, async () => {
    for (const [at, steps] of fc.sample(history, { numRuns: runs, seed }).entries()) {
      // Of a small tree, the notary looks at all leaves in one round.
      await clear();
      w.clock.nowMs = Date.now() - 500 * dayMs;
      await live(["command"]);
      w.clock.nowMs = undefined;
      await live(["command", ...steps, "sign", "command"]);
      const back = await savedTables(w, tables);
      expect([await round(undefined, Date.now() + 3_600_000), (await verifyAudit(w.admin)).flaws]).toEqual([0, []]);
      await back();
      const sealed = await sealedSegments();
      for (const picked of fc.sample(picks, { numRuns: perHistory, seed: seed + at })) {
        const what = await harm(picked).catch(() => undefined); // the database refused it
        if (what !== undefined) {
          const { flaws } = await verifyAudit(w.admin);
          const segments = await rowsOf("audit_segments");
          const byMonth = await verifyAudit(w.admin, [], () => {}, "2000-01").then(
            (found) => found.flaws.length > 0,
            ({ message }: Error) => message.includes("is not sealed"),
          );
          const byNotary = await round(undefined, Date.now() + 3_600_000).catch(() => 1);
          const isOfMonth = sealed.some((one) => !segments.some((other) => Bun.deepEquals(one, other)));
          const named = [flaws.length > 0, byNotary > 0, !isOfMonth || byMonth];
          expect({ steps, picked, what, named }).toEqual({ steps, picked, what, named: [true, true, true] });
        }
        await back();
      }
    }
  });

  test("is refused by a host that has a file, whichever tables were put back together", async () => {
    const parts = ["audit_heads", "audit_leaves", "audit_checkpoints_signed", "audit_segments"] as const;
    for (const [at, steps] of fc.sample(history, { numRuns: Math.ceil(runs / 2), seed: seed + 1 }).entries()) {
      await live(["command", ...steps, "sign"]);
      const before = await Promise.all(parts.map((table) => savedTables(w, [table])));
      const file = join(folder, `${dialect}-${at}`);
      await w.organization();
      await round(file);
      const after = await savedTables(w, parts);
      for (let which = 1; which < 16; which++) {
        // A server's role on PostgreSQL cannot read the segments: the notary does.
        if (which === 8 && dialect === "postgres") continue;
        for (const [part, putBack] of before.entries()) if (which & (1 << part)) await putBack();
        if (which % 2 === 0) await w.run("update audit_leaves set last_seq = -1 - leaf where leaf > 0");
        const host = hostWith(file);
        await host.look(w.admin.database, false);
        expect({ steps, which, refused: host.refusal !== undefined }).toEqual({ steps, which, refused: true });
        await after();
      }
    }
  });
});
