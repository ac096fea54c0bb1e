import { environments, variableValueBytesMax } from "../../core/names.ts";
import { exits, Problem, usageProblem } from "../../core/problem.ts";
import {
  atVersion,
  choice,
  completed,
  environment,
  file,
  flag,
  ifVersion,
  input,
  ofForm,
  project,
  type ReadInput,
  severalEnvironments,
  typed,
  wide,
} from "../../desk/inputs.ts";
import { type Operations, operation } from "../../desk/operation.ts";
import { type Columns, done, list, type Outcome } from "../../desk/outcome.ts";
import { findProject } from "../../desk/projects.ts";
import { listItems, unreadInput } from "../../editing/last-reads.ts";
import type { DryRun } from "../../editing/write-project.ts";
import { setBytesMax } from "../../sets/kind.ts";
import { parseComingDay, parseCount, parseList } from "../../words/parse.ts";
import { counted, decodeText, formatTime, joined } from "../../words/text.ts";
import { variables } from "./entry.ts";
import type { ImportFormat } from "./import-text.ts";
import { diffVariables, revealVariable } from "./reveal.ts";
import {
  copyVariables,
  deleteVariable,
  listVariables,
  type Place,
  type SeenEnds,
  setVariables,
  type VariablesWrite,
  type WriteOptions,
  warningsIn,
  writeVariables,
} from "./write.ts";

const name = completed(input("<name>", "the variable"), "items");

/** For what reads many variables at once. */
export const literal = flag(
  "--literal",
  "take text that another tool has encrypted, and references of other tools, as they are",
);

const set = operation({
  path: "var set",
  about: "Create or replace a variable. Its value is read from stdin, byte for byte, or from a hidden prompt.",
  examples: [
    "keyhole var set acme/web production DATABASE_URL",
    "keyhole var set web production TLS_KEY < key.pem",
    "keyhole var set web staging,production STRIPE_KEY --rotate-by 2030-01-31",
    "keyhole var set billing production ROOT_PASSWORD --canary",
  ],
  right: "write",
  inputs: {
    project,
    environments: severalEnvironments,
    name: { ...name, help: "letters, digits and _, not starting with a digit" },
    value: typed(
      {
        bytesMax: variableValueBytesMax,
        what: (given) => `The value of ${given["name"]}`,
        prompt: (given) => `Value of ${given["name"]}`,
        unlessEmpty: `--value "" stores an empty value`,
        isText: true,
      },
      "--value <value>",
      "the value, if it is not secret: other users of this machine may see it",
    ),
    rotateBy: input(
      "--rotate-by <day>",
      "rotate it by this day (UTC); `keyhole expiring` and a metric show it (default: none)",
      (text) => parseComingDay(text, Date.now()),
    ),
    canary: flag("--canary", "bait: read like any other, and every use of it is on record; it stays one until deleted"),
    version: ifVersion,
  },
  check: ({ environments, version }) => {
    if (version === undefined || environments.length === 1) return;
    throw usageProblem("var set: --if-version needs a single environment: each has versions of its own.");
  },
  run: async (admin, { project, environments, name, value: given, rotateBy = null, canary, version }) => {
    await findProject(admin, project, "write", environments);
    const write = { entries: [{ name, value: await given.read(), rotateBy, canary }], version };
    const changes = new Map(environments.map((environment) => [environment, write]));
    const written = await writeVariables(admin, project, changes);
    const places = [...written].map(([environment, { added }]) => {
      return { environment, status: added.length === 1 ? "created" : "updated" };
    });
    const where = places.length === 1 ? places[0] : { environments: places };
    const document = { project, ...where, key: name, ...(rotateBy && { rotateBy }), ...(canary && { canary }) };
    const day = rotateBy === null ? "" : ` Rotate it by ${rotateBy}.`;
    const bait = canary ? " It is a canary: every use of it is on record." : "";
    return done(document, savedSentence(project, name, written) + day + bait, warningsIn(written));
  },
});

/** Says where a variable was created, and where it was updated. */
export function savedSentence(where: string, name: string, written: ReadonlyMap<string, VariablesWrite>): string {
  const places = Map.groupBy(written.keys(), (environment) =>
    written.get(environment)?.added.length === 1 ? "Created" : "Updated",
  );
  const sentences = (["Created", "Updated"] as const).flatMap((did) => {
    const those = places.get(did);
    return those === undefined ? [] : [`${did} ${name} in ${where}, ${joined(those)}.`];
  });
  return sentences.join(" ");
}

const get = operation({
  path: "var get",
  about: "Print the value of a variable, byte for byte. The audit records that you saw it.",
  examples: [
    "keyhole var get acme/web staging DATABASE_URL",
    "keyhole var get web production TLS_KEY > key.pem",
    "keyhole var get web production API_TOKEN --version 6",
  ],
  right: "reveal",
  inputs: { project, environment, name, version: atVersion },
  run: async (admin, { project, environment, name, version }) => {
    const value = await revealVariable(admin, project, environment, name, version);
    const shows = { secret: value, what: `The value of ${name}`, field: { value } };
    return { document: { project, environment, key: name, ...(version && { version }) }, shows };
  },
});

