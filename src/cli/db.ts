import { applyGrants, grantStatements } from "../people/grants.ts";
import { withAdmin } from "../terminal/admin.ts";
import { answer } from "../terminal/answer.ts";
import { noun, type Surroundings, verb } from "../terminal/command.ts";

/** `keyhole db …` */
export function dbCommand(here: Surroundings) {
  const grants = verb(
    "grants",
    "Print the PostgreSQL statements that give the role of `serve` the rights it needs and no others.",
    "keyhole db grants",
    "keyhole db grants --role keyhole_serve --apply",
  )
    .option("--role <name>", "the role, which must exist", "keyhole_serve")
    .option("--apply", "also run the statements")
    .action(async ({ role, apply }) => {
      const statements = await withAdmin(here, (admin) => (apply ? applyGrants : grantStatements)(admin, role));
      const message = apply
        ? `Role ${role} now has the rights that serve needs and no others: use it in the DATABASE_URL of serve.`
        : "";
      const out = statements.map((statement) => `${statement}\n`).join("");
      await answer(here, { role, statements, applied: apply === true }, message, out);
    });

  return noun("db", "The database that Keyhole runs on.", grants);
}
