import { randomBytes } from "node:crypto";
import { listening } from "../core/listening.ts";
import type { Installation } from "../installation/installation.ts";
import { createDashboard, serveOptions } from "./app.ts";
import type { Provider } from "./provider.ts";
import { Sessions, SignInCode } from "./sessions.ts";
import { SignIn } from "./sign-in.ts";

export type DashboardOptions = {
  /** 0 for any free one. */
  readonly port: number;
  /** What browsers call it; by default a random name, since cookies do not tell ports of one host apart. */
  readonly name?: string | undefined;
  readonly actor: string;
  readonly installationName?: string | undefined;
  readonly report: (error: unknown) => void;
  readonly now?: () => number;
  /** After how long without use it stops; by default an hour. */
  readonly unusedMs?: number;
};

/**
 * Starts the dashboard on loopback. It stops after an hour without use.
 * @returns `origin`, such as `http://keyhole-3f9a.localhost:40123`. `link` makes a link that opens one session within five
 *   minutes, and ends the link before. `stop` stops it. `stopped` resolves then: `unused` if nobody used it for an hour.
 * @throws Refused `unavailable` if the address cannot be used
 */
export function startDashboard(installation: Installation, options: DashboardOptions) {
  const { port, actor, installationName, report, now = Date.now, unusedMs = 3_600_000 } = options;
  const host = options.name ?? `keyhole-${randomBytes(8).toString("hex")}.localhost`;
  const { promise: stopped, resolve } = Promise.withResolvers<{ unused: boolean }>();
  const code = new SignInCode(now);
  let timer = setTimeout(() => end(true), unusedMs);
  const used = () => {
    clearTimeout(timer);
    timer = setTimeout(() => end(true), unusedMs);
  };
  const { handle } = createDashboard({
    installation,
    installationName,
    sessions: new Sessions(now),
    entrance: { code, operator: actor },
    // The port is known after it listens.
    get origin(): string {
      return origin;
    },
    now,
    used,
    report,
    cutAfter: (request, seconds) => server.timeout(request, seconds),
  });
  const server = serveAt("127.0.0.1", port, handle);
  const origin = `http://${host}:${server.port}`;
  const end = (unused: boolean) => {
    clearTimeout(timer);
    void server.stop(true).then(() => resolve({ unused }));
  };
  return { origin, link: () => `${origin}/#${code.make()}`, stop: () => end(false), stopped };
}

/** A team's dashboard, behind a proxy with TLS. */
type TeamOptions = {
  /** What browsers call it, such as `https://secrets.example`. */
  readonly origin: string;
  readonly provider: Provider;
  readonly host: string;
  readonly port: number;
  readonly installationName?: string | undefined;
  /** How long a sign-in is a recent one, however much it is used. */
  readonly freshMsMax: number;
  readonly report: (error: unknown) => void;
};

/**
 * Starts a team's dashboard. It runs until it is stopped.
 * @throws Refused `unavailable` if the address cannot be used
 */
export function startTeamDashboard(
  installation: Installation,
  { origin, provider, host, port, installationName, freshMsMax, report }: TeamOptions,
): { readonly port: number | undefined; readonly stop: () => Promise<void> } {
  const now = Date.now;
  const entrance = { signIn: new SignIn(provider, origin, now, report) };
  const cutAfter = (request: Request, seconds: number) => server.timeout(request, seconds);
  const sessions = new Sessions(now, freshMsMax);
  const parts = { installation, installationName, sessions, entrance, origin, now, used: () => {}, report, cutAfter };
  const server = serveAt(host, port, createDashboard(parts).handle);
  return { port: server.port, stop: () => server.stop(true) };
}

function serveAt(hostname: string, port: number, fetch: (request: Request) => Response | Promise<Response>) {
  return listening(hostname, port, "--port", () => Bun.serve({ ...serveOptions, hostname, port, fetch }));
}
