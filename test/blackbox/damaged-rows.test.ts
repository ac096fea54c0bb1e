import { afterAll, beforeAll, expect, test } from "bun:test";
import { startProxy } from "../support/proxy.ts";
import { keyOf, onPostgres, type Server, siteOf } from "../support/server.ts";

const path = "/projects/web/variables?environment=staging&metadata_only=true";

/** Columns of a lookup's row. */
const [n, digest, live] = [0, 11, 13];

onPostgres("a key's row that was damaged on its way from the database", () => {
  const site = siteOf("postgres", { staging: { TOKEN: "not-a-secret" } });
  const key = keyOf(site, "--org", "acme");
  let server: Server;
  let proxy: Awaited<ReturnType<typeof startProxy>>;
  let digestText: string;
  beforeAll(async () => {
    const [row] = await site.sql("select encode(digest, 'hex') as digest from api_keys");
    digestText = `\\x${row?.["digest"]}`;
    const url = new URL(site.env["DATABASE_URL"] ?? "");
    proxy = await startProxy(new URL(url));
    url.host = `127.0.0.1:${proxy.port}`;
    server = await site.serve({ env: { DATABASE_URL: url.href } });
    expect((await server.get(path, key.key)).status).toBe(200);
  });
  afterAll(async () => {
    await server.stop("SIGKILL");
    await proxy.stop();
  });

  const flips: [what: string, flip: (row: Row) => [at: number, bit: number]][] = [
    ["another number in its batch", ({ at }) => [at(n), 1]],
    ["another digest", ({ at }) => [at(digest) + 2, 1]],
    ["half a digest", ({ at }) => [at(digest) + 33, 7]],
    ["neither live nor not", ({ at }) => [at(live), 1]],
    ["passed over by the driver", ({ from }) => [from, 5]],
  ];
  test.each(flips)("is a 503, never a 401: %s", async (_, flip) => {
    let flipped = 0;
    proxy.alter((answer) => {
      const row = rowsOf(answer).find(({ texts }) => texts[digest] === digestText);
      if (row === undefined) return answer;
      const [at, bit] = flip(row);
      answer.writeUInt8(answer.readUInt8(at) ^ (1 << bit), at);
      flipped += 1;
      return answer;
    });
    const { status, json } = await server.get(path, key.key);
    expect([status, json()]).toMatchObject([503, { code: "unavailable" }]);
    expect(flipped).toBeGreaterThan(0);
    proxy.alter((answer) => answer);
    expect((await server.get(path, key.key)).status).toBe(200);
  });
});

/** Where a DataRow begins, where each of its columns does, and what these hold. */
type Row = { readonly from: number; readonly at: (column: number) => number; readonly texts: readonly string[] };

/** The DataRows in what PostgreSQL sent. */
function rowsOf(answer: Buffer): Row[] {
  const rows: Row[] = [];
  for (let from = 0; from + 5 <= answer.length; from += 1 + answer.readUInt32BE(from + 1)) {
    if (answer[from] !== "D".charCodeAt(0)) continue;
    const starts: number[] = [];
    const texts: string[] = [];
    let next = from + 7;
    for (let left = answer.readUInt16BE(from + 5); left > 0; left--) {
      const length = Math.max(0, answer.readInt32BE(next));
      starts.push(next + 4);
      texts.push(answer.toString("latin1", next + 4, next + 4 + length));
      next += 4 + length;
    }
    rows.push({ from, at: (column) => starts[column] ?? 0, texts });
  }
  return rows;
}
