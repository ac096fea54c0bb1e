/** Each list with one entry more than it shows at once: the oldest is found, or the list says that there are more. */
import { beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { rowOf } from "../../src/cli/terminal/draw.ts";
import { rowsMax } from "../../src/dashboard/parts/paged.tsx";
import { routes } from "../../src/dashboard/routes.ts";
import { buildProgram } from "../../src/main.ts";
import { lockCommands } from "../../src/people/desk/changes.ts";
import { writing } from "../../src/people/desk/context.ts";
import type { Operation } from "../../src/people/desk/operation.ts";
import type { List } from "../../src/people/desk/outcome.ts";
import { Permit } from "../../src/people/desk/permit.ts";
import { writeRoster } from "../../src/people/desk/roster.ts";
import { createTrust } from "../../src/people/keys/trusts.ts";
import { findNames } from "../../src/people/projects/find-operations.ts";
import { digestKey } from "../../src/serve/access/api-key.ts";
import { sealGrant } from "../../src/serve/access/grant.ts";
import { encodePersons } from "../../src/serve/access/roster.ts";
import { newFolder } from "../support/folder.ts";
import { entry, writeLane } from "../support/journal.ts";
import { visitorOf } from "../support/pages.ts";
import { performed } from "../support/perform.ts";
import { insertProjects, numbered } from "../support/rows.ts";
import { describeBoth, type Placed } from "../support/world.ts";

const count = rowsMax + 1;
/** What the things of each list are called; the first is the oldest, and the first by name. */
const names = numbered("many", count);
const [oldest = ""] = names;
const dayMs = 86_400_000;

/** Tables that have all rows of one project, which are bounded: browsers filter them as somebody types. */
const whole = ["/p/:org/:project/:kind"];
/** Pages that are files or lists for the script. */
const noPages = ["/audit/export", "/audit/proof/:entry", "/find/offers"];

describeBoth("a long list", (w) => {
  /** `bare` has projects in which nothing can be read. */
  let [org, bare, where, keyId] = ["", "", "", ""];
  let project: Placed;

  beforeAll(async () => {
    const organization = await w.organization();
    const values = Object.fromEntries(names.map((name) => [name, "a-value-of-many"]));
    project = await w.project(organization, oldest, { variables: { staging: values } });
    [org, where] = [organization.slug, project.where];
    const other = await w.organization();
    await insertProjects(w, other, names);
    bare = other.slug;
    const { apiKeys, variableRequests } = w.admin.database.tables;
    const { db } = w.admin.database;
    const reach = { organization: org, projects: null, environments: null, expiresInMs: dayMs };
    const claims = new Map([["sub", "s"]]);
    const { trust } = await createTrust(w.admin, { ...reach, issuer: "https://id.example", audience: "a", claims });
    const [terms] = await w.sql`select trust from api_keys where id = ${trust.id}`;
    await w.sql`delete from api_keys`;
    const credentials = [null, String(terms?.["trust"])].flatMap((trust) =>
      names.map((name, createdAt) => {
        const keyId = Bun.randomUUIDv7();
        const bits = { surfaces: 1, resources: 7, environments: 7 };
        const grant = {
          keyId,
          organizationId: organization.id,
          ...bits,
          projects: null,
          trust,
          rate: null,
          from: null,
        };
        const digest = digestKey(w.admin.systemKeys.pepper, keyId);
        const row = { ...grant, id: keyId, name, digest, revokedAt: null, createdAt, expiresAt: Date.now() + dayMs };
        return { ...row, grantSeal: sealGrant(w.admin.systemKeys.grant, digest, row) };
      }),
    );
    for (let at = 0; at < credentials.length; at += 100)
      await db.insert(apiKeys).values(credentials.slice(at, at + 100));
    keyId = credentials[0]?.id ?? "";
    const at = { organizationId: organization.id, projectId: project.id, environment: "staging" as const };
    const pending = { status: "pending" as const, keyId, reason: "r", expiresAt: Date.now() + dayMs };
    const asked = names.map((name, n) => {
      return { ...at, ...pending, id: Bun.randomUUIDv7(), name, number: n + 1, createdAt: n };
    });
    await db.insert(variableRequests).values(asked);
    const holdings = [organization, other].map(({ id }) => {
      return { organizationId: id, projectId: null, environments: 7, rights: ["see"] as const };
    });
    const persons = names.map((name) => ({ name, organizationId: organization.id, signIn: null, holdings }));
    await writing(w.admin, Permit.operator(w.admin), async (admin) => {
      await lockCommands(admin);
      return [undefined, [await writeRoster(admin, encodePersons(persons), oldest)]];
    });
    const { id: projectId, slug } = project;
    const read = { ...entry, ...at, organization: org, projectId, project: slug };
    // As many in one moment.
    await writeLane(w, [names.map((name) => ({ ...read, names: [name], actor: { type: "key", id: keyId } }))]);
  });

  test("has pages of 200 rows, of which the last has the oldest, wherever the dashboard has one", async () => {
    const visitor = await visitorOf(w);
    const long: string[] = [];
    for (const { path, method } of routes) {
      if (method !== "GET" || noPages.includes(path)) continue;
      const filled = path
        .replace(":org", org)
        .replace(":project", oldest)
        .replace(":kind", "variables")
        .replace(":id", keyId)
        .replace(":name", oldest)
        .replace(":entry", "commands:1");
      const asked = new URLSearchParams({
        q: "many",
        org: bare,
        name: oldest,
        environment: "staging",
        from: "staging",
        to: "1",
      });
      if (path === "/audit") asked.delete("name");
      const rows: string[] = [];
      let [pages, isSaid] = [0, false];
      for (let next: string | undefined = `${filled}?${asked}`; next !== undefined; pages += 1) {
        const { html, status }: { html: string; status: number } = await visitor.page(next);
        expect([next, status < 500]).toEqual([next, true]);
        isSaid ||= html.includes(`These are ${rowsMax} of ${count}`);
        const tables = [...html.matchAll(/<table.*?<\/table>/gs)].map(([table]) => table.match(/<th scope="row"/g));
        const most = Math.max(0, ...tables.map((some) => some?.length ?? 0));
        if (!whole.includes(path)) expect([path, most <= rowsMax]).toEqual([path, true]);
        rows.push(...[...html.matchAll(/<th scope="row">(.*?)<\/th>/gs)].map(([, text = ""]) => text));
        next = /href="([^"]*)"[^>]*>(?:Next page|Older entries)</.exec(html)?.[1]?.replaceAll("&amp;", "&");
      }
      if (rows.length < rowsMax) continue;
      long.push(path);
      const hasOldest = rows.some((row) => row.includes(oldest)) || isSaid;
      // What the audit calls an entry is a moment.
      if (path === "/audit") expect([pages > 1, new Set(rows).size]).toEqual([true, rows.length]);
      else expect([path, hasOldest, pages > 1 || isSaid || whole.includes(path)]).toEqual([path, true, true]);
    }
    const lists = ["/audit", "/find", "/keys", "/keys/new", "/p/:org/:project/:kind", "/p/:org/:project/access"];
    expect(long.sort()).toEqual([...lists, "/persons", "/projects", "/requests"]);
  });

  test("of sets that cannot be searched names the first ones, and says how many there are", async () => {
    const lost = 9 * count;
    const more = `… and ${lost - 21} more.`;
    const { document, ends } = await performed(findNames, w.admin, { part: "many" });
    const { warnings } = document as { warnings: readonly string[] };
    expect([warnings.length, warnings.at(-2), ends?.message]).toEqual([22, more, `${lost} sets were not searched.`]);
    const visitor = await visitorOf(w);
    const { html } = await visitor.page("/find?q=many");
    expect([html.match(/by other means than Keyhole/g)?.length, html.includes(more)]).toEqual([21, true]);
    expect((await visitor.page("/find/offers?q=many")).html).toContain(`. ${lost} sets could not be searched."`);
  });

  test("of a command has the oldest too, or says that there are more", async () => {
    const nowhere = { env: {}, terminal: process, json: false, say: () => {}, flush: async () => {}, inherited: [] };
    const all = (command: CommandUnknownOpts): CommandUnknownOpts[] => [command, ...command.commands.flatMap(all)];
    const isList = ({ options }: CommandUnknownOpts) => options.some(({ long }) => long === "--limit");
    const lists = all(await buildProgram(nowhere))
      .filter(isList)
      .map((one) => rowOf(one) as Operation);
    const log = join(newFolder(), "a.log");
    writeFileSync(log, "a-value-of-many");
    const short: string[] = [];
    for (const row of lists) {
      if (!("run" in row)) continue;
      const from = { environment: "staging", withinMs: 2 * dayMs, part: "many", paths: [log] };
      const organization = /^(?:leaked|reuse)$/.test(row.path) ? org : undefined;
      const given = { ...from, where, project: where, kind: "variables", organization };
      const { shows, sentence = "", warnings = [] } = await performed(row, w.admin, given);
      const rows = [...(shows as List).rows];
      if (rows.length < 100) {
        short.push(row.path);
        continue;
      }
      const isWhole = rows.some((cells) => cells.join(" ").includes(oldest));
      const words = [sentence, ...warnings, ...rows.flat()].join(" ");
      expect([row.path, rows.length, isWhole || /earlier|more|others/i.test(words)]).toEqual([
        row.path,
        rows.length,
        true,
      ]);
    }
    expect(short.sort()).toEqual(["account list", "file list", "history", "org list"]);
  });
});
