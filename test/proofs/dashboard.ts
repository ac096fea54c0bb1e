import type { Proof } from "./proof.ts";

const cookie = "the session is a cookie that no script, no other site and no other host gets, and Lock ends it";
const shown = "a value is shown after it is on record, for 30 seconds, and is gone when the person leaves";
const secrets = "src/dashboard/script/secrets.js";
const rules = "blackbox/dashboard-rules";
const sessionsTest = "integration/dashboard-sessions";
const look = "integration/dashboard-look";
const app = "src/dashboard/app.ts";
const gate = "src/dashboard/gate.ts";
const sessions = "src/dashboard/sessions.ts";
const parts = "src/dashboard/parts/parts.tsx";
const opensOnce = "opens once, and not after five minutes";
const linked = "goes on by itself to a page that another site links to, once, and then shows how to sign in";
const signIn = "integration/sign-in";

/** The dashboard's door, its sessions and its pages. */
export const pages: readonly Proof[] = [
  {
    promise: "The code in the link works once",
    edits: [[sessions, "    this.#code = undefined;\n    return true;", "    return true;"]],
    fails: [sessionsTest, opensOnce],
  },
  {
    promise: "The code in the link works for five minutes",
    edits: [[sessions, "this.#now() >= code.endsAt || ++code.tries > triesMax", "++code.tries > triesMax"]],
    fails: [sessionsTest, opensOnce],
  },
  {
    promise: "The code in the link has ten tries",
    edits: [
      [
        sessions,
        "this.#now() >= code.endsAt || ++code.tries > triesMax",
        "this.#now() >= code.endsAt || ++code.tries < 0",
      ],
    ],
    fails: [sessionsTest, "is of no use after ten wrong tries, and a new one is"],
  },
  {
    promise: "A link of another site leads on for a tab of its own only",
    edits: [[gate, 'return said.join() === "cross-site,navigate,document";', 'return said[0] === "cross-site";']],
    fails: [signIn, linked],
  },
  {
    promise: "A link of another site leads to nothing but our own pages",
    edits: [
      [
        app,
        'if (isLinkFromElsewhere(request) && isPageFor("operator", asked) && !mayHoldCode) {',
        "if (isLinkFromElsewhere(request) && !mayHoldCode) {",
      ],
    ],
    fails: [signIn, linked],
  },
  {
    promise: "A link of another site does not lose the code in the printed link",
    edits: [
      [
        app,
        'const mayHoldCode = "code" in entrance && pathname === "/";',
        'const mayHoldCode = "code" in entrance && pathname === "";',
      ],
    ],
    fails: [
      sessionsTest,
      "the printed link opens from another site's page, too: the page with its code does not go on",
    ],
  },
  {
    promise: "No browser translates a value",
    edits: [
      ["src/dashboard/frame.tsx", '<html lang="en" {...untranslated}>', '<html lang="en" {...(untranslated && {})}>'],
    ],
    fails: [look, "is translated by a browser, or has what is typed begin with a capital, but for notes and reasons"],
  },
  {
    promise: "No browser capitalizes what is typed",
    edits: [
      [
        parts,
        'export const typedAsItIs = { autocomplete: "off", autocapitalize: "none", spellcheck: false } as const;',
        'export const typedAsItIs = { autocomplete: "off", spellcheck: false } as const;',
      ],
    ],
    fails: [look, "is translated by a browser, or has what is typed begin with a capital, but for notes and reasons"],
  },
  {
    promise: "A sign-in returns to a page of our own origin",
    edits: [
      [
        app,
        'const page = referrer.startsWith(`${origin}/`) ? referrer.slice(origin.length) : "/";',
        'const { pathname = "/", search = "" } = URL.parse(referrer) ?? {};\n  const page = origin && pathname + search;',
      ],
    ],
    fails: [signIn, "returns to the page that was asked for, and only to one of our own"],
  },
  {
    promise: "A sign-in returns to a page that there is",
    edits: [
      [
        app,
        'return page.length <= pageLengthMax && isPageFor("operator", page) ? page : "/";',
        'return page.length <= pageLengthMax ? page : "/";',
      ],
    ],
    fails: [signIn, "returns to the page that was asked for, and only to one of our own"],
  },
  {
    promise: "A session ends after 15 minutes without use",
    edits: [
      [sessions, "Math.min(startedAt + wholeMs, usedAt + idleMs)", "startedAt + wholeMs + 0 * (usedAt + idleMs)"],
    ],
    fails: [sessionsTest, "ends after 15 minutes without use"],
  },
  {
    promise: "A session ends after eight hours",
    edits: [
      [sessions, "Math.min(startedAt + wholeMs, usedAt + idleMs)", "usedAt + idleMs + 0 * (startedAt + wholeMs)"],
    ],
    fails: [sessionsTest, "ends after eight hours, whatever its use"],
  },
  {
    promise: "An operator's dashboard ends after an hour without use",
    edits: [
      [
        "src/dashboard/serve.ts",
        "let timer = setTimeout(() => end(true), unusedMs);",
        "let timer = setTimeout(() => end(true), 2 ** 31 - 1);",
      ],
      [
        "src/dashboard/serve.ts",
        "    timer = setTimeout(() => end(true), unusedMs);\n  };",
        "    timer = setTimeout(() => end(true), 2 ** 31 - 1);\n  };",
      ],
    ],
    fails: [sessionsTest, "it ends after a time without use, and use puts that off"],
    hangs: true,
  },
  {
    promise: "An export that breaks is reported, and does not look whole",
    edits: [
      [
        app,
        "      parts.report(error);\n      throw error; // what was sent must not look whole\n",
        "      void error;\n",
      ],
    ],
    fails: [
      sessionsTest,
      "a failure in the middle of an export is reported once, and what was sent does not look whole",
    ],
  },
  {
    promise: "A form that did not arrive whole is no failure",
    edits: [
      [
        gate,
        'throw new Refused("invalid", "The form did not arrive whole. Nothing was done.", { cause });',
        "throw cause;",
      ],
    ],
    fails: [sessionsTest, "a form whose browser leaves opens no database, and is no failure"],
  },
  {
    promise: "A form has a bound of its length",
    edits: [
      [
        gate,
        'const isLonger = Number(headers.get("content-length") ?? 0) > bytesMax;',
        'const isLonger = Number(headers.get("content-length") ?? 0) > 1e12;',
      ],
      [gate, "await readAtMost(request, bytesMax).catch", "await readAtMost(request, 1e12).catch"],
    ],
    fails: ["integration/dashboard-set", "is refused by its length, before it is parsed"],
  },
  {
    promise: "The pages of one session are made in turn",
    edits: [[sessions, "  await before;\n", "  void before;\n"]],
    fails: [sessionsTest, "the pages of one session are made in turn, and keep nobody else's waiting"],
  },
  {
    promise: "A list on a page has 200 rows at most",
    edits: [["src/dashboard/parts/paged.tsx", "export const rowsMax = 200;", "export const rowsMax = 100_000;"]],
    fails: ["integration/dashboard-keys", "has pages of 200 rows, whose filter and order work over all of them"],
  },
  {
    promise: "Pages take a few connections of PostgreSQL",
    edits: [
      [
        app,
        "short: new Lending(4, open), long: new Lending(2, open)",
        "short: new Lending(40, open), long: new Lending(40, open)",
      ],
    ],
    fails: [sessionsTest, "many pages at once take six connections at most, and the long ones of a session one"],
  },
  {
    promise: "A page that hangs holds up no other of its person for long",
    edits: [[sessions, "  setTimeout(resolve, turnMsMax).unref();\n", "  void turnMsMax;\n"]],
    fails: [sessionsTest, "is not held up for ever by a request that hangs"],
    hangs: true,
  },
  {
    promise: "Nobody is told which values of production are the same without a fresh sign-in",
    edits: [
      [
        "src/people/desk/context.ts",
        '(of !== "production" || isFresh(admin))',
        '(of !== "production" || isFresh(admin) || project !== undefined)',
      ],
    ],
    fails: ["integration/signed-in", "no page says what is the same in production, and each says how to sign in again"],
  },
  {
    promise: "A database that is gone is not made anew, empty",
    edits: [
      [
        "src/store/sqlite.ts",
        "const file = new SqliteFile(path, { create: false, readwrite: true, strict: true });",
        "const file = new SqliteFile(path, { create: true, readwrite: true, strict: true });",
      ],
    ],
    fails: [sessionsTest, "a database that is gone is refused, not made anew"],
  },
  {
    promise: "One damaged set hides nothing else that waits for a person",
    edits: [
      [
        "src/kinds/variables/write.ts",
        "    damages.push(...damage);\n",
        '    damages.push(...damage);\n    if (damage[0] !== undefined) throw new Refused("conflict", damage[0]);\n',
      ],
    ],
    fails: [look, "says which, in place of what is due, and shows all else"],
  },
  {
    promise: "The first page takes 30 statements at most, however large the audit is",
    edits: [
      [
        "src/people/audit/audit.ts",
        "if (newestFirst.length > limit || pages === pagesMax) break;",
        "if (newestFirst.length > limit) break;",
      ],
    ],
    fails: ["integration/cut-lists", "stops at its bound of statements, and says so"],
  },
  {
    promise: "A list that was cut does not look whole",
    edits: [
      [
        "src/core/cut.ts",
        "this.#isWhole ? undefined : more];",
        "this.#isWhole || more !== undefined ? undefined : more];",
      ],
    ],
    fails: ["integration/cut-lists", "stops at its bound of statements, and says so"],
  },
  {
    promise: "The uses of one canary hide no use of another",
    edits: [
      [
        "src/dashboard/today.tsx",
        "JSON.stringify([actor, action, organization, project, environment, names]),",
        "JSON.stringify([actor.type, action, organization, project, environment, names.length]),",
      ],
    ],
    fails: ["integration/cut-lists", "shows the use of each canary on Today, however often another was used"],
  },
  {
    promise: "Names of two alphabets are told apart",
    edits: [
      [
        parts,
        'return isMixed ? <span class="missing"> (letters of two alphabets)</span> : null;',
        "return isMixed ? null : null;",
      ],
    ],
    fails: [look, "are told apart: two alphabets, equal keys, variables that steer programs"],
  },
  {
    promise: "Variables that steer programs are told apart",
    edits: [
      [
        parts,
        'const steers = isSteering(name, "linux") || isSteering(name, "win32");',
        'const steers = isSteering(name, "linux") && name === "";',
      ],
    ],
    fails: [look, "are told apart: two alphabets, equal keys, variables that steer programs"],
  },
  {
    promise: "A path leads on only to a project that exists",
    edits: [
      [
        "src/people/projects/page.tsx",
        '  await findProject(admin, where, "see");\n  return { to: projectPagePath(where, firstKind) };',
        "  void [admin, findProject];\n  return { to: projectPagePath(where, firstKind) };",
      ],
    ],
    fails: [look, "leads nowhere from the path of a project that does not exist, whatever is in it"],
  },
  {
    promise: "A page gives its database back",
    edits: [[gate, "return opened.adopt(lent, ({ close }) => close());", "return opened.adopt(lent, () => {});"]],
    fails: [sessionsTest, "each request has a database to itself, given back at its end, refused or not"],
    hangs: true,
  },
  {
    promise: "No page opens a value that nobody asked for",
    edits: [["src/people/projects/comparison.ts", "  isAsked = false,\n", "  isAsked = true,\n"]],
    fails: ["integration/page-costs", "opens no value unless somebody asks for it"],
  },
  {
    promise: "Names that look like others are told apart",
    edits: [["src/core/words/lookalikes.ts", "if (same.length === 1) return [];", "if (same.length > 0) return [];"]],
    fails: [look, "are told apart: two alphabets, equal keys, variables that steer programs"],
  },
  {
    promise: "Only the gate makes a visit",
    edits: [
      [
        "src/people/projects/page.tsx",
        "export async function firstPage({ admin, where }: Visit): Promise<Answer> {",
        "export const other = (one: Visit) => new Visit(one.admin, one.url, {}, one.form, one);\n\nexport async function firstPage({ admin, where }: Visit): Promise<Answer> {",
      ],
      ["src/people/projects/page.tsx", "import { blame, type Visit } from", "import { blame, Visit } from"],
    ],
    fails: ["unit/house", "lets only the files that need it open a set, a content or a Held"],
  },
  {
    promise: "No sentence says that nothing is there without a line that says why it is true",
    edits: [
      [
        "src/people/projects/find.ts",
        "/** The most hits of an answer. */",
        'export const never = "Nothing is there.";\n\n/** The most hits of an answer. */',
      ],
    ],
    fails: ["unit/absences", "every text that says that nothing is there is listed"],
  },
  {
    promise: "Nothing but its command loads the dashboard",
    edits: [
      [
        "src/serve/process/serve.ts",
        'import { sql } from "drizzle-orm";',
        'import "../../dashboard/app.ts";\nimport { sql } from "drizzle-orm";',
      ],
    ],
    fails: ["unit/house", "loads the dashboard for its own command only"],
  },
  {
    promise: '"All reads" leaves out no way to see a value',
    edits: [
      ["src/people/audit/page.tsx", "return /\\.(read|reveal)$/.test(action);", "return /\\.read$/.test(action);"],
    ],
    fails: ["integration/dashboard-audit", "leads to all reads, to all changes and to the last days"],
  },
  {
    promise: '"Nobody read it" is true, however many changes came after',
    edits: [
      [
        "src/people/projects/item.tsx",
        "const filter = { project: where, wholeName: name, actions };",
        "const filter = { project: where, wholeName: name, ...(actions && {}) };",
      ],
    ],
    fails: [look, "says who read it last in an environment, however much was read and changed in another since"],
  },
  {
    promise: "A key is not taken for a person of its name",
    edits: [
      [
        "src/people/audit/audit-counts.tsx",
        'const type = row.actor.type === "person" ? undefined : row.actor.type;',
        "const type = row.actor.type ? undefined : row.actor.type;",
      ],
    ],
    fails: [look, "tells keys from persons of their name, and each key from another"],
  },
  {
    promise: "Every long list of the dashboard has pages, up to the oldest row",
    edits: [["src/people/audit/page.tsx", "{found.older && <LoneLink", "{found.older === null && <LoneLink"]],
    fails: [
      "integration/long-lists",
      "has pages of 200 rows, of which the last has the oldest, wherever the dashboard has one",
    ],
  },
  {
    promise: "Nobody holds up other people's pages with thousands of words to look for",
    edits: [
      [
        "src/core/words/name-part.ts",
        "if (part.length <= lengthMax) return;",
        "if (part.length <= lengthMax * 1e6) return;",
      ],
    ],
    fails: ["integration/find", "looks for no part that is longer than any name"],
  },
  {
    promise: "The first page takes 30 statements at most",
    edits: [
      [
        "src/kinds/variables/write.ts",
        "    damages.push(...damage);\n    for (const { environment, text } of listings) {",
        "    damages.push(...damage);\n    for (let at = 0; at < 10; at += 1) await admin.database.db.select().from(p).where(eq(p.id, project.id));\n    for (const { environment, text } of listings) {",
      ],
    ],
    fails: ["integration/page-costs", "that comes first takes at most 30 statements"],
  },
  {
    promise: "A page opens values only if somebody asks, or for what would be undone or promoted",
    edits: [
      [
        "src/people/projects/item.tsx",
        "await compareEnvironments(admin, where, kind);",
        "await compareEnvironments(admin, where, kind, true);",
      ],
    ],
    fails: ["integration/page-costs", "opens no value unless somebody asks for it"],
  },
  {
    promise: "A list that was cut on the page of a person does not look whole",
    edits: [
      ["src/people/persons/page.tsx", "const asked = { person: name, actions", "const asked = { actor: name, actions"],
    ],
    fails: ["integration/cut-lists", "shows what a person did, however much an account of their name did since"],
  },
  {
    promise: "What somebody may not know of persons' rights is not shown as known",
    edits: [
      [
        "src/people/keys/access-page.tsx",
        "const asked = environment === undefined ? seen : [environment];",
        "const asked = environments;",
      ],
    ],
    fails: ["property/dashboard", "says what they may know"],
  },
  {
    promise: "Every key that is named as a reader gets the value",
    edits: [
      [
        "src/people/keys/readers.ts",
        'if (passes("rest_api", resource) ||',
        "if ((resource && key.resources.includes(resource)) ||",
      ],
    ],
    fails: ["integration/readers", "is said of each key as the server answers it"],
  },
  {
    promise: "Every person who is named as a reader gets the value",
    edits: [
      [
        "src/people/keys/readers.ts",
        'if (rights.includes("reveal")) return "values";',
        'if (rights.includes("see")) return "values";',
      ],
    ],
    fails: ["integration/readers", "is said of each person as the doors answer them"],
  },
  {
    promise: "What no number can hold is refused, and is no failure",
    edits: [
      [
        "src/people/audit/page.tsx",
        'undefined : visit.number("before");',
        'undefined : Number(visit.query("before"));',
      ],
    ],
    fails: ["integration/dashboard-audit", "says what is wrong with a filter, which is no failure"],
  },
  {
    promise: "What is offered while one types is what a search finds, and nothing else",
    edits: [
      [
        "src/people/projects/page.tsx",
        "const all = await listProjects(admin);\n  return all.sort(",
        'const all = await listProjects({ ...admin, rights: "operator" });\n  return all.sort(',
      ],
    ],
    fails: ["integration/find", "shows nothing any more of what somebody lost the right to"],
  },
  {
    promise: "The page of a person says no more than the commands",
    edits: [
      [
        "src/people/persons/persons.ts",
        'const seen = reached(admin.rights, ["see"], place);\n    const found = person',
        'const seen = reached("operator", ["see"], place);\n    const found = person',
      ],
    ],
    fails: ["integration/dashboard-look", "says others what `access` and the audit say them"],
  },
  {
    promise: "The history of a person's rights is an operator's",
    edits: [
      [
        "src/people/persons/page.tsx",
        'const isOperator = admin.rights === "operator";',
        "const isOperator = admin.rights !== undefined;",
      ],
    ],
    fails: ["integration/dashboard-look", "says others what `access` and the audit say them"],
  },
  {
    promise: "The grid counts nothing of environments that somebody may not see",
    edits: [
      [
        "src/people/projects/grid-parts.ts",
        'only !== missingPart || seen.includes("production")',
        "only !== missingPart || seen.length > 0",
      ],
    ],
    fails: ["integration/dashboard-grid", "counts, compares and copies only what their rights reach"],
  },
  {
    promise: "The grid says nothing of what was read where somebody may not read the audit",
    edits: [["src/people/editing/last-reads.ts", '(["see", "audit"] as const).every', '(["see"] as const).every']],
    fails: ["integration/last-reads", "is for those who may read the audit there, and for nobody else in any way"],
  },
  {
    promise: "Another host name for the dashboard's address gets nothing",
    edits: [
      [
        gate,
        'if (headers.get("host") !== new URL(origin).host)',
        'if (headers.get("host") === new URL(origin).pathname)',
      ],
    ],
    fails: [rules, "another host name for this address is refused, whatever the path"],
  },
  {
    promise: "A change comes from a page of the dashboard, as its site says",
    edits: [
      [
        gate,
        'if (headers.get("sec-fetch-site") === "same-origin" && headers.get("origin") === origin) return undefined;',
        'if (headers.get("origin") === origin) return undefined;',
      ],
    ],
    fails: [rules, "a change that no page of the dashboard made is refused, with a session too"],
  },
  {
    promise: "A change comes from a page of the dashboard, as its origin says",
    edits: [
      [
        gate,
        'if (headers.get("sec-fetch-site") === "same-origin" && headers.get("origin") === origin) return undefined;',
        'if (headers.get("sec-fetch-site") === "same-origin") return undefined;',
      ],
    ],
    fails: [rules, "a change that no page of the dashboard made is refused, with a session too"],
  },
  {
    promise: "A page of another origin changes nothing",
    edits: [
      [
        gate,
        'if (headers.get("sec-fetch-site") === "same-origin" && headers.get("origin") === origin) return undefined;',
        "if (headers) return undefined;",
      ],
    ],
    fails: [rules, "a page of another origin changes nothing by a form, by fetch or from a frame"],
  },
  {
    promise: "A value is taken away after 30 seconds",
    edits: [[secrets, "const ending = setTimeout(hide, shownMs);", "const ending = setTimeout(hide, shownMs * 1000);"]],
    fails: [rules, shown],
  },
  {
    promise: "A value is taken away when the person leaves",
    edits: [[secrets, 'addEventListener("pagehide", () => {', 'addEventListener("pagehidden", () => {']],
    fails: [rules, shown],
  },
  {
    promise: "The length of an answer tells nothing about a value but its length",
    edits: [[app, "if (!isPage || !takesGzip) return answer;", "if (isPage === null || !takesGzip) return answer;"]],
    fails: [rules, "a page is compressed if the browser takes it, and a value never is"],
  },
  {
    promise: "What is damaged is not passed over in silence by a list of the audit",
    edits: [
      [
        "src/people/audit/operations.ts",
        "if (this.#isTold) this.#names",
        'if (this.#isTold && lane === "") this.#names',
      ],
    ],
    fails: ["integration/absences", "of a search, a list, a page and an export names what is damaged"],
  },
  {
    promise: "What is damaged is not passed over in silence by a search",
    edits: [
      [
        "src/people/projects/find-operations.ts",
        "const ends = found.unread === 0 ? {}",
        "const ends = found.unread >= 0 ? {}",
      ],
    ],
    fails: ["integration/absences", "of a search, a list, a page and an export names what is damaged"],
  },
  {
    promise: "No other page frames ours",
    edits: [[app, "    \"frame-ancestors 'none'\",\n", ""]],
    fails: [rules, "no other origin frames a page, or keeps hold of its window"],
  },
  {
    promise: "No other page keeps our window",
    edits: [[app, '  "cross-origin-opener-policy": "same-origin",\n', ""]],
    fails: [rules, "no other origin frames a page, or keeps hold of its window"],
  },
  {
    promise: "Markup that somebody inserts does not run",
    edits: [[app, "    \"require-trusted-types-for 'script'\",\n", ""]],
    fails: [rules, "what is stored is text, never markup or script, and nothing else runs"],
  },
  {
    promise: "No script reads the session's cookie",
    edits: [[gate, "Path=/; Secure; HttpOnly; SameSite", "Path=/; Secure; SameSite"]],
    fails: [rules, cookie],
  },
  {
    promise: "No other site sends the session's cookie",
    edits: [[gate, "HttpOnly; SameSite=${site}${end}`", 'HttpOnly; SameSite=${site && "None"}${end}`']],
    fails: [rules, cookie],
  },
  {
    promise: "Lock ends a session",
    edits: [[app, '  parts.sessions.end(tokenOf(request.headers) ?? "");\n', ""]],
    fails: [rules, cookie],
  },
  {
    promise: "A value that is revealed again has 30 seconds of its own",
    edits: [[secrets, "    clearTimeout(ending);\n", ""]],
    fails: [
      rules,
      "revealing moves no button and counts down, hides at a second press, and a later reveal has its own 30 seconds",
    ],
  },
  {
    promise: "Only this machine reaches an operator's dashboard",
    edits: [["src/dashboard/serve.ts", 'serveAt("127.0.0.1", port, handle)', 'serveAt("0.0.0.0", port, handle)']],
    fails: [rules, "it listens on loopback only"],
  },
  {
    promise: "A value is for the page's script, never in a page",
    edits: [
      [
        "src/dashboard/routes.ts",
        '    rights: ofAnyKind("reveal"),\n    isSecret: true,\n',
        '    rights: ofAnyKind("reveal"),\n',
      ],
    ],
    fails: ["blackbox/dashboard-rules", "a value is shown after it is on record, for 30 seconds"],
  },
  {
    promise: "Revealing and copying are on record first",
    edits: [
      [
        "src/people/editing/reveal.ts",
        "return [shown, [revealOf(admin, { project, descriptor, environment }, [item])]];",
        "return [shown, item === undefined ? [revealOf(admin, { project, descriptor, environment }, [item])] : []];",
      ],
    ],
    fails: ["blackbox/dashboard-rules", "copying a value is on record, too, and shows nothing"],
  },
];

