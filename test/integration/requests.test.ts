import { expect, test } from "bun:test";
import { Refused } from "../../src/core/refused.ts";
import { revealVariable } from "../../src/kinds/variables/reveal.ts";
import { listVariables } from "../../src/kinds/variables/write.ts";
import { adminContextOf, operator } from "../../src/people/desk/context.ts";
import { revokeKey } from "../../src/people/keys/keys.ts";
import { listRequests, shortRequestIds, showRequest } from "../../src/people/requests/requests.ts";
import { listAudit } from "../support/audit.ts";
import { approveRequest, deleteProject, rejectRequest, renameProject, setVariables } from "../support/plans.ts";
import { describeBoth, type Placed, type World } from "../support/world.ts";

type Filed = {
  readonly project: Placed;
  readonly keyId: string;
  readonly id: string;
  readonly file: (name: string, reason?: string) => Promise<string>;
};

/** A project with one pending request for STRIPE_KEY in production. */
async function furnish(w: World): Promise<Filed> {
  const { organization, project, key } = await w.place({
    variables: { production: { TOKEN: "a-token-of-web" } },
    key: { surfaces: ["mcp_server"], resources: ["requests"] },
  });
  const file = (name: string, reason = "for payments") =>
    w.request(organization.id, key.id, project, { environment: "production", name, reason });
  return { project, keyId: key.id, id: await file("STRIPE_KEY"), file };
}

const names = async (w: World, { where }: Placed) =>
  (await listVariables(w.admin, where, "production")).map(({ name }) => name);

/** Expects a refusal, and that it left neither a variable, a decision nor an entry. */
type Work = () => Promise<unknown>;
async function expectNothingDone(w: World, { project, id }: Filed, work: Work, kind: string, words: string) {
  const row = () => w.sql`select * from variable_requests where id = ${id}`;
  const state = async () => [await listAudit(w.admin, { limit: 1000 }), await row()];
  const before = await state();
  const refusal = await work().then(
    () => new Error("it was done"),
    (error: unknown) => error,
  );
  expect(refusal).toBeInstanceOf(Refused);
  expect(refusal).toMatchObject({ kind, message: expect.stringContaining(words) });
  expect(await state()).toEqual(before);
  return project;
}

const changed = ["conflict", "has changed since it was shown"] as const;

