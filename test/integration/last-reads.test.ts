/**
 * What no machine asked for: `var list --unread` and its kin, the column of the grid and its chip. For whom they are
 * there, what they say where the record is young, and what no read is.
 */

import { expect, test } from "bun:test";
import { join } from "node:path";
import { environmentMask, environments } from "../../src/core/names.ts";
import { openInstallation } from "../../src/installation/installation.ts";
import { accountOperations } from "../../src/kinds/accounts/operations.ts";
import { fileOperations } from "../../src/kinds/files/operations.ts";
import { variableOperations } from "../../src/kinds/variables/operations.ts";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { acceptRestore } from "../../src/people/audit/accept-restore.ts";
import { verifyAudit } from "../../src/people/audit/audit-chain.ts";
import { backUp, restore } from "../../src/people/backup/backup.ts";
import { type AdminContext, adminContextOf, operator } from "../../src/people/desk/context.ts";
import type { Operation } from "../../src/people/desk/operation.ts";
import type { List, Outcome } from "../../src/people/desk/outcome.ts";
import { findProject } from "../../src/people/desk/projects.ts";
import { findKindReads } from "../../src/people/editing/last-reads.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import type { Right } from "../../src/serve/access/rights.ts";
import { listAudit } from "../support/audit.ts";
import { entry, writeLane } from "../support/journal.ts";
import { notarize } from "../support/notarize.ts";
import { personsVisitor, tableOf, visitorOf } from "../support/pages.ts";
import { performed } from "../support/perform.ts";
import { personIn } from "../support/persons.ts";
import { deleteProject, grantRights, renameProject } from "../support/plans.ts";
import { pruneAudit } from "../support/prune.ts";
import { describeBoth, openWorld, type World } from "../support/world.ts";

const dayMs = 86_400_000;
const rows = [...variableOperations.rows, ...accountOperations.rows, ...fileOperations.rows];

/** Runs `NOUN list --unread`. */
async function unread(w: World, path: string, given: object, admin = w.admin): Promise<Outcome> {
  return performed(rows.find((one) => one.path === path) as Operation, admin, given);
}

function namesIn({ document }: Outcome): unknown[] {
  const items = document as { key?: string; name?: string; path?: string }[];
  return items.map(({ key, path, name }) => key ?? path ?? name);
}

/** A project whose items were written, and whose record begins, 200 days ago. */
async function oldPlace(w: World) {
  w.clock.nowMs = Date.now() - 200 * dayMs;
  const placed = await w.place({
    variables: { production: { ASKED: "canary-1", NEVER: "canary-2" }, staging: { ASKED: "canary-3" } },
    accounts: [{ name: "stripe", environments: ["production"], values: { user: "canary-4" } }],
    files: [
      { path: "a.pem", content: "canary-5", environments: ["production"] },
      { path: "b.pem", content: "canary-6", environments: ["production"] },
    ],
    key: { resources: ["variables", "accounts", "files"], surfaces: ["rest_api", "ci_action"] },
  });
  await beginRecord(w);
  w.clock.nowMs = undefined;
  return placed;
}

/** As if the notary had looked 200 days ago for the first time. */
async function beginRecord(w: World): Promise<void> {
  await notarize(w);
  const sinceAt = Date.now() - 200 * dayMs;
  await w.run("update last_reads_known set since_at = ?, by_name_since_at = ?", [sinceAt, sinceAt]);
}

const web = "/projects/web/variables?environment=production";

