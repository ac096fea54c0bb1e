import { randomBytes } from "node:crypto";
import { listNames, type NamedValue } from "../../core/formats/dotenv.ts";
import { type Environment, environments, remarkNames, variableValueBytesMax } from "../../core/names.ts";
import { exits, Problem, usageProblem } from "../../core/problem.ts";
import { parseList } from "../../core/words/lists.ts";
import { machinesOnlySentence } from "../../core/words/machines-only.ts";
import { parseCount, wholeNumber } from "../../core/words/parse.ts";
import { counted, decodeText, joined, listed } from "../../core/words/text.ts";
import { parseComingDay } from "../../core/words/times.ts";
import { type AdminContext, requireFreshToCompare } from "../../people/desk/context.ts";
import {
  atVersion,
  choice,
  completed,
  environment,
  file,
  flag,
  formOnly,
  ifVersion,
  input,
  machinesOnly,
  project,
  severalEnvironments,
  typed,
  wide,
} from "../../people/desk/inputs.ts";
import { type Operations, operation } from "../../people/desk/operation.ts";
import { type Columns, done, list } from "../../people/desk/outcome.ts";
import { rightTo } from "../../people/desk/permit.ts";
import { requireAsSeen } from "../../people/desk/plan.ts";
import { findToChange, placeOf } from "../../people/desk/projects.ts";
import { listItems, unreadInput } from "../../people/editing/last-reads.ts";
import { openSetAt, type SetOf } from "../../people/editing/open.ts";
import { remarkInputs, remarksIn } from "../../people/editing/remarks.ts";
import { setBytesMax } from "../../serve/sets/kind.ts";
import { deletionOf, ifAt, requireOne, severalNames } from "../delete.ts";
import { changesIn } from "./edit.ts";
import { type VariableEntry, variables } from "./entry.ts";
import type { IsLiteral } from "./env-file.ts";
import type { ImportFormat } from "./import-text.ts";
import { diffVariables, revealVariable } from "./reveal.ts";
import {
  type EnvironmentWrite,
  listVariables,
  type NewVariable,
  type Place,
  planCopy,
  planEach,
  planVariables,
  storedValue,
  type VariablesCopy,
  type VariablesWrite,
  warningsIn,
} from "./write.ts";

const name = completed(input("<name>", "the variable"), "items");
const names = severalNames("variable", parseList);

/** For what reads many variables at once. */
export const literal = flag(
  "--literal",
  "take text that another tool has encrypted, and references of other tools, as they are",
);

export const set = operation({
  path: "var set",
  about: "Create or replace a variable. Its value is read from stdin, byte for byte, or from a hidden prompt.",
  examples: [
    "keyhole var set acme/web production DATABASE_URL",
    "keyhole var set web production TLS_KEY < key.pem",
    "keyhole var set web staging,production STRIPE_KEY --rotate-by 2030-01-31",
    "keyhole var set billing production ROOT_PASSWORD --canary",
    "keyhole var set web production SESSION_KEY --machines-only --generate 32",
    'keyhole var set web production STRIPE_KEY --note "Made in the Stripe dashboard; finance rotates it"',
  ],
  right: rightTo("variables.write"),
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
        madeBy: "generate",
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
    machinesOnly,
    generate: input(
      "--generate <bytes>",
      "with --machines-only: so many random bytes in base64url as the value, never shown",
      wholeNumber(16, 1024),
    ),
    ...remarkInputs,
    version: ifVersion,
    each: formOnly<ReadonlyMap<Environment, readonly NewVariable[]>>(),
  },
  check: ({ environments, version, generate, machinesOnly, value }) => {
    requireOne("var set", environments, version);
    if (generate !== undefined && value.name === "the option")
      throw usageProblem("var set: give --value or --generate, not both.");
    if (generate !== undefined && !machinesOnly) throw usageProblem("var set: --generate needs --machines-only.");
  },
  plan: async (admin, given) => {
    const { project, environments, name, each, rotateBy = null, canary, machinesOnly, generate, version } = given;
    const found = await findToChange(admin, project, "write", environments); // before anything is read
    const value = each || generate !== undefined ? undefined : await given.value.read();
    const changes = new Map(
      environments.map((environment): [Environment, EnvironmentWrite] => {
        // A key for one environment must not read what was made for another.
        const made = generate === undefined ? value : randomBytes(generate).toString("base64url");
        const one = { name, canary, machinesOnly, value: made, rotateBy, ...remarksIn(given) };
        return [environment, { entries: each?.get(environment) ?? [one] }];
      }),
    );
    const { would, ...change } = await planEach(admin, project, changes, found);
    await requireAsSeen(change, ifAt(environments, version));
    return {
      ...change,
      document: { project, key: name, ...savedPlaces(would) },
      sentence: `Nothing was written. ${savedSentence(project, changes, would, ["It would create", "It would update"])}`,
      apply: async () => {
        const written = await change.apply();
        const marks = { ...(canary && { canary }), ...(machinesOnly && { machinesOnly }) };
        const document = { project, ...savedPlaces(written), key: name, ...(rotateBy && { rotateBy }), ...marks };
        const day = rotateBy ? ` Rotate it by ${rotateBy}.` : "";
        const bait = canary ? " It is a canary: every use of it is on record." : "";
        const hidden = machinesOnly ? ` ${machinesOnlySentence}` : "";
        return done(document, savedSentence(project, changes, written) + day + bait + hidden, warningsIn(written));
      },
    };
  },
});

