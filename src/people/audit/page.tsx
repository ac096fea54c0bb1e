/** @jsxImportSource preact */

import { dayMs, environments } from "../../core/names.ts";
import { Refused, unlessRefused } from "../../core/refused.ts";
import { jsonLine } from "../../core/visible.ts";
import { drawnFacts } from "../../dashboard/parts/drawn.tsx";
import {
  Actions,
  Ago,
  type Cells,
  Chips,
  counted,
  Facts,
  Field,
  FirstFew,
  joined,
  LoneLink,
  Moment,
  Name,
  Prose,
  Table,
  Warnings,
  Word,
} from "../../dashboard/parts/parts.tsx";
import { withQuery } from "../../dashboard/parts/paths.ts";
import type { Answer } from "../../dashboard/parts/route.ts";
import type { Visit } from "../../dashboard/parts/visit.ts";
import { auditActions, changeActions } from "../../kinds/people.ts";
import { pick } from "../desk/outcome.ts";
import { keyNames } from "../keys/keys.ts";
import { RightsChanged } from "../persons/rights-words.tsx";
import {
  type AuditFilter,
  type AuditRecord,
  auditPages,
  NamesFound,
  namesWith,
  recordBegins,
  showAudit,
  unreadable,
} from "./audit.ts";
import { verifyAudit } from "./audit-chain.ts";
import { Chart, Where, Who, whoOf } from "./audit-counts.tsx";
import { listWitnesses, proveAudit, provedUntil, type WitnessRecord } from "./audit-proof.ts";
import { AgainstRecord, Unread } from "./exceptions.tsx";
import { Damaged, wholeColumns } from "./operations.ts";
import { AuditCounts, spanOf } from "./reads.ts";
import { deedWords, kindOfAction, Names, verbOf } from "./sentence.tsx";

/** What links ask for, and nobody types. `item`: the whole name of what was read or changed. */
const exactFields = ["person", "login", "key", "item"] as const;

/** The fields of the filter, as the URL has them: a filtered page is a link. */
const fields = ["project", "name", "action", "environment", "since", "until", ...exactFields] as const;
type Typed = Readonly<Partial<Record<(typeof fields)[number], string>>>;

/** Choices of the filter that are several actions. To reveal a value is to read it. */
const wideActions: ReadonlyMap<string, readonly string[]> = new Map([
  ["all reads", auditActions.filter(isRead)],
  ["all changes", changeActions.filter((action) => !isRead(action))],
]);

function isRead(action: string): boolean {
  return /\.(read|reveal)$/.test(action);
}

/** The most entries of a page. */
const entriesMax = 200;

/** The newest entries that the filter finds. The first page counts them, too. */
export async function auditPage(visit: Visit): Promise<Answer> {
  const typed = typedIn(visit);
  // A filter that names something unknown is refused beside the typed text.
  const found = await unlessRefused(
    newest(visit, typed),
    ["forbidden", "invalid", "not_found", "ambiguous"],
    ({ message }) => message,
  );
  const now = visit.admin.now();
  const keys = await keyNames(visit.admin);
  // A filter that was refused may have the id of a key that this person may not see: its name is not said.
  const isRefused = typeof found === "string";
  const main = (
    <>
      <h2 class="unseen">Filter</h2>
      <FilterForm typed={typed} refusal={isRefused ? found : undefined} keys={isRefused ? new Map() : keys} />
      {typeof found !== "string" && (
        <>
          <div class="views">
            <Views typed={typed} now={now} />
            {found.counts && (
              <Who counts={found.counts} typed={typed} keys={keys} now={now}>
                {mayRead(found.filter) && <Chart counts={found.counts} isOfAll={visit.admin.rights === "operator"} />}
              </Who>
            )}
            {found.counts && (
              <Proved until={await provedUntil(visit.admin)} witnesses={await listWitnesses(visit.admin)} now={now} />
            )}
          </div>
          {visit.query("verify") && (await Verified(visit))}
          {found.named && <Named found={found.named} />}
          {await AgainstRecord(visit)}
          {found.entries.some(isDamaged) && <DamagedEntry />}
          <Unread damaged={found.damaged} />
          <h2 class="unseen">Entries</h2>
          <Table
            caption="Entries, newest first"
            columns={columnsOf(found.entries, keys, typed.name)}
            rows={found.entries}
            none={found.none}
            isPart
          />
          {found.older && <LoneLink to={withQuery("/audit", { ...typed, ...found.older })}>Older entries</LoneLink>}
        </>
      )}
    </>
  );
  const items = {
    "Verify the chain": withQuery("/audit", { ...typed, verify: "yes" }),
    Export: withQuery("/audit/export", typed),
  };
  return { title: "Audit", main, beside: <Actions items={items} quiet /> };
}

