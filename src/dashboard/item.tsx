/** @jsxImportSource preact */

import type { VNode } from "preact";
import { type Environment, environments } from "../core/names.ts";
import { Refused } from "../core/refused.ts";
import { descriptorOf } from "../kinds/kind.ts";
import { kindPages } from "../kinds/pages.ts";
import { Actions, Ago, Change, Env, Lead, Listed, Name, There, Word } from "../pages/parts.tsx";
import { projectPagePath, withQuery } from "../pages/paths.ts";
import type { Answer } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { listAudit } from "../people/audit.ts";
import { compareEnvironments, type ItemsAcross } from "../people/comparison.ts";
import { keyNames, listAccess } from "../people/keys.ts";
import { comparison, requireKind } from "./grid.tsx";
import { unlessRefused } from "./refusal.ts";
import { actorOf } from "./sentence.tsx";

/** One item: where it is, its value for whoever asks, who read it last, and who can. */
export async function itemPage(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const kind = requireKind(visit.param("kind"));
  const { change, reveal: isShown } = kindPages[kind] ?? {};
  const name = visit.query("name") ?? "";
  const { items, environments: seen } = await compareEnvironments(admin, where, kind);
  const found = items.find((one) => one.name === name);
  if (found === undefined)
    throw new Refused("not_found", `There is no ${JSON.stringify(name)} among the ${kind} of ${where}.`);
  const revealed = isShown ? await visit.reached("reveal") : [];
  const mayChange = change !== undefined && (await visit.reached("write")).length > 0;
  const mayAudit = (await visit.reached("audit")).length > 0;
  const main = (
    <>
      <p class="quiet">{comparison(found)}</p>
      {mayChange && <Actions of={{ Change: projectPagePath(where, change, { name }) }} />}
      <div class="cards">
        {seen.map((environment) => (
          <section>
            <h2>
              <Env of={environment} />
            </h2>
            <p>
              {found.environments[environment] && "Changed "}
              <There at={found.environments[environment]?.updatedAt} now={admin.now()} />
            </p>
            {found.environments[environment] && revealed.includes(environment) && (
              <Reveal action={projectPagePath(where, `${kind}/reveal`)} name={name} environment={environment} />
            )}
          </section>
        ))}
      </div>
      {mayAudit && (await lastReads(visit, kind, name))}
      {await readers(visit, kind, found)}
    </>
  );
  return { title: `${name} · ${where}`, heading: <Name>{name}</Name>, main };
}

/** Buttons that ask for a value. */
function Reveal(props: { readonly action: string; readonly name: string; readonly environment: Environment }) {
  const { action, ...hidden } = props;
  const buttons = { shown: "Reveal", copied: "Copy" } as const;
  return (
    <div class="actions">
      {(["shown", "copied"] as const).map((how) => (
        <Change
          action={action}
          button={buttons[how]}
          label={`${buttons[how]} the value in ${hidden.environment}`}
          secret={how}
          hidden={hidden}
          quiet
        />
      ))}
    </div>
  );
}

/** The newest reads, however many changes came after them. */
async function lastReads({ admin, where }: Visit, kind: string, name: string): Promise<VNode> {
  const actions = descriptorOf(kind).actions.filter((action) => /\.(?:read|reveal)$/.test(action));
  const found = listAudit(admin, { project: where, name, actions, limit: 5 });
  const reads = await unlessRefused(found, ["not_found"], () => []); // no entry names it
  const names = await keyNames(admin);
  return (
    <Listed
      title="Who read it last"
      none="Nobody, as far as the audit goes back."
      of={reads.toReversed().map((one) => (
        <>
          <Ago at={one.time} now={admin.now()} />: <Word>{actorOf(one, names)}</Word> {one.environment},{" "}
          <code>{one.action}</code>
        </>
      ))}
    >
      <Lead to={withQuery("/audit", { project: where, name })}>Everything about it in the audit</Lead>
    </Listed>
  );
}

/** The keys and trusts that reach this kind in an environment that has the item. */
async function readers({ admin, where }: Visit, kind: string, of: ItemsAcross["items"][number]): Promise<VNode> {
  const there = environments.filter((environment) => of.environments[environment] !== undefined);
  const found = (await listAccess(admin, where)).filter(({ resources, environments: reach }) => {
    return resources.includes(kind) && (reach === null || reach.some((environment) => there.includes(environment)));
  });
  return (
    <Listed
      title="Who can read it"
      none="No key and no trust."
      of={found.map((one) => (
        <>
          <Word to={`/keys/${one.id}`}>{one.name}</Word>, a {one.type}, in{" "}
          {one.environments?.join(", ") ?? "every environment"}
        </>
      ))}
    />
  );
}

/** The value of an item, on record before it is shown. */
export async function reveal(visit: Visit): Promise<Answer> {
  const kind = requireKind(visit.param("kind"));
  const read = kindPages[kind]?.reveal;
  if (read === undefined) throw new Refused("not_found", `The ${kind} are not shown here.`);
  return { secret: await read(visit, visit.form.environment(), visit.form.read("name")) };
}
