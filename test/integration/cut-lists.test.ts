/** A list that was cut says so: each with one entry more than it shows, and the oldest one is what somebody looks for. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { listAudit } from "../../src/people/audit/audit.ts";
import { listSome } from "../../src/people/audit/operations.ts";
import { countedMax } from "../../src/people/audit/reads.ts";
import type { Operation } from "../../src/people/desk/operation.ts";
import type { List } from "../../src/people/desk/outcome.ts";
import { leaks, reuses } from "../../src/people/leaks/operations.ts";
import type { AuditEntry } from "../../src/record/entry.ts";
import { newFolder } from "../support/folder.ts";
import { entry, writeLane } from "../support/journal.ts";
import { visitorOf } from "../support/pages.ts";
import { performed } from "../support/perform.ts";
import { personIn } from "../support/persons.ts";
import { describeBoth, everything, type World } from "../support/world.ts";

const dayMs = 86_400_000;
const textOf = (html: string) => html.replace(/<[^>]*>/g, "");
const sectionOf = (html: string, heading: string) => html.split(`<h2>${heading}</h2>`)[1]?.split("</section>")[0] ?? "";

/** Entries of one moment or another, in their order, as one batch each. */
async function write(w: World, entries: readonly Partial<AuditEntry>[]): Promise<void> {
  const batches = Map.groupBy(entries.entries(), ([n]) => Math.floor(n / 100));
  const first = Date.now() - 60_000;
  const all = [...batches.values()].map((batch) => batch.map(([, one]) => ({ ...entry, ...one })));
  await writeLane(w, all, (n) => first + n);
}

/** So many, after one of somebody else. */
const after = <T>(first: T, count: number, other: T): T[] => [first, ...Array.from({ length: count }, () => other)];