/** The typed text, wrong words too, so that the form can show it again. */
function typedIn(visit: Visit): Typed {
  return Object.fromEntries(fields.flatMap((field) => (visit.query(field) ? [[field, visit.query(field)]] : [])));
}

/** @throws Refused `invalid` that names the field */
function filterOf(visit: Visit, typed: Typed): AuditFilter {
  const { action, key, since, until, name, item, environment: _, ...same } = typed;
  const actions = wideActions.get(action ?? "") ?? (action === undefined ? undefined : [action]);
  if (actions?.some((one) => !auditActions.includes(one)))
    throw new Refused("invalid", `There is no action ${JSON.stringify(action)}.`);
  const [sinceAt, beforeAt] = [momentOf("From", since), momentOf("Until", until)];
  if (sinceAt !== undefined && beforeAt !== undefined && beforeAt <= sinceAt) {
    throw new Refused("invalid", "Until is not after From, so no entry can fit.");
  }
  const found = { nameOrActor: name, wholeName: item, keyId: key, actions, environment: visit.environment() };
  return { ...same, ...found, sinceAt, beforeAt };
}

/** @throws Refused `invalid` */
function momentOf(label: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const at = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?$/.test(text) ? Date.parse(`${text}Z`) : Number.NaN;
  // A day that does not exist, such as 2030-02-30, may be read as one of the next month.
  if (!Number.isNaN(at) && new Date(at).toISOString().startsWith(text)) return at;
  throw new Refused("invalid", `${label} ${JSON.stringify(text)} is not a time, such as 2030-01-31T12:00 in UTC.`);
}

/** A page of entries. The next one begins after an entry of this moment, so none is left out and none comes twice. */
async function newest(visit: Visit, typed: Typed) {
  const { admin } = visit;
  const asked = filterOf(visit, typed);
  const before = visit.query("before") === undefined ? undefined : visit.number("before");
  const filter = before === undefined ? asked : { ...asked, beforeAt: Math.min(before, asked.beforeAt ?? before) };
  const { nameOrActor: name, wholeName: item } = asked;
  const isItem = item === undefined ? undefined : (one: string) => one === item;
  const isCounted = name === undefined ? isItem : namesWith(name);
  const counts = before === undefined ? new AuditCounts(spanOf(admin.now(), asked), isCounted) : undefined;
  const named = name === undefined ? undefined : new NamesFound(name);
  const entries: AuditRecord[] = [];
  const after = visit.query("after");
  let isPast = after === undefined;
  let older: { readonly before: number; readonly after: string } | undefined;
  const damaged = new Damaged(admin);
  pages: for await (const page of auditPages(admin, filter, damaged.note, "newest first")) {
    for (const entry of page) {
      // A read of canaries is two rows of one name.
      const isIt = nameOf(entry) === after;
      isPast ||= isIt || (before !== undefined && entry.time < before - 1);
      if (!isPast || isIt) continue;
      named?.add([entry]);
      const last = entries.at(-1);
      const isFull = last !== undefined && entries.length >= entriesMax && nameOf(entry) !== nameOf(last);
      if (isFull) older ??= { before: last.time + 1, after: nameOf(last) };
      if (older === undefined) entries.push(entry);
      if (counts?.add(entry) !== true && older !== undefined) break pages;
    }
  }
  const words = "No entry that you may read fits this filter. Take a part of it away, or look at an earlier time.";
  const none = entries.length > 0 ? "" : [words, await recordBegins(admin, filter.sinceAt)].filter(Boolean).join(" ");
  return { filter, entries, none, damaged, older, counts, named };
}