describeBoth("what no machine asked for", (w) => {
  test("is what was not read by name; a read of the whole set is said apart", async () => {
    const { where, key } = await oldPlace(w);
    const given = { project: where, environment: "production", unreadMs: 90 * dayMs };
    expect(namesIn(await unread(w, "var list", given))).toEqual(["ASKED", "NEVER"]);
    const visitor = await visitorOf(w);
    const grid = async () => {
      const rows = tableOf((await visitor.page(`/p/${where}/variables`)).html, /^The variables of/) ?? [];
      return rows.map((row) => [row["Name"], row["Last read"]?.replace(/[\d-]{10}/, "DAY")]);
    };
    expect(await grid()).toEqual([
      ["ASKED", "never since DAY"],
      ["NEVER", "never since DAY"],
    ]);
    for (const path of [web, "/secrets?project=web&environment=production"]) {
      expect((await w.ask(path, { key })).status).toBe(200);
    }
    await notarize(w);
    expect(await grid()).toEqual([
      ["ASKED", "TIME with all"],
      ["NEVER", "TIME with all"],
    ]);
    w.clock.nowMs = Date.now() + 1000;
    expect((await w.ask(`${web}&keys=ASKED`, { key })).status).toBe(200);
    await notarize(w);
    w.clock.nowMs = undefined;
    // The grid has the newer of both.
    expect(await grid()).toEqual([
      ["ASKED", "TIME"],
      ["NEVER", "TIME with all"],
    ]);
    const found = await unread(w, "var list", given);
    expect(namesIn(found)).toEqual(["NEVER"]);
    expect(found.document).toMatchObject([{ readByNameAt: null, readWithAllAt: expect.any(Number) }]);
    const { headers, rows } = found.shows as List;
    expect(headers).toEqual(["NAME", "UPDATED", "READ BY NAME", "READ WITH ALL"]);
    expect([...rows][0]?.[2]).toMatch(/^not since \d{4}-\d\d-\d\d$/);
    expect(found.warnings).toEqual([]);
    // Nobody asked for it in staging.
    expect(namesIn(await unread(w, "var list", { ...given, environment: "staging" }))).toEqual(["ASKED"]);
    // A prefix names it too, and after a while nothing was asked for.
    await w.ask(`${web}&prefix=NEV`, { key });
    await notarize(w);
    expect(namesIn(await unread(w, "var list", given))).toEqual([]);
    w.clock.nowMs = Date.now() + 91 * dayMs;
    expect(namesIn(await unread(w, "var list", given))).toEqual(["ASKED", "NEVER"]);
    w.clock.nowMs = undefined;
  });

  test("is said of accounts, which are always read whole, and of files by their paths", async () => {
    const { where, key } = await oldPlace(w);
    const given = { project: where, unreadMs: 90 * dayMs };
    expect(namesIn(await unread(w, "account list", given))).toEqual(["stripe"]);
    expect(namesIn(await unread(w, "file list", given))).toEqual(["a.pem", "b.pem"]);
    await w.ask("/projects/web/accounts", { key });
    await w.ask("/files?project=web&environment=production&path=b.pem", { key });
    await notarize(w);
    expect(namesIn(await unread(w, "account list", given))).toEqual([]);
    expect(namesIn(await unread(w, "file list", given))).toEqual(["a.pem"]);
    expect((await unread(w, "file list", given)).document).toMatchObject([{ readWithAllAt: null }]);
    await w.ask("/files?project=web&environment=production", { key });
    await notarize(w);
    expect((await unread(w, "file list", given)).document).toMatchObject([{ readWithAllAt: expect.any(Number) }]);
  });

  test("counts no person, no names-only read, no 304, and nothing that is newer than the time", async () => {
    const { where, key } = await oldPlace(w);
    await revealVariable(w.admin, where, "production", "NEVER");
    const tag = (await w.ask(`${web}&keys=NEVER&metadata_only=true`, { key })).headers.get("etag") as string;
    const again = { key, headers: { "if-none-match": tag } };
    expect((await w.ask(`${web}&keys=NEVER&metadata_only=true`, again)).status).toBe(304);
    await notarize(w);
    const given = { project: where, environment: "production", unreadMs: 90 * dayMs };
    expect(namesIn(await unread(w, "var list", given))).toEqual(["ASKED", "NEVER"]);
    expect(namesIn(await unread(w, "var list", { ...given, unreadMs: 201 * dayMs }))).toEqual([]);
  });

  test("says that the notary is behind", async () => {
    const { where, key } = await oldPlace(w);
    const given = { project: where, environment: "production", unreadMs: 90 * dayMs };
    await w.ask(web, { key });
    expect((await unread(w, "var list", given)).warnings).toEqual([]);
    const hour = 3_600_000;
    await w.run("update audit_checkpoints_signed set at = ?", [Date.now() - 2 * hour]);
    await w.run(
      "update audit_segments set at = ? where last_seq = (select max(last_seq) from audit_segments where lane <> 'commands') and lane <> 'commands'",
      [Date.now() - hour],
    );
    expect((await unread(w, "var list", given)).warnings).toEqual([
      expect.stringMatching(/^The notary has read nothing since \d{4}.*: later reads are missing here\.$/),
    ]);
  });

  test("goes with its project, and stays through another name", async () => {
    const { id, where, key } = await oldPlace(w);
    await w.ask(`${web}&keys=ASKED`, { key });
    await notarize(w);
    const stored = () => w.run("select name from last_reads where project_id = ?", [id]);
    expect(await stored()).toHaveLength(1);
    await renameProject(w.admin, where, { slug: "shop" });
    const moved = where.replace("/web", "/shop");
    const known = await findKindReads(w.admin, await findProject(w.admin, moved, "see"), "variables", environments);
    expect(known?.of("ASKED", ["production"]).byNameAt).toBeGreaterThan(0);
    await w.ask("/projects/shop/variables?environment=production&keys=NEVER", { key });
    await deleteProject(w.admin, moved);
    expect(await stored()).toEqual([]);
    // A read that the notary takes in after that has no project any more.
    await notarize(w);
    expect(await stored()).toEqual([]);
  });

  test("is for those who may read the audit there, and for nobody else in any way", async () => {
    const { organization, where, key } = await oldPlace(w);
    await w.ask(`${web}&keys=ASKED`, { key });
    await notarize(w);
    const asked = (admin: AdminContext, environment: string) =>
      unread(w, "var list", { project: where, environment, unreadMs: dayMs }, admin);
    const sees = await personIn(w.admin, where, ["see", "reveal", "write"]);
    await expect(asked(sees, "production")).rejects.toMatchObject({ kind: "not_found" });
    const audits = await personIn(w.admin, where, ["see", "audit"], environmentMask("staging"));
    await expect(asked(audits, "production")).rejects.toMatchObject({ kind: "not_found" });
    expect(namesIn(await asked(audits, "staging"))).toEqual(["ASKED"]);
    // What was asked for in production is nothing to somebody who may know of staging only.
    const project = await findProject(audits, where, "see");
    const known = await findKindReads(audits, project, "variables", environments);
    expect(known?.of("ASKED", environments)).toEqual({ byNameAt: null, withAllAt: null });
    const page = async (rights: readonly Right[]) => {
      const signIn = { issuer: "https://id.example", subject: `${rights.join("-")} of ${where}` };
      const name = `person-${rights.length}`;
      await addPerson(w.admin, { name, organization: organization.slug, signIn });
      await grantRights(w.admin, name, { rights, projects: ["web"], environments });
      return (await personsVisitor(w, signIn).page(`/p/${where}/variables`)).html;
    };
    const plain = await page(["see"]);
    expect(plain).toContain("<bdi>ASKED</bdi>");
    expect(plain).not.toMatch(/Last read|Not read/);
    expect(await page(["see", "audit"])).toContain("Last read");
    const { html } = await (await visitorOf(w)).page(`/p/${where}/variables`);
    expect(html).toContain("Last read");
    expect(html).toContain("Not read by name for 90 days <b>1</b>");
    const part = (await (await visitorOf(w)).page(`/p/${where}/variables?only=unread`)).html;
    expect(part).toContain("<bdi>NEVER</bdi>");
    expect(part).not.toContain("<bdi>ASKED</bdi>");
  });
});

