import type { AdminContext } from "../../src/people/desk/context.ts";
import { findProject } from "../../src/people/desk/projects.ts";
import type { Holding, Right } from "../../src/serve/access/rights.ts";

/** The admin context of a person who came over SSH. */
export function asPerson(admin: AdminContext, name: string, rights: readonly Holding[]): AdminContext {
  return { ...admin, rights, entries: [name], actor: { type: "person", name, from: "ssh" } };
}

/** A person with these rights in one project, in some environments or, by default, in all three. */
export async function personIn(
  admin: AdminContext,
  where: string,
  rights: readonly Right[],
  environments = 7,
): Promise<AdminContext> {
  const { id: projectId, organization } = await findProject(admin, where, "see");
  return asPerson(admin, "ana", [{ rights, organizationId: organization.id, projectId, environments }]);
}
