import { describe, expect, spyOn, test } from "bun:test";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { readDashboard } from "../../src/cli/dashboard.ts";
import { adviceFor, readSecretFile, warnOfReaders } from "../../src/core/settings/secret-file.ts";
import { clientSettingNames, settingNames, tracingNames } from "../../src/core/settings/setting-names.ts";
import { readConfig } from "../../src/core/settings/settings.ts";
import { unknownSettings } from "../../src/core/settings/unknown-settings.ts";
import { newFolder } from "../support/folder.ts";
import { kubernetes } from "../support/kubernetes.ts";
import { readPage } from "../support/markdown.ts";

/** The rows of the page's tables: the setting, what it means, its default. */
const rows = [...readPage("docs/configuration.md").matchAll(/^\| `([A-Z_]+)` \| (.+) \| (.+) \|$/gm)].map(
  ([, name = "", meaning = "", byDefault = ""]) => ({ name, meaning, byDefault }),
);

function row(name: string) {
  const found = rows.find((one) => one.name === name);
  if (found === undefined) throw new Error(`docs/configuration.md has no row for ${name}`);
  return found;
}

describe("a variable that looks like a setting", () => {
  test.each([
    ["KEYHOLE_CHECKPOINT_FILES", "Did you mean KEYHOLE_CHECKPOINT_FILE?"],
    ["KEYHOLE_WITNES", "Did you mean KEYHOLE_WITNESS?"],
    ["KEYHOLE_OPS_PROT", "Did you mean KEYHOLE_OPS_PORT?"],
    ["KEYHOLE_ROOTKEY", "Did you mean KEYHOLE_ROOT_KEY?"],
    ["KEYHOLE_DATABASE_PASSWORD", "Unset it, or give it another name."],
    ["KEYHOLE_ABC", "Unset it, or give it another name."], // three letters from KEYHOLE_MCP
  ])("%s, is none", (name, advice) => {
    expect(unknownSettings({ [name]: "x", KEYHOLE_DATA: "d" })).toEqual([
      `${name} is not a setting of Keyhole. ${advice}`,
    ]);
  });

  test("may be another's: what Kubernetes makes of a Service, and the token that KEYHOLE_OIDC names", () => {
    expect(unknownSettings({ ...kubernetes, KEYHOLE_OIDC: "env:KEYHOLE_TOKEN", KEYHOLE_TOKEN: "a.b.c" })).toEqual([]);
    expect(unknownSettings({ KEYHOLE_PORT: "4200" })).toHaveLength(1);
    expect(readConfig(kubernetes).ops).toBeUndefined();
  });
});

describe("a file with a secret", () => {
  const [own, group, other] = [1001, 1001, 65534];
  test.each([
    // mode, owner, group, what is said
    [0o600, own, group, undefined],
    [0o400, 0, 0, undefined],
    [0o440, 0, group, undefined], // a volume with fsGroup: without its group this process could not read it
    [0o640, 0, group, undefined],
    [0o440, 0, other, "mode 0440): its owner can change that, and a pod with defaultMode: 0400 and fsGroup"],
    [0o444, 0, group, "mode 0444): its owner can change that, and a pod with defaultMode: 0400 and fsGroup"],
    [0o640, own, group, "mode 0640): chmod 600 PATH"],
    [0o604, own, other, "mode 0604): chmod 600 PATH"],
  ])("of mode %o, of %i and the group %i, is judged by whom it lets in", (mode, uid, gid, said) => {
    expect(adviceFor({ mode: mode | 0o100000, uid, gid }, own, [100, group])).toBe(said);
  });

  test("is open to the group that this process runs as, without any other", () => {
    const file = join(newFolder(), "secret");
    writeFileSync(file, "secret", { mode: 0o440 });
    const spies = [spyOn(process, "geteuid").mockReturnValue(1), spyOn(process, "getgroups").mockReturnValue([])];
    const said: string[] = [];
    warnOfReaders("The root key", file, (line) => said.push(line));
    for (const spy of spies) spy.mockRestore();
    expect(said).toEqual([]);
  });

  test("is read without its last line end and a byte order mark, and with nothing else changed", () => {
    const file = join(newFolder(), "secret");
    const read = (text: string) => {
      writeFileSync(file, text);
      return readSecretFile("KEYHOLE_X", file);
    };
    expect(["a", "a\n", "a\r\n", " a \n\n", "a\r"].map(read)).toEqual(["a", "a", "a", " a \n", "a\r"]);
    expect(["\uFEFFa\r\n", "a\uFEFF", "\uFEFF\uFEFFa"].map(read)).toEqual(["a", "a\uFEFF", "\uFEFFa"]);
    expect(() => read("\n")).toThrow(`The file ${file} of KEYHOLE_X is empty.`);
    rmSync(file);
    expect(() => readSecretFile("KEYHOLE_X", file)).toThrow("cannot be read (ENOENT)");
  });
});

