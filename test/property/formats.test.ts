/**
 * How other programs read the formats of `keyhole pull`: every value is read back exactly, or was refused by name.
 * Shells, Python's parsers, docker and Terraform are run if they are installed. The rules of docker and of the GitHub
 * runner are implemented here again, from their published sources and not from our code.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { parse as parseToml } from "smol-toml";
import { parse as parseYaml } from "yaml";
import { Fault } from "../../src/core/fault.ts";
import { renderCsv } from "../../src/core/formats/csv.ts";
import type { NamedValue } from "../../src/core/formats/dotenv.ts";
import { renderGithub, renderMasks } from "../../src/core/formats/github.ts";
import {
  renderDocker,
  renderJson,
  renderPowershell,
  renderShell,
  renderTfvars,
  renderToml,
  renderYaml,
} from "../../src/core/formats/lines.ts";
import { canary } from "../support/canary.ts";
import { newFolder } from "../support/folder.ts";
import { findProgram, findPython, noteMissing } from "../support/programs.ts";
import nasty from "../support/readers/nasty.json" with { type: "json" };
import { seed } from "../support/seed.ts";

setDefaultTimeout(300_000);

/** KEYHOLE_TEST_LONG=1 tries many more values. */
const count = process.env["KEYHOLE_TEST_LONG"] === "1" ? 100_000 : 4000;
const scratch = newFolder();

const token = fc.constantFrom(
  ...["'", '"', "`", "\\", "$", "$(", ")", "${", "}", "{", "[", "]", "\n", "\r", "\r\n", "#", " # ", " ", "\t", "="],
  ...[":", "''", "'''", "'\\''", '""', "$'", "\\'", "\\n", "\\\n", "\\\\", "!", "!!str ", "&a ", "*a", "- ", "? "],
  ...["| ", "> ", "%", "\nB=c\n", "\nexport B=c\n", "'\nexport B=c\n'", "<<EOF", "\nEOF\n", "<<", "::add-mask::"],
  ...["\n::set-env name=B::c\n", `$(touch ${canary})`, `\`touch ${canary}\``, ..."abZ0_-/~*"],
  ...["null", "yes", "---\n", "...\n", "\u2018", "\u2019", "\u201a", "\u201b", "\u0085", "\u00a0", "\u2028", "\u2029"],
  ...["\ufeff", "\u0001", "\u001b", "\u007f", "\ud7ff", "\ue000", "\uffff", "\ufffe", "\ufffd", "é", "e\u0301", "🔑"],
  ...["\u{10ffff}", "\u{1fffe}", "\u200b", "\u202e"],
);
const binary = fc.string({ unit: "binary", maxLength: 20, size: "max" }).map((text) => text.replaceAll("\0", ""));
const value = fc.oneof(
  { weight: 4, arbitrary: fc.array(token, { maxLength: 12, size: "max" }).map((parts) => parts.join("")) },
  { weight: 1, arbitrary: binary },
);
const corpus = Object.values(nasty).flat();
const random = fc.sample(value, { seed, numRuns: count });
const sets = chunks(
  [...corpus, ...random].map((text) => (text.isWellFormed() ? text.replaceAll("\0", "") : "")),
  80,
).map((texts) => texts.map((text, at) => ({ name: `V${String(at).padStart(3, "0")}`, value: text })));

describe("shell", () => {
  const texts = sets.map(renderShell);
  for (const shell of ["dash", "bash", "zsh", "busybox"]) {
    const program = findProgram(shell);
    if (program === undefined) {
      skipped(shell);
      continue;
    }
    test(`${shell} reads every value back`, () => {
      const folder = newFolder();
      const script = texts.map((text, at) => {
        writeFileSync(join(folder, `${at}.sh`), text);
        const names = sets[at]?.map(({ name }) => `"$${name}"`).join(" ");
        return `( . ./${at}.sh && printf '%s\\0' ${names} ) >> out || exit 1\n`;
      });
      writeFileSync(join(folder, "read.sh"), script.join(""));
      const ran = Bun.spawnSync([program, ...(shell === "busybox" ? ["sh"] : []), "read.sh"], {
        cwd: folder,
        env: { PATH: process.env["PATH"] ?? "" },
      });
      expect(ran.stderr.toString()).toBe("");
      const found = readFileSync(join(folder, "out"), "utf8").split("\0").slice(0, -1);
      expectSame(found, sets.flat().map(textOf));
      expect(ran.exitCode).toBe(0);
    });
  }
});

