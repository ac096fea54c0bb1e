import { expect, test } from "bun:test";
import { deleteVariable, setVariables } from "../../src/admin/variables.ts";
import { describeBoth } from "../world.ts";

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
    return { w, project, read, write };
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

  test("a row deleted by SQL is made good by deleting what the set still has, once it is there to delete", async () => {
    const { w, project, read, write } = await place();
    await w.sql`delete from variables where project_id = ${project.id} and name = 'A'`;
    await write({ A: "x" });
    await deleteVariable(w.desk, project.where, "staging", "A");
    expect(await read()).toEqual({ B: "2" });
  });

  test.each([
    ["was taken", "delete from variable_sets where project_id = ?"],
    [
      "does not open",
      "update variable_sets set generation = generation, sealed = substr(sealed, 2) where project_id = ?",
    ],
  ])("an environment whose set %s serves again when people have written all of it", async (_, sql) => {
    const { w, project, read, write } = await place();
    await w.run(sql, [project.id]);
    expect(await read()).toBe(503);
    await write({ A: "1" });
    expect(await read()).toBe(503);
    await write({ B: "2" });
    expect(await read()).toEqual({ A: "1", B: "2" });
  });

  test("a change by SQL that is taken back leaves nothing behind", async () => {
    const { w, project, read } = await place();
    await w.sql`update variables set name = 'Z' where project_id = ${project.id} and name = 'A'`;
    expect(await read()).toBe(503);
    await w.sql`update variables set name = 'A' where project_id = ${project.id} and name = 'Z'`;
    expect(await read()).toEqual({ A: "1", B: "2" });
  });
});
