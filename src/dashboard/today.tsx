import { listDueVariables } from "../kinds/variables/write.ts";
import { Ago, counted, Empty, Env, Name, Word } from "../pages/parts.tsx";
import { projectPagePath, withQuery } from "../pages/paths.ts";
import type { Answer, Route } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { type AuditRecord, listAudit } from "../people/audit.ts";
import { listExpiring } from "../people/keys.ts";
import { listProjects } from "../people/projects.ts";
import { listRequests } from "../people/requests.ts";

export const todayRoutes: readonly Route[] = [{ method: "GET", path: "/", right: "see", answer: today }];

const soonMs = 30 * 86_400_000;

/** What waits for a person: requests, what expires, what is due; and what changed last. */
async function today({ admin }: Visit): Promise<Answer> {
  const now = admin.now();
  const projects = await listProjects(admin);
  const requests = (await listRequests(admin)).filter(({ status }) => status === "pending");
  const expiring = await listExpiring(admin, soonMs);
  const due = await listDueVariables(admin, soonMs);
  const changes = (await listAudit(admin, { limit: 200 })).filter(({ actor }) => actor.type === "person");
  const main = (
    <>
      <h1>Today</h1>
      {projects.length === 0 && (
        <Empty>
          There is no project yet. <a href="/projects">Create the first one.</a>
        </Empty>
      )}
      <div class="cards">
        <section>
          <h2>Requests</h2>
          {requests.length === 0 && <p class="quiet">No machine asks for anything.</p>}
          <ul>
            {requests.map((one) => (
              <li>
                <a href={`/requests/${one.id}`}>
                  <Name>{one.name}</Name>
                </a>{" "}
                <Env of={one.environment} /> of {one.project}, asked <Ago at={one.createdAt} now={now} />
              </li>
            ))}
          </ul>
        </section>
        <section>
          <h2>Expires within 30 days</h2>
          {expiring.length === 0 && <p class="quiet">No key and no trust.</p>}
          <ul>
            {expiring.map((one) => (
              <li>
                <a href={`/keys/${one.id}`}>
                  <Word>{one.name}</Word>
                </a>
                , a {one.type} of {one.organization}, <Ago at={one.expiresAt} now={now} />
              </li>
            ))}
          </ul>
        </section>
        <section>
          <h2>To rotate within 30 days</h2>
          {due.length === 0 && <p class="quiet">No value.</p>}
          <ul>
            {due.map((one) => (
              <li>
                <a href={projectPagePath(`${one.organization}/${one.project}`, "variables/item", { name: one.name })}>
                  <Name>{one.name}</Name>
                </a>{" "}
                <Env of={one.environment} /> of {one.project}, {one.status === "overdue" ? "overdue since" : "by"}{" "}
                {one.rotateBy}
              </li>
            ))}
          </ul>
        </section>
      </div>
      <section>
        <h2>Last changes</h2>
        {changes.length === 0 && <p class="quiet">Nobody has changed anything yet.</p>}
        <ul class="changes">
          {changes
            .slice(-12)
            .reverse()
            .map((one) => (
              <LastChange of={one} now={now} />
            ))}
        </ul>
        <p>
          <a href={withQuery("/audit", {})}>All entries of the audit</a>
        </p>
      </section>
    </>
  );
  return { title: "Today", main };
}

function LastChange({ of: one, now }: { readonly of: AuditRecord; readonly now: number }) {
  const { actor, names } = one;
  return (
    <li>
      <Ago at={one.time} now={now} />: <Word>{actor.type === "person" ? actor.name : actor.id}</Word>{" "}
      <code>{one.action}</code> {one.project && `in ${one.project}`} {one.environment}{" "}
      {names.length > 0 && (
        <>
          (<Word>{names.slice(0, 3).join(", ")}</Word>
          {names.length > 3 && ` and ${counted(names.length - 3, "other")}`})
        </>
      )}
    </li>
  );
}
