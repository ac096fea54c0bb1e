import { expect, test } from "bun:test";
import fc from "fast-check";
import type { FileRecord } from "../../src/client/answers.ts";
import { queryBytesMax } from "../../src/client/client.ts";
import { pathParameter, planRequests } from "../../src/client/files-pull.ts";
import { contentBytesMax } from "../../src/core/names.ts";

const mebibyte = 1024 * 1024;

const rows: { what: string; sizes: number[]; listed?: number; requests: number }[] = [
  { what: "nothing", sizes: [], requests: 0 },
  { what: "one file", sizes: [10], requests: 1 },
  { what: "a thousand of 8 KiB, all that there are", sizes: Array(1000).fill(8192), requests: 1 },
  { what: "forty of 1 MiB", sizes: Array(40).fill(mebibyte), requests: 5 },
  { what: "three of 8 MiB", sizes: Array(3).fill(8 * mebibyte), requests: 3 },
  { what: "files that fill gaps of others", sizes: [5, 3, 6, 2, 7, 1].map((size) => size * mebibyte), requests: 3 },
  { what: "a thousand empty ones, all that there are", sizes: Array(1000).fill(0), requests: 1 },
  { what: "a hundred of two hundred", sizes: Array(100).fill(100), listed: 200, requests: 1 },
];
test.each(rows)(
  "content is asked for in as few requests as 8 MiB allow: $what: $requests",
  ({ sizes, listed = sizes.length, requests }) => {
    expect(planRequests(recordsOf(sizes), listed)).toHaveLength(requests);
  },
);

test("every file is asked for once, and no request exceeds a bound", () => {
  const path = fc.string({ unit: "grapheme", minLength: 1, maxLength: 300 });
  const file = fc.record({ size: fc.nat(contentBytesMax), path });
  fc.assert(
    fc.property(fc.array(file, { maxLength: 120 }), fc.boolean(), (files, all) => {
      const wanted = files.map(({ size, path }, at) => ({ ...recordOf(size, at), path: `${at}/${path}` }));
      const requests = planRequests(wanted, all ? wanted.length : wanted.length + 1);
      const asked = requests.flatMap(({ records }) => records.map(({ path }) => path));
      expect(asked.sort()).toEqual(wanted.map(({ path }) => path).sort());
      for (const request of requests) {
        expect(request.records.reduce((sum, { size }) => sum + size, 0)).toBeLessThanOrEqual(contentBytesMax);
        if (request.all) expect(request.records).toHaveLength(wanted.length);
        else expect(request.records.map(pathParameter).join("").length).toBeLessThanOrEqual(queryBytesMax);
      }
    }),
  );
});

function recordsOf(sizes: readonly number[]): FileRecord[] {
  return sizes.map(recordOf);
}

function recordOf(size: number, at: number): FileRecord {
  return { path: `file-${at}`, mode: "0600", size, sha256: "0".repeat(64) };
}
