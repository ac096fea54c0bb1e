/** @jsxImportSource preact */

import type { VNode } from "preact";
import { compareBytes, environments } from "../../core/names.ts";
import { unlessRefused } from "../../core/refused.ts";
import { excerpt } from "../../core/visible.ts";
import { formatTime } from "../../core/words/text.ts";
import { Change, counted, Empty, Env, joined, Name, Warnings, Word } from "../../dashboard/parts/parts.tsx";
import { projectPagePath } from "../../dashboard/parts/paths.ts";
import type { Answer } from "../../dashboard/parts/route.ts";
import type { Visit } from "../../dashboard/parts/visit.ts";
import { everyKind } from "../../kinds/kind.ts";
import { descriptorOf } from "../../kinds/people.ts";
import { auditPages } from "../audit/audit.ts";
import { Unread } from "../audit/exceptions.tsx";
import { Damaged } from "../audit/operations.ts";
import { countedMax } from "../audit/reads.ts";
import { findProject } from "../desk/projects.ts";
import { showKey } from "./keys.ts";

/** What a key or a trust has read in its life, by project, with all names: what to rotate if somebody else had it. */
export async function readPage(visit: Visit): Promise<Answer> {
  const { admin } = visit;
  const record = await showKey(admin, visit.param("id"));
  const damaged = new Damaged(admin);
  const read = await readBy(visit, record.id, damaged);
  const parts = await Array.fromAsync(read.places.values(), (one) => partOf(visit, one));
  const main = (
    <>
      <p>
        <a href={`/keys/${record.id}`}>The {record.type}</a> is {record.status}. Below are the names of all values that
        it read{admin.rights !== "operator" && ", as far as you may read the audit"}.
      </p>
      <Unread damaged={damaged} />
      <Warnings
        items={
          read.isWhole ? [] : [`Only its newest ${counted(countedMax, "read")} were looked at: it read earlier, too.`]
        }
      />
      {parts.length === 0 && <Empty>{visit.none("It has read nothing.")}</Empty>}
      {parts}
    </>
  );
  return { title: `What ${excerpt(record.name)} read`, heading: ["What ", <Word>{record.name}</Word>, " read"], main };
}

/** The names of one kind in one environment of a project, and a button that makes them due. */
async function partOf(visit: Visit, { kind, where, environment, names }: PlaceRead): Promise<VNode> {
  const inOrder = [...names].sort(compareBytes);
  const place = environments.find((one) => one === environment);
  const may =
    place && (await unlessRefused(findProject(visit.admin, where, "write", [place]), ["not_found"], () => null));
  const today = formatTime(visit.admin.now()).slice(0, 10);
  const pageOf = (name: string) => (may ? projectPagePath(where, `${kind}/item`, { name }) : undefined);
  return (
    <section>
      <h2>
        {inOrder.length.toLocaleString("en")} {kind} of <Word>{where}</Word>{" "}
        {place ? <Env value={place} /> : "everywhere"}
      </h2>
      <p>{joined(inOrder.map((name) => <Name to={pageOf(name)}>{name}</Name>))}</p>
      {may && descriptorOf(kind).dueAtOf && (
        <Change
          action={projectPagePath(where, `${kind}/several`)}
          button="Make them due for rotation today"
          hidden={{ deed: "rotate by", rotateBy: today, environment: place ?? "" }}
          quiet
        >
          {inOrder.map((name) => (
            <input type="hidden" name="names" value={name} />
          ))}
        </Change>
      )}
    </section>
  );
}

type PlaceRead = {
  readonly kind: string;
  readonly where: string;
  readonly environment: string | null;
  readonly names: Set<string>;
};

/** What it read, the last places first. */
async function readBy({ admin }: Visit, keyId: string, damaged: Damaged) {
  const places = new Map<string, PlaceRead>();
  const kinds = new Map<string, string>(
    everyKind.flatMap(({ kind, actions }) => actions.map((action) => [action, kind] as const)),
  );
  const actions = [...kinds.keys()].filter((action) => action.endsWith(".read"));
  let entries = 0;
  for await (const page of auditPages(admin, { keyId, actions }, damaged.note, "newest first")) {
    for (const { action, organization, project, environment, names } of page) {
      const kind = kinds.get(action) ?? "";
      const where = `${organization}/${project}`;
      const place = places.get(JSON.stringify([kind, where, environment])) ?? {
        kind,
        where,
        environment,
        names: new Set(),
      };
      for (const name of names) place.names.add(name);
      places.set(JSON.stringify([kind, where, environment]), place);
      entries += 1;
    }
    if (entries >= countedMax) return { places, isWhole: false };
  }
  return { places, isWhole: true };
}
