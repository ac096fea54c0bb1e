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

/** Signs somebody in. @param failures - takes what the dashboard reports of its own defects */
export async function visitorOf(w: World, actor = "ana@host", failures: unknown[] = []): Promise<Visitor> {
  const now = () => w.clock.nowMs ?? Date.now();
  const code = new SignInCode(now);
  const app = createDashboard({
    installation: w.installation,
    sessions: new Sessions(now),
    code,
    actor,
    origin: pagesOrigin,
    now,
    used: () => {},
    report: (error) => failures.push(error),
  });
  const handle = async (request: Request) => app.handle(request);
  const own = { host: new URL(pagesOrigin).host, origin: pagesOrigin, "sec-fetch-site": "same-origin" };
  const post = (path: string, fields: URLSearchParams, headers: Readonly<Record<string, string>>) =>
    handle(new Request(`${pagesOrigin}${path}`, { method: "POST", headers: { ...own, ...headers }, body: fields }));
  const opened = await post("/unlock", new URLSearchParams({ code: code.make() }), {});
  const cookie = /^[^;]+/.exec(opened.headers.get("set-cookie") ?? "")?.[0] ?? "";
  expect(opened.status).toBe(303);
  const get: Visitor["get"] = async (path) => {
    const request = new Request(`${pagesOrigin}${path}`, { headers: { host: own.host, cookie } });
    return answerOf(await handle(request));
  };
  return {
    get,
    handle,
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
      return answerOf(await post(action, sent, { cookie, accept: "application/json" }));
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
