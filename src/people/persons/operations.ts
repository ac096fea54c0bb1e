import { environments } from "../../core/names.ts";
import { usageProblem } from "../../core/problem.ts";
import { parseList } from "../../core/words/lists.ts";
import { formatTime } from "../../core/words/text.ts";
import { parseEnd } from "../../core/words/times.ts";
import { personText } from "../../record/entry.ts";
import { everyRight } from "../../serve/access/rights.ts";
import type { SignInAs } from "../../serve/access/roster.ts";
import { choices, completed, flag, type Given, input, ofOrganization, typed, wide } from "../desk/inputs.ts";
import { type Operations, operation } from "../desk/operation.ts";
import { type Columns, done, list, noneYet, one } from "../desk/outcome.ts";
import { rightTo } from "../desk/permit.ts";
import type { Plan } from "../desk/plan.ts";
import { requireText } from "../desk/validate.ts";
import { reachOf } from "../keys/credentials.ts";
import {
  addPerson,
  listPersons,
  type OwnRights,
  ownRights,
  type PersonPlan,
  type PersonRecord,
  planGrant,
  planRemoval,
  planRevocation,
  type Reach,
  type RightsInPlace,
  showPerson,
  signInText,
} from "./persons.ts";

const name = input("<name>", "the person's name, such as ana");
const asTheyAre = flag("--as-they-are", "accept the stored persons although the audit does not confirm them");
const keepGiven = flag("--keep-given", "what they gave and can give no longer stays, as given by you");
const withGiven = flag("--with-given", "what they gave and can give no longer is taken away, too");
const reachInputs = {
  organization: completed(input("--org <org>", "the organization (default: the person's)"), "organizations"),
  projects: completed(
    input("--project <list>", "in these projects; this or --all-projects is required", parseList),
    "projects",
  ),
  allProjects: flag("--all-projects", "in every project, those created later too"),
  environments: choices("--env <list>", "in these environments; this or --all-environments is required", environments),
  allEnvironments: flag("--all-environments", "in every environment"),
};
const howInputs = { keepGiven, withGiven, asTheyAre };

const whoami = operation({
  path: "whoami",
  about: "Show who you are here, and what you may do.",
  examples: ["keyhole whoami"],
  right: "anybody",
  inputs: {},
  run: async (admin) => {
    const own = await ownRights(admin);
    // Servers refuse such a database. This command is where people ask why.
    await admin.checkpoint.look(admin.database, false);
    admin.checkpoint.requireGoingOn();
    return one(own, ownColumns);
  },
});

/** What somebody is told of themselves. */
export const ownColumns: Columns<OwnRights> = {
  NAME: ({ name, from }) => personText({ type: "person", name, from }),
  RIGHTS: ({ name, rights }) => {
    if (rights === "operator") return "everything: you hold the root key, so you are an operator";
    return rights.length === 0
      ? `none yet: ask an operator for keyhole person grant ${name} …`
      : rightsText(rights, "; ");
  },
};

const add = operation({
  path: "person add",
  about: "Add a person, who has no rights yet.",
  examples: ["keyhole person add ana --org acme"],
  right: "operator",
  inputs: {
    name,
    organization: completed(input("--org <org>", "their organization; optional if only one exists"), "organizations"),
    issuer: input("--issuer <url>", "who signs them in to the dashboard, exactly as in the claim iss"),
    subject: input("--subject <text>", "their id at the issuer: the claim sub"),
    group: input("--group <name>", "everybody in this group at the issuer; instead of --subject"),
    again: flag("--again", "reuse a removed person's name; delete their line in authorized_keys first"),
    asTheyAre,
  },
  check: ({ issuer, subject, group }) => signInOf(issuer, subject, group),
  run: async (admin, { name, organization, issuer, subject, group, again, asTheyAre }) => {
    const asked = { name, organization, signIn: signInOf(issuer, subject, group), again };
    const person = await addPerson(admin, asked, { asTheyAre });
    return done(person, `Added ${name}, who has no rights yet: keyhole person grant ${name} …`);
  },
});

/** @throws Problem if the options do not say who it is */
function signInOf(issuer: string | undefined, subject: string | undefined, group: string | undefined): SignInAs | null {
  if (subject !== undefined && group === undefined && issuer !== undefined) return { issuer, subject };
  if (group !== undefined && subject === undefined) return { issuer: issuer ?? null, group };
  if (issuer === undefined && subject === undefined && group === undefined) return null;
  throw usageProblem("Give --issuer with --subject for one person, or --group for everybody in a group.");
}

export const grant = operation({
  path: "person grant",
  about:
    "Give a person rights in some places, beside those that they have. With the right `grant`, you give what you have.",
  examples: [
    "keyhole person grant ana see,write --project web --env development,staging",
    "keyhole person grant lee see,audit --all-projects --all-environments",
    "keyhole person grant ana reveal --project web --env production --until 4h",
    "keyhole person grant lead see,write,grant --project web --all-environments",
  ],
  right: rightTo("people.write"),
  inputs: {
    name,
    rights: choices("<rights>", "one or several, comma-separated", everyRight),
    ...reachInputs,
    endFrom: input("--until <time>", "4h, 2030-01-31 (its start in UTC), 2030-01-31T18:00Z (default: never)", parseEnd),
    ...howInputs,
  },
  check: ({ rights, ...given }) => [placesOf(rights, given), howOf(given)],
  plan: async (admin, { name, rights, endFrom, ...given }) =>
    planned(await planGrant(admin, name, { ...placesOf(rights, given), endFrom }, howOf(given))),
});