describeBoth("a list of the audit that was cut", (w) => {
  /** A variable that a thief read before so many reads by a job. */
  const readBefore = async (count: number) => {
    const { organization, project, where } = await w.place({ variables: { staging: { STOLEN: "canary-of-cuts" } } });
    const place = { organizationId: organization.id, organization: organization.slug, environment: "staging" } as const;
    const own = { ...place, projectId: project.id, project: project.slug, names: ["STOLEN"] };
    const by = (id: string) => ({ ...own, actor: { type: "key", id } as const });
    await write(w, after(by("the-thief"), count, by("the-job")));
    return where;
  };

  test("says that earlier entries match: the command, the readers of what leaked, and the page of an item", async () => {
    const where = await readBefore(countedMax);
    const { sentence } = await performed(listSome, w.admin, { project: where, actions: ["variables.read"] });
    expect(sentence).toBe("Earlier entries match, too: --until or --limit lists them.");
    const whole = await performed(listSome, w.admin, { project: where, actions: ["variables.write"] });
    expect(whole.sentence).toBe("");
    const path = join(newFolder(), "a.log");
    writeFileSync(path, "canary-of-cuts");
    const given = { paths: [path], sinceAt: Date.now() - dayMs };
    const { shows } = await performed(leaks.rows[0] as Operation, w.admin, given);
    const rows = [...(shows as List).rows].filter((row) => row.includes(where));
    expect(rows.map((row) => row.at(-1))).toEqual(["key the-job, and earlier ones"]);
    const { html } = await (await visitorOf(w)).page(`/p/${where}/variables/item?name=STOLEN`);
    expect(textOf(html)).toContain("and who read it before them");
    expect(textOf(html)).not.toContain("the-thief");
  });

  test("stops at its bound of statements, and says so", async () => {
    const { where, organization, project } = await w.place();
    const place = { organizationId: organization.id, projectId: project.id, project: project.slug };
    await writeLane(
      w,
      Array.from({ length: 17 }, () => [{ ...entry, ...place, environment: "staging" as const }]),
    );
    // Each segment is of the project, and none is of what she may read.
    let pages = 0;
    const requireSameRights = async () => {
      pages += 1; // before each page
    };
    const auditor = { ...(await personIn(w.admin, where, ["audit"], 4)), requireSameRights };
    const filter = { actions: ["variables.read"] };
    const [none, more] = (await listAudit(auditor, { ...filter, pagesMax: 1 }, () => {})).with("more");
    expect([none, more, pages]).toEqual([[], "more", 1]);
    expect((await listAudit(auditor, filter, () => {})).with("more")).toEqual([[], undefined]);
  });

  test("shows the use of each canary on Today, however often another was used", async () => {
    const organization = await w.organization();
    const bait = async (name: string) => (await w.key(organization, { ...everything, name, canary: true })).id;
    const [noisy, quiet] = [await bait("noisy"), await bait("quiet")];
    const use = (id: string) => ({
      ...{ organizationId: organization.id, organization: organization.slug, projectId: "", project: "" },
      ...{ actor: { type: "key", id } as const, action: "canary.key" as const, environment: null, names: [id] },
    });
    await write(w, after(use(quiet), 13, use(noisy)));
    const alarms = async () => sectionOf((await (await visitorOf(w)).page("/")).html, "Alarms of the last 7 days");
    const html = await alarms();
    expect(textOf(html)).toMatch(/13 times.*noisy.*quiet/s);
    expect(html).toMatch(new RegExp(`href="/audit\\?since=[^"]*action=canary.key[^"]*item=${noisy}"`));
    // So many at once that even their count ends: that is said, with where the others are.
    await write(w, after(use(quiet), 1001, use(noisy)));
    expect(textOf(await alarms())).toContain("There were more alarms before these");
    await w.run("delete from audit_segments where texts like ?", ['%"canary.key"%']);
  });

  test("keeps the last changes on Today when somebody compares the values of many projects", async () => {
    const organization = await w.organization();
    for (let n = 0; n < 3; n++)
      await w.project(organization, `p${n}`, { variables: { staging: { A: "a-value-of-cuts" } } });
    const changes = async () => textOf(sectionOf((await (await visitorOf(w)).page("/")).html, "Last changes"));
    const before = await changes();
    expect(before).toContain("Earlier ones, and all other entries of the audit");
    await performed(reuses.rows[0] as Operation, w.admin, {});
    const ago = /just now|\d+ (?:second|minute)s? ago/g;
    expect((await changes()).replaceAll(ago, "")).toBe(before.replaceAll(ago, ""));
  });

  test("shows what a person did, however much an account of their name did since, and how their rights changed", async () => {
    const { project, organization } = await w.place();
    const where = { organizationId: organization.id, organization: organization.slug, projectId: project.id };
    const did = (name: string, from: "ssh" | "os", item = "BY_HER"): Partial<AuditEntry> => ({
      ...{ ...where, project: project.slug, environment: "staging", action: "variables.write", names: [item] },
      actor: { type: "person", name, from },
      write: { added: [item], changed: [], deleted: [] },
    });
    await write(w, after(did("zoe", "ssh"), 101, did("zoe", "os", "BY_ACCOUNT")));
    const given: Partial<AuditEntry> = {
      ...{ organizationId: "", organization: "", projectId: "", project: "", environment: null },
      actor: { type: "person", name: "ann@host", from: "os" },
      action: "people.write",
      names: ["", "zoe"],
    };
    await write(w, after(given, 100, given));
    const page = async () => (await (await visitorOf(w)).page("/persons/zoe")).html;
    const html = await page();
    expect(textOf(sectionOf(html, "What they did"))).toContain("zoeadded the variable BY_HER");
    expect(textOf(sectionOf(html, "How their rights changed"))).toContain("Earlier ones, in the audit");
    await write(w, after(did("zoe", "ssh"), 12, did("zoe", "ssh")));
    expect(textOf(sectionOf(await page(), "What they did"))).toContain("Earlier ones, and all else that they did");
  });
});