const listAll = operation({
  path: "var list",
  about: "List the variables of an environment. Values are never shown.",
  examples: ["keyhole var list acme/web production", "keyhole var list acme/web production --unread 90d"],
  right: "see",
  inputs: { project, environment, unreadMs: unreadInput(variables), wide },
  run: async (admin, { project, environment, unreadMs }) => {
    const found = await listVariables(admin, project, environment);
    const items = found.map(({ name, ...rest }) => ({ key: name, ...rest }));
    const isMarked = items.some(({ rotateBy }) => rotateBy !== undefined);
    const isBait = items.some(({ canary }) => canary);
    const columns: Columns<(typeof items)[number]> = {
      NAME: (one) => one.key,
      UPDATED: (one) => formatTime(one.updatedAt),
      ...(isMarked && { "ROTATE BY": (one) => one.rotateBy ?? "-" }),
      ...(isBait && { CANARY: (one) => (one.canary ? "yes" : "-") }),
    };
    const placesOf = ({ key }: { key: string }) => ({ name: key, environments: [environment] });
    return listItems(admin, { project, descriptor: variables, unreadMs }, items, columns, placesOf, [environment]);
  },
});

const diff = operation({
  path: "var diff",
  about:
    "List the variables that differ from another environment's, or from an earlier version. Values are never shown.",
  examples: ["keyhole var diff acme/web staging production", "keyhole var diff acme/web staging --version 3"],
  right: "reveal",
  inputs: {
    project,
    environment,
    other: choice("[other]", "the other environment", environments),
    version: input("--version <number>", "compare with this version, which `keyhole history` lists", parseCount),
  },
  check: ({ other, version }) => {
    if ((other === undefined) !== (version === undefined)) return;
    throw usageProblem("var diff: name another environment, or give --version.");
  },
  run: async (admin, { project, environment, other, version }) => {
    const found = await diffVariables(admin, project, environment, other ?? version ?? "");
    const [ours, theirs] = version === undefined ? [environment, other] : ["the current version", `version ${version}`];
    const words = { only: `only in ${ours}`, missing: `only in ${theirs}`, differs: "another value" };
    return list(
      found.map(({ name, status }) => ({ key: name, status })),
      { NAME: (one) => one.key, DIFFERENCE: (one) => words[one.status] },
      `${version === undefined ? ours : environment} and ${theirs} of ${project} have the same variables.`,
    );
  },
});

const remove = operation({
  path: "var delete",
  about: "Delete a variable.",
  examples: ["keyhole var delete acme/web production OLD_TOKEN"],
  right: "write",
  inputs: { project, environment, name, version: ifVersion },
  run: async (admin, { project, environment, name, version }) => {
    await deleteVariable(admin, project, environment, name, { version });
    const document = { project, environment, key: name, status: "deleted" };
    return done(document, deletedSentence(project, name, [environment]));
  },
});

export function deletedSentence(where: string, name: string, from: readonly string[]): string {
  return `Deleted ${name} from ${where}, ${joined(from)}.`;
}

export const copy = operation({
  path: "var copy",
  about: "Copy variables to another environment or project, with their days of rotation. Values are never shown.",
  examples: [
    "keyhole var copy acme/web staging --to-env production --dry-run",
    "keyhole var copy acme/web staging --to acme/api --keys SMTP_HOST,SMTP_PASSWORD",
  ],
  right: "write",
  inputs: {
    project,
    environment,
    to: completed(input("--to <project>", "the project to copy to (default: the same)"), "projects"),
    toEnvironment: choice("--to-env <env>", "the environment to copy to (default: the same)", environments),
    names: completed(
      input("--keys <names>", "only these variables, comma-separated (default: all)", parseList),
      "items",
    ),
    dryRun: flag("--dry-run", "say what it would add and change, and write nothing"),
    seen: ofForm<SeenEnds>(),
  },
  check: ({ to, toEnvironment }) => {
    if (to !== undefined || toEnvironment !== undefined) return;
    throw usageProblem("var copy: name a target with --to-env or --to.");
  },
  run: async (admin, { project, environment, to = project, toEnvironment = environment, names, dryRun, seen }) => {
    const [source, target] = [
      { project, environment },
      { project: to, environment: toEnvironment },
    ];
    const { added, changed, same, warnings } = await copyVariables(admin, source, target, names, { ...seen, dryRun });
    const place = `${to}, ${toEnvironment}`;
    const counts = `${added.length} added, ${changed.length} changed, ${same.length} the same already`;
    const sentence = dryRun
      ? `Nothing was written. In ${place} there would be ${counts}.`
      : `Copied ${counted(added.length + changed.length, "variable")} to ${place}: ${counts}.`;
    return eachChange(target, { added, changed, same }, dryRun ? "WOULD BE" : "IS", { warnings, sentence, none: "" });
  },
});