const keys = "integration/dashboard-keys";
const history = "integration/dashboard-history";
const set = "integration/dashboard-set";
const visit = "src/dashboard/parts/visit.ts";
const carryOut = "src/dashboard/parts/carry-out.ts";
const plan = "src/people/desk/plan.ts";
const stale = "integration/stale-forms";
const peoplePage = "integration/dashboard-people";
const rightsForm = "src/people/persons/rights-form.tsx";
const persons = "src/people/persons/persons.ts";
const onlyAsShown = "does not apply a plan that is old, of another project, or not of the newest five";

/** What the dashboard's forms change. */
export const forms: readonly Proof[] = [
  {
    promise: "A key is made for the page's script only",
    edits: [[app, "  if (!isSecret || byScript) return;\n", "  if (!isSecret || byScript || admin) return;\n"]],
    fails: [keys, "is not made without the page's script"],
  },
  {
    promise: "Nobody makes a key that reaches every project by leaving a choice out",
    edits: [
      ["src/people/keys/new-key.tsx", "if (!isAll && projects.length === 0)", "if (!isAll && projects.length < 0)"],
      [
        "src/people/keys/new-key.tsx",
        "...(isAll ? { allProjects: true as const } : { projects }),",
        "...(isAll || projects.length === 0 ? { allProjects: true as const } : { projects }),",
      ],
    ],
    fails: [keys, "is refused with no project"],
  },
  {
    promise: "The header counts no request that somebody cannot decide",
    edits: [
      [
        "src/people/requests/requests.ts",
        "return rows.filter((request) => mayDecide(admin, request)).length;",
        "return rows.length;",
      ],
    ],
    fails: ["integration/dashboard-start", "stand under a header that counts only requests that somebody can decide"],
  },
  {
    promise: "The first steps tell nobody of keys beyond their rights",
    edits: [
      [
        "src/people/keys/keys.ts",
        "return used.some((key) => isSeen(admin, key));",
        "return used.some((key) => key !== undefined);",
      ],
    ],
    fails: ["integration/dashboard-start", "are for people who may see, write and make keys"],
  },
  {
    promise: "Revoking takes the name",
    edits: [["src/people/keys/page.tsx", '  visit.form.requireTyped(name, "To revoke it");\n', "  void name;\n"]],
    fails: [keys, "stays without its name"],
  },
  {
    promise: "Nobody approves in production by accident",
    edits: [
      ["src/people/requests/page.tsx", "  form.requireAgain(name, [environment]);\n", "  void [name, environment];\n"],
    ],
    fails: [history, "asks for the name in production, and for a value anywhere"],
  },
  {
    promise: "What strangers wrote is visible text",
    edits: [[parts, "const word = <Stored>{excerpt(children)}</Stored>;", "const word = <Stored>{children}</Stored>;"]],
    fails: [history, "show the machine's words as text, and which key asks"],
  },
  {
    promise: "What was shown of one project is not revealed of another of its name",
    edits: [[visit, "if (shown !== project.id) throw changedSince", 'if (shown === "") throw changedSince']],
    fails: [stale, "is not done to another of its name: reveal"],
  },
  {
    promise: "What was shown of one project is not done to another of its name",
    edits: [[carryOut, "if (text === value) return [what, text] as const;", "return [what, value] as const;"]],
    fails: [stale, "is not done to another of its name: set"],
  },
  {
    promise: "A right is given in the project that was shown",
    edits: [[persons, "seen: { ...plan.seen, project } };", "seen: project ? plan.seen : {} };"]],
    fails: [stale, "is done to nothing else: person grant"],
  },
  {
    promise: "A right is given, or left, only as the page showed all of them",
    edits: [[persons, "...(leaves && { people: version })", "...(leaves && version < 0 && { people: version })"]],
    fails: [peoplePage, "leaves what somebody gave only as it was shown"],
  },
  {
    promise: "Nobody holds up the taking of a right by changing others",
    edits: [[persons, 'const leaves = gives || how.given === "kept";', "const leaves = gives || how.given !== null;"]],
    fails: [peoplePage, "gives nothing if the list has changed since, and takes all the same"],
  },
  {
    promise: "A right in production takes the person's name again",
    edits: [
      [rightsForm, '  form.requireAgain(name, isOfProduction ? ["production"] : []);\n', "  void isOfProduction;\n"],
    ],
    fails: [peoplePage, "says what somebody could do then, and gives exactly that, for hours and on record"],
  },
  {
    promise: "Removing a person takes their name",
    edits: [[rightsForm, '  if (deed === "remove") form.requireTyped(name, "To remove them");\n', "  void deed;\n"]],
    fails: [peoplePage, "names what somebody gave who loses rights or is removed, and leaves it"],
  },
  {
    promise: "Rights in production take a recent sign-in",
    edits: [
      ["src/people/desk/context.ts", "/^(?:key|trust|people)\\./.test(action)", "/^(?:key|trust)\\./.test(action)"],
    ],
    fails: [
      "integration/advisories-pages",
      "uses no value of production, and changes no key for it and no right in it",
    ],
  },
  {
    promise: "What somebody agreed to is done to nothing else",
    edits: [
      [
        plan,
        "if (before === undefined || before === value) continue;",
        "if (before === undefined || before !== null) continue;",
      ],
    ],
    fails: [stale, "is done to nothing else: project delete"],
  },
  {
    promise: "A change takes the permit of its own right",
    edits: [
      [
        "src/people/desk/permit.ts",
        "if (!this.#isMadeHere || right === undefined) return false;",
        "if (!this.#isMadeHere) return false;",
      ],
      [
        "src/people/desk/permit.ts",
        'if (right === "operator" || !this.rights.includes(right) || organization?.id !== organizationId) return false;',
        'if (right === "operator" || organization?.id !== organizationId) return false;',
      ],
    ],
    fails: ["unit/permit", "is permitted to"],
  },
  {
    promise: "`write` alone does not tell what is stored",
    edits: [
      [
        "src/people/projects/set.tsx",
        "const seen = [...stored.entries].filter(([environment]) => !stored.unseen.includes(environment));",
        "const seen = [...stored.entries];",
      ],
    ],
    fails: [set, "tells somebody who may write and not see nothing of what is there, and keeps its day"],
  },
  {
    promise: "A change of production asks for a name",
    edits: [["src/people/projects/set.tsx", "  form.requireAgain(name, change.targets);\n", "  void [form, name];\n"]],
    fails: [set, "refuses, with a sentence, and changes nothing"],
  },
  {
    promise: "A new name is new",
    edits: [
      [
        "src/people/projects/set.tsx",
        "const taken = change.targets.filter((one) => item.entries.has(one) && !item.unseen.includes(one));",
        "const taken = change.targets.slice(0, 0);",
      ],
    ],
    fails: [set, "refuses, with a sentence, and changes nothing"],
  },
  {
    promise: "A plan that somebody agrees to names what they may still know",
    edits: [["src/kinds/plan-page.tsx", "seen: { plan: names, ...plan.seen },", "seen: { ...plan.seen },"]],
    fails: ["integration/signed-in", "tells only what they may still know, and is applied only as it was shown"],
  },
  {
    promise: "A draft is applied within five minutes",
    edits: [
      [
        visit,
        "if (draft !== undefined && draft.endsAt > now) return draft.value;",
        "if (draft !== undefined) return draft.value;",
      ],
      [
        visit,
        "const timer = setTimeout(() => this.end(path), draftMs);",
        "const timer = setTimeout(() => {}, draftMs);",
      ],
    ],
    fails: [set, onlyAsShown],
  },
  {
    promise: "A pasted text writes nothing before it is agreed to",
    edits: [
      [
        "src/kinds/plan-page.tsx",
        "  await requireAsSeen(await draft.plan(visit), shown);\n",
        '  await requireAsSeen(await draft.plan(visit), shown);\n  await draft.run(visit, "/");\n',
      ],
    ],
    fails: [set, "says what would be added, changed and deleted"],
  },
  {
    promise: "A name that is asked for is never blank",
    edits: [
      [
        visit,
        'if (excerpt(this.find("again") ?? "").trim() === shown) return;',
        'if ([shown, ""].includes(excerpt(this.find("again") ?? "").trim())) return;',
      ],
    ],
    fails: [keys, "stays without its name"],
  },
  {
    promise: "Undoing takes the project's name in production",
    edits: [
      [
        "src/people/history/page.tsx",
        "  visit.form.requireAgain(visit.where, [fields.environment]);\n",
        "  void fields;\n",
      ],
    ],
    fails: [history, "asks for the project's name in production, and only there"],
  },
  {
    promise: "The command beside the form makes what the form makes, whatever is in a name",
    edits: [
      [
        "src/people/desk/command-line.ts",
        'const text = shellWord([word].flat().join(","));',
        'const text = [word].flat().join(",") || shellWord("");',
      ],
    ],
    fails: ["unit/command-line", "a shell reads back each word, whatever is in it"],
  },
  {
    promise: "Two people who saw one page do not both rotate a key",
    edits: [
      [
        "src/people/keys/operations.ts",
        "return { key: id, expiresAt: expiresAt ?? 0 };",
        "return { key: id, expiresAt: 0 * (expiresAt ?? 0) };",
      ],
    ],
    fails: [keys, "is rotated once by two people who saw the same page"],
  },
  {
    promise: "Undoing is refused if somebody wrote since",
    edits: [
      [
        "src/people/editing/write-project.ts",
        "      if (!isSame) await requireUnwritten(admin, one.set, Number(shown), one.names, what);\n",
        "      void [requireUnwritten, isSame];\n",
      ],
    ],
    fails: ["integration/dashboard-history", "is refused if somebody wrote since it was shown"],
  },
  {
    promise: "A form does what its page showed",
    edits: [
      [
        "src/dashboard/parts/carry-out.ts",
        "(now) => requireShown(form, now),",
        "(now) => now && (form ? now : requireShown(form, now)),",
      ],
    ],
    fails: ["integration/dashboard-set", "deletes it from the chosen environments"],
  },
  {
    promise: "No write loses a day to rotate by in silence",
    edits: [["src/kinds/variables/entry.ts", "...(days.length > 0 ?", "...(days.length > 1e6 ?"]],
    fails: ["integration/marks", "loses no mark in silence, whatever writes it"],
  },
  {
    promise: "The form keeps the day to rotate by if the environments agree",
    edits: [
      [
        "src/kinds/variables/form.tsx",
        'stored={(others.length === 0 && dayToCome(day, now)) || ""}',
        'stored={(others.length > 99 && dayToCome(day, now)) || ""}',
      ],
    ],
    fails: ["integration/dashboard-set", "shows the day if the environments agree, and so keeps it"],
  },
  {
    promise: "The form keeps days to rotate by that differ, if that is said",
    edits: [["src/kinds/variables/form.tsx", 'const isKept = day === "keep" ||', 'const isKept = day === "kept" ||']],
    fails: ["integration/dashboard-set", "asks whether to keep them if they differ"],
  },
  {
    promise: "An account is written in other environments only if that is said",
    edits: [
      [
        "src/kinds/accounts/form.tsx",
        'if (!form.has("same") || first === undefined)',
        "if (other !== undefined || first === undefined)",
      ],
    ],
    fails: [set, "keeps what nobody typed, and loses a field or an environment only if that is said"],
  },
  {
    promise: "Who may not read an account is not told which of its fields changed",
    edits: [
      [
        "src/kinds/accounts/write.ts",
        '|| machinesOnly || !may(admin.rights, "reveal", placeOf(project), environment))',
        "|| machinesOnly)",
      ],
    ],
    fails: [set, "tells nobody who may not read the fields which of them somebody else changed"],
  },
  {
    promise: "A tap copies nothing",
    edits: [
      [
        "src/dashboard/script/lists.js",
        'if (!copying || (event instanceof PointerEvent && event.pointerType === "touch")) return;',
        "if (!copying) return;",
      ],
    ],
    fails: ["blackbox/dashboard-grid", "a tap on an empty place of a row copies nothing"],
  },
  {
    promise: "What is typed in rows of the grid is written in production only if the project's name is",
    edits: [["src/kinds/variables/form.tsx", "form.requireAgain(where, targets);", ""]],
    fails: ["integration/dashboard-set", "is refused as a whole, with the field that is wrong"],
  },
  {
    promise: "A key that is pasted into the search goes into no address",
    edits: [
      [
        "src/people/projects/find-page.tsx",
        "if (!keyLike.test(text)) return",
        'void keyLike;\n  if (text !== "") return',
      ],
    ],
    fails: ["integration/find", "tells whose a pasted key is, and puts no key into an address"],
  },
  {
    promise: "No page holds a pasted value",
    edits: [
      [
        "src/kinds/variables/operations.ts",
        "      names: would,\n      same: would.same.length,\n      ...eachChange(place,",
        '      names: { ...would, added: entries.map((one) => Object.values(one).join("=")) },\n      same: would.same.length,\n      ...eachChange(place,',
      ],
    ],
    fails: [
      "integration/dashboard-set",
      "says what would be added, changed and deleted, with warnings, and has written nothing",
    ],
  },
];
