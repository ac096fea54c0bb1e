/** @jsxImportSource preact */
import { reasonCharactersMax } from "../../core/names.ts";
import { Refused } from "../../core/refused.ts";
import { lookalikes } from "../../core/words/lookalikes.ts";
import { carryOut, requireShown, typedIn } from "../../dashboard/parts/carry-out.ts";
import { drawn, drawnFacts } from "../../dashboard/parts/drawn.tsx";
import { PagedTable } from "../../dashboard/parts/paged.tsx";
import {
  type Cells,
  Change,
  Facts,
  Field,
  Name,
  NameAgain,
  Named,
  Steers,
  Warnings,
  Word,
} from "../../dashboard/parts/parts.tsx";
import type { Answer } from "../../dashboard/parts/route.ts";
import { blame, type Visit } from "../../dashboard/parts/visit.ts";
import { pick } from "../desk/outcome.ts";
import { allDetails, approve, reject } from "./operations.ts";
import { listRequests, type RequestRecord, requestWarnings, seenRequest, showRequest } from "./requests.ts";

/** What machines ask people for: open requests first, then the newest of the others. */
export async function requestsPage(visit: Visit): Promise<Answer> {
  const { admin } = visit;
  const now = admin.now();
  const newest = (await listRequests(admin)).toReversed();
  const rows = [...newest.filter(isPending), ...newest.filter((request) => !isPending(request))];
  const marks = lookalikes(rows.map(({ keyId: id, keyName }) => ({ id, name: keyName ?? id })));
  const columns: Cells<RequestRecord> = {
    Name: ({ id, name }) => [<Name to={`/requests/${id}`}>{name}</Name>, <Steers name={name} />],
    ...drawn(pick(allDetails, "STATUS", "PROJECT", "ENVIRONMENT", "KEY NAME", "FILED"), now),
    "Key name": ({ keyId: id, keyName: name }) => name !== null && <Named thing={{ id, name }} marks={marks} />,
  };
  const main = (
    <PagedTable
      caption="Requests"
      columns={columns}
      rows={rows}
      visit={visit}
      idOf={({ id }) => id}
      own="Open first"
      nameOf={({ name, organization, project, keyName }) => `${name} ${organization}/${project} ${keyName ?? ""}`}
      none={
        <>
          {visit.none("No machine has asked for anything.")} An agent with the resource <code>requests</code> can ask
          for a variable that it needs, and you decide here.
        </>
      }
    />
  );
  return { title: "Requests", main };
}

/** One request, with the words of the key that asks, and the two answers. */
export async function requestPage(visit: Visit): Promise<Answer> {
  const { admin } = visit;
  const request = await showRequest(admin, visit.param("id"));
  const now = admin.now();
  const { status, name, reason, keyId, keyName, keyStatus } = request;
  const toDecide = await listRequests(admin, request.organization, true);
  const ends = ["pending", "expired"].includes(status) ? ["EXPIRES"] : [];
  const decided = ["DECIDED", "DECIDED BY", "ANSWER"];
  const columns = pick(allDetails, "STATUS", "PROJECT", "ENVIRONMENT", "KEY", "FILED", ...ends, ...decided, "ID");
  const toKey = keyName !== null && visit.may("see", "keys") ? `/keys/${keyId}` : undefined;
  const key = [<Word to={toKey}>{keyName ?? keyId}</Word>, keyStatus !== "active" && ` (${keyStatus})`];
  const main = (
    <>
      <section>
        <h2>The reason, in the machine's words</h2>
        <blockquote>
          <Word>{reason}</Word>
        </blockquote>
      </section>
      <Warnings items={requestWarnings(request)} />
      <Facts facts={{ ...drawnFacts(request, columns, now), Key: key }} />
      {toDecide.some(({ id }) => id === request.id) && <Decision request={request} />}
    </>
  );
  return { title: `Request for ${name}`, heading: <Name>{name}</Name>, main };
}

function Decision({ request }: { readonly request: RequestRecord }) {
  const { id, name, environment } = request;
  const hidden = seenRequest(request);
  return (
    <div class="cards">
      <section>
        <h2>Approve it with a value</h2>
        <Change action={`/requests/${id}/approve`} button="Approve" hidden={hidden}>
          <Field
            name="value"
            label="Value"
            help="It is written as a new variable, for everybody who can read this environment."
            rows={3}
            required
          />
          {environment === "production" && <NameAgain name={name} what="name of the variable" />}
        </Change>
      </section>
      <section>
        <h2>Reject it</h2>
        <Change action={`/requests/${id}/reject`} button="Reject" quiet hidden={hidden}>
          <Field
            name="reason"
            label="Reason"
            help="The machine is told. You may leave it empty."
            maxLength={reasonCharactersMax}
            isProse
          />
        </Change>
      </section>
    </div>
  );
}

/** Writes the value that was asked for. @throws Refused `conflict` if the request is not what the page showed */
export async function approveShown(visit: Visit): Promise<Answer> {
  const { admin, form } = visit;
  const request = await showRequest(admin, visit.param("id"));
  const { id, name, environment } = request;
  requireShown(form, seenRequest(request)); // before the name that it showed is asked for
  const value = form.read("value");
  if (value === "") throw new Refused("invalid", "There is no value. Nothing was written.", { field: "value" });
  form.requireAgain(name, [environment]);
  return carryOut(visit, approve, { id, value: typedIn(value) }, "/requests").catch(blame("value"));
}

/** Rejects it. @throws Refused `conflict` if the request is not what the page showed */
export async function rejectShown(visit: Visit): Promise<Answer> {
  const given = { id: visit.param("id"), reason: visit.form.find("reason") || undefined };
  return carryOut(visit, reject, given, "/requests").catch(blame("reason"));
}

function isPending({ status }: RequestRecord): boolean {
  return status === "pending";
}