/** Lists what happened to each variable, or would happen. The document has a list for each change. */
function eachChange(
  target: Place,
  changes: Readonly<Record<string, readonly string[]>>,
  heading: "IS" | "WOULD BE",
  { warnings, sentence, none }: { warnings: readonly string[]; sentence: string; none: string },
): Outcome {
  const rows = Object.entries(changes).flatMap(([change, names]) =>
    names.map((name) => [name, change === "same" ? "the same already" : change]),
  );
  const shows = { headers: ["NAME", heading], rows, none };
  return { ...done({ ...target, ...changes }, sentence, warnings), shows };
}

const importAll = operation({
  path: "var import",
  about: "Create or replace all variables of a file, or none of them if anything in it is wrong.",
  examples: [
    "keyhole var import acme/web production .env.production",
    "sops decrypt secrets.yaml | keyhole var import web staging - --format yaml",
  ],
  right: "write",
  asks: "needs --yes",
  inputs: {
    project,
    environment,
    file: file("<file>", "the file, or - for stdin", { bytesMax: setBytesMax }),
    format: choice("--format <format>", "what the file is (default: env)", ["env", "json", "yaml"]),
    prune: flag("--prune", "also delete the variables that the file does not have; asks first"),
    dryRun: flag("--dry-run", "say which variables it would add, change and delete, and write nothing"),
    allowEmpty: flag("--allow-empty", "succeed if it holds no variables"),
    literal,
    version: ifVersion,
  },
  run: async (admin, given, { agree }) => {
    const { project, environment, file, format = "env", prune = false, dryRun, allowEmpty, literal, version } = given;
    // Reading the file and asking take their time: another project may have the path by then.
    const { id: projectId } = await findProject(admin, project, prune ? ["write", "see"] : "write", [environment]);
    const { variables, warnings } = await readImport(file, format, literal === true);
    if (variables.length === 0 && !allowEmpty) {
      throw usageProblem(`${file.name} holds no variables; --allow-empty accepts that.`);
    }
    const place = { project, environment };
    const write = (more: WriteOptions & DryRun) =>
      setVariables(admin, project, environment, variables, { prune, version, projectId, warnings, ...more });
    const plan = prune || dryRun ? await write({ dryRun: true }) : undefined;
    if (dryRun && plan !== undefined) return wouldBe(place, plan);
    const imports = `import ${counted(variables.length, "variable")} into ${project}, ${environment}`;
    if (plan !== undefined) await agree(`${imports}, and delete ${deletions(plan.deleted)}`);
    const written = await write({ agreed: plan?.deleted });
    const { added, updated, deleted } = written;
    const created = added.length;
    const counts = [`${created} created`, `${updated} updated`, ...(prune ? [`${deleted.length} deleted`] : [])];
    const sentence = `Imported ${counted(created + updated, "variable")}: ${counts.join(", ")}.`;
    return done({ ...place, created, updated, ...(prune && { deleted }) }, sentence, written.warnings);
  },
});

function wouldBe(place: Place, { added, changed, deleted, warnings }: VariablesWrite): Outcome {
  const none = "Each variable of the file has its value already.";
  const counts = `add ${added.length}, change ${changed.length} and delete ${deleted.length}`;
  const sentence = `Nothing was written. The import would ${counts}.`;
  return eachChange(place, { added, changed, deleted }, "WOULD BE", { warnings, sentence, none });
}

/** Names what a prune deletes. */
function deletions(names: readonly string[]): string {
  if (names.length === 0) return "none";
  const more = names.length > namesMax ? ` and ${names.length - namesMax} more (--dry-run lists them)` : "";
  return `${names.length} that the file does not have: ${names.slice(0, namesMax).join(", ")}${more}`;
}

const namesMax = 20;

/** @throws Problem that lists everything that is wrong with the file */
async function readImport({ name, read }: ReadInput, format: ImportFormat, isLiteral: boolean) {
  const { parseImport } = await import("./import-text.ts"); // with a parser that no other operation needs
  const { variables, warnings, problems } = parseImport(format, decodeText(await read(), name), () => isLiteral);
  if (problems.length === 0) return { variables, warnings: warnings.map((warning) => `${name}: ${warning}`) };
  const lines = problems.map((problem) => `${name}: ${problem}\n`).join("");
  throw new Problem(exits.usage, "invalid", `${lines}Nothing was imported.`);
}

/** Sums up a write from text: added, changed, deleted. */
export function wroteSentence(where: string, environment: string, written: VariablesWrite): string {
  const { added, changed, deleted } = written;
  const counts = `${added.length} added, ${changed.length} changed, ${deleted.length} deleted`;
  return `Wrote ${where}, ${environment}: ${counts}.`;
}

/** `var edit` and `var export` are in `cli/variables.ts`. */
export const variableOperations: Operations = {
  about: "Variables of a project, one value per environment.",
  rows: [set, get, listAll, diff, remove, copy, importAll],
};
