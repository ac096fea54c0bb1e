import { join } from "node:path";
import { guardedFetch } from "../core/guarded-fetch.ts";
import type { Log } from "../core/log.ts";
import { Problem, usageProblem } from "../core/problem.ts";
import { Refused } from "../core/refused.ts";
import { readConfig } from "../core/settings/settings.ts";
import { quoted } from "../core/words/shell.ts";
import { prepareFolder } from "../installation/data-folder.ts";
import { openInstallation } from "../installation/installation.ts";
import { planAccount } from "../kinds/accounts/write.ts";
import { putFile } from "../kinds/files/write.ts";
import { planEach } from "../kinds/variables/write.ts";
import { actorOf } from "../people/desk/actor.ts";
import { type AdminContext, adminContextOf, operator } from "../people/desk/context.ts";
import { applying } from "../people/desk/plan.ts";
import { createKey, listKeys, revokeKey } from "../people/keys/keys.ts";
import { createOrganization, listOrganizations } from "../people/projects/organizations.ts";
import { createProject, listProjects } from "../people/projects/projects.ts";
import { apiRoot } from "../serve/api/app.ts";
import { openLog } from "../serve/process/log.ts";
import { startServer } from "../serve/process/serve.ts";
import { harden } from "./harden.ts";
import { answer } from "./terminal/answer.ts";
import { type CommandContext, startedAs, verb } from "./terminal/verb.ts";

/** `keyhole demo`: fills an embedded database of its own, serves it, and reads from it once. */
export function demoCommand(context: CommandContext) {
  return verb(
    "demo",
    "Serve made-up secrets from a data folder of its own (default: ./.keyhole/demo), to try the API.",
    "keyhole demo",
  )
    .option("--once", "stop after the first read")
    .action(async ({ once }) => {
      // A demonstration touches nothing that production uses.
      const left = ofProduction.filter((name) => context.env[name] !== undefined);
      const env = { ...context.env, ...Object.fromEntries(left.map((name) => [name, undefined])) };
      const settings = readConfig(env);
      if (settings.socket !== undefined) throw usageProblem("The demo is asked over http: unset HOST.");
      prepareFolder(settings.dataFolder);
      const config = { ...settings, dataFolder: join(settings.dataFolder, "demo") };
      const { log: logAll, flush } = openLog((text) => void context.terminal.stderr.write(text), {
        pretty: true,
        now: Date.now,
      });
      // A signed note of several lines is not what a newcomer looks for.
      const log: Log = (event) => {
        if (event["event"] !== "signed_checkpoint") logAll(event);
      };
      const installation = await openInstallation(config, context.say, { begin: true, upgrade: true });
      const admin = adminContextOf(installation, operator(actorOf(env)));
      if ((await listOrganizations(admin)).some(({ slug }) => slug !== organization)) {
        const words = `${config.dataFolder} holds other data: set KEYHOLE_DATA to another folder for the demo.`;
        throw new Refused("exists", words);
      }
      harden();
      // The server starts first. It refuses a second demo in this folder, which would revoke the first one's key.
      const start = (port: number) => startServer({ ...config, port }, installation, log, context.say);
      const server = await start(config.port).catch((error: unknown) => {
        if (error instanceof Refused && error.message.startsWith("The address")) return start(0); // it is taken
        throw error;
      });
      const key = await fill(admin).finally(() => admin.close());
      const read = await firstRead(server.origin, key);
      const invited = once ? "" : invitation(server.origin, key, dashboardLine(config.dataFolder, left));
      const out = `${invited}GET ${read.path} answered ${read.status}:\n\n${JSON.stringify(read.body, null, 2)}\n\n`;
      await answer(context, { origin: server.origin, key, ...read }, "", out);
      if (read.status !== 200) throw new Problem(1, "demo_failed", `The first read answered ${read.status}.`);
      if (once) server.stop();
      else context.say("Press Ctrl-C to stop.");
      const exitCode = await server.stopped;
      flush();
      if (exitCode !== 0) throw new Problem(1, "internal_error", "The server stopped after a defect.");
    });
}

const organization = "demo";
const project = "demo/web";

/** Writes the demonstration's data, revokes the keys of earlier demonstrations, and creates a new one. */
async function fill(admin: AdminContext): Promise<string> {
  const organizations = await listOrganizations(admin);
  if (organizations.length === 0) await createOrganization(admin, { slug: organization, name: "Demo", plan: "pro" });
  if ((await listProjects(admin, organization)).length === 0) await createProject(admin, project, { name: "Web shop" });
  const variables = [
    { name: "DATABASE_URL", value: "postgres://shop:not-a-real-password@db.internal/shop" },
    { name: "GREETING", value: 'It\'s "demo" time, für alle: $HOME stays as it is' },
    { name: "TLS_CERT", value: "-----BEGIN CERTIFICATE-----\nbm90IHJlYWw=\n-----END CERTIFICATE-----\n" },
  ];
  const changes = new Map([
    ["staging", { entries: variables }],
    ["production", { entries: [{ name: "DATABASE_URL", value: "postgres://not-for-this-key" }] }],
  ]);
  await applying(admin, (admin) => planEach(admin, project, changes));
  const fields = { username: "ci", password: "not-a-real-password" };
  await applying(admin, (admin) => planAccount(admin, project, "registry", ["staging"], fields));
  await putFile(admin, project, {
    content: Buffer.from('{"client_id":"demo","note":"not a real credential"}\n'),
    path: "config/credentials.json",
    environments: ["staging"],
    contentType: "application/json",
  });
  for (const old of await listKeys(admin, organization)) {
    if (old.name === "demo" && old.status === "active") await revokeKey(admin, old.id);
  }
  const { key } = await createKey(admin, {
    organization,
    name: "demo",
    resources: ["projects", "variables", "accounts", "files"],
    projects: ["web"],
    environments: ["staging"],
  });
  return key;
}

async function firstRead(origin: string, key: string) {
  const path = `${apiRoot}/projects/web/variables?environment=staging`;
  const headers = { Authorization: `Bearer ${key}` };
  const response = await guardedFetch(`${origin}${path}`, { headers, proxy: false });
  return { path, status: response.status, body: (await response.json()) as unknown };
}

/** Requests to try, as long as the server runs. */
function invitation(origin: string, key: string, dashboard: string): string {
  const curl = (path: string) => `  curl -s -H "Authorization: Bearer $KEY" '${origin}${apiRoot}${path}'`;
  return `A key that reads the staging environment of ${project}:

  KEY=${key}

Try:

${curl("/organization")}
${curl("/projects/web")}
${curl("/projects/web/variables?environment=staging")}
${curl("/projects/web/variables?environment=staging&format=env")}
${curl("/projects/web/variables?environment=production")}
${curl("/projects/web/accounts")}
${curl("/files?project=web&environment=staging")}

Or look at it in a browser. In another terminal, in this folder:

  ${dashboard}

`;
}

/** Settings of a real installation, which the demonstration must not inherit. */
const ofProduction = ["DATABASE_URL", "DATABASE_PASSWORD_FILE", "KEYHOLE_CHECKPOINT_FILE", "KEYHOLE_WITNESS"] as const;

/** Starts the dashboard of the demonstration. @param left - settings that the other terminal may have, too */
function dashboardLine(dataFolder: string, left: readonly string[]): string {
  const apart = left.length === 0 ? "" : `env ${left.map((name) => `-u ${name} `).join("")}`;
  return `${apart}KEYHOLE_DATA=${quoted(dataFolder)} ${startedAs()} dashboard`;
}
