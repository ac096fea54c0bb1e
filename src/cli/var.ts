import { Argument } from "@commander-js/extra-typings";
import { diffVariables, revealVariable } from "../admin/reveal.ts";
import { deleteVariable, listVariables, setVariables } from "../admin/variables.ts";
import { environments, variableValueBytesMax } from "../names.ts";
import { exits, Problem, usageProblem } from "../problem.ts";
import {
  answer,
  answerList,
  answerSecret,
  counted,
  noun,
  type Surroundings,
  wideOption,
  withAdmin,
} from "./command.ts";
import { nameWarnings, parseEnvFile } from "./env-file.ts";
import { decodeText, localName, readLocal } from "./input.ts";
import { environmentVerb } from "./project.ts";
import { formatTime, readHidden } from "./terminal.ts";

/** `keyhole var …` */
export function varCommand(here: Surroundings) {
  const set = environmentVerb(
    "set",
    "Create or replace a variable. Its value is read from stdin, byte for byte, or from a hidden prompt.",
    "keyhole var set acme/web production DATABASE_URL",
    "keyhole var set web production TLS_KEY < key.pem",
  )
    .argument("<name>", "letters, digits and _, not starting with a digit")
    .option("--value <value>", "the value, if it is not secret: other users of this machine may see it")
    .action(async (project, environment, name, options) => {
      const value = options.value === undefined ? await readValue(here, name) : encodeArgument(options.value);
      const { created, warnings } = await withAdmin(here, (admin) =>
        setVariables(admin, project, environment, [{ name, value }]),
      );
      const status = created === 1 ? "created" : "updated";
      if (value.at(-1) === 0x0a) here.say(`The value of ${name} ends in a newline, which is part of it.`);
      const warning = nameWarnings(name);
      if (warning !== undefined) here.say(`${warning}.`);
      if (value.length === 0) here.say(`The value of ${name} is empty.`);
      for (const one of warnings) here.say(one);
      const done = created === 1 ? "Created" : "Updated";
      const document = { project, environment, key: name, status, warnings };
      await answer(here, document, `${done} ${name} in ${project}, ${environment}.`);
    });

  const list = environmentVerb(
    "list",
    "List the variables of an environment. Values are never shown.",
    "keyhole var list acme/web production",
  )
    .option(...wideOption)
    .action(async (project, environment, { wide }) => {
      const variables = await withAdmin(here, (admin) => listVariables(admin, project, environment));
      const documents = variables.map(({ name, updatedAt }) => ({ key: name, updatedAt }));
      await answerList(
        here,
        documents,
        `${project} has no variables in ${environment}.`,
        {
          NAME: (one) => one.key,
          UPDATED: (one) => formatTime(one.updatedAt),
        },
        wide,
      );
    });

  const get = environmentVerb(
    "get",
    "Print the value of a variable, byte for byte. That you saw it is on record.",
    "keyhole var get acme/web staging DATABASE_URL",
    "keyhole var get web production TLS_KEY > key.pem",
  )
    .argument("<name>", "the variable")
    .action(async (project, environment, name) => {
      const value = await withAdmin(here, (admin) => revealVariable(admin, project, environment, name));
      await answerSecret(here, { project, environment, key: name, value }, value, `The value of ${name}`);
    });

  const diff = environmentVerb(
    "diff",
    "List the variables that differ from another environment's. Values are compared and never shown.",
    "keyhole var diff acme/web staging production",
  )
    .addArgument(new Argument("<other>", "the other environment").choices(environments))
    .action(async (project, environment, other) => {
      const found = await withAdmin(here, (admin) => diffVariables(admin, project, environment, other));
      const documents = found.map(({ name, status }) => ({ key: name, status }));
      const words = { only: `only in ${environment}`, missing: `only in ${other}`, differs: "another value" };
      await answerList(here, documents, `${environment} and ${other} of ${project} have the same variables.`, {
        NAME: (one) => one.key,
        DIFFERENCE: (one) => words[one.status],
      });
    });

  const remove = environmentVerb("delete", "Delete a variable.", "keyhole var delete acme/web production OLD_TOKEN")
    .argument("<name>", "the variable")
    .action(async (project, environment, name) => {
      await withAdmin(here, (admin) => deleteVariable(admin, project, environment, name));
      const document = { project, environment, key: name, status: "deleted" };
      await answer(here, document, `Deleted ${name} from ${project}, ${environment}.`);
    });

  const load = environmentVerb(
    "import",
    "Create or replace all variables of a dotenv file, or none of them if anything in it is wrong.",
    "keyhole var import acme/web production .env.production",
    "sops decrypt secrets.env | keyhole var import web staging -",
  )
    .argument("<file>", "dotenv text, or - for stdin")
    .option("--allow-empty", "succeed if it holds no variables")
    .action(async (project, environment, file, { allowEmpty }) => {
      const { variables, warnings: ofFile } = await readEnvFile(here, file);
      if (variables.length === 0 && !allowEmpty) {
        throw usageProblem(`${localName(file)} holds no variables; --allow-empty accepts that.`);
      }
      const written = await withAdmin(here, (admin) => setVariables(admin, project, environment, variables));
      const { created, updated } = written;
      const warnings = [...ofFile.map((warning) => `${localName(file)}: ${warning}`), ...written.warnings];
      for (const warning of warnings) here.say(warning);
      const document = { project, environment, created, updated, warnings };
      const imported = counted(created + updated, "variable");
      await answer(here, document, `Imported ${imported}: ${created} created, ${updated} updated.`);
    });

  return noun("var", "Variables of a project, one value per environment.", set, get, list, diff, remove, load);
}

async function readValue(here: Surroundings, name: string): Promise<Uint8Array> {
  const { isTTY } = here.terminal.stdin;
  const value = isTTY
    ? await readHidden(here.terminal, `Value of ${name}`)
    : await readLocal(here, "-", variableValueBytesMax, `The value of ${name}`);
  if (value.length > 0) return value;
  throw usageProblem(`${isTTY ? "No value was typed" : "Nothing came on stdin"}: --value "" stores an empty value.`);
}

function encodeArgument(value: string): Uint8Array {
  // The runtime replaces the bytes of an argument that is not UTF-8 by U+FFFD.
  if (value.includes("\ufffd")) throw usageProblem("--value is not UTF-8 text: give such a value on stdin.");
  return Buffer.from(value);
}

/** @throws Problem that lists everything that is wrong with the file */
async function readEnvFile(here: Surroundings, file: string) {
  const name = localName(file);
  const parsed = parseEnvFile(decodeText(await readLocal(here, file, envFileBytesMax), name));
  if (parsed.problems.length === 0) return parsed;
  const problems = parsed.problems.map((problem) => `${name}: ${problem}\n`).join("");
  throw new Problem(exits.usage, "invalid", `${problems}Nothing was imported.`);
}

/** The size of a thousand largest values. */
const envFileBytesMax = 64 * 1024 * 1024;
