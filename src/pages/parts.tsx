/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { type Environment, isEnvironment } from "../core/names.ts";
import { excerpt } from "../core/visible.ts";

/* What pages are made of. Whatever they show of stored text is escaped by Preact, and made visible by `Word`. */

/** Text that people or machines chose, such as a name or a reason. It cannot look like anything else on the page. */
export function Word({ children }: { readonly children: string }) {
  return <bdi>{excerpt(children)}</bdi>;
}

/** The name of an item, in the letters of code. */
export function Name({ children }: { readonly children: string }) {
  return (
    <code>
      <bdi>{excerpt(children)}</bdi>
    </code>
  );
}

/** An environment. Production looks different, and says its name like the others. */
export function Env({ of }: { readonly of: Environment }) {
  return <span class={`env ${of}`}>{of}</span>;
}

/** A moment, as people say it. The script shows its exact time to whoever points at it. */
export function Ago({ at, now }: { readonly at: number | null; readonly now: number }) {
  if (at === null || Number.isNaN(new Date(at).getTime())) return <>never</>;
  const exact = `${new Date(at).toISOString().slice(0, 19)}Z`;
  return <time dateTime={exact}>{inWords(at - now)}</time>;
}

/** Such as `3 days ago` or `in 2 hours`. @param ms - from now; the past is below zero */
function inWords(ms: number): string {
  const size = Math.abs(ms);
  const [count, unit] =
    size < 60_000
      ? [0, ""]
      : size < 3_600_000
        ? [Math.floor(size / 60_000), "minute"]
        : size < 2 * 86_400_000
          ? [Math.floor(size / 3_600_000), "hour"]
          : [Math.floor(size / 86_400_000), "day"];
  if (count === 0) return ms <= 0 ? "just now" : "in a moment";
  const words = counted(count, unit);
  return ms < 0 ? `${words} ago` : `in ${words}`;
}

/** Such as `1 key` or `3 keys`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** Such as `development, staging and production`. */
export function listed(words: readonly string[]): string {
  return new Intl.ListFormat("en-GB").format(words);
}

/** What a page says if there is nothing to show, and what to do next. */
export function Empty({ children }: { readonly children: ComponentChildren }) {
  return <div class="empty">{children}</div>;
}

