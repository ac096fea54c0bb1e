import { Argument, Option } from "@commander-js/extra-typings";
import { environments } from "../../core/names.ts";
import { exits, Problem, usageProblem } from "../../core/problem.ts";
import { counted, formatTime } from "../../core/text.ts";
import { type AdminContext, rehearse } from "../../desk/context.ts";
import type { Columns } from "../../desk/outcome.ts";
import { findProject } from "../../desk/projects.ts";
import { setBytesMax } from "../../sets/kind.ts";
import { confirmChange, withAdmin } from "../../terminal/admin.ts";
import { answer, answerList, answerSecret } from "../../terminal/answer.ts";
import { type CommandContext, noun } from "../../terminal/command.ts";
import { decodeText, localName, readLocal, readValue } from "../../terminal/input.ts";
import { parseComingDay, parseCount } from "../../terminal/options.ts";
import { listFound } from "../../terminal/records.ts";

import { environmentsVerb, environmentVerb, ifVersionOption, wideOption, yesOption } from "../../terminal/verbs.ts";
import { editCommand, literalOption } from "./edit.ts";
import { nameWarnings, valueWarnings } from "./env-file.ts";
import type { ImportFormat } from "./import-text.ts";
import { answerChanges, copyCommand, exportCommand } from "./moves.ts";
import { diffVariables, revealVariable } from "./reveal.ts";
import { deleteVariable, listVariables, setVariables, type VariablesWrite, writeVariables } from "./write.ts";

export function varCommand(context: CommandContext) {
  return noun(
    "var",
    "Variables of a project, one value per environment.",
    setVerb(context),
    getVerb(context),
    listVerb(context),
    diffVerb(context),
    deleteVerb(context),
    editCommand(context),
    copyCommand(context),
    importVerb(context),
    exportCommand(context),
  );
}

function setVerb(context: CommandContext) {
  return environmentsVerb(
    "set",
    "Create or replace a variable. Its value is read from stdin, byte for byte, or from a hidden prompt.",
    "keyhole var set acme/web production DATABASE_URL",
    "keyhole var set web production TLS_KEY < key.pem",
    "keyhole var set web staging,production STRIPE_KEY --rotate-by 2030-01-31",
  )
    .argument("<name>", "letters, digits and _, not starting with a digit")
    .option("--value <value>", "the value, if it is not secret: other users of this machine may see it")
    .option(
      "--rotate-by <day>",
      "rotate it by this day (UTC); `keyhole expiring` and a metric show it (default: none)",
      (text) => parseComingDay(text, Date.now()),
    )
    .option(...ifVersionOption)
    .action(async (project, targets, name, options) => {
      const { rotateBy = null, ifVersion: version } = options;
      if (version !== undefined && targets.length > 1) {
        throw usageProblem("var set: --if-version needs a single environment: each has versions of its own.");
      }
      const { value, written } = await withAdmin(context, async (admin) => {
        await findProject(admin, project, "write", targets);
        const value =
          options.value === undefined
            ? await readValue(context, name, `--value "" stores an empty value`)
            : Buffer.from(options.value);
        const write = { entries: [{ name, value, rotateBy }], version };
        const writes = new Map(targets.map((environment) => [environment, write]));
        return { value, written: await writeVariables(admin, project, writes) };
      });
      const places = [...written].map(([environment, { added }]) => {
        return { environment, status: added.length === 1 ? "created" : "updated" };
      });
      const warnings = [...written.values()].flatMap((one) => one.warnings);
      const ofName = nameWarnings(name).map((warning) => `${warning}.`);
      for (const one of [...ofName, ...valueWarnings(name, value), ...warnings]) context.say(one);
      const where = places.length === 1 ? places[0] : { environments: places };
      const document = { project, ...where, key: name, ...(rotateBy && { rotateBy }), warnings };
      const sentences = ["created", "updated"].flatMap((status) => {
        const names = places.filter((one) => one.status === status).map(({ environment }) => environment);
        const done = status === "created" ? "Created" : "Updated";
        return names.length === 0 ? [] : [`${done} ${name} in ${project}, ${names.join(" and ")}.`];
      });
      if (rotateBy !== null) sentences.push(`Rotate it by ${rotateBy}.`);
      await answer(context, document, sentences.join(" "));
    });
}

function listVerb(context: CommandContext) {
  return environmentVerb(
    "list",
    "List the variables of an environment. Values are never shown.",
    "keyhole var list acme/web production",
  )
    .option(...wideOption)
    .action(async (project, environment, { wide }) => {
      const variables = await withAdmin(context, (admin) => listVariables(admin, project, environment));
      const items = variables.map(({ name, ...rest }) => ({ key: name, ...rest }));
      const isMarked = items.some(({ rotateBy }) => rotateBy !== undefined);
      const columns: Columns<(typeof items)[number]> = {
        NAME: (one) => one.key,
        UPDATED: (one) => formatTime(one.updatedAt),
        ...(isMarked && { "ROTATE BY": (one) => one.rotateBy ?? "-" }),
      };
      await answerList(context, items, columns, `${project} has no variables in ${environment}.`, wide);
    });
}

function getVerb(context: CommandContext) {
  return environmentVerb(
    "get",
    "Print the value of a variable, byte for byte. The audit records that you saw it.",
    "keyhole var get acme/web staging DATABASE_URL",
    "keyhole var get web production TLS_KEY > key.pem",
  )
    .argument("<name>", "the variable")
    .action(async (project, environment, name) => {
      const value = await withAdmin(context, (admin) => revealVariable(admin, project, environment, name));
      await answerSecret(context, { project, environment, key: name, value }, value, `The value of ${name}`);
    });
}

