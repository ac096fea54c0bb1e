/** @jsxImportSource preact */

import type { ComponentChildren, VNode } from "preact";
import { Cut } from "../core/cut.ts";
import { dayMs } from "../core/names.ts";
import { unlessRefused } from "../core/refused.ts";
import { lookalikes } from "../core/words/lookalikes.ts";
import { findDueVariables } from "../kinds/variables/write.ts";
import { listAudit, recordBegins } from "../people/audit/audit.ts";
import { entriesOf, writeActions } from "../people/audit/entries.tsx";
import { AgainstRecord, Unread } from "../people/audit/exceptions.tsx";
import { Damaged } from "../people/audit/operations.ts";
import { listExpiring } from "../people/keys/keys.ts";
import { listEndingRights } from "../people/persons/persons.ts";
import { soonMs } from "../people/projects/grid-parts.ts";
import { ProjectLink, recentProjects } from "../people/projects/page.tsx";
import { listRequests } from "../people/requests/requests.ts";
import { alarmActions } from "../record/entry.ts";
import { Ago, counted, Empty, joined, Listed, LoneLink, Name, Named, Steers, Word } from "./parts/parts.tsx";
import { projectPagePath, withQuery } from "./parts/paths.ts";
import type { Answer } from "./parts/route.ts";
import type { Visit } from "./parts/visit.ts";
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
        {visit.may("see") && (await lastProjects(visit))}
        {visit.may("decide") && (await pendingRequests(visit))}
        {visit.may("see", "keys") && (await expiringKeys(visit))}
        {visit.may("see") && (await dueVariables(visit))}
      </div>
      {visit.may("audit") && (await lastChanges(visit))}
    </>
  );
  return { title: "Today", main };
}

/** Something that waits, in one line: what it is and where, and at the right when. */
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

/** The project is what a narrow line cuts off. */
function placeOf({ environment, project }: { readonly environment: string; readonly project: string }): string {
  return `${environment} of ${project}`;
}

/** How many lines a list has. */
const linesMax = 12;

async function pendingRequests(visit: Visit): Promise<VNode> {
  const { admin } = visit;
  const newest = (await listRequests(admin, undefined, true)).reverse();
  return (
    <Listed
      title="Requests"
      none={visit.none("No machine asks for anything.")}
      items={new Cut(newest)
        .first(linesMax)
        .map((one) => (
          <Waits
            what={[<Name to={`/requests/${one.id}`}>{one.name}</Name>, <Steers name={one.name} />]}
            where={placeOf(one)}
            when={<Ago at={one.createdAt} now={admin.now()} />}
          />
        ))}
      more={<a href="/requests">All requests</a>}
    />
  );
}

/** Where lists of what ends soon have the rest. */
const expiringLists = (
  <>
    There are more: <code>keyhole expiring</code> lists them.
  </>
);

async function expiringKeys(visit: Visit): Promise<VNode> {
  const { admin } = visit;
  const now = admin.now();
  const expiring = await listExpiring(admin, soonMs);
  const marks = lookalikes(expiring);
  // A list of people that fails verification must not hide the keys.
  const rights = await unlessRefused(listEndingRights(admin, soonMs), ["conflict"], ({ message }) => message);
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
  return (
    <Listed
      title="Expires within 30 days"
      none={visit.none("No key, no trust and no person's right.")}
      items={new Cut(inOrder)
        .first(linesMax)
        .map(({ at, isUsed, ...one }) => (
          <Waits {...one} when={<Ago at={at} now={now} />} isUrgent={isUsed && at < now + weekMs} />
        ))}
      more={expiringLists}
      unread={typeof rights === "string" ? [rights] : []}
    />
  );
}