/** What there is to know of one thing. */
export function Facts({ of }: { readonly of: Readonly<Record<string, ComponentChildren>> }) {
  return (
    <dl class="facts">
      {Object.entries(of).map(([what, fact]) => (
        <div>
          <dt>{what}</dt>
          <dd>{fact}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A column of a {@link Table}. */
export type Column<T> = {
  readonly heading: string;
  readonly cell: (row: T) => ComponentChildren;
  /** Whether people can sort by it: by `sortBy`, or else by the moment or the text in the cell. */
  readonly isSorted?: boolean;
  readonly sortBy?: (row: T) => string | number;
  readonly class?: string;
};

/**
 * A table that turns into cards on a phone, where each cell says its heading.
 * @param id - if people can filter it: what {@link Filter} names
 * @param nameOf - what the filter searches; by default, the text of the first cell
 * @param isLong - whether it may have thousands of rows: then browsers lay out only those that are seen
 */
export function Table<T>(props: {
  readonly caption: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly id?: string;
  readonly nameOf?: (row: T) => string;
  readonly isLong?: boolean;
}) {
  const { caption, columns, rows, id, nameOf, isLong } = props;
  return (
    <table id={id} class={isLong ? `long of-${columns.length}` : undefined}>
      <caption class="unseen">{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ heading, sortBy, isSorted, class: name }) => (
            <th scope="col" class={name}>
              {sortBy || isSorted ? (
                <button type="button" class="sort" data-sort>
                  {heading}
                </button>
              ) : (
                heading
              )}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr data-name={nameOf?.(row)}>
            {columns.map((column, at) => {
              const cell = {
                class: column.class,
                "data-heading": column.heading,
                "data-value": column.sortBy?.(row),
              };
              return at === 0 ? (
                <th scope="row" {...cell}>
                  {column.cell(row)}
                </th>
              ) : (
                <td {...cell}>
                  <div>{column.cell(row)}</div>
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A field that filters a table while typing. `/` goes there. */
export function Filter({ table, what }: { readonly table: string; readonly what: string }) {
  return (
    <p class="filter">
      <label>
        <span class="unseen">Filter {what}</span>
        <input type="search" placeholder={`Filter ${what}`} data-filter={table} autocomplete="off" spellcheck={false} />
      </label>
      <kbd title="The key / goes to the filter">/</kbd>
      <output class="count" data-count={table} />
    </p>
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
  readonly secret?: "shown" | "copied" | "once";
  readonly danger?: boolean;
  readonly hidden?: Readonly<Record<string, string | number>>;
  /** What a screen reader says in place of the button's words. */
  readonly label?: string;
  readonly inline?: boolean;
}) {
  const { action, button, children, secret, danger, hidden = {}, label, inline } = props;
  return (
    <form
      method="post"
      action={action}
      class={inline ? "inline" : undefined}
      data-change
      data-secret={secret}
      autocomplete="off"
    >
      {Object.entries(hidden).map(([name, value]) => (
        <input type="hidden" name={name} value={value} />
      ))}
      {children}
      <div class="send">
        <button type="submit" class={danger ? "danger" : inline ? "quiet" : undefined} aria-label={label}>
          {button}
        </button>
        <span role="alert" class="refusal" />
      </div>
      {secret && secret !== "copied" && <output class="secret" />}
    </form>
  );
}

/**
 * A labelled control with, below it, what may be put there: a line to type in; with `rows`, a text; with `of`, a list to
 * choose one of.
 */
export function Field(props: {
  readonly name: string;
  readonly label: ComponentChildren;
  readonly help?: string;
  /** Of the control, if the page has several of this name. */
  readonly id?: string;
  readonly rows?: number;
  readonly of?: readonly string[];
  /** What is there already, or is chosen. */
  readonly value?: string | undefined;
  /** The words for choosing none, if one may. */
  readonly any?: string;
  readonly type?: "date" | "datetime-local";
  readonly required?: boolean;
  readonly maxLength?: number;
}) {
  const { name, label, help, id = name, rows, of, value, any, ...rest } = props;
  const control = { id, name, "aria-describedby": help && `${id}-help`, ...rest };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {of ? (
        <Select {...control} of={of} chosen={value} {...(any !== undefined && { any })} />
      ) : rows ? (
        <textarea {...control} rows={rows} autocomplete="off" spellcheck={false} />
      ) : (
        <input {...control} value={value} autocomplete="off" spellcheck={false} />
      )}
      {help && <small id={`${id}-help`}>{help}</small>}
    </div>
  );
}

/** What a page is called that writes an item, or a new one. */
export function SetHeading({ name, item }: { readonly name: string | undefined; readonly item: string }) {
  if (name === undefined) return <h1>New {item}</h1>;
  return (
    <h1>
      Change <Name>{name}</Name>
    </h1>
  );
}

/** The field for the name of a new item or key. @param asked - a name that is there already */
export function NewName({ asked, help }: { readonly asked?: string | undefined; readonly help: string }) {
  return <Field name="name" label="Name" help={help} value={asked} required maxLength={255} />;
}

/** A list to choose one of. @param any - the words for choosing none of them, if one may */
export function Select(props: {
  readonly name: string;
  readonly of: readonly string[];
  readonly chosen?: string | undefined;
  readonly any?: string;
  readonly id?: string;
  readonly "aria-describedby"?: string | undefined;
}) {
  const { of, chosen, any, ...control } = props;
  return (
    <select {...control}>
      {any !== undefined && <option value="">{any}</option>}
      {of.map((one) => (
        <option value={one} selected={one === chosen}>
          {one}
        </option>
      ))}
    </select>
  );
}

/** Boxes to check. `Form.all` reads which are checked, or `Form.environments`. */
export function Boxes(props: {
  readonly legend: string;
  readonly name: string;
  readonly of: readonly string[];
  readonly checked?: readonly string[];
}) {
  const { legend, name, of, checked = [] } = props;
  return (
    <fieldset>
      <legend>{legend}</legend>
      {of.map((one) => (
        <label>
          <input type="checkbox" name={name} value={one} checked={checked.includes(one)} />
          {isEnvironment(one) ? <Env of={one} /> : <code>{one}</code>}
        </label>
      ))}
    </fieldset>
  );
}

/**
 * Whoever changes production types the name of what they change: `Form.requireAgain` compares it.
 * @param name - left out if the same form asks for it
 * @param id - of the field, if the page has several
 */
export function NameAgain(props: { readonly name?: string | undefined; readonly what: string; readonly id?: string }) {
  const { name, what, id = "again" } = props;
  const label = (
    <>
      For production, type the {what} again
      {name !== undefined && (
        <>
          : <Name>{name}</Name>
        </>
      )}
    </>
  );
  return <Field id={id} name="again" label={label} />;
}
