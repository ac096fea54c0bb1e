import { expect, test } from "bun:test";
import { deleteAccount, setAccount } from "../../src/admin/accounts.ts";
import { deleteFile, listFiles, putFile } from "../../src/admin/files.ts";
import { createProject, deleteProject, listProjects } from "../../src/admin/projects.ts";
import { rotateData } from "../../src/admin/rotation.ts";
import { deleteVariable, listVariables, setVariables } from "../../src/admin/variables.ts";
import { SealedSets } from "../../src/read/sets.ts";
import { setQueries } from "../../src/store/sets.ts";
import { describeBoth, everything, type Row, type World } from "../world.ts";

describeBoth("sealed sets", (world) => {
  const place = async () => {
    const w = world();
    const organization = await w.organization();
    const project = await w.project(organization, "web", { variables: { staging: { A: "1", B: "2" } } });
    const key = await w.key(organization, { surfaces: ["rest_api"] });
    const read = async () => {
      const answer = await w.ask("/projects/web/variables?environment=staging", { key });
      if (answer.status !== 200) return answer.status;
      const { variables } = answer.json as { variables: { key: string; value: string }[] };
      return Object.fromEntries(variables.map(({ key, value }) => [key, value]));
    };
    const write = (entries: Record<string, string>) =>
      setVariables(
        w.desk,
        project.where,
        "staging",
        Object.entries(entries).map(([name, value]) => ({ name, value })),
      );
    return { w, project, key, read, write };
  };

  test("a row deleted by SQL is not made good by an innocent write, only by writing it again", async () => {
    const { w, project, read, write } = await place();
    await w.sql`delete from variables where project_id = ${project.id} and name = 'A'`;
    expect(await read()).toBe(503);
    await write({ C: "3" });
    expect(await read()).toBe(503);
    await write({ A: "1 again" });
    expect(await read()).toEqual({ A: "1 again", B: "2", C: "3" });
  });

  test("a row deleted by SQL is made good by deleting by name what the set still has", async () => {
    const { w, project, read } = await place();
    await w.sql`delete from variables where project_id = ${project.id} and name = 'A'`;
    const remove = () => deleteVariable(w.desk, project.where, "staging", "A");
    await remove();
    expect(await read()).toEqual({ B: "2" });
    const listed = await listProjects(w.desk, project.organization);
    expect(listed.map(({ variableCount }) => variableCount)).toEqual([1]);
    await expect(remove()).rejects.toMatchObject({ kind: "not_found" });
    expect(await read()).toEqual({ B: "2" });
  });

  const brokenSets = [
    ["was deleted", "delete from variable_sets where project_id = ? and environment = 'staging'"],
    [
      "does not open",
      "update variable_sets set sealed = substr(sealed, 2) where project_id = ? and environment = 'staging'",
    ],
    [
      "has another revision",
      "update variable_sets set revision = revision + 1 where project_id = ? and environment = 'staging'",
    ],
  ] as const;

  test.each(brokenSets)("a set that %s is a 503, and no write takes its place", async (_, sql) => {
    const { w, project, key, read, write } = await place();
    await w.run(sql, [project.id]);
    expect(await read()).toBe(503);
    const refusal = {
      kind: "conflict",
      message: `The record of which variables there are in ${project.where} staging was deleted or changed by other means than Keyhole's: nothing was written. Restore a backup, or delete the project and make it anew.`,
    };
    await expect(write({ C: "3" })).rejects.toMatchObject(refusal);
    await expect(write({ A: "1", B: "2" })).rejects.toMatchObject(refusal);
    await expect(deleteVariable(w.desk, project.where, "staging", "A")).rejects.toMatchObject(refusal);
    expect(await read()).toBe(503);
    // Nothing of it was written, and what is not touched goes on.
    const names = await listVariables(w.desk, project.where, "staging");
    expect(names.map(({ name, version }) => [name, version])).toEqual([
      ["A", 1],
      ["B", 1],
    ]);
    await setVariables(w.desk, project.where, "production", [{ name: "P", value: "p" }]);
    const production = "/projects/web/variables?environment=production";
    expect(await w.ask(production, { key })).toMatchObject({ status: 200, text: expect.stringContaining('"p"') });
    // The way out, where there is no backup.
    await deleteProject(w.desk, project.where);
    await createProject(w.desk, project.where, {});
    await write({ A: "anew" });
    expect(await read()).toEqual({ A: "anew" });
  });

  test.each(brokenSets)(
    "the row that is left beside a set that %s makes no environment of one, when it is written",
    async (_, sql) => {
      const { w, project, read, write } = await place();
      await w.run(sql, [project.id]);
      await w.sql`delete from variables where project_id = ${project.id} and name = 'A'`;
      await expect(write({ B: "innocent" })).rejects.toMatchObject({ kind: "conflict" });
      expect(await read()).toBe(503);
    },
  );

  test("what a set opened to is zeroed once the answer was made of it, in each spelling, small or not", async () => {
    const w = world();
    const organization = await w.organization();
    const project = await w.project(organization, "sizes", {});
    const key = await w.key(organization, { surfaces: ["rest_api", "ci_action"] });
    const opened: Buffer[] = [];
    const client = w.client(({ source }) => {
      const sets = new SealedSets(setQueries(w.keyhole.database), source.keyring);
      const find = sets.fetch.bind(sets);
      sets.fetch = async (...args) => {
        const set = await find(...args);
        if (typeof set !== "object") return set;
        const open = set.open.bind(set);
        set.open = () => {
          const bytes = open();
          opened.push(bytes);
          return bytes;
        };
        return set;
      };
      return { source: { ...source, sets } };
    });
    for (const length of [1, 20_000]) {
      await setVariables(w.desk, project.where, "staging", [{ name: "A", value: "x".repeat(length) }]);
      for (const path of [
        "/projects/sizes/variables?environment=staging",
        "/projects/sizes/variables?environment=staging&format=env",
        "/secrets?project=sizes&environment=staging",
        "/secrets?project=sizes&environment=staging&format=env",
      ]) {
        const answer = await client.ask(path, { key });
        expect(answer).toMatchObject({ status: 200, text: expect.stringContaining("x".repeat(length)) });
      }
    }
    expect(opened.length).toBe(8);
    for (const bytes of opened) expect(bytes.every((byte) => byte === 0)).toBe(true);
  });

  test("a change by SQL that is taken back leaves nothing behind", async () => {
    const { w, project, read } = await place();
    await w.sql`update variables set name = 'Z' where project_id = ${project.id} and name = 'A'`;
    expect(await read()).toBe(503);
    await w.sql`update variables set name = 'A' where project_id = ${project.id} and name = 'Z'`;
    expect(await read()).toEqual({ A: "1", B: "2" });
  });
});

