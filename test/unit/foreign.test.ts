import { describe, expect, test } from "bun:test";
import { validateAccount } from "../../src/kinds/accounts/write.ts";
import { unseenInValues, valueWarnings } from "../../src/kinds/variables/env-file.ts";
import { parseImport } from "../../src/kinds/variables/import-text.ts";
import { entriesOf } from "../support/entries.ts";

const sops = "ENC[AES256_GCM,data:8Rk=,iv:f3N1,tag:8vQ=,type:str]";
const dotenvx = `encrypted:${"B".repeat(120)}=`;

/** A text that sets one variable, in each format that is imported. */
const texts = (name: string, value: string) => ({
  env: `OK=1\n${name}='${value}'\n`,
  json: JSON.stringify({ OK: "1", [name]: value }, null, 1).replace("{\n ", "{"),
  yaml: `OK: "1"\n${name}: ${JSON.stringify(value)}\n`,
});

describe("text of another tool in place of a value", () => {
  test.each([
    ...Object.entries({
      DB: sops,
      sops_mac: sops,
      sops_version: "3.9.0",
      sops_age__list_0__map_recipient: "age1x",
    }).map((row): [string, string, string] => [...row, "still encrypted by SOPS"]),
    ["DB", dotenvx, "still encrypted by dotenvx"],
    ["DOTENV_PUBLIC_KEY_PRODUCTION", "03ab", "encrypted by dotenvx"],
    ["DB", "vault:v1:8SDd3WHDOjf7mq69CyCqYjBXAiQQAVZRkFM13ok481zoCmHnSeDX9vyf", "still encrypted by Vault"],
    ["DB", "$ANSIBLE_VAULT;1.1;AES256 61626364", "still encrypted by Ansible"],
    ["DB", "op://acme/web server/password", "reference of 1Password"],
    ["DB", "{{ op://acme/web/password }}", "reference of 1Password"],
    ["DB", "ref+awssecrets://prod/web#/db", "reference of vals"],
    ["DB", "vault:secret/data/web#DB", "reference to Vault"],
    ["DB", ">>vault:database/creds/role#password", "reference to Vault"],
  ])("is refused by line and name, in every format: %s=%s", (name, value, says) => {
    for (const [format, text] of Object.entries(texts(name, value))) {
      const parsed = parseImport(format as "env", text);
      expect([format, parsed.problems.length]).toEqual([format, 1]);
      expect(parsed.problems[0]).toStartWith(`line 2: ${name} `);
      expect(parsed.problems[0]).toContain(says);
      expect(parsed.problems[0]).toContain("--literal");
      expect(parsed.problems[0]).not.toContain(value);
      const literal = parseImport(format as "env", text, () => true);
      expect(literal.problems).toEqual([]);
      expect(literal.variables).toMatchObject(entriesOf({ OK: "1", [name]: value }));
    }
    expect(valueWarnings(name, Buffer.from(value))).toEqual([expect.stringContaining(says)]);
  });

  test.each([
    ...["VAULT=vault:8200", "VAULT=vault:8200/v1", "VAULT=vault", "URL=https://op.example/op://x"],
    ...["NOTE=encrypted:yes", "NOTE=ENC[x]", "SOPS_AGE_KEY_FILE=keys.txt", "sops_dir=secrets", "REF=ref+x"],
  ])("is not seen in %s", (assigned) => {
    const [name = "", value = ""] = assigned.split("=");
    for (const [format, text] of Object.entries(texts(name, value))) {
      expect(parseImport(format as "env", text).problems).toEqual([]);
    }
    expect(valueWarnings(name, Buffer.from(value))).toEqual([]);
  });
});

describe("a key in PEM with backslash-n in place of line breaks", () => {
  const pem = "-----BEGIN EC PRIVATE KEY-----\\nMADEUP\\n-----END EC PRIVATE KEY-----\\n";
  test.each([
    ["env", `A=1\nTLS=${pem}`],
    ["env", `A=1\nTLS='${pem}'`],
    ["yaml", `A: 1\nTLS: ${pem}`],
    ["json", `{"A": 1,\n"TLS": ${JSON.stringify(pem)}}`],
  ] as const)("earns a warning in %s: %s", (format, text) => {
    const { warnings, problems, variables } = parseImport(format, text);
    expect(warnings).toEqual([
      'line 2: TLS is a key in PEM with "\\n" in place of line breaks, which is kept as written',
    ]);
    expect([problems, variables[1]?.value]).toEqual([[], pem]);
  });

  test("earns none with its line breaks, or if it is part of other text", () => {
    expect(parseImport("env", `TLS="${pem}"`).warnings).toEqual([]);
    expect(parseImport("json", `{"TLS": "${pem}"}`).warnings).toEqual([]);
    expect(parseImport("env", `KEY='{"private_key":"${pem}"}'`).warnings).toEqual([]);
    expect(valueWarnings("TLS", Buffer.from(pem))).toHaveLength(1);
  });
});

test.each([
  ["tok\n", "ends in a newline, which is part of it"],
  ["tok\r", "ends in a carriage return, which is part of it"],
  ["tok\r\n", "ends in a carriage return and a newline, which are part of it"],
  ["a\r\nb\r\n", "has carriage returns in it and ends in a carriage return and a newline, which are part of it"],
  ["a\rb", "has carriage returns in it, which are part of it"],
  [" tok  ", "begins with a blank and ends in a blank, which are part of it"],
  ["\t\n", "is nothing but a tab and a newline, which are part of it"],
  [
    "\uFEFFtok\u200b\u00a0",
    "begins with a byte order mark and ends in the character U+200B and the character U+00A0, which are part of it",
  ],
  ["a\nb c", undefined],
])("what nobody sees in %j is named wherever it is written", (value, clause) => {
  const said = (what: string) => (clause === undefined ? [] : [`${what} ${clause}.`]);
  expect(valueWarnings("V", Buffer.from(value))).toEqual(said("The value of V"));
  expect(unseenInValues([{ name: "V", value }])).toEqual(said("The value of V"));
  expect(validateAccount("ci", ["staging"], { password: value }).warnings).toEqual(said('The field "password"'));
});
