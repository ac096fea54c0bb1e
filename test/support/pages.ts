import { expect } from "bun:test";
import { createDashboard } from "../../src/dashboard/app.ts";
import { Sessions, SignInCode } from "../../src/dashboard/sessions.ts";
import type { World } from "./world.ts";

/** What the dashboard answered. */
export type PageAnswer = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Of an answer to the script. */
  readonly to?: string;
  readonly error?: string;
  readonly secret?: string;
};

/** A form of a page, as a browser would send it if nobody filled it in. */
export type PageForm = { readonly action: string; readonly fields: URLSearchParams };

/** A person with a browser of their own, signed in, on the dashboard of a world; no socket, no browser. */
export type Visitor = {
  readonly get: (path: string) => Promise<PageAnswer>;
  /** The form with this action on a page. Its hidden fields hold what the page showed, such as versions. */
  readonly form: (path: string, action: string) => Promise<PageForm>;
  /** Sends a form as the script does. */
  readonly send: (
    form: PageForm | string,
    fields?: Readonly<Record<string, string | readonly string[]>>,
  ) => Promise<PageAnswer>;
  readonly handle: (request: Request) => Promise<Response>;
};

/** The origin that the dashboards of tests answer to. */
export const pagesOrigin = "http://keyhole-test.localhost:4300";

/** A browser that signed in: its requests carry its cookie. */
type Browser = {
  readonly handle: (request: Request) => Promise<Response>;
  readonly get: (path: string) => Promise<Response>;
  readonly post: (
    path: string,
    fields: URLSearchParams,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Response>;
};

/** Signs in to a dashboard of its own. @param failures - takes what the dashboard reports of its own defects */
export async function signIn(w: World, actor: string, failures: unknown[]): Promise<Browser> {
  const now = () => w.clock.nowMs ?? Date.now();
  const code = new SignInCode(now);
  const app = createDashboard({
    installation: w.installation,
    sessions: new Sessions(now),
    entrance: { code, operator: actor },
    origin: pagesOrigin,
    now,
    used: () => {},
    report: (error) => failures.push(error),
  });
  let cookie = "";
  const handle = async (request: Request) => app.handle(request);
  const { host } = new URL(pagesOrigin);
  const own = { host, origin: pagesOrigin, "sec-fetch-site": "same-origin" };
  const post: Browser["post"] = (path, body, more) => {
    const headers = { ...own, ...(cookie && { cookie }), ...more };
    return handle(new Request(`${pagesOrigin}${path}`, { method: "POST", headers, body }));
  };
  const opened = await post("/unlock", new URLSearchParams({ code: code.make() }));
  cookie = /^[^;]+/.exec(opened.headers.get("set-cookie") ?? "")?.[0] ?? "";
  expect(opened.status).toBe(303);
  const get = (path: string) => handle(new Request(`${pagesOrigin}${path}`, { headers: { host, cookie } }));
  return { handle, get, post };
}

/** Signs somebody in. @param failures - takes what the dashboard reports of its own defects */
export async function visitorOf(w: World, actor = "ana@host", failures: unknown[] = []): Promise<Visitor> {
  const browser = await signIn(w, actor, failures);
  const get: Visitor["get"] = async (path) => answerOf(await browser.get(path));
  return {
    get,
    handle: browser.handle,
    form: async (path, action) => {
      const { text, status } = await get(path);
      const found = formsOf(text).find((form) => form.action === action);
      if (found === undefined) throw new Error(`${path} answered ${status} and has no form for ${action}`);
      return found;
    },
    send: async (form, fields = {}) => {
      const { action, fields: shown } = typeof form === "string" ? { action: form, fields: undefined } : form;
      const sent = new URLSearchParams(shown);
      for (const [name, values] of Object.entries(fields)) {
        sent.delete(name);
        for (const value of [values].flat()) sent.append(name, value);
      }
      return answerOf(await browser.post(action, sent, { accept: "application/json" }));
    },
  };
}

async function answerOf(response: Response): Promise<PageAnswer> {
  const text = await response.text();
  const { status, headers } = response;
  const isJson = headers.get("content-type") === "application/json";
  return { status, headers, text, ...(isJson && (JSON.parse(text) as object)) };
}

/** The forms of a page that change something, with what their fields hold. */
export function formsOf(html: string): PageForm[] {
  const forms: PageForm[] = [];
  const add = (name: string | null, value: string | null) => {
    if (name !== null) forms.at(-1)?.fields.append(name, value ?? "");
  };
  new HTMLRewriter()
    .on("form[method=post]", {
      element: (form) => {
        forms.push({ action: form.getAttribute("action") ?? "", fields: new URLSearchParams() });
      },
    })
    .on("form[method=post] input:not([type=checkbox]), form[method=post] textarea", {
      element: (field) => add(field.getAttribute("name"), field.getAttribute("value")),
    })
    .transform(html);
  return forms;
}
