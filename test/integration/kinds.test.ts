/**
 * A kind is a folder, a line in `kinds/kind.ts` and a migration. Here is one that Keyhole does not have: its descriptor
 * stands for the folder, and what treats every kind treats it too.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { getTableColumns } from "drizzle-orm";
import * as pg from "drizzle-orm/pg-core";
import * as sqlite from "drizzle-orm/sqlite-core";
import type { Fault } from "../../src/core/fault.ts";
import { environmentMask } from "../../src/core/names.ts";
import { everyKind } from "../../src/kinds/kind.ts";
import { exportOrganization } from "../../src/people/backup/export.ts";
import { openEverything } from "../../src/people/backup/verify.ts";
import { findProject } from "../../src/people/desk/projects.ts";
import { openSet } from "../../src/people/editing/open.ts";
import { writeSets } from "../../src/people/editing/write.ts";
import { writingProject } from "../../src/people/editing/write-project.ts";
import { listHistory } from "../../src/people/history/history.ts";
import { namesInUse } from "../../src/people/keys/names-in-use.ts";
import { compareEnvironments } from "../../src/people/projects/comparison.ts";
import { rotateData } from "../../src/people/rotation/rotation.ts";
import { digestKey } from "../../src/serve/access/api-key.ts";
import { authenticate, requireOrganization } from "../../src/serve/access/authenticate.ts";
import { type OpenKeyhole, openKeyhole } from "../../src/serve/process/compose.ts";
import type { Entry, KindDescriptor } from "../../src/serve/sets/kind.ts";
import { readSets } from "../../src/serve/sets/lookup.ts";
import { migrations } from "../../src/store/migrate.ts";
import { postgresTables, sqliteTables } from "../../src/store/tables.ts";
import { requestOf } from "../support/answer.ts";
import { listAudit } from "../support/audit.ts";
import { deleteProject, planRollback, purgeHistory, renameProject, rollBack, showProject } from "../support/plans.ts";
import { describeBoth, everything, type Key, type World } from "../support/world.ts";

type NoteEntry = Entry & { readonly title: string };

const notes: KindDescriptor<NoteEntry> = {
  kind: "notes",
  command: "note",
  item: "note",
  counted: "Notes",
  isCountedInLists: true,
  resource: { name: "notes", bit: 32 },
  actions: ["notes.read", "notes.write", "notes.rollback"],
  isReadAlone: true,
  isReadByName: false,
  projectItemsMax: 2,
  hasValues: true,
  nameOf: ({ title }) => title,
  identityOf: ({ title }) => title,
  isValueOf: (value) => typeof value === "string",
  warningsOf: (where, environment, { total }) => [`${total} in ${where} ${environment}`],
};

/** A line in `tables.ts`. */
const columnsOfNotes = [
  [postgresTables, pg.pgTable("projects", { noteCounts: pg.text("note_counts").notNull() })],
  [sqliteTables, sqlite.sqliteTable("projects", { noteCounts: sqlite.text("note_counts").notNull() })],
] as const;

/** A migration. SQLite makes the table of sets again, since it cannot change a check. */
const addColumn = "alter table projects add column note_counts text not null default '[0,0,0,0,0,0,0]'";
const setsTable = migrations.sqlite.flatMap(({ sql }) => sql).find((text) => text.includes("CREATE TABLE `sets`"));
const migrationOfNotes = {
  postgres: [addColumn, "alter table sets drop constraint sets_kind_rule"],
  sqlite: [
    addColumn,
    String(setsTable).replace("`sets`", "`new_sets`").replace("'files'", "'files', 'notes'"),
    "insert into new_sets select * from sets",
    "drop table sets",
    "alter table new_sets rename to sets",
  ],
};
for (const dialect of ["postgres", "sqlite"] as const) {
  const migration = { sql: migrationOfNotes[dialect], bps: true, folderMillis: Date.UTC(2100, 0), hash: "notes" };
  (migrations[dialect] as (typeof migration)[]).push(migration);
}

/** Writes notes, and deletes those whose text is null. */
async function writeNotes(w: World, where: string, texts: Readonly<Record<string, string | null>>): Promise<void> {
  return writingProject(w.admin, await findProject(w.admin, where, "write"), notes, async (admin, project) => {
    const changes = Object.entries(texts).map(([title, text]) => {
      const entry = { title, updatedAt: project.now };
      return [title, text === null ? null : { entry, value: Buffer.from(JSON.stringify(text)) }] as const;
    });
    const before = await openSet(admin, { project, descriptor: notes, environment: "production" });
    return [undefined, await writeSets(admin, project, notes, new Map([[before, new Map(changes)]]))];
  });
}

/** Reads notes as a request with this key does, at a server that knows the kind. */
async function readNotes({ gate, source }: Pick<OpenKeyhole, "gate" | "source">, key: Key, slug: string) {
  const production = environmentMask("production");
  const digest = digestKey(gate.pepper, key.key);
  const row = await gate.lookUp({ digest, slug, kind: notes.kind, environments: production, values: production });
  const signal = () => new AbortController().signal;
  const caller = authenticate(row, digest, gate.seals, () => "");
  requireOrganization(caller);
  const reading = { source, caller, signal, stages: undefined };
  const query = { slug, descriptor: notes, environments: production, values: production };
  const { text, share } = await readSets(reading, query, (_, [set]) => ({ text: `[${set?.open().all}]` }));
  share.release();
  return text;
}

