import { environments } from "../../core/names.ts";
import { excerpt } from "../../core/visible.ts";
import { counted, joined } from "../../core/words/text.ts";
import { everyKind } from "../../kinds/kind.ts";
import type { AdminContext } from "../desk/context.ts";
import { choices, completed, environmentList, input, project, wide } from "../desk/inputs.ts";
import { type Operations, operation } from "../desk/operation.ts";
import { done, list, noneYet } from "../desk/outcome.ts";
import { rightTo } from "../desk/permit.ts";
import { projectPath } from "../desk/projects.ts";
import { cuttingOff, nameOf } from "../keys/credentials.ts";
import { type KeyRecord, listAccess } from "../keys/keys.ts";
import {
  createProject,
  listProjects,
  type Project,
  planDeletion,
  planRename,
  setProjectEnvironments,
} from "./projects.ts";

export const makeProject = operation({
  path: "project create",
  about: "Create a project.",
  examples: ['keyhole project create acme/web --name "Web shop"'],
  right: rightTo("project.create"),
  inputs: {
    project,
    name: input("--name <name>", "display name (default: the slug)"),
    environments: choices("--env <list>", "the environments that it uses (default: all three)", environments),
  },
  run: async (admin, { project, ...asked }) => {
    const made = await createProject(admin, project, asked);
    const uses = asked.environments === undefined ? "" : `, which uses ${joined(made.environments)}`;
    return done(made, `Created project ${made.organization}/${made.slug}${uses}.`);
  },
});

const listAll = operation({
  path: "project list",
  about: "List the projects.",
  examples: ["keyhole project list acme"],
  right: "see",
  inputs: { organization: completed(input("[org]", "only projects of this organization"), "organizations"), wide },
  run: async (admin, { organization }) => {
    const of = organization === undefined ? "" : ` of ${organization}`;
    const none = noneYet(admin, `projects${of}`, "run keyhole project create ORG/PROJECT.");
    const counts = everyKind.map(({ kind, item }) => [kind.toUpperCase(), (one: Project) => one[`${item}Count`]]);
    return list(
      await listProjects(admin, organization),
      {
        PROJECT: (one) => `${one.organization}/${one.slug}`,
        NAME: ({ name }) => ({ name }),
        USES: (one) => (one.environments.length === environments.length ? "all" : one.environments.join(",")),
        ...Object.fromEntries(counts),
        UPDATED: (one) => ({ at: one.updatedAt }),
      },
      none,
    );
  },
});

const setEnvironments = operation({
  path: "project environments",
  about: "Say which environments a project uses. Pages leave out the others, and nothing new is written there.",
  examples: ["keyhole project environments acme/web --env development,production"],
  right: rightTo("project.environments"),
  inputs: { project, environments: environmentList("the environments that it uses") },
  run: async (admin, { project, environments }) => {
    const changed = await setProjectEnvironments(admin, project, environments);
    const { organization, slug, environments: used } = changed;
    return done(changed, `Project ${organization}/${slug} uses ${joined(used)}.`);
  },
});

const rename = operation({
  path: "project rename",
  about:
    "Give a project another slug. Clients must use it, and keys that list the old one cannot read the project any more.",
  examples: ["keyhole project rename acme/web shop", 'keyhole project rename acme/web shop --name "Web shop"'],
  right: rightTo("project.rename"),
  asks: "needs --yes",
  inputs: {
    project,
    slug: input("<slug>", "the new slug"),
    name: input("--name <name>", "new display name (default: the old one)"),
  },
  plan: async (admin, { project, slug, name }) => {
    const { found, seen, apply } = await planRename(admin, project, { slug, name });
    const { organization, slug: before } = found;
    const [from, to] = [`${organization.slug}/${before}`, `${organization.slug}/${slug}`];
    const isRenamed = from !== to;
    const { deed, keys, active } = cuttingOff(`rename project ${from} to ${to}`, await listing(admin, project));
    const cut = isRenamed ? active : [];
    return {
      document: { from, to },
      seen: isRenamed ? { ...seen, keys } : seen,
      ...(isRenamed ? { deed } : { sentence: `Nothing was written. ${from} would keep its slug.` }),
      apply: async () => {
        const renamed = await apply();
        const kept = `Project ${from} keeps its slug. Its name is ${excerpt(renamed.name)}.`;
        const lines = [isRenamed ? `Renamed project ${from} to ${to}.` : kept];
        if (cut.length > 0) {
          lines.push(`Cut off, because they list it as ${before}: ${cut.map(nameOf).join(", ")}. Create new ones.`);
        }
        return done({ ...renamed, keysWithOldSlug: cut.map(({ id }) => id) }, lines.join("\n"));
      },
    };
  },
});

const remove = operation({
  path: "project delete",
  about: "Delete a project with all of its variables, accounts and files. This cannot be undone.",
  examples: ["keyhole project delete acme/old-shop"],
  right: rightTo("project.delete"),
  asks: "needs --yes",
  inputs: { project },
  plan: async (admin, { project }) => {
    const { found, counts, seen, apply } = await planDeletion(admin, project);
    const words = `delete project ${projectPath(found)} with ${heldIn(counts)}, for good`;
    const { deed, keys } = cuttingOff(words, await listing(admin, project));
    return {
      deed,
      seen: { ...seen, keys },
      document: { project, ...counts },
      apply: async () =>
        done({ project, deleted: true, ...(await apply()) }, `Deleted project ${project} with ${heldIn(counts)}.`),
    };
  },
});

/** Such as `3 variables, 1 account and 0 files`. @param counts - by kind */
function heldIn(counts: Readonly<Record<string, number>>): string {
  return joined(everyKind.map(({ kind, item }) => counted(counts[kind] ?? 0, item)));
}

/** The active keys and trusts that list a project: they lose it if it is deleted. */
async function listing(admin: AdminContext, project: string): Promise<KeyRecord[]> {
  return (await listAccess(admin, project)).filter(({ projects }) => projects !== null);
}

export const projects: Operations = {
  about: "Projects, which hold variables, accounts and files.",
  rows: [makeProject, listAll, setEnvironments, rename, remove],
};
