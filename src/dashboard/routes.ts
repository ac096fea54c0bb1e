import { kindRoutes } from "../kinds/pages.ts";
import type { Route } from "../pages/route.ts";
import { accessPage } from "./access.tsx";
import { auditExport, auditPage, entryPage, verifyPage } from "./audit.tsx";
import { gridPage } from "./grid.tsx";
import { historyPage, undo, undoPage } from "./history.tsx";
import { itemPage, reveal } from "./item.tsx";
import { keyPage, keysPage, revoke } from "./keys.tsx";
import { makeKey, newKeyPage, rotate } from "./new-key.tsx";
import { firstPage, makeProject, projectsPage } from "./projects.tsx";
import { approve, reject, requestPage, requestsPage } from "./requests.tsx";
import { todayPage } from "./today.tsx";

/** Everything that the dashboard shows or does, with the right that it needs. */
export const routes: readonly Route[] = [
  { method: "GET", path: "/", right: "any", answer: todayPage },
  { method: "GET", path: "/projects", right: "see", answer: projectsPage },
  { method: "POST", path: "/projects", right: "write", answer: makeProject },
  { method: "GET", path: "/p/:org/:project", right: "see", answer: firstPage },
  { method: "GET", path: "/p/:org/:project/:kind", right: "see", answer: gridPage },
  { method: "GET", path: "/p/:org/:project/:kind/item", right: "see", answer: itemPage },
  { method: "POST", path: "/p/:org/:project/:kind/reveal", right: "reveal", isSecret: true, answer: reveal },
  ...kindRoutes,
  { method: "GET", path: "/p/:org/:project/history", right: "see", answer: historyPage },
  // It says which values differ between versions.
  { method: "GET", path: "/p/:org/:project/undo", right: "write", answer: undoPage },
  { method: "POST", path: "/p/:org/:project/undo", right: "write", answer: undo },
  { method: "GET", path: "/requests", right: "see", answer: requestsPage },
  { method: "GET", path: "/requests/:id", right: "see", answer: requestPage },
  { method: "POST", path: "/requests/:id/approve", right: "decide", answer: approve },
  { method: "POST", path: "/requests/:id/reject", right: "decide", answer: reject },
  { method: "GET", path: "/audit", right: "audit", answer: auditPage },
  { method: "GET", path: "/audit/export", right: "audit", answer: auditExport },
  { method: "GET", path: "/audit/verify", right: "audit", answer: verifyPage },
  { method: "GET", path: "/audit/entry/:entry", right: "audit", answer: entryPage },
  { method: "GET", path: "/keys", right: "see", answer: keysPage },
  { method: "GET", path: "/keys/:id", right: "see", answer: keyPage },
  { method: "POST", path: "/keys/:id/revoke", right: "keys", answer: revoke },
  { method: "GET", path: "/keys/new", right: "keys", answer: newKeyPage },
  { method: "POST", path: "/keys", right: "keys", isSecret: true, answer: makeKey },
  { method: "POST", path: "/keys/:id/rotate", right: "keys", isSecret: true, answer: rotate },
  { method: "GET", path: "/p/:org/:project/access", right: "see", answer: accessPage },
];
