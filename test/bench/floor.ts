/**
 * What Keyhole is measured against, in a process of its own: bare `Bun.serve` with bytes that were made ready before,
 * and the same after one postgres.js `select 1`.
 *
 *     bun test/bench/floor.ts FOLDER      FOLDER holds bodies as NAME.body with their header fields as NAME.json
 *
 * `/ready/NAME` sends a body, `/select-1/NAME` sends it after one statement to DATABASE_URL.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";

const folder = process.argv[2] ?? ".";
const url = process.env["DATABASE_URL"];
// The pool of the server: deeper pipelines are slower at 64 connections (measured).
const sql = url
  ? postgres(url, { max: 10, fetch_types: false, max_pipeline: 2 } as postgres.Options<never>)
  : undefined;
// Text is what Keyhole answers with, and the fastest of what Bun sends where the body is large (measured); it is ASCII.
const answers = new Map(
  readdirSync(folder)
    .filter((file) => file.endsWith(".body"))
    .map((file) => {
      const name = file.slice(0, -".body".length);
      const headers = JSON.parse(readFileSync(join(folder, `${name}.json`), "utf8")) as Record<string, string>;
      return [name, { body: readFileSync(join(folder, file), "latin1"), headers }] as const;
    }),
);

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  development: false,
  idleTimeout: 30,
  fetch(request) {
    const [, , , how, name = ""] = request.url.split("/");
    const answer = answers.get(name);
    if (!answer) return new Response("no such body", { status: 404 });
    const respond = () => new Response(answer.body, { headers: answer.headers });
    if (how !== "select-1") return respond();
    if (!sql) return new Response("no DATABASE_URL", { status: 404 });
    return sql`select 1`.then(respond);
  },
});
process.stderr.write(`listens on http://127.0.0.1:${server.port}\n`);
