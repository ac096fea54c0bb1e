import { deleteAccount, listAccounts, setAccount } from "../admin/accounts.ts";
import { environments } from "../names.ts";
import { exits, Problem, usageProblem } from "../problem.ts";
import {
  answer,
  answerList,
  atDesk,
  type Columns,
  choiceOption,
  decodeText,
  noun,
  readLocal,
  type Surroundings,
  verb,
} from "./command.ts";
import { projectArgument } from "./project.ts";
import { formatTime, readHidden } from "./terminal.ts";

/** `keyhole account …` */
export function accountCommand(here: Surroundings) {
  const set = verb(
    "set",
    "Create or replace a shared account. Stdin or a hidden prompt takes its values, one JSON object of strings.",
    "keyhole account set acme/web stripe --env staging,production < stripe.json",
    "pass show stripe-json | keyhole account set web stripe --env production",
  )
    .argument(...projectArgument)
    .argument("<name>", "the account")
    .addOption(choiceOption("--env <list>", "the environments it belongs to", environments).makeOptionMandatory())
    .action(async (project, name, options) => {
      const values = parseValues(await readValues(here, name));
      const { created } = await atDesk(here, (desk) => setAccount(desk, project, name, options.env, values));
      const status = created ? "created" : "updated";
      const document = { project, name, environments: options.env, status };
      await answer(here, document, `Account ${name} ${status} in ${project} for ${options.env.join(", ")}.`);
    });

  const list = verb("list", "List the shared accounts. Their values are never shown.", "keyhole account list acme/web")
    .argument(...projectArgument)
    .action(async (project) => {
      const accounts = await atDesk(here, (desk) => listAccounts(desk, project));
      const columns: Columns<(typeof accounts)[number]> = {
        NAME: (one) => one.name,
        ENVIRONMENTS: (one) => one.environments.join(","),
        UPDATED: (one) => formatTime(one.updatedAt),
      };
      await answerList(here, accounts, columns, `${project} has no accounts.`);
    });

  const remove = verb("delete", "Delete a shared account.", "keyhole account delete acme/web stripe")
    .argument(...projectArgument)
    .argument("<name>", "the account")
    .action(async (project, name) => {
      await atDesk(here, (desk) => deleteAccount(desk, project, name));
      await answer(here, { project, name, status: "deleted" }, `Deleted account ${name} from ${project}.`);
    });

  return noun("account", "Shared accounts: several secret fields under one name.")
    .addCommand(set)
    .addCommand(list)
    .addCommand(remove);
}

async function readValues(here: Surroundings, name: string): Promise<Uint8Array> {
  if (here.terminal.stdin.isTTY) return readHidden(here.terminal, `Values of ${name} as a JSON object`);
  const bytes = await readLocal(here, "-", valuesBytesMax + 1);
  if (bytes.length <= valuesBytesMax) return bytes;
  throw new Problem(exits.refused, "bound", "The values are larger than 1 MiB.");
}

/**
 * Parses the values; `setAccount` validates that they are an object of strings. The parser's own message is not shown,
 * because it quotes the text.
 */
function parseValues(bytes: Uint8Array): unknown {
  const text = decodeText(bytes);
  if (text === undefined) throw usageProblem("The values are not UTF-8 text.");
  let values: unknown;
  try {
    values = JSON.parse(text);
  } catch {
    throw usageProblem('The values must be one JSON object of strings, such as {"user":"…","password":"…"}.');
  }
  const repeated = repeatedField(text, values);
  if (repeated !== undefined) throw usageProblem(`The values name the field '${repeated}' twice.`);
  return values;
}

/** A field that occurs twice in a flat object of strings; JSON.parse silently keeps its last value. */
function repeatedField(text: string, values: unknown): string | undefined {
  if (typeof values !== "object" || values === null) return undefined;
  if (!Object.values(values).every((value) => typeof value === "string")) return undefined;
  // In such text every other string is a name.
  const strings = text.match(/"(?:[^"\\]|\\.)*"/g) ?? [];
  const names = strings.filter((_, at) => at % 2 === 0).map((quoted) => String(JSON.parse(quoted)));
  return names.find((name, at) => names.indexOf(name) !== at);
}

const valuesBytesMax = 1024 * 1024;
