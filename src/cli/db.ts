import { applyGrants, grantStatements } from "../admin/grants.ts";
import { answer, atDesk, noun, type Surroundings, verb } from "./command.ts";

/** `keyhole db …` */
export function dbCommand(here: Surroundings) {
  const grants = verb(
    "grants",
    "Print the PostgreSQL statements for the role that `serve` runs under: it can read, and record, and nothing else.",
    "keyhole db grants",
    "keyhole db grants --role keyhole_serve --apply",
  )
    .option("--role <name>", "the role, made beforehand", "keyhole_serve")
    .option("--apply", "run the statements, too")
    .action(async ({ role, apply }) => {
      const statements = await atDesk(here, (desk) => (apply ? applyGrants : grantStatements)(desk, role));
      const word = apply
        ? `Role ${role} may do what serving needs, and nothing else: give serve a DATABASE_URL with it.`
        : "";
      const out = statements.map((statement) => `${statement}\n`).join("");
      await answer(here, { role, statements, applied: apply === true }, word, out);
    });

  return noun("db", "The database that Keyhole runs on.").addCommand(grants);
}
