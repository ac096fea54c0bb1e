import { readConfig } from "../../src/core/settings/settings.ts";
import { openInstallation } from "../../src/installation/installation.ts";
import { adminContextOf, operator } from "../../src/people/desk/context.ts";
import { createOrganization } from "../../src/people/projects/organizations.ts";
import { createProject } from "../../src/people/projects/projects.ts";
import { setVariables } from "./plans.ts";

/** Values by environment and name. */
export type Furniture = Readonly<Record<string, Readonly<Record<string, string>>>>;

/** Creates the organization acme and its project web, with these variables in each environment, as ann@host. */
export async function fill(env: Readonly<Record<string, string | undefined>>, variables: Furniture): Promise<void> {
  const admin = adminContextOf(await openInstallation(readConfig(env), () => {}), operator("ann@host"));
  try {
    await createOrganization(admin, { slug: "acme" });
    await createProject(admin, "acme/web", {});
    for (const [environment, values] of Object.entries(variables)) {
      for (const [name, value] of Object.entries(values)) {
        await setVariables(admin, "acme/web", environment, [{ name, value }]);
      }
    }
  } finally {
    await admin.close();
  }
}
