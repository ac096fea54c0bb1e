import { readAtMost } from "../core/json-request.ts";
import { idleSeconds } from "../core/listening.ts";
import { Refused } from "../core/refused.ts";
import type { Installation } from "../installation/installation.ts";
import { type AdminContext, adminContextOf, operator } from "../people/desk/context.ts";
import type { Audience } from "../people/desk/failure.ts";
import type { Lending, LentDatabase } from "./lending.ts";
import { refusalOf } from "./parts/refusal.ts";
import type { Route } from "./parts/route.ts";
import { Form, formBytesMax, Visit } from "./parts/visit.ts";
import { type Session, type Sessions, type SignInCode, turnOf } from "./sessions.ts";
import type { SignIn } from "./sign-in.ts";

/** What the dashboard works with. */
export type DashboardParts = {
  readonly installation: Installation;
  readonly sessions: Sessions;
  readonly entrance: Entrance;
  /** Which installation this is, in words for people. Default: the host that browsers know it by. */
  readonly installationName?: string | undefined;
  /** What browsers call this dashboard, such as `http://keyhole-3f9a.localhost:40123`. */
  readonly origin: string;
  readonly now: () => number;
  /** Called for each request of somebody who is signed in. */
  readonly used: () => void;
  /** Takes a failure that is not a person's doing. It gets no value. */
  readonly report: (error: unknown) => void;
  /**
   * Sets after how many seconds the runtime cuts the connection of a request if it is idle; 0 for never. It counts as
   * idle also while a page is made.
   */
  readonly cutAfter?: (request: Request, seconds: number) => void;
};

/** How people come in: with a printed link, as the operator; or as a team, by an identity provider. */
export type Entrance = { readonly code: SignInCode; readonly operator: string } | { readonly signIn: SignIn };

/** Who reads the pages: the operator alone, or a team, of whom nobody is told about this host. */
export function audienceOf({ entrance }: Pick<DashboardParts, "entrance">): Audience {
  return "signIn" in entrance ? "person" : "operator";
}

/** The answer to a request that the gate does not let in. */
type Turned = { readonly status: number; readonly message: string };

/**
 * Judges where a request comes from, before its path matters.
 *
 * - The host must be ours, to the letter: with DNS rebinding, an attacker's page has another name for this address.
 * - A change must be a POST that this dashboard's own page made. Browsers say so in two headers that no page can forge;
 *   a page of the same site, such as another port of this host, is not the same origin.
 */
export function judgeSource(request: Request, { origin }: DashboardParts): Turned | undefined {
  const { method, headers } = request;
  if (headers.get("host") !== new URL(origin).host)
    return { status: 421, message: "This is not the dashboard's address. Open the one that it printed." };
  if (method === "GET") return undefined;
  if (method !== "POST") return { status: 405, message: "Only GET and POST are answered." };
  if (headers.get("sec-fetch-site") === "same-origin" && headers.get("origin") === origin) return undefined;
  return { status: 403, message: "Changes are made from the dashboard's own pages only." };
}

/** The session of a request; undefined if nobody is signed in. */
export function sessionOf({ headers }: Request, parts: DashboardParts): Session | undefined {
  return parts.sessions.use(tokenOf(headers));
}

/**
 * Whether somebody followed a link of another site, so that the browser left the strict cookie out. Browsers say so in
 * headers that no page can forge. Nothing but a tab of its own counts: no frame, no image, no fetch; and a change of
 * another site has been refused by then.
 */
export function isLinkFromElsewhere({ headers }: Request): boolean {
  const said = ["site", "mode", "dest"].map((name) => headers.get(`sec-fetch-${name}`));
  return said.join() === "cross-site,navigate,document";
}

/** The cookies: of a session, and of an attempt to sign in. */
export type Cookie = "__Host-keyhole" | "__Host-keyhole-sign-in";

/** The token in a cookie; undefined unless there is exactly one such cookie. */
export function tokenOf(headers: Headers, name: Cookie = "__Host-keyhole"): string | undefined {
  const cookies = (headers.get("cookie") ?? "").split("; ").filter((cookie) => cookie.startsWith(`${name}=`));
  return cookies.length === 1 ? cookies[0]?.slice(name.length + 1) : undefined;
}

/**
 * A cookie that no script reads and no other host or path can set. No other site sends the one of a session; the one of
 * an attempt comes back when the identity provider's page leads here, which is another site.
 */
