/** @jsxImportSource preact */
import type { VNode } from "preact";
import { alarmActions } from "../audit/entry.ts";
import { visibleLines } from "../core/visible.ts";
import { changeActions } from "../kinds/people.ts";
import { type DueVariable, listDueVariables } from "../kinds/variables/write.ts";
import { reuseText } from "../operations/leaked.ts";
import { Ago, Empty, Env, Listed, LoneLink, Name, Named, Prose, Steers, Word } from "../pages/parts.tsx";
import { projectPagePath } from "../pages/paths.ts";
import type { Answer } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { type AuditRecord, listAudit } from "../people/audit.ts";
import { keyNames, listExpiring } from "../people/keys.ts";
import { listEndingRights } from "../people/persons.ts";
import { listRequests } from "../people/requests.ts";
import { findReuse } from "../people/values.ts";
import { lookalikes } from "../words/lookalikes.ts";
import { whoOf } from "./audit-counts.tsx";
import { AgainstRecord } from "./exceptions.tsx";
import { soonMs } from "./grid-parts.ts";
import { ProjectLink, recentProjects } from "./projects.tsx";
import { unlessRefused } from "./refusal.ts";
import { Sentence } from "./sentence.tsx";
import { invitation } from "./start.tsx";

/**
 * What waits for a person: requests, what expires, what is due; and what changed last. Each part needs its own rights.
 */
export async function todayPage(visit: Visit): Promise<Answer> {
  const main = (
    <>
      {await AgainstRecord(visit)}
      {visit.may("audit") && (await alarms(visit))}
      {await invitation(visit)}
      {!visit.may("see", "keys", "decide", "audit") && (
        <Empty>
          You may change or read values, and not see which there are. Use commands over SSH, or ask an operator for the
          right <code>see</code>.
        </Empty>
      )}
      <div class="cards">
        {visit.may("see", "decide") && (await pendingRequests(visit))}
        {visit.may("see", "keys") && (await expiringKeys(visit))}
        {visit.may("see") && (await dueVariables(visit))}
        {visit.may("reveal") && (await reuse(visit))}
        {visit.may("see") && (await lastProjects(visit))}
      </div>
      {visit.may("audit") && (await lastChanges(visit))}
    </>
  );
  return { title: "Today", main };
}

async function pendingRequests(visit: Visit): Promise<VNode> {
  const { admin } = visit;
  const requests = (await listRequests(admin)).filter(({ status }) => status === "pending").reverse();
  return (
    <Listed
      title="Requests"
      none={visit.none("No machine asks for anything.")}
      items={requests.map((one) => (
        <>
          <Name to={`/requests/${one.id}`}>{one.name}</Name>
          <Steers name={one.name} /> <Env value={one.environment} /> of {one.project}, asked{" "}
          <Ago at={one.createdAt} now={admin.now()} />
        </>
      ))}
    />
  );
}

async function expiringKeys(visit: Visit): Promise<VNode> {
  const { admin } = visit;
  const expiring = await listExpiring(admin, soonMs);
  const marks = lookalikes(expiring);
  // A list of people that fails verification must not hide the keys.
  const rights = await unlessRefused(listEndingRights(admin, soonMs), ["conflict"], damaged);
  const ofKeys = expiring.map((one) => ({
    ...one,
    item: (
      <>
        <Named thing={one} marks={marks} to={`/keys/${one.id}`} />, a {one.type} of {one.organization},{" "}
        <Ago at={one.expiresAt} now={admin.now()} />
      </>
    ),
  }));
  const ofPersons = (typeof rights === "string" ? [] : rights).map((one) => ({
    ...one,
    item: (
      <>
        <Word>{one.name}</Word>, {one.rights.join(", ")} in {one.projects?.join(", ") ?? "all projects"} of{" "}
        {one.organization}, <Ago at={one.expiresAt} now={admin.now()} />
      </>
    ),
  }));
  const inOrder = [...ofKeys, ...ofPersons].sort((a, b) => (a.expiresAt ?? 0) - (b.expiresAt ?? 0));
  return (
    <Listed
      title="Expires within 30 days"
      none={visit.none("No key, no trust and no person's right.")}
      items={[...inOrder.map(({ item }) => item), ...(typeof rights === "string" ? [<Damaged words={rights} />] : [])]}
    />
  );
}

async function dueVariables(visit: Visit): Promise<VNode> {
  const { admin } = visit;
  // One damaged set must not hide what else waits for a person.
  const due = await unlessRefused(listDueVariables(admin, soonMs), ["conflict"], damaged);
  return (
    <Listed
      title="To rotate within 30 days"
      none={visit.none("No value.")}
      items={typeof due === "string" ? [<Damaged words={due} />] : due.map((one) => <Due variable={one} />)}
    />
  );
}

const damaged = ({ message }: Error) => visibleLines(message);

function Damaged({ words }: { readonly words: string }) {
  return (
    <p class="warning">
      <Prose>{words}</Prose>
    </p>
  );
}

/** Values that are stored more than once. A page compares no more than take a moment. */
async function reuse({ admin }: Visit): Promise<VNode | null> {
  const found = await unlessRefused(findReuse(admin, undefined, { valuesMax: 5000 }), ["bound", "conflict"], () => []);
  if (found.length === 0) return null;
  return (
    <section>
      <h2>Stored twice</h2>
      <p>
        {reuseText(found)} <code>keyhole reuse</code> lists them.
      </p>
    </section>
  );
}

/** The projects that people come for most often. */
async function lastProjects(visit: Visit): Promise<VNode> {
  const projects = await recentProjects(visit, 12);
  return (
    <Listed
      title="Projects"
      none="None yet."
      items={projects.map((project) => (
        <>
          <ProjectLink project={project} /> <Ago at={project.updatedAt} now={visit.admin.now()} />
        </>
      ))}
    />
  );
}

/** What nobody should do, in the last week: uses of canaries, and jobs that asked for more than their trust gives. */
async function alarms(visit: Visit): Promise<VNode | null> {
  const sinceAt = visit.admin.now() - weekMs;
  const uses = await listAudit(visit.admin, { actions: alarmActions, sinceAt, limit: 12 });
  if (uses.length === 0) return null;
  return (
    <section class="danger">
      <h2>Alarms of the last 7 days</h2>
      {
        await entriesOf(visit, uses, (when, { lane, seq }) => (
          <a href={`/audit/entry/${encodeURIComponent(`${lane}:${seq}`)}`}>{when}</a>
        ))
      }
    </section>
  );
}

const weekMs = 7 * 86_400_000;

async function lastChanges(visit: Visit): Promise<VNode> {
  const changes = await listAudit(visit.admin, { actions: changeActions, limit: 12 });
  return (
    <section>
      <h2>Last changes</h2>
      {changes.length === 0 && <p class="quiet">{visit.none("Nobody has changed anything yet.")}</p>}
      {await entriesOf(visit, changes)}
      <LoneLink to="/audit">All entries of the audit</LoneLink>
    </section>
  );
}

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

function Due({ variable }: { readonly variable: DueVariable }) {
  return (
    <>
      <Name
        to={projectPagePath(`${variable.organization}/${variable.project}`, "variables/item", { name: variable.name })}
      >
        {variable.name}
      </Name>{" "}
      <Env value={variable.environment} /> of {variable.project},{" "}
      {variable.status === "overdue" ? (
        <span class="missing">overdue since {variable.rotateBy}</span>
      ) : (
        `by ${variable.rotateBy}`
      )}
    </>
  );
}