describe("docs/configuration.md", () => {
  test("has one row for each setting that the program reads, and for no other", () => {
    const src = join(import.meta.dir, "../../src");
    const code = readdirSync(src, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts"))
      .map((file) => readFileSync(join(src, file), "utf8"))
      .join("\n");
    const named = code.match(
      /\b(KEYHOLE_[A-Z_]*[A-Z]|OTEL_[A-Z_]+|DATABASE_[A-Z_]+[A-Z])\b|(?<=env\[")(HOST|PORT)(?="\])/g,
    );
    const known = [...settingNames, ...tracingNames, ...clientSettingNames];
    expect(rows.map(({ name }) => name)).toEqual(known);
    expect([...new Set(named)].sort()).toEqual([...known].sort());
  });

  test("names the defaults of the program", () => {
    const config = readConfig({});
    expect(row("HOST").byDefault).toBe(`\`${config.host}\``);
    expect(row("PORT").byDefault).toBe(`\`${config.port}\``);
    expect(row("KEYHOLE_DATA").byDefault).toBe(`\`./${relative(process.cwd(), config.dataFolder)}\``);
    expect(row("KEYHOLE_OPS_HOST").byDefault).toBe(`\`${readConfig({ KEYHOLE_OPS_PORT: "1" }).ops?.host}\``);
    expect(row("KEYHOLE_HISTORY_MIB").byDefault).toBe(`\`${config.historyBytesMax / 1024 / 1024}\``);
    const minutes = readDashboard({}).freshMsMax / 60_000;
    expect(row("KEYHOLE_SIGN_IN_MINUTES").byDefault).toBe(`\`${minutes}\``);
    expect(config).toMatchObject({ postgres: undefined, ops: undefined, limiterUrl: undefined });
    expect(config).toMatchObject({ tracesUrl: undefined, mcpOrigins: undefined });
    for (const name of ["DATABASE_URL", "KEYHOLE_OPS_PORT", "KEYHOLE_LIMITER_URL", "OTEL_EXPORTER_OTLP_ENDPOINT"]) {
      expect(row(name).byDefault).toStartWith("unset");
    }
  });

  test("names the bounds of the program", () => {
    const read = (env: Record<string, string>) => [readConfig(env), readDashboard(env)];
    for (const name of ["PORT", "KEYHOLE_OPS_PORT", "KEYHOLE_HISTORY_MIB", "KEYHOLE_SIGN_IN_MINUTES"]) {
      const [, least = "", most = ""] = /(\d+) to (\d+)/.exec(row(name).meaning) ?? [];
      expect(() => read({ [name]: least })).not.toThrow();
      expect(() => read({ [name]: most })).not.toThrow();
      expect(() => read({ [name]: String(Number(most) + 1) })).toThrow(name);
    }
    expect(() => read({ KEYHOLE_SIGN_IN_MINUTES: "9" })).toThrow("from 10 to 60");
    for (const name of [" x", "a\u202eb", "x".repeat(61)]) {
      expect(() => read({ KEYHOLE_DASHBOARD_NAME: name })).toThrow("KEYHOLE_DASHBOARD_NAME");
    }
  });

  test("shows forms that the program takes", () => {
    for (const { name, meaning } of rows) {
      for (const [url] of meaning.matchAll(/(?<=`)(postgres|rediss?):\/\/[^`]+/g)) {
        const rootKey = { KEYHOLE_ROOT_KEY: "x" };
        expect(() => readConfig({ ...rootKey, [name]: url })).not.toThrow();
        expect(() => readConfig({ ...rootKey, [name]: `x${url}` })).toThrow(name);
      }
    }
  });
});