describeBoth("deciding about a request", (w) => {
  test("approval writes the variable and the decision, and both are on record", async () => {
    const { project, id } = await furnish(w);
    w.secrets.add("sk_live_of_a_test");
    const { request, warnings } = await approveRequest(w.admin, await showRequest(w.admin, id), "sk_live_of_a_test");
    expect(request).toMatchObject({ id, status: "approved", decidedBy: "ann@host", decisionReason: null });
    expect(warnings).toEqual([]);
    expect(await showRequest(w.admin, id)).toEqual(request);
    expect(await revealVariable(w.admin, project.where, "production", "STRIPE_KEY")).toBe("sk_live_of_a_test");
    const entries = (await listAudit(w.admin, { project: project.where, limit: 3 })).slice(0, 2);
    const written = { names: ["STRIPE_KEY"], added: ["STRIPE_KEY"], changed: [] };
    expect(entries).toMatchObject([
      { action: "variables.write", environment: "production", ...written },
      { action: "request.approve", environment: "production", names: [id, "STRIPE_KEY"], actor: { name: "ann@host" } },
    ]);
  });

  test("rejection notes the reason and writes nothing else", async () => {
    const { project, id } = await furnish(w);
    const rejected = await rejectRequest(w.admin, id, "use TOKEN");
    expect(rejected).toMatchObject({ status: "rejected", decidedBy: "ann@host", decisionReason: "use TOKEN" });
    expect(await names(w, project)).toEqual(["TOKEN"]);
    const [entry] = await listAudit(w.admin, { limit: 1 });
    expect(entry).toMatchObject({ action: "request.reject", project: "web", names: [id, "STRIPE_KEY"] });
  });

  test("what was decided stays decided", async () => {
    const filed = await furnish(w);
    const shown = await showRequest(w.admin, filed.id);
    await approveRequest(w.admin, shown, "first");
    const words = "was approved by ann@host already";
    await expectNothingDone(w, filed, () => approveRequest(w.admin, shown, "second"), "conflict", words);
    await expectNothingDone(w, filed, () => rejectRequest(w.admin, filed.id), "conflict", words);
    const other = await furnish(w);
    const pending = await showRequest(w.admin, other.id);
    await rejectRequest(w.admin, other.id);
    await expectNothingDone(w, other, () => approveRequest(w.admin, pending, "v"), "conflict", "was rejected by");
  });

  test("of two people at once one decides", async () => {
    const { project, id } = await furnish(w);
    const second = adminContextOf(w.installation, operator("ben@host"));
    // A second writer of SQLite waits without giving the first a turn, if both are in one process.
    const beside = w.dialect === "sqlite" ? { ...w.admin, actor: second.actor } : second;
    const shown = await showRequest(w.admin, id);
    const outcomes = await Promise.allSettled([
      approveRequest(w.admin, shown, "of-ann"),
      approveRequest(beside, shown, "of-ben"),
      rejectRequest(beside, id, "no"),
    ]);
    await second.close();
    expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
    const decided = (await listAudit(w.admin, { limit: 20 })).filter(
      ({ action, names }) => /^request\.(approve|reject)$/.test(action) && names[0] === id,
    );
    expect(decided).toHaveLength(1);
    const { status, decidedBy } = await showRequest(w.admin, id);
    expect((await names(w, project)).includes("STRIPE_KEY")).toBe(status === "approved");
    if (status === "approved") {
      const value = await revealVariable(w.admin, project.where, "production", "STRIPE_KEY");
      expect(value).toBe(decidedBy === "ann@host" ? "of-ann" : "of-ben");
    }
  });

  test("a variable that exists by then is not replaced", async () => {
    const filed = await furnish(w);
    await setVariables(w.admin, filed.project.where, "production", [{ name: "STRIPE_KEY", value: "set-by-hand" }]);
    const shown = await showRequest(w.admin, filed.id);
    const project = await expectNothingDone(w, filed, () => approveRequest(w.admin, shown, "v"), "exists", "exists in");
    expect(await revealVariable(w.admin, project.where, "production", "STRIPE_KEY")).toBe("set-by-hand");
  });

  test("equal requests are one as long as it is pending, those of one moment too", async () => {
    const { id, file } = await furnish(w);
    expect(await file("STRIPE_KEY")).toBe(id);
    expect(await file("STRIPE_KEY", "in other words")).toBe(id);
    const other = await file("OTHER");
    expect(other).not.toBe(id);
    expect(new Set(await Promise.all(Array.from({ length: 5 }, () => file("AT_ONCE")))).size).toBe(1);
    await rejectRequest(w.admin, id);
    const next = await file("STRIPE_KEY");
    expect(next).not.toBe(id);
  });

  test("a request says whether its key still stands, and is not approved if that changed meanwhile", async () => {
    const filed = await furnish(w);
    const shown = await showRequest(w.admin, filed.id);
    expect(shown).toMatchObject({ keyId: filed.keyId, keyStatus: "active", keyName: expect.any(String) });
    await revokeKey(w.admin, filed.keyId);
    expect(await showRequest(w.admin, filed.id)).toMatchObject({ keyStatus: "revoked" });
    expect((await listRequests(w.admin)).find(({ id }) => id === filed.id)).toMatchObject({ keyStatus: "revoked" });
    await expectNothingDone(w, filed, () => approveRequest(w.admin, shown, "v"), ...changed);
    await approveRequest(w.admin, await showRequest(w.admin, filed.id), "v");
    const gone = await furnish(w);
    await w.run("update variable_requests set key_id = ? where id = ?", ["no key", gone.id]);
    expect(await showRequest(w.admin, gone.id)).toMatchObject({ keyStatus: "gone", keyName: null });
  });

  test("an expired request cannot be decided", async () => {
    const filed = await furnish(w);
    const shown = await showRequest(w.admin, filed.id);
    w.clock.nowMs = shown.expiresAt;
    try {
      expect((await showRequest(w.admin, filed.id)).status).toBe("expired");
      await expectNothingDone(w, filed, () => approveRequest(w.admin, shown, "v"), "conflict", "has expired");
      await expectNothingDone(w, filed, () => rejectRequest(w.admin, filed.id), "conflict", "has expired");
    } finally {
      w.clock.nowMs = undefined;
    }
  });

  test("a project that was deleted, renamed or replaced meanwhile gets no variable", async () => {
    const deleted = await furnish(w);
    const shown = await showRequest(w.admin, deleted.id);
    await deleteProject(w.admin, deleted.project.where);
    await expectNothingDone(w, deleted, () => approveRequest(w.admin, shown, "v"), "not_found", "There is no request");
    await expectNothingDone(w, deleted, () => rejectRequest(w.admin, deleted.id), "not_found", "There is no request");

    const renamed = await furnish(w);
    const before = await showRequest(w.admin, renamed.id);
    await renameProject(w.admin, renamed.project.where, { slug: "shop" });
    await expectNothingDone(w, renamed, () => approveRequest(w.admin, before, "v"), ...changed);
    const [organization = ""] = renamed.project.where.split("/");
    const impostor = await w.project({ slug: organization } as never, "web");
    await expectNothingDone(w, renamed, () => approveRequest(w.admin, before, "v"), ...changed);
    expect(await names(w, impostor)).toEqual([]);
    // Looked at again, it is the renamed project's.
    await approveRequest(w.admin, await showRequest(w.admin, renamed.id), "v");
    expect(await names(w, { ...impostor, where: `${organization}/shop` })).toEqual(["STRIPE_KEY", "TOKEN"]);
  });

  test.each([
    ["name", "OTHER_NAME"],
    ["environment", "staging"],
    ["reason", "another reason"],
    ["key_id", "another key"],
  ])("a request whose %s SQL changed after it was shown is not approved", async (column, value) => {
    const filed = await furnish(w);
    const shown = await showRequest(w.admin, filed.id);
    await w.run(`update variable_requests set ${column} = ? where id = ?`, [value, filed.id]);
    await expectNothingDone(w, filed, () => approveRequest(w.admin, shown, "v"), ...changed);
    expect(await names(w, filed.project)).toEqual(["TOKEN"]);
  });

  test("a value, a name or a reason that no variable may have is refused", async () => {
    const filed = await furnish(w);
    const shown = await showRequest(w.admin, filed.id);
    const approve = (value: string | Uint8Array) => approveRequest(w.admin, shown, value);
    await expectNothingDone(w, filed, () => approve("a\0b"), "invalid", "holds a NUL character");
    await expectNothingDone(w, filed, () => approve("x".repeat(65_537)), "bound", "at most 65536");
    for (const [column, value, kept, error] of [
      ["name", "no name", "STRIPE_KEY", "is not a variable name"],
      ["environment", "prod", "production", "is not an environment"],
    ] as const) {
      await w.run(`update variable_requests set ${column} = ? where id = ?`, [value, filed.id]);
      const now = await showRequest(w.admin, filed.id);
      await expect(approveRequest(w.admin, now, "v")).rejects.toMatchObject({
        kind: "invalid",
        message: expect.stringContaining(error),
      });
      await w.run(`update variable_requests set ${column} = ? where id = ?`, [kept, filed.id]);
    }
    for (const reason of ["", "x".repeat(501)]) {
      const reject = () => rejectRequest(w.admin, filed.id, reason);
      await expectNothingDone(w, filed, reject, "invalid", "1 to 500 characters");
    }
  });

  test("requests are listed by organization, oldest first, and found by a prefix that is unique", async () => {
    const { id, file, project } = await furnish(w);
    const second = await file("SECOND");
    const [organization = ""] = project.where.split("/");
    const listed = await listRequests(w.admin, organization);
    expect(listed.map((one) => [one.id, one.name])).toEqual([
      [id, "STRIPE_KEY"],
      [second, "SECOND"],
    ]);
    const short = await shortRequestIds(w.admin);
    expect(short(id).length).toBeGreaterThanOrEqual(8);
    expect((await showRequest(w.admin, short(id))).id).toBe(id);
    await expect(showRequest(w.admin, id.slice(0, 7))).rejects.toThrow("an id takes at least 8 characters");
    await expect(showRequest(w.admin, "ffffffff")).rejects.toThrow('There is no request "ffffffff"');
    await expect(listRequests(w.admin, "nobody")).rejects.toThrow('There is no organization "nobody"');
  });
});
