import { beforeAll, expect, test } from "bun:test";
import { createDashboard } from "../../src/dashboard/app.ts";
import { Sessions } from "../../src/dashboard/sessions.ts";
import { SignIn } from "../../src/dashboard/sign-in.ts";
import { listVariables } from "../../src/kinds/variables/write.ts";
import { listAudit } from "../../src/people/audit.ts";
import { addPerson, grantRights, removePerson } from "../../src/people/persons.ts";
import { runBinary } from "../support/keyhole.ts";
import { fieldsOf } from "../support/pages.ts";
import { describeBoth } from "../support/world.ts";

/*
 * Two persons at once, each through their own door: ana over SSH, ben on the team's dashboard. The rights of both come
 * from the roster, at each command and each request.
 */

const origin = "http://secrets.example";
const issuer = "https://id.example";
const rounds = 15;

describeBoth("two persons through both doors", (w) => {
  const sessions = new Sessions(Date.now);
  const reported: unknown[] = [];
  let handle: (request: Request) => Response | Promise<Response>;
  let cookie = "";
  let org = "";
  const where = () => `${org}/web`;

  beforeAll(async () => {
    const organization = await w.organization();
    org = organization.slug;
    await w.project(organization, "web", { variables: { staging: { SHARED: "0" }, production: { LIVE: "canary" } } });
    await addPerson(w.admin, { name: "ana", organization: org, signIn: null });
    await addPerson(w.admin, { name: "ben", organization: org, signIn: { issuer, subject: "ben-1" } });
    const staging = { projects: ["web"], environments: ["staging"] as const };
    await grantRights(w.admin, "ana", { rights: ["see", "reveal", "write"], ...staging });
    await grantRights(w.admin, "ben", { rights: ["see", "write"], projects: ["web"], environments: null });
    const signIn = new SignIn({ issuer, clientId: "keyhole", clientSecret: undefined }, origin, Date.now);
    handle = createDashboard({
      installation: w.installation,
      sessions,
      entrance: { signIn },
      origin,
      now: Date.now,
      used: () => {},
      report: (error) => reported.push(error),
    }).handle;
    const identity = { issuer, subject: "ben-1", label: "ben", groups: [], provedAt: Date.now() };
    cookie = `__Host-keyhole=${sessions.begin(identity)}`;
  });

  /** As sshd starts it, a process of its own. */
  const ana = (command: string) => {
    const { databaseUrl, dataFolder, rootKey } = w.config;
    const env = {
      KEYHOLE_DATA: dataFolder,
      KEYHOLE_ROOT_KEY: (rootKey as { text: string }).text,
      SSH_ORIGINAL_COMMAND: command.replace("WHERE", where()),
      ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
    };
    return runBinary(["door", "--person", "ana"], { env });
  };
  const ben = async (path: string, fields?: Readonly<Record<string, string>>) => {
    const own = { host: new URL(origin).host, cookie };
    const post = { origin, "sec-fetch-site": "same-origin", accept: "application/json" };
    const init = fields && { method: "POST", body: new URLSearchParams(fields) };
    const answer = await handle(
      new Request(`${origin}/p/${where()}/${path}`, { ...init, headers: { ...own, ...(fields && post) } }),
    );
    return { status: answer.status, text: await answer.text() };
  };
  /** Saves values in staging as the page does that was loaded just before. @returns the status */
  const benSaves = async (name: string, value: string) => {
    const { text } = await ben(`variables/set?name=${name}`);
    const fields = fieldsOf(text, `/p/${where()}/variables/set`);
    return (await ben("variables/set", { ...fields, name, "value.staging": value })).status;
  };

  test("who write at once lose nothing, and each is on record as who they are", async () => {
    const saved: string[] = [];
    for (let round = 0; round < rounds; round++) {
      const [set, shared, status] = await Promise.all([
        ana(`var set WHERE staging ANA_${round} --value a`),
        ana(`var set WHERE staging SHARED --value ana-${round}`),
        benSaves(`BEN_${round}`, "b"),
      ]);
      expect([set, shared].map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual([
        [0, expect.stringMatching(/^Created ANA_/)],
        [0, expect.stringMatching(/^Updated SHARED/)],
      ]);
      // A page that is older than the set is refused. Loaded again while nobody writes, it is saved.
      expect([200, 409]).toContain(status);
      if (status === 200) saved.push(`BEN_${round}`);
      else
        expect((await listVariables(w.admin, where(), "staging")).map(({ name }) => name)).not.toContain(
          `BEN_${round}`,
        );
    }
    expect(await benSaves("BEN_LAST", "b")).toBe(200);
    const names = (await listVariables(w.admin, where(), "staging")).map(({ name }) => name);
    const all = [...Array.from({ length: rounds }, (_, round) => `ANA_${round}`), ...saved, "BEN_LAST", "SHARED"];
    expect(names.toSorted()).toEqual(all.toSorted());
    expect((await ana("var get WHERE staging SHARED")).stdout).toBe(`ana-${rounds - 1}`);
    const entries = await listAudit(w.admin, { project: where(), actions: ["variables.write"], limit: 1000 });
    const wrote = (name: string) =>
      new Set(entries.filter(({ names }) => names[0]?.startsWith(name)).map(({ actor }) => JSON.stringify(actor)));
    expect([...wrote("ANA_")]).toEqual([JSON.stringify({ type: "person", name: "ana", from: "ssh" })]);
    expect([...wrote("BEN_")]).toEqual([
      JSON.stringify({ type: "person", name: "ben", from: { issuer, subject: "ben-1" } }),
    ]);
    expect(reported).toEqual([]);
  });

  test("each reach what is theirs alone", async () => {
    expect((await ana("var set WHERE production LIVE --value x")).exitCode).toBe(4);
    expect((await ana("var get WHERE production LIVE")).exitCode).toBe(4);
    expect((await ben("variables/reveal", { name: "LIVE", environment: "production" })).status).toBe(404);
    expect((await ben("variables?q=")).text).toContain("LIVE");
  });

  test("who were removed are let in by neither, from the next command and request on", async () => {
    expect((await ben("variables")).status).toBe(200);
    await removePerson(w.admin, "ana");
    await removePerson(w.admin, "ben");
    expect((await ana("var list WHERE staging")).exitCode).toBe(3);
    expect((await ben("variables")).status).toBe(403);
    expect((await ben("variables/set", { name: "LATE", "value.staging": "x", "version.staging": "1" })).status).toBe(
      403,
    );
  });
});
