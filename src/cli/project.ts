import { Argument } from "@commander-js/extra-typings";
import { createProject, deleteProject, listProjects } from "../admin/projects.ts";
import { environments } from "../names.ts";
import { answer, answerList, counted, noun, type Surroundings, verb, withAdmin } from "./command.ts";
import { formatTime } from "./terminal.ts";

/** The argument ORG/PROJECT of many commands. */
export const projectArgument = ["<project>", "ORG/PROJECT, or PROJECT if only one organization exists"] as const;

/** The argument ENV of many commands. */
export const environmentArgument = new Argument("<env>", "the environment").choices(environments);

/** `keyhole project …` */
export function projectCommand(here: Surroundings) {
  const create = verb(
    "create",
    "Create a project.",
    "keyhole project create acme/web",
    'keyhole project create web --name "Web shop"',
  )
    .argument(...projectArgument)
    .option("--name <name>", "display name (default: the slug)")
    .action(async (project, { name }) => {
      const created = await withAdmin(here, (admin) => createProject(admin, project, { name }));
      await answer(here, created, `Created project ${created.organization}/${created.slug}.`);
    });

  const list = verb("list", "List the projects.", "keyhole project list", "keyhole project list acme")
    .argument("[org]", "only projects of this organization")
    .action(async (organization) => {
      const projects = await withAdmin(here, (admin) => listProjects(admin, organization));
      const noneMessage = "There are no projects yet: run keyhole project create ORG/PROJECT.";
      await answerList(here, projects, noneMessage, {
        PROJECT: (one) => `${one.organization}/${one.slug}`,
        NAME: (one) => one.name,
        VARIABLES: (one) => one.variableCount,
        ACCOUNTS: (one) => one.accountCount,
        FILES: (one) => one.fileCount,
        UPDATED: (one) => formatTime(one.updatedAt),
      });
    });

  const remove = verb(
    "delete",
    "Delete a project with all of its variables, accounts and files. This cannot be undone.",
    "keyhole project delete acme/old-shop",
  )
    .argument(...projectArgument)
    .action(async (project) => {
      const gone = await withAdmin(here, (admin) => deleteProject(admin, project));
      const { variables, accounts, files } = gone;
      const counts = `${counted(variables, "variable")}, ${counted(accounts, "account")} and ${counted(files, "file")}`;
      await answer(here, { project, deleted: true, ...gone }, `Deleted project ${project} with ${counts}.`);
    });

  return noun("project", "Projects, which hold variables, accounts and files.", create, list, remove);
}