export const mark = operation({
  path: "var mark",
  about: "Change the note of variables, or the day to rotate them by. Their values stay, and machines see no change.",
  examples: [
    'keyhole var mark acme/web staging,production STRIPE_KEY --note "Made in the Stripe dashboard"',
    "keyhole var mark web production DATABASE_URL,SMTP_PASSWORD --rotate-by 2030-01-31",
  ],
  right: rightTo("variables.write"),
  inputs: {
    project,
    environments: severalEnvironments,
    names,
    ...remarkInputs,
    rotateBy: input("--rotate-by <day>", "rotate them by this day (UTC); none removes it", (text) =>
      text === "none" ? text : parseComingDay(text, Date.now()),
    ),
    version: ifVersion,
  },
  check: ({ environments, version, rotateBy, ...given }) => {
    requireOne("var mark", environments, version);
    if (rotateBy !== undefined || Object.keys(remarksIn(given)).length > 0) return;
    throw usageProblem(`var mark: give ${remarkNames.map((name) => `--${name}`).join(", ")}, --rotate-by or both.`);
  },
  plan: async (admin, { project, environments, names, rotateBy: day, version, ...given }) => {
    const rotateBy = day === "none" ? null : day; // no parsed option can be null
    const remarks = remarksIn(given);
    const entries = names.map((name) => ({ name, ...remarks, rotateBy }));
    const changes = new Map(environments.map((environment) => [environment, { entries }]));
    const found = await findToChange(admin, project, "write", environments);
    const { would: _, ...change } = await planEach(admin, project, changes, found);
    await requireAsSeen(change, ifAt(environments, version));
    const said = [
      ...(rotateBy === undefined ? [] : [rotateBy ? `to be rotated by ${rotateBy}` : "without a day to rotate by"]),
      ...Object.entries(remarks).map(([name, text]) =>
        text ? `with the ${name} ${JSON.stringify(text)}` : `without a ${name}`,
      ),
    ].join(", ");
    const did = `${listed(names)} in ${project}, ${joined(environments)}: ${said}.`;
    const document = { project, environments, keys: names, ...remarks, rotateBy };
    return {
      ...change,
      document,
      sentence: `Nothing was written. It would mark ${did}`,
      names: { added: [], changed: names, deleted: [] },
      same: 0,
      apply: async () => done(document, `Marked ${did}`, warningsIn(await change.apply())),
    };
  },
});

/** Where a variable was created, and where it was updated, for a document. */
function savedPlaces(written: ReadonlyMap<Environment, VariablesWrite>) {
  const places = [...written].map(([environment, { added }]) => {
    return { environment, status: added.length === 1 ? "created" : "updated" };
  });
  return places.length === 1 ? places[0] : { environments: places };
}

