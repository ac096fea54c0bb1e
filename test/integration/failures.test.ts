/**
 * Who is told what of a failure of this host, at both doors. Every folder, host, user and file that is set has a canary
 * in its name: an operator is told which one it is, and nobody else is.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readConfig } from "../../src/core/settings/settings.ts";
import { openInstallation } from "../../src/installation/installation.ts";
import { cosign, encodeWitness, witnessOf } from "../../src/record/note.ts";
import { newFolder } from "../support/folder.ts";
import { runHere } from "../support/here.ts";
import { personsVisitor, visitorOf } from "../support/pages.ts";
import { freePort } from "../support/port.ts";
import type { World } from "../support/world.ts";

type Place = {
  readonly data: string;
  readonly checkpoint: string;
  readonly sql: (text: string) => void;
  /** Runs a command of an operator. */
  readonly run: (line: string) => Promise<unknown>;
  /** Puts the database back as it was at first. */
  readonly putBack: () => void;
};

type Settings = Readonly<Record<string, string>>;

/** What is done to an installation that works, what an operator is told, whether it may happen under a dashboard. */
type Failure = [
  breaks: (place: Place) => Settings | undefined | Promise<Settings | undefined>,
  names: string | RegExp,
  later?: true,
];

/** A PostgreSQL of which nothing is there. */
const onPostgres = (rest: string) => ({
  DATABASE_URL: `postgres://canary-user:canary-password@${rest}`,
  KEYHOLE_ROOT_KEY: Buffer.alloc(32).toString("base64"),
});
const setting = (settings: Settings) => () => settings;
/** What does not return settings. */
const to = (work: (place: Place) => unknown) => async (place: Place) => {
  await work(place);
  return undefined;
};

const stopping: (() => Promise<void>)[] = [];
const failures: Readonly<Record<string, Failure>> = {
  "a root key that is missing": [to(({ data }) => rmSync(join(data, "root.key"))), "root.key"],
  "a root key that is damaged": [to(({ data }) => writeFileSync(join(data, "root.key"), "canary")), "root.key"],
  "another root key": [setting({ KEYHOLE_ROOT_KEY: Buffer.alloc(32).toString("base64") }), "KEYHOLE_ROOT_KEY"],
  "a command for the root key that fails": [
    setting({ KEYHOLE_ROOT_KEY_COMMAND: "/canary/command" }),
    "KEYHOLE_ROOT_KEY_COMMAND",
  ],
  "a damaged pepper": [
    to(({ sql }) => sql("update system_keys set wrapped = zeroblob(length(wrapped)) where purpose = 'pepper'")),
    "pepper",
  ],
  "a folder without a Keyhole": [setting({ KEYHOLE_DATA: "/nowhere/canary" }), "/nowhere/canary"],
  "a data folder that is none": [setting({ KEYHOLE_DATA: "/dev/null/canary" }), "/dev/null/canary"],
  "a database that is a link": [
    to(({ data }) => {
      const path = join(data, "keyhole.db");
      renameSync(path, `${path}-canary`);
      symlinkSync(`${path}-canary`, path);
    }),
    "is a symbolic link",
  ],
  "a database that is gone": [to(({ data }) => rmSync(join(data, "keyhole.db"))), /KEYHOLE_DATA|canary-data/, true],
  "a file that is no database": [
    to(({ data }) => writeFileSync(join(data, "keyhole.db"), "canary".repeat(1000))),
    "KEYHOLE_DATA",
    true,
  ],
  "a database of an older program": [
    to(({ sql }) =>
      sql("delete from keyhole_migrations where created_at = (select max(created_at) from keyhole_migrations)"),
    ),
    "keyhole db upgrade",
  ],
  "a database of a newer program": [
    to(({ sql }) => sql("insert into keyhole_migrations (hash, created_at) values ('canary', 9000000000000)")),
    "newer Keyhole",
  ],
  "tables with a trigger": [
    to(({ sql }) => sql("create trigger canary_trigger after insert on projects begin select 1; end")),
    "canary_trigger",
    true,
  ],
  "a file of the checkpoint that cannot be read": [to(({ checkpoint }) => mkdirSync(checkpoint)), "canary-seen"],
  "a checkpoint that nobody signed": [to(({ checkpoint }) => writeFileSync(checkpoint, "canary")), "canary-seen", true],
  "a database that was put back": [
    to(async ({ run, putBack }) => {
      await run("audit accept-restore --yes"); // a notary signs
      putBack();
    }),
    "canary-seen",
    true,
  ],
  "a witness that has seen more": [
    async ({ run, putBack, checkpoint }) => {
      await run("audit accept-restore --yes");
      const note = readFileSync(checkpoint, "utf8");
      rmSync(checkpoint);
      putBack();
      const signer = witnessOf("canary.example", new Uint8Array(32));
      const cosigned = note + cosign(`${note.split("\n\n")[0]}\n`, signer, Date.now());
      const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response(cosigned) });
      stopping.push(() => server.stop(true));
      return { KEYHOLE_WITNESS: `http://127.0.0.1:${server.port}#${encodeWitness(signer)}` };
    },
    "the witness canary.example has seen",
  ],
  "a witness without a key": [setting({ KEYHOLE_WITNESS: "https://canary.example#canary" }), "KEYHOLE_WITNESS"],
  "a setting that is none": [setting({ KEYHOLE_HISTORY_MIB: "canary" }), "KEYHOLE_HISTORY_MIB"],
  "a PostgreSQL that is away": [() => onPostgres(`127.0.0.1:${freePort()}/canary-database`), "127.0.0.1"],
  "a host that nobody knows": [setting(onPostgres("canary.invalid/k")), "canary.invalid"],
  "a parameter that nobody knows": [setting(onPostgres("canary.invalid/k?canary=1")), "DATABASE_URL"],
};

