/** @jsxImportSource preact */
import type { ComponentChildren, VNode } from "preact";
import { lookalikes } from "../../core/words/lookalikes.ts";
import { formatTime } from "../../core/words/text.ts";
import { Ago, type Cells, counted, Moment, Named, Table, type Thing, Word } from "../../dashboard/parts/parts.tsx";
import { withQuery } from "../../dashboard/parts/paths.ts";
import { personText } from "../../record/entry.ts";
import { type AuditCounts, type Doings, units } from "./reads.ts";
import { EnvironmentOf, Names } from "./sentence.tsx";

const [barWidth, chartHeight] = [20, 80];

/**
 * Reads by machines as bars, and sentences that say the same.
 * @param isOfAll - whether somebody reads all entries, so that none are missing
 */
export function Chart({ counts, isOfAll }: { readonly counts: AuditCounts; readonly isOfAll: boolean }) {
  const { bars, isWhole, span, reads: total } = counts;
  const unit = units.get(span.unitMs) ?? "";
  const [first, last] = [bars[0]?.at ?? span.fromAt, span.endAt];
  const during = (
    <>
      {!isOfAll && "where you may read the audit, "}from <Moment at={first} /> to <Moment at={last} />
    </>
  );
  if (total === 0) return <p class="quiet">No reads by machines {during}.</p>;
  const most = bars.reduce((a, b) => (b.count > a.count ? b : a));
  const sum = `${isWhole ? "" : "At least "}${counted(total, "read")}`;
  const label = `Reads per ${unit}. ${sum} from ${formatTime(first)} to ${formatTime(last)}.`;
  return (
    <figure>
      <Bars bars={bars} label={label} />
      <figcaption class="quiet">
        {sum} by machines {during}. The most, {most.count.toLocaleString("en")}, in the {unit} from{" "}
        <Moment at={most.at} />.{unit !== "hour" && " Days are those of UTC."}
      </figcaption>
    </figure>
  );
}

/** Bars, and what they say in words. */
function Bars({ bars, label }: { readonly bars: AuditCounts["bars"]; readonly label: string }) {
  const most = Math.max(...bars.map(({ count }) => count));
  const yOf = (count: number) => chartHeight - (count / most) * chartHeight;
  return (
    <svg
      viewBox={`0 0 ${bars.length * barWidth} ${chartHeight}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      {bars.map(
        ({ at, count }, index) =>
          count > 0 && (
            <rect x={index * barWidth + 2} y={yOf(count)} width={barWidth - 4} height={chartHeight - yOf(count)}>
              <title>{`${formatTime(at)}: ${counted(count, "read")}`}</title>
            </rect>
          ),
      )}
    </svg>
  );
}

/** The project or the organization of an entry, and the environment. */
export function Where(entry: Pick<Doings, "organization" | "project" | "environment">) {
  const { project, organization } = entry;
  return organization === null ? null : [<Word>{project ?? organization}</Word>, " ", <EnvironmentOf entry={entry} />];
}

/** How many rows the table of {@link Who} has. */
const rowsMax = 50;

type ShownCounts = {
  readonly counts: AuditCounts;
  /** The filter, as the URL has it. */
  readonly typed: Readonly<Record<string, string | undefined>>;
  /** The names of keys and trusts by their ids. */
  readonly keys: ReadonlyMap<string, string>;
  readonly now: number;
};

/** Who did what how often, and when last. @param props - `children`: what comes before the table */
export function Who({ counts, typed, keys, now, children }: ShownCounts & { readonly children?: ComponentChildren }) {
  const all = counts.doings;
  if (counts.newestAt === undefined || counts.oldestAt === undefined) return null;
  const rows = all.slice(0, rowsMax);
  return (
    <details>
      <summary>
        <h2>Who, what and how often</h2>
      </summary>
      {children}
      <p class="quiet">
        Counted: {counts.isWhole ? "" : "the newest "}
        {counted(counts.entries, "entry", "entries")}, from <Moment at={counts.oldestAt} /> to{" "}
        <Moment at={counts.newestAt} />.{!counts.isWhole && " There are older ones: choose fewer days to count all."}
      </p>
      <Table caption="Who, what and how often" columns={columnsOf(rows, { typed, keys, now })} rows={rows} none="" />
      {all.length > rowsMax && (
        <p class="quiet">
          {counted(all.length - rowsMax, "row")} with fewer entries are not shown. Filter by a person, key or project.
        </p>
      )}
    </details>
  );
}

type OfActor = Pick<Doings, "actor">;

/** Who did it: a person, or a key or a trust by its name. Those of one look are marked. */
export function whoOf(rows: readonly OfActor[], keys: ReadonlyMap<string, string>): (row: OfActor) => VNode {
  const marks = lookalikes(rows.map((row) => thingOf(row, keys)));
  return (row) => {
    const type = row.actor.type === "person" ? undefined : row.actor.type;
    return <Named thing={thingOf(row, keys)} type={type} marks={marks} />;
  };
}

export function thingOf({ actor }: OfActor, keys: ReadonlyMap<string, string>): Thing {
  if (actor.type !== "person") return { id: actor.id, name: keys.get(actor.id) ?? actor.id };
  const { name, from } = actor;
  return { id: typeof from === "string" ? personText(actor) : `${from.subject} at ${from.issuer}`, name };
}

function columnsOf(rows: readonly Doings[], { typed, keys, now }: Omit<ShownCounts, "counts">): Cells<Doings> {
  return {
    Who: whoOf(rows, keys),
    Where: (row) => <Where {...row} />,
    Names: ({ names }) => <Names items={names.map((name) => keys.get(name) ?? name)} looked={typed["name"]} />,
    Times: ({ count, actor, project, organization, environment }) => {
      const isLogin = actor.type === "person" && actor.from === "os";
      const who = actor.type === "person" ? { [isLogin ? "login" : "person"]: actor.name } : { key: actor.id };
      const where = project === null ? {} : { project: `${organization}/${project}` };
      const query = { ...typed, ...who, ...where, environment: environment ?? typed["environment"] };
      return <a href={withQuery("/audit", query)}>{count}</a>;
    },
    Last: ({ lastAt }) => <Ago at={lastAt} now={now} />,
  };
}
