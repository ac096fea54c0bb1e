import { beforeAll, expect, test } from "bun:test";
import { type Key, onBoth, siteOf } from "../support/server.ts";

type Shown = { readonly status: string; readonly slug: string; readonly environments: readonly string[] };

onBoth("what cannot be undone", (dialect) => {
  const site = siteOf(dialect, { staging: { TOKEN: "1" } });
  let listing: Key;
  let every: Key;
  let trust: { readonly id: string };
  const changes = async () => ((await site.json(["audit", "list", "--limit", "1000"])) as object[]).length;
  const needsYes = (deed: string) => ({
    exitCode: 2,
    stdout: "",
    stderr: `keyhole: This would ${deed}. Nobody can be asked here, so it needs --yes.\n`,
  });
  /** Answers the question on a terminal. */
  const asked = async (args: readonly string[], question: string, keys: string) => {
    const terminal = site.onTerminal(args, 500);
    await terminal.shows(`This will ${question}. Go on? [y/N]`);
    terminal.type(keys);
    return (await terminal.ended).exitCode;
  };

  beforeAll(async () => {
    await site.json(["project", "create", "acme/taken"]);
    listing = await site.key("--name", "listing", "--project", "web", "--org", "acme");
    every = await site.key("--name", "every", "--org", "acme");
    const revoked = await site.key("--name", "revoked", "--project", "web", "--org", "acme");
    await site.json(["key", "revoke", revoked.id]);
    const issuer = ["--issuer", "https://ci.example.com", "--audience", "keyhole", "--claim", "sub=deploy"];
    const reach = ["--project", "web", "--all-environments"];
    trust = (await site.json([...["trust", "add", "--org", "acme", "--name", "deploy", ...issuer, ...reach]])) as {
      id: string;
    };
  });

  test("names the keys and trusts that it cuts off, and changes nothing before a yes", async () => {
    const before = await changes();
    const listed = `key ${listing.id} (listing), trust ${trust.id} (deploy)`;
    const all = `key ${listing.id} (listing), key ${every.id} (every), trust ${trust.id} (deploy)`;
    const holding = "with 1 variable, 0 accounts and 0 files, for good";
    for (const [args, deed] of [
      [["project", "rename", "web", "shop"], `rename project acme/web to acme/shop, and cut off ${listed}`],
      [["project", "delete", "web"], `delete project acme/web ${holding}, and cut off ${listed}`],
      [
        ["org", "plan", "acme", "free"],
        `put organization acme on plan free, where nothing can be read over the API, and cut off ${all}`,
      ],
    ] as const) {
      expect(await site.keyhole(args)).toEqual(needsYes(deed));
      const inJson = await site.keyhole([...args, "--json"]);
      expect([inJson.exitCode, JSON.parse(inJson.stderr)]).toEqual([
        2,
        expect.objectContaining({ code: "invalid_usage" }),
      ]);
      expect(await asked(args, deed, "n\r")).toBe(1);
    }
    expect(await changes()).toBe(before);
    // A plan or a slug that stays as it is cuts off nothing.
    expect(await site.json(["project", "rename", "web", "web", "--name", "Web"])).toMatchObject({ name: "Web" });
    expect(await site.json(["org", "plan", "acme", "pro"])).toMatchObject({ plan: "pro" });
  });

  test("is refused before it asks if it would be refused anyway", async () => {
    const before = await changes();
    for (const [args, exitCode, words] of [
      [["project", "rename", "web", "taken"], 1, "acme/taken exists already"],
      [["project", "rename", "web", "Not A Slug"], 2, "not a valid project slug"],
      [["project", "delete", "none"], 4, "There is no project"],
      [["org", "plan", "nobody", "free"], 4, "There is no organization"],
      [["org", "delete", "nobody"], 4, "There is no organization"],
      [["history", "purge", "none", "staging", "variables"], 4, "There is no project"],
      [["rollback", "web", "staging", "variables", "--to", "99"], 4, "99"],
      [["key", "revoke", "ffffffff"], 4, "ffffffff"],
    ] as const) {
      const ran = await site.keyhole(args);
      expect([args, ran.exitCode, ran.stderr]).toEqual([args, exitCode, expect.stringContaining(words)]);
    }
    expect(await changes()).toBe(before);
  });

  test("is asked of an account that leaves an environment, and said", async () => {
    const set = ["account", "set", "web", "stripe", "--env"];
    const environments = async () => {
      const [account] = (await site.json(["account", "list", "web"])) as Shown[];
      return account?.environments;
    };
    await site.json([...set, "staging,production"], '{"user":"ci"}');
    const deed = "take account stripe out of staging, production";
    expect(await site.keyhole([...set, "development"], '{"user":"ci"}')).toEqual(needsYes(deed));
    expect(await environments()).toEqual(["staging", "production"]);
    for (const [answer, exitCode] of [
      ["n\r", 1],
      ["y\r", 0],
    ] as const) {
      const terminal = site.onTerminal([...set, "development"], 200);
      await terminal.shows("Values of stripe");
      terminal.type('{"user":"ci"}\r');
      await terminal.shows(`This will ${deed}. Go on? [y/N]`);
      terminal.type(answer);
      expect((await terminal.ended).exitCode).toBe(exitCode);
    }
    expect(await environments()).toEqual(["development"]);
    // What only adds an environment asks nothing.
    await site.json([...set, "development,staging"], '{"user":"ci"}');
    expect(await site.keyhole([...set, "development", "--yes"], '{"user":"ci"}')).toEqual({
      exitCode: 0,
      stdout: "",
      stderr: "Account stripe updated in web for development. It is no longer in staging.\n",
    });
    expect(await site.json([...set, "production", "--yes"], '{"user":"ci"}')).toMatchObject({
      environments: ["production"],
      dropped: ["development"],
    });
  });

  test("is asked on a terminal and never elsewhere if it is a revocation", async () => {
    const shown = async (noun: string, id: string) => ((await site.json([noun, "show", id])) as Shown).status;
    for (const [noun, { id }, name] of [
      ["key", listing, "listing"],
      ["trust", trust, "deploy"],
    ] as const) {
      const deed = `revoke ${noun} ${id} (${name}) of acme, for good`;
      expect(await asked([noun, "revoke", id], deed, "n\r")).toBe(1);
      expect(await shown(noun, id)).toBe("active");
      expect(await asked([noun, "revoke", id], deed, "y\r")).toBe(0);
      expect(await shown(noun, id)).toBe("revoked");
    }
    expect(await site.keyhole(["key", "revoke", every.id])).toMatchObject({ exitCode: 0 });
    expect(await shown("key", every.id)).toBe("revoked");
  });
});
