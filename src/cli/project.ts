import { Argument } from "@commander-js/extra-typings";
import { listKeys } from "../admin/keys.ts";
import { createProject, deleteProject, listProjects, renameProject, showProject } from "../admin/projects.ts";
import { environments } from "../names.ts";
import {
  answer,
  answerList,
  confirm,
  counted,
  noun,
  type Surroundings,
  verb,
  wideOption,
  withAdmin,
  yesOption,
} from "./command.ts";
import { excerpt, formatTime } from "./terminal.ts";

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
        const { organization, slug, ...has } = await showProject(admin, project);
        const holds = held(has.variableCount, has.accountCount, has.fileCount);
        await confirm(here, yes, `delete project ${organization}/${slug} with ${holds}, for good`);
        return deleteProject(admin, `${organization}/${slug}`);
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
    .action(async (project, slug, { name }) => {
      const { before, renamed, keys } = await withAdmin(here, async (admin) => {
        const before = await showProject(admin, project);
        const renamed = await renameProject(admin, project, { slug, name });
        const { organization } = before;
        const all = [...(await listKeys(admin, organization)), ...(await listKeys(admin, organization, "trust"))];
        const listing = all.filter(({ status, projects }) => status === "active" && projects?.includes(before.slug));
        return { before, renamed, keys: slug === before.slug ? [] : listing };
      });
      const { organization } = renamed;
      const lines = [`Renamed project ${organization}/${before.slug} to ${organization}/${slug}.`];
      if (keys.length > 0) {
        const which = keys
          .map(({ type, id, name }) => `${type === "trust" ? "trust " : ""}${id} (${excerpt(name)})`)
          .join(", ");
        const what = keys.some(({ type }) => type === "trust") ? "Keys and trusts" : "Keys";
        lines.push(`${what} that list it as ${before.slug} reach nothing by that any more; create new ones: ${which}.`);
      }
      await answer(here, { ...renamed, keysWithOldSlug: keys.map(({ id }) => id) }, lines.join("\n"));
    });

  return noun("project", "Projects, which hold variables, accounts and files.", create, list, rename, remove);
}
