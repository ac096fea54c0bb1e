import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { accountName } from "../../src/installation/data-folder.ts";
import { revealAccount } from "../../src/kinds/accounts/reveal.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { diffVariables, revealVariable } from "../../src/kinds/variables/reveal.ts";
import type { AuditRecord } from "../../src/people/audit/audit.ts";
import { verifyAudit } from "../../src/people/audit/audit-chain.ts";
import { actorOf, callerOfSudo } from "../../src/people/desk/actor.ts";
import { createKey, listExpiring, revokeKey, rotateKey } from "../../src/people/keys/keys.ts";
import { createOrganization, setPlan } from "../../src/people/projects/organizations.ts";
import { createProject, setProjectEnvironments } from "../../src/people/projects/projects.ts";
import { rotateData } from "../../src/people/rotation/rotation.ts";
import type { LaneCheckpoint } from "../../src/record/journal.ts";
import { openKeyhole } from "../../src/serve/process/compose.ts";
import { listAudit } from "../support/audit.ts";
import { deleteAccount, deleteFile, deleteVariable } from "../support/delete.ts";
import { putHeadBack, savedHead } from "../support/heads.ts";
import { deleteProject, setAccount, setVariables } from "../support/plans.ts";
import { describeBoth, type LogEvent, type World } from "../support/world.ts";

/** What was put on record while `work` ran, without what every entry has. */
async function recorded(w: World, work: () => Promise<unknown>) {
  const before = await people(w);
  await work();
  const after = (await people(w)).slice(before.length);
  for (const entry of after) {
    expect(entry).toMatchObject({ actor: { type: "person", name: "ann@host" }, lane: "commands", requestId: "" });
  }
  return after.map(({ actor: _, lane: __, seq: ___, time: ____, ...entry }) => entry);
}

async function people(w: World): Promise<AuditRecord[]> {
  return (await listAudit(w.admin, { limit: 100_000 })).filter(({ actor }) => actor.type === "person");
}

let made = 0;

