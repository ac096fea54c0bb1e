import type { Environment } from "../core/names.ts";
import type { Route } from "./route.ts";
import type { Visit } from "./visit.ts";

/** What a kind brings to the dashboard, beside the pages that all kinds share. */
export type KindPages = {
  /** The value of an item as text, on record; left out for a kind whose values are not shown. */
  readonly reveal?: (visit: Visit, environment: Environment, name: string) => Promise<string>;
  /** The kind's own pages below a project, to which its grid leads, by words. */
  readonly actions: Readonly<Record<string, string>>;
  /** The page below a project that changes one item. It takes `name`. */
  readonly change?: string;
  /** What a list says beside a name that needs care. */
  readonly noteOf?: (name: string) => string | undefined;
  /** What to do if a project has no item yet, in a sentence. */
  readonly firstStep: string;
  readonly routes: readonly Route[];
};
