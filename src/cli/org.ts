import { Argument, Option } from "@commander-js/extra-typings";
import type { AdminContext } from "../desk/context.ts";
import { findOrganization } from "../desk/organizations.ts";
import { type KeyRecord, listKeys } from "../people/keys.ts";
import { createOrganization, deleteOrganization, listOrganizations, setPlan } from "../people/organizations.ts";
import { confirmChange, withAdmin, yesOption } from "../terminal/admin.ts";
import { answer, answerList, counted, wideOption } from "../terminal/answer.ts";
import { noun, type Surroundings, verb } from "../terminal/command.ts";
import { excerpt, formatTime } from "../terminal/terminal.ts";
import { cuttingOff } from "./grant.ts";

const plans = ["free", "pro"] as const;

/** `keyhole org …` */
export function orgCommand(here: Surroundings) {
  const create = verb("create", "Create an organization.", 'keyhole org create acme --name "Acme Inc."')
    .argument("<slug>", "short name: lower-case letters, digits and dashes")
    .option("--name <name>", "display name (default: the slug)")
    .addOption(new Option("--plan <plan>", "only pro lets keys read over the API (default: pro)").choices(plans))
    .action(async (slug, { name, plan }) => {
      const asked = { slug, name, ...(plan && { plan }) };
      const organization = await withAdmin(here, (admin) => createOrganization(admin, asked), true);
      const limit = organization.plan === "free" ? " on plan free, where nothing can be read over the API" : "";
      await answer(here, organization, `Created organization ${organization.slug}${limit}.`);
    });

  const plan = verb(
    "plan",
    "Change an organization's plan, in effect from the next request on.",
    "keyhole org plan acme pro",
  )
    .argument("<org>", "the organization")
    .addArgument(new Argument("<plan>", "the plan").choices(plans))
    .option(...yesOption)
    .action(async (slug, chosen, { yes }) => {
      const organization = await withAdmin(here, async (admin) => {
        const { plan: before } = await findOrganization(admin, slug);
        const keys = await everyKey(admin, slug);
        return confirmChange(
          here,
          admin,
          yes || chosen !== "free" || before === "free",
          (it) => setPlan(it, slug, chosen),
          () => `put organization ${slug} on plan free, where nothing can be read over the API${cuttingOff(keys)}`,
        );
      });
      await answer(here, organization, `Organization ${slug} is on plan ${chosen}.`);
    });

  const list = verb("list", "List the organizations.", "keyhole org list")
    .option(...wideOption)
    .action(async ({ wide }) => {
      const organizations = await withAdmin(here, listOrganizations);
      const noneMessage = "There are no organizations yet: run keyhole org create SLUG.";
      await answerList(
        here,
        organizations,
        noneMessage,
        {
          SLUG: (one) => one.slug,
          NAME: (one) => excerpt(one.name),
          PLAN: (one) => one.plan,
          CREATED: (one) => formatTime(one.createdAt),
        },
        wide,
      );
    });

  const remove = verb(
    "delete",
    "Delete an organization with its projects, keys and trusts. This cannot be undone. Audit entries stay.",
    "keyhole org delete old-acme",
  )
    .argument("<org>", "the organization")
    .option(...yesOption)
    .action(async (slug, { yes }) => {
      const held = ({ projects, keys, trusts }: { projects: number; keys: number; trusts: number }) =>
        trusts === 0
          ? `${counted(projects, "project")} and ${counted(keys, "key")}`
          : `${counted(projects, "project")}, ${counted(keys, "key")} and ${counted(trusts, "trust")}`;
      const gone = await withAdmin(here, (admin) =>
        confirmChange(
          here,
          admin,
          yes,
          (it) => deleteOrganization(it, slug),
          (outcome) => `delete organization ${slug} with ${held(outcome)}, for good`,
        ),
      );
      await answer(here, { slug, deleted: true, ...gone }, `Deleted organization ${slug} with ${held(gone)}.`);
    });

  return noun("org", "Organizations and their plans.", create, plan, list, remove);
}

async function everyKey(admin: AdminContext, organization: string): Promise<KeyRecord[]> {
  return [...(await listKeys(admin, organization)), ...(await listKeys(admin, organization, "trust"))];
}