/** Says which variables were created, and where, and which were updated. */
function savedSentence(
  where: string,
  changes: ReadonlyMap<Environment, EnvironmentWrite>,
  written: ReadonlyMap<Environment, VariablesWrite>,
  [create, update]: readonly [string, string] = ["Created", "Updated"],
): string {
  const all = [...changes].flatMap(([environment, { entries }]) => {
    const isNew = ({ name }: NewVariable) => written.get(environment)?.added.includes(name);
    const did = Map.groupBy(entries, (one) => (isNew(one) ? create : update));
    return [...did].map(([did, some]) => ({ environment, what: `${did} ${listed(some.map(({ name }) => name))}` }));
  });
  const places = Map.groupBy(all, ({ what }) => what);
  const sentences = [...places].map(([what, some]) => {
    return `${what} in ${where}, ${joined(some.map(({ environment }) => environment))}.`;
  });
  return sentences.sort().join(" ");
}

const get = operation({
  path: "var get",
  about: "Print the value of a variable, byte for byte. The audit records that you saw it.",
  examples: [
    "keyhole var get acme/web staging DATABASE_URL",
    "keyhole var get web production TLS_KEY > key.pem",
    "keyhole var get web production API_TOKEN --version 6",
  ],
  right: rightTo("variables.reveal"),
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
      UPDATED: (one) => ({ at: one.updatedAt }),
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
  right: rightTo("variables.reveal"),
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
    const words = {
      hidden: "for machines only: not compared",
      only: `only in ${ours}`,
      missing: `only in ${theirs}`,
      differs: "another value",
    };
    return list(
      found.map(({ name, status }) => ({ key: name, status })),
      { NAME: (one) => one.key, DIFFERENCE: (one) => words[one.status] },
      `${version === undefined ? ours : environment} and ${theirs} of ${project} have the same variables.`,
    );
  },
});

export const remove = deletionOf(variables, {
  called: "key",
  names,
  environments: severalEnvironments,
  examples: [
    "keyhole var delete acme/web production OLD_TOKEN",
    "keyhole var delete web staging A_KEY,B_KEY --dry-run",
  ],
});

export const copy = operation({
  path: "var copy",
  about:
    "Copy variables to another environment or project, with their days of rotation and notes. Values are never shown.",
  examples: [
    "keyhole var copy acme/web staging --to-env production --dry-run",
    "keyhole var copy acme/web staging --to acme/api --keys SMTP_HOST,SMTP_PASSWORD",
  ],
  right: rightTo("variables.write"),
  inputs: {
    project,
    environment,
    to: completed(input("--to <project>", "the project to copy to (default: the same)"), "projects"),
    toEnvironment: choice("--to-env <env>", "the environment to copy to (default: the same)", environments),
    names: completed(
      input("--keys <names>", "only these variables, comma-separated (default: all)", parseList),
      "items",
    ),
  },
  check: ({ to, toEnvironment }) => {
    if (to !== undefined || toEnvironment !== undefined) return;
    throw usageProblem("var copy: name a target with --to-env or --to.");
  },
  plan: async (admin, given) => {
    const [source, target] = endsOf(given);
    const { would, ...change } = await planCopy(admin, source, target, given.names);
    return {
      ...change,
      names: { ...would, deleted: [] },
      same: would.same.length,
      ...eachChange(target, would, "WOULD BE"),
      warnings: would.warnings,
      sentence: `Nothing was written. In ${target.project}, ${target.environment} there would be ${counts(would)}.`,
      apply: async () => {
        const copied = await change.apply();
        const { added, changed, warnings } = copied;
        const what = counted(added.length + changed.length, "variable");
        const sentence = `Copied ${what} to ${target.project}, ${target.environment}: ${counts(copied)}.`;
        const { document, shows } = eachChange(target, copied, "IS");
        return { ...done(document, sentence, warnings), shows };
      },
    };
  },
});

function endsOf(given: {
  readonly project: string;
  readonly environment: Environment;
  readonly to: string | undefined;
  readonly toEnvironment: Environment | undefined;
}): readonly [source: Place, target: Place] {
  const { project, environment, to = project, toEnvironment = environment } = given;
  return [
    { project, environment },
    { project: to, environment: toEnvironment },
  ];
}

function counts({ added, changed, same }: VariablesCopy): string {
  return `${added.length} added, ${changed.length} changed, ${same.length} the same already`;
}

