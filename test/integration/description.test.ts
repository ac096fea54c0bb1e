import { afterAll, beforeAll, expect, test } from "bun:test";
import { Fault, type FaultCode } from "../../src/core/fault.ts";
import { createTrust } from "../../src/people/keys/trusts.ts";
import { createOrganization } from "../../src/people/projects/organizations.ts";
import { createApp, serveOptions } from "../../src/serve/api/app.ts";
import { describeApi } from "../../src/serve/api/description.ts";
import { policies } from "../../src/serve/limit/bucket.ts";
import { Limiter } from "../../src/serve/limit/limiter.ts";
import { type Answer, type Ask, answerOf, requestOf } from "../support/answer.ts";
import { problemOf } from "../support/described.ts";
import { audience, startIssuer } from "../support/issuer.ts";
import { setVariables } from "../support/plans.ts";
import { rawAnswer } from "../support/raw.ts";
import { insertAccounts, insertFiles, insertProjects, numbered } from "../support/rows.ts";
import { type Content, describeOnce, everything, refusingJournal } from "../support/world.ts";

/*
 * The description of the API against answers that the app really gives: each operation with each status, code, header
 * and example that the description has.
 */

type Described = {
  readonly description: string;
  readonly headers: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content?: Readonly<Record<string, { readonly example: unknown }>>;
};
type Operation = {
  readonly parameters: readonly { readonly name: string }[];
  readonly responses: Readonly<Record<string, Described | { readonly $ref: string }>>;
};
type Document = {
  readonly paths: Readonly<Record<string, { readonly get: Operation }>>;
  readonly components: {
    readonly headers: Readonly<Record<string, { readonly example: string }>>;
    readonly responses: Readonly<Record<string, Described>>;
  };
};

