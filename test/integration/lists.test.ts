import { expect, test } from "bun:test";
import { type Environment, environmentMask, environmentsOf } from "../../src/core/names.ts";
import { listAccounts } from "../../src/kinds/accounts/write.ts";
import { listFiles } from "../../src/kinds/files/write.ts";
import { listVariables } from "../../src/kinds/variables/write.ts";
import { lockCommands } from "../../src/people/desk/changes.ts";
import { type AdminContext, writing } from "../../src/people/desk/context.ts";
import type { Operation } from "../../src/people/desk/operation.ts";
import { Permit } from "../../src/people/desk/permit.ts";
import { writeRoster } from "../../src/people/desk/roster.ts";
import { access, expiring } from "../../src/people/keys/access-operations.ts";
import { namesInUse } from "../../src/people/keys/names-in-use.ts";
import { keys } from "../../src/people/keys/operations.ts";
import { trusts } from "../../src/people/keys/trust-operations.ts";
import { createTrust } from "../../src/people/keys/trusts.ts";
import { persons } from "../../src/people/persons/operations.ts";
import { finds } from "../../src/people/projects/find-operations.ts";
import { projects } from "../../src/people/projects/operations.ts";
import { requests } from "../../src/people/requests/operations.ts";
import { digestKey } from "../../src/serve/access/api-key.ts";
import { type Grant, sealCanary, sealGrant } from "../../src/serve/access/grant.ts";
import type { Holding, Right } from "../../src/serve/access/rights.ts";
import { encodePersons } from "../../src/serve/access/roster.ts";
import { expectTooMany } from "../support/answer.ts";
import { listAudit } from "../support/audit.ts";
import { kinds, namesOf, ofKind } from "../support/kinds.ts";
import { connectAgent, mcpClient } from "../support/mcp.ts";
import { performed } from "../support/perform.ts";
import { asPerson, personIn } from "../support/persons.ts";
import { renameProject } from "../support/plans.ts";
import { insertProjects, numbered } from "../support/rows.ts";
import { describeBoth, everything } from "../support/world.ts";

/*
 * Every list against a model, at its bounds: one item less, as many, one more. Beside what it shows there is what it
 * must not count: what was deleted, what has ended, what is elsewhere. `GET /projects` is in projects.test.ts.
 */

