import { Option } from "@commander-js/extra-typings";
import { environments } from "../../core/names.ts";
import { usageProblem } from "../../core/problem.ts";
import { formatTime } from "../../core/text.ts";
import type { AdminContext } from "../../desk/context.ts";
import { findProject } from "../../desk/projects.ts";
import { confirmChange, withAdmin } from "../../terminal/admin.ts";
import { answer, answerSecret } from "../../terminal/answer.ts";
import { type CommandContext, noun } from "../../terminal/command.ts";
import { decodeText, readLocal } from "../../terminal/input.ts";
import { environmentsOption } from "../../terminal/options.ts";
import { listFound } from "../../terminal/records.ts";
import { readHidden } from "../../terminal/terminal.ts";
import { projectVerb, wideOption, yesOption } from "../../terminal/verbs.ts";
import { revealAccount } from "./reveal.ts";
import { type AccountWrite, deleteAccount, listAccounts, setAccount } from "./write.ts";

export function accountCommand(context: CommandContext) {
  const list = projectVerb(
    "list",
    "List the shared accounts. Their values are never shown.",
    "keyhole account list acme/web",
  )
    .option(...wideOption)
    .action((project, { wide }) =>
      listFound(context, wide, (admin) => listAccounts(admin, project), `${project} has no accounts.`, {
        NAME: (one) => one.name,
        ENVIRONMENTS: (one) => one.environments.join(","),
        UPDATED: (one) => formatTime(one.updatedAt),
      }),
    );

  const remove = projectVerb("delete", "Delete a shared account.", "keyhole account delete acme/web stripe")
    .argument("<name>", "the account")
    .action(async (project, name) => {
      await withAdmin(context, (admin) => deleteAccount(admin, project, name));
      await answer(context, { project, name, status: "deleted" }, `Deleted account ${name} from ${project}.`);
    });

  return noun(
    "account",
    "Shared accounts: several secret fields under one name.",
    setVerb(context),
    getVerb(context),
    list,
    remove,
  );
}

function setVerb(context: CommandContext) {
  return projectVerb(
    "set",
    "Create or replace a shared account. Its values come from stdin or a hidden prompt: one JSON object of strings.",
    "keyhole account set acme/web stripe --env staging,production < stripe.json",
    "pass show stripe-json | keyhole account set web stripe --env production",
  )
    .argument("<name>", "the account")
    .addOption(environmentsOption("all environments it belongs to; asks before it removes it from one"))
    .option(...yesOption)
    .action(async (project, name, { env, yes }) => {
      const { created, dropped } = await withAdmin(context, async (admin) => {
        await findProject(admin, project, "write", env);
        const values = await readValues(context, name);
        const write = (it: AdminContext, agreed?: AccountWrite) =>
          setAccount(it, project, name, env, values, { agreed: agreed?.dropped });
        const deed = (one: AccountWrite) =>
          one.dropped.length === 0 ? undefined : `take account ${name} out of ${one.dropped.join(", ")}`;
        return confirmChange(context, admin, yes, write, deed);
      });
      const status = created ? "created" : "updated";
      const document = { project, name, environments: env, status, ...(dropped.length > 0 && { dropped }) };
      const left = dropped.length > 0 ? ` It is no longer in ${dropped.join(", ")}.` : "";
      await answer(context, document, `Account ${name} ${status} in ${project} for ${env.join(", ")}.${left}`);
    });
}

function getVerb(context: CommandContext) {
  return projectVerb(
    "get",
    "Print the fields of an account as a JSON object. The audit records that you saw them.",
    "keyhole account get acme/web stripe --env production",
  )
    .argument("<name>", "the account")
    .addOption(
      new Option("--env <env>", "from this environment (default: where it changed last)").choices(environments),
    )
    .action(async (project, name, { env }) => {
      const { environment, values } = await withAdmin(context, (admin) => revealAccount(admin, project, name, env));
      const document = { project, environment, name, values };
      await answerSecret(context, document, `${JSON.stringify(values)}\n`, `The fields of ${name} in ${environment}`);
    });
}

/** Parses JSON; `setAccount` checks that it is an object of strings. The parser's message would quote the text. */
async function readValues(context: CommandContext, name: string): Promise<unknown> {
  const bytes = context.terminal.stdin.isTTY
    ? await readHidden(context.terminal, `Values of ${name} as a JSON object`)
    : await readLocal(context, "-", valuesBytesMax, "The JSON object");
  const text = decodeText(bytes, "The JSON object");
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

/** Finds a field that occurs twice in a flat object of strings: JSON.parse silently keeps the last value. */
function repeatedField(text: string, values: unknown): string | undefined {
  if (!Object.values(values ?? {}).every((value) => typeof value === "string")) return undefined;
  // In such text, every other string is a name.
  const strings = text.match(/"(?:[^"\\]|\\.)*"/g) ?? [];
  const names = strings.filter((_, at) => at % 2 === 0).map((quoted) => String(JSON.parse(quoted)));
  return names.find((name, at) => names.indexOf(name) !== at);
}

const valuesBytesMax = 1024 * 1024;
