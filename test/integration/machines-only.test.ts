/** Items for machines only: no person reads them or learns whether a guess is right, and keys read them as ever. */
import { expect, test } from "bun:test";
import { Glob } from "bun";
import { sha256Of } from "../../src/core/hash.ts";
import { typedIn } from "../../src/dashboard/parts/carry-out.ts";
import { listFiles, putFile } from "../../src/kinds/files/write.ts";
import { kindOperations } from "../../src/kinds/people.ts";
import { textOf } from "../../src/kinds/variables/edit.ts";
import { revealVariable, revealVariables } from "../../src/kinds/variables/reveal.ts";
import { exportOrganization } from "../../src/people/backup/export.ts";
import { openEverything } from "../../src/people/backup/verify.ts";
import type { AdminContext } from "../../src/people/desk/context.ts";
import type { Operation } from "../../src/people/desk/operation.ts";
import { listHistory, listItemHistory } from "../../src/people/history/history.ts";
import { access } from "../../src/people/keys/access-operations.ts";
import { findLeaks, findReuse } from "../../src/people/leaks/values.ts";
import { addPerson } from "../../src/people/persons/persons.ts";
import { compareEnvironments } from "../../src/people/projects/comparison.ts";
import { find } from "../../src/people/projects/find.ts";
import { rotateData } from "../../src/people/rotation/rotation.ts";
import { isCanary, isMachinesOnly, newCoin } from "../../src/seal/canary.ts";
import { everyRight, type Right } from "../../src/serve/access/rights.ts";
import { listAudit } from "../support/audit.ts";
import { canary, spellingsOf } from "../support/canary.ts";
import { deleteVariable } from "../support/delete.ts";
import { throughDoorHere } from "../support/door.ts";
import { connectAgent, mcpClient } from "../support/mcp.ts";
import { visitorOf } from "../support/pages.ts";
import { performed } from "../support/perform.ts";
import { personIn } from "../support/persons.ts";
import {
  copyVariables,
  grantRights,
  planRollback,
  planUndo,
  rollBack,
  setAccount,
  setVariables,
  undo,
  wouldCopy,
  wouldSet,
} from "../support/plans.ts";
import { describeBoth, everything, type World } from "../support/world.ts";

const value = `${canary} for machines`;
const environment = "staging";
const [token, mail, pem] = ["TOKEN", "mail", "tls/a.pem"];
const machinesOnly = true;

/** A project with an item of each kind under the mark, twice written, and a key that reads them. */
async function placed(w: World) {
  const { organization, project, key } = await w.place({ key: everything });
  const { where } = project;
  await setVariables(w.admin, where, environment, [{ name: "OPEN", value: "readable" }]);
  for (const at of ["staging", "production"]) {
    await setVariables(w.admin, where, at, [{ name: token, value, machinesOnly }]);
    await setVariables(w.admin, where, at, [{ name: token, value }]);
  }
  for (const mark of [{ machinesOnly }, {}] as const) {
    await setAccount(w.admin, where, mail, [environment], { password: value }, mark);
    await putFile(w.admin, where, { path: pem, environments: [environment], content: Buffer.from(value), ...mark });
  }
  return { where, organization, project, key };
}

type Placed = Awaited<ReturnType<typeof placed>>;

/** Runs a command of a kind as a person who typed it. */
async function typed(admin: AdminContext, words: string, given: object) {
  const { rows } = (await kindOperations[words.split(" ")[0] ?? ""]?.()) ?? { rows: [] };
  const row = rows.find(({ path }) => path === words) as Operation;
  return performed(row, admin, given);
}

/** All that an organization's export writes. */
async function exported(w: World, slug: string, withMachinesOnly: boolean) {
  const files = exportOrganization(w.admin, slug, { formats: ["env"], warn() {}, withMachinesOnly });
  const texts: string[] = [];
  for (;;) {
    const { done, value } = await files.next();
    if (done) return { texts, leftOut: value.leftOut };
    texts.push(`${value.path} ${Buffer.from(value.content)}`);
  }
}

async function* text(of: string) {
  yield { name: "log", chunks: typedIn(of).chunks() };
}

const at = (kind: string) => ({ where: "", environment, kind }) as const;