describeBoth("a change", (w) => {
  test("of each kind is on record, with who did it and what it touched", async () => {
    const slug = `changed-${++made}`;
    const where = `${slug}/web`;
    const ofOrganization = { organization: slug, project: null, environment: null };
    const ofProject = { organization: slug, project: "web", environment: null };
    const set = (variables: Record<string, string>) =>
      setVariables(
        w.admin,
        where,
        "staging",
        Object.entries(variables).map(([name, value]) => ({ name, value })),
      );
    const file = { path: "a.pem", environments: ["staging", "production"], content: Buffer.from("pem") };
    let keyId = "";
    let successorId = "";
    const changes: [work: () => Promise<unknown>, entries: () => object[]][] = [
      [() => createOrganization(w.admin, { slug }), () => [{ ...ofOrganization, action: "organization.create" }]],
      [
        () => setPlan(w.admin, slug, "free"),
        () => [{ ...ofOrganization, action: "organization.plan", names: ["free"] }],
      ],
      [() => createProject(w.admin, where, {}), () => [{ ...ofProject, action: "project.create", names: [] }]],
      [
        () => setProjectEnvironments(w.admin, where, ["production", "staging"]),
        () => [{ ...ofProject, action: "project.environments", names: ["staging", "production"] }],
      ],
      [
        () => set({ B: "1", A: "1" }),
        () => {
          const changes = { names: ["A", "B"], added: ["B", "A"], changed: [], deleted: [] };
          return [{ ...ofProject, environment: "staging", action: "variables.write", ...changes }];
        },
      ],
      [() => set({ A: "2", C: "3" }), () => [{ names: ["A", "C"], added: ["C"], changed: ["A"], deleted: [] }]],
      [
        () => deleteVariable(w.admin, where, "staging", "A"),
        () => [{ action: "variables.write", names: ["A"], added: [], changed: [], deleted: ["A"] }],
      ],
      [
        () => setAccount(w.admin, where, "ci", ["staging", "production"], { user: "x" }),
        () => [
          { ...ofProject, environment: "staging", action: "accounts.write", names: ["ci"], added: ["ci"] },
          { ...ofProject, environment: "production", action: "accounts.write", names: ["ci"], added: ["ci"] },
        ],
      ],
      [
        () => setAccount(w.admin, where, "ci", ["production"], { user: "y" }),
        () => [
          { environment: "staging", names: ["ci"], deleted: ["ci"] },
          { environment: "production", names: ["ci"], changed: ["ci"] },
        ],
      ],
      [() => deleteAccount(w.admin, where, "ci"), () => [{ environment: "production", deleted: ["ci"] }]],
      [
        () => putFile(w.admin, where, file),
        () => [
          { ...ofProject, environment: "staging", action: "files.write", names: ["a.pem"], added: ["a.pem"] },
          { ...ofProject, environment: "production", action: "files.write", names: ["a.pem"], added: ["a.pem"] },
        ],
      ],
      [
        () => deleteFile(w.admin, where, "a.pem", ["staging"]),
        () => [{ environment: "staging", action: "files.write", deleted: ["a.pem"] }],
      ],
      [
        async () => {
          keyId = (await createKey(w.admin, { organization: slug, projects: null, environments: null })).id;
        },
        () => [{ ...ofOrganization, action: "key.create", names: [keyId] }],
      ],
      [
        async () => {
          successorId = (await rotateKey(w.admin, keyId, 1000)).successor.id;
        },
        () => [{ ...ofOrganization, action: "key.rotate", names: [keyId, successorId] }],
      ],
      [() => revokeKey(w.admin, keyId), () => [{ ...ofOrganization, action: "key.revoke", names: [keyId] }]],
      [() => rotateData(w.admin, where), () => [{ ...ofProject, action: "data_key.rotate", names: [] }]],
      [() => deleteProject(w.admin, where), () => [{ ...ofProject, action: "project.delete", names: [] }]],
    ];
    for (const [work, entries] of changes) expect(await recorded(w, work)).toMatchObject(entries());
    expect(await verifyAudit(w.admin)).toMatchObject({ flaws: [] });
    // What was done to a key belongs to its history.
    const ofKey = await listAudit(w.admin, { keyId });
    expect(ofKey.map(({ action }) => action)).toEqual(["key.create", "key.rotate", "key.revoke"]);
  });

  test("that is refused leaves nothing on record, and one that cannot be put on record does not happen", async () => {
    const { where } = await w.place({ variables: { staging: { A: "1" } } });
    const set = (name: string) => setVariables(w.admin, where, "staging", [{ name, value: "2" }]);
    expect(await recorded(w, () => set("not a name").catch(() => {}))).toEqual([]);
    expect(await recorded(w, () => deleteVariable(w.admin, where, "staging", "B").catch(() => {}))).toEqual([]);
    const versions = () => w.run("select project_id, kind, environment, version from sets order by 1, 2, 3");
    const before = await versions();
    await w.run("alter table audit_segments rename to audit_gone");
    const refused = await set("B").catch((error: unknown) => error);
    await w.run("alter table audit_gone rename to audit_segments");
    expect(refused).toBeInstanceOf(Error);
    expect(await versions()).toEqual(before);
    expect(await recorded(w, () => set("B"))).toMatchObject([{ added: ["B"] }]);
  });

  test("has its place in one chain, however many are made at once", async () => {
    const organization = await w.organization();
    const projects = await Promise.all(["one", "two", "three"].map((slug) => w.project(organization, slug, {})));
    const entries = await recorded(w, () =>
      Promise.all(
        Array.from({ length: 30 }, (_, n) =>
          setVariables(w.admin, projects[n % 3]?.where ?? "", "staging", [{ name: `N_${n}`, value: "x" }]),
        ),
      ),
    );
    const added = entries.flatMap((entry) => entry.added ?? []).sort();
    expect(added).toEqual(Array.from({ length: 30 }, (_, n) => `N_${n}`).sort());
    const seqs = (await people(w)).map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.map((_, index) => index + 1));
    expect(await verifyAudit(w.admin)).toMatchObject({ flaws: [] });
  });

  test("has the time at which it was made, whatever somebody wrote into the lane's head", async () => {
    await w.organization();
    const year = 365 * 86_400_000;
    const head = await savedHead(w);
    await w.run("update audit_heads set at = at + ?", [year]);
    const before = Date.now();
    await w.organization();
    const [newest] = (await people(w)).slice(-1) as [AuditRecord];
    expect(newest.time).toBeGreaterThanOrEqual(before);
    expect(newest.time).toBeLessThan(before + year / 2);
    expect((await verifyAudit(w.admin)).flaws).toMatchObject([{ what: "head" }]);
    await w.sql`delete from audit_segments where lane = 'commands' and first_seq = ${newest.seq}`;
    await putHeadBack(w, head);
  });
});

