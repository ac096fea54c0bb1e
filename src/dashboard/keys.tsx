/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { environments } from "../core/names.ts";
import { Refused } from "../core/refused.ts";
import { excerpt } from "../core/visible.ts";
import { Actions, Ago, type Cells, Change, Envs, Facts, Field, First, Lead, Table, Word } from "../pages/parts.tsx";
import { withQuery } from "../pages/paths.ts";
import type { Answer } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { type KeyRecord, listKeys, neverEnds, revokeKey, showKey } from "../people/keys.ts";
import { RotateForm } from "./new-key.tsx";

/** Which keys and trusts a list shows. Damaged rows are not hidden: people must find out what damaged them. */
const lists: Readonly<Record<string, { label: string; none: string; has: (one: KeyRecord) => boolean }>> = {
  current: {
    label: "In use",
    none: "There is no key and no trust in use. Create a key for each machine that reads.",
    has: ({ status }) => status === "active" || status === "damaged",
  },
  endless: { label: "Never expire", none: "Each key and each trust has an end.", has: neverEnds },
  unused: {
    label: "Never used",
    none: "Each key and each trust was used.",
    has: ({ status, lastUsedAt }) => status === "active" && lastUsedAt === null,
  },
  ended: {
    label: "Expired and revoked",
    none: "No key and no trust has expired or was revoked.",
    has: ({ status }) => status === "expired" || status === "revoked",
  },
};

/** Who can read: keys and trusts, the newest first. */
export async function keysPage(visit: Visit): Promise<Answer> {
  const { admin } = visit;
  const asked = visit.query("show") ?? "current";
  const list = Object.hasOwn(lists, asked) ? lists[asked] : undefined;
  if (list === undefined) throw new Refused("not_found", "There is no such list of keys.");
  const newest = (await listKeys(admin)).reverse();
  const rows = newest.filter(list.has);
  const main = (
    <>
      {visit.may("keys") && <Actions items={{ "Create a key": "/keys/new" }} />}
      <nav class="tabs" aria-label="Which keys and trusts">
        {Object.entries(lists).map(([name, { label, has }]) => (
          <a
            href={withQuery("/keys", { show: name === "current" ? undefined : name })}
            aria-current={name === asked ? "page" : undefined}
          >
            {label} ({newest.filter(has).length.toLocaleString("en")})
          </a>
        ))}
      </nav>
      <Table
        caption={`Keys and trusts: ${list.label}`}
        columns={columnsOf(newest, admin.now())}
        rows={rows}
        none={list.none}
        filter="keys and trusts"
        nameOf={(one) => `${excerpt(one.name)} ${one.type} ${one.organization} ${one.projects?.join(" ") ?? ""}`}
      />
      <p class="quiet">
        A trust lets the tokens of a CI job or a pod stand in place of a key. It is made by a command, since its claims
        must be written to the letter: <code>keyhole trust add --help</code>
      </p>
    </>
  );
  return { title: "Keys and trusts", main };
}

/** @param all - the organization is shown if these belong to several */
function columnsOf(all: readonly KeyRecord[], now: number): Cells<KeyRecord> {
  const hasSeveral = new Set(all.map(({ organization }) => organization)).size > 1;
  const own: Cells<KeyRecord> = {
    ...(hasSeveral && { Organization: ({ organization }) => <Word>{organization}</Word> }),
    Projects: ({ projects }) => <Projects slugs={projects} />,
    Environments: (key) => <Envs values={key.environments ?? environments} />,
  };
  return keyColumns(now, own, all);
}

/** The columns of each table of keys and trusts, around those that it alone has. */
export function keyColumns<T extends KeyRecord>(now: number, own: Cells<T>, all: readonly T[]): Cells<T> {
  const looks = Map.groupBy(all, ({ name }) => name.normalize("NFKC").trim().toLowerCase());
  const alike = new Set([...looks.values()].flatMap((same) => (same.length > 1 ? same : [])));
  return {
    Name: (key) => [
      <Word to={`/keys/${key.id}`}>{key.name}</Word>,
      // Ids of one minute begin alike.
      alike.has(key) && <code> …{key.id.slice(-8)}</code>,
    ],
    Type: ({ type }) => type,
    ...own,
    Expires: (key) => <Expiry record={key} now={now} />,
    "Last use": ({ lastUsedAt }) => <Ago at={lastUsedAt} now={now} />,
  };
}

