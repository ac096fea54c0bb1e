import type { RoleUse } from "../../store/rights.ts";
import { choice, flag, input } from "../desk/inputs.ts";
import { type Operations, operation } from "../desk/operation.ts";
import { applyGrants, grantStatements } from "./grants.ts";

/** What uses a role, in the words of a sentence. */
const users: Readonly<Record<RoleUse, string>> = {
  serve: "serve",
  people: "the door and of the dashboard",
  notary: "the notary",
};

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
    use: choice("--for <use>", "serve (the default); people: the door over SSH and a team's dashboard; or notary", [
      "serve",
      "people",
      "notary",
    ]),
    role: input("--role <name>", "the role, which must exist (default: keyhole_ and the use, as in keyhole_serve)"),
    apply: flag("--apply", "also run the statements"),
  },
  run: async (admin, { use = "serve", role = `keyhole_${use}`, apply }) => {
    const statements = await (apply ? applyGrants : grantStatements)(admin, role, use);
    return {
      document: { role, statements, applied: apply === true },
      shows: { text: statements.map((statement) => `${statement}\n`).join("") },
      sentence: apply
        ? `Role ${role} now has the rights that it needs and no others: use it in the DATABASE_URL of ${users[use]}.`
        : "",
    };
  },
});

export const database: Operations = { about: "The database that Keyhole runs on.", rows: [grants] };
