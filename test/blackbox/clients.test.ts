/** docs/clients/keyhole.py and keyhole.go, against a fake server that lies and against a real one. */
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { honestly, liarStarter, type Question, type Reply, refusal } from "../support/liar.ts";
import { blockOf } from "../support/markdown.ts";
import { run as runProgram, startProgram } from "../support/program.ts";
import { whereInstalled } from "../support/programs.ts";
import { serverOf, siteOf } from "../support/server.ts";
import retryAfter from "../vectors/retry-after.json" with { type: "json" };

setDefaultTimeout(120_000);

const page = "docs/clients.md";
const clients = join(import.meta.dir, "../../docs/clients");
const canary = "kh_canary0123456789";
const variables = { A: "one", B: 'it\'s "two"\nlines\r\n', EMPTY: "", UNICODE: "Grüße 🔑 \u2028" };
const body = (all: readonly object[], environment: unknown = "production") => {
  return { body: { environment, variables: all } };
};
const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const honest = (question: Question) =>
  honestly({ project: "web", environment: "production", variables, files: [] }, question);

/** What a driver prints. */
type Read = {
  readonly values?: Readonly<Record<string, string>>;
  readonly code?: string;
  readonly text?: string;
  readonly retryAfter?: number | null;
};
type Ask = {
  readonly project?: string;
  readonly environment?: string;
  readonly timeout?: number;
  readonly wait?: number;
};

const drivers = {
  python: `import json, sys
from keyhole import KeyholeError, _parse_retry_after, variables, watch
try:
    if sys.argv[1] == "--retry-after":
        print(json.dumps([_parse_retry_after(text, float(sys.argv[2])) for text in sys.argv[3:]]))
        sys.exit()
    if sys.argv[1] == "--watch":
        for values in watch("web", "production", every=float(sys.argv[2]), stale=float(sys.argv[3])):
            print(json.dumps({"values": values}), flush=True)
    print(json.dumps({"values": variables(sys.argv[1], sys.argv[2], timeout=float(sys.argv[3]), wait=float(sys.argv[4]))}))
except KeyholeError as error:
    print(json.dumps({"code": error.code, "text": repr(error) + str(error), "retryAfter": error.retry_after}))
`,
  go: `package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"example.com/web/keyhole"
)

func seconds(text string) time.Duration {
	count, _ := strconv.ParseFloat(text, 64)
	return time.Duration(count * float64(time.Second))
}

func main() {
	if os.Args[1] == "--retry-after" {
		read := []any{}
		for _, text := range os.Args[3:] {
			if after := keyhole.ParseRetryAfter(text, time.Unix(0, 0).Add(seconds(os.Args[2]))); after >= 0 {
				read = append(read, after.Seconds())
			} else {
				read = append(read, nil)
			}
		}
		json.NewEncoder(os.Stdout).Encode(read)
		return
	}
	var values map[string]string
	var err error
	if os.Args[1] == "--watch" {
		changed := func(values map[string]string) { json.NewEncoder(os.Stdout).Encode(map[string]any{"values": values}) }
		err = keyhole.Client{}.Watch(context.Background(), "web", "production", seconds(os.Args[2]), seconds(os.Args[3]), changed)
	} else {
		client := keyhole.Client{Timeout: seconds(os.Args[3]), Wait: seconds(os.Args[4])}
		values, err = client.Variables(context.Background(), os.Args[1], os.Args[2])
	}
	out := map[string]any{"values": values}
	if err != nil {
		out = map[string]any{"text": fmt.Sprintf("%v %#v", err, err)}
		if refused, ok := err.(*keyhole.Error); ok {
			out["code"] = refused.Code
			if refused.RetryAfter >= 0 {
				out["retryAfter"] = refused.RetryAfter.Seconds()
			}
		}
	}
	json.NewEncoder(os.Stdout).Encode(out)
}
`,
};

/** Beside the Go client, for its driver. */
const exported = `package keyhole

import "time"

func ParseRetryAfter(text string, now time.Time) time.Duration { return parseRetryAfter(text, now) }
`;

