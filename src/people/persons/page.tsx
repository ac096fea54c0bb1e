/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { Cut } from "../../core/cut.ts";
import { type Environment, environments } from "../../core/names.ts";
import { Refused, unlessRefused } from "../../core/refused.ts";
import { lookalikes } from "../../core/words/lookalikes.ts";
import { drawn, drawnFacts } from "../../dashboard/parts/drawn.tsx";
import { PagedTable } from "../../dashboard/parts/paged.tsx";
import {
  Ago,
  Changed,
  environmentColumns,
  Facts,
  joined,
  Listed,
  LoneLink,
  Name,
  Named,
  Word,
} from "../../dashboard/parts/parts.tsx";
import { projectPagePath, withQuery } from "../../dashboard/parts/paths.ts";
import type { Answer } from "../../dashboard/parts/route.ts";
import type { Visit } from "../../dashboard/parts/visit.ts";
import { everyRight, type Right } from "../../serve/access/rights.ts";
import { type AuditRecord, listAudit, recordBegins } from "../audit/audit.ts";
import { whoOf } from "../audit/audit-counts.tsx";
import { entriesOf, writeActions } from "../audit/entries.tsx";
import { Unread } from "../audit/exceptions.tsx";
import { Damaged } from "../audit/operations.ts";
import { personColumns } from "./operations.ts";
import { accessOfPerson, listPersons, type PersonAccess, showPerson } from "./persons.ts";
import { personPath, RightsForm } from "./rights-form.tsx";

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
          ...drawn(personColumns, admin.now()),
          Name: ({ name }) => <Named thing={{ id: name, name }} marks={marks} to={personPath(name)} />,
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
      {record && <Facts facts={drawnFacts(record, personColumns, now)} />}
      {isOperator && record === undefined && <p class="warning">This person was removed, and has no rights.</p>}
      <h2>What they can see and do</h2>
      <PagedTable
        caption={`The projects in which ${name} has rights`}
        columns={{
          Project: ({ where }) => <Name to={projectPagePath(where, "access")}>{where}</Name>,
          ...environmentColumns<(typeof rows)[number]>(environments, (row, one) =>
            row.seen.includes(one) ? rightsCell(row, one, now) : "not shown",
          ),
        }}
        rows={rows}
        visit={visit}
        idOf={({ where }) => where}
        nameOf={({ where }) => where}
        none={visit.none("They have no rights in any project.")}
      />
      <RightsInWords />
      {(record || !visit.may("grant")) && (await RightsForm(visit, name))}
      {!(record?.signIn && "group" in record.signIn) && (
        <p class="quiet">
          Rights that a group gives are not here: the company's provider says at sign-in who is in it. The Access of a
          project lists its groups.
        </p>
      )}
      {isOperator && (
        <Listed
          title="How their rights changed"
          none={(await recordBegins(admin)) ?? "Nobody has given or taken any."}
          items={found.map((one) => (
            <>
              <Ago at={one.time} now={now} />, by {whoOf(changes, new Map())(one)}
              <Changed names={{ added: [], changed: [], deleted: [], ...one }} />
            </>
          ))}
          more={<a href={withQuery("/audit", { action: "people.write", name })}>Earlier ones, in the audit</a>}
          unread={damaged.problem ? [damaged.problem.message] : []}
        />
      )}
      {visit.may("audit") && (await doings(visit, name))}
    </>
  );
  return { title: `The person ${name}`, heading: <Word>{name}</Word>, main };
}

/** Rights that many people have together, the most first. */
const together: readonly (readonly [words: string, rights: readonly Right[]])[] = [
  ["● all rights", everyRight],
  ["● reads and writes", ["see", "reveal", "write"]],
  ["● reads", ["see", "reveal"]],
  ["○ names", ["see"]],
];

/** What a person may do in one environment, in words. A right that ends is named, as are those beside it. */
export function rightsCell(
  { rightsIn, endsIn }: PersonAccess,
  environment: Environment,
  now: number,
): ComponentChildren {
  const ends = endsIn[environment] ?? {};
  const held = rightsIn[environment] ?? [];
  const lasting = held.filter((right) => ends[right] === undefined);
  const [words, known] = together.find(([, rights]) => rights.every((one) => lasting.includes(one))) ?? ["", []];
  const others = held.filter((right) => !known.includes(right));
  const named = others.map((right) => [right, ends[right] && [" (ends ", <Ago at={ends[right]} now={now} />, ")"]]);
  return joined(words === "" ? named : [words, ...named]);
}

/** Explains the words of {@link rightsCell}. */
export function RightsInWords() {
  return (
    <p class="quiet">
      Who reads has the rights see and reveal; who reads and writes, also write; all rights are these with keys, decide,
      audit and grant.
    </p>
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
      <LoneLink to={withQuery("/audit", { actor: name, action: "all reads" })}>What they saw, in the audit</LoneLink>
      <LoneLink to={withQuery("/audit", { actor: name })}>{earlier ?? "All that they did, in the audit"}</LoneLink>
    </section>
  );
}
