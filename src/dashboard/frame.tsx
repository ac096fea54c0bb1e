/** @jsxImportSource preact */
import type { VNode } from "preact";
import { renderToString } from "preact-render-to-string";
import { sha256Of } from "../core/hash.ts";
import { visible } from "../core/visible.ts";
import { quoted } from "../core/words/shell.ts";
import { everyKind } from "../kinds/kind.ts";
import { everyRight, hasSomewhere, type Right, type Rights } from "../serve/access/rights.ts";
import { Actions, Field, LoneLink, Name, Prose, ShellLines, typedAsItIs, Word } from "./parts/parts.tsx";
import { projectPagePath } from "./parts/paths.ts";
import type { Notice, Shown } from "./parts/route.ts";
import type { Identity } from "./sign-in.ts";

/** The person that the frame names, and the notice that it shows once. */
export type Reader = {
  readonly actor: string;
  readonly rights: Rights;
  readonly notice: Notice | undefined;
  readonly path: string;
  /** How many requests wait for their decision. */
  readonly pending?: number;
  /** The commands that they would send to somebody who gives rights, for a page that is not there. */
  readonly ask?: string | undefined;
  /** What they look for, on the page of what was found. */
  readonly sought?: string | undefined;
};

/** A page before it is HTML. */
export type Page = {
  readonly title: string;
  readonly body: VNode;
  /** Where it goes on to by itself. */
  readonly onTo?: string | undefined;
};

/** A whole page: the frame with its navigation, around what a route shows. */
export function pageOf({ title, heading, beside, main }: Shown, reader: Reader): Page {
  const [, first, org, project, tab = ""] = reader.path.split("/");
  return framed(
    title,
    <>
      {reader.notice && (
        <p role="status" class="notice">
          <Prose>{reader.notice.words}</Prose>
          {Object.entries(reader.notice.links).map(([words, to]) => [" ", <a href={to}>{words}</a>])}
        </p>
      )}
      {first === "p" && hasSomewhere(reader.rights, "see") && (
        <ProjectTabs where={`${org}/${project}`} tab={tab === "undo" ? "history" : tab} />
      )}
      {/* Whoever skips to the page has passed the tabs of the project, too. */}
      <div class="title" id="main" tabIndex={-1}>
        <h1>{heading ?? visible(title)}</h1>
        {beside}
      </div>
      {main}
    </>,
    reader,
  );
}

function framed(title: string, main: VNode, { actor, rights, path, pending = 0, sought }: Reader): Page {
  const first = path.split("/")[1] ?? "";
  const here = first === "p" ? "/projects" : `/${first}`;
  const reached = sections.filter(([, , ...needed]) => hasSomewhere(rights, ...needed));
  const body = (
    <>
      <header>
        <a class="unseen" href="#main">
          Skip to the page
        </a>
        <a class="brand" href="/">
          Keyhole
        </a>
        <nav aria-label="Keyhole">
          {reached.map(([section, name]) => (
            <a href={section} aria-current={here === section ? "page" : undefined}>
              {name}
              {section === "/requests" &&
                pending > 0 && [
                  " ",
                  <span class="badge">
                    {pending.toLocaleString("en")}
                    <span class="unseen"> open</span>
                  </span>,
                ]}
            </a>
          ))}
        </nav>
        {hasSomewhere(rights, "see", "keys", "decide") && <Find sought={sought} />}
        <form method="post" action="/lock" class="who">
          <small>
            <Word to="/me">{actor}</Word>
          </small>
          <button type="submit" class="quiet">
            {rights === "operator" ? "Lock" : "Sign out"}
          </button>
        </form>
      </header>
      <main>{main}</main>
    </>
  );
  return { title, body };
}

/** The field that finds names everywhere. The script offers some below it, and leads there with a key. */
function Find({ sought }: { readonly sought: string | undefined }) {
  return (
    <search>
      <form method="post" action="/find">
        <input
          type="search"
          name="q"
          value={sought}
          aria-label="Find a name everywhere"
          placeholder="Find"
          {...typedAsItIs}
        />
      </form>
    </search>
  );
}

/** The page for a browser that has not signed in. @param page - where it goes once it has */
export function lockedPage(page: string, refusal?: string): Page {
  return outside(
    "Locked",
    <>
      <p>
        Open the link that <code>keyhole dashboard</code> printed. It works once, for five minutes. Press Enter in that
        terminal for a new one; without a terminal, start it again.
      </p>
      <form method="post" action="/unlock" data-unlock>
        <input type="hidden" name="page" value={page} />
        <Field name="code" label="The link, or its part after #" required />
        <div class="send">
          <button type="submit">Open</button>
        </div>
      </form>
    </>,
    refusal,
  );
}

/** The page of a team's dashboard for a browser without a session. */
export function signInPage(refusal?: string): Page {
  return outside(
    "Sign in",
    <>
      <p>Your company's identity provider says who you are.</p>
      <Actions items={{ "Sign in": "/sign-in" }} />
    </>,
    refusal,
  );
}

