import { counted, joined } from "../../core/words/text.ts";
import { choice, input, organization, wide } from "../desk/inputs.ts";
import { type Operations, operation } from "../desk/operation.ts";
import type { Organization } from "../desk/organizations.ts";
import { type Columns, done, list, noneYet } from "../desk/outcome.ts";
import { rightTo } from "../desk/permit.ts";
import { cuttingOff } from "../keys/credentials.ts";
import { listKeys } from "../keys/keys.ts";
import {
  createOrganization,
  findToKeep,
  judgeOrganization,
  listOrganizations,
  type OrganizationCounts,
  planOrganizationDeletion,
  setPlan,
} from "./organizations.ts";

const plans = ["free", "pro"] as const;

export const create = operation({
  path: "org create",
  about: "Create an organization.",
  examples: ['keyhole org create acme --name "Acme Inc."'],
  right: rightTo("organization.create"),
  inputs: {
    slug: input("<slug>", "short name: lower-case letters, digits and dashes"),
    name: input("--name <name>", "display name (default: the slug)"),
    plan: choice("--plan <plan>", "only pro lets keys read over the API (default: pro)", plans),
  },
  begins: true,
  // Before an installation begins, so that a refused name does not begin one.
  check: (given) => judgeOrganization(given),
  run: async (admin, asked) => {
    const made = await createOrganization(admin, asked);
    const limit = made.plan === "free" ? " on plan free, where nothing can be read over the API" : "";
    return done(made, `Created organization ${made.slug}${limit}.`);
  },
});

const listAll = operation({
  path: "org list",
  about: "List the organizations.",
  examples: ["keyhole org list"],
  right: "anybody",
  inputs: { wide },
  run: async (admin) => {
    const columns: Columns<Organization> = {
      SLUG: (one) => one.slug,
      NAME: ({ name }) => ({ name }),
      PLAN: (one) => one.plan,
      CREATED: (one) => ({ at: one.createdAt }),
    };
    return list(
      await listOrganizations(admin),
      columns,
      noneYet(admin, "organizations", "run keyhole org create SLUG."),
    );
  },
});

const plan = operation({
  path: "org plan",
  about: "Change an organization's plan. It takes effect with the next request.",
  examples: ["keyhole org plan acme pro"],
  right: rightTo("organization.plan"),
  asks: "needs --yes",
  inputs: { organization, plan: choice("<plan>", "the plan", plans) },
  plan: async (admin, { organization: slug, plan: chosen }) => {
    const { id, plan: before } = await findToKeep(admin, slug);
    const isEnd = chosen === "free" && before !== "free";
    const words = `put organization ${slug} on plan free, where nothing can be read over the API`;
    const { deed, keys } = cuttingOff(words, isEnd ? await listKeys(admin, slug) : []);
    return {
      seen: { organization: id, ...(isEnd && { keys }) },
      document: { organization: slug, plan: chosen },
      ...(isEnd ? { deed } : { sentence: `Nothing was written. Organization ${slug} would be on plan ${chosen}.` }),
      apply: async () => done(await setPlan(admin, slug, chosen), `Organization ${slug} is on plan ${chosen}.`),
    };
  },
});

const remove = operation({
  path: "org delete",
  about: "Delete an organization with its projects, keys and trusts. This cannot be undone. Audit entries stay.",
  examples: ["keyhole org delete old-acme"],
  right: rightTo("organization.delete"),
  asks: "needs --yes",
  inputs: { organization },
  plan: async (admin, { organization: slug }) => {
    const { counts, seen, apply } = await planOrganizationDeletion(admin, slug);
    return {
      deed: `delete organization ${slug} with ${held(counts)}, for good`,
      seen,
      document: { slug, ...counts },
      apply: async () =>
        done({ slug, deleted: true, ...(await apply()) }, `Deleted organization ${slug} with ${held(counts)}.`),
    };
  },
});

function held({ projects, keys, trusts }: OrganizationCounts): string {
  return joined([
    counted(projects, "project"),
    counted(keys, "key"),
    ...(trusts > 0 ? [counted(trusts, "trust")] : []),
  ]);
}

export const organizations: Operations = {
  about: "Organizations and their plans.",
  rows: [create, listAll, plan, remove],
};
