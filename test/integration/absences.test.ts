/** "Nothing" is only said of what was looked at, may be seen and is still on record. */

import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { accountOperations } from "../../src/kinds/accounts/operations.ts";
import { AuditTail } from "../../src/people/audit/audit.ts";
import { listSome } from "../../src/people/audit/operations.ts";
import type { Operation } from "../../src/people/desk/operation.ts";
import type { List, Outcome } from "../../src/people/desk/outcome.ts";
import { expiring } from "../../src/people/keys/access-operations.ts";
import { keys } from "../../src/people/keys/operations.ts";
import { leaks } from "../../src/people/leaks/operations.ts";
import { finds } from "../../src/people/projects/find-operations.ts";
import { projects } from "../../src/people/projects/operations.ts";
import { requests } from "../../src/people/requests/operations.ts";
import { newFolder } from "../support/folder.ts";
import { runHere } from "../support/here.ts";
import { entry, writeLane } from "../support/journal.ts";
import { notarize } from "../support/notarize.ts";
import { visitorOf } from "../support/pages.ts";
import { performed } from "../support/perform.ts";
import { personIn } from "../support/persons.ts";
import { pruneAudit } from "../support/prune.ts";
import { describeBoth, type World } from "../support/world.ts";

const dayMs = 86_400_000;
const value = "canary-of-absences";

function noneOf({ shows }: Outcome): string {
  return (shows as List).none;
}

/** A project with a variable that a key has read. The entry of this read is damaged, as far as JSON goes. */
async function damagedRead(w: World) {
  const { key, where } = await w.place({ variables: { staging: { HIDDEN_TOKEN: value } }, key: {} });
  const slug = where.split("/")[1];
  const { status } = await w.client().ask(`/projects/${slug}/variables?environment=staging`, { key });
  expect(status).toBe(200);
  const damaged = `{"names":[["HIDDEN_TOKEN"]],"entries":[]}`;
  const rows =
    await w.sql`select lane, first_seq from audit_segments where texts like ${`%"${key.id}"%"variables.read"%`}`;
  expect(rows).toHaveLength(1);
  const { lane, first_seq: seq } = rows[0] as { lane: string; first_seq: number };
  await w.sql`update audit_segments set entries = ${damaged} where lane = ${lane} and first_seq = ${seq}`;
  return { key, where, segment: `${lane}:${seq}` };
}

/** Says who read what stands in a file, of what was read in this time. */
async function leaked(admin: World["admin"], sinceAt: number): Promise<Outcome> {
  const path = join(newFolder(), "a.log");
  writeFileSync(path, value);
  return performed(leaks.rows[0] as Operation, admin, { paths: [path], sinceAt });
}

