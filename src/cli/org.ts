import { Argument, Option } from "@commander-js/extra-typings";
import { excerpt } from "../core/visible.ts";
import type { AdminContext } from "../desk/context.ts";
import { findOrganization } from "../desk/organizations.ts";
import { listKeys } from "../people/keys.ts";
import {
  createOrganization,
  deleteOrganization,
  judgeOrganization,
  listOrganizations,
  setPlan,
} from "../people/organizations.ts";
import { confirmChange, withAdmin } from "../terminal/admin.ts";
import { answer, counted, joined } from "../terminal/answer.ts";
import { type CommandContext, noun, verb } from "../terminal/command.ts";
import { listFound } from "../terminal/records.ts";
import { formatTime } from "../terminal/terminal.ts";
import { wideOption, yesOption } from "../terminal/verbs.ts";
import { cuttingOff } from "./grant.ts";

const plans = ["free", "pro"] as const;

export function orgCommand(context: CommandContext) {
  const create = verb("create", "Create an organization.", 'keyhole org create acme --name "Acme Inc."')
    .argument("<slug>", "short name: lower-case letters, digits and dashes")
    .option("--name <name>", "display name (default: the slug)")
    .addOption(new Option("--plan <plan>", "only pro lets keys read over the API (default: pro)").choices(plans))
    .action(async (slug, { name, plan }) => {
      // Checked first, so that a refused name does not begin an installation.
      const asked = judgeOrganization({ slug, name, ...(plan && { plan }) });
      const organization = await withAdmin(context, (admin) => createOrganization(admin, asked), true);
      const limit = organization.plan === "free" ? " on plan free, where nothing can be read over the API" : "";
      await answer(context, organization, `Created organization ${organization.slug}${limit}.`);
    });

  const list = verb("list", "List the organizations.", "keyhole org list")
    .option(...wideOption)
    .action(({ wide }) =>
      listFound(context, wide, listOrganizations, "There are no organizations yet: run keyhole org create SLUG.", {
        SLUG: (one) => one.slug,
        NAME: (one) => excerpt(one.name),
        PLAN: (one) => one.plan,
        CREATED: (one) => formatTime(one.createdAt),
      }),
    );

  return noun("org", "Organizations and their plans.", create, planVerb(context), list, deleteVerb(context));
}

function planVerb(context: CommandContext) {
  return verb(
    "plan",
    "Change an organization's plan. It takes effect with the next request.",
    "keyhole org plan acme pro",
  )
    .argument("<org>", "the organization")
    .addArgument(new Argument("<plan>", "the plan").choices(plans))
    .option(...yesOption)
    .action(async (slug, chosen, { yes }) => {
      const organization = await withAdmin(context, async (admin) => {
        const { plan: before } = await findOrganization(admin, slug);
        const keys = await listKeys(admin, slug);
        const change = (it: AdminContext) => setPlan(it, slug, chosen);
        const deed = `put organization ${slug} on plan free, where nothing can be read over the API${cuttingOff(keys)}`;
        return confirmChange(context, admin, yes || chosen !== "free" || before === "free", change, () => deed);
      });
      await answer(context, organization, `Organization ${slug} is on plan ${chosen}.`);
    });
}

function deleteVerb(context: CommandContext) {
  return verb(
    "delete",
    "Delete an organization with its projects, keys and trusts. This cannot be undone. Audit entries stay.",
    "keyhole org delete old-acme",
  )
    .argument("<org>", "the organization")
    .option(...yesOption)
    .action(async (slug, { yes }) => {
      const deed = `delete organization ${slug}`;
      const held = ({ projects, keys, trusts }: Awaited<ReturnType<typeof deleteOrganization>>) =>
        joined([counted(projects, "project"), counted(keys, "key"), ...(trusts > 0 ? [counted(trusts, "trust")] : [])]);
      const gone = await withAdmin(context, (admin) => {
        const change = (it: AdminContext) => deleteOrganization(it, slug);
        return confirmChange(context, admin, yes, change, (outcome) => `${deed} with ${held(outcome)}, for good`);
      });
      await answer(context, { slug, deleted: true, ...gone }, `Deleted organization ${slug} with ${held(gone)}.`);
    });
}
