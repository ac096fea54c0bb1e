import { hostname } from "node:os";
import { isIssuer, isLoopback, issuerRule, mayAsk, originOf } from "../core/json-request.ts";
import { configProblem, usageProblem } from "../core/problem.ts";
import { readSecretFile, warnOfReaders } from "../core/settings/secret-file.ts";
import { parsePort, readConfig } from "../core/settings/settings.ts";
import { excerpt } from "../core/visible.ts";
import { type DashboardOptions, startDashboard, startTeamDashboard } from "../dashboard/serve.ts";
import { type Installation, openInstallation } from "../installation/installation.ts";
import { actorOf } from "../people/desk/actor.ts";
import { input } from "../people/desk/inputs.ts";
import { harden } from "./harden.ts";
import { answer } from "./terminal/answer.ts";
import { type CommandGroup, processCommand } from "./terminal/draw.ts";
import { toProblem } from "./terminal/failure.ts";
import type { CommandContext } from "./terminal/verb.ts";

/** `keyhole dashboard`: pages for one person at their own machine, or for a team. */
const dashboard = processCommand({
  path: "dashboard",
  about:
    "Show the dashboard in a browser on this machine, by a link that works once; or serve it to a team that signs in.",
  examples: [
    "keyhole dashboard",
    "keyhole dashboard --port 4200 --name keyhole.localhost",
    "keyhole dashboard --origin https://secrets.example --issuer https://id.example --client-id keyhole --port 4200",
  ],
  right: "operator",
  inputs: {
    port: input("--port <number>", "port to listen on; 0 for any free one (default: 0)"),
    name: input(
      "--name <host>",
      "what the browser calls it: localhost, or a name that ends with .localhost (default: a random one)",
      parseName,
    ),
    origin: input("--origin <origin>", "for a team: what browsers call it, behind a proxy with TLS", parseOrigin),
    issuer: input("--issuer <url>", "for a team: the identity provider", parseIssuer),
    clientId: input("--client-id <id>", "for a team: what the provider calls this dashboard", parseClientId),
    scope: input(
      "--scope <name,..>",
      "for a team: what the provider is asked for beside openid, profile and email",
      parseScopes,
    ),
  },
  action: async (context, { port = "0", name, origin, issuer, clientId, scope: scopes = [] }) => {
    const team = teamOf(origin, issuer, clientId);
    if (team === undefined && scopes.length > 0) throw usageProblem("--scope is for a team, with --origin.");
    if (team !== undefined && name !== undefined)
      throw usageProblem("--name is for one's own machine, without --origin.");
    const config = readConfig(context.env);
    if (team && config.socket) throw usageProblem("A team's dashboard listens on an address: HOST names a socket.");
    const secret = team && readSecret(context);
    const { installationName, freshMsMax } = readDashboard(context.env);
    const installation = await openInstallation(config, context.say, {});
    harden();
    const options = {
      port: parsePort("--port", port),
      installationName: installationName ?? (team === undefined ? hostname() : undefined),
      report: (error: unknown) => context.say(toProblem(error, context).message),
    };
    if (team === undefined) return serveOne(context, installation, { ...options, name, actor: actorOf(context.env) });
    const provider = { issuer: team.issuer, clientId: team.clientId, clientSecret: secret, scopes };
    const dashboard = startTeamDashboard(installation, {
      ...options,
      origin: team.origin,
      provider,
      host: config.host,
      freshMsMax,
    });
    const address = originOf(config.host, dashboard.port ?? options.port);
    if (!isLoopback(new URL(address).hostname))
      context.say("WARNING: The dashboard listens beyond this machine without TLS.");
    await answer(context, { origin: team.origin, address }, `Serving ${team.origin} at ${address}. Ctrl-C ends.`);
    const { promise, resolve } = Promise.withResolvers<void>();
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => resolve());
    await promise;
    await dashboard.stop();
  },
});

export const dashboards: CommandGroup = { rows: [dashboard] };

