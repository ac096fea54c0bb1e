import type { AdminContext } from "../desk/context.ts";
import { type KeyRecord, listAccess } from "../people/keys.ts";
import { createProject, deleteProject, listProjects, renameProject, showProject } from "../people/projects.ts";
import { confirmChange, withAdmin, yesOption } from "../terminal/admin.ts";
import { answer, answerList, counted, wideOption } from "../terminal/answer.ts";
import { noun, type Surroundings, verb } from "../terminal/command.ts";
import { projectVerb } from "../terminal/project-verbs.ts";
import { excerpt, formatTime } from "../terminal/terminal.ts";
import { cuttingOff, nameOf } from "./grant.ts";

/** `keyhole project …` */
export function projectCommand(here: Surroundings) {
  const create = projectVerb("create", "Create a project.", 'keyhole project create acme/web --name "Web shop"')
    .option("--name <name>", "display name (default: the slug)")
    .action(async (project, { name }) => {
      const created = await withAdmin(here, (admin) => createProject(admin, project, { name }));
      await answer(here, created, `Created project ${created.organization}/${created.slug}.`);
    });

  const list = verb("list", "List the projects.", "keyhole project list acme")
    .argument("[org]", "only projects of this organization")
    .option(...wideOption)
    .action(async (organization, { wide }) => {
      const projects = await withAdmin(here, (admin) => listProjects(admin, organization));
      const noneMessage = "There are no projects yet: run keyhole project create ORG/PROJECT.";
      await answerList(
        here,
        projects,
        noneMessage,
        {
          PROJECT: (one) => `${one.organization}/${one.slug}`,
          NAME: (one) => excerpt(one.name),
          VARIABLES: (one) => one.variableCount,
          ACCOUNTS: (one) => one.accountCount,
          FILES: (one) => one.fileCount,
          UPDATED: (one) => formatTime(one.updatedAt),
        },
        wide,
      );
    });

  const remove = projectVerb(
    "delete",
    "Delete a project with all of its variables, accounts and files. This cannot be undone.",
    "keyhole project delete acme/old-shop",
  )
    .option(...yesOption)
    .action(async (project, { yes }) => {
      const held = (variables: number, accounts: number, files: number) =>
        `${counted(variables, "variable")}, ${counted(accounts, "account")} and ${counted(files, "file")}`;
      const gone = await withAdmin(here, async (admin) => {
        const { organization, slug } = await showProject(admin, project);
        const keys = await listing(admin, project);
        return confirmChange(
          here,
          admin,
          yes,
          (it) => deleteProject(it, `${organization}/${slug}`),
          ({ variables, accounts, files }) =>
            `delete project ${organization}/${slug} with ${held(variables, accounts, files)}, for good${cuttingOff(keys)}`,
        );
      });
      const { variables, accounts, files } = gone;
      const words = `Deleted project ${project} with ${held(variables, accounts, files)}.`;
      await answer(here, { project, deleted: true, ...gone }, words);
    });

  const rename = projectVerb(
    "rename",
    "Give a project another slug. Clients must ask for the new one, and keys that list the old one reach it no more.",
    "keyhole project rename acme/web shop",
    'keyhole project rename acme/web shop --name "Web shop"',
  )
    .argument("<slug>", "the new slug")
    .option("--name <name>", "new display name (default: the old one)")
    .option(...yesOption)
    .action(async (project, slug, { name, yes }) => {
      const { before, renamed, keys } = await withAdmin(here, async (admin) => {
        const before = await showProject(admin, project);
        const keeps = slug === before.slug;
        const keys = keeps ? [] : await listing(admin, project);
        const { organization } = before;
        const renamed = await confirmChange(
          here,
          admin,
          yes || keeps,
          (it) => renameProject(it, `${organization}/${before.slug}`, { slug, name }),
          () => `rename project ${organization}/${before.slug} to ${organization}/${slug}${cuttingOff(keys)}`,
        );
        return { before, renamed, keys };
      });
      const { organization } = renamed;
      const lines = [`Renamed project ${organization}/${before.slug} to ${organization}/${slug}.`];
      if (keys.length > 0) {
        const which = keys.map(nameOf).join(", ");
        lines.push(`Cut off, because they list it as ${before.slug}: ${which}. Create new ones.`);
      }
      await answer(here, { ...renamed, keysWithOldSlug: keys.map(({ id }) => id) }, lines.join("\n"));
    });

  return noun("project", "Projects, which hold variables, accounts and files.", create, list, rename, remove);
}

/** The active keys and trusts that reach a project because they list it: those that are cut off if it goes. */
async function listing(admin: AdminContext, project: string): Promise<KeyRecord[]> {
  return (await listAccess(admin, project)).filter(({ projects }) => projects !== null);
}