describeBoth("the set of an environment that is too large for one", (world) => {
  const filler = (count: number, bytes: number) =>
    Array.from({ length: count }, (_, n) => ({ name: `FILLER_${n}`, value: "x".repeat(bytes) }));
  /** Over 4 MiB of JSON in staging, and what whoever reads all of it is served of its small ones, or refused with. */
  const place = async () => {
    const w = world();
    const organization = await w.organization();
    const project = await w.project(organization, "web", { variables: { staging: { A: "1", B: "2" } } });
    const key = await w.key(organization, { surfaces: ["rest_api"] });
    const read = async () => {
      const { status, json } = await w.ask("/projects/web/variables?environment=staging", { key });
      if (status !== 200) return status;
      const { variables } = json as { variables: { key: string; value: string }[] };
      return variables
        .filter(({ key }) => !key.startsWith("FILLER"))
        .map(({ key, value }) => `${key}=${value}`)
        .join();
    };
    const write = (entries: Record<string, string>) =>
      setVariables(
        w.desk,
        project.where,
        "staging",
        Object.entries(entries).map(([name, value]) => ({ name, value })),
      );
    const grow = (count = 70, bytes = 64 * 1024) =>
      setVariables(w.desk, project.where, "staging", filler(count, bytes));
    const [kept] = await w.sql`select * from variables where project_id = ${project.id} and name = 'A'`;
    const putBack = async ({ version, sealed, updated_at }: Row = kept as Row) => {
      await w.sql`update variables set version = ${version}, sealed = ${sealed}, updated_at = ${updated_at}
        where project_id = ${project.id} and name = 'A'`;
    };
    const rowOf = async (name: string) =>
      (await w.sql`select * from variables where project_id = ${project.id} and name = ${name}`)[0] as Row;
    return { w, project, read, write, grow, putBack, rowOf };
  };

  test("is written and read like any other, on its way to that size and back", async () => {
    const { w, project, read, write, grow } = await place();
    await grow();
    expect(await read()).toBe("A=1,B=2");
    await write({ A: "newer", C: "3" });
    await deleteVariable(w.desk, project.where, "staging", "B");
    expect(await read()).toBe("A=newer,C=3");
    await grow(1100, 1);
    expect(await read()).toBe(422);
    for (let n = 0; n < 103; n++) await deleteVariable(w.desk, project.where, "staging", `FILLER_${n}`);
    expect(await read()).toBe("A=newer,C=3");
    const [set] = await w.sql`select listing from variable_sets where project_id = ${project.id}
      and environment = 'staging'`;
    expect(set?.["listing"]).toContain('"key":"C"');
  });

  test("a row put back, deleted or added by SQL is a 503 there too, and not made good by an innocent write", async () => {
    const { w, project, read, write, grow, putBack, rowOf } = await place();
    await write({ A: "newer" });
    await grow();
    await putBack();
    expect(await read()).toBe(503);
    await write({ C: "3" });
    expect(await read()).toBe(503);
    await write({ A: "newest" });
    expect(await read()).toBe("A=newest,B=2,C=3");
    const before = await rowOf("A");
    await w.sql`delete from variables where project_id = ${project.id} and name = 'A'`;
    await write({ C: "4" });
    expect(await read()).toBe(503);
    await write({ A: "again" });
    expect(await read()).toBe("A=again,B=2,C=4");
    await putBack({ ...before, version: 1 });
    expect(await read()).toBe(503);
  });

  test("a row that was put back before its environment grew too large is not made good by growing, or shrinking", async () => {
    const { w, project, read, write, grow, putBack } = await place();
    await write({ A: "newer" });
    await putBack();
    await grow();
    expect(await read()).toBe(503);
    for (let n = 0; n < 70; n++) await deleteVariable(w.desk, project.where, "staging", `FILLER_${n}`);
    expect(await read()).toBe(503);
    await write({ A: "newest" });
    expect(await read()).toBe("A=newest,B=2");
  });

  test("an older set put back beside newer rows is a 503", async () => {
    const { w, project, read, write, grow } = await place();
    await grow();
    const [kept] = await w.sql`select revision, sealed from variable_sets where project_id = ${project.id}
      and environment = 'staging'`;
    await write({ A: "newer" });
    await w.sql`update variable_sets set revision = ${kept?.["revision"]}, sealed = ${kept?.["sealed"]}
      where project_id = ${project.id} and environment = 'staging'`;
    expect(await read()).toBe(503);
  });

  test("one that does not open is a 503, and no write takes its place", async () => {
    const { w, project, read, write, grow } = await place();
    await grow();
    await w.sql`update variable_sets set sealed = substr(sealed, 2) where project_id = ${project.id}`;
    await expect(write({ C: "3" })).rejects.toMatchObject({ kind: "conflict" });
    expect(await read()).toBe(503);
  });

  test("a row that does not open keeps no other from being sealed anew, and is mended by writing it", async () => {
    const { w, project, read, write, grow, rowOf } = await place();
    await grow();
    const damaged = Buffer.from((await rowOf("A"))["sealed"] as Buffer);
    damaged.writeUInt8(damaged.readUInt8(18) ^ 1, 18); // neither nonce nor tag, so its fingerprint is the same
    await w.sql`update variables set sealed = ${damaged} where project_id = ${project.id} and name = 'A'`;
    expect(await read()).toBe(503);
    expect(await rotateData(w.desk, project.where)).toMatchObject({ broken: [`A of ${project.where} staging`] });
    await write({ A: "mended" });
    expect(await read()).toBe("A=mended,B=2");
  });

  test("a rotation takes its rows along, and makes none good", async () => {
    const { w, project, read, write, grow, putBack } = await place();
    await grow();
    await rotateData(w.desk, project.where, undefined, 1_000_000);
    expect(await read()).toBe("A=1,B=2");
    await write({ A: "newer" });
    await rotateData(w.desk, project.where);
    expect(await read()).toBe("A=newer,B=2");
    const [row] = await w.sql`select * from variables where project_id = ${project.id} and name = 'A'`;
    await write({ A: "newest" });
    await putBack(row as Row);
    await rotateData(w.desk, project.where);
    expect(await read()).toBe(503);
  });
});

