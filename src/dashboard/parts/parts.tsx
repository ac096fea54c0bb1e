/** @jsxImportSource preact */
import { type ComponentChildren, isValidElement, type VNode } from "preact";
import type { Cut } from "../../core/cut.ts";
import { type Environment, isEnvironment } from "../../core/names.ts";
import { excerpt, visibleLines } from "../../core/visible.ts";
import { inWords } from "../../core/words/ago.ts";
import { machinesOnlySentence, whoStillReads } from "../../core/words/machines-only.ts";
import { isSteering } from "../../core/words/steering.ts";
import { formatTime } from "../../core/words/text.ts";

/* What pages are made of. Preact escapes all stored text on them, and `Word` makes it visible. */

/** Text in its own direction. A word that is too long for the column of a table may break anywhere, and no other does. */
export function Stored({ children }: { readonly children: string }) {
  return <bdi class={/[^\s-]{17}/.test(children) ? "wide" : undefined}>{children}</bdi>;
}

/**
 * Text that people or machines chose, such as a reason. It cannot look like anything else on the page.
 * @param to - the page that it leads to
 */
export function Word({ children, to }: { readonly children: string; readonly to?: string | undefined }) {
  const word = <Stored>{excerpt(children)}</Stored>;
  return to === undefined ? word : <a href={to}>{word}</a>;
}

/** The name of an item, in the letters of code. @param to - the page that it leads to */
export function Name({ children, to }: { readonly children: string; readonly to?: string | undefined }) {
  const name = (
    <>
      <code>
        <Stored>{excerpt(children)}</Stored>
      </code>
      <Mixed>{children}</Mixed>
    </>
  );
  return to === undefined ? name : <a href={to}>{name}</a>;
}

/** A sentence, with what stands between backticks in the letters of code. */
export function Prose({ children }: { readonly children: string }) {
  return <>{children.split("`").map((part, at) => (at % 2 === 1 ? <code>{part}</code> : part))}</>;
}

/** Warns of a name that mixes alphabets: it may look like another one. */
function Mixed({ children }: { readonly children: string }) {
  const isMixed = /\p{Script=Latin}/u.test(children) && /[\p{Script=Cyrillic}\p{Script=Greek}]/u.test(children);
  return isMixed ? <span class="missing"> (letters of two alphabets)</span> : null;
}

/** A key, a trust, a person or a project. A person's name is the id. */
export type Thing = { readonly id: string; readonly name: string };

/**
 * A name that others may have, too. One that looks like another carries the first letters of its id.
 * @param type - stands before it where a list has several, so that no name of a key looks like a person's
 * @param marks - `lookalikes` of the list that it is in
 */
export function Named(props: {
  readonly thing: Thing;
  readonly type?: string | undefined;
  readonly marks?: ReadonlyMap<string, string>;
  readonly to?: string | undefined;
}) {
  const { thing, type, marks, to } = props;
  const mark = marks?.get(thing.id);
  return (
    <>
      {type && <span class="quiet">{type} </span>}
      <Word to={to}>{thing.name}</Word>
      <Mixed>{thing.name}</Mixed>
      {mark !== undefined && thing.id === thing.name && <Alike />}
      {mark !== undefined && thing.id !== thing.name && (
        <small>
          {" "}
          (id <code>{mark}…</code>)
        </small>
      )}
    </>
  );
}

/** Beside a name that looks like another one, of things without ids. */
export function Alike() {
  return <span class="missing"> looks like another</span>;
}

/**
 * Says of a variable that it would steer the programs that get it, such as `LD_PRELOAD`. Every team has GITHUB_TOKEN.
 */
export function Steers({ name }: { readonly name: string }) {
  const steers = isSteering(name, "linux") || isSteering(name, "win32");
  return steers && name !== "GITHUB_TOKEN" ? (
    <small title="Programs that get it take it as a setting of their own"> steers programs</small>
  ) : null;
}

/** Parts of a sentence, with a comma between them. */
export function joined(parts: readonly ComponentChildren[], between = ", "): ComponentChildren {
  return parts.map((part, at) => [at > 0 && between, part]);
}

