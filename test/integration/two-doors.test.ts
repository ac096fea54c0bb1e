/**
 * Two persons through both doors at once: one by commands over SSH, one by the pages of a team's dashboard. They write
 * one set again and again, at the same time, and each has an environment that the other may not even see.
 */
import { beforeAll, expect, test } from "bun:test";
import type { Environment } from "../../src/core/names.ts";
import { findProject } from "../../src/desk/projects.ts";
import { openSet, openVersion } from "../../src/editing/open.ts";
import { variables } from "../../src/kinds/variables/entry.ts";
import { storedValue } from "../../src/kinds/variables/write.ts";
import { listAudit } from "../../src/people/audit.ts";
import { verifyAudit } from "../../src/people/audit-chain.ts";
import { listHistory } from "../../src/people/history.ts";
import { addPerson, grantRights } from "../../src/people/persons.ts";
import { throughDoor } from "../support/door.ts";
import { personsVisitor, type Visitor } from "../support/pages.ts";
import { describeBoth } from "../support/world.ts";

const ana = { type: "person", name: "ana", from: "ssh" } as const;
const identity = { issuer: "https://id.example", subject: "ben-1" };
const ben = { type: "person", name: "ben", from: identity } as const;

/** How often each of them writes. */
const rounds = 4;
const names = ["FIRST", "SECOND"];
const seenBefore =
  /^(?:ana|ben) .*changed (?:FIRST|SECOND) just now, in version \d+ of the variables of \S+ in staging\./;

/** A write that was accepted. */
type Accepted = { readonly actor: typeof ana | typeof ben; readonly name: string; readonly value: string };