// A world of its own, whose commands are in order of time.
describeBoth("the record of last reads", (w) => {
  test("stays through a retention, which waits for what no notary has read", async () => {
    const { id } = await oldPlace(w);
    const begins = () => w.run("select by_name_since_at as at from last_reads_known");
    const [before] = await begins();
    expect(await pruneAudit(w.admin, 150 * dayMs)).toMatchObject({ lanes: 1 });
    expect(await begins()).toEqual([before] as never);
    // What no notary has read, and put into the tree, would be lost.
    const at = Date.now() - 100 * dayMs;
    await writeLane(w, [[{ ...entry, projectId: id }]], at);
    await expect(pruneAudit(w.admin, 31 * dayMs)).rejects.toMatchObject({ kind: "unavailable" });
    await notarize(w);
    expect(await pruneAudit(w.admin, 31 * dayMs)).toMatchObject({ entries: 1 });
    expect(await begins()).toEqual([before] as never);
    expect((await verifyAudit(w.admin)).flaws).toEqual([]);
    expect(await w.run("select 1 from last_reads where project_id = ? and at = ?", [id, at])).toHaveLength(1);
  });
});

/** Another world: its notary finds a flaw. */
describeBoth("the record of last reads of a damaged audit", (w) => {
  test("has the reads of an entry that is not in order, as the list of entries has them", async () => {
    const { where, key } = await oldPlace(w);
    const given = { project: where, environment: "production", unreadMs: 90 * dayMs };
    await w.ask(`${web}&keys=ASKED`, { key });
    await w.run("update audit_segments set mac = ? where lane <> 'commands'", [Buffer.alloc(32)]);
    await w.organization();
    expect(await notarize(w)).toBe(1);
    expect((await listAudit(w.admin, { project: where, actions: ["variables.read"] })).length).toBe(1);
    expect(namesIn(await unread(w, "var list", given))).toEqual(["NEVER"]);
  });
});

