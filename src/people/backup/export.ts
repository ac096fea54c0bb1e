import { environments } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import type { ExportAsk, ExportMode } from "../../kinds/export-item.ts";
import { everyKind } from "../../kinds/kind.ts";
import { exportItems } from "../../kinds/people.ts";
import { type AdminContext, writing } from "../desk/context.ts";
import { findOrganization, requireSlug } from "../desk/organizations.ts";
import { Permit } from "../desk/permit.ts";
import { findProject, projectPath } from "../desk/projects.ts";
import { showContent } from "../editing/contents.ts";
import { type OpenSet, openItems, requireSet, type SetOf } from "../editing/open.ts";
import { revealOf } from "../editing/reveal.ts";
import { listProjects } from "../projects/projects.ts";

/** A file of an export. Its path is relative and safe. */
export type ExportedFile = { readonly path: string; readonly mode: ExportMode; readonly content: Uint8Array };

/** What an export has so far. */
export type Exported = {
  readonly organization: string;
  projects: number;
  /** By kind, over all environments. */
  readonly items: Record<string, number>;
  /** Those that are for machines only, and left out. */
  readonly leftOut: string[];
};

/**
 * Everything that a team put in, one set after the other: the items of each set are on record as revealed before the
 * first file of them is given.
 * @param report - called with how many projects are done, of how many
 * @throws Refused `conflict` for the first set or content that does not open
 */
export async function* exportOrganization(
  admin: AdminContext,
  slug: string | undefined,
  { withMachinesOnly = false, ...ask }: ExportAsk & { readonly withMachinesOnly?: boolean },
  report: (done: number, total: number) => void = () => {},
): AsyncGenerator<ExportedFile, Exported> {
  Permit.operator(admin);
  const organization = await findOrganization(admin, slug);
  const projects = await listProjects(admin, organization.slug);
  const items = Object.fromEntries(everyKind.map(({ kind }) => [kind, 0]));
  const exported: Exported = { organization: organization.slug, projects: 0, items, leftOut: [] };
  const about = projects.map(({ slug, name, environments }) => ({ slug, name, environments }));
  yield textFile(
    "organization.json",
    `${JSON.stringify({ slug: organization.slug, name: organization.name, projects: about }, null, 2)}\n`,
  );
  for (const { slug } of projects) {
    requireSlug("project", slug);
    const project = await findProject(admin, `${organization.slug}/${slug}`, "reveal", environments);
    for (const environment of environments) {
      for (const descriptor of everyKind) {
        const { set, hidden } = await revealSet(admin, { project, environment, descriptor }, withMachinesOnly);
        exported.leftOut.push(...hidden.map((name) => `${name} in ${projectPath(project)}, ${environment}`));
        if (set.items.size > 0) yield* filesOf(admin, set, ask);
        items[descriptor.kind] = (items[descriptor.kind] ?? 0) + set.items.size;
      }
    }
    exported.projects += 1;
    report(exported.projects, projects.length);
  }
  return exported;
}

/** Opens a set with the items that may be shown on record as revealed, and those for machines only left out. */
function revealSet(admin: AdminContext, of: SetOf, withMachinesOnly: boolean) {
  const { project } = of;
  return writing(admin, project.permit, async (admin) => {
    const found = await requireSet(admin, of);
    const opened = openItems(of, found, { withMachinesOnly });
    const items = new Map([...opened.items].filter(([, { isHidden }]) => !isHidden));
    const hidden = [...opened.items.keys()].filter((name) => !items.has(name));
    const set = { ...opened, items };
    return [{ set, hidden }, items.size === 0 ? [] : [revealOf(admin, of, items.values())]];
  });
}

async function* filesOf(admin: AdminContext, set: OpenSet, ask: ExportAsk): AsyncGenerator<ExportedFile> {
  const { project, environment } = set;
  const warn = (line: string) => ask.warn(`${projectPath(project)}, ${environment}: ${line}`);
  for (const item of await exportItems(set, { ...ask, warn })) {
    const path = `${project.slug}/${environment}/${item.path}`;
    if ("text" in item) {
      yield textFile(path, item.text);
      continue;
    }
    const content = await showContent(admin, project.id, item.item);
    if (content === undefined) {
      const words = `The content of ${item.path} of ${projectPath(project)} in ${environment} does not open`;
      throw new Refused("conflict", `${words}: somebody has just changed it, or it was changed by other means.`);
    }
    yield { path, mode: item.mode, content };
  }
}

function textFile(path: string, text: string): ExportedFile {
  return { path, mode: "0600", content: Buffer.from(text) };
}
