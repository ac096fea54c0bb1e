import { kindRoutes } from "../kinds/pages.ts";
import type { Route } from "../pages/route.ts";
import { accessRoutes } from "./access.tsx";
import { auditRoutes } from "./audit.tsx";
import { gridRoutes } from "./grid.tsx";
import { historyRoutes } from "./history.tsx";
import { itemRoutes } from "./item.tsx";
import { keyRoutes } from "./keys.tsx";
import { newKeyRoutes } from "./new-key.tsx";
import { projectRoutes } from "./projects.tsx";
import { requestRoutes } from "./requests.tsx";
import { todayRoutes } from "./today.tsx";

/** Everything that the dashboard shows or does, with the right that it needs. */
export const routes: readonly Route[] = [
  ...todayRoutes,
  ...projectRoutes,
  ...gridRoutes,
  ...itemRoutes,
  ...kindRoutes,
  ...historyRoutes,
  ...requestRoutes,
  ...auditRoutes,
  ...keyRoutes,
  ...newKeyRoutes,
  ...accessRoutes,
];
