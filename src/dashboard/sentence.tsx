/** @jsxImportSource preact */

import type { ComponentChildren } from "preact";
import { personText } from "../audit/entry.ts";
import { environments } from "../core/names.ts";
import { descriptorOf, everyKind } from "../kinds/kind.ts";
import { counted, Env, Name, Word } from "../pages/parts.tsx";
import { projectPagePath } from "../pages/paths.ts";
import type { AuditRecord } from "../people/audit.ts";

/** What somebody changed or saw, as people say it: `ana@laptop changed STRIPE_KEY in production of acme/web`. */
export function Sentence(props: { readonly of: AuditRecord; readonly keys: ReadonlyMap<string, string> }) {
  const { of: one, keys } = props;
  const { actor } = one;
  return (
    <>
      <Word>{actor.type === "person" ? personText(actor) : (keys.get(actor.id) ?? actor.id)}</Word>{" "}
      <Deed of={one} keys={keys} />
    </>
  );
}

function Deed({ of: one, keys }: { readonly of: AuditRecord; readonly keys: ReadonlyMap<string, string> }) {
  const [kind = "", verb] = one.action.split(".");
  if (verb !== undefined && everyKind.some((descriptor) => descriptor.kind === kind)) {
    return <ItemDeed of={one} kind={kind} verb={verb} />;
  }
  const words = deeds[one.action];
  if (words === undefined) return <code>{one.action}</code>;
  // Of a request, the entry names its id and the variable.
  const named = one.action.startsWith("request.") ? one.names.slice(1) : one.names;
  const names = named.map((name) => keys.get(name) ?? name);
  const object = one.action.startsWith("project.")
    ? [whereOf(one)]
    : names.length > 0
      ? names
      : [one.organization ?? ""];
  return (
    <>
      {words} <Names of={object} />
      {one.action === "project.rename" && (
        <>
          {" "}
          to <Names of={one.names} />
        </>
      )}
    </>
  );
}

/** What was done to items: which were added, changed, deleted, put back or seen, and where. */
function ItemDeed({ of, kind, verb }: { readonly of: AuditRecord; readonly kind: string; readonly verb: string }) {
  const { added = [], changed = [], deleted = [] } = of;
  const environment = environments.find((one) => one === of.environment);
  const parts: readonly (readonly [words: string, names: readonly string[]])[] =
    verb === "reveal"
      ? [["saw", of.names]]
      : [
          ["added", added],
          ["changed", changed],
          ["deleted", deleted],
        ];
  const { item } = descriptorOf(kind);
  return (
    <>
      {verb === "rollback" && `went back to earlier ${kind}: `}
      {joined(
        parts
          .filter(([, names]) => names.length > 0)
          .map(([words, names]) => (
            <>
              {words} the {names.length === 1 ? item : kind} <Names of={names} />
            </>
          )),
      )}{" "}
      {environment && (
        <>
          in <Env of={environment} />
        </>
      )}{" "}
      of <a href={projectPagePath(whereOf(of), kind)}>{whereOf(of)}</a>
    </>
  );
}

const namesMax = 3;

function Names({ of }: { readonly of: readonly string[] }) {
  return (
    <>
      {joined(of.slice(0, namesMax).map((name) => <Name>{name}</Name>))}
      {of.length > namesMax && ` and ${counted(of.length - namesMax, "other")}`}
    </>
  );
}

function joined(parts: readonly ComponentChildren[]): ComponentChildren {
  return parts.map((part, at) => (at === 0 ? part : <>, {part}</>));
}

function whereOf({ organization, project }: AuditRecord): string {
  return `${organization}/${project}`;
}

/** By action, what was done to the names of an entry, or else to its organization or project. */
const deeds: Readonly<Record<string, string>> = {
  "organization.create": "created the organization",
  "organization.plan": "set the plan to",
  "organization.delete": "deleted the organization",
  "project.create": "created the project",
  "project.rename": "renamed the project",
  "project.delete": "deleted the project",
  "history.purge": "removed the earlier versions of the",
  "key.create": "created the key",
  "key.revoke": "revoked the key",
  "key.rotate": "rotated the key",
  "trust.create": "created the trust",
  "trust.revoke": "revoked the trust",
  "request.approve": "approved the request for",
  "request.reject": "rejected the request for",
  "data_key.rotate": "rotated the data key of",
  "root_key.rotate": "rotated the root key of",
  "audit.prune": "pruned the audit of",
  "audit.accept": "accepted a known loss in the audit:",
  restore: "restored a backup of",
};
