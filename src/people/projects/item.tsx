/** @jsxImportSource preact */

import type { ComponentChildren } from "preact";
import { Cut } from "../../core/cut.ts";
import { dayMs, type Environment, environments, type Remarks, remarkNames } from "../../core/names.ts";
import { Refused, unlessRefused } from "../../core/refused.ts";
import { lookalikes } from "../../core/words/lookalikes.ts";
import { joined } from "../../core/words/text.ts";
import { drawnFacts } from "../../dashboard/parts/drawn.tsx";
import {
  Actions,
  Ago,
  Collapsed,
  counted,
  Env,
  Facts,
  LoneLink,
  MachinesOnlyNote,
  Name,
  Named,
  Operators,
  Prose,
  type Thing,
  thereClass,
  Word,
} from "../../dashboard/parts/parts.tsx";
import { projectPagePath, withQuery } from "../../dashboard/parts/paths.ts";
import type { Answer } from "../../dashboard/parts/route.ts";
import type { Visit } from "../../dashboard/parts/visit.ts";
import { kindPages } from "../../kinds/pages.ts";
import { descriptorOf } from "../../kinds/people.ts";
import { nameInPersonText } from "../../record/entry.ts";
import { type AuditRecord, findNewest, listAudit } from "../audit/audit.ts";
import { thingOf, whoOf } from "../audit/audit-counts.tsx";
import { Damaged } from "../audit/operations.ts";
import { countedDays, countedMax } from "../audit/reads.ts";
import { seenOf } from "../desk/plan.ts";
import { findProject } from "../desk/projects.ts";
import { remarkColumns, saidInAll } from "../editing/remarks.ts";
import { findMarkedSince, type ItemHistory, listItemHistory, type SetAt } from "../history/history.ts";
import { keyNames, listAccess } from "../keys/keys.ts";
import { type Gets, personGets } from "../keys/readers.ts";
import { personsWithAccess } from "../persons/persons.ts";
import { personPath } from "../persons/rights-form.tsx";
import { type ComparedItem, compareEnvironments } from "./comparison.ts";
import { requireKind } from "./grid.tsx";

/** One item: where it is, its value on request, who can read it and who did, and its earlier values. */
export async function itemPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const kind = requireKind(visit.param("kind"));
  const name = visit.query("name") ?? "";
  const { items, environments: seen } = await compareEnvironments(admin, where, kind);
  const found = items.find((one) => one.name === name);
  if (found === undefined)
    throw new Refused("not_found", `There is no ${JSON.stringify(name)} among the ${kind} of ${where}.`);
  const { form, reveal: isShown } = kindPages[kind] ?? {};
  const project = await findProject(admin, where, "see");
  const written = visit.reached(project, "write");
  const audited = visit.reached(project, "audit");
  const shared = {
    ...{ where, kind, name, now: admin.now() },
    project: seenOf(project),
    revealed: isShown ? visit.reached(project, "reveal") : [],
    written,
  };
  const whoGets = await readersOf(visit, kind);
  const readersIn = audited.length > 0 ? await readsOf(visit, kind, name) : undefined;
  const cards = await Array.fromAsync(seen, async (environment) => ({
    ...shared,
    environment,
    found: found.environments[environment],
    history: await historyOf(visit, { where, environment, kind }, name, found.environments[environment]),
    gets: (what: Gets, only?: true) => whoGets(environment, what, only),
    reads: audited.includes(environment) ? await readersIn?.(environment) : undefined,
    isWholeAudit: audited.length === environments.length,
  }));
  const isReadable = (item: ComparedItem | undefined) => item !== undefined && !item.isMachinesOnly;
  const readable = isShown ? seen.filter((one) => isReadable(found.environments[one])) : [];
  const unseen = readable.filter((one) => !shared.revealed.includes(one));
  const there = Object.values(found.environments);
  const said = remarkNames.map((remark) => [remark, saidInAll(there, remark)] as const);
  const differing = said.flatMap(([remark, text]) => (text === undefined ? [remark] : []));
  const main = (
    <>
      {said.map(
        ([, text]) =>
          text && (
            <p class="note">
              <Word>{text}</Word>
            </p>
          ),
      )}
      {seen.length < environments.length && <p class="quiet">You may see {joined(seen)} alone.</p>}
      {unseen.length > 0 && <p class="quiet">You need the right reveal to see its value in {joined(unseen)}.</p>}
      {readable.length > unseen.length && <noscript>You need JavaScript to reveal or copy its value.</noscript>}
      <div class="values">
        {cards.map((card) => (
          <Value {...card} />
        ))}
      </div>
      <div class="values">
        {cards.map((card) => (
          <About {...card} remarks={differing} />
        ))}
      </div>
      <Operators />
      {audited.length > 0 && (
        <LoneLink to={withQuery("/audit", { project: where, item: name })}>Everything about it in the audit</LoneLink>
      )}
    </>
  );
  const actions = { Change: projectPagePath(where, `${kind}/set`, { name }) };
  const beside = form && written.length > 0 && <Actions items={actions} />;
  return { title: `${name} · ${where}`, heading: <Name>{name}</Name>, beside, main };
}

