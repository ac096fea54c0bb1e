import { adminContextOf, operator } from "../desk/context.ts";
import type { Installation } from "../desk/installation.ts";
import { Form, Visit } from "../pages/visit.ts";
import type { Session, Sessions, SignInCode } from "./sessions.ts";

/** What the dashboard works with. */
export type Door = {
  readonly installation: Installation;
  readonly sessions: Sessions;
  readonly code: SignInCode;
  /** Who works here, as the audit names them. */
  readonly actor: string;
  /** What browsers call this dashboard, such as `http://keyhole-3f9a.localhost:40123`. */
  readonly origin: string;
  readonly now: () => number;
  /** Called for each request of somebody who is signed in. */
  readonly used: () => void;
  /** Takes a failure that is not a person's doing. It gets no value. */
  readonly report: (error: unknown) => void;
};

/** The answer to a request that the gate does not let in. */
export type Turned = { readonly status: number; readonly message: string };

/**
 * Judges where a request comes from, before its path matters.
 *
 * - The host must be ours, to the letter: with DNS rebinding, an attacker's page has another name for this address.
 * - A change must be a POST that this dashboard's own page made. Browsers say so in two headers that no page can forge;
 *   a page of the same site, such as another port of this host, is not the same origin.
 */
export function judgeSource(request: Request, { origin }: Door): Turned | undefined {
  const { method, headers } = request;
  if (headers.get("host") !== new URL(origin).host) return { status: 421, message: `This is ${origin}.` };
  if (method === "GET") return undefined;
  if (method !== "POST") return { status: 405, message: "Only GET and POST are answered." };
  if (headers.get("sec-fetch-site") === "same-origin" && headers.get("origin") === origin) return undefined;
  return { status: 403, message: "Changes are made from the dashboard's own pages only." };
}

/** The session of a request; undefined if nobody is signed in. */
export function sessionOf({ headers }: Request, door: Door): Session | undefined {
  return door.sessions.use(tokenOf(headers));
}

/** What the cookie of a session holds. */
export function tokenOf(headers: Headers): string | undefined {
  const cookies = (headers.get("cookie") ?? "").split("; ").filter((cookie) => cookie.startsWith(`${cookieName}=`));
  return cookies.length === 1 ? cookies[0]?.slice(cookieName.length + 1) : undefined;
}

/** A cookie that no script reads, no other site sends, and no other host or path can set. */
export function cookieOf(token: string): string {
  const end = token === "" ? "; Max-Age=0" : "";
  return `${cookieName}=${token}; Path=/; Secure; HttpOnly; SameSite=Strict${end}`;
}

const cookieName = "__Host-keyhole";

/** Lets somebody who is signed in visit a route. Whoever calls it closes the visit. */
export async function admit(
  door: Door,
  { drafts }: Session,
  request: Request,
  params: Readonly<Record<string, string>>,
): Promise<{ readonly visit: Visit; readonly close: () => Promise<void> }> {
  door.used();
  const form = new Form(request.method === "POST" ? await formText(request) : "");
  const admin = adminContextOf(door.installation, operator(door.actor), door.now);
  return { visit: new Visit(admin, new URL(request.url), params, form, drafts), close: () => admin.close() };
}

/** The body of a form. @throws what the runtime throws for one that is too large */
export async function formText(request: Request): Promise<string> {
  const isForm = request.headers.get("content-type")?.split(";")[0] === "application/x-www-form-urlencoded";
  return isForm ? request.text() : "";
}
