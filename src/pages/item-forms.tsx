/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import type { Environment } from "../core/names.ts";
import type { FoundProject } from "../desk/projects.ts";
import { Change, Name, NameAgain, NewName } from "./parts.tsx";
import { projectPagePath } from "./paths.ts";
import type { Shown } from "./route.ts";
import { seenFields, type VersionedSet } from "./visit.ts";

/** What the page needs that creates, changes and deletes an item of a kind. */
type ItemForms = {
  readonly kind: string;
  /** What one item is called, such as `variable`. */
  readonly item: string;
  /** Undefined for a new one. */
  readonly name: string | undefined;
  /** The name in the path. Perhaps no environment has it. */
  readonly asked: string | undefined;
  readonly nameHelp: string;
  readonly project: FoundProject;
  readonly sets: readonly VersionedSet[];
  /** Text about an item that exists. */
  readonly about: ComponentChildren;
  readonly fields: ComponentChildren;
  readonly deletion: ComponentChildren;
  /** The environments that have the item. */
  readonly holders: readonly Environment[];
};

/** A page with a form that saves an item, and one that deletes it. `Form.itemName` reads which item it is. */
export function itemForms(where: string, of: ItemForms): Shown {
  const { project, kind, item, name, asked, nameHelp, sets, about, fields, deletion, holders } = of;
  const hidden = { ...seenFields(project, sets), ...(name === undefined ? { new: "yes" } : { name }) };
  const main = (
    <>
      {name !== undefined && about}
      <Change action={projectPagePath(where, `${kind}/set`)} button="Save" hidden={hidden}>
        {name === undefined && <NewName asked={asked} help={nameHelp} />}
        {fields}
      </Change>
      {name !== undefined && (
        <section>
          <h2>Delete it</h2>
          <Change action={projectPagePath(where, `${kind}/delete`)} button="Delete" danger hidden={hidden}>
            {deletion}
            {holders.includes("production") && <NameAgain id="again-delete" name={name} what={`name of the ${item}`} />}
          </Change>
        </section>
      )}
    </>
  );
  if (name === undefined) return { title: `New ${item}`, main };
  return { title: `Change ${name}`, heading: ["Change ", <Name>{name}</Name>], main };
}