/** Goes on by itself. A browser then sends the strict cookie, which it does not send from another site's page. */
export function goOnPage(title: string, sentence: string, to: string): Page {
  const main = (
    <p>
      {sentence} <a href={to}>Go on</a>
    </p>
  );
  return outside(title, main, undefined, to);
}

/** Names a person without rights, and the command that an operator would type to give them some. */
export function strangerPage(identity: Identity, name: string | undefined): Page {
  return outside(
    "No rights yet",
    <>
      <p>
        You are <Word>{identity.label}</Word>, and have no rights here yet. Send this to an operator:
      </p>
      <ShellLines id="ask">
        {name === undefined
          ? addCommand(identity)
          : `keyhole person grant ${name} see --all-projects --all-environments`}
      </ShellLines>
      <form method="post" action="/lock">
        <button type="submit" class="quiet">
          Sign out
        </button>
      </form>
    </>,
  );
}

/** Operators alone may. */
const adding = "keyhole person add";

function addCommand({ issuer, subject }: Identity): string {
  return `${adding} NAME --issuer ${quoted(issuer)} --subject ${quoted(subject)}`;
}

/**
 * The commands that would give somebody rights for some hours. They follow from the path alone, so that they tell nothing
 * of what is there.
 * @param name - of their own entry in the list of persons; undefined if they have none
 */
export function commandsToAsk(
  identity: Identity,
  name: string | undefined,
  needed: readonly Right[],
  path: string,
): string {
  const [, where = "ORG/PROJECT"] = /^\/p\/([\w-]+\/[\w-]+)(?:\/|$)/.exec(path) ?? [];
  const rights = everyRight.filter((one) => one === "see" || needed.includes(one));
  const grant = `keyhole person grant ${name ?? "NAME"} ${rights} --project ${where} --all-environments --until 4h`;
  return name === undefined ? `${addCommand(identity)}\n${grant}` : grant;
}

/** A page for a person who may not see any other. */
function outside(title: string, content: VNode, refusal?: string, onTo?: string): Page {
  const body = (
    <main class="locked">
      <h1>Keyhole</h1>
      {content}
      <p role="alert" class="refusal">
        {refusal}
      </p>
    </main>
  );
  return { title, body, onTo };
}

/** The page of a refusal, or of a failure. @param again - where to sign in again, if that is what it takes */
export function refusalPage(title: string, message: string, reader?: Reader, again?: string): Page {
  const main = (
    <>
      <h1 id="main" tabIndex={-1}>
        {title}
      </h1>
      <p>
        <Prose>{message}</Prose>
      </p>
      {again && <Actions items={{ "Sign in again": again }} />}
      {reader?.ask && (
        <>
          <p>
            If you need what would be here, send this to an operator
            {reader.ask.startsWith(adding) ? "" : ", or to somebody with the right to grant"}:
          </p>
          <ShellLines id="ask">{reader.ask}</ShellLines>
        </>
      )}
      <LoneLink to="/">Back to the first page</LoneLink>
    </>
  );
  return reader === undefined ? { title, body: <main>{main}</main> } : framed(title, main, reader);
}

/** The navigation: path, label, and rights. Any one of the rights shows it, as in the table of routes. */
const sections = [
  ["/", "Today", ...everyRight],
  ["/projects", "Projects", "see"],
  ["/requests", "Requests", "see", "decide"],
  ["/keys", "Keys and trusts", "see", "keys"],
  ["/persons", "People", "grant"],
  ["/audit", "Audit", "audit"],
] as const;

function ProjectTabs({ where, tab }: { readonly where: string; readonly tab: string }) {
  const tabs = [...everyKind.map(({ kind }) => kind), "history", "access"];
  return (
    <nav class="tabs" aria-label={`Project ${where}`}>
      <strong>
        <Name>{where}</Name>
      </strong>
      {tabs.map((name) => (
        <a href={projectPagePath(where, name)} aria-current={tab === name ? "page" : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}

/**
 * A browser that translates a page would send a value to its service, and change it. preact's types know a boolean only,
 * which it leaves out.
 */
const untranslated = { translate: "no" as unknown as boolean };

/**
 * A page as HTML, under the name of the installation: people who use several must see which of them this is.
 * @param installation - its name; names that differ have different colours most of the time
 */
export function htmlOf({ title, body, onTo }: Page, installation: string): string {
  const page = (
    <html lang="en" {...untranslated}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        {onTo && <meta http-equiv="refresh" content={`0;url=${onTo}`} />}
        <title>{`${visible(title)} · ${visible(installation)} · Keyhole`}</title>
        <link rel="stylesheet" href="/style.css" />
        <link rel="icon" href="/icon.svg" />
        <script src="/script.js" defer />
      </head>
      <body>
        <aside class={`installation ${coloured(installation)}`} aria-label="Installation">
          <Word>{installation}</Word>
        </aside>
        {body}
      </body>
    </html>
  );
  return `<!doctype html>${renderToString(page)}`;
}

/** One of the eight colours of the style sheet, which adds up turns. */
function coloured(installation: string): string {
  const hash = Number.parseInt(sha256Of(installation).slice(0, 2), 16);
  return [1, 2, 4].flatMap((turn) => ((hash & turn) > 0 ? `turn-${turn}` : [])).join(" ");
}
