/** The scripts of docs/alerts.md, with the settings of the page, against a listener of our own. */
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { newFolder } from "../support/folder.ts";
import { binary } from "../support/keyhole.ts";
import { blocksOf, readPage } from "../support/markdown.ts";
import { findProgram, withPrograms } from "../support/programs.ts";
import { siteOf } from "../support/server.ts";

const page = "docs/alerts.md";
const deploy = join(import.meta.dir, "../../docs/deploy");
const settings = blocksOf(page).filter(({ language }) => language === "ini");
const programs = ["cat", "curl", "date", "head", "jq", "mktemp", "rm", "sh", "sleep"];

type Message = { readonly authorization: string | null; readonly body: Record<string, string> };

test("the page names every script and unit, and its settings are the three ways", () => {
  const page_ = readPage(page);
  for (const name of ["keyhole-report.timer", "keyhole-follow.service"]) expect(page_).toContain(`(deploy/${name})`);
  for (const name of ["notify", "report", "follow"]) expect(existsSync(join(deploy, `keyhole-${name}.sh`))).toBeTrue();
  expect(settings.map(({ text }) => /^# (\S+)/.exec(text)?.[1])).toEqual([
    ...["/etc/keyhole/notify.env", "/etc/keyhole/notify.env", "/etc/keyhole/notify.curl", "/etc/keyhole/notify.curl"],
  ]);
});

