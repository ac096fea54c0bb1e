import { expect, test } from "bun:test";
import { failureOf } from "../../src/installation/failure.ts";

test.each([
  ...["3D000", "28P01", "42501", "08006", "53300", "57P01", "ECONNREFUSED", "ENOTFOUND"],
  ...["SQLITE_FULL", "SQLITE_BUSY", "SQLITE_IOERR_READ", "SQLITE_CANTOPEN", "SQLITE_CORRUPT", "SQLITE_NOTADB"],
])("a failure of the database, %s, names no setting of the host to somebody who is no operator", (code) => {
  const error = Object.assign(new Error("canary"), { code });
  expect(failureOf(error).message).not.toContain("canary");
  const { code: kind, message } = failureOf(error, false);
  expect(kind).toBe(failureOf(error).code);
  expect(message).not.toMatch(/canary|KEYHOLE_|DATABASE_URL|keyhole\.db|folder/);
});

test("a role that does not exist is not taken for a connection without TLS alone", () => {
  const error = Object.assign(new Error("canary"), { code: "28000" });
  expect(failureOf(error).message).toContain("it is no role there, or pg_hba.conf does not let it in");
});