describeBoth("a kind that Keyhole does not have", (w) => {
  beforeAll(() => {
    (everyKind as KindDescriptor<Entry>[]).push(notes);
    for (const [{ projects }, { noteCounts }] of columnsOfNotes)
      Object.assign(getTableColumns(projects), { noteCounts });
  });
  afterAll(() => {
    (everyKind as KindDescriptor<Entry>[]).pop();
    for (const [{ projects }] of columnsOfNotes) Reflect.deleteProperty(getTableColumns(projects), "noteCounts");
  });

  test("is written, read, counted, listed, compared, rolled back, renamed, rotated and verified", async () => {
    const variables = { production: { TOKEN: "a-token-of-web" } };
    const { organization, where, key } = await w.place({ variables, key: everything });

    const keyhole = await openKeyhole(w.installation, () => {});
    await writeNotes(w, where, { door: "a note about the door", stove: "a note about the stove" });
    await expect(writeNotes(w, where, { more: "than there may be" })).rejects.toThrow("at most 2 notes");
    expect(await readNotes(keyhole, key, "web")).toBe(`["a note about the door","a note about the stove"]`);
    expect(await showProject(w.admin, where)).toMatchObject({ variableCount: 1, noteCount: 2 });
    const own = ({ limiter }: typeof keyhole.gate) => ({ ...keyhole.gate, limiter });
    const { handle } = w.client(({ gate }) => ({ source: keyhole.source, gate: own(gate) }));
    expect(await (await handle(requestOf("/projects/web", { key }))).json()).toMatchObject({ noteCount: 2 });
    const asked = { of: notes.kind, project: where, environment: undefined };
    expect(await namesInUse(w.config, asked)).toEqual([{ word: "door" }, { word: "stove" }]);

    const { items } = await compareEnvironments(w.admin, where, notes.kind, true);
    const production = { updatedAt: expect.any(Number), group: 1 };
    expect(items).toEqual(["door", "stove"].map((name) => ({ name, environments: { production } })));

    await writeNotes(w, where, { door: "another note", stove: null });
    const { versions } = await listHistory(w.admin, { where, environment: "production", kind: notes.kind });
    expect(versions.map(({ added, changed, deleted }) => ({ added, changed, deleted }))).toEqual([
      { added: [], changed: ["door"], deleted: ["stove"] },
      { added: ["door", "stove"], changed: [], deleted: [] },
      { added: [], changed: [], deleted: [] },
    ]);
    const plan = await planRollback(w.admin, { where, environment: "production", kind: notes.kind }, 2);
    const { warnings } = await rollBack(w.admin, { where, environment: "production", kind: notes.kind }, plan);
    expect(warnings).toEqual([`2 in ${where} production`]);
    expect(await readNotes(keyhole, key, "web")).toBe(`["a note about the door","a note about the stove"]`);

    // The bound holds for readers, too, in all environments together.
    const [counted] = await w.sql`select note_counts as counts from projects where slug = 'web'`;
    const boundOf = async (counts: unknown) => {
      await w.sql`update projects set note_counts = ${counts} where slug = 'web'`;
      return readNotes(keyhole, key, "web").catch(({ code }: Fault) => code);
    };
    expect(await boundOf("[1,1,0,1,0,0,0]")).toBe("too_many_items");
    expect(await boundOf("as SQL left it")).toBe("decryption_failed");
    expect(await boundOf(counted?.["counts"])).toBe(`["a note about the door","a note about the stove"]`);

    await renameProject(w.admin, where, { slug: "shop" });
    const shop = `${organization.slug}/shop`;
    const rotation = await rotateData(w.admin, shop);
    expect(rotation).toMatchObject({ projects: 1, deletedKeys: 1, broken: [] });
    expect(await readNotes(keyhole, key, "shop")).toBe(`["a note about the door","a note about the stove"]`);
    await keyhole.close();
    const [data] = await w.sql`select count(*) as keys from data_keys`;
    expect(Number(data?.["keys"])).toBe(1);

    expect((await openEverything(w.admin)).items).toMatchObject({ variables: 1, notes: 2 });
    const left = await Array.fromAsync(exportOrganization(w.admin, organization.slug, { formats: [], warn: () => {} }));
    const notesLeft = left.find(({ path }) => path === "shop/production/notes.json");
    const both = { door: "a note about the door", stove: "a note about the stove" };
    expect(JSON.parse(String(notesLeft?.content))).toEqual(both);
    const purged = await purgeHistory(w.admin, { where: shop, environment: "production", kind: notes.kind });
    expect(purged).toMatchObject({ removed: 3 });
    const actions = (await listAudit(w.admin, { actions: notes.actions, limit: 10 })).map(({ action }) => action);
    expect(actions.sort()).toEqual(["notes.rollback", "notes.write", "notes.write"]);
    expect(await deleteProject(w.admin, shop)).toMatchObject({ variables: 1, notes: 2 });
  });
});
