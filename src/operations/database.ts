import { choice, flag, input } from "../desk/inputs.ts";
import { type Operations, operation } from "../desk/operation.ts";
import { applyGrants, grantStatements } from "../people/grants.ts";

const grants = operation({
  path: "db grants",
  about: "Print the PostgreSQL statements that give a role the rights it needs and no others.",
  examples: [
    "keyhole db grants",
    "keyhole db grants --role keyhole_serve --apply",
    "keyhole db grants --for people --apply",
  ],
  right: "operator",
  inputs: {
    use: choice("--for <use>", "serve (the default), or people: the door over SSH and a team's dashboard", [
      "serve",
      "people",
    ]),
    role: input("--role <name>", "the role, which must exist (default: keyhole_serve or keyhole_people)"),
    apply: flag("--apply", "also run the statements"),
  },
  run: async (admin, { use = "serve", role = `keyhole_${use}`, apply }) => {
    const statements = await (apply ? applyGrants : grantStatements)(admin, role, use);
    const users = use === "serve" ? "serve" : "the door and of the dashboard";
    return {
      document: { role, statements, applied: apply === true },
      shows: { text: statements.map((statement) => `${statement}\n`).join("") },
      sentence: apply
        ? `Role ${role} now has the rights that it needs and no others: use it in the DATABASE_URL of ${users}.`
        : "",
    };
  },
});

export const database: Operations = { about: "The database that Keyhole runs on.", rows: [grants] };