const { paths, components } = JSON.parse(JSON.stringify(describeApi("test"))) as Document;
const operations = Object.entries(paths).map(([path, { get }]) => ({
  path,
  parameters: get.parameters.map(({ name }) => name),
  responses: Object.entries(get.responses).map(([status, response]) => {
    const name = "$ref" in response ? response.$ref.replace(/.*\//, "") : undefined;
    return [Number(status), (name === undefined ? response : components.responses[name]) as Described] as const;
  }),
}));

/** What all examples show, but for what Keyhole makes up. */
const shown: Content = {
  name: "Web shop",
  variables: { production: { API_TOKEN: "made-up" } },
  accounts: [{ name: "mail", environments: ["production"], values: { user: "shop", password: "made-up" } }],
  files: [
    {
      path: "etc/greeting.txt",
      name: "greeting",
      contentType: "text/plain",
      environments: ["production"],
      content: "hello\n",
    },
  ],
};

/** Without what differs from one answer to the next: ids, times, places in the audit, and tags. */
function told(text: string): string {
  return text
    .replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "ID")
    .replace(/ID:\d+/g, "ID:N")
    .replace(/(At":)\d{13}/g, "$10")
    .replace(/^"[0-9A-Za-z_-]{43}"$/, "TAG");
}

describeOnce("the description, against answers that were really given,", (w) => {
  const given: { readonly path: string; readonly answer: Answer }[] = [];
  const issuer = startIssuer();
  afterAll(() => issuer[Symbol.asyncDispose]());

  beforeAll(async () => {
    const acme = await createOrganization(w.admin, { slug: "acme", name: "Acme", plan: "pro" });
    const web = await w.project(acme, "web", shown);
    const narrow = { environments: ["production"] };
    const reader = await w.key(acme, { ...everything, ...narrow });
    /** Asks for the same of every operation, by parameters that it has. */
    const askAll = async (
      ask: Ask,
      client: typeof w = w,
      more: (parameters: readonly string[]) => string = () => "",
    ) => {
      for (const { path, parameters } of operations) {
        const own = { project: "web", environment: "production" };
        const query = Object.entries(own).flatMap(([name, value]) =>
          parameters.includes(name) ? [`${name}=${value}`] : [],
        );
        const asked = `${path.replace("{slug}", "web")}?${query.join("&")}${more(parameters)}`.replace(/\?&?$/, "");
        const response = await client.handle(requestOf(asked.replace("?&", "?"), ask));
        given.push({ path, answer: await answerOf(response) });
      }
    };
    const asClient = (...change: Parameters<typeof w.client>) => w.client(...change) as typeof w;
    const inDotenv = (parameters: readonly string[]) => (parameters.includes("format") ? "&format=env" : "");

    // 200 and 304
    const own = { "x-request-id": components.headers["x-request-id"]?.example as string };
    await askAll({ key: reader, headers: own });
    await askAll({ key: reader }, w, inDotenv);
    await askAll({ key: reader, headers: { "if-none-match": "*", prefer: "wait=1" } });
    await askAll({ key: reader, headers: { "if-none-match": `"${"A".repeat(43)}"`, prefer: "wait=55" } });
    const claims = new Map([["sub", "job"]]);
    const reach = { organization: "acme", projects: null, environments: ["production"], ...everything };
    const terms = { issuer: issuer.url, audience, claims, jwks: undefined, readsPerJob: 10 };
    await createTrust(w.admin, { ...reach, ...terms, name: "job" });
    await askAll({ key: issuer.token() });

    // 400 to 404
    await askAll({ key: reader }, w, () => "&x=1");
    await askAll({ key: reader, headers: { "content-length": "1" } });
    await askAll({});
    const free = await w.organization({ plan: "free" });
    await w.project(free, "web");
    await askAll({ key: await w.key(free, everything) });
    await askAll({ key: await w.key(acme, { ...everything, surfaces: ["mcp_server"] }) });
    await askAll({ key: await w.key(acme, { resources: ["requests"] }) });
    await askAll({ key: await w.key(acme, { ...everything, environments: ["development"] }) });
    const elsewhere = await w.organization();
    await askAll({ key: await w.key(elsewhere, everything) });

    // 422
    const crowded = await w.place({ key: everything });
    await setVariables(
      w.admin,
      crowded.where,
      "production",
      numbered("N", 1001).map((name) => ({ name, value: "x" })),
    );
    await insertAccounts(w, crowded, numbered("a", 1001), ["production"]);
    await insertFiles(w, crowded.project, numbered("f", 1001), ["production"], () => "x");
    await insertProjects(w, crowded.organization, numbered("p", 1000));
    await askAll({ key: crowded.key });
    const odd = await w.place({ variables: { production: { A: "it's\n$(id)" } }, key: everything });
    await insertFiles(w, odd.project, ["a", "b"], ["production"], 5 * 1024 * 1024);
    await askAll({ key: odd.key }, w, inDotenv);
    const motd = await w.place({ variables: { production: { MOTD: 'it\'s "so"' } }, key: everything });
    await askAll({ key: motd.key }, w, inDotenv);

    // 429, 500 and 503
    for (const bucket of ["metadata", "value", "content"] as const) {
      const limiter = new Limiter();
      for (let at = 0; at < policies[bucket].capacity; at++) limiter.take({ keyId: reader.id, rate: null }, bucket, 1);
      await askAll(
        { key: reader },
        asClient(({ gate }) => ({ gate: { ...gate, limiter, nowUs: () => 1 } })),
      );
    }
    for (const error of [new TypeError("a defect"), new Fault("unavailable", "no primary")]) {
      let isBroken = false;
      const breaking = asClient(({ gate }) => ({
        gate: { ...gate, lookUp: (asked) => (isBroken ? Promise.reject(error) : gate.lookUp(asked)) },
      }));
      await askAll({ key: reader }, breaking);
      isBroken = true;
      await askAll({ key: reader }, breaking);
    }
    await askAll(
      { key: reader },
      asClient(() => ({ journal: refusingJournal })),
    );
    await w.sql`update sets set listing_mac = ${Buffer.alloc(32)} where project_id = ${web.id}`;
    await askAll({ key: reader });
    await w.sql`update organizations set name = ${"x".repeat(100_000)} where id = ${acme.id}`;
    await askAll({ key: reader });
  }, 60_000);

  const codeOf = ({ status, text }: Answer) => (status < 400 ? "" : (JSON.parse(text) as { code: FaultCode }).code);
  /** The statuses that the runtime answers, and Keyhole never sees. */
  const isOfKeyhole = ([status]: readonly [number, Described]) => status !== 431 && status !== 505;

  test("has no answer that does not fit it", () => {
    const unfit = given.map(({ path, answer }) => {
      const asked = path.replace("{slug}", "web");
      const problem = problemOf(asked, answer.status, answer.headers, () => answer.text);
      return problem && `${path} ${answer.status}: ${problem}`;
    });
    expect(unfit.filter(Boolean)).toEqual([]);
  });

  test("has each status and code that an operation gave, and no other", () => {
    const described = operations.flatMap(({ path, responses }) =>
      responses.filter(isOfKeyhole).flatMap(([status, { description }]) => {
        const codes = status < 400 ? [""] : [...description.matchAll(/^`(\w+)`: /gm)].map(([, code]) => code);
        return codes.map((code) => `${path} ${status} ${code}`);
      }),
    );
    const seen = new Set(given.map(({ path, answer }) => `${path} ${answer.status} ${codeOf(answer)}`));
    expect([...seen].sort()).toEqual(described.sort());
  });

  test("has headers that each operation really sent with that status", () => {
    const unseen = operations.flatMap(({ path, responses }) =>
      responses.filter(isOfKeyhole).flatMap(([status, { headers }]) => {
        const own = given.filter((one) => one.path === path && one.answer.status === status);
        const names = Object.keys(headers).filter((name) => !own.some(({ answer }) => answer.headers.has(name)));
        return names.map((name) => `${path} ${status} ${name}`);
      }),
    );
    expect(unseen).toEqual([]);
  });

  test("has bodies as examples that each operation really gave with that status", () => {
    for (const { path, responses } of operations) {
      for (const [status, { content = {} }] of responses) {
        for (const [type, { example }] of Object.entries(content)) {
          const text = typeof example === "string" ? example : JSON.stringify(example);
          const own = given.filter((one) => one.path === path && one.answer.status === status);
          const typed = own.filter(({ answer }) => answer.headers.get("content-type")?.startsWith(type));
          expect([path, status, typed.map(({ answer }) => told(answer.text))]).toEqual([
            path,
            status,
            expect.arrayContaining([told(text)]),
          ]);
        }
      }
    }
  });

  test("has values of headers as examples that were really sent", () => {
    for (const [name, { example }] of Object.entries(components.headers)) {
      const sent = given.flatMap(({ answer }) => answer.headers.get(name) ?? []).map(told);
      expect([name, [...new Set(sent)]]).toEqual([name, expect.arrayContaining([told(example)])]);
    }
  });

  test("says of a 400 what is nearly always its cause, and the sentence names the other", () => {
    const sentences = given.filter(({ answer }) => answer.status === 400).map(({ answer }) => answer.text);
    const error = (text: string) => JSON.stringify({ error: text, code: "invalid_request" });
    expect([...new Set(sentences)]).toEqual([
      error("The query parameter 'x' is not known here."),
      error("The body must be left out."),
    ]);
    const { description } = components.responses["BadRequest"] as Described;
    expect(description).toBe("`invalid_request`: A query parameter is missing, unknown or invalid.");
  });

  test("has what the runtime answers before Keyhole: a status alone", async () => {
    const app = createApp(w.keyhole).listen({ ...serveOptions(() => {}), hostname: "127.0.0.1", port: 0 });
    try {
      for (const { path } of operations) {
        const target = `/api/v1${path.replace("{slug}", "web")}`;
        for (const [status, head] of [
          [431, `GET ${target} HTTP/1.1\r\nHost: localhost\r\nX-Long: ${"x".repeat(20_000)}`],
          [505, `GET ${target} HTTP/1.9\r\nHost: localhost`],
        ] as const) {
          const answer = await rawAnswer(app.server?.port as number, `${head}\r\nConnection: close\r\n\r\n`);
          const [first = "", ...fields] = answer.slice(0, answer.indexOf("\r\n\r\n")).split("\r\n");
          expect([path, Number(first.split(" ")[1])]).toEqual([path, status]);
          const headers = fields.map((field) => field.split(": ") as [string, string]);
          const problem = problemOf(
            target.slice("/api/v1".length),
            status,
            headers,
            () => answer.split("\r\n\r\n")[1] ?? "",
          );
          expect(problem).toBeUndefined();
        }
      }
    } finally {
      app.server?.stop(true);
    }
  });
});
