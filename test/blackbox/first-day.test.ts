import { beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { onBoth, type Server, siteOf } from "../support/server.ts";

/*
 * An operator's first day as the README tells it: the built program on a terminal of 80 columns, one command after the
 * other, beside a running server. Each test goes on where the one before it ended.
 */
onBoth("an operator's first day", (dialect) => {
  const site = siteOf(dialect);
  let server: Server;
  let key: string;
  const good = { API_TOKEN: "tok-good-1234", DATABASE_URL: "postgres://u:p@db/web", MOTD: "welcome to web" };
  const wrong = { API_TOKEN: "tok-wrong-5678", DATABASE_URL: "postgres://u:p@db/web", NEW_ONE: "nobody wanted this" };
  const values = [...new Set([...Object.values(good), ...Object.values(wrong)])];

  beforeAll(async () => {
    for (const [name, variables] of Object.entries({ good, wrong })) {
      const lines = Object.entries(variables).map(([key, value]) => `${key}="${value}"\n`);
      writeFileSync(join(site.folder, `${name}.env`), lines.join(""));
    }
  });

  /** Runs a command on the terminal and types the answers to its questions. No line of a table may wrap. */
  async function on80(command: string, ...answers: readonly string[]) {
    const terminal = site.onTerminal(command.split(" "), 80);
    for (const answer of answers) {
      await terminal.shows("[y/N] ");
      terminal.type(`${answer}\r`);
    }
    const { exitCode, screen } = await terminal.ended;
    for (const value of values) expect(screen).not.toContain(value);
    return { exitCode, screen, lines: screen.trimEnd().split("\r\n").map(Bun.stripANSI) };
  }

  async function done(command: string, ...answers: readonly string[]) {
    const ran = await on80(command, ...answers);
    expect(ran).toMatchObject({ exitCode: 0 });
    return ran;
  }

  /** A command that ends with a table: its rows without the header. */
  async function table(command: string) {
    const { lines } = await done(command);
    expect(lines.filter((line) => line.length > 80)).toEqual([]);
    return lines.slice(1).filter((line) => !line.startsWith("--wide shows "));
  }

  async function served(): Promise<Record<string, string>> {
    const answer = await server.get("/projects/web/variables?environment=production", key);
    expect(answer.status).toBe(200);
    const { variables } = answer.json() as { variables: { key: string; value: string }[] };
    return Object.fromEntries(variables.map((variable) => [variable.key, variable.value]));
  }

  test("creates an organization, a project and variables, and a machine reads them", async () => {
    await done("org create acme");
    server = await site.serve();
    await done("project create acme/web");
    const { screen } = await done("var import acme/web production good.env");
    expect(screen).toContain("3");
    const made = await done("key create --org acme --name ci --project web --env production");
    key = /kh_[0-9A-Za-z]{49}/.exec(made.screen)?.[0] ?? "";
    expect(made.screen).toMatch(/never\s+expires/);
    expect(await served()).toEqual(good);
  });

  test("sees what an import would change, and imports the wrong file all the same", async () => {
    const tried = await done("var import acme/web production wrong.env --dry-run");
    for (const name of ["API_TOKEN", "NEW_ONE"]) expect(tried.screen).toContain(name);
    expect(tried.screen).not.toContain("DATABASE_URL");
    expect(await served()).toEqual(good);
    await done("var import acme/web production wrong.env");
    expect(await served()).toEqual({ ...good, ...wrong });
  });

  test("sees what the import changed, and takes it back after a question", async () => {
    const diff = await done("var diff acme/web production --version 2");
    for (const name of ["API_TOKEN", "NEW_ONE"]) expect(diff.screen).toContain(name);
    const history = await table("history acme/web production variables");
    const versions = history.map((line) => /^ *(\d+) /.exec(line)?.[1]).filter((version) => version !== undefined);
    expect(versions).toEqual(["3", "2", "1"]);
    const refused = await on80("rollback acme/web production variables --to 2", "n");
    expect(refused).toMatchObject({ exitCode: 1 });
    expect(await served()).toEqual({ ...good, ...wrong });
    await done("rollback acme/web production variables --to 2", "y");
    expect(await served()).toEqual(good);
  });

  test("asks who can read the project, and revokes a key by the id that the table shows", async () => {
    const rows = await table("access acme/web production");
    expect(rows).toHaveLength(1);
    expect(rows[0]).toContain("ci");
    const listed = await table("key list");
    const id = listed[0]?.trim().split(/\s+/)[0] ?? "";
    expect(id).toMatch(/^[0-9a-f-]{8,36}$/);
    await done(`key revoke ${id}`, "y");
    const answer = await server.get("/projects/web/variables?environment=production", key);
    expect(answer.status).toBe(401);
  });

  test("deletes the project only after a yes", async () => {
    const script = await site.keyhole(["project", "delete", "acme/web"]);
    expect(script).toMatchObject({ exitCode: 2, stdout: "" });
    expect(script.stderr).toContain("--yes");
    expect(await on80("project delete acme/web", "n")).toMatchObject({ exitCode: 1 });
    expect(await table("project list")).toHaveLength(1);
    await done("project delete acme/web --yes");
    expect((await done("project list")).screen).not.toContain("web");
  });

  test("finds every change in the audit, with the person who made it", async () => {
    expect(await server.stop()).toBe(0);
    await table("audit list");
    const entries = (await site.json(["audit", "list"])) as { action: string; actor: { type: string } }[];
    const people = entries.filter(({ actor }) => actor.type === "person").map(({ action }) => action);
    expect(people).toEqual([
      "organization.create",
      "project.create",
      "variables.write",
      "key.create",
      "variables.write",
      "variables.rollback",
      "key.revoke",
      "project.delete",
    ]);
    // Before the wrong import, before and after the dry run, after the import, after the refusal, and after the rollback.
    expect(entries.filter(({ action }) => action === "variables.read")).toHaveLength(5);
    expect(await done("audit verify")).toMatchObject({ exitCode: 0 });
  });
});