describe("docker", () => {
  test("the rules of docker's reader read back every value that was not refused", () => {
    for (const set of sets) {
      const { text, carried } = carry(set, renderDocker);
      expectSame(readAsDocker(Buffer.from(text)).sort(), carried.map(assigned).sort());
      const refused = set.filter((variable) => !carried.includes(variable));
      expect(refused.filter(({ value }) => !/\n|\r$/.test(value))).toEqual([]);
    }
  });

  const docker = findProgram("docker");
  // Other programs use the same name and have other rules.
  const version = docker && Bun.spawnSync([docker, "--version"]).stdout.toString();
  if (docker === undefined || !version?.startsWith("Docker version ")) skipped("docker");
  else {
    test("docker sends every value to its daemon", async () => {
      // A fake daemon that records the request of the client.
      const { promise, resolve } = Promise.withResolvers<string[]>();
      const daemon = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        async fetch(request) {
          if (!request.url.includes("/containers/create")) {
            return new Response("OK", { headers: { "Api-Version": "1.45", "Content-Type": "text/plain" } });
          }
          const { Env: env } = (await request.json()) as { Env: string[] };
          resolve(env);
          return Response.json({ Id: "0".repeat(64), Warnings: [] }, { status: 201 });
        },
      });
      try {
        const { text, carried } = carry(
          sets.flat().map(({ value }, at) => ({ name: `V${at}`, value })),
          renderDocker,
        );
        const file = join(scratch, "docker.env");
        writeFileSync(file, text);
        const child = Bun.spawn([docker, "create", "--pull", "never", "--env-file", file, "image"], {
          env: { DOCKER_HOST: `tcp://127.0.0.1:${daemon.port}`, HOME: scratch, PATH: process.env["PATH"] ?? "" },
          stdout: "pipe",
          stderr: "pipe",
        });
        const failed = child.exited.then(async (code) => {
          throw new Error(`docker ended with ${code}: ${await child.stderr.text()}`);
        });
        const env = await Promise.race([promise, failed]);
        await failed.catch(() => {});
        expectSame(env.sort(), carried.map(assigned).sort());
      } finally {
        await daemon.stop(true);
      }
    });
  }
});

describe("github", () => {
  const digits = () => crypto.randomUUID().replaceAll("-", "");

  test.each([false, true])("the runner's rules read every value back (on Windows: %p)", (windows) => {
    for (const set of sets) {
      const { text, carried } = carry(set, (variables) => renderGithub(variables, digits, windows));
      expectSame([...readAsRunner(text, windows)].flat(), carried.flatMap(both));
      expect(set.length - carried.length).toBe(windows ? set.filter(({ value }) => value.endsWith("\r")).length : 0);
    }
  });

  test("masks cover every value, and every line of it, of four characters or more", () => {
    for (const set of sets) {
      const all = set.map(({ name }) => name);
      for (const always of [[], all]) {
        const { text, unmasked } = renderMasks(set, always);
        const masks = new Set(maskedByRunner(text));
        for (const { name, value } of set) {
          if (unmasked.includes(name)) continue;
          const lines = value
            .split(/[\r\n]/)
            .filter((line) => line.length >= 4 && (line.trim() !== "null" || always === all));
          expect([value, ...lines].filter((shown) => shown.trim() !== "" && !masks.has(shown))).toEqual([]);
        }
      }
      const left = set.filter(({ name, value }) => value.length < 8 && renderMasks(set, all).unmasked.includes(name));
      expect(left).toEqual([]);
    }
  });
});

describe("json", () => {
  pythonReads("json", "json.loads(text)", sets.map(renderJson));
});

