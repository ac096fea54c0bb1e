/**
 * The last reads against a model: whatever machines read, whenever the notary looks, retention deletes, the program is
 * brought up to date or another notary appends, no read is made up, and none is missing from where the record begins.
 */

import { expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { environments } from "../../src/core/names.ts";
import { everyKind } from "../../src/kinds/kind.ts";
import { findProject } from "../../src/people/desk/projects.ts";
import { findKindReads } from "../../src/people/editing/last-reads.ts";
import type { AuditEntry } from "../../src/record/entry.ts";
import { entry, writeLane } from "../support/journal.ts";
import { notarize } from "../support/notarize.ts";
import { pruneAudit } from "../support/prune.ts";
import { describeBoth, type Place, type World } from "../support/world.ts";

setDefaultTimeout(120_000);

const dayMs = 86_400_000;
const names = ["A", "B", "é🦔"];

const read = fc.record({
  op: fc.constant("read" as const),
  action: fc.constantFrom("variables.read", "secrets.read", "accounts.read", "file.read", "variables.reveal"),
  environment: fc.constantFrom(...environments, null),
  names: fc.uniqueArray(fc.constantFrom(...names)),
  byName: fc.boolean(),
  daysAgo: fc.integer({ min: 0, max: 150 }),
});
const prune = fc.record({ op: fc.constant("prune" as const), days: fc.constantFrom(31, 62, 124) });
const rest = fc.record({ op: fc.constantFrom("look" as const, "upgrade" as const) });
const step = fc.oneof({ weight: 6, arbitrary: read }, { weight: 1, arbitrary: prune }, { weight: 2, arbitrary: rest });
const steps = fc.array(step, { maxLength: 14 });

type ReadStep = typeof read extends fc.Arbitrary<infer T> ? T : never;
type Read = { readonly key: string; readonly at: number };

/** What an entry reads, as the model has it. */
function keysOf({ actor, action, environment, names, byName }: AuditEntry): string[] {
  if (actor.type === "person" || !action.endsWith(".read")) return [];
  const kind = { variables: "variables", secrets: "variables", accounts: "accounts", file: "files" }[
    action.split(".")[0] ?? ""
  ];
  const among = environment === null ? environments : [environment];
  return among.flatMap((one) => (byName ? names.map((name) => `${kind} ${one} ${name}`) : [`${kind} ${one} `]));
}

async function record(w: World, { id, organization }: Place, step: ReadStep) {
  const at = Date.now() - step.daysAgo * dayMs;
  const reveals = step.action.endsWith(".reveal");
  const one: AuditEntry = {
    ...entry,
    actor: reveals ? { type: "person", name: "ann@host", from: "os" } : { type: "key", id: "a key" },
    ...{ projectId: id, organizationId: organization.id, environment: step.environment, names: step.names },
    action: step.action as AuditEntry["action"],
    ...(step.byName && !reveals && { byName: true }),
  };
  await writeLane(w, [[one]], at);
  return keysOf(one).map((key): Read => ({ key, at }));
}

async function compare(w: World, place: Place, reads: readonly Read[]): Promise<void> {
  const project = await findProject(w.admin, place.where, "see");
  for (const { kind } of everyKind) {
    const known = await findKindReads(w.admin, project, kind, environments);
    if (known === undefined) throw new Error("nothing is known after a round");
    for (const environment of environments) {
      for (const name of ["", ...names]) {
        const { byNameAt, withAllAt } = known.of(name, [environment]);
        const [found, sinceAt] = name === "" ? [withAllAt, known.withAllSinceAt] : [byNameAt, known.byNameSinceAt];
        const all = reads.filter(({ key }) => key === `${kind} ${environment} ${name}`).map(({ at }) => at);
        // None is made up, and the latest of those since the record begins is there.
        if (found !== null) expect(all).toContain(found);
        const latest = Math.max(...all.filter((at) => at >= sinceAt));
        if (latest > 0) expect(found).toBe(latest);
      }
    }
  }
}

describeBoth("the last reads", (w, dialect) => {
  test("are those of a model, from where the record begins", async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (taken) => {
        const place = await w.place({});
        const reads: Read[] = [];
        // No server's clock is so late that it records what retention has dropped.
        let kept = Number.POSITIVE_INFINITY;
        for (const step of taken) {
          if (step.op === "read") {
            reads.push(...(await record(w, place, { ...step, daysAgo: Math.min(step.daysAgo, kept - 1) })));
          } else if (step.op === "prune") {
            // It waits for the notary.
            await notarize(w);
            kept = Math.min(kept, step.days);
            await pruneAudit(w.admin, step.days * dayMs);
          } else if (step.op === "upgrade") await w.run("delete from last_reads_known");
          else {
            await notarize(w);
            await compare(w, place, reads);
          }
        }
        await notarize(w);
        await compare(w, place, reads);
      }),
      { numRuns: dialect === "sqlite" ? 20 : 6 },
    );
  });
});