/** Each lie with what must come of it. `asked` is how many requests the client makes, 1 unless it says so. */
const lies: readonly (readonly [
  name: string,
  reply: (question: Question) => Reply,
  read: Read,
  more?: Ask & { readonly asked?: number },
])[] = [
  ["nothing but the truth", honest, { values: variables }],
  [
    "one refusal with Retry-After: 0",
    (question) => (question.count === 0 ? refusal(429, "rate_limited", "", { "Retry-After": "0" }) : honest(question)),
    { values: variables },
    { asked: 2, wait: 5 },
  ],
  [
    "a Retry-After longer than it may wait",
    () => refusal(429, "rate_limited", "", { "Retry-After": "100" }),
    { code: "rate_limited", retryAfter: 100 },
  ],
  [
    "Retry-After: 0, again and again",
    () => refusal(429, "rate_limited", "", { "Retry-After": "0" }),
    { code: "rate_limited", retryAfter: 1 },
  ],
  ["unavailable", () => refusal(503, "unavailable", ""), { code: "unavailable" }],
  ["no such project", () => refusal(404, "project_not_found", ""), { code: "project_not_found" }],
  ["a bad gateway", () => ({ status: 502, body: "<html>" }), { code: "http_502" }],
  ["a redirect", ({ path }) => ({ status: 302, headers: { Location: `/api/v1${path}` } }), { code: "redirected" }],
  ["text", () => ({ body: "hello" }), { code: "invalid_answer" }],
  ["an array", () => ({ body: [] }), { code: "invalid_answer" }],
  ["null", () => ({ body: "null" }), { code: "invalid_answer" }],
  ["no variables", () => ({ body: { environment: "production" } }), { code: "invalid_answer" }],
  ["brackets", () => ({ body: "[".repeat(200_000) }), { code: "invalid_answer" }],
  ["another environment", () => body([], "staging"), { code: "invalid_answer" }],
  ["a value that is a number", () => body([{ key: "A", value: 1 }]), { code: "invalid_answer" }],
  ["a value that is null", () => body([{ key: "A", value: null }]), { code: "invalid_answer" }],
  ["a variable without a value", () => body([{ key: "A" }]), { code: "invalid_answer" }],
  ["a name twice", () => body(["one", "two"].map((value) => ({ key: "A", value }))), { code: "invalid_answer" }],
  ["no end", () => ({ endless: new Uint8Array(1024 * 1024).fill(32) }), { code: "invalid_answer" }],
  ["an answer that is cut off", () => ({ raw: `${head}Content-Length: 999\r\n\r\n{}` }), { code: "unreachable" }],
  ["a chunk cut off", () => ({ raw: `${head}Transfer-Encoding: chunked\r\n\r\nff\r\n{}` }), { code: "unreachable" }],
  ["silence", () => ({ silent: true }), { code: "unreachable" }, { timeout: 0.3 }],
  ["an endless head", () => ({ drip: "HTTP/1.1 100 Continue\r\n\r\n" }), { code: "unreachable" }, { timeout: 0.3 }],
  ["the key, where a code is", () => refusal(403, canary, canary), { code: "http_403" }],
  ["the key, as an id", () => refusal(403, "forbidden", canary, { "X-Request-Id": canary }), { code: "forbidden" }],
  ["the key, in place of a status", () => ({ raw: `${canary}\r\n\r\n` }), { code: "unreachable" }],
  [
    "the key, in a header",
    () => ({ raw: `HTTP/1.1 200 OK\r\n${canary}\r\n\r\n` }),
    { code: expect.stringMatching(/^(unreachable|invalid_answer)$/) },
  ],
  ["a project that is a path", honest, { code: "invalid_options" }, { project: "../web", asked: 0 }],
  ["an unknown environment", honest, { code: "invalid_options" }, { environment: "production&x=1", asked: 0 }],
];

const badSettings: readonly Readonly<Record<string, string>>[] = [
  { KEYHOLE_URL: "" },
  { KEYHOLE_URL: "http://keyhole.example.com" },
  { KEYHOLE_URL: "http://127.0.0.1.example.com" },
  { KEYHOLE_URL: "http://localhost@example.com" },
  { KEYHOLE_URL: "ftp://localhost" },
  { KEYHOLE_URL: "https://keyhole.example.com/?a=b" },
  { KEYHOLE_URL: "https://keyhole.example.com/api/v2" },
  { KEYHOLE_URL: "https://keyhole.example.com\r\nX: y" },
  { KEYHOLE_API_KEY: "" },
  { KEYHOLE_API_KEY: `${canary}\r\nX-Other: 1` },
  { KEYHOLE_API_KEY: `${canary}ü` },
];

const site = siteOf("sqlite", { production: variables });
const server = serverOf(site);
const folder = newFolder();

