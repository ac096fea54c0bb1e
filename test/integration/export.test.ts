import { expect, test } from "bun:test";
import { type ExportedFile, exportOrganization } from "../../src/people/backup/export.ts";
import { listAudit } from "../support/audit.ts";
import { personIn } from "../support/persons.ts";
import { describeBoth } from "../support/world.ts";

const quiet = { formats: [], warn: () => {} };

describeBoth("an export", (w) => {
  const content = Buffer.from([0, 255, 10, 13]);

  test("has what one organization has in every environment, byte for byte, and nothing of another", async () => {
    const { organization } = await w.place({
      variables: { production: { TOKEN: "a\r\n\u202e" }, staging: { TOKEN: "b" } },
      accounts: [{ name: "../../../etc/passwd", environments: ["staging"], values: { __proto__x: "1", user: "ci" } }],
      files: [{ path: "tls/a.pem", environments: ["production"], content, mode: "0400" }],
    });
    await w.place({ variables: { production: { OTHER: "of another" } } });
    const files = new Map<string, ExportedFile>();
    for await (const file of exportOrganization(w.admin, organization.slug, quiet)) files.set(file.path, file);
    expect([...files.keys()].sort()).toEqual([
      ...["organization.json", "web/production/files.json", "web/production/files/tls/a.pem"],
      ...["web/production/variables.json", "web/staging/accounts.json", "web/staging/variables.json"],
    ]);
    const read = (path: string) => JSON.parse(String(Buffer.from(files.get(path)?.content ?? [])));
    expect(read("web/production/variables.json")).toEqual({ TOKEN: "a\r\n\u202e" });
    expect(read("web/staging/accounts.json")).toEqual({ "../../../etc/passwd": { __proto__x: "1", user: "ci" } });
    expect(files.get("web/production/files/tls/a.pem")).toMatchObject({ mode: "0400", content });
  });

  test("gives nothing of a set before its names are on record as revealed", async () => {
    const { organization } = await w.place({
      variables: { production: { TOKEN: "a" } },
      files: [{ path: "a", environments: ["production"], content }],
    });
    const reveals = async () =>
      (await listAudit(w.admin, { organization: organization.slug }))
        .filter(({ action }) => action.endsWith(".reveal"))
        .map(({ action, names }) => `${action} ${names}`)
        .sort();
    for await (const { path } of exportOrganization(w.admin, organization.slug, quiet)) {
      if (path.includes("/variables")) expect(await reveals()).toEqual(["variables.reveal TOKEN"]);
      if (path.includes("/files")) expect(await reveals()).toEqual(["files.reveal a", "variables.reveal TOKEN"]);
    }
    expect(await reveals()).toHaveLength(2);
  });

  test("is for operators alone", async () => {
    const { organization, where } = await w.place({ variables: { production: { TOKEN: "a" } } });
    const ana = await personIn(w.admin, where, ["see", "reveal", "write", "keys"]);
    await expect(exportOrganization(ana, organization.slug, quiet).next()).rejects.toThrow("Only an operator");
    expect(await listAudit(w.admin, { organization: organization.slug, actions: ["variables.reveal"] })).toEqual([]);
  });
});
