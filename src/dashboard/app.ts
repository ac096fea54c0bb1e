import { Elysia } from "elysia";
import { visible } from "../core/visible.ts";
import type { Answer, Download, Route } from "../pages/route.ts";
import { lockedPage, pageOf, type Reader, refusalPage } from "./frame.tsx";
import { admit, cookieOf, type Door, formText, judgeSource, sessionOf, tokenOf } from "./gate.ts";
import icon from "./icon.svg" with { type: "text" };
import { refusalOf } from "./refusal.ts";
import { routes } from "./routes.ts";
import script from "./script.js" with { type: "text" };
import type { Session } from "./sessions.ts";
import style from "./style.css" with { type: "text" };

/** The dashboard as a function of a request; it listens on nothing. */
export function createDashboard(door: Door) {
  const app = new Elysia({ strictPath: true, normalize: false, handler: { standardHostname: false } })
    .onRequest(({ request }) => {
      const turned = judgeSource(request, door);
      return turned && respond(turned.status, refusalPage("Refused", turned.message));
    })
    .onError({ as: "global" }, ({ error, code, request }) => {
      if (code === "NOT_FOUND") return notFound(door, request);
      door.report(error);
      return respond(500, refusalPage("Failed", "Keyhole failed to answer. Please report it."));
    });
  for (const [path, [type, text]] of Object.entries(assets)) app.get(path, () => respond(200, text, type));
  app.post("/unlock", ({ request }) => unlock(door, request), { parse: "none" });
  app.post("/lock", ({ request }) => lock(door, request), { parse: "none" });
  for (const route of routes) {
    const handle = ({ request, params }: { request: Request; params: unknown }) =>
      answered(door, route, request, (params ?? {}) as Readonly<Record<string, string>>);
    if (route.method === "GET") app.get(route.path, handle);
    else app.post(route.path, handle, { parse: "none" });
  }
  return app;
}

/** Bun.serve's options beside address and port. */
export const serveOptions = {
  development: false,
  reusePort: false,
  // The largest set of values is 8 MiB, and a form may write each of its bytes in three.
  maxRequestBodySize: 32 * 1024 * 1024,
  idleTimeout: 30,
} as const;

const assets: Readonly<Record<string, readonly [type: string, text: string]>> = {
  "/style.css": ["text/css; charset=utf-8", style],
  "/script.js": ["text/javascript; charset=utf-8", script],
  "/icon.svg": ["image/svg+xml", icon],
};

async function answered(
  door: Door,
  route: Route,
  request: Request,
  params: Readonly<Record<string, string>>,
): Promise<Response> {
  const session = sessionOf(request, door);
  const byScript = request.headers.get("accept") === "application/json";
  if (session === undefined) {
    const message = "Nobody is signed in here any more. Nothing was done.";
    return byScript ? json(401, { error: message }) : respond(401, lockedPage(route.method === "POST" ? message : ""));
  }
  const reader: Reader = { actor: door.actor, notice: session.notice, path: new URL(request.url).pathname };
  if (route.isSecret && !byScript) {
    return respond(
      400,
      refusalPage("Not shown", "A value is shown by the page's script only. Turn JavaScript on.", reader),
    );
  }
  const { visit, close } = await admit(door, session, request, params);
  try {
    const answer = await route.answer(visit);
    if ("chunks" in answer) return download(answer, close);
    await close();
    return shown(answer, session, reader, byScript);
  } catch (error) {
    await close();
    const { status, title, message, isDefect } = refusalOf(error);
    if (isDefect) door.report(error);
    return byScript ? json(status, { error: message }) : respond(status, refusalPage(title, message, reader));
  }
}

function shown(answer: Exclude<Answer, Download>, session: Session, reader: Reader, byScript: boolean): Response {
  if ("secret" in answer) return json(200, answer);
  if ("main" in answer) {
    session.notice = undefined;
    return respond(200, pageOf(answer, reader));
  }
  session.notice = answer.notice && visible(answer.notice);
  return byScript ? json(200, { to: answer.to }) : redirect(answer.to);
}

/** A file, sent while it is read. @param close - called at its end, and if the browser leaves */
function download({ name, type, chunks }: Download, close: () => Promise<void>): Response {
  const read = async function* () {
    try {
      for await (const chunk of chunks) yield Buffer.from(chunk);
    } finally {
      await close();
    }
  };
  const headers = { "content-disposition": `attachment; filename="${name}"` };
  return new Response(read() as unknown as ReadableStream, {
    headers: { ...safeHeaders, ...headers, "content-type": type },
  });
}

async function unlock(door: Door, request: Request): Promise<Response> {
  const code = new URLSearchParams(await formText(request)).get("code") ?? "";
  if (!door.code.take(code.trim())) {
    return respond(401, lockedPage("This code is not valid any more. Press Enter in the terminal for a new link."));
  }
  door.used();
  return redirect("/", { "set-cookie": cookieOf(door.sessions.begin()) });
}

function lock(door: Door, request: Request): Response {
  door.sessions.end(tokenOf(request.headers) ?? "");
  return redirect("/", { "set-cookie": cookieOf("") });
}

function notFound(door: Door, request: Request): Response {
  const message = "There is no such page.";
  return sessionOf(request, door) ? respond(404, refusalPage("Not found", message)) : respond(401, lockedPage());
}

function redirect(to: string, headers: Readonly<Record<string, string>> = {}): Response {
  return respond(303, "", "text/plain", { ...headers, location: to });
}

function json(status: number, document: unknown): Response {
  return respond(status, JSON.stringify(document), "application/json");
}

function respond(
  status: number,
  body: string,
  type = "text/html; charset=utf-8",
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(body, { status, headers: { ...safeHeaders, ...headers, "content-type": type } });
}

/**
 * Of every answer: nothing runs or loads but our own files, no other site frames the page or reads from it, and nothing
 * is kept. With another referrer policy, browsers would send `Origin: null` with a form.
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
