import { expect, test } from "bun:test";
import { encodeEntries } from "../../src/audit/segment.ts";
import { setVariables } from "../../src/kinds/variables/write.ts";
import { readsByHour } from "../../src/people/reads.ts";
import { describeBoth, everything, type Placed, type World } from "../support/world.ts";

const hourMs = 3_600_000;
const noon = Date.parse("2030-01-02T12:00:00Z");

/** Puts reads into the journal, each at its time. They are not sealed, which only `audit verify` looks at. */
async function record(
  w: World,
  { id, slug, where }: Placed,
  reads: readonly { at: number; action?: string; count?: number }[],
) {
  for (const { at, action = "variables.read", count = 1 } of reads) {
    const entry = {
      actor: { type: "key", id: "01900000-0000-7000-8000-000000000000" },
      organizationId: "",
      organization: where.split("/")[0],
      projectId: id,
      project: slug,
      environment: "staging",
      action,
      names: ["A", "B"],
      requestId: "",
      clientAddress: "",
      userAgent: "",
    } as never;
    const { texts, entries } = encodeEntries(Array.from({ length: count }, () => entry));
    await w.sql`insert into audit_segments (lane, first_seq, last_seq, at, texts, entries, mac)
      values (${Bun.randomUUIDv7()}, 1, ${count}, ${at}, ${texts}, ${entries}, ${Buffer.alloc(32)})`;
  }
}

describeBoth("reads by the hour", (w) => {
  const project = async () => w.project(await w.organization(), "web", { variables: { staging: { A: "1" } } });
  /** Hours as `HH:count`, in UTC. */
  const count = async ({ where }: Placed, sinceAt: number, more: object = {}) => {
    const { hours, isWhole } = await readsByHour(w.admin, { project: where, ...more }, sinceAt);
    for (const { at } of hours) expect(at % hourMs).toBe(0);
    const shown = hours.map(({ at, count }) => `${new Date(at).toISOString().slice(11, 13)}:${count}`);
    return `${shown.join(" ")}${isWhole ? "" : " and more"}`;
  };

  test("count what machines read of what the filter finds, with the hours in which they read nothing", async () => {
    const web = await project();
    const other = await project();
    w.clock.nowMs = noon + hourMs / 2;
    await setVariables(w.admin, web.where, "staging", [{ name: "A", value: "2" }]);
    await record(w, other, [{ at: noon }]);
    await record(w, web, [
      { at: noon - 4 * hourMs - 1 },
      { at: noon - 4 * hourMs, action: "accounts.read" },
      { at: noon - 3 * hourMs - 1 },
      { at: noon - hourMs, count: 3 },
      { at: noon - 1 },
      { at: noon },
      { at: noon, action: "request.file" },
      { at: noon + hourMs - 1, action: "file.read" },
      { at: noon + hourMs }, // the clock of another server is ahead
    ]);
    expect(await count(web, noon - 4 * hourMs)).toBe("08:2 09:0 10:0 11:4 12:2");
    // The first hour is whole even if the moment is within it; what was before the moment is not counted.
    expect(await count(web, noon - 4 * hourMs + 1)).toBe("08:1 09:0 10:0 11:4 12:2");
    expect(await count(web, noon - 4 * hourMs, { beforeAt: noon })).toBe("08:2 09:0 10:0 11:4");
    expect(await count(web, noon - 4 * hourMs, { beforeAt: noon - 1 })).toBe("08:2 09:0 10:0 11:3");
    expect(await count(web, noon, { actions: ["file.read", "variables.write"] })).toBe("12:1");
    expect(await count(web, noon, { actions: ["variables.write"] })).toBe("12:0");
    expect(await count(web, noon, { name: "B" })).toBe("12:2");
    expect(await count(web, noon, { environment: "production" })).toBe("12:0");
    expect(await count(web, noon + hourMs)).toBe("");
    await expect(readsByHour(w.admin, { project: `${web.where}-none` }, noon)).rejects.toMatchObject({
      kind: "not_found",
    });
    w.clock.nowMs = undefined;
  });

  test("are the newest 10,000, and say if there were more", async () => {
    const web = await project();
    w.clock.nowMs = noon;
    await record(w, web, [
      { at: noon - 3 * hourMs, count: 2 },
      { at: noon - 2 * hourMs, count: 5_000 },
      { at: noon, count: 4_998 },
    ]);
    expect(await count(web, noon - 3 * hourMs)).toBe("09:2 10:5000 11:0 12:4998");
    await record(w, web, [{ at: noon, count: 4 }]);
    expect(await count(web, noon - 3 * hourMs)).toBe("10:4998 11:0 12:5002 and more");
    expect(await count(web, noon - 2 * hourMs)).toBe("10:4998 11:0 12:5002 and more");
    expect(await count(web, noon - hourMs)).toBe("11:0 12:5002");
    w.clock.nowMs = undefined;
  });

  test("have the reads of a real key in the present hour", async () => {
    const { project: web, key } = await w.place({ variables: { staging: { A: "1" } }, key: everything });
    const sinceAt = Date.now();
    for (const _ of [1, 2]) {
      expect((await w.client().ask("/projects/web/variables?environment=staging", { key })).status).toBe(200);
    }
    const { hours, isWhole } = await readsByHour(w.admin, { keyId: key.id, project: web.where }, sinceAt);
    expect(isWhole).toBeTrue();
    expect(hours.reduce((sum, { count }) => sum + count, 0)).toBe(2);
  });
});
