/** @jsxImportSource preact */
import type { VNode } from "preact";
import { requestAction } from "../audit/entry.ts";
import { Refused } from "../core/refused.ts";
import { visibleLines } from "../core/visible.ts";
import type { AdminContext } from "../desk/context.ts";
import { auditActions } from "../kinds/kind.ts";
import { type DueVariable, listDueVariables } from "../kinds/variables/write.ts";
import { Ago, Empty, Env, Name, Word } from "../pages/parts.tsx";
import { projectPagePath, withQuery } from "../pages/paths.ts";
import type { Answer, Route } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { listAudit } from "../people/audit.ts";
import { keyNames, listExpiring } from "../people/keys.ts";
import { listProjects } from "../people/projects.ts";
import { listRequests } from "../people/requests.ts";
import { Sentence } from "./sentence.tsx";

export const todayRoutes: readonly Route[] = [{ method: "GET", path: "/", right: "any", answer: today }];

const soonMs = 30 * 86_400_000;
const changeActions = auditActions.filter((action) => !action.endsWith(".read") && action !== requestAction);

/** What waits for a person: requests, what expires, what is due; and what changed last. */
async function today({ admin }: Visit): Promise<Answer> {
  const now = admin.now();
  const projects = await listProjects(admin);
  const requests = (await listRequests(admin)).filter(({ status }) => status === "pending");
  const expiring = await listExpiring(admin, soonMs);
  const due = await dueOrRefusal(admin);
  const changes = await listAudit(admin, { actions: changeActions, limit: 12 });
  const keys = await keyNames(admin);
  const main = (
    <>
      <h1>Today</h1>
      {projects.length === 0 && (
        <Empty>
          Nothing is stored yet. <a href="/projects">Create a project</a>, paste its variables, and{" "}
          <a href="/keys/new">create a key</a> for the machine that reads them.
        </Empty>
      )}
      <div class="cards">
        <Card title="Requests" none="No machine asks for anything.">
          {requests.map((one) => (
            <li>
              <a href={`/requests/${one.id}`}>
                <Name>{one.name}</Name>
              </a>{" "}
              <Env of={one.environment} /> of {one.project}, asked <Ago at={one.createdAt} now={now} />
            </li>
          ))}
        </Card>
        <Card title="Expires within 30 days" none="No key and no trust.">
          {expiring.map((one) => (
            <li>
              <a href={`/keys/${one.id}`}>
                <Word>{one.name}</Word>
              </a>
              , a {one.type} of {one.organization}, <Ago at={one.expiresAt} now={now} />
            </li>
          ))}
        </Card>
        <Card title="To rotate within 30 days" none="No value.">
          {typeof due === "string" ? [<li class="warning">{due}</li>] : due.map((one) => <Due of={one} />)}
        </Card>
      </div>
      <section>
        <h2>Last changes</h2>
        {changes.length === 0 && <p class="quiet">Nobody has changed anything yet.</p>}
        <ul class="changes">
          {changes.toReversed().map((one) => (
            <li>
              <Ago at={one.time} now={now} />: <Sentence of={one} keys={keys} />
            </li>
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

/** What is due; or the sentence of a refusal, since one damaged set must not hide what else waits for a person. */
async function dueOrRefusal(admin: AdminContext): Promise<readonly DueVariable[] | string> {
  try {
    return await listDueVariables(admin, soonMs);
  } catch (error) {
    if (error instanceof Refused && error.kind === "conflict") return visibleLines(error.message);
    throw error;
  }
}

function Due({ of: one }: { readonly of: DueVariable }) {
  return (
    <li>
      <a href={projectPagePath(`${one.organization}/${one.project}`, "variables/item", { name: one.name })}>
        <Name>{one.name}</Name>
      </a>{" "}
      <Env of={one.environment} /> of {one.project}, {one.status === "overdue" ? "overdue since" : "by"} {one.rotateBy}
    </li>
  );
}

/** A list under its heading, or what there is to say when nothing is in it. */
function Card(props: { readonly title: string; readonly none: string; readonly children: readonly VNode[] }) {
  const { title, none, children } = props;
  return (
    <section>
      <h2>{title}</h2>
      {children.length === 0 ? <p class="quiet">{none}</p> : <ul>{children}</ul>}
    </section>
  );
}
