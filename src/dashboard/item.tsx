import { environments } from "../core/names.ts";
import { Refused } from "../core/refused.ts";
import { kindPages } from "../kinds/pages.ts";
import { Ago, Change, Env, Name, Word } from "../pages/parts.tsx";
import { projectPagePath, withQuery } from "../pages/paths.ts";
import type { Answer, Route } from "../pages/route.ts";
import type { Visit } from "../pages/visit.ts";
import { listAudit } from "../people/audit.ts";
import { compareEnvironments } from "../people/comparison.ts";
import { keyNames, listAccess } from "../people/keys.ts";
import { comparison, requireKind } from "./grid.tsx";

export const itemRoutes: readonly Route[] = [
  { method: "GET", path: "/p/:org/:project/:kind/item", right: "see", answer: item },
  { method: "POST", path: "/p/:org/:project/:kind/reveal", right: "reveal", isSecret: true, answer: reveal },
];

/** One item: where it is, its value for whoever asks, who read it last, and who can. */
async function item(visit: Visit): Promise<Answer> {
  const { admin, where } = visit;
  const kind = requireKind(visit.param("kind"));
  const pages = kindPages[kind];
  const name = visit.query("name") ?? "";
  const found = (await compareEnvironments(admin, where, kind)).items.find((one) => one.name === name);
  if (found === undefined)
    throw new Refused("not_found", `There is no ${JSON.stringify(name)} among the ${kind} of ${where}.`);
  const now = admin.now();
  const reads = await lastReads(visit, name);
  const access = await listAccess(admin, where);
  const names = await keyNames(admin);
  const there = environments.filter((environment) => found.environments[environment] !== undefined);
  const main = (
    <>
      <h1>
        <Name>{name}</Name>
      </h1>
      <p class="quiet">{comparison(found)}</p>
      {pages?.change && (
        <p class="actions">
          <a class="button" href={projectPagePath(where, pages.change, { name })}>
            Change
          </a>
        </p>
      )}
      <div class="cards">
        {environments.map((environment) => {
          const one = found.environments[environment];
          return (
            <section>
              <h2>
                <Env of={environment} />
              </h2>
              {one === undefined ? (
                <p class="missing">missing</p>
              ) : (
                <>
                  <p>
                    Changed <Ago at={one.updatedAt} now={now} />
                  </p>
                  {pages?.reveal &&
                    (["shown", "copied"] as const).map((how) => (
                      <Change
                        action={projectPagePath(where, `${kind}/reveal`)}
                        button={how === "shown" ? "Reveal" : "Copy"}
                        label={`${how === "shown" ? "Reveal" : "Copy"} the value in ${environment}`}
                        secret={how}
                        hidden={{ name, environment }}
                        inline
                      />
                    ))}
                </>
              )}
            </section>
          );
        })}
      </div>
      <section>
        <h2>Who read it last</h2>
        {reads.length === 0 && <p class="quiet">Nobody, as far as the audit goes back.</p>}
        <ul>
          {reads.map((one) => (
            <li>
              <Ago at={one.time} now={now} />:{" "}
              <Word>{one.actor.type === "person" ? one.actor.name : (names.get(one.actor.id) ?? one.actor.id)}</Word>{" "}
              {one.environment}, <code>{one.action}</code>
            </li>
          ))}
        </ul>
        <p>
          <a href={withQuery("/audit", { project: where, name })}>Everything about it in the audit</a>
        </p>
      </section>
      <section>
        <h2>Who can read it</h2>
        {access.length === 0 && <p class="quiet">No key and no trust reaches this project.</p>}
        <ul>
          {access
            .filter(
              ({ resources, environments: reach }) =>
                resources.includes(kind) &&
                (reach === null || reach.some((environment) => there.includes(environment))),
            )
            .map((one) => (
              <li>
                <a href={`/keys/${one.id}`}>
                  <Word>{one.name}</Word>
                </a>
                , a {one.type}, in {one.environments?.join(", ") ?? "every environment"}
              </li>
            ))}
        </ul>
      </section>
    </>
  );
  return {
    title: `${name} · ${where}`,
    project: visit.inProject(kind),
    main,
  };
}

async function lastReads({ admin, where }: Visit, name: string) {
  try {
    const entries = await listAudit(admin, { project: where, name, limit: 20 });
    return entries
      .filter(({ action }) => /\.(?:read|reveal)$/.test(action))
      .slice(-5)
      .reverse();
  } catch (error) {
    if (error instanceof Refused && error.kind === "not_found") return []; // no entry names it
    throw error;
  }
}

/** The value of an item, on record before it is shown. */
async function reveal(visit: Visit): Promise<Answer> {
  const kind = requireKind(visit.param("kind"));
  const read = kindPages[kind]?.reveal;
  if (read === undefined) throw new Refused("not_found", `The ${kind} are not shown here.`);
  return { secret: await read(visit, visit.form.environment(), visit.form.read("name")) };
}