export function cookieOf(token: string, name: Cookie = "__Host-keyhole"): string {
  const end = token === "" ? "; Max-Age=0" : name === "__Host-keyhole" ? "" : "; Max-Age=600";
  const site = name === "__Host-keyhole" ? "Strict" : "Lax";
  return `${name}=${token}; Path=/; Secure; HttpOnly; SameSite=${site}${end}`;
}

/** The parts of a request that a visit is made of. */
type PageRequest = {
  readonly url: string;
  readonly params: Readonly<Record<string, string>>;
  readonly form: Form;
};

/** Makes the visit of somebody who is signed in, with the rights in force. The caller closes it. */
export function admit(
  parts: DashboardParts,
  session: Session,
  admin: AdminContext,
  { url, params, form }: PageRequest,
): Visit {
  parts.used();
  return new Visit(admin, new URL(url), params, form, session);
}

/** Waits for what may take longer than a connection may be idle. */
export async function uncut<T>({ cutAfter }: DashboardParts, request: Request, work: Promise<T>): Promise<T> {
  cutAfter?.(request, 0);
  try {
    return await work;
  } finally {
    cutAfter?.(request, idleSeconds);
  }
}

/**
 * The session, the form and the database of a request, when its turn comes; undefined if nobody is signed in. All may
 * take long, so the session is looked up again at their end, and rights are judged later still.
 * @param databases - those for pages of this length
 * @param opened - what is closed at the request's end: that ends its turn, and gives its database back
 * @throws Refused `unavailable` if there is no database: that is reported
 */
export async function awaitTurn(
  request: Request,
  parts: DashboardParts,
  { isLong }: Pick<Route, "isLong">,
  databases: Lending,
  opened: AsyncDisposableStack,
): Promise<{ readonly session: Session; readonly form: Form; readonly database: LentDatabase } | undefined> {
  const early = sessionOf(request, parts);
  if (early === undefined) return undefined;
  const form = new Form(request.method === "POST" ? await formText(request) : "");
  const findSession = () => {
    // A page for which nobody waits any more is not made.
    const isLeft = request.method === "GET" && request.signal.aborted;
    return isLeft ? undefined : sessionOf(request, parts);
  };
  const wait = async () => {
    opened.defer(await (isLong ? early.longPages.take() : turnOf(early)));
    if (findSession() === undefined) return undefined;
    const lent = await databases.lend().catch((error: unknown) => noDatabase(parts, error));
    return opened.adopt(lent, ({ close }) => close());
  };
  const database = await uncut(parts, request, wait());
  const session = findSession();
  return database && session && { session, form, database };
}

function noDatabase(parts: DashboardParts, error: unknown): never {
  parts.report(error);
  throw new Refused("unavailable", refusalOf(error, audienceOf(parts)).message);
}

/** An admin context for one request of a session. @throws Refused `unavailable` if there is none: that is reported */
export async function contextOf(
  parts: DashboardParts,
  { identity, freshUntil }: Session,
  database: LentDatabase,
): Promise<AdminContext> {
  const { entrance, installation, now } = parts;
  const person = "signIn" in entrance ? { ...operator(""), rights: [] } : operator(entrance.operator);
  try {
    const admin = adminContextOf(installation, person, now, database);
    await installation.checkpoint.requireServed(admin.database);
    if (identity === undefined || !("signIn" in entrance)) return admin;
    return {
      ...admin,
      ...(await entrance.signIn.whoIs(admin, identity)),
      ...(freshUntil !== undefined && { freshUntil }),
    };
  } catch (error) {
    return noDatabase(parts, error);
  }
}

/**
 * The body of a form.
 * @throws Refused `bound` if it is longer, as soon as that is known; `invalid` if it does not arrive whole, such as when
 *   the browser leaves
 */
export async function formText(request: Request, bytesMax = formBytesMax): Promise<string> {
  const { headers } = request;
  if (headers.get("content-type")?.split(";")[0] !== "application/x-www-form-urlencoded") return "";
  const isLonger = Number(headers.get("content-length") ?? 0) > bytesMax;
  const body = isLonger
    ? undefined
    : await readAtMost(request, bytesMax).catch((cause: unknown) => {
        throw new Refused("invalid", "The form did not arrive whole. Nothing was done.", { cause });
      });
  if (body === undefined)
    throw new Refused("bound", `This form takes at most ${bytesMax / 1024} KiB. Nothing was done: use a command.`);
  return body.text();
}
