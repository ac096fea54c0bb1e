/** A real `.env` file, from the disk through `var import` and HTTP into the programs that people feed with one. */
import { beforeAll, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findReaders } from "../support/readers/readers.ts";
import { type Server, siteOf } from "../support/server.ts";

const pem = () =>
  generateKeyPairSync("rsa", {
    modulusLength: 2048,
    publicKeyEncoding: { type: "spki", format: "pem" },
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
  }).privateKey;
const privateKey = pem();
const otherKey = pem();

/** How people write values: the text after the name, and the value that they mean. `@` becomes the variable's number. */
const styles: readonly (readonly [text: string, value: string])[] = [
  ["=@000", "@000"],
  ['="https://api@.example.com/v1?a=b&c=%20#top"', "https://api@.example.com/v1?a=b&c=%20#top"],
  [' = "two words, spaced"   # a comment', "two words, spaced"],
  ["=postgres://app:p%40ss@db-@.internal:5432/app", "postgres://app:p%40ss@db-@.internal:5432/app"],
  [`="${privateKey}"`, privateKey],
  [`="${otherKey.trimEnd().replaceAll("\n", "\\n")}\\n"`, otherKey],
  [`='${privateKey.trimEnd()}'`, privateKey.trimEnd()],
  ["='p@$$w0rd$HOME and $(date) stay'", "p@$$w0rd$HOME and $(date) stay"],
  [`="costs $5, not $ENV_@ nor \${ENV_@}"`, `costs $5, not $ENV_@ nor \${ENV_@}`],
  ["='say \"it\"'", 'say "it"'],
  ['="it\'s number @"', "it's number @"],
  ['=`it\'s "both" of @`', `it's "both" of @`],
  ['="Grüße, 世界 — 🔑 @"', "Grüße, 世界 — 🔑 @"],
  ["=žluťoučký-kůň-@", "žluťoučký-kůň-@"],
  [
    `='{"type":"service_account","id":@,"nested":{"list":[1,2]}}'`,
    `{"type":"service_account","id":@,"nested":{"list":[1,2]}}`,
  ],
  ["='{\n  \"pretty\": @\n}'", '{\n  "pretty": @\n}'],
  ["='C:\\Users\\me\\@'", "C:\\Users\\me\\@"],
  ["=", ""],
  ['=""', ""],
  ["=a=b==", "a=b=="],
  ["='# not a comment'", "# not a comment"],
  ['="tab\there"', "tab\there"],
  ['="  kept blanks  "', "  kept blanks  "],
  ["='*.@.example.com;rm -rf /|&<>'", "*.@.example.com;rm -rf /|&<>"],
  ["=sk_live_51H@xYz0123456789abcdefABCDEF", "sk_live_51H@xYz0123456789abcdefABCDEF"],
];

const count = 200;
const expected = new Map<string, string>();
let envFile = "# Everything that production needs\n\n";
for (let n = 0; n < count; n++) {
  const [text, value] = styles[n % styles.length] as readonly [string, string];
  const name = `${n % 3 === 0 ? "APP" : "Service"}_${n}`;
  expected.set(name, value.replaceAll("@", String(n)));
  envFile += `${n % 10 === 7 ? "export " : ""}${name}${text.replaceAll("@", String(n))}\n${n % 20 === 0 ? "\n# more\n" : ""}`;
}
const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));
const { readers, missing } = await findReaders();
if (missing.length > 0) process.stderr.write(`NOT ON THIS MACHINE, and so not asked: ${missing.join(", ")}.\n`);

describe("a .env file of 200 variables", () => {
  const site = siteOf("sqlite", {});
  let server: Server;
  let key: string;
  beforeAll(async () => {
    server = await site.serve();
    ({ key } = await site.key("--org", "acme", "--surface", "rest_api,ci_action"));
    const path = join(site.folder, "production.env");
    writeFileSync(path, envFile);
    expect(await site.json(["var", "import", "acme/web", "production", path])).toMatchObject({
      created: count,
      updated: 0,
    });
  });

  const read = async (query: string) => server.get(`/projects/web/variables?environment=production${query}`, key);

  test("comes out of JSON byte for byte, in the byte order of names", async () => {
    const answer = await read("");
    const { variables } = answer.json<{ variables: { key: string; value: string }[] }>();
    expect(answer.status).toBe(200);
    expect(variables.map((variable) => variable.key)).toEqual([...expected.keys()].sort(byBytes));
    for (const variable of variables)
      expect([variable.key, variable.value]).toEqual([variable.key, expected.get(variable.key) as string]);
  });

  test("comes out of /secrets and of single names byte for byte", async () => {
    const all = await server.get("/secrets?project=web&environment=production", key);
    expect(all.json<{ secrets: object }>().secrets).toEqual(Object.fromEntries(expected));
    const answer = await read("&keys=APP_0,Service_4,absent");
    expect(answer.json<{ variables: unknown[] }>().variables).toMatchObject([
      { key: "APP_0", value: expected.get("APP_0") as string },
      { key: "Service_4", value: expected.get("Service_4") as string },
    ]);
  });

  describe("as format=env", () => {
    let path: string;
    let nonportable: Set<string>;
    beforeAll(async () => {
      const answer = await read("&format=env");
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
      path = join(site.folder, "read.env");
      writeFileSync(path, answer.body);
      nonportable = new Set(answer.headers.get("keyhole-env-nonportable")?.split(", "));
    });

    test("names those values that few readers read alike, and they are few kinds", () => {
      for (const name of nonportable) expect([...expected.keys()]).toContain(name);
      const portable = [...expected].filter(([name]) => !nonportable.has(name));
      expect(portable.length).toBeGreaterThan(count * 0.8);
      for (const name of nonportable) expect(expected.get(name)).toMatch(/\$|'/);
    });

    test.each(readers.map((reader) => [reader.name, reader] as const))(
      "%s reads every portable value back",
      async (name, reader) => {
        const folder = join(site.folder, name.replace(/[^a-z]/gi, "-"));
        mkdirSync(folder);
        const own = join(folder, "read.env");
        writeFileSync(own, readFileSync(path));
        const [reading = new Map()] = await reader.read([own], folder);
        const portable = [...expected].filter(([variable]) => !nonportable.has(variable));
        const lost = portable.filter(([variable, value]) => reading.get(variable) !== value);
        expect(lost).toEqual([]);
        // And nothing that was not there: a value that ends too soon would leave the rest as variables of their own.
        expect([...reading.keys()].filter((variable) => !expected.has(variable))).toEqual([]);
      },
    );

    test("goes in again by var import as it came out", async () => {
      const answer = await site.keyhole(["var", "import", "acme/web", "staging", path]);
      expect(answer).toMatchObject({ exitCode: 0, stdout: "" });
      const again = await server.get("/projects/web/variables?environment=staging", key);
      const values = new Map(
        again.json<{ variables: { key: string; value: string }[] }>().variables.map((one) => [one.key, one.value]),
      );
      expect(values.size).toBe(count);
      for (const [name, value] of expected)
        if (!nonportable.has(name)) expect([name, values.get(name)]).toEqual([name, value]);
    });
  });

  test("with one line that cannot be read is not imported at all", async () => {
    const path = join(site.folder, "broken.env");
    writeFileSync(path, `${envFile.replaceAll("=@", "=changed")}\nBROKEN="never closed\n`);
    const ran = await site.keyhole(["var", "import", "acme/web", "development", path]);
    expect(ran.exitCode).toBe(2);
    expect(ran.stderr).toContain("Nothing was imported.");
    expect(await site.json(["var", "list", "acme/web", "development"])).toEqual([]);
  });
});
