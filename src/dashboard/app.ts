import { Elysia } from "elysia";
import { idleSeconds, listenerOptions } from "../core/listening.ts";
import { Refused } from "../core/refused.ts";
import { visible } from "../core/visible.ts";
import type { AdminContext } from "../people/desk/context.ts";
import { recentMax } from "../people/projects/page.tsx";
import { countPending } from "../people/requests/requests.ts";
import { personText } from "../record/entry.ts";
import { everyRight, hasEverywhere, hasSomewhere } from "../serve/access/rights.ts";
import {
  commandsToAsk,
  goOnPage,
  htmlOf,
  lockedPage,
  type Page,
  pageOf,
  type Reader,
  refusalPage,
  signInPage,
  strangerPage,
} from "./frame.tsx";
import {
  admit,
  audienceOf,
  awaitTurn,
  contextOf,
  cookieOf,
  type DashboardParts,
  type Entrance,
  formText,
  isLinkFromElsewhere,
  judgeSource,
  sessionOf,
  tokenOf,
  uncut,
} from "./gate.ts";
import icon from "./icon.svg" with { type: "file" };
import { Lending } from "./lending.ts";
import { refusalOf } from "./parts/refusal.ts";
import type { Answer, Download, Route } from "./parts/route.ts";
import { forLog } from "./provider.ts";
import { isPageFor, routes } from "./routes.ts";
import forms from "./script/forms.js" with { type: "file" };
import lists from "./script/lists.js" with { type: "file" };
import base from "./script/page.js" with { type: "file" };
import search from "./script/search.js" with { type: "file" };
import secrets from "./script/secrets.js" with { type: "file" };
import type { Session, SignInCode } from "./sessions.ts";
import type { SignIn } from "./sign-in.ts";
import style from "./style.css" with { type: "file" };

/** The dashboard as a function of a request; it listens on nothing. */
export function createDashboard(parts: DashboardParts) {
  const app = new Elysia({ strictPath: true, normalize: false, handler: { standardHostname: false } })
    .onRequest(({ request }) => {
      const turned = judgeSource(request, parts);
      return turned && page(parts, turned.status, refusalPage("Refused", turned.message));
    })
    .onError({ as: "global" }, ({ error, code, request }) => {
      if (code === "NOT_FOUND") return notFound(parts, request);
      return refused(parts, error, false);
    });
  for (const [path, [type, ...files]] of Object.entries(assets)) {
    app.get(path, async () =>
      respond(200, (await Promise.all(files.map((file) => Bun.file(file).text()))).join("\n"), type),
    );
  }
  const { entrance } = parts;
  if ("signIn" in entrance) {
    const failed = (error: unknown) => signInFailed(parts, error);
    app.get("/sign-in", ({ request }) => beginSignIn(parts, entrance.signIn, request).catch(failed));
    app.get("/signed-in", ({ request }) => finishSignIn(parts, entrance.signIn, request).catch(failed));
  } else app.post("/unlock", ({ request }) => unlock(parts, entrance, request), { parse: "none" });
  app.post("/lock", ({ request }) => lock(parts, request), { parse: "none" });
  const open = () => parts.installation.open("admin");
  const databases = { short: new Lending(4, open), long: new Lending(2, open) };
  for (const route of routes) {
    const lending = route.isLong ? databases.long : databases.short;
    const handle = async ({ request, params }: { request: Request; params: unknown }) =>
      compressed(
        request,
        await answered(parts, lending, route, request, (params ?? {}) as Readonly<Record<string, string>>),
      );
    if (route.method === "GET") app.get(route.path, handle);
    else app.post(route.path, handle, { parse: "none" });
  }
  return app;
}

/** Bun.serve's options beside address and port. */
export const serveOptions = {
  ...listenerOptions,
  // A form that is too long is refused with a sentence (`formText`), and what is far longer by Bun.
  maxRequestBodySize: 8 * 1024 * 1024,
} as const;