/** The first items, and how many others there are. */
export function FirstFew({ items, max = 3 }: { readonly items: readonly ComponentChildren[]; readonly max?: number }) {
  return (
    <>
      {joined(items.slice(0, max))}
      {items.length > max && ` and ${counted(items.length - max, "other")}`}
    </>
  );
}

/** A link that stands alone. */
export function LoneLink({ to, children }: { readonly to: string; readonly children: ComponentChildren }) {
  return (
    <p>
      <a href={to}>{children}</a>
    </p>
  );
}

/** Says before somebody types that it will take a recent sign-in. They come back to the same page. */
export function SignInAgain({ to }: { readonly to: string }) {
  return <LoneLink to="/sign-in?again">Sign in again to {to}</LoneLink>;
}

/**
 * Links that look like buttons.
 * @param items - where each of them leads, by its words; the first is what people come for
 */
export function Actions({
  items,
  quiet,
}: {
  readonly items: Readonly<Record<string, string>>;
  readonly quiet?: boolean;
}) {
  return (
    <p class="actions">
      {Object.entries(items).map(([words, to], at) => (
        <a class={quiet || at > 0 ? "button quiet" : "button"} href={to}>
          {words}
        </a>
      ))}
    </p>
  );
}

/** Environments, with a blank between them. */
export function Envs({ values }: { readonly values: readonly Environment[] }) {
  return (
    <>
      {joined(
        values.map((value) => <Env value={value} />),
        " ",
      )}
    </>
  );
}

/** An environment. Production looks different, and says its name like the others. */
export function Env({ value }: { readonly value: Environment }) {
  return <span class={`env ${value}`}>{value}</span>;
}

/** A moment, as people say it. The script keeps it true, and says its exact time under the pointer or after a tap. */
export function Ago({ at, now }: { readonly at: number | null; readonly now: number }) {
  if (at === null || Number.isNaN(new Date(at).getTime())) return <>never</>;
  return <time dateTime={formatTime(at)}>{inWords(at - now)}</time>;
}

/**
 * A moment in UTC. The script shows it in the reader's zone.
 * @param isBelowDay - of rows in their order: the script puts each day above them, and leaves the time of day
 */
export function Moment({ at, isBelowDay }: { readonly at: number; readonly isBelowDay?: boolean }) {
  return (
    <time dateTime={formatTime(at)} data-day={isBelowDay}>
      {formatTime(at)}
    </time>
  );
}

/**
 * The class of a cell of a long table that says when something changed, or `missing`: the style sheet draws a dot.
 * @param group - from 1: what has the same value has the same letter. Null: nothing was compared
 */
export function thereClass(isThere: boolean, environment: string, group: number | null = null): string {
  if (isThere) return group === null ? "is" : ("abc"[group - 1] ?? "is");
  return environment === "production" ? "no missing" : "no";
}

/** Such as `1 key` or `3 keys`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** What a page says if there is nothing to show, and what to do next. */
export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <div class="empty">{children}</div>;
}

/** Who can read, beside those that a page lists. */
export function Operators() {
  return <p class="quiet">Operators can read everything: whoever has the root key and the database.</p>;
}

/** What a person must be warned of, if there is anything. Text is a {@link Prose}. */
export function Warnings({ items }: { readonly items: readonly ComponentChildren[] }) {
  if (items.length === 0) return null;
  return (
    <ul class="warning">
      {items.map((item) => (
        <li>{typeof item === "string" ? <Prose>{item}</Prose> : item}</li>
      ))}
    </ul>
  );
}

