import { Option } from "@commander-js/extra-typings";
import { applyGrants, grantStatements } from "../people/grants.ts";
import { withAdmin } from "../terminal/admin.ts";
import { answer } from "../terminal/answer.ts";
import { type CommandContext, noun, verb } from "../terminal/command.ts";

const uses = ["serve", "people"] as const;

export function dbCommand(context: CommandContext) {
  const grants = verb(
    "grants",
    "Print the PostgreSQL statements that give a role the rights it needs and no others.",
    "keyhole db grants",
    "keyhole db grants --role keyhole_serve --apply",
    "keyhole db grants --for people --apply",
  )
    .addOption(
      new Option("--for <use>", "serve (the default), or people: the door over SSH and a team's dashboard").choices(
        uses,
      ),
    )
    .option("--role <name>", "the role, which must exist (default: keyhole_serve or keyhole_people)")
    .option("--apply", "also run the statements")
    .action(async ({ for: use = "serve", role = `keyhole_${use}`, apply }) => {
      const statements = await withAdmin(context, (admin) => (apply ? applyGrants : grantStatements)(admin, role, use));
      const users = use === "serve" ? "serve" : "the door and of the dashboard";
      const message = apply
        ? `Role ${role} now has the rights that it needs and no others: use it in the DATABASE_URL of ${users}.`
        : "";
      const out = statements.map((statement) => `${statement}\n`).join("");
      await answer(context, { role, statements, applied: apply === true }, message, out);
    });

  return noun("db", "The database that Keyhole runs on.", grants);
}