describeBoth("sets of accounts and files", (world) => {
  /** A project with two of each in staging and production, and what whoever reads all of them is served, or refused with. */
  const place = async () => {
    const w = world();
    const organization = await w.organization();
    const both = ["staging", "production"] as const;
    const project = await w.project(organization, "web", {
      accounts: ["a", "b"].map((name) => ({ name, environments: both, values: { of: name } })),
      files: ["a", "b"].map((path) => ({ path, environments: both, content: path })),
    });
    const key = await w.key(organization, everything);
    const { where, id } = project;
    const ask = async (path: string, list: "accounts" | "files", value: (item: Item) => string) => {
      const { status, json } = await w.ask(path, { key });
      if (status !== 200) return status;
      return (json as Record<string, Item[]>)[list]?.map(value).join();
    };
    const accounts = (environment = "staging") =>
      ask(
        `/projects/web/accounts${environment && `?environment=${environment}`}`,
        "accounts",
        ({ values }) => values.of,
      );
    const files = (environment = "staging", more = "") =>
      ask(`/files?project=web&environment=${environment}${more}`, "files", ({ content }) =>
        Buffer.from(content, "base64").toString(),
      );
    const set = (name: string, of: string, ...environments: string[]) =>
      setAccount(w.desk, where, name, environments, { of });
    const put = (path: string, content: string, ...environments: string[]) =>
      putFile(w.desk, where, { path, environments, content: Buffer.from(content) });
    return { w, id, where, accounts, files, set, put };
  };
  type Item = { readonly values: { readonly of: string }; readonly content: string };

  /** Takes a row as it is now, to put it back later. */
  const keep = async (w: World, table: string, id: string, name: string) => {
    const column = table === "files" ? "path" : "name";
    const rows = await w.run(`select * from ${table} where project_id = ? and ${column} = ?`, [id, name]);
    return async () => {
      await w.run(`delete from ${table} where project_id = ? and ${column} = ?`, [id, name]);
      for (const row of rows) {
        const columns = Object.keys(row);
        await w.run(
          `insert into ${table} (${columns.join(", ")}) values (${columns.map(() => "?").join(", ")})`,
          Object.values(row),
        );
      }
    };
  };

  test("an account deleted by SQL is not made good by an innocent write, only by writing it again", async () => {
    const { w, id, accounts, set } = await place();
    await w.sql`delete from accounts where project_id = ${id} and name = 'a'`;
    expect([await accounts(), await accounts("production"), await accounts("")]).toEqual([503, 503, 503]);
    expect(await accounts("development")).toBe("");
    await set("c", "c", "staging");
    expect(await accounts()).toBe(503);
    await set("a", "again", "staging", "production");
    expect([await accounts(), await accounts("production")]).toEqual(["again,b,c", "again,b"]);
  });

  test("a file deleted by SQL is not made good by an innocent write, only by putting it in place again", async () => {
    const { w, id, files, put } = await place();
    await w.sql`delete from files where project_id = ${id} and path = 'a'`;
    await put("c", "c", "staging");
    expect([await files(), await files("production"), await files("development")]).toEqual([503, 503, ""]);
    await put("a", "again", "staging", "production");
    expect([await files(), await files("production")]).toEqual(["again,b,c", "again,b"]);
  });

  test("an account put back as it was is a 503 until it is written or deleted", async () => {
    const { w, id, where, accounts, set } = await place();
    const putBack = await keep(w, "accounts", id, "a");
    await set("a", "newer", "staging", "production");
    await putBack();
    expect(await accounts()).toBe(503);
    await set("b", "innocent", "staging");
    expect([await accounts(), await accounts("production")]).toEqual([503, 503]);
    await set("a", "newest", "staging", "production");
    expect([await accounts(), await accounts("production")]).toEqual(["newest,innocent", "newest"]);
    await deleteAccount(w.desk, where, "a");
    await putBack();
    expect(await accounts()).toBe(503);
    await deleteAccount(w.desk, where, "a");
    expect([await accounts(), await accounts("production")]).toEqual(["innocent", ""]);
  });

  const byHand = [
    ["deleted", (table: string) => `delete from ${table} where project_id = ?`],
    ["narrowed", (table: string) => `update ${table} set environments = 4 where project_id = ?`],
    ["widened", (table: string) => `update ${table} set environments = 7 where project_id = ?`],
  ] as const;

  test.each(byHand)("accounts that SQL %s are mended by writing or deleting them by name", async (_, edit) => {
    const { w, id, where, accounts, set } = await place();
    const all = async () => [await accounts("development"), await accounts(), await accounts("production")];
    await w.run(edit("accounts"), [id]);
    expect(await all()).toContain(503);
    await deleteAccount(w.desk, where, "a");
    await set("b", "again", "staging");
    expect(await all()).toEqual(["", "again", ""]);
    const [web] = await listProjects(w.desk, where.split("/")[0]);
    expect(web).toMatchObject({ accountCount: 1 });
    await expect(deleteAccount(w.desk, where, "a")).rejects.toMatchObject({ kind: "not_found" });
    await deleteAccount(w.desk, where, "b");
    expect(await all()).toEqual(["", "", ""]);
  });

  test.each(byHand)("files that SQL %s are mended by putting or deleting them by path", async (_, edit) => {
    const { w, id, where, files, put } = await place();
    const all = async () => [await files("development"), await files(), await files("production")];
    await w.run(edit("files"), [id]);
    expect(await all()).toContain(503);
    const rows = await listFiles(w.desk, where);
    const stands = rows.find(({ path }) => path === "a")?.environments ?? [];
    await deleteFile(w.desk, where, "a", [...new Set(["staging", "production", ...stands])]);
    await put("b", "again", ...new Set(["staging", "production", ...stands]));

    const everywhere = stands.includes("development") ? "again" : "";
    expect(await all()).toEqual([everywhere, "again", "again"]);
    await expect(deleteFile(w.desk, where, "a", ["staging"])).rejects.toMatchObject({ kind: "not_found" });
    expect(await all()).toEqual([everywhere, "again", "again"]);
  });

  test("a file that does not open leaves no environment alone: it says which, and what mends it", async () => {
    const { w, id, where, files, put } = await place();
    await w.run("update files set environments = 7 where project_id = ? and path = 'a'", [id]);
    const refusal = {
      kind: "conflict",
      message:
        'The file "a" does not open: its row in development, staging, production was changed by other means than Keyhole\'s, and nothing was written. Put it anew in just these environments, or delete it from them.',
    };
    await expect(put("a", "newer", "staging")).rejects.toMatchObject(refusal);
    await expect(deleteFile(w.desk, where, "a", ["development"])).rejects.toMatchObject(refusal);
    expect([await files("development"), await files()]).toEqual([503, 503]);
    await put("a", "again", "development", "staging", "production");
    expect([await files("development"), await files()]).toEqual(["again", "again,b"]);
    await w.run("update files set environments = 3 where project_id = ? and path = 'a'", [id]);
    await deleteFile(w.desk, where, "a", ["development", "staging"]);
    await deleteFile(w.desk, where, "a", ["production"]);
    expect([await files("development"), await files(), await files("production")]).toEqual(["", "b", "b"]);
  });

  test.each([
    ["the version", "x'02' || substr(sealed, 2)"],
    ["the generation", "substr(sealed, 1, 2) || x'00000009' || substr(sealed, 7)"],
    ["the generation, beyond what its column holds,", "substr(sealed, 1, 2) || x'80000001' || substr(sealed, 7)"],
    ["all but the tag", "substr(sealed, length(sealed) - 15)"],
    ["everything", "x''"],
  ])("so does one of which SQL changed %s", async (_, sealed) => {
    const { w, id, files, put } = await place();
    const spelled = w.dialect === "postgres" ? sealed.replace(/x'(\d*)'/, "'\\x$1'::bytea") : `cast(${sealed} as blob)`;
    await w.run(`update files set sealed = ${spelled} where project_id = ? and path = 'a'`, [id]);
    expect(await files()).toBe(503);
    await expect(put("a", "newer", "staging")).rejects.toMatchObject({
      kind: "conflict",
      message: expect.stringContaining('The file "a" does not open'),
    });
    await put("a", "again", "staging", "production");
    expect(await files()).toBe("again,b");
  });

  test("a file opens by the data key that its bytes name, whatever its column says", async () => {
    const { w, id, where, files, put } = await place();
    await rotateData(w.desk, where);
    await w.run(
      `insert into data_keys (project_id, generation, root_id, wrapped, created_at)
        select project_id, 1, 'gone', wrapped, created_at from data_keys where project_id = ?`,
      [id],
    );
    await w.run("update files set generation = 1 where project_id = ? and path = 'a'", [id]);
    expect(await files()).toBe("a,b");
    await put("a", "newer", "staging");
    expect([await files(), await files("production")]).toEqual(["newer,b", "a,b"]);
  });

  test("a file whose data key does not open is not said to be changed", async () => {
    const { w, id, where, put } = await place();
    const putBack = await keep(w, "files", id, "a");
    await rotateData(w.desk, where);
    await w.run(
      `insert into data_keys (project_id, generation, root_id, wrapped, created_at)
        select project_id, 1, 'gone', wrapped, created_at from data_keys where project_id = ?`,
      [id],
    );
    await putBack();
    await expect(put("a", "newer", "staging")).rejects.toMatchObject({ code: "decryption_failed" });
  });

  test("a file put back as it was is not made good where it stays behind when another takes its other place", async () => {
    const { w, id, files, put } = await place();
    const putBack = await keep(w, "files", id, "a");
    await put("a", "newer", "staging", "production");
    await putBack();
    expect([await files(), await files("production")]).toEqual([503, 503]);
    await put("a", "newest", "production");
    expect([await files(), await files("production")]).toEqual([503, "newest,b"]);
    await put("a", "newest", "staging");
    expect(await files()).toBe("newest,b");
  });

  test("a file that was deleted and put back is no part of any set, until it is deleted again", async () => {
    const { w, id, where, files, put } = await place();
    const putBack = await keep(w, "files", id, "a");
    await deleteFile(w.desk, where, "a", ["staging", "production"]);
    await putBack();
    await put("c", "c", "production");
    expect([await files(), await files("production")]).toEqual([503, 503]);
    await deleteFile(w.desk, where, "a", ["production"]);
    expect([await files(), await files("production")]).toEqual([503, "b,c"]);
    await deleteFile(w.desk, where, "a", ["staging"]);
    expect(await files()).toBe("b");
  });

  test("files at some paths are what their rows say, whatever became of the others", async () => {
    const { w, id, files } = await place();
    await w.sql`delete from files where project_id = ${id} and path = 'a'`;
    expect(await files("staging", "&path=a&path=b")).toBe("b");
  });

  test("a change by SQL that is taken back leaves nothing behind", async () => {
    const { w, id, accounts, files } = await place();
    for (const table of ["accounts", "files"]) {
      await w.run(`update ${table} set updated_at = updated_at + 1 where project_id = ?`, [id]);
    }
    expect([await accounts(), await files()]).toEqual([503, 503]);
    for (const table of ["accounts", "files"]) {
      await w.run(`update ${table} set updated_at = updated_at - 1 where project_id = ?`, [id]);
    }
    expect([await accounts(), await files()]).toEqual(["a,b", "a,b"]);
  });

  test.each([
    ["was deleted", "delete from item_sets where project_id = ? and environment = 'staging'"],
    [
      "does not open",
      "update item_sets set sealed = substr(sealed, 2) where project_id = ? and environment = 'staging'",
    ],
  ])("a set that %s is a 503, empty or not, and no write takes its place", async (_, sql) => {
    const { w, id, where, accounts, files, set, put } = await place();
    await w.run(sql, [id]);
    await w.run(sql.replace("'staging'", "'development'"), [id]);
    expect([await accounts(), await accounts(""), await files()]).toEqual([503, 503, 503]);
    expect([await accounts("development"), await files("development")]).toEqual([503, 503]);
    expect([await accounts("production"), await files("production")]).toEqual(["a,b", "a,b"]);
    const refusal = (kind: string, environment: string) => ({
      kind: "conflict",
      message: expect.stringContaining(`which ${kind} there are in ${where} ${environment} was deleted or changed`),
    });
    await expect(set("c", "c", "staging")).rejects.toMatchObject(refusal("accounts", "development"));
    await expect(deleteAccount(w.desk, where, "a")).rejects.toMatchObject(refusal("accounts", "development"));
    // It says of every environment whether an account stands there.
    await expect(set("c", "c", "production")).rejects.toMatchObject(refusal("accounts", "development"));
    await expect(put("c", "c", "staging")).rejects.toMatchObject(refusal("files", "staging"));
    await expect(deleteFile(w.desk, where, "a", ["staging"])).rejects.toMatchObject(refusal("files", "staging"));
    // Nothing of it was written, and what is not touched goes on.
    expect((await listFiles(w.desk, where)).map(({ path }) => path)).toEqual(["a", "b"]);
    await put("c", "c", "production");
    expect([await accounts("production"), await files("production")]).toEqual(["a,b", "a,b,c"]);
    expect([await accounts(), await files()]).toEqual([503, 503]);
  });

  test("a listing that SQL changed is not taken for the set by the next write", async () => {
    const { w, id, accounts, set } = await place();
    await w.sql`delete from accounts where project_id = ${id} and name = 'a'`;
    const [row] = await w.sql`select listing from item_sets where project_id = ${id} and kind = 'accounts'
      and environment = 'staging'`;
    const listing = JSON.stringify((JSON.parse(row?.["listing"] as string) as string[][]).slice(1));
    await w.sql`update item_sets set listing = ${listing} where project_id = ${id} and kind = 'accounts'`;
    await expect(set("c", "c", "staging")).rejects.toMatchObject({ kind: "conflict" });
    expect(await accounts()).toBe(503);
  });

  test("an older seal beside newer rows is a 503", async () => {
    const { w, id, accounts, files, set, put } = await place();
    const kept = await w.sql`select * from item_sets where project_id = ${id} and environment = 'staging'`;
    await set("a", "newer", "staging", "production");
    await put("a", "newer", "staging", "production");
    for (const { kind, sealed, listing } of kept) {
      await w.sql`update item_sets set sealed = ${sealed}, listing = ${listing}
        where project_id = ${id} and kind = ${kind} and environment = 'staging'`;
    }
    expect([await accounts(), await files()]).toEqual([503, 503]);
    expect([await accounts("production"), await files("production")]).toEqual(["newer,b", "newer,b"]);
  });
});