/** Another world: an accepted loss counts for all projects. */
describeBoth("the record of last reads of a database that was put back", (w) => {
  test("begins again when an operator accepts the loss, whatever the notary reads after that", async () => {
    const { where } = await oldPlace(w);
    const given = { project: where, environment: "production", unreadMs: 90 * dayMs };
    expect((await unread(w, "var list", given)).warnings).toEqual([]);
    await performed(acceptRestore, w.admin, {});
    const words = [expect.stringMatching(/^The record of these reads begins at \d{4}/)];
    expect((await unread(w, "var list", given)).warnings).toEqual(words);
    // As after a retention: all segments are read again, and those of before the loss, too.
    await w.run("update last_reads_known set size = -1");
    await notarize(w);
    expect((await unread(w, "var list", given)).warnings).toEqual(words);
    const row = (await unread(w, "account list", given)).document as { readsKnownSince: { withAll: number } }[];
    expect(row[0]?.readsKnownSince.withAll).toBeGreaterThan(Date.now() - dayMs);
  });
});

test("a restored backup begins the record of last reads again", async () => {
  const w = await openWorld("sqlite");
  const { where } = await oldPlace(w);
  const backup = join(w.config.dataFolder, "..", "backup.db");
  backUp(w.config, backup);
  const config = { ...w.config, dataFolder: join(w.config.dataFolder, "..", "restored") };
  await restore(config, backup, { actor: "ann@host", say: () => {} });
  const installation = await openInstallation(config, () => {});
  const admin = adminContextOf(installation, operator("ann@host"));
  const given = { project: where, environment: "production", unreadMs: 90 * dayMs };
  for (const _ of [1, 2]) {
    expect((await unread(w, "var list", given, admin)).warnings).toEqual([
      expect.stringMatching(/^The record of these reads begins at \d{4}/),
    ]);
    await notarize({ ...w, installation, admin } as World);
  }
  await admin.close();
  await w.close();
});
