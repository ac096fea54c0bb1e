/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { alarmActions } from "../audit/entry.ts";
import { environments } from "../core/names.ts";
import { visibleLines } from "../core/visible.ts";
import { findProject } from "../desk/projects.ts";
import { findKindReads, type KindReads } from "../editing/last-reads.ts";
import { changeActions } from "../kinds/people.ts";
import { variables } from "../kinds/variables/entry.ts";
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
import { formatTime } from "../words/text.ts";
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

/** Something that waits: what it is and where, and at the right when. */
function Waits(props: {
  readonly what: ComponentChildren;
  readonly where: ComponentChildren;
  readonly when: ComponentChildren;
  readonly isUrgent?: boolean;
}) {
  const { what, where, when, isUrgent } = props;
  return (
    <>
      <span>
        {what} <small>{where}</small>
      </span>
      <span class={isUrgent ? "missing" : "quiet"}>{when}</span>
    </>
  );
}

async function pendingRequests(visit: Visit): Promise<VNode> {
  const { admin } = visit;
  const requests = (await listRequests(admin)).filter(({ status }) => status === "pending").reverse();
  return (
    <Listed
      title="Requests"
      none={visit.none("No machine asks for anything.")}
      items={requests.map((one) => (
        <Waits
          what={[<Name to={`/requests/${one.id}`}>{one.name}</Name>, <Steers name={one.name} />]}
          where={[<Env value={one.environment} />, ` of ${one.project}`]}
          when={["asked ", <Ago at={one.createdAt} now={admin.now()} />]}
        />
      ))}
    />
  );
}

async function expiringKeys(visit: Visit): Promise<VNode> {
  const { admin } = visit;
  const now = admin.now();
  const expiring = await listExpiring(admin, soonMs);
  const marks = lookalikes(expiring);
  // A list of people that fails verification must not hide the keys.
  const rights = await unlessRefused(listEndingRights(admin, soonMs), ["conflict"], damaged);
  const ofKeys = expiring.map((one) => ({
    at: one.expiresAt ?? 0,
    isUsed: (one.lastUsedAt ?? 0) > now - weekMs,
    what: <Named thing={one} marks={marks} to={`/keys/${one.id}`} />,
    where: `${one.type} of ${one.organization}`,
  }));
  const ofPersons = (typeof rights === "string" ? [] : rights).map((one) => ({
    at: one.expiresAt,
    isUsed: false,
    what: <Word>{one.name}</Word>,
    where: `${one.rights.join(", ")} in ${one.projects?.join(", ") ?? "all projects"} of ${one.organization}`,
  }));
  const inOrder = [...ofKeys, ...ofPersons].sort((a, b) => a.at - b.at);
  const items = inOrder.map(({ at, isUsed, ...one }) => (
    <Waits
      {...one}
      when={[formatTime(at).slice(0, 10), ", ", <Ago at={at} now={now} />]}
      isUrgent={isUsed && at < now + weekMs}
    />
  ));
  return (
    <Listed
      title="Expires within 30 days"
      none={visit.none("No key, no trust and no person's right.")}
      items={typeof rights === "string" ? [...items, <Damaged words={rights} />] : items}
    />
  );
}

async function dueVariables(visit: Visit): Promise<VNode> {
  const { admin } = visit;
  // One damaged set must not hide what else waits for a person.
  const due = await unlessRefused(listDueVariables(admin, soonMs), ["conflict"], damaged);
  const isUrgent = await urgentOf(visit, typeof due === "string" ? [] : due);
  return (
    <Listed
      title="To rotate within 30 days"
      none={visit.none("No value.")}
      items={
        typeof due === "string"
          ? [<Damaged words={due} />]
          : due.map((one) => (
              <Waits
                what={<Name to={projectPagePath(whereOf(one), "variables/item", { name: one.name })}>{one.name}</Name>}
                where={[<Env value={one.environment} />, ` of ${one.project}`]}
                when={one.status === "overdue" ? `overdue since ${one.rotateBy}` : one.rotateBy}
                isUrgent={isUrgent(one)}
              />
            ))
      }
    />
  );
}

function whereOf({ organization, project }: DueVariable): string {
  return `${organization}/${project}`;
}

/** Whether a variable is due within a week, and machines read it in the last one, or nobody knows. */
async function urgentOf({ admin }: Visit, due: readonly DueVariable[]): Promise<(one: DueVariable) => boolean> {
  const now = admin.now();
  const soon = new Set(due.filter(({ dueAt }) => dueAt < now + weekMs));
  const known = new Map<string, KindReads | undefined>();
  for (const where of new Set([...soon].map(whereOf))) {
    const project = await findProject(admin, where, "see");
    known.set(where, await findKindReads(admin, project, variables.kind, environments));
  }
  return (one) => {
    const reads = known.get(whereOf(one));
    if (!soon.has(one) || !reads?.environments.includes(one.environment)) return soon.has(one);
    const { byNameAt, withAllAt } = reads.of(one.name, [one.environment]);
    return Math.max(byNameAt ?? 0, withAllAt ?? 0) > now - weekMs;
  };
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

/** Those that this person looked at last come first. */
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