/**
 * The files for browsers, joined in order. The built program holds them. A checkout's are on the disk, and read at each
 * request, so that a change shows at once.
 */
const assets: Readonly<Record<string, readonly [type: string, ...files: string[]]>> = {
  "/style.css": ["text/css; charset=utf-8", style],
  "/script.js": ["text/javascript; charset=utf-8", base, lists, search, forms, secrets],
  "/icon.svg": ["image/svg+xml", icon],
};

async function answered(
  parts: DashboardParts,
  databases: Lending,
  route: Route,
  request: Request,
  params: Readonly<Record<string, string>>,
): Promise<Response> {
  const byScript = request.headers.get("accept") === "application/json";
  await using opened = new AsyncDisposableStack();
  let reader: Reader | undefined;
  try {
    const sent = await awaitTurn(request, parts, route, databases, opened);
    if (sent === undefined) {
      const message = "Nobody is signed in here any more. Nothing was done.";
      if (byScript)
        return json(401, { error: message, ended: true, again: "signIn" in parts.entrance ? "/sign-in" : "/" });
      return closed(parts, request, route.method === "POST" ? message : "");
    }
    const { session, form, database } = sent;
    const { identity } = session;
    const admin = await contextOf(parts, session, database);
    const { rights, actor } = admin;
    const own = admin.isOfGroup ? undefined : admin.entries[0];
    if (identity !== undefined && !hasSomewhere(rights, ...everyRight)) {
      if (byScript) return json(403, { error: "You have no rights here yet." });
      return page(parts, 403, strangerPage(identity, own));
    }
    const { url } = request;
    const { pathname, search, searchParams } = new URL(url);
    // Another tab may be loading another page.
    const at = pathname + search;
    const name = identity === undefined ? personText(actor) : identity.label;
    // Any one of the rights of a route is enough, so the first is asked for.
    const needed = route.needs ?? route.rights.slice(0, 1);
    // No right brings a draft back.
    const mightHelp = !route.path.endsWith("/:draft") && !hasEverywhere(rights, "see", ...needed);
    const ask = identity && mightHelp ? commandsToAsk(identity, own, needed, pathname) : undefined;
    const sought = searchParams.get("q") ?? undefined;
    reader = { actor: name, rights, notice: session.notices.get(at), path: pathname, sought, ask };
    requireRight(route, admin, byScript);
    const making = route.answer(admit(parts, session, admin, { url, params, form }));
    const answer = await (route.isLong ? uncut(parts, request, making) : making);
    if ("chunks" in answer) return download(parts, request, answer, opened.move());
    if ("main" in answer) {
      session.notices.delete(at);
      noteProject(session, params);
      if (hasSomewhere(rights, "decide")) reader = { ...reader, pending: await countPending(admin) };
    }
    return shown(parts, answer, session, reader, byScript);
  } catch (error) {
    return refused(parts, error, byScript, reader);
  }
}

/** Remembers that a page of a project was shown. */
function noteProject({ choices }: Session, { org, project }: Readonly<Record<string, string>>): void {
  if (org === undefined || project === undefined) return;
  const where = `${org}/${project}`;
  choices.projects = [...(choices.projects ?? []).filter((one) => one !== where), where].slice(-recentMax);
}

/** @throws Refused if the person may not use the dashboard */
function requireRight({ rights, isSecret }: Route, admin: AdminContext, byScript: boolean): void {
  if (!hasSomewhere(admin.rights, ...rights)) throw new Refused("not_found", "There is no such page.");
  if (!isSecret || byScript) return;
  throw new Refused("invalid", "A value is shown by the page's script only. Turn JavaScript on.");
}