/** Each way in which a person may come at a value. */
const ways: Readonly<Record<string, (w: World, p: Placed, admin: AdminContext) => Promise<unknown>>> = {
  "var get": (_, { where }, admin) => typed(admin, "var get", { project: where, environment, name: token }),
  "var get, an earlier version": (_, { where }, admin) =>
    typed(admin, "var get", { project: where, environment, name: token, version: 3 }),
  "account get": (_, { where }, admin) => typed(admin, "account get", { project: where, name: mail }),
  "account get, an earlier version": (_, { where }, admin) =>
    typed(admin, "account get", { project: where, name: mail, environment, version: 2 }),
  "file get": (_, { where }, admin) => typed(admin, "file get", { project: where, path: pem }),
  "file get, an earlier version": (_, { where }, admin) =>
    typed(admin, "file get", { project: where, path: pem, environment, version: 2 }),
  "var list": (_, { where }, admin) => typed(admin, "var list", { project: where, environment }),
  "account list": (_, { where }, admin) => typed(admin, "account list", { project: where }),
  "file list": (_, { where }, admin) => typed(admin, "file list", { project: where }),
  "var diff": (_, { where }, admin) => typed(admin, "var diff", { project: where, environment, other: "production" }),
  "var diff, an earlier version": (_, { where }, admin) =>
    typed(admin, "var diff", { project: where, environment, version: 3 }),
  "var export": (_, { where }, admin) => revealVariables(admin, where, environment, (all) => JSON.stringify(all)),
  "var edit": (_, { where }, admin) => revealVariables(admin, where, environment, (...all) => textOf(where, ...all)),
  "var set": (_, { where }, admin) =>
    typed(admin, "var set", { project: where, environments: [environment], name: token, value: typedIn("new") }),
  "var copy": (_, { where }, admin) =>
    typed(admin, "var copy", { project: where, environment, toEnvironment: "development" }),
  "var import": (_, { where }, admin) =>
    typed(admin, "var import", { project: where, environment, file: typedIn(`${token}=new`) }),
  "account set": (_, { where }, admin) =>
    typed(admin, "account set", {
      ...{ project: where, name: mail, environments: [environment], values: typedIn('{"user":"u"}'), merge: true },
    }),
  "file put": (_, { where }, admin) =>
    typed(admin, "file put", { project: where, path: pem, environments: [environment], local: typedIn("new") }),
  history: (_, { where }, admin) => listHistory(admin, { ...at("variables"), where }),
  "history of an item": (_, { where }, admin) => listItemHistory(admin, { ...at("variables"), where }, token),
  rollback: (_, { where }, admin) => planRollback(admin, { ...at("variables"), where }, 3),
  undo: (_, { where }, admin) => planUndo(admin, { ...at("accounts"), where }, 3),
  find: (_, { organization }, admin) => find(admin, token, organization.slug),
  access: (_, { where }, admin) => performed(access.rows[0] as Operation, admin, { project: where }),
  leaked: (_, __, admin) => findLeaks(admin, text("a log"), () => {}),
  reuse: (_, { organization }, admin) => findReuse(admin, organization.slug),
  "the grids": (_, { where }, admin) =>
    Promise.all(["variables", "accounts", "files"].map((kind) => compareEnvironments(admin, where, kind))),
  audit: (_, { where }, admin) => listAudit(admin, { project: where }),
  export: (w, { organization }) => exported(w, organization.slug, false),
  "backup verify": ({ admin }) => openEverything(admin),
  MCP: async (w, { key }) => {
    const agent = await connectAgent(mcpClient(w), key);
    const given = { project: "web", environment, names: [token], name: "OTHER", reason: "why", id: "0" };
    for (const { name, inputSchema } of (await agent.client.listTools()).tools) {
      const taken = Object.keys(inputSchema.properties ?? {});
      await agent.call(name, Object.fromEntries(Object.entries(given).filter(([input]) => taken.includes(input))));
    }
    return agent.received;
  },
  "the door": async (w, { where, organization }) => {
    people += 1;
    const name = `ana-${people}`;
    await addPerson(w.admin, { name, organization: organization.slug, signIn: null });
    await grantRights(w.admin, name, { rights: everyRight, projects: null, environments: null });
    const refused = [`var get ${where} staging TOKEN`, `account get ${where} mail`, `file get ${where} tls/a.pem`];
    const shown = [`var export ${where} staging --format json`, `var diff ${where} staging production`, "reuse"];
    const lists = [`account list ${where} --json`, `file list ${where} --json`, `access ${where}`];
    const told = await Array.fromAsync([...refused, ...shown, ...lists], (words) => {
      return throughDoorHere(w, name, words.split(" "));
    });
    expect(told.map(({ code }) => code)).toEqual([...refused.map(() => "forbidden"), ...Array(6).fill("done")]);
    return told;
  },
  pages: async (w, { where }) => {
    const visitor = await visitorOf(w);
    const kinds = ["variables", "accounts", "files"].flatMap((kind) => {
      const names = { variables: token, accounts: mail, files: pem } as Readonly<Record<string, string>>;
      const name = encodeURIComponent(names[kind] ?? "");
      return ["", `/item?name=${name}`, ...(kind === "files" ? [] : [`/set?name=${name}`])].map((page) => kind + page);
    });
    const others = ["variables/promote?from=staging&to=production", "access", "variables/paste", "history"];
    const pages = await Array.fromAsync([...kinds, ...others], (page) => visitor.page(`/p/${where}/${page}`));
    expect(pages.filter(({ status }) => status !== 200)).toEqual([]);
    return pages;
  },
  "a page's button": async (w, { where }) => {
    const visitor = await visitorOf(w);
    const hidden = await visitor.hidden(`/p/${where}/variables/item?name=OPEN`, `/p/${where}/variables/reveal`);
    const shown = (fields: object) => visitor.send(`/p/${where}/variables/reveal`, { ...hidden, ...fields });
    expect((await shown({ name: "OPEN" })).secret).toBe("readable");
    const refused = [await shown({ name: token }), await shown({ name: token, version: 3 })];
    expect(refused.map(({ error }) => error)).toEqual(Array(2).fill(expect.stringContaining("for machines only")));
    return refused;
  },
  "a page's draft": async (w, { where }) => {
    const visitor = await visitorOf(w);
    const page = `/p/${where}/variables/paste`;
    const { to = "" } = await visitor.send(page, {
      ...(await visitor.hidden(page)),
      environment,
      text: `${token}=new`,
    });
    return visitor.page(to);
  },
  "a page's copy": async (w, { where }) => {
    const visitor = await visitorOf(w);
    const page = `/p/${where}/variables/promote`;
    const fields = await visitor.hidden(`${page}?from=staging&to=production`);
    const { to = "" } = await visitor.send(page, { ...fields, from: "staging", to: "production", names: token });
    return visitor.page(to);
  },
};