describe("yaml", () => {
  const texts = sets.map(renderYaml);

  test.each(["1.2", "1.1"] as const)("the package yaml reads every value back, as YAML %s", (version) => {
    for (const [at, text] of texts.entries()) {
      const found = parseYaml(text, { version }) as Record<string, string>;
      expectSame(Object.entries(found).flat(), sets[at]?.flatMap(both) ?? []);
    }
  });

  pythonReads("yaml", "yaml.safe_load(text)", texts);
});

describe("toml", () => {
  const texts = sets.map(renderToml);

  test("smol-toml reads every value back", () => {
    for (const [at, text] of texts.entries()) {
      expectSame(Object.entries(parseToml(text)).flat().map(String), sets[at]?.flatMap(both) ?? []);
    }
  });

  pythonReads("tomllib", "tomllib.loads(text)", texts);
});

describe("csv", () => {
  const texts = sets.map(renderCsv);

  test("each set begins with the header", () => {
    expect(texts.filter((text) => !text.startsWith("key,value\r\nV000,"))).toEqual([]);
  });

  pythonReads("csv, io", "dict(list(csv.reader(io.StringIO(text, newline=''), strict=True))[1:])", texts);
});

describe("tfvars", () => {
  test("nothing is refused but what Terraform would change", () => {
    for (const set of sets) {
      const { carried } = carry(set, renderTfvars);
      expect(carried).toEqual(set.filter(({ value }) => value === value.normalize("NFC")));
    }
  });

  const terraform = findProgram("terraform", "tofu");
  if (terraform === undefined) skipped("terraform");
  else {
    const run = (folder: string, ...command: string[]) => {
      const env = { PATH: process.env["PATH"] ?? "", HOME: scratch, CHECKPOINT_DISABLE: "1" };
      return Bun.spawnSync([terraform, ...command], { cwd: folder, env });
    };
    const apply = (variables: readonly NamedValue[], text: string) => {
      const folder = newFolder();
      const names = variables.map(({ name }) => name);
      const declared = names.map((name) => `variable "${name}" { type = string }\n`).join("");
      const shown = names.map((name) => `var.${name}`);
      writeFileSync(join(folder, "main.tf"), `${declared}output "all" { value = [${shown}] }\n`);
      writeFileSync(join(folder, "pulled.tfvars"), text);
      const applied = run(folder, "apply", "-auto-approve", "-no-color", "-var-file=pulled.tfvars");
      if (applied.exitCode !== 0) throw new Error(applied.stderr.toString());
      return JSON.parse(run(folder, "output", "-json", "all").stdout.toString()) as string[];
    };

    test("Terraform reads every value back that was not refused", () => {
      const all = sets.flat().map(({ value }, at) => ({ name: `V${String(at).padStart(6, "0")}`, value }));
      for (const set of chunks(all, 800)) {
        const { text, carried } = carry(set, renderTfvars);
        expectSame(apply(carried, text), carried.map(textOf));
      }
    });

    test("Terraform changes the values that are refused, and refuses the names", () => {
      const odd = ["e\u0301", "\u212b", `a${"\u0301".repeat(31)}`, "\u1161".repeat(31)];
      const rows = odd.map((value, at) => ({ name: `V${at}`, value }));
      const text = rows.map(({ name, value }) => `${name} = "${value}"\n`).join("");
      const found = apply(rows, text);
      for (const [at, row] of rows.entries()) {
        expect(found[at]).not.toBe(row.value);
        expect(() => renderTfvars([row])).toThrow();
      }
      for (const name of ["source", "version", "providers", "count", "for_each", "lifecycle", "depends_on", "locals"]) {
        expect(() => apply([{ name, value: "x" }], "")).toThrow("Invalid variable name");
        expect(() => renderTfvars([{ name, value: "x" }])).toThrow();
      }
    });
  }
});

