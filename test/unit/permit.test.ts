import { expect, test } from "bun:test";
import { environmentMask, environments, everyEnvironment } from "../../src/core/names.ts";
import { auditActions } from "../../src/kinds/people.ts";
import type { Change } from "../../src/people/desk/changes.ts";
import { Permit, rightTo } from "../../src/people/desk/permit.ts";
import { peopleActions } from "../../src/record/entry.ts";
import { everyRight, type Holding } from "../../src/serve/access/rights.ts";

const organization = { id: "acme-id", slug: "acme" };
const project = { id: "web-id", slug: "web" };
const place = { organizationId: organization.id, projectId: project.id };
const everywhere = { ...place, projectId: null };

const actions = [
  ...peopleActions,
  ...auditActions.filter((action) => /\.(?:write|rollback|reveal)$/.test(action) && action !== "people.write"),
] as readonly Change["action"][];

/** Whether somebody with every right that a holding can have is permitted a change of this action. */
function isPermitted(holding: Partial<Holding>, change: Omit<Change, "names">): boolean {
  const rights = [{ rights: everyRight, ...everywhere, environments: everyEnvironment, ...holding }];
  const among = environments.filter((one) => (rights[0]?.environments ?? 0) & environmentMask(one));
  const asked = holding.projectId === undefined ? everywhere : place;
  return Permit.find({ rights }, everyRight, asked, among)?.covers({ names: [], ...change }) === true;
}

const ofOperators = /^(?:organization|history|data_key|root_key|audit|restore)\b/;
const ofCredentials = /^(?:key|trust)\./;
const ofOrganization = /^project\.(?:create|rename|delete)$/;
const ofEnvironment = /^(?:request|values)\.|\.(?:write|rollback|reveal)$/;

test.each(actions)("%s is permitted to operators, and to others only where they hold its right", (action) => {
  const inProject = { action, organization, project };
  const inStaging = { ...inProject, environment: "staging" } as const;
  expect(Permit.operator({ rights: "operator" }).covers({ names: [], ...inStaging })).toBe(true);
  expect(Permit.operator({ rights: "operator" }).covers({ names: [], action, organization: null })).toBe(true);
  const isOperators = ofOperators.test(action);
  const isCredential = ofCredentials.test(action);
  // Persons are of no organization.
  const isPersons = action === "people.write";
  const isOrganization = ofOrganization.test(action);
  const isEnvironment = !isOperators && !isPersons && ofEnvironment.test(action);
  expect(rightTo(action) === "operator").toBe(isOperators);
  expect({
    "with all rights in the organization": isPermitted({}, inStaging),
    "with all rights in the project": isPermitted({ projectId: project.id }, inStaging),
    "with all rights in staging": isPermitted(
      { projectId: project.id, environments: environmentMask("staging") },
      inStaging,
    ),
    "in another environment": isPermitted({ environments: environmentMask("production") }, inStaging),
    "in another project": isPermitted(
      { projectId: project.id },
      { ...inStaging, project: { id: "api-id", slug: "api" } },
    ),
    "in another organization": isPermitted({}, { ...inStaging, organization: { id: "other", slug: "other" } }),
    "without an environment": isPermitted({ projectId: project.id }, inProject),
    "without a project": isPermitted({ projectId: project.id }, { action, organization }),
    "without an organization": isPermitted({}, { action, organization: null }),
  }).toEqual({
    "with all rights in the organization": !(isOperators || isCredential || isPersons),
    "with all rights in the project": !(isOperators || isCredential || isPersons || isOrganization),
    "with all rights in staging": isEnvironment,
    "in another environment": false,
    "in another project": false,
    "in another organization": false,
    "without an environment": action === "project.environments",
    "without a project": isCredential,
    "without an organization": isPersons,
  });
});

test("an action that is not in the table is permitted to nobody, operators included", () => {
  for (const action of ["organization.rename", "people.invite", "constructor", "__proto__", "variables.toString"]) {
    const change = { action, organization, names: [] } as unknown as Change;
    expect(Permit.operator({ rights: "operator" }).covers(change)).toBe(false);
    expect(() => rightTo(action as Change["action"])).toThrow("no right permits");
  }
});
