import { Cut } from "../../core/cut.ts";
import { type Environment, environments } from "../../core/names.ts";
import { exits, Problem, usageProblem } from "../../core/problem.ts";
import { unlessRefused } from "../../core/refused.ts";
import { excerpt } from "../../core/visible.ts";
import { counted } from "../../core/words/text.ts";
import { auditActions } from "../../kinds/people.ts";
import { personText, searchAction } from "../../record/entry.ts";
import { type AuditRecord, listAudit, recordBegins } from "../audit/audit.ts";
import { requireAuditor } from "../audit/audit-chain.ts";
import { filterInputs, limitMax } from "../audit/operations.ts";
import type { AdminContext } from "../desk/context.ts";
import { completed, input, ofOrganization, typed, wide } from "../desk/inputs.ts";
import { type Operations, operation } from "../desk/operation.ts";
import { type Columns, list } from "../desk/outcome.ts";
import { rightTo } from "../desk/permit.ts";
import { findProject } from "../desk/projects.ts";
import { shortKeyIds } from "../keys/keys.ts";
import { gitObjectsOf, textsAt, textsInGit, textsOf, unreadProblem, unreadWords } from "./texts.ts";
import { findLeaks, findReuse, type Leak, type Leaks, type Reused, type ValuePlace } from "./values.ts";

const leaked = operation({
  path: "leaked",
  about:
    "Say which stored values stand in files, folders or a text on stdin, such as a log or an image. No value is printed. The audit records that you searched.",
  examples: ["keyhole leaked build.log dist", "git log -p --all | keyhole leaked", "keyhole leaked --git . image.tar"],
  right: rightTo(searchAction),
  progress: ["Searching", "MiB"],
  inputs: {
    paths: input("[paths...]", "files and folders (default: stdin); tar and gzip are unpacked"),
    git: input("--git <folder>", "all objects of this git repository, so every version of every file"),
    organization: ofOrganization("values"),
    sinceAt: {
      ...filterInputs.sinceAt,
      help: "also say who has read the values that are found since then, from the audit: 24h, 2026-01-31",
    },
    text: typed({ bytesMax: Number.POSITIVE_INFINITY }),
    wide,
  },
  run: async (admin, { paths: words, git, organization, sinceAt, text }, { report }) => {
    if (sinceAt !== undefined) requireAuditor(admin);
    const paths = [words ?? []].flat();
    const isHere = admin.rights === "operator";
    if (!isHere && (paths.length > 0 || git !== undefined))
      throw usageProblem("Over SSH, a text is read from stdin only.");
    async function* texts() {
      const objects = git === undefined ? undefined : await gitObjectsOf(git);
      for (const path of paths) yield* textsAt(path, objects);
      if (git !== undefined) yield* textsInGit(git);
      if (paths.length > 0 || git !== undefined) return;
      // Somebody over SSH could make the host unpack without end.
      yield* textsOf("stdin", () => text.chunks(), isHere);
    }
    const found = await findLeaks(admin, texts(), report, { organization });
    const readers = sinceAt === undefined ? undefined : await readersOf(admin, found.found, sinceAt);
    const columns: Columns<Leak> = {
      FILE: ({ file, line, column }) => `${excerpt(file)}:${line}:${column}`,
      NAME: nameOf,
      PROJECT: ({ project }) => project,
      ENVIRONMENT: ({ environment }) => environment,
      FORM: ({ form }) => form,
      ...(readers && { "READ BY": (leak) => readersText(readers.get(keyOf(leak))) }),
    };
    const warnings = unreadWords(found.unread);
    if (readers?.values().some((one) => one === undefined))
      warnings.push("You may not see who read the values marked with ?: it takes the right `audit` there.");
    const begins = readers && (await recordBegins(admin, sinceAt));
    if (begins) warnings.push(begins);
    const { ends, sentence } = endOf(found);
    const told = readers
      ? found.found.map((leak) => {
          const { names = null, missing = "?" } = readers.get(keyOf(leak)) ?? {};
          return { ...leak, readBy: names, readByIsWhole: missing === "" && !begins };
        })
      : found.found;
    return {
      ...list(found.found, columns, "Nothing was found."),
      document: { ...found, found: told },
      warnings,
      sentence,
      ...(ends && { ends }),
    };
  },
});

function nameOf({ name, field }: ValuePlace): string {
  return excerpt(field === undefined ? name : `${name}.${field}`);
}

function keyOf({ project, environment, name }: ValuePlace): string {
  return JSON.stringify([project, environment, name]);
}

