import { Argument } from "@commander-js/extra-typings";
import { createProject, deleteProject, listProjects } from "../admin/projects.ts";
import { environments } from "../names.ts";
import { answer, answerList, atDesk, counted, noun, type Surroundings, verb } from "./command.ts";
import { formatTime } from "./terminal.ts";

/** What `ORG/PROJECT` means, for the help of every command that takes it. */
export const projectArgument = ["<project>", "ORG/PROJECT, or PROJECT where only one organization exists"] as const;

/** The argument ENV, likewise. */
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
    .action(async (where, { name }) => {
      const project = await atDesk(here, (desk) => createProject(desk, where, { name }));
      await answer(here, project, `Created project ${project.organization}/${project.slug}.`);
    });

  const list = verb("list", "List the projects.", "keyhole project list", "keyhole project list acme")
    .argument("[org]", "only this organization's")
    .action(async (organization) => {
      const projects = await atDesk(here, (desk) => listProjects(desk, organization));
      const header = ["PROJECT", "NAME", "VARIABLES", "ACCOUNTS", "FILES", "UPDATED"];
      const rows = projects.map((one) => [
        `${one.organization}/${one.slug}`,
        one.name,
        String(one.variableCount),
        String(one.accountCount),
        String(one.fileCount),
        formatTime(one.updatedAt),
      ]);
      await answerList(
        here,
        projects,
        header,
        rows,
        "There are no projects yet: keyhole project create ORG/PROJECT makes one.",
      );
    });

  const remove = verb(
    "delete",
    "Delete a project with all of its variables, accounts and files, at once and for good.",
    "keyhole project delete acme/old-shop",
  )
    .argument(...projectArgument)
    .action(async (where) => {
      const gone = await atDesk(here, (desk) => deleteProject(desk, where));
      const { variables, accounts, files } = gone;
      const counts = `${counted(variables, "variable")}, ${counted(accounts, "account")} and ${counted(files, "file")}`;
      await answer(here, { project: where, deleted: true, ...gone }, `Deleted project ${where} with ${counts}.`);
    });

  return noun("project", "Projects, which hold variables, accounts and files.")
    .addCommand(create)
    .addCommand(list)
    .addCommand(remove);
}