/** When a key or trust ends, or has ended. */
function Expiry({ record, now }: { readonly record: KeyRecord; readonly now: number }) {
  const { status, expiresAt, revokedAt } = record;
  if (status === "damaged") return <span class="missing">damaged: refused everywhere</span>;
  return revokedAt === null ? <Ago at={expiresAt} now={now} /> : ["revoked ", <Ago at={revokedAt} now={now} />];
}

/** The first projects, without links: not everybody who sees a key sees each of its projects. */
function Projects({ slugs, ...rest }: { readonly slugs: readonly string[] | null; readonly max?: number }) {
  if (slugs === null) return <>every project, those created later too</>;
  return <First items={slugs.map((slug) => <Word>{slug}</Word>)} {...rest} />;
}

/** One key or trust: its facts, and what can be done with it. */
export async function keyPage(visit: Visit): Promise<Answer> {
  const { admin } = visit;
  const one = await showKey(admin, visit.param("id"));
  const now = admin.now();
  const main = (
    <>
      {one.status === "damaged" && (
        <p class="warning">
          Somebody changed this {one.type} with SQL, so every server refuses it. Revoke it and create another.
        </p>
      )}
      <Facts facts={factsOf(one, now)} />
      {visit.may("audit") && (
        <Lead to={withQuery("/audit", { key: one.id })}>What it read, and what was done to it, in the audit</Lead>
      )}
      {visit.may("keys") && one.type === "key" && one.status === "active" && <RotateForm record={one} />}
      {visit.may("keys") && one.revokedAt === null && (
        <section>
          <h2>Revoke it</h2>
          <p>
            The next request with this {one.type} is refused, for good.
            {one.type === "key" && " Do this, too, if nobody has the text of the key: Keyhole does not store it."}
          </p>
          <Change action={`/keys/${one.id}/revoke`} button="Revoke" danger>
            <Field name="again" label={["Type the name again: ", <Word>{one.name}</Word>]} required />
          </Change>
        </section>
      )}
    </>
  );
  return { title: `The ${one.type} ${excerpt(one.name)}`, heading: <Word>{one.name}</Word>, main };
}

function factsOf(one: KeyRecord, now: number): Readonly<Record<string, ComponentChildren>> {
  const { terms } = one;
  return {
    Type: one.type === "key" ? "key" : "trust, for tokens in place of a key",
    Status: one.status === "active" ? "active" : <span class="missing">{one.status}</span>,
    Organization: one.organization,
    Projects: <Projects slugs={one.projects} max={Infinity} />,
    Environments: <Envs values={one.environments ?? environments} />,
    Resources: one.resources.join(", "),
    Surfaces: one.surfaces.join(", "),
    ...(terms && {
      Issuer: terms.issuer,
      Audience: terms.audience,
      Claims: (
        <ul>
          {Object.entries(terms.claims).map(([name, value]) => (
            <li>
              <Word>{`${name} = ${value}`}</Word>
            </li>
          ))}
        </ul>
      ),
      "Issuer's keys": terms.keys === "pinned" ? "pinned here" : "as the issuer publishes them",
    }),
    Created: <Ago at={one.createdAt} now={now} />,
    Expires: <Ago at={one.expiresAt} now={now} />,
    Revoked: one.revokedAt !== null && <Ago at={one.revokedAt} now={now} />,
    "Last use": <Ago at={one.lastUsedAt} now={now} />,
    Id: <code>{one.id}</code>,
  };
}

/** Revokes it for good, if its name was typed again. */
export async function revoke(visit: Visit): Promise<Answer> {
  const { admin, form } = visit;
  const { id, type, name } = await showKey(admin, visit.param("id"));
  form.requireTyped(name, "To revoke it");
  await revokeKey(admin, id, type);
  return { to: `/keys/${id}`, notice: `Revoked the ${type} ${excerpt(name)}.` };
}