describe("powershell", () => {
  test("its quoting rules read back every value that was not refused", () => {
    for (const set of sets) {
      const { text, carried } = carry(set, renderPowershell);
      const found = text.split("\n").slice(0, -1).map(readAsPowershell);
      expectSame(found.flat(), carried.flatMap(both));
      expect(set.filter((variable) => !carried.includes(variable) && variable.value !== "")).toEqual([]);
    }
  });

  const pwsh = findProgram("pwsh");
  if (pwsh === undefined) skipped("pwsh");
  else {
    test("PowerShell itself reads every value back", () => {
      const { text, carried } = carry(sets[0] ?? [], renderPowershell);
      const print = carried.map(
        ({ name }) => `[Convert]::ToBase64String([Text.Encoding]::UTF8.GetBytes($env:${name}))`,
      );
      const ran = Bun.spawnSync([pwsh, "-NoProfile", "-Command", `${text}${print.join("\n")}`]);
      const found = ran.stdout
        .toString()
        .trim()
        .split(/\r?\n/)
        .map((line) => Buffer.from(line, "base64").toString());
      expectSame(found, carried.map(textOf));
    });
  }
});

const textOf = ({ value }: NamedValue) => value;
const both = ({ name, value }: NamedValue) => [name, value];
const assigned = ({ name, value }: NamedValue) => `${name}=${value}`;

/** The text of the variables that the format can carry. The others must have been refused by name. */
function carry(
  set: readonly NamedValue[],
  render: (variables: readonly NamedValue[]) => string,
): { text: string; carried: readonly NamedValue[] } {
  try {
    return { text: render(set), carried: set };
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== "env_unrepresentable") throw error;
    const names = error.detail.names ?? [];
    expect(names.length).toBeGreaterThan(0);
    const carried = set.filter(({ name }) => !names.includes(name));
    return { text: render(carried), carried };
  }
}

/** @see https://github.com/docker/cli/blob/28f756087eea5fa301f3fbf12b01ae62f91521c2/pkg/kvfile/kvfile.go */
function readAsDocker(bytes: Buffer): string[] {
  const lines: string[] = [];
  for (let at = 0, first = true; at < bytes.length; first = false) {
    const end = bytes.indexOf(0x0a, at);
    let scanned = bytes.subarray(at, end === -1 ? bytes.length : end);
    if (scanned.length >= 64 * 1024) throw new Error("bufio.Scanner: token too long");
    at = end === -1 ? bytes.length : end + 1;
    if (scanned.at(-1) === 0x0d) scanned = scanned.subarray(0, -1); // bufio.ScanLines
    let line = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(scanned);
    if (first) line = line.replace(/^\ufeff/, "");
    line = line.replace(/^[\t\n\v\f\r \u0085\p{Z}]+/u, ""); // unicode.IsSpace
    if (line === "" || line.startsWith("#")) continue;
    const [key = ""] = line.split("=", 1);
    if (key === "") throw new Error("no variable name on line");
    if (/[ \t]/.test(key)) throw new Error("variable contains whitespaces");
    if (line.includes("=")) lines.push(line);
    else throw new Error("a value would be looked up");
  }
  return lines;
}

/** @see https://github.com/actions/runner/blob/258d6c857db3519913f7deb6004b60172f8043ae/src/Runner.Worker/FileCommandManager.cs */
function readAsRunner(text: string, windows: boolean): Map<string, string> {
  let index = 0;
  const readLine = (): { line: string; newline: string | undefined } | undefined => {
    if (index >= text.length) return undefined;
    const from = index;
    const lf = text.indexOf("\n", from);
    if (lf < 0) {
      index = text.length;
      return { line: text.slice(from), newline: undefined };
    }
    const crlf = windows ? text.indexOf("\r\n", from) : -1;
    const end = crlf >= 0 && crlf < lf ? crlf : lf;
    index = lf + 1;
    return { line: text.slice(from, end), newline: text.slice(end, lf + 1) };
  };
  const found = new Map<string, string>();
  for (let head = readLine(); head !== undefined; head = readLine()) {
    if (head.line === "") continue;
    const equals = head.line.indexOf("=");
    const heredoc = head.line.indexOf("<<");
    if (equals >= 0 && (heredoc < 0 || equals < heredoc)) {
      found.set(head.line.slice(0, equals), head.line.slice(equals + 1));
      continue;
    }
    if (heredoc < 0) throw new Error("Invalid format");
    const name = head.line.slice(0, heredoc);
    const delimiter = head.line.slice(heredoc + 2);
    if (name === "" || delimiter === "") throw new Error("Name and delimiter must not be empty");
    const start = index;
    let end = index;
    for (let next = readLine(); next?.line !== delimiter; next = readLine()) {
      if (next === undefined) throw new Error("Matching delimiter not found");
      if (next.newline === undefined) throw new Error("EOF marker missing new line");
      end = index - next.newline.length;
    }
    found.set(name, text.slice(start, Math.max(end, start)));
  }
  return found;
}

