import { type Environment, environments } from "../../core/names.ts";
import { exits, Problem } from "../../core/problem.ts";
import { HostRefused, Refused } from "../../core/refused.ts";
import { excerpt } from "../../core/visible.ts";
import type { AdminContext } from "../../people/desk/context.ts";
import { changedSince } from "../../people/desk/plan.ts";
import { type FoundProject, placeOf } from "../../people/desk/projects.ts";
import { requireEnvironment } from "../../people/desk/validate.ts";
import { hasSomewhere, type Right, reached } from "../../serve/access/rights.ts";

/**
 * One request of somebody who may use the dashboard: what a handler gets. Only the gate makes one
 * (`dashboard/gate.ts`), so no handler runs before the gate has judged.
 */
export class Visit {
  /** Of this request alone: with a shared one, a page could show what another request has not committed. */
  readonly admin: AdminContext;
  readonly url: URL;
  /** The fields of a form; empty for a GET. */
  readonly form: Form;
  readonly drafts: Drafts;
  readonly choices: Choices;
  readonly #params: Readonly<Record<string, string>>;

  constructor(
    admin: AdminContext,
    url: URL,
    params: Readonly<Record<string, string>>,
    form: Form,
    { drafts, choices }: { readonly drafts: Drafts; readonly choices: Choices },
  ) {
    this.admin = admin;
    this.url = url;
    this.form = form;
    this.drafts = drafts;
    this.choices = choices;
    this.#params = params;
  }

  /** A part of the path, such as `:id`. */
  param(name: string): string {
    return this.#params[name] ?? "";
  }

  /** The project in the path as commands write it: `ORG/PROJECT`. */
  get where(): string {
    return `${this.param("org")}/${this.param("project")}`;
  }

  /** Whether this person has one of these rights anywhere: whether a page leads to what takes it. */
  may(...rights: readonly Right[]): boolean {
    return hasSomewhere(this.admin.rights, ...rights);
  }

  /** What an empty list says. What an operator sees is all there is; others may have what a person's list lacks. */
  none(words: string): string {
    return this.admin.rights === "operator" ? words : `${words} What you may not see is not counted.`;
  }

  /** The environments of a project in which this person has all of these rights. */
  reached(project: FoundProject, ...needed: readonly Right[]): readonly Environment[] {
    return reached(this.admin.rights, needed, placeOf(project));
  }

  /** A parameter of the URL; undefined if it is absent or empty. */
  query(name: string): string | undefined {
    return this.url.searchParams.get(name) || undefined;
  }

  /** A whole number in the URL. */
  number(name: string): number {
    return requireNumber(name, this.query(name) ?? "");
  }

  /** An environment in the URL. @throws Refused `invalid` if it is none of the three */
  environment(name = "environment"): Environment | undefined {
    const text = this.query(name);
    return text === undefined ? undefined : requireEnvironment(text);
  }
}

/** What a person typed, or chose, in a form. */
export class Form {
  readonly #fields: URLSearchParams;
  readonly bytes: number;

  constructor(body: string) {
    this.bytes = body.length;
    this.#fields = new URLSearchParams(body);
  }

  /** A field; undefined if the form has no such field. Browsers send line breaks as CR LF, and nobody can type a CR. */
  find(name: string): string | undefined {
    return this.all(name)[0];
  }

  /**
   * What was typed over a stored text; undefined if that is as the form showed it. Then what is stored stays, because
   * somebody else may have changed it since.
   */
  touched(name: string): string | undefined {
    const text = this.find(name);
    return text === (this.find(`shown.${name}`) ?? "") ? undefined : text;
  }

  /** @throws Refused `invalid` if the form has no such field */
  read(name: string): string {
    const text = this.find(name);
    if (text === undefined) throw new Refused("invalid", `The form has no field ${name}: load the page again.`);
    return text;
  }

  /** All fields with this name, or all that were chosen under it. */
  all(name: string): readonly string[] {
    return this.#fields.getAll(name).map((text) => text.replaceAll("\r\n", "\n"));
  }