function nameOf({ lane, seq }: AuditRecord): string {
  return `${lane}:${seq}`;
}

type ProvedProps = {
  readonly until: number | undefined;
  readonly witnesses: readonly WitnessRecord[];
  readonly now: number;
};

/** Until when entries are proved, until when each witness has signed, and which of them are away. */
function Proved({ until, witnesses, now }: ProvedProps) {
  const away = witnesses.filter(({ missingSince = now }) => missingSince < now - awayAfterMs);
  return (
    <>
      <small>
        {until === undefined
          ? "Nothing is proved: no notary has signed"
          : ["Proved until ", <Ago at={until} now={now} />]}
        {witnesses.map(({ name, until }) => (
          <>
            . Signed by the witness <Name>{name}</Name>
            {until === undefined ? ": nothing yet" : [" until ", <Ago at={until} now={now} />]}
          </>
        ))}
      </small>
      <Warnings
        items={away.map(({ name, missingSince = now, lossAt }) => {
          if (lossAt === undefined) {
            const since = " is away: it has not signed what the notary signed ";
            const later = ". Proofs of what came later do not have its signature.";
            return ["The witness ", <Name>{name}</Name>, since, <Ago at={missingSince} now={now} />, later];
          }
          const since = " has signed nothing since a loss was accepted ";
          const before = ". It vouches only for what came before. If it has signed entries that are lost, reset it.";
          return ["The witness ", <Name>{name}</Name>, since, <Ago at={lossAt} now={now} />, before];
        })}
      />
    </>
  );
}

/** The notary asks each minute, and waits 10 s. */
const awayAfterMs = 120_000;

/** Which names a part of a name has found, unless it is a whole one. */
function Named({ found: { part, count, names } }: { readonly found: NamesFound }) {
  if (names.length === 0) return null;
  return (
    <p>
      <Name>{part}</Name> is in {count}: <FirstFew items={names.map((name) => <Name>{name}</Name>)} max={10} />.
    </p>
  );
}

/** Whether a filter may find reads by machines. */
function mayRead({ actions }: AuditFilter): boolean {
  return actions?.some((action) => action.endsWith(".read")) ?? true;
}

/** The fields that are folded as long as they are empty. */
const rare = ["project", "environment", "since", "until"] as const;

/** Actions in words. Those that share their words say their code, too. */
const actionWords: ReadonlyMap<string, string> = new Map(
  [...Map.groupBy(auditActions, filterWords)].flatMap(([words, actions]) =>
    actions.map((action) => [action, actions.length > 1 ? `${words} (${action})` : words]),
  ),
);

function filterWords(action: string): string {
  const descriptor = kindOfAction(action);
  return descriptor === undefined ? deedWords({ action }) : `${verbOf(action) ?? "changed"} ${descriptor.kind}`;
}

