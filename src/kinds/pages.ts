import type { KindPages } from "../dashboard/parts/kind-pages.ts";
import type { Route } from "../dashboard/parts/route.ts";
import { pages as accounts } from "./accounts/page.tsx";
import { pages as files } from "./files/page.tsx";
import { pages as variables } from "./variables/page.tsx";

/** What each kind brings to the dashboard. */
export const kindPages: Readonly<Record<string, KindPages>> = { variables, accounts, files };

export const kindRoutes: readonly Route[] = Object.values(kindPages).flatMap(({ routes = [] }) => routes);
