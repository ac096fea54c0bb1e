/** Whether a database gives these rows: integration/grants and property/tamper. */
import { describe, expect, test } from "bun:test";
import { everyKind } from "../../src/kinds/kind.ts";
import { authenticate } from "../../src/serve/access/authenticate.ts";
import { type Grant, isSameRow, projects, requests, sealGrant } from "../../src/serve/access/grant.ts";
import { GrantSeals } from "../../src/serve/access/grant-seals.ts";

const digest = Buffer.alloc(32, 1);
const grant: Grant = {
  keyId: "key-1",
  organizationId: "organization-1",
  surfaces: 1,
  resources: 2,
  environments: 4,
  projects: "{}",
  expiresAt: 1,
  trust: "[]",
  rate: 2,
  from: "unix",
};

/** A row with its seal under this key. */
function rowOf(grantKey: Uint8Array) {
  const words = { organizationSlug: "acme", organizationName: "Acme", plan: "pro", target: null } as const;
  return { ...grant, ...words, live: 1, digest, grantSeal: sealGrant(grantKey, digest, grant) };
}

describe("a row whose seal was verified", () => {
  const row = rowOf(Buffer.alloc(32, 2));

  test("is the same row again", () => expect(isSameRow(row, { ...row })).toBe(true));

  test.each([...Object.keys(grant), "digest", "grantSeal"])("is another one with another %s", (column) => {
    expect(isSameRow(row, { ...row, [column]: column === "digest" ? Buffer.alloc(32) : null })).toBe(false);
  });

  test("is verified again once its key has ended, as that of a canary is", () => {
    const grantKey = Buffer.alloc(32, 2);
    const seals = new GrantSeals(grantKey);
    expect(seals.isGrant(row)).toBe(true);
    grantKey.fill(0); // from here on, no seal is right
    expect([seals.isGrant(row), seals.isGrant({ ...row, live: 0 })]).toEqual([true, false]);
  });
});

test.each(["projects", "trust", "from"])("the refusal of a row says that its %s are too large to be read", (column) => {
  const grantKey = Buffer.alloc(32, 2);
  const row = { ...rowOf(grantKey), [column]: "" };
  const judge = () => authenticate(row, digest, new GrantSeals(grantKey), () => "");
  expect(judge).toThrow("the lists or terms of trust key-1 are too large to be read");
});

test("each resource has the bit that stored keys have", () => {
  const all = [projects, requests, ...everyKind.map(({ resource }) => resource)];
  const bits = Object.fromEntries(all.map(({ name, bit }) => [name, bit]));
  expect(bits).toEqual({ projects: 1, variables: 2, accounts: 4, files: 8, requests: 16 });
});