/** On a phone it is folded unless a filter is set, or refused; on a wide screen it is always open. */
function FilterForm(props: {
  readonly typed: Typed;
  readonly refusal: string | undefined;
  readonly keys: ReadonlyMap<string, string>;
}) {
  const { typed, refusal, keys } = props;
  const isSet = Object.keys(typed).length > 0;
  return (
    <details class="folded" open={isSet || refusal !== undefined}>
      <summary>Filter the entries</summary>
      <form action="/audit" class="filters">
        <Field name="name" label="Name, person or key" value={typed.name} />
        <Field
          name="action"
          label="What"
          options={[...wideActions.keys(), ...auditActions]}
          words={actionWords}
          value={typed.action}
          any="everything"
        />
        <div class="send">
          <button type="submit">Filter</button>
          {isSet && <a href="/audit">Show everything</a>}
        </div>
        <details open={rare.some((field) => typed[field] !== undefined)}>
          <summary>More</summary>
          <div class="filters">
            <Field name="project" label="Project" value={typed.project} />
            <Field name="environment" label="Environment" options={environments} value={typed.environment} any="any" />
            <Field name="since" label="From (UTC)" type="datetime-local" value={typed.since} />
            <Field name="until" label="Until (UTC)" type="datetime-local" value={typed.until} />
          </div>
        </details>
        {exactFields.map((field) => {
          const asked = typed[field];
          if (asked === undefined) return null;
          // `keys` is empty if the filter was refused: it may have the id of a key that this person may not see.
          const who = <Word>{(field === "key" && keys.get(asked)) || asked}</Word>;
          return (
            <p>
              <input type="hidden" name={field} value={asked} />
              {field === "item"
                ? ["Only entries that name ", who]
                : ["Only what ", field === "login" && "the account ", who, " did"]}
              {field === "key" && ", and what was done to it"}.{" "}
              <a href={withQuery("/audit", { ...typed, [field]: undefined })}>
                {field === "item" ? "Everything" : "Everybody"}
              </a>
            </p>
          );
        })}
        <p role="alert" class="refusal">
          {refusal && <Prose>{refusal}</Prose>}
        </p>
      </form>
    </details>
  );
}

/** Links to what people look for most, beside what is filtered already. */
function Views({ typed, now }: { readonly typed: Typed; readonly now: number }) {
  const view = (words: string, change: Typed) => {
    const isHere = fields.every((field) => (change[field] ?? typed[field] ?? "") === (typed[field] ?? ""));
    return { words, to: withQuery("/audit", { ...typed, ...change }), isHere };
  };
  const since = (days: number) => ({ since: new Date(now - days * dayMs).toISOString().slice(0, 16), until: "" });
  const items = [
    ...[...wideActions.keys()].map((action) => view(action, { action })),
    view("last 24 hours", since(1)),
    ...[7, 30].map((days) => view(`last ${days} days`, since(days))),
  ];
  return <Chips label="What people look for most" items={items} />;
}

function columnsOf(
  entries: readonly AuditRecord[],
  keys: ReadonlyMap<string, string>,
  looked: string | undefined,
): Cells<AuditRecord> {
  return {
    Time: (entry) => (
      <a href={`/audit/entry/${encodeURIComponent(nameOf(entry))}`}>
        <Moment at={entry.time} isBelowDay />
      </a>
    ),
    Who: whoOf(entries, keys),
    Action: (entry) => <Deed entry={entry} />,
    Where: (entry) => <Where {...entry} />,
    Names: (entry) => <Names items={saidNames(entry, keys)} looked={looked} />,
  };
}

/** What was done, in the words of Today. A damaged entry says no more than that. */
function Deed({ entry }: { readonly entry: AuditRecord }) {
  return isDamaged(entry) ? <code>{entry.action}</code> : <span title={entry.action}>{deedWords(entry)}</span>;
}

/** The names of an entry, without its first one if that is the number of a request or of a list of persons. */
function saidNames({ names, action }: AuditRecord, keys: ReadonlyMap<string, string>): readonly string[] {
  const said = /^(?:people|request)\./.test(action) && names.length > 1 ? names.slice(1) : names;
  return said.map((name) => keys.get(name) ?? name);
}