/** Lists what happened to each variable, or would happen. The document has a list for each change. */
function eachChange(
  target: Place,
  { added, changed, same, deleted }: Partial<VariablesCopy & VariablesWrite>,
  heading: "IS" | "WOULD BE",
  none = "",
) {
  const changes = { added, changed, ...(same && { same }), ...(deleted && { deleted }) };
  const rows = Object.entries(changes).flatMap(([change, names = []]) =>
    names.map((name) => [name, change === "same" ? "the same already" : change]),
  );
  return { document: { ...target, ...changes }, shows: { headers: ["NAME", heading], rows, count: rows.length, none } };
}

export const importAll = operation({
  path: "var import",
  about: "Create or replace all variables of a file, or none of them if anything in it is wrong.",
  examples: [
    "keyhole var import acme/web production .env.production",
    "sops decrypt secrets.yaml | keyhole var import web staging - --format yaml",
  ],
  right: rightTo("variables.write"),
  asks: "needs --yes",
  inputs: {
    project,
    environment,
    file: file("<file>", "the file, or - for stdin", { bytesMax: setBytesMax }),
    format: choice("--format <format>", "what the file is (default: env)", ["env", "json", "yaml"]),
    prune: flag("--prune", "also delete the variables that the file does not have; asks first"),
    touch: flag("--touch", "also write the variables that have their value already, which makes them new versions"),
    allowEmpty: flag("--allow-empty", "succeed if it holds no variables"),
    literal,
    notes: flag("--notes", "in env and yaml text, the comment above a variable becomes its note"),
    version: ifVersion,
  },
  plan: async (
    admin,
    { project, environment, file, format = "env", prune = false, touch = false, allowEmpty, literal, notes, version },
  ) => {
    const found = await findToChange(admin, project, prune ? ["write", "see"] : "write", [environment]);
    requireFreshToCompare(admin, placeOf(found), [environment]); // before anything is read
    const { variables: read, warnings } = await readText(
      file.name,
      decodeText(await file.read(), file.name),
      format,
      () => literal === true,
    );
    const entries = notes ? read : read.map(({ note: _, ...entry }) => entry);
    if (entries.length === 0 && !allowEmpty) {
      const how = file.name === "" ? "" : "; --allow-empty accepts that";
      throw usageProblem(`${file.name || "The text"} holds no variables${how}.`);
    }
    const place = { project, environment };
    const asked = { prune, onlyChanges: !touch, warnings };
    const { would, ...change } = await planVariables(admin, project, environment, entries, asked, found);
    await requireAsSeen(change, ifAt([environment], version));
    const { added, changed, deleted } = would;
    const imports = `import ${counted(entries.length, "variable")} into ${project}, ${environment}`;
    const counts = `add ${added.length}, change ${changed.length} and delete ${deleted.length}`;
    return {
      ...change,
      ...(prune && { deed: `${imports}, and delete ${deletions(deleted)}` }),
      names: would,
      same: would.same.length,
      ...eachChange(place, { added, changed, deleted }, "WOULD BE", "Each variable of the file has its value already."),
      warnings: would.warnings,
      sentence: `Nothing was written. The import would ${counts}.`,
      apply: async () => {
        const { added, updated, same, deleted, warnings } = await change.apply();
        const created = added.length;
        const left = touch ? 0 : same.length;
        const counts = [
          `${created} created`,
          `${updated} updated`,
          ...(prune ? [`${deleted.length} deleted`] : []),
          ...(left > 0 ? [`${left} as before`] : []),
        ];
        const sentence = `Imported ${counted(created + updated, "variable")}: ${counts.join(", ")}.`;
        const document = { project, environment, created, updated, same: left, ...(prune && { deleted }) };
        return done(document, sentence, warnings);
      },
    };
  },
});

/**
 * Writes what a person changed in the text of an environment, for `var edit` and the page Edit as text. Untouched lines
 * write nothing.
 */