/** Facts about one thing; empty ones are left out. Text is shown as a {@link Word}. */
export function Facts({ facts }: { readonly facts: Readonly<Record<string, ComponentChildren>> }) {
  const known = Object.entries(facts).filter(([, fact]) => fact);
  return (
    <dl class="facts">
      {known.map(([what, fact]) => (
        <div>
          <dt>{what}</dt>
          <dd>{typeof fact === "string" ? <Word>{fact}</Word> : fact}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A list under its heading, or a sentence if there is nothing to list. */
export function Listed(props: {
  readonly title: ComponentChildren;
  readonly none: string;
  readonly items: Cut<ComponentChildren>;
  /** What stands for the others, if there are more. */
  readonly more: ComponentChildren;
  /** What could not be read, in sentences. */
  readonly unread?: readonly string[];
}) {
  const { title, none, unread = [] } = props;
  const [items, more] = props.items.with(props.more);
  return (
    <section>
      <h2>{title}</h2>
      <Warnings items={unread.map(visibleLines)} />
      {items.length > 0 && (
        <ul>
          {items.map((one) => (
            <li>{one}</li>
          ))}
        </ul>
      )}
      {more !== undefined && <p>{more}</p>}
      {items.length + unread.length === 0 && more === undefined && <p class="quiet">{none}</p>}
    </section>
  );
}

type Touched = Readonly<Record<"added" | "changed" | "deleted", readonly string[]>>;

/** What a change does to names, without what it does to none. */
export function changesOf({ added, changed, deleted }: Touched): readonly (readonly [string, readonly string[]])[] {
  return Object.entries({ added, changed, deleted }).filter(([, names]) => names.length > 0);
}

/** The names that a change added, changed or deleted, or would. A person can open the rest of a long list. */
export function Changed({ names: all }: { readonly names: Touched }) {
  const changes = changesOf(all);
  if (changes.length === 0) return null;
  return (
    <ul>
      {changes.map(([what, changed]) => (
        <li>
          {what === "deleted" ? <span class="missing">deleted</span> : what}:{" "}
          <Collapsed items={changed.map((name) => <Name>{name}</Name>)} max={20} />
        </li>
      ))}
    </ul>
  );
}

/** The first items, and the others, which a person can open. */
export function Collapsed(props: {
  readonly items: readonly ComponentChildren[];
  readonly max: number;
  readonly between?: string;
}) {
  const { items, max, between = ", " } = props;
  const rest = items.slice(max);
  return (
    <>
      {joined(items.slice(0, max), between)}
      {rest.length > 0 && (
        <details>
          <summary>and {counted(rest.length, "other")}</summary>
          {joined(rest, between)}
        </details>
      )}
    </>
  );
}

/** One of the parts of a list that people may look at alone. */
export type Chip = { readonly words: string; readonly count?: number; readonly to: string; readonly isHere: boolean };

/** Leads to the parts of a list, each with its count. @param label - what the list is of */
export function Chips(props: {
  readonly label: string;
  readonly items: readonly Chip[];
  readonly children?: ComponentChildren;
}) {
  const { label, items, children } = props;
  return (
    <nav class="chips" aria-label={label}>
      {items.map(({ words, count, to, isHere }) => (
        <a href={to} aria-current={isHere ? "page" : undefined}>
          {words}
          {count !== undefined && [" ", <b>{count.toLocaleString("en")}</b>]}
        </a>
      ))}
      {children}
    </nav>
  );
}

/** The cells of a row, by the headings of their columns. A number stands at the right. */
export type Cells<T> = Readonly<Record<string, (row: T) => ComponentChildren>>;

/** A column for each environment. */
export function environmentColumns<T>(
  columns: readonly Environment[],
  cell: (row: T, environment: Environment) => ComponentChildren,
): Cells<T> {
  return Object.fromEntries(columns.map((environment) => [environment, (row: T) => cell(row, environment)]));
}

export type TableProps<T> = {
  readonly caption: string;
  readonly columns: Cells<T>;
  readonly rows: readonly T[];
  /** What to say and do next if there are no rows. */
  readonly none: ComponentChildren;
  /** What people can filter, if they can. */
  readonly filter?: string;
  /** What the filter searches; by default, the text of the first cell. It finds whole words of marked cells, too. */
  readonly nameOf?: (row: T) => string;
  /** What stands on the line of the filter. */
  readonly tools?: ComponentChildren;
  /** What the style sheet calls a cell. */
  readonly classOf?: (row: T, heading: string) => string | undefined;
  /** Whether it may have thousands of rows: then browsers lay out only those that are seen. */
  readonly isLong?: boolean;
  /** Whether other pages have more rows, so that sorting these would mislead. */
  readonly isPart?: boolean;
  /** What rows that follow each other have in common. Of at least forty rows, those of one group can be folded. */
  readonly groupOf?: ((row: T) => string | undefined) | undefined;
};

/**
 * A table that people can sort by the moments or the texts in its cells. On a phone it turns into cards, and each cell
 * says its heading.
 */
export function Table<T>(props: TableProps<T>) {
  const { caption, columns, rows, none, filter, tools, isLong = false, isPart, groupOf } = props;
  const line = (tools || (filter && rows.length > 0)) && (
    <div class="filter">
      {filter && rows.length > 0 && (
        <>
          <Filter what={filter} />
          <kbd title="The key / goes to the filter">/</kbd>
          <output class="count" />
        </>
      )}
      {tools}
    </div>
  );
  if (rows.length === 0) {
    return (
      <>
        {line}
        <Empty>{none}</Empty>
      </>
    );
  }
  const [first] = rows;
  return (
    <>
      {line}
      <table class={isLong ? `long${rows.length > wholeRowsMax ? " lazy" : ""}` : undefined}>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr data-sort={isPart ? undefined : true}>
            {Object.entries(columns).map(([heading, cell]) => (
              <th scope="col" class={typeof cell(first as T) === "number" ? "num" : undefined}>
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        {bodiesOf(rows, isLong && rows.length > wholeRowsMax ? lazyRows : rows.length, groupOf).map((body) => (
          <tbody data-group={body.group}>
            {body.count > 0 && (
              <tr class="group">
                <th scope="rowgroup" colSpan={Object.keys(columns).length}>
                  {body.group}… <b>{body.count.toLocaleString("en")}</b>
                </th>
              </tr>
            )}
            {body.rows.map((row) => (
              <Row {...props} row={row} />
            ))}
          </tbody>
        ))}
      </table>
    </>
  );
}

/**
 * Of a longer table, a browser lays out some rows once they are nearly seen. Until then Chromium's accessibility tree does
 * not have them, so a shorter table is laid out as a whole.
 */
const wholeRowsMax = 200;
const lazyRows = 50;

/** Rows of one group, or of none. `count`: how many the group has, if it begins here. */
type RowGroup<T> = { readonly group: string | undefined; readonly count: number; readonly rows: T[] };

/**
 * A group has at least three rows, and at least a 200th of all: browsers take long to lay out thousands of groups. A short
 * table, or one whose rows are all of one group, has none.
 */
function bodiesOf<T>(rows: readonly T[], size: number, groupOf: (row: T) => string | undefined = () => undefined) {
  const sizes = Map.groupBy(rows, groupOf);
  const least = Math.max(3, rows.length / 200);
  const bodies: RowGroup<T>[] = [];
  for (const row of rows) {
    const name = groupOf(row);
    const count = sizes.get(name)?.length ?? 0;
    const group = rows.length >= 40 && count >= least && count < rows.length ? name : undefined;
    const last = bodies.at(-1);
    const isNext = last !== undefined && last.group === group;
    if (isNext && last.rows.length < size) last.rows.push(row);
    else bodies.push({ group, count: isNext || group === undefined ? 0 : count, rows: [row] });
  }
  return bodies;
}

function Row<T>({ row, columns, nameOf, classOf }: TableProps<T> & { readonly row: T }) {
  return (
    <tr data-name={nameOf?.(row)}>
      {Object.keys(columns).map((heading, at) => {
        const cell = columns[heading]?.(row);
        if (at === 0) return <th scope="row">{cell}</th>;
        const name = classOf?.(row, heading) ?? (typeof cell === "number" ? "num" : undefined);
        return (
          <td class={isNone(cell) ? `${name ?? ""} nil`.trim() : name} data-heading={heading}>
            {cell}
          </td>
        );
      })}
    </tr>
  );
}

/** Whether a cell says 0 or never, which a phone leaves out. */
function isNone(cell: ComponentChildren): boolean {
  return (
    cell === 0 ||
    (isValidElement(cell) && cell.type === Ago && (cell as VNode<{ at: number | null }>).props.at === null)
  );
}

/** A field that filters a list. If it has a name, its form sends it. If not, it is in no form, and Enter sends nothing. */
export function Filter(props: { readonly what: string; readonly name?: string; readonly value?: string }) {
  const { what, name, value } = props;
  const isLone = name === undefined || undefined;
  return (
    <label>
      <span class="unseen">Filter {what}</span>
      <input
        type="search"
        placeholder={`Filter ${what}`}
        name={name}
        value={value}
        form={isLone && ""}
        data-filter={isLone}
        {...typedAsItIs}
      />
    </label>
  );
}

/**
 * A form that changes something. Its script sends it and shows a refusal beside the button, so that nothing typed is
 * lost; without the script the browser does.
 * @param secret - whether the answer is a secret, which the script puts into the form's output
 */
export function Change(props: {
  readonly action: string;
  readonly button: string;
  readonly children?: ComponentChildren;
  readonly secret?: "once";
  readonly danger?: boolean;
  readonly hidden?: Readonly<Record<string, string | number | readonly string[]>>;
  readonly quiet?: boolean;
  /** What stands before the button, on its line. */
  readonly first?: ComponentChildren;
  /** More buttons. */
  readonly beside?: ComponentChildren;
  /** A choice that is made by a button each, after the words of `button`. */
  readonly choice?: ChoiceOf;
  /** The columns of the table in it below which the script puts fields into a row: one is edited there. */
  readonly rows?: readonly string[];
}) {
  const { action, button, children, secret, danger, hidden = {}, quiet, first, beside, choice, rows } = props;
  return (
    <form method="post" action={action} data-change data-secret={secret} data-rows={rows?.join(" ")} autocomplete="off">
      {Object.entries(hidden).flatMap(([name, values]) =>
        [values].flat().map((value) => <input type="hidden" name={name} value={value} />),
      )}
      {children}
      <div class="send">
        {first}
        {choice === undefined ? (
          <button type="submit" class={danger ? "danger" : quiet ? "quiet" : undefined}>
            {button}
          </button>
        ) : (
          <Choice words={button} {...choice} />
        )}
        {beside}
        <span role="alert" class="refusal" />
      </div>
      {secret && <output class="secret" />}
    </form>
  );
}

/** A field and what may be chosen. */
type ChoiceOf = { readonly name: string; readonly options: readonly string[]; readonly value?: string | undefined };

/** Buttons that send a form, each with a choice of its own. */
function Choice({ words, name, options, value }: ChoiceOf & { readonly words: string }) {
  return (
    <>
      <span>{words}</span>
      {options.map((option) => (
        <button
          type="submit"
          name={name}
          value={option}
          class={option === value ? undefined : "quiet"}
          aria-label={`${words} ${option}`}
        >
          {option}
        </button>
      ))}
    </>
  );
}

/** For fields of names and values: a browser changes nothing that is typed there, and keeps none of it. */
export const typedAsItIs = { autocomplete: "off", autocapitalize: "none", spellcheck: false } as const;

/**
 * A labelled control with, below it, what may be put there: a line to type in; with `rows`, a text; with `options`, a
 * list to choose one of.
 */
export function Field(props: {
  readonly name: string;
  readonly label: ComponentChildren;
  readonly help?: string;
  /** The id of the control, if the page has several of this name. */
  readonly id?: string;
  readonly rows?: number;
  /** What one may choose; a field for text without it. */
  readonly options?: readonly string[];
  /** What the options mean, if that is not what they are called. */
  readonly words?: ReadonlyMap<string, string>;
  /** The present text or choice. */
  readonly value?: string | undefined;
  /** The stored text, for `Form.touched`. */
  readonly stored?: string | undefined;
  /** The words for choosing none, if one may. */
  readonly any?: string;
  readonly type?: "date" | "datetime-local";
  readonly required?: boolean;
  readonly maxLength?: number;
  /** Whether it is for sentences, which begin with a capital. */
  readonly isProse?: true;
}) {
  const { name, label, help, id = name, rows, isProse, options, words, stored, value = stored, any, ...rest } = props;
  const control = { id, name, "aria-describedby": help && `${id}-help`, ...rest };
  const typing = { ...typedAsItIs, ...(isProse && { autocapitalize: "sentences" as const }) };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {options ? (
        <select {...control}>
          {any !== undefined && <option value="">{any}</option>}
          {options.map((option) => (
            <option value={option} title={words?.has(option) ? option : undefined} selected={option === value}>
              {words?.get(option) ?? option}
            </option>
          ))}
        </select>
      ) : rows ? (
        <textarea {...control} rows={rows} {...typing}>
          {value}
        </textarea>
      ) : (
        <input {...control} value={value} {...typing} />
      )}
      {stored !== undefined && <input type="hidden" name={`shown.${name}`} value={stored} />}
      {help && <small id={`${id}-help`}>{help}</small>}
    </div>
  );
}

/** The field for the name of a new item or key. @param asked - a name that is there already */
export function NewName({ asked, help }: { readonly asked?: string | undefined; readonly help: string }) {
  return <Field name="name" label="Name" help={help} value={asked} required maxLength={255} />;
}

/** Lines for a shell, with a button that copies them. @param id - of the lines */
export function ShellLines({ id, children }: { readonly id: string; readonly children: string }) {
  return (
    <div class="shell">
      <pre id={id}>{visibleLines(children)}</pre>
      <button type="button" class="quiet" data-copies={id}>
        Copy
      </button>
    </div>
  );
}

/** A form that shows the page for what is chosen in its fields. */
export function Chooser({ button, children }: { readonly button: string; readonly children: ComponentChildren }) {
  return (
    <form class="actions">
      {children}
      <button type="submit" class="quiet">
        {button}
      </button>
    </form>
  );
}

/** A box to check, with its label. `Form.has` reads whether it is checked. */
export function Box(props: {
  readonly name: string;
  readonly value?: string;
  readonly checked?: boolean;
  readonly children: ComponentChildren;
}) {
  const { name, value = "yes", checked, children } = props;
  return (
    <label>
      <input type="checkbox" name={name} value={value} checked={checked} />
      {children}
    </label>
  );
}

/** The box that shows the values that are typed in its form. */
export function ShowTyped() {
  return <Box name="show">Show what is typed</Box>;
}

/** The box for a new item that no person is to read. */
export function MachinesOnly() {
  return <Box name="machinesOnly">What is written here is for machines only until it is deleted: {whoStillReads}</Box>;
}

/** What is said of such an item. */
export function MachinesOnlyNote() {
  return <p class="quiet">{machinesOnlySentence}</p>;
}

/** A box that the script lets check all boxes of this name that the table below its line shows. */
export function ChooseAll({ name }: { readonly name: string }) {
  return (
    <label>
      <input type="checkbox" data-all={name} />
      Choose all that are shown
    </label>
  );
}

/** Boxes to check. `Form.all` reads which are checked, or `Form.environments`. */
export function Boxes(props: {
  readonly legend: string;
  readonly name: string;
  readonly options: readonly string[];
  readonly checked?: readonly string[];
  /** What the options mean, if that is not what they are called. Each is a {@link Prose}. */
  readonly words?: Readonly<Record<string, string>>;
}) {
  const { legend, name, options, checked = [], words } = props;
  return (
    <fieldset>
      <legend>{legend}</legend>
      {options.map((option) => (
        <Box name={name} value={option} checked={checked.includes(option)}>
          {words ? (
            <Prose>{words[option] ?? option}</Prose>
          ) : isEnvironment(option) ? (
            <Env value={option} />
          ) : (
            <code>{option}</code>
          )}
        </Box>
      ))}
    </fieldset>
  );
}

/**
 * A person who changes production types the name of the thing that they change: `Form.requireAgain` compares it.
 * @param name - left out if the same form asks for it
 * @param id - of the field, if the page has several
 */
export function NameAgain(props: { readonly name?: string | undefined; readonly what: string; readonly id?: string }) {
  const { name, what, id = "again" } = props;
  const label = [`For production, type the ${what} again`, name !== undefined && [": ", <Name>{name}</Name>]];
  return <Field id={id} name="again" label={label} />;
}