  /** What was typed in fields whose names begin with this, by the rest of the name. */
  typed(prefix: string): ReadonlyMap<string, string> {
    const typed = [...this.#fields].filter(([name, text]) => name.startsWith(prefix) && text !== "");
    return new Map(typed.map(([name, text]) => [name.slice(prefix.length), text.replaceAll("\r\n", "\n")]));
  }

  /** Whether a box is checked. */
  has(name: string): boolean {
    return this.#fields.has(name);
  }

  /** @throws Refused `invalid` */
  environment(name = "environment"): Environment {
    return requireEnvironment(this.read(name));
  }

  /** The environments whose boxes are checked, each once. */
  environments(name: string): Environment[] {
    const all = this.all(name);
    return environments.filter((environment) => all.includes(environment));
  }

  /** @throws Refused `conflict` if the form showed another project than the one that has its path now */
  requireProject(project: FoundProject): void {
    const shown = this.find("project") ?? project.id;
    if (shown !== project.id) throw changedSince("project", shown, project.id);
  }

  /**
   * Requires a name to be typed again before a change of production.
   * @throws Refused `invalid` if they did not
   */
  requireAgain(name: string, changed: readonly Environment[]): void {
    if (changed.includes("production")) this.requireTyped(name, "For production");
  }

  /**
   * Requires a name to be typed again, as the page shows it, before a change that cannot be undone.
   * @param why - how the refusal begins
   * @throws Refused `invalid` if they did not
   */
  requireTyped(name: string, why: string): void {
    const shown = excerpt(name).trim();
    if (excerpt(this.find("again") ?? "").trim() === shown) return;
    throw new Refused("invalid", `${why}, type ${shown} again. Nothing was changed.`, { field: "again" });
  }

  /** One of the choices that a form offers, by its words. @throws Refused `invalid` */
  choice<T>(name: string, choices: Readonly<Record<string, T>>): T {
    const chosen = this.read(name);
    if (Object.hasOwn(choices, chosen)) return choices[chosen] as T;
    throw new Refused("invalid", `${JSON.stringify(chosen)} is not one of the choices: load the page again.`);
  }

  /** A whole number, such as the version that the form showed. */
  number(name: string): number {
    return requireNumber(name, this.read(name));
  }
}

/** What a person has chosen for as long as their session lives, and the projects that they looked at, the newest last. */
export type Choices = { isWithoutStart?: true; projects?: readonly string[] };

/**
 * What a person has begun and not yet agreed to, such as pasted texts: kept in memory for some minutes, because no page
 * may have values in its HTML. Tabs have their own, up to a number and to the bytes of one form; then the oldest goes.
 */
export class Drafts {
  readonly #drafts = new Map<string, KeptDraft>();

  /**
   * Keeps a draft.
   * @param bytes - of the form that it is from
   * @returns its own path, below the page where it was begun
   */
  keep(page: string, value: unknown, bytes: number, now: number): string {
    const path = `${page}/${Bun.randomUUIDv7()}`;
    const timer = setTimeout(() => this.end(path), draftMs);
    timer.unref();
    this.#drafts.set(path, { value, bytes, endsAt: now + draftMs, timer });
    for (const [oldest] of this.#drafts) {
      const kept = [...this.#drafts.values()].reduce((sum, { bytes }) => sum + bytes, 0);
      if (this.#drafts.size <= draftsMax && kept <= formBytesMax) break;
      this.end(oldest);
    }
    return path;
  }

  /** The draft with this path. @throws Refused `not_found` if it is gone */
  read(path: string, now: number): unknown {
    const draft = this.#drafts.get(path);
    if (draft !== undefined && draft.endsAt > now) return draft.value;
    throw new Refused("not_found", "What was to be done here is gone: it was done, or is too old. Begin again.");
  }

  end(path: string): void {
    clearTimeout(this.#drafts.get(path)?.timer);
    this.#drafts.delete(path);
  }

  clear(): void {
    for (const path of this.#drafts.keys()) this.end(path);
  }
}

type KeptDraft = { readonly value: unknown; readonly bytes: number; readonly endsAt: number; readonly timer: Timer };

const draftMs = 5 * 60_000;
const draftsMax = 5;

/** The most bytes of a form. It is parsed in one go, which keeps the pages of others waiting. */
export const formBytesMax = 4 * 1024 * 1024;

/**
 * Says of a refusal which field of the form it is about.
 * @example carryOut(visit, create, given, to).catch(blame("slug"))
 */
export function blame(field: string): (error: unknown) => never {
  return (error) => {
    const isMisuse = error instanceof Problem && error.exitCode === exits.usage;
    const isRefusal = error instanceof Refused && !(error instanceof HostRefused) && error.form.field === undefined;
    if (!isMisuse && !(isRefusal && ["invalid", "exists", "bound"].includes(error.kind))) throw error;
    throw new Refused(isRefusal ? error.kind : "invalid", error.message, { cause: error, field });
  };
}

/** Judges a field. @throws Refused that names it */
export function inField<T>(field: string, judge: () => T): T {
  try {
    return judge();
  } catch (error) {
    return blame(field)(error);
  }
}

function requireNumber(name: string, text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new Refused("invalid", `${name} is not a number: load the page again.`);
}
