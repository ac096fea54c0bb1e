import { beforeAll, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import type { CommandUnknownOpts } from "@commander-js/extra-typings";
import { isPeoples } from "../../src/cli/door.ts";
import { pathOf } from "../../src/cli/terminal/command.ts";
import { rowOf } from "../../src/cli/terminal/draw.ts";
import { putFile } from "../../src/kinds/files/write.ts";
import { buildProgram } from "../../src/main.ts";
import { createKey } from "../../src/people/keys/keys.ts";
import { createTrust } from "../../src/people/keys/trusts.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { createProject } from "../../src/people/projects/projects.ts";
import { everyRight, type Right } from "../../src/serve/access/rights.ts";
import { throughDoorHere } from "../support/door.ts";
import { notarize } from "../support/notarize.ts";
import { grantRights, setAccount, setVariables } from "../support/plans.ts";
import { describeBoth } from "../support/world.ts";

/*
 * Every command that comes through the door, for somebody with no more than it needs, with all but that, and with all
 * rights elsewhere. A command works for exactly those who have what it needs, and says the same of what is forbidden and
 * of what does not exist. That more rights never close a door is tried by property/rights.test.ts.
 */

type Row = {
  readonly words: string;
  /** The rights that it needs, each of which is a list of which one is enough. */
  readonly needs: readonly (readonly Right[])[];
  /** A list is not refused: it has nothing in it. */
  readonly isList?: true;
  readonly stdin?: string;
  /** The code for those who have what it needs, if that is another one than `done`. */
  readonly gives?: string;
};

const keyInSet = JSON.stringify(generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" }));

const refusals = ["not_found", "forbidden"];
const secret = "canary-of-commands";
/** `#` is a number of its own for each run; `{…}` is what was made for it. */
const rows: readonly Row[] = [
  { words: "org list", needs: [[...everyRight]] },
  { words: "project create ORG/new-#", needs: [["write"]] },
  { words: "project list ORG", needs: [["see"]], isList: true },
  { words: "project environments ORG/{project} --env production", needs: [["see"], ["write"]] },
  { words: "project rename ORG/{project} renamed-# --yes", needs: [["see"], ["write"]] },
  { words: "project delete ORG/{project} --yes", needs: [["see"], ["write"]] },
  { words: "var set ORG/web staging SET_# --value 1", needs: [["write"]] },
  { words: "var mark ORG/web staging TOKEN --note note-#", needs: [["write"]] },
  { words: "var get ORG/web staging TOKEN", needs: [["reveal"]] },
  { words: "var list ORG/web staging", needs: [["see"]] },
  { words: "var diff ORG/web staging production", needs: [["reveal"]] },
  { words: "var delete ORG/web staging {variable}", needs: [["write"]] },
  { words: "var copy ORG/web staging --to-env development --keys TOKEN", needs: [["reveal"], ["write"]] },
  { words: "var import ORG/web staging -", needs: [["write"]], stdin: "IMPORTED_#=1\n" },
  { words: "var import ORG/web development - --prune --yes", needs: [["write"], ["see"]], stdin: "IMPORTED_#=1\n" },
  { words: "var export ORG/web staging --format json", needs: [["reveal"]] },
  { words: "account set ORG/web account-# --env staging", needs: [["write"]], stdin: '{"user":"u"}' },
  { words: "account get ORG/web mail", needs: [["reveal"]] },
  { words: "account list ORG/web", needs: [["see"]] },
  { words: "account delete ORG/web {account}", needs: [["write"]] },
  { words: "file put ORG/web - --path put-# --env staging", needs: [["write"]], stdin: "x" },
  { words: "file get ORG/web {file}", needs: [["reveal"]] },
  { words: "rollback ORG/web staging variables --to {version} --dry-run", needs: [["see"], ["write"]] },
  { words: "file list ORG/web", needs: [["see"]] },
  { words: "file delete ORG/web {file} --env staging", needs: [["write"]] },
  { words: "key create --org ORG --project web --env staging", needs: [["keys"], ["reveal"]] },
  { words: "key list --org ORG", needs: [["see", "keys"]], isList: true },
  { words: "key show {key}", needs: [["see", "keys"]] },
  { words: "key revoke {key}", needs: [["keys"], ["reveal"]] },
  { words: "key rotate {key}", needs: [["keys"], ["reveal"]] },
  { words: "key find", needs: [["see", "keys"]], stdin: "no key" },
  {
    words:
      "trust add --org ORG --name t --issuer https://a.example --audience a --claim sub=# --project web --env staging",
    needs: [["keys"], ["reveal"]],
  },
  {
    words:
      "trust add --org ORG --name t --issuer https://a.example --audience a --claim sub=f# --jwks-file - --project web --env staging",
    needs: [["keys"], ["reveal"]],
    stdin: `{"keys":[${keyInSet}]}`,
  },
  { words: "trust test {trust}", needs: [["see", "keys"]], stdin: "no token", gives: "unauthorized" },
  { words: "trust list --org ORG", needs: [["see", "keys"]], isList: true },
  { words: "trust show {trust}", needs: [["see", "keys"]] },
  { words: "trust revoke {trust}", needs: [["keys"], ["reveal"]] },
  { words: "request list --org ORG", needs: [["see", "decide"]], isList: true },
  { words: "request show {request}", needs: [["see", "decide"]] },
  { words: "request approve {request}", needs: [["decide"], ["write"]], stdin: "1" },
  { words: "request reject {request}", needs: [["decide"], ["write"]] },
  { words: "history ORG/web staging", needs: [["see"]] },
  { words: "rollback ORG/web staging variables --to {version} --yes", needs: [["see"], ["write"]] },
  { words: "history ORG/web staging --name TOKEN", needs: [["see"]] },
  { words: "undo ORG/web staging variables {newest} --dry-run", needs: [["see"], ["write"]] },
  { words: "undo ORG/web staging variables {newest} --yes", needs: [["see"], ["write"]] },
  { words: "var get ORG/web staging TOKEN --version {version}", needs: [["reveal"]] },
  { words: "account get ORG/web mail --env staging --version 2", needs: [["reveal"]] },
  { words: "find canary-of --org ORG", needs: [["see", "keys", "decide"]], isList: true },
  { words: "leaked", needs: [["reveal"]], stdin: `in a log: ${secret}`, gives: "leaked" },
  { words: "reuse ORG", needs: [["reveal"]] },
  { words: "access ORG/web", needs: [["see"]] },
  { words: "person grant {someone} see --project ORG/web --env staging", needs: [["grant"], ["see"]] },
  { words: "person revoke {someone} see --project ORG/web --env staging", needs: [["grant"]] },
  { words: "person list --org ORG", needs: [["grant"]] },
  { words: "person show {someone}", needs: [["grant"]] },
  { words: "expiring", needs: [["see", "keys"]], isList: true },
  { words: "audit list --project ORG/web", needs: [["audit"]] },
  { words: "audit show {entry}", needs: [["audit"]] },
  { words: "audit prove {proved}", needs: [["audit"]] },
  { words: "audit key", needs: [["audit"]] },
  { words: "audit export --org ORG", needs: [["audit"]] },
  { words: "audit list", needs: [["audit"]] },
  { words: "whoami", needs: [[...everyRight]] },
  { words: "audit verify", needs: [["audit"]] },
  { words: "audit verify --checkpoint -", needs: [["audit"]], stdin: "no log", gives: "no_checkpoints" },
];

test("each command that comes through the door is tried below, by somebody with a right that its row names", async () => {
  const nowhere = { env: {}, terminal: process, json: false, say: () => {}, flush: async () => {}, inherited: [] };
  const program = await buildProgram(nowhere);
  const all = (command: CommandUnknownOpts): CommandUnknownOpts[] => [command, ...command.commands.flatMap(all)];
  for (const command of all(program).filter(isPeoples)) {
    const path = pathOf(command).replace("keyhole ", "");
    const right = [rowOf(command)?.right ?? []].flat();
    if (path === "version" || right[0] === "anybody") continue;
    const tried = rows.find(({ words }) => `${words} `.startsWith(`${path} `));
    expect([path, tried?.needs.flat().filter((needed) => right.includes(needed))]).toEqual([path, right as Right[]]);
  }
});

describeBoth("each command over SSH", (w, dialect) => {
  let [org, organizationId, keyId] = ["", "", ""];
  let number = 0;
  let projectId = "";
  const people = new Set<string>();

  beforeAll(async () => {
    const organization = await w.organization();
    [org, organizationId] = [organization.slug, organization.id];
    const values = { staging: { TOKEN: secret }, production: { TOKEN: secret } };
    const web = await w.project(organization, "web", { variables: values });
    projectId = web.id;
    await w.project(organization, "api");
    await setAccount(w.admin, web.where, "mail", ["staging"], { password: secret });
    ({ id: keyId } = await w.key(organization, { surfaces: ["mcp_server"], resources: ["requests"] }));
  });

  /** Somebody with these rights in all projects, or in one. */
  const personWith = async (rights: readonly Right[], project?: string) => {
    const name = [...rights, project ?? "everywhere"].join("-");
    if (!people.has(name)) {
      await addPerson(w.admin, { name, organization: org, signIn: null });
      await grantRights(w.admin, name, { rights, projects: project ? [project] : null, environments: null });
    }
    people.add(name);
    return name;
  };
  const elsewhere = () => personWith(everyRight, "api");
  /** Each smallest choice of rights that a row needs, and the largest ones that are not enough. */
  const enough = ({ needs }: Row) =>
    needs.reduce<Right[][]>((all, some) => all.flatMap((one) => some.map((right) => [...one, right])), [[]]);
  const tooFew = ({ needs }: Row) =>
    needs.map((some) => everyRight.filter((right) => !some.includes(right))).filter((rights) => rights.length > 0);

  /** What a command names, made by the operator just before. */
  const make: Readonly<Record<string, () => Promise<string>>> = {
    project: async () => (await createProject(w.admin, `${org}/made-${number}`, {})).slug,
    variable: async () => {
      await setVariables(w.admin, `${org}/web`, "staging", [{ name: `MADE_${number}`, value: secret }]);
      return `MADE_${number}`;
    },
    account: async () => {
      await setAccount(w.admin, `${org}/web`, `made-${number}`, ["staging"], { password: secret });
      return `made-${number}`;
    },
    file: async () => {
      const file = { content: Buffer.from(secret), path: `made-${number}`, environments: ["staging"] };
      return (await putFile(w.admin, `${org}/web`, file)).path;
    },
    key: async () =>
      (await createKey(w.admin, { organization: org, name: secret, projects: ["web"], environments: ["staging"] })).id,
    trust: async () => {
      const claims = new Map([["sub", `made-${number}`]]);
      const terms = { issuer: "https://id.example", audience: "a", claims, name: secret };
      const asked = { organization: org, projects: ["web"], environments: null, ...terms };
      const { trust } = await createTrust(w.admin, asked);
      return trust.id;
    },
    someone: async () => {
      await addPerson(w.admin, { name: `made-${number}`, organization: org, signIn: null });
      return `made-${number}`;
    },
    request: async () => {
      await w.run("update variable_requests set status = 'rejected'"); // a key may have 20 that are pending
      const asked = { environment: "staging", name: `ASKED_${number}`, reason: "for a test" } as const;
      return w.request(organizationId, keyId, { id: projectId, slug: "web" }, asked);
    },
    version: async () => String(Number(await make["newest"]?.()) - 1),
    newest: async () => {
      await make["variable"]?.();
      const [row] = await w.sql`select version from sets where project_id = ${projectId} and kind = 'variables'
        and environment = 'staging'`;
      return String(row?.["version"]);
    },
    entry: async () => {
      await make["variable"]?.();
      const [row] = await w.run("select seq from audit_heads where lane = 'commands'");
      return `commands:${row?.["seq"]}`;
    },
    proved: async () => {
      const name = await make["entry"]?.();
      await notarize(w);
      return String(name);
    },
  };

  /** Runs a command in this process, as the door does. */
  const run = async (person: string, row: Row, reads?: () => void) => {
    number += 1;
    const filled = await Promise.all(
      row.words.split(" ").map(async (word) => {
        const [, name] = /\{(\w+)\}/.exec(word) ?? [];
        const made = name === undefined ? "" : await make[name]?.();
        return word
          .replace(/\{\w+\}/, made ?? "")
          .replaceAll("#", String(number))
          .replace("ORG", org);
      }),
    );
    return throughDoorHere(w, person, filled, (row.stdin ?? "").replaceAll("#", String(number)), reads);
  };

  // Rights are judged here, and in SQL only for what looks through several projects.
  const isOfMany = ({ words, isList }: Row) => isList || /^(access|audit (list|show|export)) /.test(words);
  const tried = dialect === "sqlite" ? rows : rows.filter(isOfMany);
  const each = (some: readonly Row[]) => test.each(some.map((row) => [row.words, row] as const));

  each(tried)("%s works for exactly those who have what it needs", async (_, row) => {
    for (const rights of enough(row)) {
      const { code } = await run(await personWith(rights), row);
      expect([rights, code]).toEqual([rights, row.gives ?? "done"]);
    }
    for (const rights of tooFew(row)) {
      const { code, out } = await run(await personWith(rights), row);
      const isRefused = row.isList ? code === "done" : refusals.includes(code);
      expect([rights, isRefused, code, out.includes(secret)]).toEqual([rights, true, code, false]);
      if (row.isList) expect(out).not.toMatch(/\bweb\b/);
    }
  });

  const reading = tried.filter(({ stdin }) => stdin !== undefined);
  each(reading)("%s reads nothing of what is sent by somebody who may not", async (_, row) => {
    // To verify the audit, or to look for keys or values, the right is enough anywhere.
    const isAnywhere = /^(audit (verify|key)|key find|leaked)/.test(row.words);
    const few = await Array.fromAsync(tooFew(row), (rights) => personWith(rights));
    for (const person of ["nobody", ...(isAnywhere ? [] : [await elsewhere()]), ...few]) {
      let isRead = false;
      const { code } = await run(person, row, () => {
        isRead = true;
      });
      expect([person, refusals.includes(code), isRead]).toEqual([person, true, false]);
    }
  });

  // A person is of no project.
  const placed = tried.filter(({ words }) => /web|\{/.test(words) && !words.startsWith("person show"));
  each(placed)("%s has nothing of a project in which somebody has no right", async (_, row) => {
    const { code, out } = await run(await elsewhere(), row);
    expect(row.isList ? ["done", "not_found"] : refusals).toContain(code);
    expect(out).not.toContain(secret);
  });
});