describeBoth("a list", (w) => {
  test.each(
    kinds.flatMap((kind) =>
      [
        { production: 999, staging: 1 },
        { production: 1000, staging: 0 },
        { production: 999, staging: 2 },
        { production: 1001, staging: 0 },
      ].map((sizes) => ({ kind, ...sizes })),
    ),
  )("of $kind, $production in production and $staging in staging alone, is whole or refused", async (one) => {
    const { kind } = one;
    const { path, insert, remove, namesOnly, pathsOfAll, only } = ofKind[kind];
    const { organization, project } = await w.place({ slug: "was" });
    const gone = numbered("GONE", 2);
    const held = { production: numbered("P", one.production), staging: numbered("S", one.staging) };
    // An item of two environments is one; a file of either is a file of its own.
    const both = kind === "files" ? [] : held.production.slice(0, 50);
    await insert(w, project, gone, "production");
    for (const name of gone) await remove(w, project.where, "production", name);
    await insert(w, project, held.production, "production");
    await insert(w, project, [...both, ...held.staging], "staging");
    await renameProject(w.admin, project.where, { slug: "web" });

    const model = (reach: readonly Environment[], asked: Environment | null) => {
      const of = { development: [], production: held.production, staging: [...both, ...held.staging] };
      const names = new Set((asked ? [asked] : reach).flatMap((environment) => of[environment]));
      return [...names].sort();
    };
    const where = `${organization.slug}/web`;
    const namesFor: Readonly<Record<string, (admin: AdminContext) => Promise<readonly string[]>>> = {
      variables: async (admin) => (await listVariables(admin, where, "production")).map(({ name }) => name),
      accounts: async (admin) => (await listAccounts(admin, where)).map(({ name }) => name),
      files: async (admin) => (await listFiles(admin, where)).map(({ path }) => path),
    };
    // People's lists have no bound, and show what they may see.
    const ana = await personIn(w.admin, where, ["see"], environmentMask("production"));
    const everywhere = model(kind === "variables" ? ["production"] : environmentsOf(7), null);
    expect(await namesFor[kind]?.(w.admin)).toEqual(everywhere);
    expect(await namesFor[kind]?.(ana)).toEqual(held.production);

    for (const reach of [["production"], ["staging"], environmentsOf(7)] as Environment[][]) {
      const key = await w.key(organization, { ...everything, environments: reach });
      // The rule of files counts all of the project, whatever is asked for.
      const isTooMany = ({ length }: readonly string[]) =>
        (kind === "files" ? one.production + one.staging : length) > 1000;
      const onRecord: string[] = [];
      type NamesOf = (json: unknown) => readonly string[];
      const expectAs = async (path: string, expected: readonly string[], names: NamesOf) => {
        const answer = await w.client().ask(path, { key });
        if (isTooMany(expected)) return expectTooMany(answer);
        expect([path, answer.status, names(answer.json)]).toEqual([path, 200, expected]);
        if (!path.includes("metadata")) onRecord.push(...expected);
      };
      const own = (json: unknown) => namesOf(kind, json);
      for (const all of pathsOfAll) await expectAs(all, model(reach, null), own);
      for (const environment of reach) {
        const expected = model(reach, environment);
        await expectAs(path(environment), expected, own);
        await expectAs(`${path(environment)}${namesOnly}`, expected, own);
        const one = expected.filter((name) => name === "S0000");
        if (only) await expectAs(`${path(environment)}${only(["S0000", "GONE0000"])}`, one, own);
        if (kind === "variables") {
          await expectAs(
            `${path(environment)}&prefix=S`,
            expected.filter((name) => name.startsWith("S")),
            own,
          );
          const legacy = `/secrets?project=web&environment=${environment}`;
          await expectAs(legacy, expected, (json) => Object.keys((json as { secrets: object }).secrets));
        }
        const agent = await connectAgent(mcpClient(w), key);
        const { isError, found } = await agent.call(`list_${kind}`, { project: "web", environment });
        expect([isError, isError || own(found)]).toEqual(isTooMany(expected) ? [true, true] : [false, expected]);
        await agent.client.close();
      }
      expect((await w.audit(key)).flatMap(({ names }) => names).sort()).toEqual(onRecord.sort());
    }
  });

  test("of a command has all that somebody may see, and nothing else", async () => {
    const count = 1001;
    const { organization, project } = await w.place({ slug: "seen" });
    const hidden = await w.project(organization, "hidden");
    const other = await w.place({ slug: "seen" });
    const places = [
      { organization, project },
      { organization, project: hidden },
      { organization: other.organization, project: other.project },
    ] as const;
    /** Which of the places the n-th item is in: half of them in the first one. */
    const placeOf = (n: number) => places[n % 2 === 0 ? 0 : n % 4 === 1 ? 1 : 2] ?? places[0];
    const ids = Array.from({ length: count }, () => Bun.randomUUIDv7());
    const tables = w.admin.database.tables;
    const now = Date.now();

    const statuses = ["active", "expired", "revoked", "canary", "damaged"] as const;
    const terms = { organization: organization.slug, projects: null, environments: null, issuer: "https://id.example" };
    const made = await createTrust(w.admin, { ...terms, audience: "a", claims: new Map([["sub", "s"]]) });
    const [{ trust }] = (await w.sql`select trust from api_keys where id = ${made.trust.id}`) as [{ trust: string }];
    await w.sql`delete from api_keys`; // and those of other tests
    const credentials = (["key", "trust"] as const).flatMap((type) =>
      numbered(type, count).map((name, n) => {
        const { organization, project } = placeOf(n);
        const status = statuses[n % 5];
        const grant: Grant = {
          keyId: Bun.randomUUIDv7(),
          organizationId: organization.id,
          rate: null,
          from: null,
          surfaces: 1,
          resources: 1,
          environments: environmentMask("production"),
          projects: JSON.stringify({ [project.slug]: project.id }),
          expiresAt: n % 3 === 0 ? null : status === "expired" ? 1 : now + 3_600_000,
          trust: type === "trust" ? trust : null,
        };
        const { keyId: id, ...row } = grant;
        const digest = digestKey(w.admin.systemKeys.pepper, id);
        const seal = (status === "canary" ? sealCanary : sealGrant)(w.admin.systemKeys.grant, digest, grant);
        const isSealed = status !== "damaged" && status !== "revoked";
        const revokedAt = status === "revoked" ? 1 : null;
        const grantSeal = isSealed ? seal : Buffer.alloc(32);
        return {
          place: placeOf(n),
          type,
          status: status === "expired" && n % 3 === 0 ? "active" : status,
          row: { id, ...row, name, digest, revokedAt, createdAt: n, grantSeal },
        };
      }),
    );
    const asked = ids.map((id, n) => {
      const { organization, project } = placeOf(n);
      const status = (["pending", "approved", "rejected"] as const)[n % 3] ?? "pending";
      const where = { organizationId: organization.id, projectId: project.id, environment: "production" as const };
      const row = { ...where, id, name: `R${n}`, reason: "r", keyId: "gone", number: n + 1, status, createdAt: n };
      const isKept = n % 2 === 0;
      const own = { ...row, expiresAt: isKept ? now + 3_600_000 : 1 };
      return { place: placeOf(n), isPending: status === "pending" && isKept, row: own };
    });
    const slugs = numbered("many", count);
    await insertProjects(w, other.organization, slugs);
    for (let at = 0; at < count; at += 500) {
      const { db } = w.admin.database;
      await db.insert(tables.variableRequests).values(asked.slice(at, at + 500).map(({ row }) => row));
    }
    for (let at = 0; at < credentials.length; at += 500) {
      await w.admin.database.db.insert(tables.apiKeys).values(credentials.slice(at, at + 500).map(({ row }) => row));
    }
    const everybody = numbered("person", count).map((name, n) => {
      return { name, organizationId: placeOf(n).organization.id, signIn: null, holdings: [] };
    });
    await writing(w.admin, Permit.operator(w.admin), async (admin) => {
      await lockCommands(admin);
      return [undefined, [await writeRoster(admin, encodePersons(everybody), "person0000")]];
    });

    const rights = ["see", "decide"] as const satisfies Right[];
    const one: Holding = { organizationId: organization.id, projectId: project.id, environments: 7, rights };
    const many = await w.sql`select id from projects where slug like 'many%' order by slug`;
    const some = many
      .slice(0, 501)
      .map(({ id }) => ({ ...one, organizationId: other.organization.id, projectId: String(id) }));
    const ana = asPerson(w.admin, "ana", [one, ...some]);
    const [mine, theirs] = [organization.slug, other.organization.slug];

    const groups = [access, expiring, keys, trusts, requests, projects, persons, finds];
    const rows = groups.flatMap((group) => group.rows as Operation[]);
    const run = async (path: string, admin: typeof ana, given: object) => {
      const row = rows.find((one) => one.path === path) as Operation;
      return (await performed(row, admin, given)).document;
    };
    const idsFrom = async (...list: Parameters<typeof run>) =>
      ((await run(...list)) as { id?: string; name: string }[]).map(({ id, name }) => id ?? name);
    const isIn =
      (organization: string | undefined) =>
      ({ place }: { place: (typeof places)[number] }) =>
        organization === undefined || place.organization.slug === organization;
    const isAnas = ({ place }: { place: (typeof places)[number] }) => place === places[0];

    for (const organization of [undefined, mine, theirs]) {
      for (const [admin, isSeen] of [
        [w.admin, () => true],
        [ana, isAnas],
      ] as const) {
        // Hers are in one organization alone.
        if (admin === ana && organization === theirs) continue;
        for (const type of ["key", "trust"] as const) {
          const all = credentials.filter((one) => one.type === type && isIn(organization)(one) && isSeen(one));
          const expectList = async (given: object, kept: (one: (typeof all)[number]) => boolean) =>
            expect(await idsFrom(`${type} list`, admin, { organization, ...given })).toEqual(
              all.filter(kept).map(({ row }) => row.id),
            );
          await expectList({}, () => true);
          await expectList({ neverExpires: true }, ({ status, row }) => status === "active" && row.expiresAt === null);
          await expectList({ unusedMs: 1000 }, ({ status }) => status === "active");
        }
        for (const pending of [undefined, true]) {
          const all = asked.filter((one) => isIn(organization)(one) && isSeen(one) && (!pending || one.isPending));
          expect(await idsFrom("request list", admin, { organization, pending })).toEqual(all.map(({ row }) => row.id));
        }
      }
      const names = everybody.filter(
        ({ organizationId: id }) =>
          organization === undefined || id === (organization === mine ? places[0] : places[2]).organization.id,
      );
      expect(await idsFrom("person list", w.admin, { organization })).toEqual(names.map(({ name }) => name));
    }
    // What ends soon, and what reaches a project: of what is active, or looks like it.
    const soon = credentials.filter(({ status, row }) => status === "active" && row.expiresAt !== null);
    const reaching = credentials.filter((one) => isAnas(one) && (one.status === "active" || one.status === "canary"));
    const idsOf = (all: typeof credentials) => all.map(({ row }) => row.id).sort();
    for (const admin of [w.admin, ana]) {
      const seen = admin === ana ? soon.filter(isAnas) : soon;
      expect((await idsFrom("expiring", admin, { withinMs: 7_200_000 })).sort()).toEqual(idsOf(seen));
      expect((await idsFrom("access", admin, { project: project.where })).sort()).toEqual(idsOf(reaching));
    }
    for (const [admin, seen] of [
      [w.admin, slugs],
      [ana, slugs.slice(0, 501)],
    ] as const) {
      const listed = (await run("project list", admin, { organization: theirs })) as { slug: string }[];
      expect(listed.map(({ slug }) => slug).filter((slug) => slug !== "seen")).toEqual(seen);
      // The best 200 of all that it counts.
      const found = (await run("find", admin, { part: "many", organization: theirs })) as {
        found: { name: string }[];
        count: number;
      };
      expect([found.found.map(({ name }) => name), found.count]).toEqual([seen.slice(0, 200), seen.length]);
    }
    // Completion shows 1,000: those that begin as typed are among them.
    const typed = await namesInUse(w.config, { of: "projects" }, `${theirs}/many1`);
    expect([typed.length, typed[0]?.word]).toEqual([1000, `${theirs}/many1000`]);
  });

  test("of the audit has the newest of those that somebody may read, as many as were asked for", async () => {
    const { organization, project } = await w.place({ variables: { production: { A: "a value" } } });
    const elsewhere = await w.project(organization, "elsewhere", { variables: { staging: { A: "another" } } });
    const key = await w.key(organization);
    for (let read = 0; read < 130; read++) {
      const [slug, environment] = read % 3 === 0 ? [elsewhere.slug, "staging"] : [project.slug, "production"];
      const { ask } = w.client();
      expect((await ask(`/projects/${slug}/variables?environment=${environment}`, { key })).status).toBe(200);
    }
    const parts = { projectId: project.id, environments: 7, rights: ["audit"] } as const;
    const holding = { organizationId: organization.id, ...parts };
    const ana = asPerson(w.admin, "ana", [holding]);
    for (const admin of [w.admin, ana]) {
      for (const filter of [{}, { keyId: key.id }, { project: project.where, actions: ["variables.read"] }]) {
        const all = await listAudit(admin, { ...filter, limit: 10_000 });
        const isHere = ({ project: slug }: { project: string | null }) => slug === project.slug;
        if (admin === ana) expect(all.filter(isHere)).toEqual(all);
        const limits = [1, 2, 99, 100, 101, all.length - 1, all.length, all.length + 1];
        for (const limit of limits) {
          expect([limit, await listAudit(admin, { ...filter, limit })]).toEqual([limit, all.slice(-limit)]);
        }
        expect(await listAudit(admin, filter)).toEqual(all.slice(-100));
      }
    }
  });
});