/** An item in one environment. */
type ItemPlace = {
  readonly where: string;
  readonly kind: string;
  readonly name: string;
  readonly environment: Environment;
  readonly now: number;
  /** The hidden fields that name the project. */
  readonly project: ReturnType<typeof seenOf>;
  /** The environments in which the person may see values, and in which they may write. */
  readonly revealed: readonly Environment[];
  readonly written: readonly Environment[];
};

/** Its versions. `unmarked`: if it is for machines only now, those in which people could read it. */
async function historyOf({ admin }: Visit, set: SetAt, name: string, found: ComparedItem | undefined) {
  const history = await listItemHistory(admin, set, name);
  if (!found?.isMachinesOnly) return { ...history, unmarked: [] };
  const { versions, earlier } = history;
  const before = earlier === undefined ? [] : [{ version: earlier, added: [], changed: [], deleted: [] }];
  const marked = await findMarkedSince(admin, set, [...versions.slice(0, earlierMax + 1), ...before]);
  return { ...history, unmarked: [...marked].flatMap(([version, names]) => (names.includes(name) ? [version] : [])) };
}

/** What there is to know of an item in one environment. */
type ItemCard = ItemPlace & {
  readonly found: ComparedItem | undefined;
  readonly history: ItemHistory & { readonly unmarked: readonly number[] };
  readonly gets: (what: Gets, machinesOnly?: true) => readonly ComponentChildren[];
  /** Undefined in an environment whose reads this person may not know. */
  readonly reads: readonly ComponentChildren[] | undefined;
  /** Whether they may know those of each environment: a read may be of all three at once. */
  readonly isWholeAudit: boolean;
};

/** Whether it is there, since when, and its value on request. By keyboard, all values come before who reads them. */
function Value(props: ItemCard) {
  const { environment, revealed, found, history, now } = props;
  // Newer versions than that changed its note, or the day to rotate it by. Its record may be gone, as old ones go.
  const writer = history.versions.find(({ at }) => at === found?.updatedAt)?.actor.name;
  return (
    <section>
      <h2 class={found?.group ? thereClass(true, environment, found.group) : undefined}>
        <Env value={environment} />
      </h2>
      {found ? (
        <p>
          Changed <Ago at={found.updatedAt} now={now} />
          {writer !== undefined && [" by ", <Word>{nameInPersonText(writer)}</Word>]}
        </p>
      ) : (
        <p class={environment === "production" ? "missing" : "quiet"}>missing</p>
      )}
      {found?.isCanary && <p class="warning">A canary: each use of it is on record.</p>}
      {found?.isMachinesOnly && <MachinesOnlyNote />}
      {found && !found.isMachinesOnly && revealed.includes(environment) && <Reveal {...props} />}
    </section>
  );
}

