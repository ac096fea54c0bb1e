/** @jsxImportSource preact */
import { requestAction } from "../audit/entry.ts";
import { visibleLines } from "../core/visible.ts";
import { auditActions } from "../kinds/kind.ts";
import { type DueVariable, listDueVariables } from "../kinds/variables/write.ts";
import { Ago, Empty, Env, Lead, Listed, Name, Word } from "../pages/parts.tsx";
import { projectPagePath } from "../pages/paths.ts";
import type { Answer } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { listAudit } from "../people/audit.ts";
import { keyNames, listExpiring } from "../people/keys.ts";
import { listProjects } from "../people/projects.ts";
import { listRequests } from "../people/requests.ts";
import { unlessRefused } from "./refusal.ts";
import { Sentence } from "./sentence.tsx";

const soonMs = 30 * 86_400_000;
const changeActions = auditActions.filter((action) => !action.endsWith(".read") && action !== requestAction);

/** What waits for a person: requests, what expires, what is due; and what changed last. */
export async function todayPage({ admin }: Visit): Promise<Answer> {
  const now = admin.now();
  const projects = await listProjects(admin);
  const requests = (await listRequests(admin)).filter(({ status }) => status === "pending");
  const expiring = await listExpiring(admin, soonMs);
  // One damaged set must not hide what else waits for a person.
  const due = await unlessRefused(listDueVariables(admin, soonMs), ["conflict"], ({ message }) =>
    visibleLines(message),
  );
  const changes = await listAudit(admin, { actions: changeActions, limit: 12 });
  const keys = await keyNames(admin);
  const main = (
    <>
      {projects.length === 0 && (
        <Empty>
          Nothing is stored yet. <a href="/projects">Create a project</a>, paste its variables, and{" "}
          <a href="/keys/new">create a key</a> for the machine that reads them.
        </Empty>
      )}
      <div class="cards">
        <Listed
          title="Requests"
          none="No machine asks for anything."
          of={requests.map((one) => (
            <>
              <Name to={`/requests/${one.id}`}>{one.name}</Name> <Env of={one.environment} /> of {one.project}, asked{" "}
              <Ago at={one.createdAt} now={now} />
            </>
          ))}
        />
        <Listed
          title="Expires within 30 days"
          none="No key and no trust."
          of={expiring.map((one) => (
            <>
              <Word to={`/keys/${one.id}`}>{one.name}</Word>, a {one.type} of {one.organization},{" "}
              <Ago at={one.expiresAt} now={now} />
            </>
          ))}
        />
        <Listed
          title="To rotate within 30 days"
          none="No value."
          of={typeof due === "string" ? [<p class="warning">{due}</p>] : due.map((one) => <Due of={one} />)}
        />
      </div>
      <Listed
        title="Last changes"
        none="Nobody has changed anything yet."
        of={changes.toReversed().map((one) => (
          <>
            <Ago at={one.time} now={now} />: <Sentence of={one} keys={keys} />
          </>
        ))}
      >
        <Lead to="/audit">All entries of the audit</Lead>
      </Listed>
    </>
  );
  return { title: "Today", main };
}

function Due({ of: one }: { readonly of: DueVariable }) {
  return (
    <>
      <Name to={projectPagePath(`${one.organization}/${one.project}`, "variables/item", { name: one.name })}>
        {one.name}
      </Name>{" "}
      <Env of={one.environment} /> of {one.project}, {one.status === "overdue" ? "overdue since" : "by"} {one.rotateBy}
    </>
  );
}