function diffVerb(context: CommandContext) {
  return environmentVerb(
    "diff",
    "List the variables that differ from another environment's, or from an earlier version. Values are never shown.",
    "keyhole var diff acme/web staging production",
    "keyhole var diff acme/web staging --version 3",
  )
    .addArgument(new Argument("[other]", "the other environment").choices(environments))
    .option("--version <number>", "compare with this version, which `keyhole history` lists", parseCount)
    .action(async (project, environment, otherEnvironment, { version }) => {
      const other = otherEnvironment ?? version;
      if (other === undefined || (otherEnvironment !== undefined && version !== undefined)) {
        throw usageProblem("var diff: name another environment, or give --version.");
      }
      const [ours, theirs] = version === undefined ? [environment, other] : ["the current version", `version ${other}`];
      const words = { only: `only in ${ours}`, missing: `only in ${theirs}`, differs: "another value" };
      const none = `${version === undefined ? ours : environment} and ${theirs} of ${project} have the same variables.`;
      const find = async (admin: AdminContext) => {
        const found = await diffVariables(admin, project, environment, other);
        return found.map(({ name, status }) => ({ key: name, status }));
      };
      await listFound(context, false, find, none, { NAME: (one) => one.key, DIFFERENCE: (one) => words[one.status] });
    });
}

function deleteVerb(context: CommandContext) {
  return environmentVerb("delete", "Delete a variable.", "keyhole var delete acme/web production OLD_TOKEN")
    .argument("<name>", "the variable")
    .option(...ifVersionOption)
    .action(async (project, environment, name, { ifVersion: version }) => {
      await withAdmin(context, (admin) => deleteVariable(admin, project, environment, name, { version }));
      const document = { project, environment, key: name, status: "deleted" };
      await answer(context, document, `Deleted ${name} from ${project}, ${environment}.`);
    });
}

function importVerb(context: CommandContext) {
  return environmentVerb(
    "import",
    "Create or replace all variables of a file, or none of them if anything in it is wrong.",
    "keyhole var import acme/web production .env.production",
    "sops decrypt secrets.yaml | keyhole var import web staging - --format yaml",
  )
    .argument("<file>", "the file, or - for stdin")
    .addOption(new Option("--format <format>", "what the file is").choices(["env", "json", "yaml"]).default("env"))
    .option("--prune", "also delete the variables that the file does not have; asks first")
    .option("--dry-run", "say which variables it would add, change and delete, and write nothing")
    .option("--allow-empty", "succeed if it holds no variables")
    .option(...literalOption)
    .option(...ifVersionOption)
    .option(...yesOption)
    .action(async (project, environment, file, { format, prune = false, dryRun = false, allowEmpty, ...options }) => {
      const { yes, ifVersion: version } = options;
      const written = await withAdmin(context, async (admin) => {
        await findProject(admin, project, prune ? ["write", "see"] : "write", [environment]);
        const { variables, warnings } = await readImport(context, format, file, options.literal);
        if (variables.length === 0 && !allowEmpty) {
          throw usageProblem(`${localName(file)} holds no variables; --allow-empty accepts that.`);
        }
        const imports = `import ${counted(variables.length, "variable")} into ${project}, ${environment}`;
        const write = (it: AdminContext, agreed?: VariablesWrite) =>
          setVariables(it, project, environment, variables, { prune, version, agreed: agreed?.deleted });
        const deed = ({ deleted }: VariablesWrite) => `${imports}, and delete ${deletions(deleted)}`;
        const done = dryRun
          ? await rehearse(admin, write)
          : await confirmChange(context, admin, yes || !prune, write, deed);
        return { ...done, ofFile: warnings };
      });
      const warnings = [...written.ofFile.map((warning) => `${localName(file)}: ${warning}`), ...written.warnings];
      for (const warning of warnings) context.say(warning);
      const { added, changed, updated, deleted } = written;
      if (dryRun) {
        const none = "Each variable of the file has its value already.";
        await answerChanges(context, { project, environment }, { added, changed, deleted }, warnings, "WOULD BE", none);
        const counts = `add ${added.length}, change ${changed.length} and delete ${deleted.length}`;
        if (!context.json) context.say(`Nothing was written. The import would ${counts}.`);
        return;
      }
      const created = added.length;
      const document = { project, environment, created, updated, ...(prune && { deleted }), warnings };
      const counts = [`${created} created`, `${updated} updated`, ...(prune ? [`${deleted.length} deleted`] : [])];
      await answer(context, document, `Imported ${counted(created + updated, "variable")}: ${counts.join(", ")}.`);
    });
}

/** Names what a prune deletes. */
function deletions(names: readonly string[]): string {
  if (names.length === 0) return "none";
  const more = names.length > namesMax ? ` and ${names.length - namesMax} more (--dry-run lists them)` : "";
  return `${names.length} that the file does not have: ${names.slice(0, namesMax).join(", ")}${more}`;
}

const namesMax = 20;

/** @throws Problem that lists everything that is wrong with the file */
async function readImport(context: CommandContext, format: ImportFormat, file: string, literal = false) {
  const { parseImport } = await import("./import-text.ts"); // with a parser that no other command needs
  const name = localName(file);
  const text = decodeText(await readLocal(context, file, setBytesMax), name);
  const parsed = parseImport(format, text, () => literal);
  if (parsed.problems.length === 0) return parsed;
  const problems = parsed.problems.map((problem) => `${name}: ${problem}\n`).join("");
  throw new Problem(exits.usage, "invalid", `${problems}Nothing was imported.`);
}