/** Of a small value, the checksum tells as much. */
const spellings = [...spellingsOf(Buffer.from(value)), ["as a checksum", Buffer.from(sha256Of(value))] as const];

let people = 0;

const message = (error: unknown) => String(error);

describeBoth("an item for machines only", (w, dialect, once) => {
  test("is read by machines, and by nobody in any of the ways that people have", async () => {
    const p = await placed(w);
    const paths = [
      "/projects/web/variables?environment=staging",
      "/projects/web/accounts",
      "/files?project=web&environment=staging",
    ];
    for (const path of paths) {
      const { status, text } = await w.client().ask(path, { key: p.key });
      expect([path, status, text.includes(value) || text.includes(btoa(value))]).toEqual([path, 200, true]);
    }
    expect(Object.keys(ways).length).toBeGreaterThanOrEqual(30);
    const told: string[] = [];
    for (const [way, go] of Object.entries(ways)) {
      for (const isOperator of dialect === "sqlite" ? [true, false] : [false]) {
        const own = /^(?:var set|var copy|var import|account set|file put)$/.test(way) ? await placed(w) : p;
        const admin = isOperator ? w.admin : await personIn(w.admin, own.where, everyRight);
        const said = await go(w, own, admin).catch(message);
        const bytes = Buffer.from(`${Bun.inspect(said, { depth: 9 })} ${JSON.stringify(said)}`);
        for (const [how, spelling] of spellings) {
          // An agent has a key, whose reads of metadata have the checksums of files.
          if (way === "MCP" && how === "as a checksum") continue;
          if (bytes.includes(spelling)) told.push(`${way} ${how}`);
        }
        if (/ get/.test(way)) expect([way, said]).toEqual([way, expect.stringContaining("for machines only")]);
        else expect([way, /^\w*(?:Error|Refused|Problem): /.test(String(said)) && said]).toEqual([way, false]);
      }
    }
    expect(told).toEqual([]);
  });

  test("does not tell whether a guess is right", async () => {
    const saidOf = async (guess: string) => {
      const { where, organization } = await placed(w);
      const other = (await w.project(organization, "other")).where;
      await setVariables(w.admin, where, "development", [{ name: token, value: guess }]);
      await setVariables(w.admin, other, environment, [{ name: token, value: guess }]);
      await setAccount(w.admin, where, mail, ["development"], { password: guess });
      const set = { ...at("variables"), where };
      const from = (project: string, environment: string) => ({ project, environment });
      const write = [{ name: token, value: guess }];
      const leaks = await findLeaks(w.admin, text(`${guess} ${value}`), () => {});
      const said = [
        await wouldSet(w.admin, where, environment, write),
        await wouldSet(w.admin, where, "development", [{ name: token, value: guess, machinesOnly }]),
        await wouldCopy(w.admin, from(where, "development"), from(where, environment), undefined),
        await wouldCopy(w.admin, from(where, environment), from(where, "development"), [token]),
        await wouldCopy(w.admin, from(other, environment), from(where, environment), [token]),
        await typed(w.admin, "var diff", { project: where, environment, other: "development" }),
        await compareEnvironments(w.admin, where, "variables", true),
        await compareEnvironments(w.admin, where, "accounts", true),
        await planRollback(w.admin, set, 3, token),
        leaks.found.filter((one) => one.project === where && one.environment === environment),
        await findReuse(w.admin, organization.slug).then((all) =>
          all.flatMap(({ places }) => places).filter((one) => one.project === where && one.environment === environment),
        ),
        (await listFiles(w.admin, where)).map(({ sha256 }) => sha256),
      ];
      return JSON.stringify(said, (name, value) => (/At$|^at$|id|project|plan/.test(name) ? 0 : value));
    };
    expect((await saidOf(value)).replaceAll(/org-\d+/g, "org")).toBe(
      (await saidOf("wrong guess")).replaceAll(/org-\d+/g, "org"),
    );
  });

  test("stays so through every write and rotation, and is deleted before it is readable", async () => {
    const { where, organization } = await placed(w);
    const set = { ...at("variables"), where };
    const get = (name = token) => revealVariable(w.admin, where, environment, name).catch(message);
    const refused = expect.stringContaining("for machines only");
    await setVariables(w.admin, where, environment, [{ name: "OPEN", value, machinesOnly }]); // readable in version 2
    expect(await get("OPEN")).toEqual(refused);
    const open = [where, environment, "OPEN"] as const;
    expect(await revealVariable(w.admin, ...open, 2).catch(message)).toEqual(refused);
    for (const back of [() => planRollback(w.admin, set, 2, "OPEN"), () => planUndo(w.admin, set, 5)]) {
      await expect(back()).rejects.toThrow('"OPEN" is for machines only, and its earlier value was not: delete it');
    }
    await expect(setVariables(w.admin, where, environment, [{ name: "A", value: "1" }])).resolves.toBeDefined();
    await setVariables(w.admin, where, environment, [{ name: token, value: "new" }]);
    await rollBack(w.admin, set, await planRollback(w.admin, set, 3, token));
    expect(await get()).toEqual(refused);
    await undo(w.admin, set, await planUndo(w.admin, set, 8));
    expect(await get()).toEqual(refused);
    await rotateData(w.admin, where);
    const place = (environment: string) => ({ project: where, environment });
    await copyVariables(w.admin, place(environment), place("development"), [token]);
    expect(await revealVariable(w.admin, where, "development", token).catch(message)).toEqual(refused);
    await deleteVariable(w.admin, where, environment, token);
    expect(await revealVariable(w.admin, where, environment, token, 3).catch(message)).toEqual(refused);
    await setVariables(w.admin, where, environment, [{ name: token, value: "readable" }]);
    expect(await get()).toBe("readable");
    await deleteVariable(w.admin, where, environment, "OPEN");
    await rollBack(w.admin, set, await planRollback(w.admin, set, 2, "OPEN"));
    expect(await get("OPEN")).toBe("readable");
    await setAccount(w.admin, where, "other", [environment], { user: "u" });
    const back = await planRollback(w.admin, { ...at("accounts"), where }, 3);
    expect([back.changed, back.deleted]).toEqual([[], ["other"]]); // it stays as it is
    const { leftOut } = await exported(w, organization.slug, false);
    expect(leftOut.sort()).toEqual(
      [
        `${mail} in ${where}, staging`,
        `${pem} in ${where}, staging`,
        `${token} in ${where}, development`,
        `${token} in ${where}, production`,
      ].sort(),
    );
  });

  test("leaves with an operator's export that asks for it, on record", async () => {
    const { where, organization } = await placed(w);
    const { texts, leftOut } = await exported(w, organization.slug, true);
    expect([leftOut, texts.filter((one) => one.includes(value)).length]).toEqual([[], 6]);
    const [entry] = await listAudit(w.admin, { project: where, environment, actions: ["variables.reveal"] });
    expect(entry?.names).toEqual(["OPEN", token]);
  });

  test("cannot be told, unmarked or moved in SQL", async () => {
    const { where, project } = await placed(w);
    for (const [kind, name] of [
      ["variables", token],
      ["accounts", mail],
      ["files", pem],
    ] as const) {
      const [row] =
        await w.sql`select listing from sets where project_id = ${project.id} and kind = ${kind} and environment = ${environment}`;
      const listing = String(row?.["listing"]);
      const coins = [...listing.matchAll(/"coin":"([\w-]+)"/g)].map(([, coin = ""]) => coin);
      expect([kind, coins.every((coin) => coin.length === 16)]).toEqual([kind, true]);
      const [first = "", second = "AAAAAAAAAAAAAAAA"] = coins;
      const edits = [
        listing.replaceAll(/,"coin":"[\w-]+"/g, ""),
        listing.replace(first, "-").replace(second, first).replace('"-"', `"${second}"`),
        listing.replaceAll(/"coin":"[\w-]+"/g, '"coin":"AAAAAAAAAAA"'),
      ];
      for (const edited of edits) {
        expect(edited).not.toBe(listing);
        await w.sql`update sets set listing = ${edited} where project_id = ${project.id} and kind = ${kind} and environment = ${environment}`;
        const opened = exportOrganization(w.admin, where.split("/")[0], { formats: [], warn() {} });
        await expect(Array.fromAsync(opened)).rejects.toThrow("were deleted or changed by other means than Keyhole");
        await expect(listItemHistory(w.admin, { where, environment, kind }, name)).resolves.toBeDefined();
        const { sentence } = await performed(access.rows[0] as Operation, w.admin, { project: where });
        expect(sentence).toContain(`For machines only: ${kind === "variables" ? `${token} in production` : token}`);
      }
      await w.sql`update sets set listing = ${listing} where project_id = ${project.id} and kind = ${kind} and environment = ${environment}`;
    }
    // A set put in another one's place, with its mac and its values.
    await w.sql`update sets set (listing, listing_mac, sealed, generation, version) =
      (select listing, listing_mac, sealed, generation, version from sets where project_id = ${project.id} and kind = 'variables' and environment = 'production')
      where project_id = ${project.id} and kind = 'variables' and environment = ${environment}`;
    await expect(revealVariable(w.admin, where, environment, token)).rejects.toThrow("changed by other means");
  });

  test("is copied only by somebody who could make a key for it", async () => {
    const { where } = await placed(w);
    const copy = async (rights: readonly Right[]) => {
      const person = await personIn(w.admin, where, rights);
      const [from, to] = [
        { project: where, environment },
        { project: where, environment: "development" },
      ];
      return copyVariables(person, from, to, [token]).then(({ added }) => added, message);
    };
    expect(await copy(["see", "reveal", "write"])).toContain(
      "for machines only: TOKEN. To copy them takes the right `keys`",
    );
    expect(await copy(["see", "reveal", "write", "keys"])).toEqual([token]);
  });

  once("takes a new value, which may be generated and is never shown", async () => {
    const { where, key, organization } = await placed(w);
    await expect(setVariables(w.admin, where, environment, [{ name: "OPEN", machinesOnly }])).rejects.toThrow(
      "needs a new value",
    );
    await setAccount(w.admin, where, "open", [environment], { password: "old" });
    const merged = setAccount(w.admin, where, "open", [environment], { user: "u" }, { merge: true, machinesOnly });
    await expect(merged).rejects.toThrow("open needs all its fields again");
    const asked = {
      project: where,
      environments: [environment, "production"],
      name: "MADE",
      machinesOnly,
      generate: 32,
    };
    for (const made of ["--machines-only --generate 3", "--generate 32", "--machines-only --generate 32 --value x"]) {
      const { code } = await throughDoorHere(w, "nobody", `var set ${where} staging A ${made}`.split(" "));
      expect([made, code]).toEqual([made, "invalid_usage"]);
    }
    const { shows, ...said } = await typed(w.admin, "var set", { ...asked, value: typedIn("") });
    const { text } = await w.client().ask("/projects/web/variables?environment=staging&keys=MADE", { key });
    const { value: made } = JSON.parse(text).variables[0];
    expect(made).toMatch(/^[\w-]{43}$/);
    const other = await w.client().ask("/projects/web/variables?environment=production&keys=MADE", { key });
    expect(JSON.parse(other.text).variables[0].value).not.toBe(made);
    expect(JSON.stringify([shows, said])).not.toContain(made);
    expect(said.sentence).toContain(
      "It is for machines only: no person's right reveals it, but anyone who may create a key for it, and every operator",
    );
    const visitor = await visitorOf(w);
    const page = `/p/${where}/variables/set`;
    await setVariables(w.admin, where, "development", [{ name: "OPEN", value: "stays" }]);
    const fields = { ...(await visitor.form(`${page}?name=OPEN`, page)), note: "new", machinesOnly: "yes" };
    expect(await visitor.send(page, fields)).toMatchObject({ error: expect.stringContaining("No field has a value") });
    expect(await visitor.send(page, { ...fields, "value.staging": "hidden now" })).toMatchObject({ status: 200 });
    await expect(revealVariable(w.admin, where, environment, "OPEN")).rejects.toThrow("for machines only");
    expect(await revealVariable(w.admin, where, "development", "OPEN")).toBe("stays");
    const { html } = await visitor.page(`/p/${where}/access`);
    expect(html).toContain("Of each of them: no person's right reveals it, but anyone who may create a key for it");
    const { sentence } = await performed(access.rows[0] as Operation, w.admin, { project: where, environment });
    expect(sentence).toContain("MADE in staging, OPEN in staging");
    expect((await visitor.page(`/p/${where}/variables`)).html).toContain("machines only");
    const { found } = await find(w.admin, "OPEN", organization.slug);
    expect(found.map(({ machinesOnly }) => machinesOnly)).toEqual([true]);
  });
});

