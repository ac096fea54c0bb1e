import { everyRight } from "../access/rights.ts";
import type { SignInAs } from "../access/roster.ts";
import { personText } from "../audit/entry.ts";
import { environments } from "../core/names.ts";
import { usageProblem } from "../core/problem.ts";
import { decodeText } from "../core/text.ts";
import { excerpt } from "../core/visible.ts";
import { reachOf } from "../operations/credentials.ts";
import {
  addPerson,
  grantRights,
  listPersons,
  type OwnRights,
  ownRights,
  type PersonRecord,
  type Reach,
  type RightsInPlace,
  removePerson,
  revokeRights,
  showPerson,
  signInText,
} from "../people/persons.ts";
import { confirm, withAdmin } from "../terminal/admin.ts";
import { answer, answerOne } from "../terminal/answer.ts";
import { type CommandContext, noun, verb } from "../terminal/command.ts";
import { readLocal } from "../terminal/input.ts";
import { choiceOption, parseChoices, parseList } from "../terminal/options.ts";
import { listFound } from "../terminal/records.ts";
import { wideOption, yesOption } from "../terminal/verbs.ts";

export function personCommand(context: CommandContext) {
  return noun(
    "person",
    "People who work over SSH or sign in to the dashboard, and their rights. Only an operator changes them.",
    addVerb(context),
    grantVerb(context),
    revokeVerb(context),
    listVerb(context),
    showVerb(context),
    sshVerb(context),
  );
}

export function whoamiCommand(context: CommandContext) {
  return verb("whoami", "Show who you are here, and what you may do.", "keyhole whoami").action(async () => {
    const own = await withAdmin(context, ownRights);
    await answerOne(context, own, own, ownColumns);
  });
}

const ownColumns = {
  NAME: ({ name, from }: OwnRights) => personText({ type: "person", name, from }),
  RIGHTS: ({ name, rights }: OwnRights) => {
    if (rights === "operator") return "everything: whoever has the root key is an operator";
    return rights.length === 0
      ? `none yet: ask an operator for keyhole person grant ${name} …`
      : rightsText(rights, "; ");
  },
};

function addVerb(context: CommandContext) {
  return personVerb("add", "Add a person, who has no rights yet.", "keyhole person add ana --org acme")
    .option("--org <org>", "their organization; optional if only one exists")
    .option("--issuer <url>", "who signs them in to the dashboard, exactly as in the claim iss")
    .option("--subject <text>", "whom the issuer means by them: the claim sub")
    .option("--group <name>", "everybody whom the issuer counts in this group, in place of --subject")
    .option("--again", "also if somebody who was removed had the name: no line in authorized_keys lets them in")
    .option(...asTheyAreOption)
    .action(async (name, { org, issuer, subject, group, again, asTheyAre }) => {
      const asked = { name, organization: org, signIn: signInOf(issuer, subject, group), again };
      const person = await withAdmin(context, (admin) => addPerson(admin, asked, { asTheyAre }));
      await answer(context, person, `Added ${name}, who has no rights yet: keyhole person grant ${name} …`);
    });
}

/** @throws Problem if the options do not say who it is */
function signInOf(issuer: string | undefined, subject: string | undefined, group: string | undefined): SignInAs | null {
  if (subject !== undefined && group === undefined && issuer !== undefined) return { issuer, subject };
  if (group !== undefined && subject === undefined) return { issuer: issuer ?? null, group };
  if (issuer === undefined && subject === undefined && group === undefined) return null;
  throw usageProblem("Give --issuer with --subject for one person, or --group for everybody in a group.");
}

function grantVerb(context: CommandContext) {
  return reachVerb(
    "grant",
    "Give a person rights in some places, beside those that they have.",
    "keyhole person grant ana see,write --project web --env development,staging",
    "keyhole person grant lee see,audit --all-projects --all-environments",
  )
    .argument("<rights>", `comma-separated: ${everyRight.join(", ")}`, parseChoices(everyRight))
    .action(async (name, rights, { asTheyAre, ...options }) => {
      const reach = placesOf(rights, options);
      const person = await withAdmin(context, (admin) => grantRights(admin, name, reach, { asTheyAre }));
      await answer(context, person, `${name} may now:\n${rightsText(person.rights)}`);
    });
}