describeBoth("the end of the record of changes", (w) => {
  /** The checkpoints that a server prints from its start to its exit. */
  const serve = async (w: World, meanwhile: () => Promise<unknown> = async () => {}): Promise<LaneCheckpoint[]> => {
    const events: LogEvent[] = [];
    const server = await openKeyhole(w.installation, (event) => events.push(event));
    await server.announceCommands();
    await meanwhile();
    await server.close();
    expect(events.every(({ event }) => event === "checkpoint")).toBeTrue();
    return events.map(({ event: _, ...checkpoint }) => checkpoint as LaneCheckpoint);
  };

  test("is printed by a server when it starts and when it stops, each once", async () => {
    expect(await serve(w)).toEqual([]);
    await w.organization();
    const at = async () => {
      const { seq, mac } = await savedHead(w);
      return { lane: "commands", seq: Number(seq), mac: Buffer.from(mac as Uint8Array).toString("hex") };
    };
    const first = await at();
    expect(await serve(w)).toEqual([first]);
    expect(await serve(w, () => w.organization())).toEqual([first, await at()]);
  });

  test("that cannot be read stops no server, which says so", async () => {
    const events: LogEvent[] = [];
    const server = await openKeyhole(w.installation, (event) => events.push(event));
    await server.announceCommands();
    await w.run("alter table audit_heads rename to audit_gone");
    await server.close().finally(() => w.run("alter table audit_gone rename to audit_heads"));
    expect(events.at(-1)).toMatchObject({ event: "checkpoint_failed", lane: "commands" });
  });
});

describeBoth("what a person sees", (w) => {
  const values = { A: "value of A\n", B: "value of B" };
  const placed = async (w: World) => {
    const organization = await w.organization();
    return w.project(organization, "web", {
      variables: { staging: values, production: { A: "another value", C: "value of C" } },
      accounts: [{ name: "ci", environments: ["staging"], values: { user: "x", password: "of staging" } }],
    });
  };

  test("of a variable is its exact value, on record as a reveal of this one name", async () => {
    const { where } = await placed(w);
    let value = "";
    const entries = await recorded(w, async () => {
      value = await revealVariable(w.admin, where, "staging", "A");
    });
    expect(value).toBe(values.A);
    expect(entries).toMatchObject([{ action: "variables.reveal", environment: "staging", names: ["A"], count: 1 }]);
    expect(await recorded(w, () => revealVariable(w.admin, where, "staging", "C").catch(() => {}))).toEqual([]);
  });

  test("of an account is its fields, from the environment that is named or in which it changed last", async () => {
    const { where } = await placed(w);
    w.clock.nowMs = Date.now() + 1000;
    await setAccount(w.admin, where, "ci", ["staging", "production"], { user: "y" });
    w.clock.nowMs = undefined;
    const entries = await recorded(w, async () => {
      const found = { environment: "production" as const, values: { user: "y" } };
      expect(await revealAccount(w.admin, where, "ci", "production")).toEqual(found);
      expect((await revealAccount(w.admin, where, "ci")).values).toEqual({ user: "y" });
    });
    expect(entries).toMatchObject(Array(2).fill({ action: "accounts.reveal", names: ["ci"] }));
    await expect(revealAccount(w.admin, where, "ci", "development")).rejects.toThrow("There is no account");
  });

  test("of the difference of two environments is names, and no value", async () => {
    const { where } = await placed(w);
    const differences = await diffVariables(w.admin, where, "staging", "production");
    const statuses = differences.map(({ name, status }) => `${name} ${status}`);
    expect(statuses).toEqual(["A differs", "B only", "C missing"]);
    expect(await diffVariables(w.admin, where, "staging", "staging")).toEqual([]);
  });

  test("of what expires is the valid keys that end within the time, the next one first", async () => {
    const organization = await w.organization();
    const dayMs = 86_400_000;
    const key = (days?: number) =>
      createKey(w.admin, {
        organization: organization.slug,
        projects: null,
        environments: null,
        ...(days && { expiresInMs: days * dayMs }),
      });
    const [late, soon] = [await key(20), await key(2)];
    await key(40);
    await key();
    const expiring = (await listExpiring(w.admin, 30 * dayMs)).filter((one) => one.organization === organization.slug);
    expect(expiring.map(({ id }) => id)).toEqual([soon.id, late.id]);
  });
});