function refused(parts: DashboardParts, error: unknown, byScript: boolean, reader?: Reader): Response {
  const { status, title, message, isForLog } = refusalOf(error, audienceOf(parts));
  if (isForLog) parts.report(error);
  const { kind, form } = error instanceof Refused ? error : {};
  const again = kind === "stale" ? againPath : undefined;
  if (byScript)
    return json(status, {
      error: message.replaceAll("`", ""),
      again,
      unlessSeen: form?.unlessSeen,
      field: form?.field,
    });
  const asking = reader && { ...reader, ask: status === 404 ? reader.ask : undefined };
  return page(parts, status, refusalPage(title, message, asking, again));
}

function shown(
  parts: DashboardParts,
  answer: Exclude<Answer, Download>,
  session: Session,
  reader: Reader,
  byScript: boolean,
): Response {
  if ("secret" in answer || "offers" in answer) return json(200, answer);
  if ("main" in answer) return page(parts, 200, pageOf(answer, reader));
  // Without `see` there is no page to return to, so they go home.
  const to = isPageFor(reader.rights, answer.to) ? answer.to : "/";
  session.notices.delete(to);
  const { notice, links = {} } = answer;
  if (notice !== undefined) session.notices.set(to, { words: visible(notice), links });
  const [oldest = ""] = session.notices.keys();
  if (session.notices.size > noticesMax) session.notices.delete(oldest);
  return byScript ? json(200, { to }) : redirect(to);
}

/** The most notices of a session that no tab has shown yet. */
const noticesMax = 20;

/**
 * A page, compressed if the browser takes it. Values come as JSON, and are never compressed: the length would tell
 * something about them.
 */
async function compressed({ headers }: Request, answer: Response): Promise<Response> {
  const isPage = answer.headers.get("content-type")?.startsWith("text/html");
  const takesGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(headers.get("accept-encoding") ?? "");
  if (!isPage || !takesGzip) return answer;
  answer.headers.set("content-encoding", "gzip");
  return new Response(Bun.gzipSync(await answer.arrayBuffer(), { level: 1 }), answer);
}

/**
 * A file, sent while it is read. Reading takes as long as it needs. A browser that takes no more of it is cut off.
 * @param opened - closed at its end, and if the browser leaves or is cut off
 */
function download(
  parts: DashboardParts,
  request: Request,
  { name, type, chunks }: Download,
  opened: AsyncDisposableStack,
): Response {
  const read = async function* () {
    try {
      parts.cutAfter?.(request, 0);
      for await (const chunk of chunks) {
        parts.cutAfter?.(request, idleSeconds);
        yield Buffer.from(chunk);
        parts.cutAfter?.(request, 0);
      }
      parts.cutAfter?.(request, idleSeconds);
    } catch (error) {
      parts.report(error);
      throw error; // what was sent must not look whole
    } finally {
      await opened.disposeAsync();
    }
  };
  const headers = { "content-disposition": `attachment; filename="${name}"` };
  return new Response(read() as unknown as ReadableStream, {
    headers: { ...safeHeaders, ...headers, "content-type": type },
  });
}

const againPath = "/sign-in?again";

/** Leads to the identity provider. It is a link, since a form that is redirected would be blocked. */
async function beginSignIn(parts: DashboardParts, signIn: SignIn, request: Request): Promise<Response> {
  const isAgain = new URL(request.url).searchParams.has("again");
  const { to, cookie } = await signIn.begin(isAgain, tokenOf(request.headers), pageBefore(parts, request));
  return redirect(to, { "set-cookie": cookieOf(cookie, "__Host-keyhole-sign-in") });
}

const pageLengthMax = 2000;

/**
 * The page with the link that somebody followed to sign in: they return to it. Only our own pages count, and a path that
 * fits in a cookie.
 */
function pageBefore({ origin }: DashboardParts, { headers }: Request): string {
  const referrer = headers.get("referer") ?? "";
  const page = referrer.startsWith(`${origin}/`) ? referrer.slice(origin.length) : "/";
  return page.length <= pageLengthMax && isPageFor("operator", page) ? page : "/";
}

/**
 * The identity provider's answer: a new session, whatever the browser had before. The answer is a page that goes on by
 * itself, since browsers do not send a strict cookie that a redirect from another site has set.
 */
