import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { toProblem } from "../../src/cli/terminal/failure.ts";
import { Fault } from "../../src/core/fault.ts";
import { configProblem } from "../../src/core/problem.ts";
import { HostRefused, Refused } from "../../src/core/refused.ts";
import { refusalOf } from "../../src/dashboard/parts/refusal.ts";
import { failureFor } from "../../src/people/desk/failure.ts";

const secret = "canary-of-an-error";
const coded = (code: string) => Object.assign(new Error(secret), { code });

/* What nobody here can bring about, such as a disk that fails, by its code; `integration/failures` brings about others. */
test.each([
  ...["3D000", "28P01", "28000", "42501", "08006", "53300", "53100", "57P01", "25006", "XX000"],
  ...["ECONNREFUSED", "ENOTFOUND", "ERR_TLS_CERT_ALTNAME_INVALID", "SELF_SIGNED_CERT_IN_CHAIN", "EACCES", "ENOSPC"],
  ...["SQLITE_FULL", "SQLITE_BUSY", "SQLITE_READONLY", "SQLITE_IOERR_READ", "SQLITE_CANTOPEN"],
  ...["SQLITE_CORRUPT", "SQLITE_NOTADB"],
])("somebody who is no operator is told what happened and whom to ask: %s", (code) => {
  for (const error of [coded(code), new Fault("unavailable", secret, {}, { cause: coded(code) })]) {
    const { code: kind, message } = failureFor("person", error);
    expect(kind).toBe(failureFor("operator", error).code);
    expect(message).not.toMatch(/canary|KEYHOLE_|DATABASE_URL|keyhole\.db|folder|disk|pg_hba/);
    expect(message).toContain("operator");
  }
});

test("what cannot be decrypted is said to a person without a word of the root key", () => {
  const error = new Fault("decryption_failed", secret);
  expect(failureFor("operator", error).message).toContain("root key");
  expect(failureFor("person", error).message).toBe("Something stored cannot be decrypted: ask an operator.");
});

test.each([
  ["53100", "The server of DATABASE_URL has no room on its disk"],
  ["25006", "The server of DATABASE_URL takes no writes"],
  ["28000", "it is not a role there, or pg_hba.conf does not let it in"],
  ["SQLITE_FULL", "The disk of the data folder (KEYHOLE_DATA) is full"],
  ["SQLITE_READONLY", "The data folder (KEYHOLE_DATA) cannot be read or written"],
])("an operator is told what to correct: %s", (code, words) => {
  const { message } = failureFor("operator", coded(code));
  expect(message).toContain(words);
  expect(message).not.toContain(secret);
});

test("both doors choose by who reads, and hand on what was refused to them", () => {
  const ofHost = [new HostRefused("not_found", `nothing in /${secret}`), configProblem(`KEYHOLE_DATA=/${secret}`)];
  for (const error of ofHost) {
    expect(toProblem(error, {}).message).toBe(error.message);
    expect(refusalOf(error, "operator")).toMatchObject({ message: error.message, isForLog: false });
    const told = { message: expect.not.stringMatching(/canary|KEYHOLE_/) };
    expect(toProblem(error, { person: "ana" })).toMatchObject({ ...told, exitCode: 6, code: "unavailable" });
    // The page does not say why, so the log does.
    expect(refusalOf(error, "person")).toMatchObject({ ...told, status: 503, isForLog: true });
  }
  const theirs = new Refused("not_found", "There is no project that you named.");
  expect(toProblem(theirs, { person: "ana" })).toMatchObject({ message: theirs.message, exitCode: 4 });
  expect(refusalOf(theirs, "person")).toMatchObject({ message: theirs.message, status: 404, isForLog: false });
});

const folders = ["installation", "record/notary"];
test.each(folders)("what %s/ refuses is about this host, so that no person is told its words", (name) => {
  const folder = join(import.meta.dir, "../../src", name);
  const files = [...new Bun.Glob("*.ts").scanSync(folder)];
  expect(files.length).toBeGreaterThan(5);
  expect(files.filter((file) => /new Refused\(/.test(readFileSync(join(folder, file), "utf8")))).toEqual([]);
});