async function serveOne(context: CommandContext, installation: Installation, options: DashboardOptions): Promise<void> {
  const dashboard = startDashboard(installation, options);
  const link = dashboard.link();
  await answer(context, { origin: dashboard.origin, link }, "", `${link}\n`);
  const { stdin } = context.terminal;
  if (stdin.isTTY) {
    context.say("Open this link in a browser. It works once, for five minutes; Enter prints a new one, Ctrl-C ends.");
    stdin.on("data", () => context.say(dashboard.link()));
  }
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, dashboard.stop);
  const { unused } = await dashboard.stopped;
  stdin.pause();
  if (unused) context.say("Nobody used the dashboard for an hour, so it ended.");
}

/** @throws Problem unless all three are given, or none */
function teamOf(origin: string | undefined, issuer: string | undefined, clientId: string | undefined) {
  if (origin !== undefined && issuer !== undefined && clientId !== undefined) return { origin, issuer, clientId };
  if (origin === undefined && issuer === undefined && clientId === undefined) return undefined;
  throw usageProblem("For a team, give --origin, --issuer and --client-id together.");
}

/**
 * The settings of the dashboard alone: which installation this is, if somebody has said so, and how long a sign-in is a
 * recent one, however much it is used.
 */
export function readDashboard(env: CommandContext["env"]) {
  const { KEYHOLE_DASHBOARD_NAME: name, KEYHOLE_SIGN_IN_MINUTES: minutes = "30" } = env;
  if (name !== undefined && (name !== excerpt(name).trim() || name.length > 60)) {
    throw configProblem("KEYHOLE_DASHBOARD_NAME must have at most 60 characters that are visible, such as acme live.");
  }
  if (!/^[1-5]\d$|^60$/.test(minutes)) {
    throw configProblem("KEYHOLE_SIGN_IN_MINUTES must be a whole number from 10 to 60.");
  }
  return { installationName: name, freshMsMax: Number(minutes) * 60_000 };
}

/** The client's secret, if the provider gave one. @throws Problem if it is empty or cannot be read */
function readSecret({ env, say }: CommandContext): string | undefined {
  const { KEYHOLE_CLIENT_SECRET: given, KEYHOLE_CLIENT_SECRET_FILE: file } = env;
  if (given !== undefined && file !== undefined) {
    throw configProblem("Set KEYHOLE_CLIENT_SECRET or KEYHOLE_CLIENT_SECRET_FILE, and not both.");
  }
  if (file === undefined) return given;
  const secret = readSecretFile("KEYHOLE_CLIENT_SECRET_FILE", file);
  warnOfReaders("The file of KEYHOLE_CLIENT_SECRET_FILE", file, say);
  return secret;
}

/** Browsers resolve these names to this machine themselves, without asking a name server. */
function parseName(text: string): string {
  if (/^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)?localhost$/.test(text)) return text;
  throw usageProblem("--name must be localhost, or a name that ends with .localhost, in lower case.");
}

/** Browsers send a host in lower case, without the port that https has anyway. */
function parseOrigin(text: string): string {
  if (mayAsk(text) && new URL(text).origin === text) return text;
  throw usageProblem("--origin must be https, a host in lower case and nothing more, such as https://secrets.example.");
}

function parseIssuer(text: string): string {
  if (isIssuer(text)) return text;
  throw usageProblem(`--issuer ${issuerRule}`);
}

/** @see https://datatracker.ietf.org/doc/html/rfc6749#section-3.3 */
function parseScopes(text: string): readonly string[] {
  const scopes = text.split(/[\s,]+/);
  if (scopes.every((scope) => /^[!#-[\]-~]+$/.test(scope))) return scopes;
  throw usageProblem("--scope must be the names of scopes, such as groups or groups,roles.");
}

function parseClientId(text: string): string {
  if (text !== "") return text;
  throw usageProblem("--client-id is empty: give what the provider calls this dashboard.");
}
