/** Reads that wait for a change, at the built program: with workers, without a database, left, and when it stops. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { moment } from "../support/clock.ts";
import { type Answer, type Connection, connect } from "../support/connection.ts";
import { eventually } from "../support/eventually.ts";
import { newFolder } from "../support/folder.ts";
import { blockOf } from "../support/markdown.ts";
import { startProgram } from "../support/program.ts";
import { findProgram, withPrograms } from "../support/programs.ts";
import { startProxy } from "../support/proxy.ts";
import { makeKeys, onBoth, onPostgres, type Server, serverOf, siteOf, waitsOf } from "../support/server.ts";

setDefaultTimeout(180_000);

const path = "/projects/web/variables?environment=staging";
const ops = { KEYHOLE_OPS_PORT: "0" };

/** Begins to wait, on a connection of its own for each. */
async function begin(server: Server, key: string, count: number) {
  const tag = (await server.get(path, key)).headers.get("etag") ?? "";
  const headers = { Authorization: `Bearer ${key}`, "If-None-Match": tag, Prefer: "wait=60" };
  const connections = await Promise.all(Array.from({ length: count }, () => connect(server.origin)));
  const answers = connections.map((connection: Connection) => connection.get(`/api/v1${path}`, headers));
  return { connections, answers: Promise.allSettled(answers) };
}

function wholeOf(answers: readonly PromiseSettledResult<Answer>[]): readonly Answer[] {
  return answers.map((one) => {
    if (one.status === "rejected") throw one.reason;
    return one.value;
  });
}

onPostgres("reads that wait", () => {
  const site = siteOf("postgres", { staging: { A: "one" } });

  test("are told of a change by each of several workers, and by a second server", async () => {
    const { key } = await site.key("--org", "acme");
    const servers = [await site.serve({ args: ["--workers", "2"], env: ops }), await site.serve({ env: ops })] as const;
    const begun = await Promise.all(servers.map((server) => begin(server, key, 12)));
    for (const server of servers) await eventually(async () => (await waitsOf(server)) === 12);
    await site.json(["var", "set", "acme/web", "staging", "A", "--value", "two"]);
    for (const { answers } of begun) {
      for (const answer of wholeOf(await answers)) {
        expect(answer.json()).toMatchObject({ variables: [{ key: "A", value: "two" }] });
      }
    }
    for (const server of servers) expect(await server.stop()).toBe(0);
  });

  test("outlast connections to the database that break, and are told of what changed meanwhile", async () => {
    const { key } = await site.key("--org", "acme");
    const url = new URL(site.env["DATABASE_URL"] ?? "");
    const proxy = await startProxy(new URL(url));
    url.host = `127.0.0.1:${proxy.port}`;
    const server = await site.serve({ env: { ...ops, DATABASE_URL: url.href } });
    try {
      const { answers } = await begin(server, key, 12);
      await eventually(async () => (await waitsOf(server)) === 12);
      proxy.cut();
      await site.json(["var", "set", "acme/web", "staging", "A", "--value", "three"]);
      await moment(3000); // looks fail
      expect(await waitsOf(server)).toBe(12);
      proxy.mend();
      for (const answer of wholeOf(await answers)) {
        expect(answer.json()).toMatchObject({ variables: [{ key: "A", value: "three" }] });
      }
    } finally {
      await server.stop();
      await proxy.stop();
    }
  });
});

withPrograms(["sh", "curl", "jq"], "the operator of docs/told-of-a-change.md", () => {
  const site = siteOf("sqlite", { production: { A: "one" } });
  const server = serverOf(site);

  test("applies what is there, and each change, and asks again half a minute after it could not", async () => {
    const { key } = await site.key("--org", "acme");
    const folder = newFolder();
    const token = join(folder, "token");
    writeFileSync(token, key);
    const own = (name: string, lines: string) =>
      writeFileSync(join(folder, name), `#!/bin/sh\n${lines}`, { mode: 0o755 });
    own("kubectl", 'echo "$*" >> asked\nmkdir tried 2>&- && exit 1\ncat >> applied\n');
    own("sleep", `echo "$1" >> slept\nexec ${findProgram("sleep")} 1\n`);
    const script = blockOf("docs/told-of-a-change.md", "sh", "kubectl apply");
    expect(script).toContain("/var/run/secrets/keyhole/token");
    writeFileSync(join(folder, "operator.sh"), script.replace("/var/run/secrets/keyhole/token", token));
    const env = { PATH: `${folder}:${process.env["PATH"]}`, KEYHOLE_URL: server.origin };
    const operator = startProgram(["sh", "operator.sh"], { cwd: folder, env });
    const applied = async () => {
      const file = Bun.file(join(folder, "applied"));
      if (!(await file.exists())) return [];
      const texts = (await file.text()).split(/(?<=^\})\n/m).filter(Boolean);
      return texts.map((text) => JSON.parse(text) as { data: Record<string, string> });
    };
    try {
      await eventually(async () => (await applied()).length === 1);
      await site.json(["var", "set", "acme/web", "production", "A", "--value", "two"]);
      await eventually(async () => (await applied()).length === 2);
      await site.json(["var", "delete", "acme/web", "production", "A"]);
      await eventually(async () => (await applied()).length === 3);
      const data = (await applied()).map((one) => one.data);
      expect(data).toEqual([{ A: btoa("one") }, { A: btoa("two") }, {}]);
      expect(readFileSync(join(folder, "asked"), "utf8")).toBe(
        "apply --server-side --force-conflicts -f -\n".repeat(4),
      );
      expect(readFileSync(join(folder, "slept"), "utf8")).toStartWith("30\n1\n1\n");
    } finally {
      await operator.stop("SIGKILL");
    }
  });
});

onBoth("reads that wait", (dialect) => {
  const site = siteOf(dialect, { staging: { A: "one" } });

  test("are forgotten when a thousand clients leave, and the next ones wait as before", async () => {
    const server = await site.serve({ env: ops });
    for (const _ of [1, 2]) {
      const keys = await makeKeys(site, 16, "variables");
      const begun = await Promise.all(keys.map(({ key }) => begin(server, key, 64)));
      await eventually(async () => (await waitsOf(server)) === 1024);
      for (const connection of begun.flatMap(({ connections }) => connections)) connection.close();
      await eventually(async () => (await waitsOf(server)) === 0);
      await Promise.all(begun.map(({ answers }) => answers));
    }
    expect(await server.stop()).toBe(0);
  });

  test("end with their answer once the server stops, which waits for none of them", async () => {
    const { key } = await site.key("--org", "acme");
    const server = await site.serve({ env: ops });
    const { answers } = await begin(server, key, 12);
    await eventually(async () => (await waitsOf(server)) === 12);
    expect(await server.stop()).toBe(0);
    for (const { status, headers } of wholeOf(await answers)) {
      expect([status, headers.get("connection"), headers.get("preference-applied")]).toEqual([304, "close", "wait=60"]);
    }
  });
});
