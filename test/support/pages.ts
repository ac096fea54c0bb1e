/** The dashboard without a socket or a browser: what its script would send, and what it answers. */
import { expect } from "bun:test";
import { createDashboard } from "../../src/dashboard/app.ts";
import type { Entrance } from "../../src/dashboard/gate.ts";
import { Sessions, SignInCode } from "../../src/dashboard/sessions.ts";
import { type Identity, SignIn } from "../../src/dashboard/sign-in.ts";
import { leaksIn } from "./answer.ts";
import type { World } from "./world.ts";

/** Fields of a form. A list is a field that occurs several times. */
export type Fields = Readonly<Record<string, string | number | readonly (string | number)[]>>;

/** What a form answered. */
export type Reply = {
  readonly status: number;
  readonly error?: string;
  readonly to?: string;
  readonly notice?: string;
  readonly secret?: string;
  /** The field that is wrong. */
  readonly field?: string;
  /** Where to sign in, if that is what it takes. */
  readonly again?: string;
  /** What would have to be seen to write it all the same. */
  readonly unlessSeen?: Readonly<Record<string, number>>;
  /** The fields of the form that say what the secret is of. */
  readonly seen?: Fields;
  /** Lines that use the secret, which is in them. */
  readonly use?: { readonly words: string; readonly lines: string };
};

/** Somebody who is signed in. No answer to them may hold a secret of the world, but for one that they asked for. */
export type Visitor = {
  /** The HTML of a page. */
  readonly page: (path: string) => Promise<{ readonly status: number; readonly html: string }>;
  /** Sends a form as the script does. */
  readonly send: (path: string, fields: Fields) => Promise<Reply>;
  /** Sends a form as a browser without the script does. */
  readonly submit: (path: string, fields: Fields) => Promise<Response>;
  /** The fields of a form that nobody has filled in. Undefined if the page has no form with this action. */
  readonly form: (path: string, action: string) => Promise<Fields | undefined>;
  /** What a page shows in a form's hidden fields: the versions among them. */
  readonly hidden: (path: string, action?: string) => Promise<Readonly<Record<string, string>>>;
  /** What the dashboard reported of its own failures. */
  readonly reported: readonly unknown[];
  /** After how many seconds an idle request was to be cut off, each time that was said: its path and the seconds. */
  readonly cutAfter: readonly string[];
};

const origin = "http://keyhole-test.localhost:4300";

/** Signs in to a dashboard of its own, as an operator. */
export async function visitorOf(w: World, actor = "ann@host"): Promise<Visitor> {
  const code = new SignInCode(() => nowOf(w));
  const browser = browserOf(w, { code, operator: actor }, new Sessions(() => nowOf(w)));
  const opened = await browser.post("/unlock", { code: code.make() });
  expect(opened.status).toBe(303);
  return visitorWith(w, browser, /^[^;]+/.exec(opened.headers.get("set-cookie") ?? "")?.[0] ?? "");
}

/** Visits a team's dashboard as somebody whom an identity provider has just signed in. */
export function personsVisitor(
  w: World,
  { issuer, subject, groups = [] }: Pick<Identity, "issuer" | "subject"> & Partial<Pick<Identity, "groups">>,
): Visitor {
  const sessions = new Sessions(() => nowOf(w));
  const provider = { issuer, clientId: "keyhole", clientSecret: undefined };
  const browser = browserOf(
    w,
    {
      signIn: new SignIn(
        provider,
        origin,
        () => nowOf(w),
        () => {},
      ),
    },
    sessions,
  );
  const token = sessions.begin({ issuer, subject, label: subject, groups, provedAt: nowOf(w) });
  return visitorWith(w, browser, `__Host-keyhole=${token}`);
}

function nowOf({ clock }: World): number {
  return clock.nowMs ?? Date.now();
}

function browserOf(w: World, entrance: Entrance, sessions: Sessions) {
  const reported: unknown[] = [];
  const cutAfter: string[] = [];
  const { handle } = createDashboard({
    installation: w.installation,
    sessions,
    entrance,
    origin,
    now: () => nowOf(w),
    used: () => {},
    report: (error) => reported.push(error),
    cutAfter: ({ url }, seconds) => cutAfter.push(`${new URL(url).pathname} ${seconds}`),
  });
  const { host } = new URL(origin);
  const get = async (path: string, cookie: string) =>
    handle(new Request(`${origin}${path}`, { headers: { host, cookie } }));
  const post = async (path: string, fields: Fields, more: Readonly<Record<string, string>> = {}) => {
    const headers = { host, origin, "sec-fetch-site": "same-origin", ...more };
    return handle(new Request(`${origin}${path}`, { method: "POST", headers, body: encoded(fields) }));
  };
  return { get, post, reported, cutAfter };
}

