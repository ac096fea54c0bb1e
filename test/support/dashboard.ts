/**
 * The dashboard without a socket or a browser: what its script would send, and what it answers.
 */
import { expect } from "bun:test";
import { signIn } from "./pages.ts";
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
  const reported: unknown[] = [];
  const { get, post } = await signIn(w, "ann@host", reported);
  const page: Visitor["page"] = async (path) => {
    const answer = await get(path);
    const html = await answer.text();
    expect([path, leaksIn(w.secrets, html)]).toEqual([path, []]);
    return { status: answer.status, html };
  };
  return {
    page,
    send: async (path, fields) => {
      const answer = await post(path, encoded(fields), { accept: "application/json" });
      const reply = (await answer.json()) as Omit<Reply, "status">;
      const { secret: _, ...rest } = reply;
      expect([path, leaksIn(w.secrets, JSON.stringify(rest))]).toEqual([path, []]);
      return { status: answer.status, ...reply };
    },
    submit: (path, fields) => post(path, encoded(fields)),
    hidden: async (path, action = path.split("?")[0] ?? "") => {
      const { html } = await page(path);
      const form = new RegExp(`<form[^>]*action="${action}"[^>]*>([\\s\\S]*?)</form>`).exec(html)?.[1] ?? "";
      const fields = form.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g);
      return Object.fromEntries([...fields].map(([, name, value]) => [name, value]));
    },
    reported,
  };
}

function encoded(fields: Fields): URLSearchParams {
  const pairs = Object.entries(fields).flatMap(([name, value]) =>
    [value].flat().map((one): [string, string] => [name, String(one)]),
  );
  return new URLSearchParams(pairs);
}
