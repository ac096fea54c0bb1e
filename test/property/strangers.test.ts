import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import fc from "fast-check";
import { verifyAudit } from "../../src/people/audit/audit-chain.ts";
import { createTrust } from "../../src/people/keys/trusts.ts";
import type { Token } from "../../src/serve/access/token.ts";
import { TrustDirectory } from "../../src/serve/access/trust-directory.ts";
import { trustFinder } from "../../src/store/lookups.ts";
import { requestOf } from "../support/answer.ts";
import { impatient } from "../support/attack.ts";
import { listAudit } from "../support/audit.ts";
import { audience, compact, newSigningKey, publicJwk, usualClaims } from "../support/issuer.ts";
import { mcpClient, mcpRequest } from "../support/mcp.ts";
import { describeBoth, everything, type World } from "../support/world.ts";

/*
 * Callers share statements: lookups, contents, and the commit of the audit. PostgreSQL refuses a whole statement for a
 * text that it cannot hold, and with it the requests of everybody in it.
 */

/** Each part of a parameter that callers share, by the file that sends it, and why no caller can spoil it. */
const sharedParts: Readonly<Record<string, string>> = {
  "lookups.ts ask n": "a position",
  "lookups.ts ask digest": "hexadecimal, of a digest",
  "lookups.ts ask slug": "a text of `slugPattern`, or none",
  "lookups.ts ask kind": "a word of ours",
  "lookups.ts ask environments": "a mask",
  "lookups.ts uses": "ids from rows, and numbers",
  "contents.ts ask n": "a position",
  "contents.ts ask key_id": "from a row",
  "contents.ts ask slug": "a text of `slugPattern`, which found a project",
  "contents.ts ask project_id": "from a row",
  "contents.ts ask ids": "from a verified listing, as JSON in a text",
  "journal.ts a trust": "from a row",
  "journal.ts a job": "hexadecimal, of a digest",
  "journal.ts a reads": "a count",
  "journal.ts a most": "a number of sealed terms",
  "journal.ts a kept": "a constant",
  "journal.ts lane": "made by this process",
  "journal.ts first_seq": "a count",
  "journal.ts last_seq": "a count",
  "journal.ts at": "a time",
  "journal.ts mac": "bytes",
  "journal.ts texts": "JSON for a column of text, which has escapes for a NUL and for half a surrogate",
  "journal.ts entries": "JSON for a column of text, which has escapes for a NUL and for half a surrogate",
};

test("whatever callers share in a statement is on the list, with the reason why none of them can spoil it", () => {
  const folders = ["store", "record/store"].map((room) => join(import.meta.dir, "../../src", room));
  const files = folders.flatMap((folder) => readdirSync(folder).map((file) => join(folder, file)));
  const found = files.flatMap((path) => {
    const [file, text] = [basename(path), readFileSync(path, "utf8")];
    const sets = [...text.matchAll(/jsonb_to_recordset\([\s\S]*?\bas (\w+)\(([^)]*)\)/g)].flatMap(([, name, columns]) =>
      (columns ?? "").split(",").map((column) => `${name} ${column.trim().split(" ")[0]}`),
    );
    const lists = [...text.matchAll(/const json = sql\.placeholder\("(\w+)"\)/g)].map(([, name]) => `${name}`);
    const columns = /^const columns = "(.*)";$/m.exec(text)?.[1]?.split(", ") ?? [];
    return [...sets, ...lists, ...columns].map((part) => `${file} ${part}`);
  });
  expect(found.sort()).toEqual(Object.keys(sharedParts).sort());
  const grouping = files.filter((path) => /\bgrouped\(\w/.test(readFileSync(path, "utf8")));
  expect(grouping.map((path) => basename(path)).sort()).toEqual(["contents.ts", "lookups.ts"]);
});

const signing = newSigningKey("ES256");
const issuer = "https://strangers.example";

type Asked = { readonly key: string; readonly token: (claims: object, header?: object) => string };

/** Percent-encoded as it is, half a surrogate too, which is no UTF-8. */
function encoded(text: string): string {
  return Array.from(text, (one) =>
    one.isWellFormed() ? encodeURIComponent(one) : `%ED%A0%${(0x80 + (one.charCodeAt(0) & 0x3f)).toString(16)}`,
  ).join("");
}

const value = "/projects/web/variables?environment=production";
const get = (path: string, key: string, headers: Record<string, string> = {}) => requestOf(path, { key, headers });
/** A header holds bytes, and neither a NUL nor the end of a line. */
const header =
  (name: string) =>
  (text: string, { key }: Asked) =>
    get(value, key, {
      [name]: Buffer.from(text)
        .toString("latin1")
        .replace(/[\0\r\n]/g, "\x01")
        .trim(),
    });
const query =
  (more: (text: string) => string) =>
  (text: string, { key }: Asked) =>
    get(more(encoded(text)), key);
const claim =
  (name: string) =>
  (text: string, { token }: Asked) =>
    get(value, token({ [name]: text }));
const tool =
  (name: string, args: (text: string) => object) =>
  (text: string, { key }: Asked) =>
    mcpRequest({ key: { key }, call: [name, args(text)] });
const at = { project: "web", environment: "production" };

/** Every text that a caller chooses, each as a request with that text. */
const chosen: Readonly<Record<string, (text: string, asked: Asked) => Request>> = {
  "a slug in the path": query((text) => `/projects/${text}/variables?environment=production`),
  "a project": query((text) => `/files?project=${text}&environment=production`),
  "a project of /secrets": query((text) => `/secrets?project=${text}&environment=production`),
  "an environment": query((text) => `/projects/web/variables?environment=${text}`),
  keys: query((text) => `${value}&keys=A,${text}`),
  "a prefix": query((text) => `${value}&prefix=${text}`),
  "a path": query((text) => `/files?project=web&environment=production&path=f&path=${text}`),
  "a format": query((text) => `${value}&format=${text}`),
  "an unknown parameter": query((text) => `${value}&${text}=${text}`),
  "a raw query": (text, { key }) => get(`${value}&keys=${encoded(text).replaceAll("%", "%%")}`, key),
  "the user agent": header("user-agent"),
  "the request's id": header("x-request-id"),
  "the tags of a conditional read": header("if-none-match"),
  "a trace": header("traceparent"),
  "a key": (text) => get(value, `kh_${Buffer.from(text).toString("hex")}`.slice(0, 8000)),
  "the claim that names the job": claim("jti"),
  "the claim of the subject": claim("sub"),
  "the claim of the run": claim("run_id"),
  "the claim of the issuer": claim("iss"),
  "a claim that nobody asks for": claim("note"),
  "a token's key id": (text, { token }) => get(value, token({}, { kid: text })),
  "a tool": (text, { key }) => mcpRequest({ key: { key }, call: [text, {}], headers: { "mcp-name": "list_projects" } }),
  "a tool's project": tool("list_variables", (project) => ({ ...at, project })),
  "a tool's environment": tool("list_accounts", (environment) => ({ ...at, environment })),
  "names to check": tool("check_required", (name) => ({ ...at, names: ["A", name] })),
  "the name of a request": tool("request_variable", (name) => ({ ...at, name, reason: "it is missing" })),
  "the reason of a request": tool("request_variable", (reason) => ({ ...at, name: "MISSING", reason })),
  "the id of a request": tool("get_request", (id) => ({ id })),
};

const halves = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 1, maxLength: 20 });
const anyText = fc.oneof(
  fc.constantFrom("\0", "\ud800", "\udc00", "a\0b", "\udbff\udbff", "\\u0000", '","x":"\0', "x".repeat(4000), "\uffff"),
  halves.map((units) => String.fromCharCode(...units)),
  fc.string({ unit: "binary", minLength: 1, maxLength: 40 }),
);