describeBoth("sealed bytes that name a data key beyond what its column holds", (world) => {
  test.each(["variables", "variable_sets", "accounts", "item_sets", "files"])(
    "do not open, like any others: in %s",
    async (table) => {
      const w = world();
      const organization = await w.organization();
      const item = { environments: ["staging"] as const, content: "a", values: { of: "a" } };
      const { where, id } = await w.project(organization, "web", {
        variables: { staging: { A: "1", B: "2" } },
        accounts: [{ name: "a", ...item }],
        files: [{ path: "a", ...item }],
      });
      const beyond = w.dialect === "postgres" ? "'\\x80000001'::bytea" : "x'80000001'";
      const damaged = `substr(sealed, 1, 2) || ${beyond} || substr(sealed, 7)`;
      const bytes = w.dialect === "postgres" ? damaged : `cast(${damaged} as blob)`;
      await w.run(`update ${table} set sealed = ${bytes} where project_id = ?`, [id]);
      const writes = [
        () => setVariables(w.desk, where, "staging", [{ name: "A", value: "2" }]),
        () => setAccount(w.desk, where, "b", ["staging"], { of: "b" }),
        () => putFile(w.desk, where, { path: "b", environments: ["staging"], content: Buffer.from("b") }),
      ];
      for (const write of writes) {
        const problem = await write().then(
          () => undefined,
          (error: { kind?: string }) => error.kind,
        );
        expect(problem).toBeOneOf([undefined, "conflict"]);
      }
      expect((await rotateData(w.desk, where)).broken.length).toBeGreaterThan(0);
    },
  );
});
