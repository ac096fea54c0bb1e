import { expect } from "bun:test";
import { createDashboard } from "../../src/dashboard/app.ts";
import { Sessions, SignInCode } from "../../src/dashboard/sessions.ts";
import { leaksIn, type World } from "./world.ts";

/** What the dashboard answered. */
export type Seen = { readonly status: number; readonly text: string; readonly to: string | null };

type Fields = Readonly<Record<string, string | number | readonly string[]>>;

/** Somebody who is signed in. No page that they get may have a secret of the world in it. */
export type Visitor = {
  readonly get: (path: string) => Promise<Seen>;
  /** What the form of a page would send: its hidden fields, with what a person typed. Sent by the page's script. */
  readonly send: (path: string, fields: Fields) => Promise<ScriptSeen>;
  /** The same without the script. */
  readonly post: (path: string, fields: Fields) => Promise<Seen>;
};

/** What the page's script is told. */
export type ScriptSeen = {
  readonly status: number;
  readonly error?: string;
  readonly to?: string;
  readonly secret?: string;
};

const origin = "http://keyhole-test.localhost:4000";

/** Signs in to a dashboard on the world's installation. Its clock is the admin's. */
export async function visitorOf(w: World): Promise<Visitor> {
  const now = () => w.admin.now();
  const code = new SignInCode(now);
  const failures: unknown[] = [];
  const report = (error: unknown) => failures.push(error);
  const sessions = new Sessions(now);
  const app = createDashboard({
    installation: w.installation,
    sessions,
    code,
    actor: "ann@host",
    origin,
    now,
    used() {},
    report,
  });
  const cookie = `__Host-keyhole=${sessions.begin()}`;
  const ask = async (method: string, path: string, accept: string, body: string | null) => {
    const headers = {
      ...{ host: new URL(origin).host, cookie, accept },
      ...(body !== null && {
        origin,
        "sec-fetch-site": "same-origin",
        "content-type": "application/x-www-form-urlencoded",
      }),
    };
    const response = await app.handle(new Request(`${origin}${path}`, { method, headers, body }));
    const text = await response.text();
    expect(failures).toEqual([]);
    return { status: response.status, text, to: response.headers.get("location") };
  };
  const page = async (...asked: Parameters<typeof ask>) => {
    const seen = await ask(...asked);
    expect(leaksIn(w.secrets, seen.text)).toEqual([]);
    return seen;
  };
  return {
    get: (path) => page("GET", path, "text/html", null),
    post: (path, fields) => page("POST", path, "text/html", bodyOf(fields)),
    send: async (path, fields) => {
      const { status, text } = await ask("POST", path, "application/json", bodyOf(fields));
      return { status, ...(JSON.parse(text) as Omit<ScriptSeen, "status">) };
    },
  };
}

/** The hidden fields of the form with this action. */
export function hiddenOf(html: string, action: string): Record<string, string> {
  const start = html.indexOf(`<form method="post" action="${action}"`);
  if (start === -1) throw new Error(`the page has no form for ${action}`);
  const form = html.slice(start, html.indexOf("</form>", start));
  const inputs = form.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g);
  return Object.fromEntries([...inputs].map(([, name = "", value = ""]) => [name, value]));
}

function bodyOf(fields: Fields): string {
  const pairs = Object.entries(fields).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one): [string, string] => [name, String(one)]),
  );
  return new URLSearchParams(pairs).toString();
}
