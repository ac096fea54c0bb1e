/**
 * `bun run dashboard`: the dashboard of a checkout, for whoever restyles it. It has one address, the page /parts, and
 * sessions that a restart keeps. It is a program of its own, so nothing of this is in what people install.
 *
 * The first argument is the port; 0 for any free one.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { readConfig } from "../../src/core/settings/settings.ts";
import { createDashboard, page, serveOptions } from "../../src/dashboard/app.ts";
import { pageOf } from "../../src/dashboard/frame.tsx";
import { sessionOf } from "../../src/dashboard/gate.ts";
import { nothingBegun, type Session, Sessions, SignInCode } from "../../src/dashboard/sessions.ts";
import { openInstallation } from "../../src/installation/installation.ts";
import { actorOf } from "../../src/people/desk/actor.ts";
import { answerOfParts, partsPage, partsPaths } from "./parts.tsx";

/** Sessions in a file, with mode 0600: of each the digest of its token, and two moments. Nobody can sign in with them. */
class KeptSessions extends Map<string, Session> {
  readonly #file: string;

  constructor(file: string) {
    super();
    this.#file = file;
    for (const [digest, startedAt, usedAt] of readKept(file)) {
      super.set(digest, { identity: undefined, freshUntil: undefined, startedAt, usedAt, ...nothingBegun() });
    }
  }

  override set(digest: string, session: Session): this {
    super.set(digest, session);
    this.write();
    return this;
  }

  override delete(digest: string): boolean {
    const isGone = super.delete(digest);
    this.write();
    return isGone;
  }

  write(): void {
    const kept = [...this].map(([digest, { startedAt, usedAt }]) => [digest, startedAt, usedAt]);
    mkdirSync(dirname(this.#file), { recursive: true, mode: 0o700 });
    if (this.size > 0) writeFileSync(this.#file, JSON.stringify(kept), { mode: 0o600 });
    else rmSync(this.#file, { force: true });
  }
}

function readKept(file: string): readonly (readonly [digest: string, startedAt: number, usedAt: number])[] {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return []; // there is none, or a killed process left half of it
  }
}

const [, , port = "4200"] = process.argv;
const say = (line: string) => void process.stderr.write(`${line}\n`);
const config = readConfig(process.env);
const kept = new KeptSessions(join(config.dataFolder, "workshop-sessions.json"));
const code = new SignInCode(Date.now);
const parts = {
  installation: await openInstallation(config, say),
  installationName: "workshop",
  sessions: new Sessions(Date.now, undefined, kept),
  entrance: { code, operator: actorOf(process.env) },
  get origin(): string {
    return `http://keyhole.localhost:${server.port}`;
  },
  now: Date.now,
  used: () => kept.write(),
  report: (error: unknown) => console.error(error),
};
const app = createDashboard(parts);
app.get("/parts", ({ request }) => {
  if (sessionOf(request, parts) === undefined) return Response.redirect("/", 303);
  const reader = { actor: "ana@laptop", rights: "operator", path: "/p/acme/web/variables", pending: 3 } as const;
  const notice = { words: "Updated `LOG_LEVEL` in acme/web.", links: { Undo: "/parts" } };
  return page(parts, 200, pageOf(partsPage(Date.now()), { ...reader, notice }));
});
for (const path of partsPaths) {
  app.post(path, async ({ request }) => answerOfParts(new URLSearchParams(await request.text())), { parse: "none" });
}
const server = Bun.serve({ ...serveOptions, hostname: "127.0.0.1", port: Number(port), fetch: app.handle });
const link = () => say(`${parts.origin}/#${code.make()}`);
link();
say(`Open this link once. ${parts.origin}/parts shows the parts; Enter prints a new link, Ctrl-C ends.`);
if (process.stdin.isTTY) process.stdin.on("data", link);
