import type { Environment } from "../core/names.ts";
import type { Route } from "./route.ts";
import type { Visit } from "./visit.ts";

/** What a kind brings to the dashboard, beside the pages that all kinds share. */
export type KindPages = {
  /** The value of an item as text, on record; left out for a kind whose values are not shown. */
  readonly reveal?: (visit: Visit, environment: Environment, name: string) => Promise<string>;
  /** The kind's own pages below a project, by the words of the link in its grid. */
  readonly actions: Readonly<Record<string, string>>;
  /** The page below a project that changes one item. It takes `name`. */
  readonly change?: string;
  /** A warning beside a name in a list. */
  readonly noteOf?: (name: string) => string | undefined;
  /** A sentence for a project without items: what to do first. */
  readonly firstStep: string;
  readonly routes: readonly Route[];
};
