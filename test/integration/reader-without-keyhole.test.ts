/** `docs/clients/keyhole_reader.py`: a database and its root key are enough, also without Keyhole. */

import { Database as SqliteFile } from "bun:sqlite";
import { expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { putFile } from "../../src/kinds/files/write.ts";
import { canary } from "../support/canary.ts";
import { newFolder } from "../support/folder.ts";
import { notarize } from "../support/notarize.ts";
import { findProgram, whereInstalled } from "../support/programs.ts";
import { describeBoth, type World } from "../support/world.ts";

whereInstalled(["python3"], "in Python:", (python = "") => {
  const folder = newFolder();

  describeBoth("a database and its root key", (w, dialect) => {
    const run = async (...asked: readonly string[]) => {
      const path = join(folder, dialect);
      await (dialect === "sqlite" ? copy(w, path) : dump(w, path));
      const { rootKey } = w.config;
      writeFileSync(`${path}.key`, `${rootKey.from === "text" ? rootKey.text : ""}\n`);
      const words = ["../../docs/clients/keyhole_reader.py", path, `${path}.key`, ...asked];
      const env = { ...process.env, PYTHONDONTWRITEBYTECODE: "1" };
      const ran = Bun.spawnSync([python, ...words], { cwd: import.meta.dir, env });
      return { out: ran.stdout.toString(), error: ran.stderr.toString(), code: ran.exitCode };
    };

    test("give every value, who read it, and what was changed since", async () => {
      const text = `${canary} é\t\\N\n\u2028🔑`;
      const { key, project, organization } = await w.place({
        slug: "2026",
        variables: { production: { A: text, B: "" } },
        key: { resources: ["variables"], environments: ["production"] },
      });
      const content = Buffer.from(`${canary}\0\xff`);
      await putFile(w.admin, project.where, { path: "tls/key.pem", environments: ["production"], content });
      await w.client().ask("/projects/2026/variables?environment=production&keys=A", { key });
      await notarize(w);
      await w.client().ask("/projects/2026/variables?environment=production", { key });

      const values = await run("values", `${organization.slug}/2026`, "production");
      expect([values.error, values.code]).toEqual(["", 0]);
      const { variables, files } = JSON.parse(values.out);
      expect(variables).toMatchObject([
        { key: "A", value: text },
        { key: "B", value: "" },
      ]);
      expect(files).toMatchObject([{ path: "tls/key.pem", content: content.toString("base64") }]);

      const reads = (await run("reads")).out
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      const ofKey = reads.filter(({ actor }) => actor.id === key.id);
      expect(ofKey).toMatchObject([
        { action: "variables.read", names: ["A"], byName: true, environment: "production", project: "2026" },
        { action: "variables.read", names: ["A", "B"] },
      ]);
      expect(await run("verify")).toMatchObject({ error: "", code: 0, out: expect.stringMatching(/^Everything is/) });

      const lane = String(ofKey[0].entry).split(":")[0];
      const changes: readonly (readonly [change: string, flaw: string | RegExp])[] = [
        [
          `update audit_segments set texts = replace(texts, '2026', '2027') where lane = '${lane}'`,
          "what the tree has",
        ],
        [`delete from audit_segments where lane = '${lane}' and first_seq = 1`, "is in the tree and not in the audit"],
        ["update sets set listing = replace(listing, 'A', 'C')", "were not written by Keyhole"],
        ["update api_keys set environments = 7", `The row of the key ${key.id} was changed.`],
        ["delete from audit_leaves where leaf = (select max(leaf) from audit_leaves)", "of a tree that is not there"],
        ["update organizations set slug = 'other'", "The row of the organization other was changed."],
      ];
      for (const [change, flaw] of changes) {
        await w.run(change);
        const out = expect.stringContaining(`${flaw}`);
        expect([change, await run("verify")]).toMatchObject([change, { code: 1, out }]);
      }
    });
  });
});

async function copy(w: World, path: string): Promise<void> {
  rmSync(path, { force: true });
  const file = new SqliteFile(join(w.config.dataFolder, "keyhole.db"));
  file.run("VACUUM INTO ?", [path]);
  file.close();
}

/** By `pg_dump`, or as it writes the rows: it is not there on every machine. */
async function dump(w: World, path: string): Promise<void> {
  const program = findProgram("pg_dump");
  // One that is older than the server refuses.
  if (program !== undefined && Bun.spawnSync([program, "--file", path, w.databaseUrl ?? ""]).success) return;
  const columns =
    await w.run(`select table_name as name, column_name as col, data_type as type from information_schema.columns
    join pg_class on relname = table_name and relkind = 'r' where table_schema = 'public' order by table_name, ordinal_position`);
  const tables = Map.groupBy(columns, ({ name }) => String(name));
  let text = "";
  for (const [name, cols] of tables) {
    const names = cols.map(({ col }) => `"${col}"`).join(", ");
    const rows = await w.run(`select ${names} from "${name}"`);
    const lines = rows.map((row) => `${cols.map(({ col }) => field(row[String(col)])).join("\t")}\n`);
    text += `COPY public.${name} (${names}) FROM stdin;\n${lines.join("")}\\.\n\n`;
  }
  writeFileSync(path, text);
}

function field(value: unknown): string {
  if (value == null) return "\\N";
  const text = value instanceof Uint8Array ? `\\x${Buffer.from(value).toString("hex")}` : String(value);
  const escapes: Readonly<Record<string, string>> = {
    "\\": "\\\\",
    "\t": "\\t",
    "\n": "\\n",
    "\r": "\\r",
    "\b": "\\b",
  };
  return text.replace(/[\\\t\n\r\b]/g, (one) => escapes[one] ?? one);
}
