import { usageProblem } from "../core/problem.ts";
import { parsePort, readConfig } from "../core/settings.ts";
import { startDashboard } from "../dashboard/serve.ts";
import { actorOf } from "../desk/actor.ts";
import { openInstallation } from "../desk/installation.ts";
import { answer } from "../terminal/answer.ts";
import { type Surroundings, verb } from "../terminal/command.ts";
import { toProblem } from "../terminal/failure.ts";
import { harden } from "./harden.ts";

/** `keyhole dashboard`: pages for one person at their own machine. */
export function dashboardCommand(here: Surroundings) {
  return verb(
    "dashboard",
    "Show the dashboard in a browser on this machine. It prints a link that works once.",
    "keyhole dashboard",
    "keyhole dashboard --port 4200 --name keyhole.localhost",
  )
    .option("--port <number>", "port to listen on; 0 for any free one (default: 0)")
    .option(
      "--name <host>",
      "what the browser calls it: localhost, or a name that ends with .localhost (default: a random one)",
      parseName,
    )
    .action(async ({ port = "0", name }) => {
      const installation = await openInstallation(readConfig(here.env), here.say, false);
      harden();
      const report = (error: unknown) => here.say(toProblem(error).message);
      const options = { port: parsePort("--port", port), name, actor: actorOf(here.env), report };
      const dashboard = startDashboard(installation, options);
      const link = dashboard.link();
      await answer(here, { origin: dashboard.origin, link }, "", `${link}\n`);
      const { stdin } = here.terminal;
      if (stdin.isTTY) {
        here.say("Open this link in a browser. It works once, for five minutes; Enter prints a new one, Ctrl-C ends.");
        stdin.on("data", () => here.say(dashboard.link()));
      }
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, dashboard.stop);
      const { unused } = await dashboard.stopped;
      stdin.pause();
      if (unused) here.say("Nobody used the dashboard for an hour, so it ended.");
    });
}

/** Browsers resolve these names to this machine themselves, without asking a name server. */
function parseName(text: string): string {
  if (/^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)?localhost$/.test(text)) return text;
  throw usageProblem("--name must be localhost, or a name that ends with .localhost, in lower case.");
}
