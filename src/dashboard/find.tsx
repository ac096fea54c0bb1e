/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { everyKind } from "../kinds/kind.ts";
import { moreThan } from "../operations/find.ts";
import { type Cells, Empty, Envs, joined, LoneLink, Name, Table, Warnings, Word } from "../pages/parts.tsx";
import { projectPagePath, withQuery } from "../pages/paths.ts";
import type { Answer } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { find, type Hit } from "../people/find.ts";
import { counted } from "../words/text.ts";
import { personPath } from "./person.tsx";

/** Everything whose name or note has a part, each with a link to its page. The field for the part is in the frame. */
export async function findPage(visit: Visit): Promise<Answer> {
  const part = visit.query("q")?.trim() ?? "";
  if (part === "") return { title: "Find", main: <Begin /> };
  const found = await find(visit.admin, part);
  const main = (
    <>
      <Warnings items={found.warnings} />
      {found.count > 0 && <p class="quiet">{moreThan(found) ?? `${counted(found.count, "name")}.`}</p>}
      <Table
        caption="What has it in its name or its note, the best first"
        columns={columns}
        rows={found.found}
        none={<Nothing visit={visit} part={part} />}
        isPart={found.found.length < found.count}
      />
    </>
  );
  const heading = (
    <>
      Find <Name>{part}</Name>
    </>
  );
  return { title: `Find ${part}`, heading, main };
}

function Begin() {
  return (
    <Empty>
      Type a part of a name into the field at the top: of a variable, an account, a file, a project, a key, a trust, a
      request or a person. The key <kbd>/</kbd> goes there.
    </Empty>
  );
}

function Nothing({ visit, part }: { readonly visit: Visit; readonly part: string }) {
  return (
    <Empty>
      Nothing that you may see has <Name>{part}</Name> in its name or its note. Try a shorter part.
      {visit.may("audit") && (
        <LoneLink to={withQuery("/audit", { name: part })}>Look in the audit for a name that was deleted</LoneLink>
      )}
    </Empty>
  );
}

const columns: Cells<Hit> = {
  Name: (hit) => [<Name to={pageOf(hit)}>{hit.name}</Name>, hit.note && [" ", <Word>{hit.note}</Word>]],
  Project: ({ organization, project }) => <Word>{[organization ?? "none", project].filter(Boolean).join("/")}</Word>,
  "Where it is": whereItIs,
  What: ({ type, status }) => (status === undefined ? type : `${type}, ${status}`),
};

function pageOf({ type, organization, project, name, id }: Hit): string {
  if (type === "person") return personPath(name);
  if (type === "request") return `/requests/${id}`;
  if (project === null) return `/keys/${id}`;
  const kind = everyKind.find(({ item }) => item === type)?.kind;
  const where = `${organization}/${project}`;
  return kind === undefined ? `/p/${where}` : projectPagePath(where, `${kind}/item`, { name });
}

function whereItIs({ environments, projects }: Hit): ComponentChildren {
  if (environments !== undefined) return <Envs values={environments} />;
  return joined((projects ?? []).map((where) => <Name to={projectPagePath(where, "access")}>{where}</Name>));
}