test("a coin tells of its marks to the holder of the key alone, and one of before this mark has none", () => {
  const key = new Uint8Array(32).fill(1);
  for (const bait of [true, false]) {
    for (const hidden of [true, false]) {
      const coins = Array.from({ length: 50 }, () => newCoin(key, bait, hidden));
      expect(coins.filter((coin) => coin.length === 16).length).toBe(50);
      expect(new Set(coins.map((coin) => isCanary(key, { coin })))).toEqual(new Set([bait]));
      expect(new Set(coins.map((coin) => isMachinesOnly(key, { coin })))).toEqual(new Set([hidden]));
    }
  }
  const old = Array.from({ length: 200 }, (_, at) => Buffer.alloc(8, at).toString("base64url"));
  expect(old.some((coin) => isMachinesOnly(key, { coin }))).toBe(false);
  expect(old.filter((coin) => isCanary(key, { coin })).length).toBeWithin(50, 150);
  expect(isMachinesOnly(key, {})).toBe(false);
});

test("only what seals values again takes them unseen", async () => {
  const takers = [
    "kinds/accounts/write.ts",
    "kinds/variables/write.ts",
    "people/editing/write.ts",
    "people/history/rollback.ts",
  ];
  const openers = [
    "people/backup/verify.ts",
    "people/editing/contents.ts",
    "people/history/rollback.ts",
    "people/rotation/rotation.ts",
  ];
  const found = { unseen: [] as string[], opened: [] as string[] };
  for await (const path of new Glob("**/*.{ts,tsx}").scan("src")) {
    const code = await Bun.file(`src/${path}`).text();
    if (/\.unseen\(/.test(code)) found.unseen.push(path);
    if (/\bopenContent\(/.test(code)) found.opened.push(path);
  }
  expect({ unseen: found.unseen.sort(), opened: found.opened.sort() }).toEqual({
    unseen: takers.sort(),
    opened: openers.sort(),
  });
});