async function finishSignIn(parts: DashboardParts, signIn: SignIn, request: Request): Promise<Response> {
  const { headers, url } = request;
  const attempt = tokenOf(headers, "__Host-keyhole-sign-in");
  const { identity, session, page: asked } = await signIn.finish(attempt, new URL(url).search.slice(1));
  const answer = page(parts, 200, goOnPage("Signed in", "You are signed in.", asked));
  answer.headers.append("set-cookie", cookieOf("", "__Host-keyhole-sign-in"));
  answer.headers.append("set-cookie", cookieOf(parts.sessions.begin(identity, session)));
  return answer;
}

function signInFailed(parts: DashboardParts, error: unknown): Response {
  parts.report(forLog(error));
  const { status, message } = refusalOf(error, audienceOf(parts));
  return page(parts, status, signInPage(message), { "set-cookie": cookieOf("", "__Host-keyhole-sign-in") });
}

/**
 * The answer to a browser that sends no session. If it followed a link on another site, it gets a page of ours that opens
 * the same path: the browser sends a strict cookie with that request, and it comes from our own page, so this happens
 * once. The first page is left out where its link carries a code, which would be lost.
 */
function closed(parts: DashboardParts, request: Request, refusal?: string): Response {
  const { entrance } = parts;
  const { pathname, search } = new URL(request.url);
  const asked = pathname + search;
  const mayHoldCode = "code" in entrance && pathname === "/";
  if (isLinkFromElsewhere(request) && isPageFor("operator", asked) && !mayHoldCode) {
    return page(parts, 200, goOnPage("Go on", "You followed a link.", asked));
  }
  return page(parts, 401, "signIn" in entrance ? signInPage(refusal) : lockedPage(asked, refusal));
}

async function unlock(
  parts: DashboardParts,
  entrance: Extract<Entrance, { code: SignInCode }>,
  request: Request,
): Promise<Response> {
  const form = new URLSearchParams(await formText(request, 4096));
  const [code, asked] = [form.get("code") ?? "", form.get("page") ?? ""];
  const to = isPageFor("operator", asked) ? asked : "/";
  // The whole link is the code, too.
  if (!entrance.code.take(code.slice(code.lastIndexOf("#") + 1).trim())) {
    const words = "This code is not valid. Press Enter in the terminal for a new link, or start the dashboard again.";
    return page(parts, 401, lockedPage(to, words));
  }
  parts.used();
  return redirect(to, { "set-cookie": cookieOf(parts.sessions.begin(undefined, tokenOf(request.headers))) });
}

function lock(parts: DashboardParts, request: Request): Response {
  parts.sessions.end(tokenOf(request.headers) ?? "");
  return redirect("/", { "set-cookie": cookieOf("") });
}

function notFound(parts: DashboardParts, request: Request): Response {
  const message = "There is no such page.";
  return sessionOf(request, parts) ? page(parts, 404, refusalPage("Not found", message)) : closed(parts, request);
}

function redirect(to: string, headers: Readonly<Record<string, string>> = {}): Response {
  return respond(303, "", "text/plain", { ...headers, location: to });
}

function json(status: number, document: unknown): Response {
  return respond(status, JSON.stringify(document), "application/json");
}

/** A page as the answer to a request. */
export function page(
  { origin, installationName = new URL(origin).host }: DashboardParts,
  status: number,
  content: Page,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return respond(status, htmlOf(content, installationName), "text/html; charset=utf-8", headers);
}

function respond(status: number, body: string, type: string, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(body, { status, headers: { ...safeHeaders, ...headers, "content-type": type } });
}

/**
 * The headers of every answer: nothing runs or loads but our own files, no other site frames the page or reads from it,
 * and nothing is kept. With another referrer policy, browsers would send `Origin: null` with a form.
 */
const safeHeaders: Readonly<Record<string, string>> = {
  "content-security-policy": [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; "),
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store",
};
