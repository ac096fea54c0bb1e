import { deleteAccount, listAccounts, setAccount } from "../admin/accounts.ts";
import { environments } from "../names.ts";
import { exits, Problem, usageProblem } from "../problem.ts";
import {
  answer,
  answerList,
  atDesk,
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
    "Create or replace a shared account; its values come from stdin as one JSON object of strings.",
    "keyhole account set acme/web stripe --env staging,production < stripe.json",
    "pass show stripe-json | keyhole account set web stripe --env production",
  )
    .argument(...projectArgument)
    .argument("<name>", "the account")
    .addOption(choiceOption("--env <list>", "the environments it belongs to", environments).makeOptionMandatory())
    .action(async (where, name, options) => {
      const values = parseValues(await readValues(here, name));
      const { created } = await atDesk(here, (desk) => setAccount(desk, where, name, options.env, values));
      const status = created ? "created" : "updated";
      const document = { project: where, name, environments: options.env, status };
      await answer(here, document, `Account ${name} ${status} in ${where} for ${options.env.join(", ")}.`);
    });

  const list = verb("list", "List the shared accounts; their values are never shown.", "keyhole account list acme/web")
    .argument(...projectArgument)
    .action(async (where) => {
      const accounts = await atDesk(here, (desk) => listAccounts(desk, where));
      const header = ["NAME", "ENVIRONMENTS", "UPDATED"];
      const rows = accounts.map((one) => [one.name, one.environments.join(","), formatTime(one.updatedAt)]);
      await answerList(here, accounts, header, rows, `${where} has no accounts.`);
    });

  const remove = verb("delete", "Delete a shared account.", "keyhole account delete acme/web stripe")
    .argument(...projectArgument)
    .argument("<name>", "the account")
    .action(async (where, name) => {
      await atDesk(here, (desk) => deleteAccount(desk, where, name));
      await answer(here, { project: where, name, status: "deleted" }, `Deleted account ${name} from ${where}.`);
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
 * The values as JSON has them; whether they are an object of strings is judged where they are stored. What the parser
 * says is not passed on: it quotes the text.
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

/** A field that stands twice in a flat object of strings, of which JSON.parse silently keeps the last. */
function repeatedField(text: string, values: unknown): string | undefined {
  if (typeof values !== "object" || values === null) return undefined;
  if (!Object.values(values).every((value) => typeof value === "string")) return undefined;
  // In such text the strings are, in turn, a name and its value.
  const strings = text.match(/"(?:[^"\\]|\\.)*"/g) ?? [];
  const names = strings.filter((_, at) => at % 2 === 0).map((quoted) => String(JSON.parse(quoted)));
  return names.find((name, at) => names.indexOf(name) !== at);
}

const valuesBytesMax = 1024 * 1024;