/** Runs a program to its end. A proxy of the environment would get the key in the clear. */
function run(command: readonly string[], env: Readonly<Record<string, string>>, cwd = folder) {
  const own = { PATH: process.env["PATH"], HOME: folder, HTTP_PROXY: "http://127.0.0.1:1", ...env };
  return runProgram(command, { cwd, env: own });
}

/** The promises of the page, for a driver's command and for the page's own program. */
function promises(driver: () => readonly string[], example: () => readonly string[]) {
  const read = async (env: Readonly<Record<string, string>>, ask: Ask = {}): Promise<Read> => {
    const { project = "web", environment = "production", timeout = 20, wait = 0.5 } = ask;
    const ran = await run([...driver(), project, environment, String(timeout), String(wait)], env);
    expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
    expect(ran.stdout).not.toContain(canary);
    return JSON.parse(ran.stdout) as Read;
  };

  describe("a server that answers", () => {
    const startLiar = liarStarter();
    test.each(lies)("%s", async (_, reply, expected, { asked = 1, ...ask } = {}) => {
      const liar = await startLiar(reply);
      const found = await read({ KEYHOLE_URL: liar.origin, KEYHOLE_API_KEY: canary }, ask);
      expect(found).toMatchObject(expected);
      if (expected.values !== undefined) expect(found).toEqual(expected);
      expect(liar.questions).toHaveLength(asked);
      expect(liar.endlessBytes()).toBeLessThan(64 * 1024 * 1024);
    });
  });

  test("Retry-After is read as test/vectors/retry-after.json says", async () => {
    const { now, cases } = retryAfter;
    const texts = cases.map(({ header }) => header);
    const ran = await run([...driver(), "--retry-after", String(Date.parse(now) / 1000), ...texts], {});
    expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
    const read = (JSON.parse(ran.stdout) as (number | null)[]).map((seconds, at) => ({ header: texts[at], seconds }));
    expect(read).toEqual(cases);
  });

  test.each(badSettings.map((settings) => [JSON.stringify(settings), settings] as const))(
    "nothing is sent with %s",
    async (_, settings) => {
      const env = { KEYHOLE_URL: "https://127.0.0.1:1", KEYHOLE_API_KEY: canary, ...settings };
      expect(await read(env)).toMatchObject({ code: "invalid_options" });
    },
  );

  test("a real server tells a watch of a change and of the key's end, however seldom it would look", async () => {
    const { key, id } = await site.key("--org", "acme");
    const env = { PATH: process.env["PATH"], HOME: folder, KEYHOLE_URL: server.origin, KEYHOLE_API_KEY: key };
    const program = startProgram([...driver(), "--watch", "3600", "300"], { cwd: folder, env });
    const said = () =>
      program
        .said()
        .stdout.split("\n")
        .flatMap((line) => (line === "" ? [] : [JSON.parse(line)]));
    try {
      await eventually(() => said().length === 1);
      await site.keyhole(["var", "set", "acme/web", "production", "A", "--value", "two"]);
      await eventually(() => said().length === 2);
      await site.keyhole(["var", "set", "acme/web", "production", "A", "--value", "one"]);
      await eventually(() => said().length === 3);
      await site.keyhole(["key", "revoke", id]);
      await eventually(() => said().length === 4);
      const all = [{ values: variables }, { values: { ...variables, A: "two" } }, { values: variables }];
      expect(said()).toMatchObject([...all, { code: "unauthorized" }]);
    } finally {
      await program.stop();
    }
  });

  describe("a watch", () => {
    const startLiar = liarStarter();
    test("outlasts what happens to those that wait, and asks once a second at most", async () => {
      const tags = [0, 1].map((count) => `"${String(count).repeat(43)}"`);
      const values = (count: number) => ({
        ...body([{ key: "A", value: String(count) }]),
        headers: { ETag: tags[count] ?? "" },
      });
      const unchanged = (told: boolean) => ({
        status: 304,
        headers: { ETag: tags[0] ?? "", ...(told && { "Preference-Applied": "wait=1" }) },
      });
      const replies: readonly (readonly [reply: Reply, prefers: "wait=1" | undefined])[] = [
        [values(0), undefined],
        [unchanged(true), "wait=1"],
        [unchanged(true), "wait=1"],
        [{ status: 504, body: "<html>" }, "wait=1"],
        [unchanged(false), undefined],
        [{ raw: "" }, "wait=1"],
        [unchanged(false), undefined],
        [refusal(429, "rate_limited", "", { "Retry-After": "1" }), "wait=1"],
        [refusal(503, "unavailable", ""), "wait=1"],
        [unchanged(false), "wait=1"],
        [values(1), "wait=1"],
        [refusal(401, "unauthorized", ""), "wait=1"],
        [refusal(401, "unauthorized", ""), undefined],
      ];
      const askedAtMs: number[] = [];
      const liar = await startLiar((question) => {
        if (question.headers.has("prefer")) askedAtMs.push(performance.now());
        return replies[question.count]?.[0] ?? { silent: true };
      });
      const ran = await run([...driver(), "--watch", "1", "300"], {
        KEYHOLE_URL: liar.origin,
        KEYHOLE_API_KEY: canary,
      });
      const lines = ran.stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      expect(lines).toMatchObject([{ values: { A: "0" } }, { values: { A: "1" } }, { code: "unauthorized" }]);
      expect(liar.questions.map(({ headers }) => headers.get("prefer"))).toEqual(replies.map(([, prefers]) => prefers));
      for (const [at, ms] of askedAtMs.slice(1).entries()) expect(ms - (askedAtMs[at] ?? 0)).toBeGreaterThan(900);
    });

    test("ends once its values are too old, whatever Retry-After says", async () => {
      const later = refusal(429, "rate_limited", "", { "Retry-After": "86400" });
      const liar = await startLiar(({ count }) => (count === 0 ? body([{ key: "A", value: "0" }]) : later));
      const env = { PATH: process.env["PATH"], HOME: folder, KEYHOLE_URL: liar.origin, KEYHOLE_API_KEY: canary };
      const program = startProgram([...driver(), "--watch", "1", "3"], { cwd: folder, env });
      try {
        await program.says('"code":');
        expect(program.said().stdout).toMatch(/^\{"values": ?\{"A": ?"0"\}\}\n\{"code": ?"rate_limited"/);
      } finally {
        await program.stop();
      }
    });
  });

  test("a real server: every value exactly, with a key from a file, and a revoked key is refused", async () => {
    const { key, id } = await site.key("--org", "acme");
    writeFileSync(join(folder, "key"), `${key}\n`);
    const env = { KEYHOLE_URL: `${server.origin}/api/v1/`, KEYHOLE_API_KEY_FILE: join(folder, "key") };
    expect(await read(env)).toEqual({ values: variables });
    const said = "web has 4 variables in production.\n";
    expect(await run(example(), env)).toEqual({ exitCode: 0, stdout: said, stderr: "" });
    await site.keyhole(["key", "revoke", id]);
    expect(await read(env)).toMatchObject({ code: "unauthorized" });
    const refused = await run(example(), env);
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toMatch(/No secrets\. unauthorized: the server answered 401 \(request [\w.-]+\)\n$/);
  });
}

whereInstalled(["python3"], "keyhole.py", (python = "") => {
  beforeAll(() => {
    copyFileSync(join(clients, "keyhole.py"), join(folder, "keyhole.py"));
    writeFileSync(join(folder, "driver.py"), drivers.python);
    writeFileSync(join(folder, "worker.py"), blockOf(page, "python"));
  });
  promises(
    () => [python, "driver.py"],
    () => [python, "worker.py"],
  );
});

whereInstalled(["go", "gofmt"], "keyhole.go", (go = "", gofmt = "") => {
  beforeAll(async () => {
    const own = join(folder, "go");
    mkdirSync(join(own, "keyhole"), { recursive: true });
    copyFileSync(join(clients, "keyhole.go"), join(own, "keyhole/keyhole.go"));
    writeFileSync(join(own, "keyhole/exported.go"), exported);
    writeFileSync(join(own, "go.mod"), "module example.com/web\n\ngo 1.19\n");
    for (const [name, text] of Object.entries({ driver: drivers.go, example: blockOf(page, "go") })) {
      mkdirSync(join(own, name));
      writeFileSync(join(own, name, "main.go"), text);
    }
    const caches = { GOCACHE: join(folder, "cache"), GOPATH: join(folder, "gopath") };
    const env = { ...caches, GOTOOLCHAIN: "local", GOFLAGS: "-mod=mod" };
    expect(await run([go, "vet", "./..."], env, own)).toMatchObject({ exitCode: 0 });
    expect(await run([go, "build", "-o", `${folder}/`, "./..."], env, own)).toMatchObject({ exitCode: 0 });
    expect(await run([gofmt, "-l", own], {})).toMatchObject({ exitCode: 0, stdout: "" });
  });
  promises(
    () => [join(folder, "driver")],
    () => [join(folder, "example")],
  );
});