/** Who can read it, who did, and what it was before. @param remarks - those that differ between its environments */
function About(props: ItemCard & { readonly remarks: readonly (keyof Remarks)[] }) {
  const { environment, found, history, gets, reads, isWholeAudit, now, remarks } = props;
  const some = (items: readonly ComponentChildren[], none: string) =>
    items.length === 0 ? <span class="quiet">{none}</span> : <Collapsed items={items} max={8} between="; " />;
  const names = gets("names");
  const earlier = earlierOf(history, found !== undefined);
  const facts = {
    ...(found && drawnFacts(found, remarkColumns([found], remarks), now)),
    "Who can read it":
      found && some(gets("values", found.isMachinesOnly), found.isMachinesOnly ? "Nobody." : "Nobody but operators."),
    "Only see its name": found && names.length > 0 && some(names, ""),
    "Who read it last":
      found && reads && some(reads, `Nobody, as far as ${isWholeAudit ? "the audit goes back" : "you may know"}.`),
    "Earlier values": earlier.length > 0 && <Earlier {...props} rows={earlier} />,
  };
  return (
    <section>
      <h2>
        <Env value={environment} />
      </h2>
      <Facts facts={facts} />
    </section>
  );
}

/** A value, on request: the script puts it into the box below the buttons. @param version - an earlier one */
export function Reveal(props: Omit<ItemPlace, "now" | "revealed" | "written"> & { readonly version?: number }) {
  const { where, kind, name, environment, project, version } = props;
  const hidden = { ...project, name, environment, ...(version !== undefined && { version }) };
  const what = version === undefined ? `the value in ${environment}` : `version ${version} in ${environment}`;
  return (
    <form method="post" action={projectPagePath(where, `${kind}/reveal`)} data-change autocomplete="off">
      {Object.entries(hidden).map(([field, value]) => (
        <input type="hidden" name={field} value={value} />
      ))}
      <div class="send">
        <button type="submit" class="quiet" data-secret="shown" aria-label={`Reveal ${what}`}>
          Reveal
        </button>
        {version === undefined && (
          <button type="submit" class="quiet" data-secret="copied" aria-label={`Copy ${what}`}>
            Copy
          </button>
        )}
        <span role="alert" class="refusal" />
      </div>
      {/* Whoever asks for it looks at it: a screen reader must not say it aloud by itself. */}
      <output class="secret" aria-live="off" />
    </form>
  );
}

const earlierMax = 100;

/** A version that changed an item. Null: from before the versions that are kept. */
type EarlierValue = ReturnType<typeof earlierOf>[number];

/** The versions that changed an item, newest first, without the one in force. */
function earlierOf({ versions, earlier }: ItemHistory, isThere: boolean) {
  const older = (isThere ? versions.slice(1) : versions).map(({ version, at, actor, deleted }) => {
    return { version, at, by: actor.name, isDeleted: deleted.length > 0 };
  });
  return earlier === undefined ? older : [...older, { version: earlier, at: null, by: null, isDeleted: false }];
}

/** Earlier values. Each can be shown and put back, unless the item is for machines only now. */
function Earlier(props: ItemCard & { readonly rows: readonly EarlierValue[] }) {
  const { found, environment, revealed, written, now, rows } = props;
  return (
    <details>
      <summary>{counted(rows.length, "version")}</summary>
      <ul class="earlier">
        {rows.slice(0, earlierMax).map(({ version, at, by, isDeleted }) => (
          <li>
            <span>
              Version {version},{" "}
              {by === null
                ? "from before what is kept"
                : [<Ago at={at} now={now} />, ", by ", <Word>{nameInPersonText(by)}</Word>]}
              {isDeleted && <span class="missing"> deleted</span>}
            </span>
            {!isDeleted && !found?.isMachinesOnly && revealed.includes(environment) && (
              <Reveal {...props} version={version} />
            )}
            {!isDeleted && written.includes(environment) && <PutBack {...props} version={version} />}
          </li>
        ))}
      </ul>
      {rows.length > earlierMax && <p class="quiet">{rows.length - earlierMax} older ones are not shown.</p>}
    </details>
  );
}