describeBoth("an empty answer", (w) => {
  test("of the audit is not given for entries that are damaged", async () => {
    const { key, where, segment } = await damagedRead(w);
    for (const filter of [
      { keyId: key.id, actions: ["variables.read"] },
      { project: where, wholeName: "HIDDEN_TOKEN", actions: ["variables.read"] },
      { name: "hidden_tok", actor: key.id },
    ]) {
      const { ends } = await performed(listSome, w.admin, filter);
      expect(ends).toMatchObject({ exitCode: 6, code: "unread", message: expect.stringContaining(segment) });
    }
    // Who may see only some entries is told that these are all that were looked at.
    const auditor = await personIn(w.admin, where, ["audit"]);
    const found = await performed(listSome, auditor, { project: where, actions: ["variables.read"] });
    expect([noneOf(found), found.ends]).toEqual(["No entries that you may read match.", undefined]);
    const damaged: string[] = [];
    const note = ({ lane, firstSeq }: { readonly lane: string; readonly firstSeq: number }) =>
      damaged.push(`${lane}:${firstSeq}`);
    await new AuditTail(w.admin, { keyId: key.id }, note).newest(10);
    expect(new Set(damaged)).toEqual(new Set([segment]));
  });

  test("names nobody as a reader while an entry of a read is damaged, or of entries that were deleted", async () => {
    const { where } = await damagedRead(w);
    const readBy = async () => {
      const { document, shows, warnings } = await leaked(w.admin, Date.now() - 900 * dayMs);
      const { found } = document as { found: { project: string; readBy: unknown; readByIsWhole: unknown }[] };
      const at = found.findIndex(({ project }) => project === where);
      const { readBy, readByIsWhole } = found[at] ?? {};
      return { readBy, readByIsWhole, cell: [...(shows as List).rows][at]?.at(-1), warnings };
    };
    expect(await readBy()).toEqual({ readBy: [], readByIsWhole: false, cell: "? (damaged entries)", warnings: [] });
  });

  test("of a search, a list, a page and an export names what is damaged", async () => {
    const { key, where, segment } = await damagedRead(w);
    const visitor = await visitorOf(w);
    const unread = "damaged and not searched";
    const pages = [
      `/audit?${new URLSearchParams({ project: where, action: "variables.read" })}`,
      `/p/${where}/variables/item?name=HIDDEN_TOKEN`,
    ];
    for (const path of pages)
      expect([path, (await visitor.page(path)).html]).toEqual([path, expect.stringContaining(unread)]);
    expect((await visitor.page(pages[0] ?? "")).html).toContain(segment);
    expect((await visitor.page(`/keys/${key.id}/read`)).html).toContain(unread);
    const answer = visitor.page(`/audit/export?${new URLSearchParams({ project: where, action: "variables.read" })}`);
    await expect(answer).rejects.toThrow(unread);
    // And of names, what was not searched.
    const named = `%"HIDDEN_TOKEN"%`;
    await w.sql`update sets set version = version + 1 where listing like ${named}`;
    const found = await performed(finds.rows[0] as Operation, w.admin, { part: "hidden_token" });
    expect([found.ends?.exitCode, found.warnings?.join()]).toEqual([6, expect.stringContaining(where)]);
    const { html } = await visitor.page("/find/offers?q=hidden_token");
    expect(JSON.parse(html).said).toMatch(/ \d+ sets? could not be searched\.$/);
    await w.sql`update sets set version = version - 1 where listing like ${named}`;
  });

  test("of entries says when the audit begins, if older ones were deleted", async () => {
    const old = Date.now() - 500 * dayMs;
    await writeLane(w, [[entry]], old);
    const filter = { beforeAt: old - dayMs };
    expect(noneOf(await performed(listSome, w.admin, filter))).toBe("No entries match.");
    expect(await pruneAudit(w.admin, 400 * dayMs, true)).toMatchObject({ entries: 1 });
    expect(noneOf(await performed(listSome, w.admin, filter))).toMatch(
      /^No entries match\. The audit begins at \S+: older entries were deleted\.$/,
    );
    const later = { sinceAt: Date.now() + dayMs };
    expect(noneOf(await performed(listSome, w.admin, later))).toBe("No entries match.");
    const { where } = await w.place({ variables: { staging: { TOKEN: value } } });
    const { document, warnings } = await leaked(w.admin, old);
    expect(warnings).toEqual([expect.stringMatching(/^The audit begins at/)]);
    const { found } = document as { found: { project: string; readByIsWhole: unknown }[] };
    expect(found.find(({ project }) => project === where)).toMatchObject({ readByIsWhole: false });
  });

  test("of a list says so, if there are things that somebody may not see", async () => {
    const { where, organization, key } = await w.place({ key: {} });
    const other = await w.project(organization, "other");
    await w.request(organization.id, key.id, other, { name: "ASKED", environment: "staging", reason: "a test" });
    const admin = await personIn(w.admin, where, ["see"], 1);
    const none = async ({ rows }: { readonly rows: readonly Operation[] }, path: string, given: object = {}) =>
      noneOf(await performed(rows.find((one) => one.path === path) as Operation, admin, given));
    expect(await none(keys, "key list")).toBe("There are no keys that you may see.");
    expect(await none(requests, "request list")).toBe("There are no requests that you may see.");
    expect(await none(requests, "request list", { pending: true })).toBe(
      "No request that you may see waits for a decision.",
    );
    expect(await none(expiring, "expiring")).toBe(
      "Nothing that you may see expires or is to be rotated within 30 days.",
    );
    const { rows } = projects;
    const list = rows.find((one) => one.path === "project list") as Operation;
    expect(noneOf(await performed(list, { ...admin, rights: [] }, {}))).toBe("There are no projects that you may see.");
    const empty = await w.organization();
    expect(noneOf(await performed(list, w.admin, { organization: empty.slug }))).toStartWith(
      `There are no projects of ${empty.slug} yet`,
    );
  });

  test("of what is unread names the environments whose reads somebody may not know", async () => {
    const { where } = await w.place({
      accounts: [{ name: "ci", environments: ["staging", "production"], values: { a: "b" } }],
    });
    await notarize(w);
    const seer = await personIn(w.admin, where, ["see"], 7);
    const admin = {
      ...seer,
      rights: [...(seer.rights as []), ...((await personIn(w.admin, where, ["audit"], 2)).rights as [])],
    };
    const list = accountOperations.rows.find((one) => one.path === "account list") as Operation;
    const { warnings } = await performed(list, admin, { project: where, unreadMs: 90 * dayMs });
    expect(warnings).toContain("Not judged: production. Its reads take the right `audit`.");
  });
});

test("an export that passed over a damaged entry ends with 6, and has the others", async () => {
  const folder = newFolder();
  const env = { PATH: process.env["PATH"] ?? "", KEYHOLE_DATA: join(folder, "data"), USER: "ann" };
  const keyhole = (words: string) => runHere(words.split(" "), { cwd: folder, env });
  for (const words of [
    "org create acme",
    "project create web",
    "var set web staging A --value b",
    "project create api",
  ])
    expect(await keyhole(words)).toMatchObject({ exitCode: 0 });
  using database = new Database(join(folder, "data", "keyhole.db"));
  database.run("update audit_segments set entries = '{}' where first_seq = 2");
  const words = "1 part of the audit is damaged and not searched: commands:2. `audit verify` says what was changed.";
  const exported = await keyhole("audit export --action project.create,variables.write --format csv");
  expect(exported).toMatchObject({ exitCode: 6, stderr: `keyhole: ${words}\n` });
  expect(exported.stdout.split("\n").filter((line) => line.includes(",acme,"))).toHaveLength(2);
  const none = await keyhole("audit list --action project.create --until 1h --json");
  expect(none).toMatchObject({ exitCode: 0, stdout: "[]\n" });
  expect(await keyhole("audit export --action project.create --until 1h")).toMatchObject({
    exitCode: 0,
    stderr: "No entries match.\n",
  });
});
