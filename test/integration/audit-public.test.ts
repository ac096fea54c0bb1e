/** `audit verify --public`, as an auditor runs it: without a root key, and with no other right than the page grants. */
import { beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { cpSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { verifyTree } from "../../src/cli/audit-proof.ts";
import { auditKeys } from "../../src/people/audit/audit-proof.ts";
import { parseVerifier, type Verifier } from "../../src/record/note.ts";
import { contextOf, streamTo } from "../support/context.ts";
import { newFolder } from "../support/folder.ts";
import { notarize } from "../support/notarize.ts";
import { describeBoth } from "../support/world.ts";

const page = readFileSync(join(import.meta.dir, "../../docs/proof.md"), "utf8");
const [, granted = ""] = /^GRANT SELECT ON (.*) TO keyhole_auditor;$/m.exec(page) ?? [];

describeBoth("an auditor", (w, dialect) => {
  let keys: readonly Verifier[];
  beforeAll(async () => {
    await w.place({ variables: { production: { A: "1" } } });
    await notarize(w);
    keys = (await auditKeys(w.admin)).map((key) => parseVerifier(key) as Verifier);
  });
  /** What the command prints with `--json`. */
  const verified = async (env: Readonly<Record<string, string>>) => {
    let printed = "";
    const stdout = streamTo((chunk) => {
      printed += Buffer.from(chunk).toString();
    });
    await verifyTree(contextOf({ env, json: true, terminal: { ...process, stdout } as never }), keys);
    return JSON.parse(printed) as unknown;
  };
  const whole = { verified: true, heads: 1 };

  if (dialect === "sqlite") {
    test("verifies a copy of the database with the public key alone", async () => {
      const folder = join(newFolder(), "copy");
      cpSync(w.config.dataFolder, folder, { recursive: true });
      rmSync(join(folder, "root.key"), { force: true });
      expect(await verified({ KEYHOLE_DATA: folder })).toMatchObject(whole);
    });
  } else {
    test("verifies the tree with the public key alone, and by the rights of the page, each of which it needs", async () => {
      const role = `auditor_${randomBytes(4).toString("hex")}`;
      await w.run(`create role ${role} login password 'of-a-test'`);
      await w.run(`grant select on ${granted} to ${role}`);
      const url = Object.assign(new URL(w.databaseUrl as string), { username: role, password: "of-a-test" });
      const env = { DATABASE_URL: url.href };
      try {
        expect(await verified(env)).toMatchObject(whole);
        for (const table of granted.split(", ")) {
          await w.run(`revoke select on ${table} from ${role}`);
          const refused = await verified(env).catch((error: { cause?: { code?: string } }) => error.cause?.code);
          expect([table, refused]).toEqual([table, "42501"]);
          await w.run(`grant select on ${table} to ${role}`);
        }
      } finally {
        await w.run(`drop owned by ${role}`);
        await w.run(`drop role ${role}`);
      }
    });
  }
});