describe("the name of a person", () => {
  test.each([
    [{ KEYHOLE_ACTOR: "ann@ops" }, /^ann@ops$/],
    [{ KEYHOLE_ACTOR: "ann@ops", SUDO_USER: "bob" }, /^ann@ops$/],
    [{ SUDO_USER: "bob", USER: "bob" }, new RegExp(`^${accountName(process.getuid?.() ?? 0)}@.`)],
    [{}, new RegExp(`^${accountName(process.getuid?.() ?? 0)}@.`)],
  ])("with %p is that of KEYHOLE_ACTOR or of the account", (env, name) => expect(actorOf(env)).toMatch(name));

  test.each([
    ["sudo", "self 12 keyhole 0, 12 11 sudo 0, 11 10 bash 1000, 10 1 sshd 0", 1000],
    [
      "a shell of sudo, on a terminal of its own",
      "self 13 keyhole 7, 13 12 bash 7, 12 11 sudo 0, 11 10 sudo 0, 10 1 sh 1001",
      1001,
    ],
    ["a program of that name, not root's", "self 12 keyhole 0, 12 11 sudo 1, 11 1 bash 1, 1 0 init 0", undefined],
    ["nothing of sudo", "self 12 keyhole 0, 12 1 bash 0, 1 0 init 0", undefined],
    ["what is not shown", "self 12 keyhole 0", undefined],
  ])("under %s is the caller's by the system's own word", (_, processes, caller) => {
    const statuses = new Map(processes.split(", ").map((one) => [one.split(" ")[0], one.split(" ")] as const));
    const statusOf = (pid: string) => {
      const [, parent, name, uid] = statuses.get(pid) ?? [];
      if (name === undefined) throw new Error("hidden");
      return `Name:\t${name}\nUmask:\t0022\nState:\tS (sleeping)\nPPid:\t${parent}\nUid:\t${uid}\t${uid}\t0\t0\n`;
    };
    expect(callerOfSudo(statusOf)).toBe(caller);
  });

  test.if(process.getuid?.() === 0)("of an account without a name is its number, whatever USER says", () => {
    const script = `const { actorOf } = await import(${JSON.stringify(join(import.meta.dir, "../../src/people/desk/actor.ts"))});
      process.setuid(54321); process.stdout.write(actorOf(process.env));`;
    const env = { USER: "root", SUDO_USER: "alice" };
    const { stdout } = Bun.spawnSync([process.execPath, "--no-env-file", "-e", script], { env });
    expect(stdout.toString()).toStartWith("54321@");
  });

  test.each(["", "a\nb", "a\u202eb", "x".repeat(129)])("%p in KEYHOLE_ACTOR is refused", (given) => {
    expect(() => actorOf({ KEYHOLE_ACTOR: given })).toThrow("KEYHOLE_ACTOR must have");
  });
});
