import { describe, expect, test } from "bun:test";
import { MemoryBudget } from "../../src/serve/limit/budget.ts";
import { RememberedSets } from "../../src/serve/sets/remembered.ts";
import { answerOf, firstOf, headersOf, leaksIn, requestOf, tagged, usualHeaders } from "../support/answer.ts";
import { itemsOf, kinds, namesOf, ofKind } from "../support/kinds.ts";
import { numbered } from "../support/rows.ts";
import { describeBoth, expectMemoryBack, memoryWithoutLarge } from "../support/world.ts";

/* What a read promises, for every kind alike. What only one kind does is in the file of its name. */

describeBoth("a read of", (w, _, once) => {
  describe.each([...kinds])("%s", (kind) => {
    const { path, namesOnly, only, ordered, write, insert } = ofKind[kind];
    const staging = path("staging");
    const reader = { resources: [kind] };
    const names = (json: unknown) => namesOf(kind, json);
    const valuesOf = (json: unknown) => itemsOf(kind, json).map(ofKind[kind].textOf);
    const web = () => w.place({ key: reader });

    once("is in byte order of the names, which is not the order of UTF-16", async () => {
      const { project, organization, key } = await web();
      if (kind !== "variables") expect([...ordered].sort()).not.toEqual([...ordered]); // which is by UTF-16
      const shuffled = [...ordered].sort((a, b) => Bun.hash.crc32(a) - Bun.hash.crc32(b));
      await insert(w, project, shuffled, "staging");
      const filters = ["", namesOnly, ...(only ? [only(shuffled)] : [])];
      for (const filter of filters) {
        expect([filter, names((await w.ask(`${staging}${filter}`, { key })).json)]).toEqual([filter, [...ordered]]);
      }
      for (const environments of [["staging"], ["staging", "production"], undefined]) {
        const own = await w.key(organization, { ...reader, environments });
        for (const all of ofKind[kind].pathsOfAll) {
          expect([all, names((await w.ask(all, { key: own })).json)]).toEqual([all, [...ordered]]);
        }
      }
    });

    once("is an empty list if nothing matches", async () => {
      const { project, key } = await web();
      const text = ofKind[kind].empty("staging");
      await write(w, project.where, "production", "A", "1");
      for (const filter of ["", namesOnly, ...(only ? [only(["A"]), `${only(["A"])}${namesOnly}`] : [])]) {
        expect(await w.ask(`${staging}${filter}`, { key })).toMatchObject({ status: 200, text });
      }
      const reads = only ? 2 : 1;
      const entries = Array.from({ length: reads }, () => ofKind[kind].entriesOf([])).flat();
      expect((await w.audit(key)).map(({ names }) => names)).toEqual(entries.map((names) => [...names]));
    });

    test("shows a change and a deletion on the very next request", async () => {
      const { project, key } = await web();
      const { ask } = w.client();
      const read = async () => valuesOf((await ask(staging, { key })).json);
      for (const value of ["first", "second, which is longer"]) {
        await write(w, project.where, "staging", "A", value);
        expect(await read()).toEqual([value]);
      }
      await ofKind[kind].remove(w, project.where, "staging", "A");
      expect(await read()).toEqual([]);
    });

    once("for names alone is the same without values, decrypts nothing and is not audited", async () => {
      const { project, key } = await web();
      await insert(w, project, ["A", "B"], "staging");
      const whole = await w.ask(staging, { key });
      expect(whole.status).toBe(200);
      const before = await w.audit(key);
      await w.sql`update sets set sealed = ${Buffer.from("nothing")} where project_id = ${project.id} and kind <> 'files'`;
      await w.sql`update file_contents set sealed = ${Buffer.from("nothing")} where project_id = ${project.id}`;
      await w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${project.id}`;
      const answer = await w.ask(`${staging}${namesOnly}`, { key });
      const isValue = (field: string) => field === ofKind[kind].value;
      const withoutValues = JSON.stringify(whole.json, (field, value) => (isValue(field) ? undefined : value));
      expect([answer.status, answer.text]).toEqual([200, withoutValues]);
      expect(headersOf(answer)).toEqual(usualHeaders({ ...firstOf.metadata, ...tagged }));
      expect(await w.audit(key)).toEqual(before);
      expect((await w.ask(staging, { key })).status).toBe(503);
    });

    test("is on record before its first byte leaves, with the names and no value", async () => {
      const { organization, project, key } = await web();
      await insert(w, project, ["B", "A"], "staging");
      const startedAt = Date.now();
      const headers = { "x-request-id": "my-trace.7", "user-agent": `ci/1.0 \u00e9\t${"x".repeat(300)}` };
      const response = await w.handle(requestOf(staging, { key, headers }));
      const entries = await w.audit(key);
      expect(entries).toEqual(
        ofKind[kind].entriesOf(["A", "B"]).map((names) => ({
          time: expect.any(Number),
          actor: { type: "key", id: key.id },
          organization: organization.slug,
          project: "web",
          environment: "staging",
          action: ofKind[kind].action as never,
          names: [...names],
          count: names.length,
          requestId: "my-trace.7",
          clientAddress: "",
          userAgent: `ci/1.0 ??${"x".repeat(247)}`,
          lane: expect.stringMatching(/^[0-9a-f-]{36}$/),
          seq: expect.any(Number),
        })),
      );
      for (const { time } of entries) expect(time).toBeWithin(startedAt, Date.now() + 1);
      // The header names exactly these entries.
      const [first, last] = [entries[0], entries.at(-1)];
      const name = first === last ? `${first?.seq}` : `${first?.seq}-${last?.seq}`;
      expect(response.headers.get("keyhole-audit")).toBe(`${first?.lane}:${name}`);
      const values = valuesOf((await answerOf(response)).json);
      expect(values).toHaveLength(2);
      const rows = await w.sql`select * from audit_entries where key_id = ${key.id}`;
      for (const row of rows) expect(row).toMatchObject({ organization_id: organization.id, project_id: project.id });
      const long = values.filter((value) => value.length > 1);
      expect(leaksIn(long, JSON.stringify(rows))).toEqual([]);
    });

    describe("that is large", () => {
      /** 40 values of 30 KB in staging, of every character that a piece could be cut at, and one in production. */
      const large = numbered("N", 40);
      const valueFor = (name: string) => {
        const piece = ["x", '"\\', "é\n", "🦔"][large.indexOf(name) % 4] as string;
        return piece.repeat(30_000 / Buffer.byteLength(piece));
      };
      const largeWeb = async () => {
        const furnished = await web();
        await insert(w, furnished.project, large, "staging", valueFor);
        await write(w, furnished.project.where, "production", "SMALL", "a small one");
        return furnished;
      };
      /** Memory for one such read, and not for two at once. */
      const memoryForOne = () => new MemoryBudget(undefined, 1.5 * 1_200_000, 1.5 * 1_200_000);
      const clientOf = (memory: MemoryBudget) =>
        w.client(({ source }) => ({ source: { ...source, memory, remembered: new RememberedSets() } }));
      const none = { small: 0, large: 0 };

      test("gives its memory back however its answer ends", async () => {
        const { project, key } = await largeWeb();
        const { json, text } = await expectMemoryBack(w, staging, key, 1_200_000);
        expect(valuesOf(json)).toEqual(large.map(valueFor));
        expect(text).toBe(JSON.stringify(json));
        const memory = new MemoryBudget();
        await w.sql`update data_keys set wrapped = ${Buffer.alloc(66)} where project_id = ${project.id}`;
        expect((await clientOf(memory).ask(staging, { key })).status).toBe(503);
        expect(memory.bytesTaken).toEqual(none);
      });

      test("keeps no small one waiting, and its memory is waited for in order, by those who are still there", async () => {
        const { key } = await largeWeb();
        const memory = memoryForOne();
        const { handle, ask } = clientOf(memory);
        const one = await handle(requestOf(staging, { key }));
        const leaving = new AbortController();
        const waiting = handle(new Request(requestOf(staging, { key }), { signal: leaving.signal }));
        const next = handle(requestOf(staging, { key }));
        expect((await ask(`${staging}${namesOnly}`, { key })).status).toBe(200);
        expect(names((await ask(path("production"), { key })).json)).toEqual(["SMALL"]);
        leaving.abort();
        expect((await waiting).status).toBe(503);
        const first = await one.text();
        expect(await (await next).text()).toBe(first);
        expect(memory.bytesTaken).toEqual(none);
      });

      test("serves no key that was revoked while it waited", async () => {
        const { key } = await largeWeb();
        const memory = memoryForOne();
        const { handle, ask } = clientOf(memory);
        const one = await handle(requestOf(staging, { key }));
        const late = handle(requestOf(staging, { key }));
        expect((await ask("/organization", { key })).status).toBe(200); // the late one has been judged, too, and waits
        await w.sql`update api_keys set revoked_at = 1 where id = ${key.id}`;
        await one.text();
        expect((await late).status).toBe(401);
        expect(memory.bytesTaken).toEqual(none);
      });
    });

    once("that is small takes none of the memory for large ones", async () => {
      const { project, key } = await web();
      await write(w, project.where, "staging", "A", "a small one");
      const memory = memoryWithoutLarge();
      const { bytesTaken } = memory;
      const { ask } = w.client(({ source }) => ({ source: { ...source, memory } }));
      for (const filter of ["", ...(only ? [only(["A"])] : [])]) {
        expect(valuesOf((await ask(`${staging}${filter}`, { key })).json)).toEqual(["a small one"]);
        expect(memory.bytesTaken).toEqual(bytesTaken);
      }
    });
  });
});
