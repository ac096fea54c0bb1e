import type { ComponentChildren, VNode } from "preact";
import type { Operation } from "../../people/desk/operation.ts";
import type { Seen } from "../../people/desk/plan.ts";
import { everyRight, type Right } from "../../serve/access/rights.ts";
import type { Visit } from "./visit.ts";

/** One thing that the dashboard shows or does. There is one table of them, `dashboard/routes.ts`. */
export type Route = {
  /** A GET changes nothing. */
  readonly method: "GET" | "POST";
  /** Such as `/p/:org/:project`. */
  readonly path: string;
  /** A person needs one of these rights somewhere, or the page does not exist for them. The handler checks the rest. */
  readonly rights: readonly Right[];
  /** All the rights that it takes together in an environment of the project in its path. Default: any of `rights`. */
  readonly needs?: readonly Right[];
  /** Whether the answer is a secret: only the page's script may ask for it, since no page has a value in its HTML. */
  readonly isSecret?: true;
  /** Whether it may take longer than an idle connection lives, such as a walk of the whole audit. */
  readonly isLong?: true;
  readonly answer: (visit: Visit) => Promise<Answer>;
};

/** The rights of a route that runs an operation. */
export function rightsOf({ right }: Pick<Operation, "right">): readonly Right[] {
  return everyRight.filter((one) => [right].flat().includes(one));
}

export type Answer = Shown | Done | Secret | Download | Offered;

/** A page. The frame heads it, and shows the tabs of the project in its path. */
export type Shown = {
  readonly title: string;
  /** By default, the title. */
  readonly heading?: ComponentChildren;
  /** What people do with the whole page, at the right of its heading. */
  readonly beside?: ComponentChildren;
  readonly main: VNode;
};

/** A change was made: the browser goes on to this path, and the next page shows the notice. */
export type Done = { readonly to: string; readonly notice?: string; readonly links?: Notice["links"] };

/** What a page says once, and where that leads, by the words of the links. */
export type Notice = { readonly words: string; readonly links: Readonly<Record<string, string>> };

/** Text for the script to show, and to take away again. With `to`, a notice, and a link to the page of what was made. */
export type Secret = {
  readonly secret: string;
  readonly to?: string;
  readonly notice?: string;
  /** The fields of the form that say what it is of. */
  readonly seen?: Seen;
  /** Lines for a shell that use it, and a sentence about them. */
  readonly use?: { readonly words: string; readonly lines: string };
};

/** What the script offers below the field that finds names, and a sentence about it. */
export type Offered = { readonly offers: readonly Offer[]; readonly said: string };

/** A page to go to: its name, what it is, and its path. */
export type Offer = { readonly name: string; readonly about: string; readonly to: string };

/** A file that the browser saves. */
export type Download = { readonly name: string; readonly type: string; readonly chunks: AsyncIterable<string> };
