import { kindRoutes } from "../kinds/pages.ts";
import { auditExport, auditPage, entryPage, proofFile } from "../people/audit/page.tsx";
import { rightTo } from "../people/desk/permit.ts";
import { rollback } from "../people/history/operations.ts";
import { historyPage, undo, undoPage } from "../people/history/page.tsx";
import { accessPage } from "../people/keys/access-page.tsx";
import { makeKey, newKeyPage, rotateShown } from "../people/keys/new-key.tsx";
import { create, revoke, rotate } from "../people/keys/operations.ts";
import { keyPage, keysPage, revokeNamed } from "../people/keys/page.tsx";
import { readPage } from "../people/keys/read-page.tsx";
import { runPage } from "../people/keys/run-page.tsx";
import { mePage } from "../people/persons/me.tsx";
import { grant } from "../people/persons/operations.ts";
import { personPage, personsPage } from "../people/persons/page.tsx";
import { changePerson } from "../people/persons/rights-form.tsx";
import { findNames } from "../people/projects/find-operations.ts";
import { findPage, findTyped, offered } from "../people/projects/find-page.tsx";
import { gridPage } from "../people/projects/grid.tsx";
import { itemPage, reveal } from "../people/projects/item.tsx";
import { makeProject } from "../people/projects/operations.ts";
import { create as makeOrganization } from "../people/projects/organization-operations.ts";
import { createOrganization, createProject, firstPage, projectsPage } from "../people/projects/page.tsx";
import { remove, set, setPage } from "../people/projects/set.tsx";
import { approve, reject } from "../people/requests/operations.ts";
import { approveShown, rejectShown, requestPage, requestsPage } from "../people/requests/page.tsx";
import { everyRight, hasSomewhere, type Rights } from "../serve/access/rights.ts";
import { type Route, rightsOf } from "./parts/route.ts";
import { leaveStart, startPage } from "./start.tsx";
import { todayPage } from "./today.tsx";

const ofAnyKind = (deed: "write" | "reveal") => rightsOf({ right: rightTo(`items.${deed}`) });

/** Everything that the dashboard shows or does, and its rights: a route needs any one of them. */
export const routes: readonly Route[] = [
  { method: "GET", path: "/", rights: everyRight, answer: todayPage },
  { method: "GET", path: "/start", rights: everyRight, answer: startPage },
  { method: "POST", path: "/start/leave", rights: everyRight, answer: leaveStart },
  { method: "POST", path: "/organizations", rights: rightsOf(makeOrganization), answer: createOrganization },
  { method: "GET", path: "/me", rights: everyRight, answer: mePage },
  { method: "GET", path: "/find", rights: rightsOf(findNames), answer: findPage },
  { method: "POST", path: "/find", rights: rightsOf(findNames), answer: findTyped },
  { method: "GET", path: "/find/offers", rights: rightsOf(findNames), answer: offered },
  { method: "GET", path: "/projects", rights: ["see"], answer: projectsPage },
  { method: "POST", path: "/projects", rights: rightsOf(makeProject), answer: createProject },
  { method: "GET", path: "/p/:org/:project", rights: ["see"], answer: firstPage },
  { method: "GET", path: "/p/:org/:project/:kind", rights: ["see"], answer: (visit) => gridPage(visit) },
  {
    method: "POST",
    path: "/p/:org/:project/:kind/compare",
    rights: ofAnyKind("reveal"),
    answer: (visit) => gridPage(visit, true),
  },
  { method: "GET", path: "/p/:org/:project/:kind/item", rights: ["see"], answer: itemPage },
  {
    method: "POST",
    path: "/p/:org/:project/:kind/reveal",
    rights: ofAnyKind("reveal"),
    isSecret: true,
    answer: reveal,
  },
  { method: "GET", path: "/p/:org/:project/:kind/set", rights: ofAnyKind("write"), answer: setPage },
  { method: "POST", path: "/p/:org/:project/:kind/set", rights: ofAnyKind("write"), answer: set },
  { method: "POST", path: "/p/:org/:project/:kind/delete", rights: ofAnyKind("write"), answer: remove },
  ...kindRoutes,
  { method: "GET", path: "/p/:org/:project/history", rights: ["see"], answer: historyPage },
  // It says which values differ between versions.
  { method: "GET", path: "/p/:org/:project/undo", rights: rightsOf(rollback), answer: undoPage },
  { method: "POST", path: "/p/:org/:project/undo", rights: rightsOf(rollback), answer: undo },
  { method: "GET", path: "/requests", rights: ["see", "decide"], answer: requestsPage },
  { method: "GET", path: "/requests/:id", rights: ["see", "decide"], answer: requestPage },
  { method: "POST", path: "/requests/:id/approve", rights: rightsOf(approve), answer: approveShown },
  { method: "POST", path: "/requests/:id/reject", rights: rightsOf(reject), answer: rejectShown },
  { method: "GET", path: "/audit", rights: ["audit"], isLong: true, answer: auditPage },
  { method: "GET", path: "/audit/export", rights: ["audit"], isLong: true, answer: auditExport },
  { method: "GET", path: "/audit/entry/:entry", rights: ["audit"], answer: entryPage },
  { method: "GET", path: "/audit/proof/:entry", rights: ["audit"], answer: proofFile },
  { method: "GET", path: "/keys", rights: ["see", "keys"], answer: keysPage },
  { method: "GET", path: "/keys/:id", rights: ["see", "keys"], answer: keyPage },
  { method: "GET", path: "/keys/:id/read", rights: ["audit"], isLong: true, answer: readPage },
  { method: "POST", path: "/keys/:id/revoke", rights: rightsOf(revoke), answer: revokeNamed },
  { method: "GET", path: "/keys/new", rights: ["keys"], answer: newKeyPage },
  { method: "POST", path: "/keys", rights: rightsOf(create), isSecret: true, answer: makeKey },
  { method: "POST", path: "/keys/:id/rotate", rights: rightsOf(rotate), isSecret: true, answer: rotateShown },
  { method: "GET", path: "/p/:org/:project/access", rights: ["see"], answer: accessPage },
  { method: "GET", path: "/p/:org/:project/run", rights: ["see"], answer: runPage },
  { method: "GET", path: "/persons", rights: rightsOf(grant), answer: personsPage },
  { method: "GET", path: "/persons/:name", rights: ["see", "grant"], answer: personPage },
  { method: "POST", path: "/persons/:name/rights", rights: rightsOf(grant), answer: changePerson },
];

/** Whether a page is there for somebody. @param to - its path, with or without a query */
export function isPageFor(rights: Rights, to: string): boolean {
  const pathname = to.replace(/\?.*/s, "");
  return routes.some(
    ({ method, path, rights: needed }) =>
      method === "GET" &&
      new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}$`).test(pathname) &&
      hasSomewhere(rights, ...needed),
  );
}