function visitorWith(
  w: World,
  { get, post, reported, cutAfter }: ReturnType<typeof browserOf>,
  cookie: string,
): Visitor {
  const page: Visitor["page"] = async (path) => {
    const answer = await get(path, cookie);
    const html = await answer.text();
    expect([path, leaksIn(w.secrets, html)]).toEqual([path, []]);
    return { status: answer.status, html };
  };
  return {
    page,
    send: async (path, fields) => {
      const answer = await post(path, fields, { cookie, accept: "application/json" });
      const reply = (await answer.json()) as Omit<Reply, "status">;
      const { secret: _, use: __, ...rest } = reply;
      expect([path, leaksIn(w.secrets, JSON.stringify(rest))]).toEqual([path, []]);
      return { status: answer.status, ...reply };
    },
    submit: (path, fields) => post(path, fields, { cookie }),
    form: async (path, action) => fieldsOf((await page(path)).html, action),
    hidden: async (path, action = path.split("?")[0] ?? "") => {
      return fieldsOf((await page(path)).html, action, ["input[type=hidden]"]) ?? {};
    },
    reported,
    cutAfter,
  };
}

function encoded(fields: Fields): URLSearchParams {
  const pairs = Object.entries(fields).flatMap(([name, value]) =>
    [value].flat().map((one): [string, string] => [name, String(one)]),
  );
  return new URLSearchParams(pairs);
}

/**
 * The fields of a form that nobody has filled in. Undefined if the page has no form with this action.
 * @param selectors - of the fields; if it is left out, of all that a browser would send
 */
function fieldsOf(
  html: string,
  action: string,
  selectors: readonly string[] = ["input:not([type=checkbox])", "textarea"],
): Record<string, string> | undefined {
  let found: Record<string, string> | undefined;
  const form = `form[method=post][action="${action}"]`;
  const add = (field: HTMLRewriterTypes.Element) => {
    const name = field.getAttribute("name");
    if (name !== null && found) found[name] = field.getAttribute("value") ?? "";
  };
  new HTMLRewriter()
    .on(form, {
      element: () => {
        found ??= {};
      },
    })
    .on(selectors.map((selector) => `${form} ${selector}`).join(", "), { element: add })
    .on(`${form} textarea[name=note]`, {
      text: ({ text }) => {
        if (found?.["note"] !== undefined) found["note"] += text.replaceAll("&quot;", '"');
      },
    })
    .transform(html);
  return found;
}

/** What the page of an item says of each environment, by its headings. */
export function cardsOf(html: string): Record<string, string>[] {
  const sections = html.split("<section>").slice(1);
  const found = sections.map((section) => {
    const [environment = ""] = /(?<=class="env \w+">)\w+/.exec(section) ?? [];
    const facts = [...section.matchAll(/<dt>(.*?)<\/dt><dd>(.*?)<\/dd>/g)].map(([, what, fact = ""]) => [
      what,
      fact.replace(/<time.*?<\/time>/g, "TIME").replace(/<[^>]+>/g, ""),
    ]);
    return { environment, ...Object.fromEntries(facts) } as Record<string, string>;
  });
  const all = Map.groupBy(found, ({ environment }) => environment);
  return [...all.values()].map((some) => Object.assign({}, ...some));
}

/** The rows of a page's table, by its headings. Undefined if there is no such table, as for no rows. */
export function tableOf(html: string, caption: RegExp): Record<string, string>[] | undefined {
  const table = html.split("<table").find((one) => caption.test(/<caption[^>]*>(.*?)<\/caption>/.exec(one)?.[1] ?? ""));
  if (table === undefined) return undefined;
  const texts = (part: string, cell: RegExp) =>
    [...part.matchAll(cell)].map(([, text = ""]) =>
      text
        .replace(/<time.*?<\/time>/g, "TIME")
        .replace(/<[^>]+>/g, " ")
        .replace(/\s+/g, " ")
        .trim(),
    );
  const [head = "", ...bodies] = table.split("<tbody>");
  const headings = texts(head, /<th scope="col"[^>]*>(.*?)<\/th>/g);
  const rows = bodies.flatMap((body) => body.split("<tr").slice(1));
  return rows.map((row) => {
    const cells = texts(row, /<t[hd][^>]*>(.*?)<\/t[hd]>/g);
    return Object.fromEntries(headings.map((heading, at) => [heading, cells[at] ?? ""]));
  });
}