describe("a failure of this host", () => {
  const folder = newFolder();
  const signIn = { issuer: "https://id.example", subject: "ana-1" };
  afterAll(async () => {
    for (const stop of stopping) await stop();
  });
  const settingsIn = (place: string) => ({
    KEYHOLE_DATA: join(place, "canary-data"),
    KEYHOLE_CHECKPOINT_FILE: join(place, "canary-seen", "checkpoint"),
  });
  const ok = join(folder, "works");

  beforeAll(async () => {
    mkdirSync(join(ok, "canary-seen"), { recursive: true });
    for (const line of [
      "org create acme",
      "project create acme/web",
      `person add ana --org acme --issuer ${signIn.issuer} --subject ${signIn.subject}`,
      "person grant ana see,write,audit --all-projects --all-environments",
    ]) {
      await ran(line, settingsIn(ok));
    }
  });

  async function ran(line: string, env: Settings) {
    expect(await runHere(line.split(" "), { cwd: folder, env })).toMatchObject({ exitCode: 0 });
  }

  /** A copy of an installation that works. */
  function copied(name: string) {
    const place = join(folder, name.replaceAll(" ", "-"));
    cpSync(ok, place, { recursive: true });
    const env = settingsIn(place);
    const { KEYHOLE_DATA: data, KEYHOLE_CHECKPOINT_FILE: checkpoint } = env;
    const sql = (text: string) => {
      using database = new Database(join(data, "keyhole.db"));
      database.run(text);
    };
    const run = (line: string) => ran(line, env);
    const putBack = () => {
      for (const side of ["-wal", "-shm"]) rmSync(join(data, `keyhole.db${side}`), { force: true });
      cpSync(join(ok, "canary-data", "keyhole.db"), join(data, "keyhole.db"));
    };
    return { place: { data, checkpoint, sql, run, putBack }, env };
  }

  test.each(Object.keys(failures))("is explained to operators alone, by commands: %s", async (name) => {
    const [breaks, names] = failures[name] as Failure;
    const { place, env: works } = copied(name);
    const env = { ...works, ...(await breaks(place)) };
    // What reads goes on for an operator, who may be the one to accept it; `audit verify` says what is wrong.
    const isSeen = /put back|checkpoint that|witness that/.test(name);
    const words = isSeen ? "audit verify" : "project create acme/other";
    const operators = await runHere(words.split(" "), { cwd: folder, env });
    expect(operators.stderr).toMatch(names);
    const door = { ...env, SSH_ORIGINAL_COMMAND: words };
    expectUntold(
      await runHere(["door", "--person", "ana"], { cwd: folder, env: door }).then((ran) => {
        expect(ran).toMatchObject({ exitCode: 6, stdout: "" });
        return ran.stderr;
      }),
    );
  });

  const explained = Object.keys(failures).filter((name) => failures[name]?.[2]);
  test.each(explained)("is explained to operators alone, by a dashboard that runs: %s", async (name) => {
    const [breaks, names] = failures[name] as Failure;
    const { place, env } = copied(`later ${name}`);
    const installation = await openInstallation(readConfig(env), () => {});
    const w = { installation, clock: {}, secrets: new Set() } as unknown as World;
    const [operator, ana] = [await visitorOf(w), personsVisitor(w, signIn)];
    await breaks(place);
    const fields = { org: "acme", slug: "other", name: "" };
    const [told, untold] = [await operator.send("/projects", fields), await ana.send("/projects", fields)];
    expect(told.error).toMatch(names);
    expect([told.status, untold.status]).toEqual([503, 503]);
    expectUntold(untold.error ?? "");
    // What the page does not say, the dashboard's log does.
    expect(ana.reported).toHaveLength(1);
  });

  function expectUntold(said: string) {
    expect(said).not.toMatch(/canary|KEYHOLE_|DATABASE_URL|root|folder|\/tmp|127\.0\.0\.1/);
    expect(said).toContain("ask an operator");
  }
});
