import type { ComponentChildren, VNode } from "preact";
import type { Environment, Remarks } from "../../core/names.ts";
import type { VersionedSet } from "../../people/desk/plan.ts";
import type { FoundProject } from "../../people/desk/projects.ts";
import type { Steers } from "./parts.tsx";
import type { Done, Route } from "./route.ts";
import type { Visit } from "./visit.ts";

/** What a kind brings to the dashboard, beside the pages that all kinds share. */
export type KindPages = {
  /**
   * The value of an item as text, on record; left out for a kind whose values are not shown. With a version, as it was
   * in that one.
   */
  readonly reveal?: (visit: Visit, environment: Environment, name: string, version?: number) => Promise<string>;
  /** The page that writes an item; left out for a kind that only commands write. */
  readonly form?: ItemForm;
  /** The kind's own pages below a project, by the words of the link in its grid. */
  readonly actions?: Readonly<Record<string, string>>;
  /** A warning beside a name in a list. */
  readonly Note?: typeof Steers;
  /** Deletes an item from these environments. */
  remove(visit: Visit, name: string, from: Environment[], to: string): Promise<Done>;
  /** The buttons for items chosen in the grid. The kind's own page `several` answers them. */
  readonly Several?: (place: { readonly where: string; readonly shown: readonly Environment[] }) => VNode;
  /** Whether its page `edit` writes values that are typed in rows of the grid. */
  readonly isEditedInRows?: true;
  /** A sentence for a project without items: what to do first. */
  readonly firstStep: string;
  readonly routes?: readonly Route[];
};

/** What a kind brings to the page that creates, changes and deletes one item. */
export type ItemForm<E = unknown> = {
  readonly nameHelp: string;
  /** One sentence for the page: what saving does to stored values. */
  readonly about: string;
  /** The names of an item's parts by environment, as far as a person may know them, if it has parts. */
  parts?(visit: Visit, name: string): Promise<Parts>;
  /** The fields beside the name. */
  fields(item: StoredItem<E>, now: number, parts: Parts): ComponentChildren;
  /** Judges what the fields say. Nothing is written yet. */
  change(visit: Visit, name: string, item: StoredItem<E>): ItemChange;
};

export type Parts = ReadonlyMap<Environment, readonly string[]>;

/** An item as it is stored. No environment has one that is new. */
export type StoredItem<E = unknown> = {
  readonly project: FoundProject;
  /** The sets of every environment in which the person may write. */
  readonly sets: readonly VersionedSet[];
  /** The environments to show. */
  readonly shown: readonly Environment[];
  readonly entries: ReadonlyMap<Environment, E>;
  /** The environments in which the person may write, and may not see what is there. A page tells nothing of them. */
  readonly unseen: readonly Environment[];
  /** What a change says of it. */
  readonly remarks: Remarks;
};

/** A change that a form asks for. */
export type ItemChange = {
  /** The environments that it writes, or deletes from. */
  readonly targets: readonly Environment[];
  /** Makes the change, if the sets are those that the form showed, and goes on to this path. */
  readonly write: (to: string) => Promise<Done>;
};
