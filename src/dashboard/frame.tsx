/** @jsxImportSource preact */
import type { VNode } from "preact";
import { renderToString } from "preact-render-to-string";
import { hasSomewhere, type Rights } from "../access/rights.ts";
import { visible } from "../core/visible.ts";
import { quoted } from "../core/words.ts";
import { everyKind } from "../kinds/kind.ts";
import { Field, Lead, LinkButton, Name, Word } from "../pages/parts.tsx";
import { projectPagePath } from "../pages/paths.ts";
import type { Shown } from "../pages/route.ts";
import type { Identity } from "./sign-in.ts";

/** Whom the frame names, and what it says once. */
export type Reader = {
  readonly actor: string;
  readonly rights: Rights;
  readonly notice: string | undefined;
  readonly path: string;
};

/** A whole page: the frame with its navigation, around what a route shows. */
export function pageOf(shown: Shown, reader: Reader): string {
  const { title, project, main } = shown;
  return document(
    title,
    <>
      <header>
        <a class="skip" href="#main">
          Skip to the page
        </a>
        <nav aria-label="Keyhole">
          <a href="/" class="brand">
            Keyhole
          </a>
          {sectionsFor(reader.rights).map(([path, name]) => (
            <a href={path} aria-current={sectionOf(reader.path) === path ? "page" : undefined}>
              {name}
            </a>
          ))}
        </nav>
        <form method="post" action="/lock" class="who">
          <span>
            <Word>{reader.actor}</Word>
          </span>
          <button type="submit" class="quiet">
            {reader.rights === "operator" ? "Lock" : "Sign out"}
          </button>
        </form>
      </header>
      <main id="main" tabIndex={-1}>
        {reader.notice && (
          <p role="status" class="notice">
            {reader.notice}
          </p>
        )}
        {project && <ProjectTabs {...project} />}
        {main}
      </main>
    </>,
  );
}

/** The page for a browser that has not signed in. */
export function lockedPage(refusal?: string): string {
  return document(
    "Locked",
    <main id="main" class="locked">
      <h1>Keyhole</h1>
      <p>
        Open the link that <code>keyhole dashboard</code> printed. It works once, for five minutes. Press Enter in that
        terminal for a new one.
      </p>
      <form method="post" action="/unlock" data-unlock>
        <Field name="code" label="Code, the part of the link after #" required />
        <div class="send">
          <button type="submit">Open</button>
        </div>
      </form>
      <p role="alert" class="refusal">
        {refusal}
      </p>
    </main>,
  );
}

/** The page of a team's dashboard for a browser that nobody is signed in with. */
export function signInPage(refusal?: string): string {
  return document(
    "Sign in",
    <main id="main" class="locked">
      <h1>Keyhole</h1>
      <p>Your company's identity provider says who you are.</p>
      <p>
        <LinkButton to="/sign-in">Sign in</LinkButton>
      </p>
      <p role="alert" class="refusal">
        {refusal}
      </p>
    </main>,
  );
}

/** Goes on to the first page by itself. */
export function signedInPage(): string {
  return document(
    "Signed in",
    <main id="main" class="locked">
      <h1>Keyhole</h1>
      <p>
        You are signed in. <a href="/">Go on</a>
      </p>
    </main>,
    "/",
  );
}

/** Who somebody without rights is, and what an operator would type to give them some. */
export function strangerPage({ label, issuer, subject }: Identity, name: string): string {
  const command =
    name === ""
      ? `keyhole person add NAME --issuer ${quoted(issuer)} --subject ${quoted(subject)}`
      : `keyhole person grant ${name} see --all-projects --all-environments`;
  return document(
    "No rights yet",
    <main id="main" class="locked">
      <h1>No rights yet</h1>
      <p>
        You are <Word>{label}</Word>, and have no rights here yet. Send this to an operator:
      </p>
      <pre>
        <Word>{command}</Word>
      </pre>
      <form method="post" action="/lock">
        <button type="submit" class="quiet">
          Sign out
        </button>
      </form>
    </main>,
  );
}

/** The page of a refusal, or of a failure. @param again - where to sign in again, if that is what it takes */
export function refusalPage(title: string, message: string, reader?: Reader, again?: string): string {
  const main = (
    <>
      <h1>{title}</h1>
      <p>{message}</p>
      {again && (
        <p>
          <LinkButton to={again}>Sign in again</LinkButton>
        </p>
      )}
      <Lead to="/">Back to the first page</Lead>
    </>
  );
  return reader === undefined ? document(title, <main id="main">{main}</main>) : pageOf({ title, main }, reader);
}

const sections: Readonly<Record<string, string>> = {
  "/": "Today",
  "/projects": "Projects",
  "/requests": "Requests",
  "/keys": "Keys and trusts",
  "/audit": "Audit",
};

/** Who may not read the audit is not led there. */
function sectionsFor(rights: Rights): readonly (readonly [path: string, name: string])[] {
  return Object.entries(sections).filter(([path]) => path !== "/audit" || hasSomewhere(rights, "audit"));
}

function sectionOf(path: string): string {
  const first = path.split("/")[1] ?? "";
  return first === "p" ? "/projects" : `/${first}`;
}

function ProjectTabs({ org, project, tab }: NonNullable<Shown["project"]>) {
  const where = `${org}/${project}`;
  const tabs = [...everyKind.map(({ kind }) => kind), "history", "access"];
  return (
    <nav class="tabs" aria-label={`Project ${where}`}>
      <Name>{where}</Name>
      {tabs.map((name) => (
        <a href={projectPagePath(where, name)} aria-current={tab === name ? "page" : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}

/** @param onTo - where the page goes on to by itself */
function document(title: string, body: VNode, onTo?: string): string {
  const page = (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        {onTo && <meta http-equiv="refresh" content={`0;url=${onTo}`} />}
        <title>{`${visible(title)} · Keyhole`}</title>
        <link rel="stylesheet" href="/style.css" />
        <link rel="icon" href="/icon.svg" />
        <script src="/script.js" defer />
      </head>
      <body>{body}</body>
    </html>
  );
  return `<!doctype html>${renderToString(page)}`;
}
