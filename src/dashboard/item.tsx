/** @jsxImportSource preact */

import type { ComponentChildren } from "preact";
import { type Environment, environments } from "../core/names.ts";
import { Refused } from "../core/refused.ts";
import { descriptorOf } from "../kinds/kind.ts";
import { kindPages } from "../kinds/pages.ts";
import { Ago, Change, Env, Lead, LinkButton, Listed, Name, Word } from "../pages/parts.tsx";
import { projectPagePath, withQuery } from "../pages/paths.ts";
import type { Answer } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { listAudit } from "../people/audit.ts";
import { compareEnvironments } from "../people/comparison.ts";
import { keyNames, listAccess } from "../people/keys.ts";
import { comparison, requireKind } from "./grid.tsx";
import { actorOf } from "./sentence.tsx";

/** One item: where it is, its value for whoever asks, who read it last, and who can. */
export async function itemPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const kind = requireKind(visit.param("kind"));
  const change = kindPages[kind]?.change;
  const name = visit.query("name") ?? "";
  const { items, environments: seen } = await compareEnvironments(admin, where, kind);
  const found = items.find((one) => one.name === name);
  if (found === undefined)
    throw new Refused("not_found", `There is no ${JSON.stringify(name)} among the ${kind} of ${where}.`);
  const now = admin.now();
  const [revealed, written, audited] = [
    await visit.reached("reveal"),
    await visit.reached("write"),
    await visit.reached("audit"),
  ];
  const main = (
    <>
      <p class="quiet">{comparison(found)}</p>
      {change && written.length > 0 && (
        <p class="actions">
          <LinkButton to={projectPagePath(where, change, { name })}>Change</LinkButton>
        </p>
      )}
      <div class="cards">
        {seen.map((environment) => (
          <section>
            <h2>
              <Env of={environment} />
            </h2>
            <InEnvironment
              of={found}
              where={where}
              kind={kind}
              environment={environment}
              mayReveal={revealed.includes(environment)}
              now={now}
            />
          </section>
        ))}
      </div>
      {audited.length > 0 && (
        <Reads of={await lastReads(visit, kind, name)} names={await keyNames(admin)} now={now}>
          <Lead to={withQuery("/audit", { project: where, name })}>Everything about it in the audit</Lead>
        </Reads>
      )}
      <Readers of={found} kind={kind} access={await listAccess(admin, where)} />
    </>
  );
  return { title: `${name} · ${where}`, heading: <Name>{name}</Name>, main };
}

type Item = Awaited<ReturnType<typeof compareEnvironments>>["items"][number];

/** When an item changed there, with buttons that ask for its value. */
function InEnvironment(props: {
  readonly of: Item;
  readonly where: string;
  readonly kind: string;
  readonly environment: Environment;
  readonly mayReveal: boolean;
  readonly now: number;
}) {
  const { of, where, kind, environment, mayReveal, now } = props;
  const one = of.environments[environment];
  if (one === undefined) return <p class="missing">missing</p>;
  return (
    <>
      <p>
        Changed <Ago at={one.updatedAt} now={now} />
      </p>
      {mayReveal &&
        kindPages[kind]?.reveal &&
        (["shown", "copied"] as const).map((how) => (
          <Change
            action={projectPagePath(where, `${kind}/reveal`)}
            button={how === "shown" ? "Reveal" : "Copy"}
            label={`${how === "shown" ? "Reveal" : "Copy"} the value in ${environment}`}
            secret={how}
            hidden={{ name: of.name, environment }}
            inline
          />
        ))}
    </>
  );
}

function Reads(props: {
  readonly of: Awaited<ReturnType<typeof lastReads>>;
  readonly names: Awaited<ReturnType<typeof keyNames>>;
  readonly now: number;
  readonly children: ComponentChildren;
}) {
  const { of, names, now, children } = props;
  return (
    <Listed
      title="Who read it last"
      none="Nobody, as far as the audit goes back."
      of={of.map((one) => (
        <>
          <Ago at={one.time} now={now} />: <Word>{actorOf(one, names)}</Word> {one.environment},{" "}
          <code>{one.action}</code>
        </>
      ))}
    >
      {children}
    </Listed>
  );
}

/** The keys and trusts that reach this kind in an environment that has the item. */
function Readers(props: {
  readonly of: Item;
  readonly kind: string;
  readonly access: Awaited<ReturnType<typeof listAccess>>;
}) {
  const { of, kind, access } = props;
  const there = environments.filter((environment) => of.environments[environment] !== undefined);
  const readers = access.filter(({ resources, environments: reach }) => {
    return resources.includes(kind) && (reach === null || reach.some((environment) => there.includes(environment)));
  });
  return (
    <Listed
      title="Who can read it"
      none="No key and no trust."
      of={readers.map((one) => (
        <>
          <Word to={`/keys/${one.id}`}>{one.name}</Word>, a {one.type}, in{" "}
          {one.environments?.join(", ") ?? "every environment"}
        </>
      ))}
    />
  );
}

/** The newest reads, however many changes came after them. */
async function lastReads({ admin, where }: Visit, kind: string, name: string) {
  const actions = descriptorOf(kind).actions.filter((action) => /\.(?:read|reveal)$/.test(action));
  try {
    return (await listAudit(admin, { project: where, name, actions, limit: 5 })).reverse();
  } catch (error) {
    if (error instanceof Refused && error.kind === "not_found") return []; // no entry names it
    throw error;
  }
}

/** The value of an item, on record before it is shown. */
export async function reveal(visit: Visit): Promise<Answer> {
  const kind = requireKind(visit.param("kind"));
  const read = kindPages[kind]?.reveal;
  if (read === undefined) throw new Refused("not_found", `The ${kind} are not shown here.`);
  return { secret: await read(visit, visit.form.environment(), visit.form.read("name")) };
}