function PutBack({ where, kind, name, environment, history, version }: ItemCard & { readonly version: number }) {
  if (history.unmarked.includes(version))
    return <span class="quiet">cannot be put back: it is for machines only now</span>;
  return (
    <a
      href={projectPagePath(where, "undo", { kind, environment, to: version, name })}
      aria-label={`Put back version ${version} in ${environment}`}
    >
      Put back
    </a>
  );
}

/** Who read an item in an environment in the last days, the last one first, and how often; or before them, who did last. */
async function readsOf({ admin, where }: Visit, kind: string, name: string) {
  const actions = descriptorOf(kind).actions.filter((action) => /\.(?:read|reveal)$/.test(action));
  const filter = { project: where, wholeName: name, actions };
  const sinceAt = admin.now() - countedDays * dayMs;
  const damaged = new Damaged(admin);
  const lately = listAudit(admin, { ...filter, sinceAt, limit: countedMax }, damaged.note);
  // No entry names it if it is not found.
  const found = await unlessRefused(lately, ["not_found"], () => new Cut<AuditRecord>([]));
  const [oldestFirst, before] = found.with(
    <a href={withQuery("/audit", { project: where, item: name, action: "all reads" })}>and who read it before them</a>,
  );
  const counted = oldestFirst.toReversed();
  const names = await keyNames(admin);
  const who = whoOf(counted, names);
  return async (environment: Environment) => {
    // A read without an environment is one of them all.
    const there = counted.filter((one) => (one.environment ?? environment) === environment);
    const earlier = () => findNewest(admin, { ...filter, environment }, damaged.note);
    const last = there.length > 0 ? undefined : await unlessRefused(earlier(), ["not_found"], () => undefined);
    const reads = last === undefined ? there : [last];
    // Two keys of one name are two readers.
    const byReader = Map.groupBy(reads, (one) => thingOf(one, names).id);
    const atLeast = before === undefined ? "" : "at least ";
    const readers = [...byReader.values()].map((all) => (
      <>
        {(there.length > 0 ? who : whoOf(reads, names))(all[0] as AuditRecord)}
        {all.length > 1 ? `: ${atLeast}${all.length.toLocaleString("en")} times in ${countedDays} days, last ` : ", "}
        <Ago at={(all[0] as AuditRecord).time} now={admin.now()} />
      </>
    ));
    const unread = damaged.problem && <Prose>{damaged.problem.message}</Prose>;
    return [...readers, there.length > 0 && before, unread].filter(Boolean);
  };
}

/** Who gets the value in an environment, or only its name. */
async function readersOf({ admin, where }: Visit, kind: string) {
  const persons = (await personsWithAccess(admin, where)).map((one) => ({ ...one, id: one.name }));
  const keys = await listAccess(admin, where);
  const marks = lookalikes<Thing>([...persons, ...keys]);
  return (environment: Environment, what: Gets, machinesOnly = false): ComponentChildren[] => [
    ...persons
      .filter(({ rightsIn }) => !machinesOnly && personGets(rightsIn[environment]) === what)
      .map((one) => {
        const type = one.signIn !== null && "group" in one.signIn ? "group" : undefined;
        return <Named thing={one} type={type} marks={marks} to={personPath(one.name)} />;
      }),
    ...keys
      .filter(({ environments: reach, gets }) => reach?.includes(environment) !== false && gets[kind] === what)
      .map((key) => <Named thing={key} type={key.type} marks={marks} to={`/keys/${key.id}`} />),
  ];
}

/** The value of an item, on record before it is shown. With a version, as it was in that one. */
export async function reveal(visit: Visit): Promise<Answer> {
  const { form } = visit;
  form.requireProject(await findProject(visit.admin, visit.where, "reveal"));
  const kind = requireKind(visit.param("kind"));
  const read = kindPages[kind]?.reveal;
  if (read === undefined) throw new Refused("not_found", `The ${kind} are not shown here.`);
  const version = form.has("version") ? form.number("version") : undefined;
  return { secret: await read(visit, form.environment(), form.read("name"), version) };
}