/** One entry, whole. */
export async function entryPage(visit: Visit): Promise<Answer> {
  const { admin } = visit;
  const entry = await showAudit(admin, visit.param("entry"));
  const { actor, time, added = [], changed = [], deleted = [] } = entry;
  const [, name = "", ...others] = entry.names;
  const touched = { added, changed, deleted };
  const done = ["TIME", "ACTOR", "ACTION", "WHERE", "NAMES", "ADDED", "CHANGED", "DELETED", "CANARIES"];
  const how = ["TOKEN", "CLIENT", "USER AGENT", "REQUEST", "KEY", "ENTRY"];
  const facts = drawnFacts(entry, pick(await wholeColumns(admin), ...done, ...how), admin.now());
  const names = saidNames(entry, await keyNames(admin)).map((name) => <Name>{name}</Name>);
  const said = {
    Action: [<Deed entry={entry} />, " ", <code>{entry.action}</code>],
    Names: names.length > 0 && joined(names),
    // Whose rights they are is said if it changed those of several persons.
    ...(entry.action === "people.write" && {
      Added: null,
      Deleted: null,
      Changed: added.length + deleted.length > 0 && (
        <RightsChanged names={touched} name={others.length === 0 ? name : ""} />
      ),
    }),
  };
  const isProved = !isDamaged(entry) && time < ((await provedUntil(admin)) ?? 0);
  const main = (
    <>
      {isDamaged(entry) && <DamagedEntry />}
      <Facts facts={{ ...facts, Time: <Moment at={time} />, ...said }} />
      {isProved && <LoneLink to={`/audit/proof/${encodeURIComponent(nameOf(entry))}`}>Its proof, as a file</LoneLink>}
      {!isProved && !isDamaged(entry) && <p class="quiet">It can be proved when the notary has taken it in.</p>}
      {actor.type !== "person" && visit.may("see", "keys") && (
        <LoneLink to={`/keys/${actor.id}`}>The {actor.type}</LoneLink>
      )}
      <LoneLink to="/audit">All entries</LoneLink>
    </>
  );
  return { title: "An entry of the audit", main };
}

/** The proof of one entry, as `keyhole audit prove` writes it. */
export async function proofFile(visit: Visit): Promise<Answer> {
  const proofs = await proveAudit(visit.admin, visit.param("entry"));
  const chunks = async function* () {
    yield proofs.map(jsonLine).join("");
  };
  return { name: "entry.proof", type: "application/jsonl", chunks: chunks() };
}

function isDamaged({ action }: AuditRecord): boolean {
  return action === unreadable;
}

/** Explains `unreadable`, and says what to do. */
function DamagedEntry() {
  return (
    <p class="warning">
      A part of the audit is damaged and cannot be read: it is shown as <Name>{unreadable}</Name>.{" "}
      <a href="/audit?verify=yes">Verify the chain</a> to see which entries it held.
    </p>
  );
}

/** Whether each entry is as it was written. It walks the whole chain, which takes as long as that is. */
async function Verified({ admin }: Visit) {
  const { entries, lanes, flaws, moreFlaws, accepted } = await verifyAudit(admin);
  const more = moreFlaws > 0 ? [`${counted(moreFlaws, "more flaw")}.`] : [];
  return (
    <>
      <p>
        <strong>{flaws.length === 0 ? "Every entry is unchanged" : "The audit does not verify"}</strong>:{" "}
        {counted(entries, "entry", "entries")} in {counted(lanes, "lane")} checked.
        {accepted.length > 0 && ` ${counted(accepted.length, "known loss", "known losses")} accepted.`} Only{" "}
        <Name>keyhole audit verify --checkpoint</Name>, with the server's log, shows whether entries are missing that no
        notary has signed.
      </p>
      <Warnings items={[...flaws.map(({ sentence }) => <Word>{sentence}</Word>), ...more]} />
    </>
  );
}

/** The filtered entries, oldest first, as `keyhole audit export` writes them. */
export async function auditExport(visit: Visit): Promise<Answer> {
  const filter = filterOf(visit, typedIn(visit));
  const damaged = new Damaged(visit.admin);
  const pages = auditPages(visit.admin, filter, damaged.note);
  // A filter that names nothing is refused here: once the file has begun, nothing can be refused any more.
  const first = await pages.next();
  const textOf = (page: readonly AuditRecord[]) => page.map((entry) => jsonLine(entry)).join("");
  const chunks = async function* () {
    if (!first.done) yield textOf(first.value);
    for await (const page of pages) yield textOf(page);
    // The browser must not save a file that looks whole.
    if (damaged.problem !== undefined) throw damaged.problem;
  };
  return { name: "audit.jsonl", type: "application/jsonl", chunks: chunks() };
}
