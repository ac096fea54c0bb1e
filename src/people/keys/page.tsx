/** @jsxImportSource preact */
import { Refused } from "../../core/refused.ts";
import { excerpt } from "../../core/visible.ts";
import { lookalikes } from "../../core/words/lookalikes.ts";
import { carryOut } from "../../dashboard/parts/carry-out.ts";
import { drawn, drawnFacts } from "../../dashboard/parts/drawn.tsx";
import { PagedTable } from "../../dashboard/parts/paged.tsx";
import {
  Actions,
  Ago,
  type Cells,
  Change,
  Chips,
  Facts,
  Field,
  joined,
  LoneLink,
  Named,
  Prose,
  SignInAgain,
  Word,
} from "../../dashboard/parts/parts.tsx";
import { withQuery } from "../../dashboard/parts/paths.ts";
import type { Answer } from "../../dashboard/parts/route.ts";
import type { Visit } from "../../dashboard/parts/visit.ts";
import { isFresh } from "../desk/context.ts";
import { pick } from "../desk/outcome.ts";
import { grantColumns } from "./credentials.ts";
import { usesOf } from "./key-words.ts";
import { type KeyRecord, listKeys, neverEnds, showKey } from "./keys.ts";
import { RotateForm } from "./new-key.tsx";
import { revoke } from "./operations.ts";
import { revoke as revokeTrust, termColumns } from "./trust-operations.ts";

/** Which keys and trusts a list shows. Damaged rows are not hidden: people must find out what damaged them. */
const lists: Readonly<Record<string, { label: string; none: string; has: (record: KeyRecord) => boolean }>> = {
  current: {
    label: "In use",
    none: "There is no key and no trust in use. Create a key for each machine that reads.",
    has: ({ status }) => status === "active" || status === "damaged",
  },
  canaries: {
    label: "Canaries",
    none: "There is no canary. It opens nothing, and each use is on record: keyhole key create --canary.",
    has: ({ status }) => status === "canary",
  },
  endless: { label: "Never expire", none: "Each key and each trust has an end.", has: neverEnds },
  unused: {
    label: "Never used",
    none: "Each key and each trust was used.",
    has: ({ status, lastUsedAt }) => status === "active" && lastUsedAt === null,
  },
  ended: {
    label: "Expired and revoked",
    none: "No key and no trust has expired or was revoked.",
    has: ({ status }) => status === "expired" || status === "revoked",
  },
};

/** Who can read: keys and trusts, the newest first. */
export async function keysPage(visit: Visit): Promise<Answer> {
  const { admin } = visit;
  const asked = visit.query("show") ?? "current";
  const list = Object.hasOwn(lists, asked) ? lists[asked] : undefined;
  if (list === undefined) throw new Refused("not_found", "There is no such list of keys.");
  const newest = (await listKeys(admin)).reverse();
  const rows = newest.filter(list.has);
  const main = (
    <>
      {visit.may("keys") && <Actions items={{ "Create a key": "/keys/new" }} />}
      <Chips
        label="Which keys and trusts"
        items={Object.entries(lists).map(([name, { label, has }]) => ({
          words: label,
          count: newest.filter(has).length,
          to: withQuery("/keys", { show: name === "current" ? undefined : name }),
          isHere: name === asked,
        }))}
      />
      <PagedTable
        caption={`Keys and trusts: ${list.label}`}
        columns={columnsOf(newest, admin.now())}
        rows={rows}
        visit={visit}
        idOf={({ id }) => id}
        orders={{
          Name: ({ name }) => name.toLowerCase(),
          Expires: ({ expiresAt }) => expiresAt ?? Number.POSITIVE_INFINITY,
          "Last used": ({ lastUsedAt }) => lastUsedAt ?? 0,
        }}
        none={visit.none(list.none)}
        filter="keys and trusts"
        nameOf={(record) =>
          `${excerpt(record.name)} ${record.type} ${record.organization} ${record.projects?.join(" ") ?? ""}`
        }
      />
      <p class="quiet">
        A trust lets the tokens of a CI job or a pod stand in place of a key. It is made by a command, since its claims
        must be written to the letter: <code>keyhole trust add --help</code>
      </p>
    </>
  );
  return { title: "Keys and trusts", main };
}