/** @see https://github.com/actions/runner/blob/258d6c857db3519913f7deb6004b60172f8043ae/src/Runner.Common/ActionCommand.cs */
function maskedByRunner(output: string): string[] {
  return output
    .split("\n")
    .slice(0, -1)
    .map((line) => {
      expect(line.startsWith("::add-mask::")).toBe(true);
      const data = line.slice("::add-mask::".length);
      return data.replaceAll("%0D", "\r").replaceAll("%0A", "\n").replaceAll("%25", "%");
    });
}

/** Reads one command by the language's specification: in a verbatim string, two single quotes of any kind mean one. */
function readAsPowershell(line: string): [name: string, value: string] {
  const [, name = "", expression = ""] = /^\$\{env:([^}]+)\} = (.*)$/s.exec(line) ?? [];
  const call = "[Text.Encoding]::UTF8.GetString([Convert]::FromBase64String(";
  const encoded = expression.startsWith(call);
  const rest = encoded ? expression.slice(call.length) : expression;
  const quotes = "'\u2018\u2019\u201a\u201b";
  if (!quotes.includes(rest.charAt(0))) throw new Error("not a verbatim string");
  let text = "";
  let at = 1;
  for (; at < rest.length; at++) {
    if (!quotes.includes(rest.charAt(at))) text += rest.charAt(at);
    else if (at + 1 < rest.length && quotes.includes(rest.charAt(at + 1))) text += rest.charAt(at++);
    else break;
  }
  expect(rest.slice(at + 1)).toBe(encoded ? "))" : "");
  return [name, encoded ? Buffer.from(text, "base64").toString("utf8") : text];
}

/** A test that Python reads every value of all sets back. `expression` makes a dictionary of `text`. */
function pythonReads(modules: string, expression: string, texts: readonly string[]): void {
  const python = findPython(modules);
  if (python === undefined) {
    skipped(`Python's ${modules}`);
    return;
  }
  test(`Python's ${modules} reads every value back`, () => {
    writeFileSync(join(scratch, "sets.json"), JSON.stringify(texts));
    const script = [
      `import json, sys, ${modules}`,
      `print(json.dumps([${expression} for text in json.load(open(sys.argv[1], encoding='utf8'))]))`,
    ].join("\n");
    const ran = Bun.spawnSync([python, "-X", "utf8", "-c", script, join(scratch, "sets.json")]);
    expect(ran.stderr.toString()).toBe("");
    const found = JSON.parse(ran.stdout.toString()) as Record<string, string>[];
    expectSame(
      found.flatMap((set) => Object.entries(set).flat()),
      sets.flat().flatMap(both),
    );
  });
}

/** Notes a missing reader; a missing dash or bash also shows as a skipped test. */
function skipped(reader: string): void {
  noteMissing([reader], `how ${reader} reads our output`);
  if (["dash", "bash"].includes(reader)) test.skip(`${reader} reads every value back`, () => {});
}

/** Like `toEqual`, but reports only the first difference, because the lists are long. */
function expectSame(found: readonly string[], wanted: readonly string[]): void {
  const at = wanted.findIndex((text, index) => found[index] !== text);
  const wrong = { seed, length: found.length, at, found: found[at] };
  expect(wrong).toEqual({ seed, length: wanted.length, at: -1, found: undefined });
}

function chunks<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, at) => items.slice(at * size, (at + 1) * size));
}
