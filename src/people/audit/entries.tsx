/** @jsxImportSource preact */

import type { VNode } from "preact";
import { Ago } from "../../dashboard/parts/parts.tsx";
import type { Visit } from "../../dashboard/parts/visit.ts";
import { changeActions } from "../../kinds/people.ts";
import { searchAction } from "../../record/entry.ts";
import { keyNames } from "../keys/keys.ts";
import type { AuditRecord } from "./audit.ts";
import { whoOf } from "./audit-counts.tsx";
import { Sentence } from "./sentence.tsx";

/** What people changed or saw. One search for leaks has an entry for each environment, which would hide all else. */
export const writeActions = changeActions.filter((action) => action !== searchAction);

/**
 * Who did what, the newest first.
 *
 * @param entries - oldest first
 * @param at - draws the moment of an entry, such as with a link
 */
export async function entriesOf(
  visit: Visit,
  entries: readonly AuditRecord[],
  at = (when: VNode, _: AuditRecord): VNode => when,
): Promise<VNode> {
  const { admin } = visit;
  const keys = await keyNames(admin);
  const who = whoOf(entries, keys);
  return (
    <ol class="changes">
      {entries.toReversed().map((one) => (
        <li>
          {at(<Ago at={one.time} now={admin.now()} />, one)}
          <span>{who(one)}</span>
          <span>
            <Sentence entry={one} keys={keys} isLinked={visit.may("see")} />
          </span>
        </li>
      ))}
    </ol>
  );
}
