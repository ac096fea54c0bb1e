import { Argument, Option } from "@commander-js/extra-typings";
import { createOrganization, listOrganizations, setPlan } from "../admin/organizations.ts";
import { answer, answerList, noun, type Surroundings, verb, withAdmin } from "./command.ts";
import { formatTime } from "./terminal.ts";

const plans = ["free", "pro"] as const;

/** `keyhole org …` */
export function orgCommand(here: Surroundings) {
  const create = verb("create", "Create an organization.", 'keyhole org create acme --name "Acme Inc."')
    .argument("<slug>", "short name: lower-case letters, digits and dashes")
    .option("--name <name>", "display name (default: the slug)")
    .addOption(new Option("--plan <plan>", "only pro lets keys read over the API (default: pro)").choices(plans))
    .action(async (slug, { name, plan }) => {
      const organization = await withAdmin(here, (admin) =>
        createOrganization(admin, { slug, name, ...(plan && { plan }) }),
      );
      await answer(here, organization, `Created organization ${organization.slug} on plan ${organization.plan}.`);
    });

  const plan = verb(
    "plan",
    "Change an organization's plan, in effect from the next request on.",
    "keyhole org plan acme pro",
  )
    .argument("<slug>", "the organization")
    .addArgument(new Argument("<plan>", "the plan").choices(plans))
    .action(async (slug, chosen) => {
      const organization = await withAdmin(here, (admin) => setPlan(admin, slug, chosen));
      await answer(here, organization, `Organization ${slug} is on plan ${chosen}.`);
    });

  const list = verb("list", "List the organizations.", "keyhole org list").action(async () => {
    const organizations = await withAdmin(here, listOrganizations);
    const noneMessage = "There are no organizations yet: run keyhole org create SLUG.";
    await answerList(here, organizations, noneMessage, {
      SLUG: (one) => one.slug,
      NAME: (one) => one.name,
      PLAN: (one) => one.plan,
      CREATED: (one) => formatTime(one.createdAt),
    });
  });

  return noun("org", "Organizations and their plans.", create, plan, list);
}
