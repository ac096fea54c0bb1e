import { environments } from "../core/names.ts";
import { excerpt } from "../core/visible.ts";
import type { AdminContext } from "../desk/context.ts";
import { everyKind } from "../kinds/kind.ts";
import { type KeyRecord, listAccess } from "../people/keys.ts";
import {
  createProject,
  deleteProject,
  listProjects,
  type Project,
  renameProject,
  setProjectEnvironments,
  showProject,
} from "../people/projects.ts";
import { confirmChange, withAdmin } from "../terminal/admin.ts";
import { answer, counted, joined } from "../terminal/answer.ts";
import { type CommandContext, noun, verb } from "../terminal/command.ts";
import { choiceOption, environmentsOption } from "../terminal/options.ts";
import { listFound } from "../terminal/records.ts";
import { formatTime } from "../terminal/terminal.ts";
import { projectVerb, wideOption, yesOption } from "../terminal/verbs.ts";
import { cuttingOff, nameOf } from "./grant.ts";

export function projectCommand(context: CommandContext) {
  const create = projectVerb("create", "Create a project.", 'keyhole project create acme/web --name "Web shop"')
    .option("--name <name>", "display name (default: the slug)")
    .addOption(choiceOption("--env <list>", "the environments that it uses (default: all three)", environments))
    .action(async (project, { name, env }) => {
      const created = await withAdmin(context, (admin) => createProject(admin, project, { name, environments: env }));
      const uses = env === undefined ? "" : `, which uses ${joined(created.environments)}`;
      await answer(context, created, `Created project ${created.organization}/${created.slug}${uses}.`);
    });

  const list = verb("list", "List the projects.", "keyhole project list acme")
    .argument("[org]", "only projects of this organization")
    .option(...wideOption)
    .action((organization, { wide }) => {
      const none = "There are no projects yet: run keyhole project create ORG/PROJECT.";
      const counts = everyKind.map(({ kind, item }) => [kind.toUpperCase(), (one: Project) => one[`${item}Count`]]);
      return listFound(context, wide, (admin) => listProjects(admin, organization), none, {
        PROJECT: (one) => `${one.organization}/${one.slug}`,
        NAME: (one) => excerpt(one.name),
        USES: (one) => (one.environments.length === environments.length ? "all" : one.environments.join(",")),
        ...Object.fromEntries(counts),
        UPDATED: (one) => formatTime(one.updatedAt),
      });
    });

  const description = "Projects, which hold variables, accounts and files.";
  return noun(
    "project",
    description,
    create,
    list,
    environmentsVerb(context),
    renameVerb(context),
    deleteVerb(context),
  );
}

function environmentsVerb(context: CommandContext) {
  return projectVerb(
    "environments",
    "Say which environments a project uses. Pages leave out the others, and nothing new is written there.",
    "keyhole project environments acme/web --env development,production",
  )
    .addOption(environmentsOption("the environments that it uses"))
    .action(async (project, { env }) => {
      const changed = await withAdmin(context, (admin) => setProjectEnvironments(admin, project, env));
      const { organization, slug, environments: used } = changed;
      await answer(context, changed, `Project ${organization}/${slug} uses ${joined(used)}.`);
    });
}

function deleteVerb(context: CommandContext) {
  return projectVerb(
    "delete",
    "Delete a project with all of its variables, accounts and files. This cannot be undone.",
    "keyhole project delete acme/old-shop",
  )
    .option(...yesOption)
    .action(async (project, { yes }) => {
      const held = (counts: Readonly<Record<string, number>>) =>
        joined(everyKind.map(({ kind, item }) => counted(counts[kind] ?? 0, item)));
      const gone = await withAdmin(context, async (admin) => {
        const { organization, slug } = await showProject(admin, project);
        const keys = await listing(admin, project);
        const path = `${organization}/${slug}`;
        const change = (it: AdminContext) => deleteProject(it, path);
        return confirmChange(context, admin, yes, change, (outcome) => {
          return `delete project ${path} with ${held(outcome)}, for good${cuttingOff(keys)}`;
        });
      });
      await answer(context, { project, deleted: true, ...gone }, `Deleted project ${project} with ${held(gone)}.`);
    });
}

function renameVerb(context: CommandContext) {
  return projectVerb(
    "rename",
    "Give a project another slug. Clients must use it, and keys that list the old one cannot read the project any more.",
    "keyhole project rename acme/web shop",
    'keyhole project rename acme/web shop --name "Web shop"',
  )
    .argument("<slug>", "the new slug")
    .option("--name <name>", "new display name (default: the old one)")
    .option(...yesOption)
    .action(async (project, slug, { name, yes }) => {
      const { before, renamed, keys } = await withAdmin(context, async (admin) => {
        const before = await showProject(admin, project);
        const keeps = slug === before.slug;
        const keys = keeps ? [] : await listing(admin, project);
        const path = `${before.organization}/${before.slug}`;
        const change = (it: AdminContext) => renameProject(it, path, { slug, name });
        const deed = `rename project ${path} to ${before.organization}/${slug}${cuttingOff(keys)}`;
        const renamed = await confirmChange(context, admin, yes || keeps, change, () => deed);
        return { before, renamed, keys };
      });
      const { organization } = renamed;
      const lines = [`Renamed project ${organization}/${before.slug} to ${organization}/${slug}.`];
      if (keys.length > 0) {
        const which = keys.map(nameOf).join(", ");
        lines.push(`Cut off, because they list it as ${before.slug}: ${which}. Create new ones.`);
      }
      await answer(context, { ...renamed, keysWithOldSlug: keys.map(({ id }) => id) }, lines.join("\n"));
    });
}

/** The active keys and trusts that list a project: they lose it if it is deleted. */
async function listing(admin: AdminContext, project: string): Promise<KeyRecord[]> {
  return (await listAccess(admin, project)).filter(({ projects }) => projects !== null);
}
