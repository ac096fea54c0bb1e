import { describe, expect, test } from "bun:test";
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBinary } from "../support/keyhole.ts";
import { clusterOwner } from "../support/postgres.ts";
import { makeSite, siteOf } from "../support/server.ts";

/** Keys of both sorts in files: what replaces, keeps and shows them, and who may read them. */
describe("the root key and the data folder", () => {
  const site = siteOf("sqlite", { production: { A: "1" } });
  const rootKeys = () => readdirSync(site.data).filter((name) => name.startsWith("root.key"));

  test("rotate root --finish asks, and keeps the older root key beside the new one", async () => {
    expect((await site.keyhole(["rotate", "root", "--finish", "--yes"])).stderr).toContain("holds one root key");
    await site.json(["rotate", "root"]);
    const [, older] = readFileSync(join(site.data, "root.key"), "utf8").trim().split("\n");
    expect((await site.keyhole(["rotate", "root", "--finish"])).stderr).toContain("keep it in a file beside it");
    expect(readFileSync(join(site.data, "root.key"), "utf8").trim().split("\n")).toHaveLength(2);
    const { kept } = (await site.json(["rotate", "root", "--finish", "--yes"])) as { kept: string[] };
    expect(kept).toHaveLength(1);
    const retired = kept[0] ?? "";
    expect(retired).toStartWith(`${site.data}/root.key.retired-`);
    expect(readFileSync(retired, "utf8").trim()).toBe(older ?? "");
    expect(statSync(retired).mode & 0o777).toBe(0o600);
  });

  test("… unless --delete-old is given", async () => {
    const before = rootKeys();
    await site.json(["rotate", "root"]);
    expect((await site.keyhole(["rotate", "root", "--finish", "--delete-old"])).stderr).toContain("delete it");
    expect(await site.json(["rotate", "root", "--finish", "--delete-old", "--yes"])).toMatchObject({ kept: [] });
    expect(rootKeys()).toEqual(before);
    expect((await site.keyhole(["rotate", "root", "--delete-old"])).exitCode).toBe(2);
  });
});

describe("a key in a file", () => {
  const site = siteOf("sqlite", { production: { A: "1" } });
  const create = ["key", "create", "--org", "acme", "--all-projects", "--all-environments", "--out"];

  test("is in --out with mode 0600, and nowhere else", async () => {
    const ran = await site.keyhole([...create, "ci.key"]);
    expect(ran).toMatchObject({ exitCode: 0, stdout: "" });
    expect(ran.stderr).toEndWith("The key is in ci.key, and nowhere else.\n");
    expect(readFileSync(join(site.folder, "ci.key"), "utf8")).toMatch(/^kh_[0-9A-Za-z]{49}\n$/);
    expect(statSync(join(site.folder, "ci.key")).mode & 0o777).toBe(0o600);
    const document = (await site.json([...create, "json.key"])) as Record<string, unknown>;
    expect(document).toMatchObject({ out: "json.key" });
    expect(JSON.stringify(document)).not.toContain(readFileSync(join(site.folder, "json.key"), "utf8").trim());
    const rotated = await site.json(["key", "rotate", String(document["id"]), "--out", "next.key"]);
    expect(rotated).toMatchObject({ out: "next.key", predecessor: { id: document["id"] } });
  });

  test("replaces no file, and then no key is made", async () => {
    writeFileSync(join(site.folder, "taken"), "mine");
    const before = await site.json(["key", "list"]);
    const ran = await site.keyhole([...create, "taken"]);
    expect(ran).toEqual({
      exitCode: 1,
      stdout: "",
      stderr: "keyhole: taken is there already, and --out replaces no file: name another.\n",
    });
    expect(readFileSync(join(site.folder, "taken"), "utf8")).toBe("mine");
    expect(await site.json(["key", "list"])).toEqual(before);
  });

  test("that cannot be written leaves no valid key", async () => {
    const ran = await site.keyhole([...create, "none/ci.key"]);
    expect(ran).toMatchObject({ exitCode: 1, stdout: "" });
    expect(ran.stderr).toContain("was revoked, because nobody has its text");
  });

  test("that others can read earns a warning", async () => {
    const server = await site.serve();
    const pull = ["pull", "-p", "web", "-e", "production", "--url", server.origin, "--api-key-file", "ci.key"];
    expect((await site.keyhole(pull)).stderr).toBe("");
    chmodSync(join(site.folder, "ci.key"), 0o644);
    const ran = await site.keyhole(pull);
    expect(ran).toMatchObject({ exitCode: 0, stdout: "A=1\n" });
    expect(ran.stderr).toBe(
      "WARNING: The file of --api-key-file, ci.key, can be read by other users (mode 0644): chmod 600 ci.key\n",
    );
  });
});

const reader = process.getuid?.() === 0 ? clusterOwner()?.ids : undefined;
describe.skipIf(reader === undefined)("a data folder of another user", () => {
  test("is not taken for one without a Keyhole", async () => {
    const site = await makeSite("sqlite");
    try {
      await site.json(["org", "create", "acme"]);
      chmodSync(site.folder, 0o755);
      const as = ["setpriv", `--reuid=${reader?.uid}`, `--regid=${reader?.gid}`, "--clear-groups"];
      const refusal = async (args: readonly string[], data = site.data) => {
        const env = { ...site.env, PATH: "/usr/bin:/bin", KEYHOLE_DATA: data };
        const ran = await runBinary(args, { cwd: "/", env, as });
        expect(ran).toMatchObject({ exitCode: 2, stdout: "" });
        return ran.stderr;
      };
      const end = "belongs to root, and this user may not read it: is sudo missing?\n";
      for (const args of [
        ["org", "list"],
        ["serve"],
        ["backup", "/tmp/none.db"],
        ["backup", "verify", "/tmp/none.db"],
      ]) {
        expect(await refusal(args)).toBe(`keyhole: KEYHOLE_DATA ${site.data} ${end}`);
      }
      const inside = join(site.data, "more", "data");
      expect(await refusal(["org", "list"], inside)).toBe(
        `keyhole: KEYHOLE_DATA ${inside} lies in ${site.data}, which ${end}`,
      );
    } finally {
      await site.remove();
    }
  });
});
