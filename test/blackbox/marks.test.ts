import { expect, test } from "bun:test";
import { onBoth, siteOf } from "../support/server.ts";

const dayMs = 86_400_000;
const inDays = (days: number) => new Date(Date.now() + days * dayMs).toISOString().slice(0, 10);

onBoth("a variable that the program marks for rotation", (dialect) => {
  const site = siteOf(dialect, { staging: { PLAIN: "1" } });
  const day = inDays(10);

  const set = (...more: string[]) => site.keyhole(["var", "set", "web", "staging", "MARKED", "--value", "1", ...more]);

  test("takes a day to come, and no other text", async () => {
    for (const text of ["2020-01-31", "2099-02-30", "soon"]) {
      expect(await set("--rotate-by", text)).toEqual({
        exitCode: 2,
        stdout: "",
        stderr: `keyhole: var set: --rotate-by cannot be '${text}': it takes a day in UTC that is not past, such as 2030-01-31. See 'keyhole var set --help'.\n`,
      });
    }
    expect(await site.json(["var", "list", "web", "staging"])).toHaveLength(1);
  });

  test("is listed with its day, and a later write without one takes it away", async () => {
    expect(await set("--rotate-by", day)).toEqual({
      exitCode: 0,
      stdout: "",
      stderr: `Created MARKED in web, staging. Rotate it by ${day}.\n`,
    });
    const [marked, plain] = (await site.json(["var", "list", "web", "staging"])) as object[];
    expect(marked).toEqual({ key: "MARKED", updatedAt: expect.any(Number), rotateBy: day });
    expect(plain).toEqual({ key: "PLAIN", updatedAt: expect.any(Number) });
    const table = (await site.keyhole(["var", "list", "web", "staging"])).stdout;
    expect(table).toMatch(new RegExp(`^NAME +UPDATED +ROTATE BY\nMARKED .* ${day}\nPLAIN .* -\n$`));
    await set();
    expect((await site.keyhole(["var", "list", "web", "staging"])).stdout).not.toContain("ROTATE BY");
  });

  test("is expiring, beside keys, in a table of 80 columns", async () => {
    await set("--rotate-by", day);
    const name = "a key with a name that is longer than any other";
    const { id } = await site.key("--org", "acme", "--name", name, "--expires-in", "5d");
    await site.key("--org", "acme");
    const found = (await site.json(["expiring"])) as object[];
    expect(found).toEqual([
      expect.objectContaining({ kind: "key", id, name, organization: "acme", expiresAt: expect.any(Number) }),
      {
        ...{ kind: "variable", organization: "acme", project: "web", environment: "staging", name: "MARKED" },
        ...{ rotateBy: day, dueAt: Date.parse(day) + dayMs, status: "due" },
      },
    ]);
    const { screen } = await site.onTerminal(["expiring"]).ended;
    for (const line of screen.split("\r\n")) expect(line.length).toBeLessThanOrEqual(80);
    expect(screen).toContain(`key ${id.slice(0, 8)}`);
    expect(screen).toMatch(new RegExp(`variable +MARKED +${day} +web +staging`));
    expect(await site.json(["expiring", "--within", "9d"])).toHaveLength(1);
    expect((await site.keyhole(["expiring", "--within", "1h"])).stderr).toBe(
      "Nothing expires or is to be rotated within 1 day.\n1 key never expires: keyhole key list --never-expires\n",
    );
  });

  test("is a metric, of each process and of several together", async () => {
    for (const args of dialect === "postgres" ? [[], ["--workers", "2"]] : [[]]) {
      const server = await site.serve({ args, env: { KEYHOLE_OPS_PORT: "0" } });
      const text = await (await fetch(`${server.ops()}/metrics`)).text();
      const days = (kind: string) =>
        Number(new RegExp(`^keyhole_next_expiry_days\\{kind="${kind}"\\} (\\S+)$`, "m").exec(text)?.[1]);
      expect(days("key")).toBeCloseTo(5, 1);
      expect(days("variable")).toBeCloseTo((Date.parse(day) + dayMs - Date.now()) / dayMs, 1);
      expect(await server.stop()).toBe(0);
    }
  });
});