export const edited = operation({
  path: "var edit",
  about: "Write what was changed in the text of an environment, and delete what was removed from it.",
  examples: ["keyhole var edit acme/web staging"],
  right: rightTo("variables.write"),
  inputs: {
    project,
    environment,
    text: input("<text>", "the text"),
    literal,
    /** The version that the text was made of. After "Save over it" it is older than the set. */
    base: formOnly<number>(),
    /** The values that the text was made of, where they are at hand. Then each changed line is judged as any other write. */
    saw: formOnly<readonly NamedValue[]>(),
  },
  plan: async (admin, { project, environment, text, literal = false, base, saw }) => {
    const found = await findToChange(admin, project, ["reveal", "write", "see"], [environment]);
    requireFreshToCompare(admin, placeOf(found), [environment]);
    const { shown, hiddenSince } = saw
      ? { shown: saw, hiddenSince: new Set<string>() }
      : await shownAt(admin, { project: found, descriptor: variables, environment }, base);
    const stored = new Map(shown.map(({ name, value }) => [name, value]));
    const isLiteral: IsLiteral = (name, value) => literal || hiddenSince.has(name) || stored.get(name) === value;
    const read = await readText("", text, "env", isLiteral, "written");
    if (read.variables.length === 0 && saw === undefined) throw usageProblem("The text holds no variables.");
    const [left = [], taken = []] = [true, false].map((one) =>
      read.variables.filter(({ name }) => hiddenSince.has(name) === one),
    );
    const { changed, removed } = changesIn(shown, taken);
    const stays = left.map(
      ({ name }) => `${name} is for machines only since you saw it, and stays: its line is left out.`,
    );
    const asked = { remove: removed, onlyChanges: true, warnings: [...stays, ...read.warnings] };
    const { would, ...change } = await planVariables(admin, project, environment, changed, asked, found);
    const place = `${project}, ${environment}`;
    const counts = `add ${would.added.length}, change ${would.changed.length} and delete ${would.deleted.length}`;
    const gone = `${counted(would.deleted.length, "variable")}: ${listNames(would.deleted)}`;
    return {
      ...change,
      deed: would.deleted.length > 0 ? `change ${place}, and delete ${gone}` : undefined,
      document: { project, environment },
      names: would,
      same: 0,
      warnings: would.warnings,
      sentence: `Nothing was written. It would ${counts}.`,
      apply: async () => {
        const { added, changed, deleted, warnings } = await change.apply();
        const counts = `${added.length} added, ${changed.length} changed, ${deleted.length} deleted`;
        return done({ project, environment, added, changed, deleted }, `Wrote ${place}: ${counts}.`, warnings);
      },
    };
  },
});

/** The values of a version that a page showed, and the names that are for machines only since then. */
async function shownAt(admin: AdminContext, of: SetOf<VariableEntry>, version: number | undefined) {
  const { items, isMachinesOnly } = await openSetAt(admin, of, version);
  // Comparing their lines would tell the old value of what no person may read now. So these lines are left out.
  const hiddenSince = new Set(
    [...items].flatMap(([name, { isHidden, entry }]) => (isHidden && !isMachinesOnly(entry) ? [name] : [])),
  );
  const shown = [...items.values()].flatMap((item) =>
    item.isHidden ? [] : [{ name: item.entry.key, value: storedValue(item) }],
  );
  return { shown, hiddenSince };
}

/** Names what a prune deletes. */
function deletions(names: readonly string[]): string {
  if (names.length === 0) return "none";
  const more = names.length > namesMax ? ` and ${names.length - namesMax} more (--dry-run lists them)` : "";
  return `${names.length} that the file does not have: ${names.slice(0, namesMax).join(", ")}${more}`;
}

const namesMax = 20;

/** @throws Problem that lists everything that is wrong with the text, and says what was not done */
async function readText(name: string, text: string, format: ImportFormat, isLiteral: IsLiteral, deed = "imported") {
  const { parseImport } = await import("./import-text.ts"); // with a parser that no other operation needs
  const { variables, warnings, problems } = parseImport(format, text, isLiteral);
  const at = name === "" ? "" : `${name}: `;
  if (problems.length === 0) return { variables, warnings: warnings.map((warning) => `${at}${warning}`) };
  const lines = problems.map((problem) => `${at}${problem}\n`).join("");
  throw new Problem(exits.usage, "invalid", `${lines}Nothing was ${deed}.`);
}

/** `var edit` and `var export` are in `cli/variables.ts`. */
export const variableOperations: Operations = {
  about: "Variables of a project, one value per environment.",
  rows: [set, mark, get, listAll, diff, remove, copy, importAll],
};
