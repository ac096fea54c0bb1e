/**
 * The dashboard without a socket or a browser: what its script would send, and what it answers.
 */
import { expect } from "bun:test";
import { createDashboard } from "../../src/dashboard/app.ts";
import { Sessions, SignInCode } from "../../src/dashboard/sessions.ts";
import { leaksIn, type World } from "./world.ts";

/** Fields of a form. A list is a field that occurs several times. */
export type Fields = Readonly<Record<string, string | number | readonly (string | number)[]>>;

/** What a form answered. */
export type Reply = {
  readonly status: number;
  readonly error?: string;
  readonly to?: string;
  readonly secret?: string;
};

/** Somebody who is signed in. No answer to them may hold a secret of the world, but for one that they asked for. */
export type Visitor = {
  /** The HTML of a page. */
  readonly page: (path: string) => Promise<{ readonly status: number; readonly html: string }>;
  /** Sends a form as the script does. */
  readonly send: (path: string, fields: Fields) => Promise<Reply>;
  /** Sends a form as a browser without the script does. */
  readonly submit: (path: string, fields: Fields) => Promise<Response>;
  /** What a page shows in a form's hidden fields: the versions among them. */
  readonly hidden: (path: string, action?: string) => Promise<Readonly<Record<string, string>>>;
  /** What the dashboard reported of its own failures. */
  readonly reported: readonly unknown[];
};

/** Signs in to a dashboard of its own. */
export async function visitorOf(w: World): Promise<Visitor> {
  const now = () => w.clock.nowMs ?? Date.now();
  const origin = "http://keyhole-test.localhost:4200";
  const reported: unknown[] = [];
  const code = new SignInCode(now);
  const app = createDashboard({
    installation: w.installation,
    sessions: new Sessions(now),
    code,
    actor: "ann@host",
    origin,
    now,
    used: () => {},
    report: (error) => reported.push(error),
  });
  let cookie = "";
  const handle = (path: string, headers: Readonly<Record<string, string>>, body?: string) =>
    app.handle(
      new Request(`${origin}${path}`, {
        headers: { host: new URL(origin).host, cookie, ...headers },
        ...(body !== undefined && { method: "POST", body }),
      }),
    );
  const post = (path: string, fields: Fields, more: Readonly<Record<string, string>> = {}) => {
    const headers = { origin, "sec-fetch-site": "same-origin", "content-type": "application/x-www-form-urlencoded" };
    return handle(path, { ...headers, ...more }, encoded(fields));
  };
  const page: Visitor["page"] = async (path) => {
    const answer = await handle(path, {});
    const html = await answer.text();
    expect([path, leaksIn(w.secrets, html)]).toEqual([path, []]);
    return { status: answer.status, html };
  };
  const unlocked = await post("/unlock", { code: code.make() });
  cookie = unlocked.headers.get("set-cookie")?.split(";")[0] ?? "";
  expect(unlocked.status).toBe(303);
  return {
    page,
    send: async (path, fields) => {
      const answer = await post(path, fields, { accept: "application/json" });
      const reply = (await answer.json()) as Omit<Reply, "status">;
      const { secret: _, ...rest } = reply;
      expect([path, leaksIn(w.secrets, JSON.stringify(rest))]).toEqual([path, []]);
      return { status: answer.status, ...reply };
    },
    submit: (path, fields) => post(path, fields),
    hidden: async (path, action = path.split("?")[0] ?? "") => {
      const { html } = await page(path);
      const form = new RegExp(`<form[^>]*action="${action}"[^>]*>([\\s\\S]*?)</form>`).exec(html)?.[1] ?? "";
      const fields = form.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g);
      return Object.fromEntries([...fields].map(([, name, value]) => [name, value]));
    },
    reported,
  };
}

function encoded(fields: Fields): string {
  const pairs = Object.entries(fields).flatMap(([name, value]) =>
    [value].flat().map((one): [string, string] => [name, String(one)]),
  );
  return new URLSearchParams(pairs).toString();
}
