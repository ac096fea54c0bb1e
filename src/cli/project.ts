import { Argument } from "@commander-js/extra-typings";
import { createProject, deleteProject, listProjects } from "../admin/projects.ts";
import { environments } from "../names.ts";
import { answer, answerList, counted, noun, type Surroundings, verb, withAdmin } from "./command.ts";
import { formatTime } from "./terminal.ts";

/** A command about one project, which is its first argument. */
export function projectVerb(...description: Parameters<typeof verb>) {
  return verb(...description).argument("<project>", "ORG/PROJECT, or PROJECT if only one organization exists");
}

/** A command about one environment of a project: its first two arguments. */
export function environmentVerb(...description: Parameters<typeof verb>) {
  return projectVerb(...description).addArgument(new Argument("<env>", "the environment").choices(environments));
}

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

  const remove = projectVerb(
    "delete",
    "Delete a project with all of its variables, accounts and files. This cannot be undone.",
    "keyhole project delete acme/old-shop",
  ).action(async (project) => {
    const gone = await withAdmin(here, (admin) => deleteProject(admin, project));
    const { variables, accounts, files } = gone;
    const counts = `${counted(variables, "variable")}, ${counted(accounts, "account")} and ${counted(files, "file")}`;
    await answer(here, { project, deleted: true, ...gone }, `Deleted project ${project} with ${counts}.`);
  });

  return noun("project", "Projects, which hold variables, accounts and files.", create, list, remove);
}