function revokeVerb(context: CommandContext) {
  return reachVerb(
    "revoke",
    "Take rights from a person in some places; without RIGHTS, remove the person with all rights.",
    "keyhole person revoke ana",
    "keyhole person revoke ana write --project web --env production",
  )
    .argument("[rights]", `comma-separated: ${everyRight.join(", ")}`, parseChoices(everyRight))
    .option(...yesOption)
    .action(async (name, rights, { asTheyAre, yes, ...options }) => {
      const trust = { asTheyAre };
      if (rights !== undefined) {
        const reach = placesOf(rights, options);
        const person = await withAdmin(context, (admin) => revokeRights(admin, name, reach, trust));
        return answer(context, person, `${name} may now:\n${rightsText(person.rights)}`);
      }
      if (Object.values(options).some((value) => value !== undefined)) {
        throw usageProblem("Name the RIGHTS to take there, or nothing but the person to remove them.");
      }
      const person = await withAdmin(context, async (admin) => {
        // A removal must never hang or fail because nobody answers.
        if (!asTheyAre) await showPerson(admin, name);
        await confirm(context, yes, `remove ${name} with all rights`, "goes on");
        return removePerson(admin, name, trust);
      });
      await answer(
        context,
        { ...person, removed: true },
        `Removed ${name}. Keys that they made stay: keyhole key list`,
      );
    });
}

function listVerb(context: CommandContext) {
  return verb("list", "List the persons and their rights.", "keyhole person list --org acme")
    .option("--org <org>", "only persons of this organization")
    .option(...wideOption)
    .action(({ org, wide }) => {
      const none = "There are no persons yet: run keyhole person add NAME.";
      return listFound(context, wide, (admin) => listPersons(admin, org), none, columns);
    });
}

function showVerb(context: CommandContext) {
  return personVerb("show", "Show a person and their rights.", "keyhole person show ana").action(async (name) => {
    const person = await withAdmin(context, (admin) => showPerson(admin, name));
    await answerOne(context, person, person, columns);
  });
}

function sshVerb(context: CommandContext) {
  return personVerb(
    "ssh",
    "Print the line for authorized_keys that lets a person in over SSH. Their public key is read from stdin.",
    "keyhole person ssh ana < ana.pub >> ~keyhole/.ssh/authorized_keys",
  ).action(async (name) => {
    const text = decodeText(await readLocal(context, "-", publicKeyBytesMax, "The public key"), "The key");
    const key = requirePublicKey(text);
    await withAdmin(context, (admin) => showPerson(admin, name));
    // `restrict` forbids everything, and `pty` allows what `ssh -t` needs for a question.
    const line = `restrict,command="keyhole door --person ${name}",pty ${key}`;
    await answer(context, { name, line }, "", `${line}\n`);
  });
}

const publicKeyBytesMax = 16 * 1024;

/** One public key without options. What comes before it in a line would be an option of sshd. */
function requirePublicKey(text: string): string {
  const line = text.replace(/\r?\n$/, "");
  if (publicKey.test(line)) return line;
  const isPrivate = line.includes("PRIVATE KEY");
  const what = isPrivate ? "That is a private key, which nobody else should have" : "That is no public key";
  throw usageProblem(`${what}: give one line such as ssh-ed25519 AAAA… from a file that ends with .pub.`);
}

const publicKey =
  /^(?:ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp\d{3}|sk-[a-z0-9-]+@openssh\.com) [A-Za-z0-9+/]{32,}={0,2}(?: [\x20-\x7e]*)?$/;

function personVerb(...description: Parameters<typeof verb>) {
  return verb(...description).argument("<name>", "the person's name, such as ana");
}

function reachVerb(...description: Parameters<typeof verb>) {
  return personVerb(...description)
    .option("--org <org>", "the organization (default: the person's)")
    .option("--project <list>", "in these projects; this or --all-projects is required", parseList)
    .option("--all-projects", "in every project, those created later too")
    .addOption(
      choiceOption("--env <list>", "in these environments; this or --all-environments is required", environments),
    )
    .option("--all-environments", "in every environment")
    .option(...asTheyAreOption);
}

const asTheyAreOption = [
  "--as-they-are",
  "take the persons in the database as they are, if the audit does not vouch for them",
] as const;

/** @throws Problem if the options do not say where */
function placesOf(rights: readonly string[], options: ReturnType<ReturnType<typeof reachVerb>["opts"]>): Reach {
  return {
    rights,
    organization: options.org,
    ...reachOf({
      projects: options.project,
      allProjects: options.allProjects,
      environments: options.env,
      allEnvironments: options.allEnvironments,
    }),
  };
}

/** A line for each place. */
function rightsText(rights: readonly RightsInPlace[], between = "\n"): string {
  if (rights.length === 0) return "nothing";
  return rights
    .map((one) => {
      const where = one.project === null ? `all projects of ${one.organization}` : `${one.organization}/${one.project}`;
      return `${one.rights.join(",")} in ${where}, ${one.environments.length === environments.length ? "every environment" : one.environments.join(",")}`;
    })
    .join(between);
}

const columns = {
  NAME: (one: PersonRecord) => one.name,
  ORG: (one: PersonRecord) => one.organization ?? "-",
  RIGHTS: (one: PersonRecord) => rightsText(one.rights, "; "),
  "SIGNS IN AS": (one: PersonRecord) => (one.signIn === null ? "-" : excerpt(signInText(one.signIn))),
};