async function openStage(w: World) {
  const content = { variables: { production: { A: "a value of the good" } } };
  const files = [{ path: "f", environments: ["production"], content: "a content of the good" }];
  const { organization } = await w.place({ ...content, files });
  const good = await Promise.all(Array.from({ length: 6 }, () => w.key(organization, everything)));
  const own = await w.place({ ...content, files, key: everything });
  const reach = { organization: own.organization.slug, name: "ci", projects: null, environments: null };
  const terms = { issuer, audience, claims: new Map([["sub", "us"]]), readsPerJob: 1 };
  await createTrust(w.admin, { ...reach, ...terms, jwks: JSON.stringify({ keys: [publicJwk("one", signing)] }) });
  const trusts = new TrustDirectory(trustFinder(w.keyhole.database), w.installation.systemKeys.grant, () => 0);
  const gate = { nowUs: impatient(), findTrusts: (token: Token) => trusts.find(token) };
  const { handle } = mcpClient(w, (keyhole) => ({ gate: { ...keyhole.gate, ...gate } }));
  const token = (claims: object, header: object = {}) => {
    const job = { sub: "us", jti: crypto.randomUUID(), ...claims };
    return compact({ alg: signing.alg, kid: "one", ...header }, usualClaims(issuer, job), signing);
  };
  return { handle, good, asked: { key: own.key.key, token } };
}

describeBoth("a text that a caller chooses", (w) => {
  test("fails nobody who shares a statement with it, whatever it is and wherever it stands", async () => {
    const { handle, good, asked } = await openStage(w);
    const statusOf = async (request: Request) => {
      const response = await handle(request);
      await response.body?.cancel();
      return response.status;
    };
    const goodPaths = [value, `${value}&keys=A`, "/files?project=web&environment=production"];
    const places = Object.entries(chosen);
    const texts = fc.array(anyText, { minLength: places.length, maxLength: places.length });
    let [read, refused] = [0, 0];
    await fc.assert(
      fc.asyncProperty(texts, async (some) => {
        const strange = places.map(([, make], n) => make(some[n] as string, asked));
        const usual = good.flatMap(({ key }) => goodPaths.map((path) => get(path, key)));
        // In one turn, and mixed, so that they wait for the same lookups and commits.
        const all = await Promise.all(
          Array.from({ length: Math.max(strange.length, usual.length) }).flatMap((_, n) =>
            [usual[n], strange[n]].map((one) => one && statusOf(one)),
          ),
        );
        const told = places.map(([name], n) => [name, some[n], all[2 * n + 1]] as const);
        expect(told.filter(([, , status]) => Number(status) >= 500)).toEqual([]);
        expect(usual.map((_, n) => all[2 * n])).toEqual(usual.map(() => 200));
        read += told.filter(([, , status]) => status === 200).length;
        refused += told.filter(([, , status]) => status === 401).length;
      }),
      // Whatever the seed, each place has each text that PostgreSQL cannot hold.
      { numRuns: 12, examples: ["\0", "\ud800"].map((text) => [places.map(() => text)]) },
    );
    // Otherwise the strangers' texts never came as far as a statement.
    expect([read > 50, refused > 12]).toEqual([true, true]);
    await w.keyhole.gate.alarms.flush();
    expect((await verifyAudit(w.admin)).flaws).toEqual([]);
    const entries = await listAudit(w.admin, { actions: ["variables.read"], limit: 10_000 });
    const [row] = await w.sql`select count(*) as entries from audit_entries where action = 'variables.read'`;
    expect(Number(row?.["entries"])).toBe(entries.length);
  });
});