withPrograms(programs, "the scripts of the page", () => {
  describe("people are told", () => {
    const site = siteOf("sqlite", { production: { NEVER: "canary" } });
    let journal: string;
    let folder: string;
    let listener: ReturnType<typeof Bun.serve>;
    let messages: Message[];
    let statuses: number[];
    let arrived: () => void;
    const children = new Set<Bun.Subprocess>();

    beforeAll(async () => {
      const server = await site.serve();
      await server.says("signed_checkpoint"); // so that the last reads are known
      await server.stop();
      journal = server.said().stdout + server.said().stderr;
    });
    beforeEach(() => {
      folder = newFolder();
      for (const name of ["bin", "state"]) mkdirSync(join(folder, name));
      for (const name of programs) symlinkSync(findProgram(name) ?? name, join(folder, "bin", name));
      for (const name of ["notify", "report", "follow"]) {
        const script = readFileSync(join(deploy, `keyhole-${name}.sh`));
        writeFileSync(join(folder, "bin", `keyhole-${name}`), script, { mode: 0o755 });
      }
      symlinkSync(binary, join(folder, "bin/keyhole"));
      writeFileSync(join(folder, "bin/journalctl"), `#!/bin/sh\ncat '${folder}/journal'\n`, { mode: 0o755 });
      writeFileSync(join(folder, "bin/sendmail"), `#!/bin/sh\ncat > '${folder}/mail'\n`, { mode: 0o755 });
      writeFileSync(join(folder, "journal"), journal);
      messages = [];
      statuses = [];
      arrived = () => {};
      listener = Bun.serve({
        hostname: "127.0.0.1",
        port: 0,
        fetch: async (request) => {
          const body = (await request.json()) as Record<string, string>;
          messages.push({ authorization: request.headers.get("authorization"), body });
          arrived();
          return new Response("", { status: statuses.shift() ?? 200 });
        },
      });
    });
    afterEach(async () => {
      for (const child of children) {
        child.kill("SIGKILL");
        await child.exited;
      }
      children.clear();
      await listener.stop(true);
    });

    /** Settings as the page has them, for one way, with our own address. */
    function settingsFor(way: "mail" | "chat" | "ticket"): Record<string, string> {
      const isTicket = way === "ticket";
      const text = settings.find((block) => block.text.includes(`NOTIFY_BY=${isTicket ? "chat" : way}`))?.text ?? "";
      const curl = settings.find((block) => block.text.includes(isTicket ? "header =" : "hooks/"))?.text ?? "";
      writeFileSync(join(folder, "notify.curl"), curl.replace(/https:\/\/[^/]+/, `http://127.0.0.1:${listener.port}`));
      const pairs = [...text.matchAll(/^([A-Z_]+)=(.*)$/gm)].map(([, name = "", value = ""]) => [name, value]);
      return {
        ...Object.fromEntries(pairs),
        ...(way !== "mail" && { NOTIFY_BY: way, NOTIFY_CURL: join(folder, "notify.curl") }),
        ...{ STATE_DIRECTORY: join(folder, "state"), FOLLOW_PAUSE: "0" },
      };
    }
    function start(command: string[], way: "mail" | "chat" | "ticket", more: Record<string, string> = {}, stdin = "") {
      const env = { ...site.env, ...settingsFor(way), PATH: join(folder, "bin"), HOME: folder, ...more };
      const [name = "", ...args] = command;
      const child = Bun.spawn([join(folder, "bin", name), ...args], {
        ...{ cwd: folder, env, stdin: Buffer.from(stdin), stdout: "pipe", stderr: "pipe" },
        detached: true,
      });
      children.add(child);
      return child;
    }
    async function run(...args: Parameters<typeof start>) {
      const child = start(...args);
      const [exitCode, stderr] = await Promise.all([child.exited, child.stderr.text(), child.stdout.text()]);
      return { exitCode, stderr };
    }
    const told = async (count: number) => {
      while (messages.length < count) {
        const { promise, resolve } = Promise.withResolvers<void>();
        arrived = resolve;
        if (messages.length < count) await promise;
      }
    };

    describe("keyhole-notify", () => {
      const text = 'a "quoted" name\nand <more>\n';
      test("writes a mail", async () => {
        expect(await run(["keyhole-notify", "Keyhole: news"], "mail", {}, text)).toEqual({ exitCode: 0, stderr: "" });
        const mail = readFileSync(join(folder, "mail"), "utf8");
        const head = "To: ops@example.com\nSubject: Keyhole: news\nContent-Type: text/plain; charset=utf-8";
        expect(mail).toBe(`${head}\n\n${text}`);
      });
      test("posts to a chat", async () => {
        expect(await run(["keyhole-notify", "Keyhole: news"], "chat", {}, text)).toEqual({ exitCode: 0, stderr: "" });
        expect(messages).toEqual([{ authorization: null, body: { text: `Keyhole: news: ${text.trimEnd()}` } }]);
      });
      test("opens a ticket, with the token of curl's own file", async () => {
        expect(await run(["keyhole-notify", "Keyhole: news"], "ticket", {}, text)).toEqual({ exitCode: 0, stderr: "" });
        const body = { title: "Keyhole: news", body: text.trimEnd() };
        expect(messages).toEqual([{ authorization: "Bearer REPLACE-ME", body }]);
      });
      test("cuts a long text, and fails if nobody takes it", async () => {
        statuses = [404];
        const ran = await run(["keyhole-notify", "Keyhole"], "chat", {}, "x".repeat(100_000));
        expect(ran.exitCode).toBe(22);
        expect(messages[0]?.body["text"]).toHaveLength("Keyhole: ".length + 3500);
        const unknown = await run(["keyhole-notify", "Keyhole"], "chat", { NOTIFY_BY: "pigeon" });
        expect(unknown.exitCode).toBe(2);
      });
    });

    /** Whatever day the test runs across: on Mondays the script says more. */
    const beWednesday = () => {
      rmSync(join(folder, "bin/date"), { force: true });
      writeFileSync(join(folder, "bin/date"), '#!/bin/sh\n[ "$*" = +%u ] && echo 3\n', { mode: 0o755 });
    };

    test("keyhole-report says nothing if all is well, else what expires and what is wrong", async () => {
      beWednesday();
      expect(await run(["keyhole-report"], "chat")).toMatchObject({ exitCode: 0 });
      expect(messages).toEqual([]);

      await site.key("--org", "acme", "--name", "soon", "--expires-in", "5d");
      expect(await run(["keyhole-report"], "ticket")).toMatchObject({ exitCode: 0 });
      expect(messages.map(({ body }) => body["title"])).toEqual(["Keyhole: to renew or rotate within 30 days"]);
      expect(messages[0]?.body["body"]).toContain("soon");

      // A checkpoint of an entry that is not there: the end of the lane was cut off.
      const checkpoint = { event: "checkpoint", lane: "commands", seq: 1000, mac: "0".repeat(64) };
      const line = JSON.stringify({ time: "2026-01-01T00:00:00.000Z", ...checkpoint });
      writeFileSync(join(folder, "journal"), `${line}\n`);
      expect(await run(["keyhole-report"], "chat")).toMatchObject({ exitCode: 1 });
      expect(messages.at(-1)?.body["text"]).toStartWith("Keyhole: the audit was not verified: ");

      const lost = await run(["keyhole-report"], "chat", { KEYHOLE_DATA: "/dev/null/none", DATABASE_URL: "none" });
      expect(lost.exitCode).toBe(1);
      expect(messages.at(-2)?.body["text"]).toStartWith("Keyhole: what expires is not known: ");
    });

    test("keyhole-report says on one day of the week what nobody used, and if that is not known", async () => {
      // 90 days are a second here.
      rmSync(join(folder, "bin/keyhole"));
      const words = 'for word; do shift; [ "$word" != 90d ] || word=1s; set -- "$@" "$word"; done';
      writeFileSync(join(folder, "bin/keyhole"), `#!/bin/sh\n${words}\nexec '${binary}' "$@"\n`, { mode: 0o755 });
      await site.key("--org", "acme", "--name", "idle");
      const terms = ["--issuer", "https://issuer.example.com", "--audience", "keyhole", "--claim", "sub=web"];
      await site.json(["trust", "add", "--name", "pods", ...terms, "--project", "web", "--env", "production"]);
      beWednesday();
      const titled = (words: string) => messages.filter(({ body }) => body["title"]?.startsWith(words));
      expect(await run(["keyhole-report"], "ticket", { REPORT_UNUSED_ON: "4" })).toMatchObject({ exitCode: 0 });
      expect(titled("Keyhole: n")).toEqual([]);
      const report = () => titled("Keyhole: not used for 90 days").at(-1)?.body["body"] ?? "";
      while (!report().includes("idle") || !report().includes("NEVER")) {
        const ran = await run(["keyhole-report"], "ticket", { REPORT_UNUSED_ON: "3" });
        expect(ran).toEqual({ exitCode: 0, stderr: "" });
      }
      expect(report()).toContain("Variables of acme/web, production\nNAME");
      const endless = titled("Keyhole: never expires").at(-1)?.body["body"] ?? "";
      expect([...endless.matchAll(/ (idle|pods|soon) /g)].map(([, name]) => name)).toEqual(["idle", "pods"]);

      await site.sql("delete from last_reads_known");
      expect(await run(["keyhole-report"], "ticket", { REPORT_UNUSED_ON: "3" })).toMatchObject({ exitCode: 1 });
      const [news] = titled("Keyhole: what nobody uses is not known");
      expect(news?.body["body"]).toContain("The last reads are not known");
    });

    test("keyhole-follow hands over what is new, tries again, and goes on after a restart", async () => {
      const last = join(folder, "state/last");
      writeFileSync(last, new Date().toISOString());
      const first = start(["keyhole-follow"], "chat");
      statuses = [404];
      await site.key("--org", "acme", "--name", "one");
      await told(2);
      expect(messages[0]).toEqual(messages[1] as Message);
      expect(messages[0]?.body["text"]).toMatch(/^Keyhole: 20\d\d-\S+Z \S+ key\.create acme /);
      await site.key("--org", "acme", "--name", "two");
      await told(3); // so the first one is written down
      expect(readFileSync(last, "utf8")).toMatch(/^20\d\d-\d\d-\d\dT[\d:]+Z\n$/);
      process.kill(-first.pid, "SIGKILL");
      await first.exited;

      await site.json(["project", "create", "acme/other"]); // an action that is not followed
      const { id } = await site.key("--org", "acme", "--name", "three");
      const before = messages.length;
      const second = start(["keyhole-follow"], "chat");
      while (!messages.slice(before).some(({ body }) => body["text"]?.includes(id))) await told(messages.length + 1);
      process.kill(-second.pid, "SIGKILL");
      await second.exited;
      for (const { body } of messages) expect(body["text"]).toContain(" key.create ");
    });
  });
});