async function dueVariables(visit: Visit): Promise<VNode> {
  const { admin } = visit;
  const { due, damage } = await findDueVariables(admin, soonMs, linesMax);
  return (
    <Listed
      title="To rotate within 30 days"
      none={visit.none("No value.")}
      items={due
        .first(linesMax)
        .map((one) => (
          <Waits
            what={
              <Name to={projectPagePath(`${one.organization}/${one.project}`, "variables/item", { name: one.name })}>
                {one.name}
              </Name>
            }
            where={placeOf(one)}
            when={one.status === "overdue" ? `overdue since ${one.rotateBy}` : one.rotateBy}
            isUrgent={one.dueAt < admin.now() + weekMs}
          />
        ))}
      more={expiringLists}
      unread={damage}
    />
  );
}

/** Those that this person looked at last come first. */
async function lastProjects(visit: Visit): Promise<VNode> {
  const projects = new Cut(await recentProjects(visit)).first(linesMax);
  return (
    <Listed
      title="Projects"
      none={visit.none("None yet.")}
      items={projects.map((project) => (
        <>
          <ProjectLink project={project} /> <Ago at={project.updatedAt} now={visit.admin.now()} />
        </>
      ))}
      more={<a href="/projects">All projects</a>}
    />
  );
}

/** How much of the audit is read for each list, whatever there is. */
const bounds = { pagesMax: 4 };

/** What nobody should do, in the last week: uses of canaries, and jobs that asked for more than their trust gives. */
async function alarms(visit: Visit): Promise<VNode | null> {
  const { admin } = visit;
  const sinceAt = admin.now() - weekMs;
  const since = new Date(sinceAt).toISOString().slice(0, 16);
  const damaged = new Damaged(admin);
  const found = await listAudit(admin, { ...bounds, actions: alarmActions, sinceAt, limit: 1000 }, damaged.note);
  const [uses, earlier] = found.with("There were more alarms before these:");
  if (uses.length === 0 && earlier === undefined) return <Unread damaged={damaged} />;
  // Who uses one canary again and again must not push the use of another off the page.
  const alike = Map.groupBy(uses, ({ actor, action, organization, project, environment, names }) =>
    JSON.stringify([actor, action, organization, project, environment, names]),
  );
  const times = new Map([...alike.values()].map((all) => [all.at(-1), all.length]));
  const newest = uses.filter((one) => times.has(one));
  return (
    <section class="danger">
      <h2>Alarms of the last 7 days</h2>
      {
        await entriesOf(visit, newest, (when, one) => {
          const { lane, seq, action, names, actor } = one;
          const count = times.get(one) ?? 1;
          return (
            <span class="links">
              <a href={`/audit/entry/${encodeURIComponent(`${lane}:${seq}`)}`}>{when}</a>
              {count > 1 && (
                <a href={withQuery("/audit", { since, action, item: names[0] })}>{counted(count, "time")}</a>
              )}
              {actor.type !== "person" && <a href={`/keys/${actor.id}/read`}>All that it read</a>}
            </span>
          );
        })
      }
      {earlier && (
        <p>
          {earlier}{" "}
          {joined(alarmActions.map((action) => <a href={withQuery("/audit", { since, action })}>{action}</a>))}
        </p>
      )}
      <Unread damaged={damaged} />
    </section>
  );
}

const weekMs = 7 * dayMs;

async function lastChanges(visit: Visit): Promise<VNode> {
  const damaged = new Damaged(visit.admin);
  const found = await listAudit(visit.admin, { ...bounds, actions: writeActions, limit: linesMax }, damaged.note);
  const [changes, earlier] = found.with("Earlier ones, and all other entries of the audit");
  const none = "Nobody has changed anything yet.";
  return (
    <section>
      <h2>Last changes</h2>
      <Unread damaged={damaged} />
      {changes.length === 0 && earlier === undefined && (
        <p class="quiet">{(await recordBegins(visit.admin)) ?? visit.none(none)}</p>
      )}
      {await entriesOf(visit, changes)}
      <LoneLink to="/audit">{earlier ?? "All entries of the audit"}</LoneLink>
    </section>
  );
}
