/** @jsxImportSource preact */
import type { VNode } from "preact";
import { Cut } from "../../core/cut.ts";
import { Refused, unlessRefused } from "../../core/refused.ts";
import { lookalikes } from "../../core/words/lookalikes.ts";
import { drawnFacts } from "../../dashboard/parts/drawn.tsx";
import { PagedTable } from "../../dashboard/parts/paged.tsx";
import { Ago, Facts, joined, Listed, LoneLink, Named, Word } from "../../dashboard/parts/parts.tsx";
import { withQuery } from "../../dashboard/parts/paths.ts";
import type { Answer } from "../../dashboard/parts/route.ts";
import type { Visit } from "../../dashboard/parts/visit.ts";
import { type AuditRecord, listAudit, recordBegins } from "../audit/audit.ts";
import { whoOf } from "../audit/audit-counts.tsx";
import { entriesOf, writeActions } from "../audit/entries.tsx";
import { Unread } from "../audit/exceptions.tsx";
import { Damaged } from "../audit/operations.ts";
import { pick } from "../desk/outcome.ts";
import { personColumns } from "./operations.ts";
import { accessOfPerson, listPersons, type PersonRecord, showPerson } from "./persons.ts";
import { personPath, RightsForm } from "./rights-form.tsx";
import { RightsChanged, RightsInWords, RightsList, rightsInForceOf, rightsLines } from "./rights-words.tsx";

/** The persons and their rights, for whoever may give some. */
export async function personsPage(visit: Visit): Promise<Answer> {
  const { admin } = visit;
  const all = await listPersons(admin);
  const marks = lookalikes(all.map(({ name }) => ({ id: name, name })));
  const main = (
    <>
      <PagedTable
        caption="The persons and their rights"
        columns={{
          Name: (one) => [
            <Named thing={{ id: one.name, name: one.name }} marks={marks} to={personPath(one.name)} />,
            isGroup(one) && <small> group</small>,
          ],
          Organization: ({ organization }) => organization,
          Rights: ({ name, rights }) => joined(rightsLines(rightsInForceOf(name, rights), name), "; "),
        }}
        rows={all}
        visit={visit}
        idOf={({ name }) => name}
        nameOf={({ name }) => name}
        filter="persons"
        none={visit.none("There is nobody yet.")}
      />
      <p class="quiet">
        Operators add persons: <code>keyhole person add NAME</code>
      </p>
    </>
  );
  return { title: "People", main };
}

/**
 * A person: what they can see and do, how their rights changed, and what they did. Whoever may give rights sees what
 * `person show` says; people who may see, what `access` says; people who may read the audit, what `audit list` says.
 */
export async function personPage(visit: Visit): Promise<Answer> {
  const { admin } = visit;
  const name = visit.param("name");
  const now = admin.now();
  const isOperator = admin.rights === "operator";
  const shown = visit.may("grant") && unlessRefused(showPerson(admin, name), ["not_found"], () => undefined);
  const record = (await shown) || undefined;
  const rows = await accessOfPerson(admin, name);
  const damaged = new Damaged(admin);
  const none = () => new Cut<AuditRecord>([]);
  const written = () => listAudit(admin, { actions: ["people.write"], wholeName: name }, damaged.note);
  const found = isOperator ? (await unlessRefused(written(), ["not_found"], none)).reversed() : none();
  const [changes] = found.with("said below");
  if (record === undefined && rows.length + changes.length === 0) {
    throw new Refused("not_found", "There is no such page.");
  }
  const main = (
    <>
      {record && (
        <Facts
          facts={{ Organization: record.organization, ...drawnFacts(record, pick(personColumns, "SIGNS IN AS"), now) }}
        />
      )}
      {isOperator && record === undefined && <p class="warning">This person was removed, and has no rights.</p>}
      <h2>What they can see and do</h2>
      <RightsList
        lines={rightsLines(
          rightsInForceOf(name, record?.rights ?? [], rows),
          name,
          rows.map(({ where }) => where),
        )}
        none="They have no rights in any project."
      />
      <RightsInWords />
      {!isOperator && <p class="quiet">Rights in places that you may not see are not listed.</p>}
      {(record === undefined || !isGroup(record)) && (await Groups(visit, record))}
      {(record || !visit.may("grant")) && (await RightsForm(visit, name))}
      {isOperator && (
        <Listed
          title="How their rights changed"
          none={(await recordBegins(admin)) ?? "Nobody has given or taken any."}
          items={found.map((one) => (
            <>
              <Ago at={one.time} now={now} />, by {whoOf(changes, new Map())(one)}
              <RightsChanged names={{ added: [], changed: [], deleted: [], ...one }} name={name} />
            </>
          ))}
          more={<a href={withQuery("/audit", { action: "people.write", item: name })}>Earlier ones, in the audit</a>}
          unread={damaged.problem ? [damaged.problem.message] : []}
        />
      )}
      {visit.may("audit") && (await doings(visit, name))}
    </>
  );
  return { title: `The person ${name}`, heading: <Word>{name}</Word>, main };
}

function isGroup({ signIn }: PersonRecord): boolean {
  return signIn !== null && "group" in signIn;
}

/** The groups whose rights a person may have, too. Only the provider knows who is in one, and says so at sign-in. */
async function Groups(visit: Visit, record: PersonRecord | undefined) {
  const organization = record?.organization ?? null;
  const all = organization === null ? [] : await listPersons(visit.admin);
  const groups = all.filter((one) => isGroup(one) && one.organization === organization);
  const which = groups.length === 0 ? `${organization} has no groups.` : `${organization} has these:`;
  const where = organization === null ? "The Access of a project lists its groups." : which;
  return (
    <>
      <p class="quiet">
        Rights that come from groups are not listed: the provider says at sign-in who is in a group. {where}
      </p>
      <RightsList
        lines={groups.map(({ name, rights }) => {
          const lines = rightsLines(rightsInForceOf(name, rights), name);
          return (
            <>
              <Word to={personPath(name)}>{name}</Word>
              {lines.length > 0 && [" · ", joined(lines, "; ")]}
            </>
          );
        })}
      />
    </>
  );
}

/** What they changed and saw last, by whichever door. An account of the machine may have their name. */
async function doings(visit: Visit, name: string): Promise<VNode> {
  const damaged = new Damaged(visit.admin);
  const asked = { person: name, actions: writeActions, limit: 12 };
  const found = unlessRefused(listAudit(visit.admin, asked, damaged.note), ["not_found"], () => new Cut([]));
  const [theirs, earlier] = (await found).with("Earlier ones, and all else that they did, in the audit");
  return (
    <section>
      <h2>What they did</h2>
      <Unread damaged={damaged} />
      {theirs.length === 0 && <p class="quiet">{(await recordBegins(visit.admin)) ?? visit.none("Nothing.")}</p>}
      {await entriesOf(visit, theirs)}
      <LoneLink to={withQuery("/audit", { person: name, action: "all reads" })}>What they saw, in the audit</LoneLink>
      <LoneLink to={withQuery("/audit", { person: name })}>{earlier ?? "All that they did, in the audit"}</LoneLink>
    </section>
  );
}