type Readers = { readonly names: readonly string[]; readonly missing: string };

/** Nobody is only said where everybody could be seen. */
function readersText(readers: Readers | undefined): string {
  if (readers === undefined) return "?";
  const { names, missing } = readers;
  return [...names, missing].filter(Boolean).join(", ") || "nobody";
}

/**
 * Who read each of the items since a moment, by {@link keyOf}; undefined if somebody may not see it, which they learn
 * only here, after the search is on record.
 */
async function readersOf(admin: AdminContext, found: readonly Leak[], sinceAt: number) {
  const readers = new Map<string, Readers | undefined>();
  const actions = auditActions.filter((action) => /\.(?:read|reveal)$/.test(action));
  const short = await shortKeyIds(admin);
  for (const place of found) {
    if (readers.has(keyOf(place))) continue;
    const { project, name, field } = place;
    // A read of accounts may name no environment.
    const environment = field === undefined ? place.environment : undefined;
    if (!(await seesReads(admin, project, environment))) {
      readers.set(keyOf(place), undefined);
      continue;
    }
    const filter = { project, environment, wholeName: name, actions, sinceAt, limit: limitMax };
    let missing = "";
    const note = () => {
      missing = "? (damaged entries)";
    };
    const none = () => new Cut<AuditRecord>([]);
    const found = await unlessRefused(listAudit(admin, filter, note), ["not_found"], none);
    const [entries, earlier] = found.with("and earlier ones");
    missing ||= earlier ?? "";
    const names = entries.map(({ actor }) =>
      actor.type === "person" ? personText(actor) : `${actor.type} ${short(actor.id)}`,
    );
    readers.set(keyOf(place), { names: [...new Set(names)], missing });
  }
  return readers;
}

/** Whether somebody may see all reads there; without an environment, in each. */
function seesReads(admin: AdminContext, project: string, environment: Environment | undefined): Promise<boolean> {
  const found = findProject(admin, project, "audit", environment ? [environment] : environments).then(() => true);
  return unlessRefused(found, ["not_found", "forbidden", "conflict"], () => false);
}

/** What was looked at, and how the command ends. */
function endOf({ found, count, unread, bytes, values, leftOut, environments }: Leaks) {
  const short =
    leftOut > 0
      ? [`${counted(leftOut, "value")} left out: shorter than 8 bytes, a common word, or for machines only.`]
      : [];
  const looked = `Compared ${counted(values, "different value")} of ${counted(environments, "environment")} with ${counted(bytes, "byte")}.`;
  const words = [looked, ...short].join(" ");
  const more = count > found.length ? `, of which ${found.length} are shown` : "";
  if (count > 0) {
    const told = `Found in ${counted(count, "place")}${more}. ${words}`;
    return { sentence: "", ends: new Problem(exits.failed, "leaked", told) };
  }
  if (unread.length === 0) return { sentence: words };
  return { sentence: "", ends: unreadProblem(unread.length, words) };
}

const reuse = operation({
  path: "reuse",
  about:
    "Say which values are stored more than once: under several names, in several environments or projects. No value is printed. The audit records that you compared them.",
  examples: ["keyhole reuse", "keyhole reuse acme"],
  right: rightTo(searchAction),
  inputs: { organization: completed(input("[org]", "only this organization"), "organizations"), wide },
  run: async (admin, { organization }) => {
    const reused = await findReuse(admin, organization);
    const rows = reused.flatMap(({ places }, at) => places.map((place) => ({ ...place, value: at + 1 })));
    const columns: Columns<(typeof rows)[number]> = {
      VALUE: ({ value }) => value,
      NAME: nameOf,
      PROJECT: ({ project }) => project,
      ENVIRONMENT: ({ environment }) => environment,
      WHAT: ({ type }) => type,
    };
    const sentence = reused.length > 0 ? reuseText(reused) : "";
    const compared = `values${admin.rights === "operator" ? "" : " that you may read"} of 8 bytes or more, without common words and those for machines only`;
    return {
      ...list(rows, columns, `No value is stored more than once. Compared: ${compared}.`),
      document: reused,
      sentence,
    };
  },
});

/** How many values are stored more than once. */
function reuseText(reused: readonly Reused[]): string {
  const beyond = reused.filter(({ isBeyondProduction }) => isBeyondProduction).length;
  const also = beyond > 0 ? `, ${beyond} of them in production and elsewhere` : "";
  return `${counted(reused.length, "value is", "values are")} stored more than once${also}.`;
}

export const leaks: Operations = { rows: [leaked] };
export const reuses: Operations = { rows: [reuse] };