export const revoke = operation({
  path: "person revoke",
  about: "Take rights from a person in some places; without RIGHTS, remove the person with all rights.",
  examples: ["keyhole person revoke ana", "keyhole person revoke ana write --project web --env production"],
  right: rightTo("people.write"),
  asks: "if it can",
  inputs: {
    name,
    rights: choices("[rights]", "one or several, comma-separated", everyRight),
    ...reachInputs,
    ...howInputs,
  },
  check: ({ rights, name: _, ...given }) => {
    howOf(given);
    if (rights !== undefined) return placesOf(rights, given);
    const { keepGiven: _kept, withGiven: _taken, asTheyAre: _trusted, ...places } = given;
    if (Object.values(places).every((value) => value === undefined)) return;
    throw usageProblem("Name the RIGHTS to take there, or nothing but the person to remove them.");
  },
  plan: async (admin, { name, rights, ...given }) => {
    const how = howOf(given);
    if (rights !== undefined) return planned(await planRevocation(admin, name, placesOf(rights, given), how));
    const { seen, apply } = await planRemoval(admin, name, how);
    return {
      deed: `remove ${name} with all rights`,
      seen,
      document: { name },
      apply: async () =>
        done({ ...(await apply()), removed: true }, `Removed ${name}. Keys that they made stay: keyhole key list`),
    };
  },
});

/** A change of somebody's rights. */
function planned({ seen, person, apply }: PersonPlan): Plan {
  return {
    seen,
    document: person,
    sentence: `Nothing was changed. ${mayWords(person, "could then")}`,
    apply: async () => {
      const now = await apply();
      return done(now, mayWords(now, "may now"));
    },
  };
}

/** @throws Problem if they say both */
function howOf({ keepGiven, withGiven, asTheyAre }: Given<typeof howInputs>) {
  if (keepGiven && withGiven) throw usageProblem("Give either --keep-given or --with-given.");
  return { asTheyAre, given: keepGiven ? "kept" : withGiven ? "taken" : undefined } as const;
}

const listAll = operation({
  path: "person list",
  about: "List the persons and their rights.",
  examples: ["keyhole person list --org acme"],
  right: rightTo("people.write"),
  inputs: { organization: ofOrganization("persons"), wide },
  run: async (admin, { organization }) =>
    list(
      await listPersons(admin, organization),
      personColumns,
      organization === undefined
        ? noneYet(admin, "persons", "run keyhole person add NAME.")
        : `No person is of ${organization}.`,
    ),
});

const show = operation({
  path: "person show",
  about: "Show a person and their rights.",
  examples: ["keyhole person show ana"],
  right: rightTo("people.write"),
  inputs: { name },
  run: async (admin, { name }) => one(await showPerson(admin, name), personColumns),
});

const ssh = operation({
  path: "person ssh",
  about: "Print the line for authorized_keys that lets a person in over SSH. Their public key is read from stdin.",
  examples: ["keyhole person ssh ana < ana.pub >> ~keyhole/.ssh/authorized_keys"],
  right: "operator",
  inputs: { name, publicKey: typed({ bytesMax: 16 * 1024, what: () => "The public key" }) },
  run: async (admin, { name, publicKey }) => {
    await showPerson(admin, name);
    const key = requirePublicKey(requireText("The key", await publicKey.read()).replace(/^\uFEFF/, ""));
    // `restrict` forbids everything, and `pty` allows what `ssh -t` needs for a question.
    const line = `restrict,command="keyhole door --person ${name}",pty ${key}`;
    return { document: { name, line }, shows: { text: `${line}\n` } };
  },
});

/** One public key without options. What comes before it in a line would be an option of sshd. */
function requirePublicKey(text: string): string {
  const line = text.replace(/\r?\n$/, "");
  if (publicKeyLine.test(line)) return line;
  const isPrivate = line.includes("PRIVATE KEY");
  const what = isPrivate ? "That is a private key, which nobody else should have" : "That is no public key";
  throw usageProblem(`${what}: give one line such as ssh-ed25519 AAAA… from a file that ends with .pub.`);
}

const publicKeyLine =
  /^(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp\d{3}|sk-[a-z0-9-]+@openssh\.com) [A-Za-z0-9+/]{32,}={0,2}(?: [\x20-\x7e]*)?$/;

/** @throws Problem if they do not say where */
function placesOf(rights: readonly string[], { organization, ...given }: Given<typeof reachInputs>): Reach {
  return { rights, organization, ...reachOf(given) };
}

function mayWords({ name, rights }: PersonRecord, words: "may now" | "could then"): string {
  return `${name} ${words}:\n${rightsText(rights.filter(({ ended }) => !ended))}`;
}

/** A line for each place. */
export function rightsText(rights: readonly RightsInPlace[], between = "\n"): string {
  if (rights.length === 0) return "nothing";
  return rights
    .map((one) => {
      const where = one.project === null ? `all projects of ${one.organization}` : `${one.organization}/${one.project}`;
      const among = one.environments.length === environments.length ? "every environment" : one.environments.join(",");
      const end = one.until === null ? "" : `, ${one.ended ? "ended" : "until"} ${formatTime(one.until)}`;
      return `${one.rights.join(",")} in ${where}, ${among}${end}${one.by === null ? "" : `, given by ${one.by}`}`;
    })
    .join(between);
}

/** What operators, and whoever gives rights, are told of somebody. */
export const personColumns: Columns<PersonRecord> = {
  NAME: (one: PersonRecord) => one.name,
  ORG: (one: PersonRecord) => one.organization ?? "-",
  RIGHTS: (one: PersonRecord) => rightsText(one.rights, "; "),
  "SIGNS IN AS": (one: PersonRecord) => ({ name: one.signIn && signInText(one.signIn) }),
};

export const persons: Operations = {
  about: "People who work over SSH or sign in to the dashboard, and their rights.",
  rows: [add, grant, revoke, listAll, show, ssh],
};
export const self: Operations = { rows: [whoami] };