/** @param all - the organization is shown if these belong to several */
function columnsOf(all: readonly KeyRecord[], now: number): Cells<KeyRecord> {
  const hasSeveral = new Set(all.map(({ organization }) => organization)).size > 1;
  const reach = pick(grantColumns, ...(hasSeveral ? ["ORG"] : []), "PROJECTS", "ENVIRONMENTS");
  return keyColumns(now, drawn(reach, now), all);
}

/** The columns of each table of keys and trusts, around those that it alone has. */
export function keyColumns<T extends KeyRecord>(now: number, own: Cells<T>, all: readonly T[]): Cells<T> {
  const marks = lookalikes(all);
  return {
    Name: (key) => <Named thing={key} marks={marks} to={`/keys/${key.id}`} />,
    Type: ({ type }) => type,
    ...own,
    ...drawn<T>(pick(grantColumns, "STATUS", "EXPIRES", "LAST USED"), now),
  };
}

/** One key or trust: its facts, and what can be done with it. */
export async function keyPage(visit: Visit): Promise<Answer> {
  const { admin } = visit;
  const record = await showKey(admin, visit.param("id"));
  const now = admin.now();
  const columns = {
    ...pick(grantColumns, "STATUS", "PROJECTS", "ENVIRONMENTS", "RESOURCES", "SURFACES", "FROM"),
    ...(record.terms && termColumns),
    ...pick(grantColumns, "EXPIRES", "LAST USED", "CREATED", "REVOKED", "RATE", "ORG", "ID"),
  };
  const facts = drawnFacts(record, columns, now);
  const uses = record.surfaces.map((surface) => <Prose>{usesOf[surface]}</Prose>);
  const main = (
    <>
      {record.status === "damaged" && (
        <p class="warning">
          Somebody changed this {record.type} with SQL, so every server refuses it. Revoke it and create another.
        </p>
      )}
      {record.status === "canary" && (
        <p class="warning">
          This key is a canary: it opens nothing, and each use of it is on record until it is revoked.
        </p>
      )}
      <Facts
        facts={{
          ...facts,
          Surfaces: joined(uses, "; "),
          Expires: <Ago at={record.expiresAt} now={now} />,
          "Last used": <Ago at={record.lastUsedAt} now={now} />,
          ...(record.rate === 1 && { Rate: null }),
        }}
      />
      {visit.may("audit") && <LoneLink to={`/keys/${record.id}/read`}>All names that it read: what to rotate</LoneLink>}
      {visit.may("audit") && (
        <LoneLink to={withQuery("/audit", { key: record.id })}>
          What it read, and what was done to it, in the audit
        </LoneLink>
      )}
      {visit.may("keys") && !isFresh(admin) && record.environments?.includes("production") !== false && (
        <SignInAgain to={`change this ${record.type}, which reaches production`} />
      )}
      {visit.may("keys") && (
        <div class="row">
          {record.revokedAt === null && (
            <section class="danger">
              <h2>Revoke it</h2>
              <p>
                The next request with this {record.type} is refused, for good.
                {record.type === "key" && " Revoke it, too, if the key is lost: Keyhole does not store it."}
              </p>
              <Change action={`/keys/${record.id}/revoke`} button="Revoke" danger hidden={{ [record.type]: record.id }}>
                <Field name="again" label={["Type the name again: ", <Word>{record.name}</Word>]} required />
              </Change>
            </section>
          )}
          {record.type === "key" && record.status === "active" && <RotateForm record={record} now={now} />}
        </div>
      )}
    </>
  );
  return { title: `The ${record.type} ${excerpt(record.name)}`, heading: <Word>{record.name}</Word>, main };
}

/** Revokes it for good, if its name was typed again. */
export async function revokeNamed(visit: Visit): Promise<Answer> {
  const { id, type, name } = await showKey(visit.admin, visit.param("id"));
  visit.form.requireTyped(name, "To revoke it");
  const next = visit.may("audit") ? `/keys/${id}/read` : `/keys/${id}`;
  return carryOut(visit, type === "key" ? revoke : revokeTrust, { id }, next);
}
