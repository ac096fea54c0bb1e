/* What serves cannot do what people do: it holds nothing that could. */

import { writing } from "../../src/people/desk/context.ts";
import { Permit } from "../../src/people/desk/permit.ts";
import { findProject } from "../../src/people/desk/projects.ts";
import type { ApiParts } from "../../src/serve/gates/api-parts.ts";
import type { Reading } from "../../src/serve/sets/lookup.ts";

declare const parts: ApiParts;
declare const reading: Reading;
declare const permit: Permit;

// @ts-expect-error a change with the parts of the API: 'ApiParts' is (not assignable|missing)
void writing(parts, permit, async () => [undefined, []]);
// @ts-expect-error a change with what a request carries: 'Reading' is (not assignable|missing)
void writing(reading, permit, async () => [undefined, []]);
// @ts-expect-error a project as people find it: 'ApiParts' is (not assignable|missing)
void findProject(parts, "acme/web", "write");
// @ts-expect-error a permit of a caller: 'rights' is missing|'rights' does not exist|not assignable
Permit.find(reading.caller, ["write"], { organizationId: "", projectId: "" });
// @ts-expect-error a permit made by hand: private
new Permit(["write"], null, ["production"]);
// @ts-expect-error a permit that nobody asked for: #isMadeHere
export const forged: Permit = { rights: ["write"], place: null, environments: ["production"], allows: () => true };
// @ts-expect-error a database among the parts: 'database' does not exist
console.log(parts.database);
// @ts-expect-error a statement of one's own in a read: '(db|query)' does not exist
console.log(reading.source.sets.db);
