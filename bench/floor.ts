/**
 * The floors that Keyhole is compared with, in a separate process: bare `Bun.serve` with prepared bodies, alone or
 * after one postgres.js `select 1`.
 *
 *     bun bench/floor.ts FOLDER      FOLDER contains bodies as NAME.body and their header fields as NAME.json
 *
 * `/ready/NAME` sends a body, `/select-1/NAME` sends it after one statement to DATABASE_URL.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";

const folder = process.argv[2] ?? ".";
const url = process.env["DATABASE_URL"];
// The driver's fastest settings: deeper pipelines are slower at 64 connections (measured).
const sql = url && postgres(url, { max: 10, fetch_types: false, max_pipeline: 2 } as postgres.Options<never>);
// Keyhole answers with text, which is also the fastest way for Bun to send a large body (measured). It is ASCII.
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
    if (how === "ready") return respond();
    if (how !== "select-1" || !sql) return new Response("no such floor", { status: 404 });
    return sql`select 1`.then(respond);
  },
});
process.stderr.write(`listens on http://127.0.0.1:${server.port}\n`);