describeBoth("two persons through both doors at once", (w) => {
  let where = "";
  let visitor: Visitor;
  const ofAna = "canary-of-production";
  const ofBen = "canary-of-development";

  beforeAll(async () => {
    const organization = await w.organization();
    const values = { FIRST: "canary-first", SECOND: "canary-second" };
    const content = { development: { ONLY_BEN: ofBen }, staging: values, production: { ONLY_ANA: ofAna } };
    ({ where } = await w.project(organization, "web", { variables: content }));
    const rights = ["see", "reveal", "write"];
    await addPerson(w.admin, { name: "ana", organization: organization.slug, signIn: null });
    await grantRights(w.admin, "ana", { rights, projects: ["web"], environments: ["staging", "production"] });
    await addPerson(w.admin, { name: "ben", organization: organization.slug, signIn: identity });
    await grantRights(w.admin, "ben", { rights, projects: ["web"], environments: ["development", "staging"] });
    visitor = personsVisitor(w, identity);
  });

  const newValue = (who: string) => {
    const value = `canary-of-${who}-${crypto.randomUUID()}`;
    w.secrets.add(value);
    return value;
  };
  const pageOf = (name: string) => `/p/${where}/variables/set?name=${name}`;
  const setPath = () => `/p/${where}/variables/set`;
  /** A process of its own, as sshd starts it. */
  const asAna = (words: readonly string[]) => throughDoor(w, "ana", words);
  const byCommand = (environment: string, name: string, value: string) =>
    asAna(["var", "set", where, environment, name, "--value", value]);
  const versionsOf = async (environment: Environment) => {
    const { versions, warnings } = await listHistory(w.admin, { where, environment, kind: "variables" });
    expect(warnings).toEqual([]);
    return versions.map(({ version }) => version).toReversed();
  };
  /** The value of each variable of staging, in a version. */
  const valuesIn = async (version: number, newest: number) => {
    const project = { ...(await findProject(w.admin, where, "reveal")), db: w.admin.database.db };
    const of = { project, descriptor: variables, environment: "staging" } as const;
    const { items } = await (version === newest ? openSet(w.admin, of) : openVersion(w.admin, of, version));
    return new Map([...items].map(([name, item]) => [name, storedValue(item)]));
  };

  test("keep every write that was accepted, each on record by its writer, and no other", async () => {
    const before = (await versionsOf("staging")).at(-1) as number;
    const accepted: Accepted[] = [];
    const refused: string[] = [];

    const anaWrites = async (round: number) => {
      const [name, value] = [names[round % 2] as string, newValue("ana")];
      expect(await byCommand("staging", name, value)).toMatchObject({ code: "done" });
      accepted.push({ actor: ana, name, value });
    };
    /** Opens the page, and sends two forms at once as two tabs would, until one is taken. */
    const benWrites = async (round: number) => {
      const name = names[(round >> 1) % 2] as string;
      for (let isTaken = false; !isTaken; ) {
        const form = (await visitor.form(pageOf(name), setPath())) ?? {};
        const values = [newValue("ben"), newValue("ben")];
        const send = (value: string) => visitor.send(setPath(), { ...form, "value.staging": value });
        const replies = await Promise.all(values.map(send));
        const taken = replies.findIndex(({ status }) => status === 200);
        isTaken = taken !== -1;
        if (isTaken) accepted.push({ actor: ben, name, value: values[taken] as string });
        for (const [at, reply] of replies.entries()) {
          if (at === taken) continue;
          expect(reply).toMatchObject({ status: 409, error: expect.stringMatching(seenBefore) });
          refused.push(values[at] as string);
        }
      }
    };
    const inTurn = async (write: (round: number) => Promise<void>) => {
      for (let round = 0; round < rounds; round += 1) await write(round);
    };
    await Promise.all([inTurn(anaWrites), inTurn(anaWrites), inTurn(benWrites)]);

    // Each version differs from the one before by one write that was accepted, and its entry names the writer.
    const versions = (await versionsOf("staging")).filter((version) => version >= before);
    expect(accepted).toHaveLength(3 * rounds);
    expect(versions).toHaveLength(accepted.length + 1);
    const newest = versions.at(-1) as number;
    const entries = await listAudit(w.admin, { project: where, actions: ["variables.write"], limit: accepted.length });
    let last = await valuesIn(before, newest);
    for (const [at, version] of versions.slice(1).entries()) {
      const now = await valuesIn(version, newest);
      const isNew = ({ name, value }: Accepted) => now.get(name) === value && last.get(name) !== value;
      const [write, ...more] = accepted.filter(isNew);
      expect([version, write === undefined, more]).toEqual([version, false, []]);
      const { actor, name, value } = write as Accepted;
      expect(now).toEqual(new Map([...last, [name, value]]));
      expect(entries[at]).toMatchObject({ actor, environment: "staging", names: [name], changed: [name], added: [] });
      last = now;
      for (const other of refused) expect([...now.values()]).not.toContain(other);
    }
    expect((await verifyAudit(w.admin)).flaws).toEqual([]);
    expect(visitor.reported).toEqual([]);
  }, 120_000);

  test("reach nothing that only the other may, while both are at work", async () => {
    const form = (await visitor.form(pageOf("ONLY_BEN"), setPath())) ?? {};
    const before = await Promise.all((["development", "production"] as const).map(versionsOf));
    const reveal = (name: string, environment: string) =>
      visitor.send(`/p/${where}/variables/reveal`, { name, environment });
    const get = (environment: string, name: string) => asAna(["var", "get", where, environment, name]);
    const production = { "value.production": newValue("ben"), "version.production": 2, again: "ONLY_ANA" };
    for (let round = 0; round < 3; round += 1) {
      const [own, notHers, written, theirs, notHis, sent] = await Promise.all([
        get("production", "ONLY_ANA"),
        get("development", "ONLY_BEN"),
        byCommand("development", "ONLY_BEN", newValue("ana")),
        reveal("ONLY_BEN", "development"),
        reveal("ONLY_ANA", "production"),
        visitor.send(setPath(), { ...form, ...production, name: "ONLY_ANA" }),
        byCommand("staging", "FIRST", newValue("ana")),
      ]);
      expect(own).toMatchObject({ code: "done", out: expect.stringContaining(ofAna) });
      expect([notHers.code, written.code]).toEqual(["not_found", "not_found"]);
      expect(notHers.out + written.out).not.toContain("canary");
      expect(theirs).toEqual({ status: 200, secret: ofBen });
      expect([notHis.status, notHis.secret, sent.status]).toEqual([404, undefined, 404]);
    }
    expect(await Promise.all((["development", "production"] as const).map(versionsOf))).toEqual(before);
    const reveals = await listAudit(w.admin, { project: where, actions: ["variables.reveal"], limit: 100 });
    expect(reveals.map(({ actor, environment, names }) => [actor, environment, names]).sort()).toEqual(
      [
        ...Array.from({ length: 3 }, () => [ana, "production", ["ONLY_ANA"]]),
        ...Array.from({ length: 3 }, () => [ben, "development", ["ONLY_BEN"]]),
      ].sort(),
    );
    expect((await visitor.page(`/p/${where}/variables`)).html).not.toContain("ONLY_ANA");
    expect((await asAna(["access", where])).out).not.toContain("development");
  });
});
