import { readConfig } from "../core/settings/settings.ts";
import { openInstallation } from "../installation/installation.ts";
import { upgradedMessage } from "../installation/upgrade.ts";
import { renewGrants } from "../people/backup/grants.ts";
import { database } from "../people/backup/operations.ts";
import { actorOf } from "../people/desk/actor.ts";
import { adminContextOf, operator } from "../people/desk/context.ts";
import { check } from "./check-database.ts";
import { answer } from "./terminal/answer.ts";
import { type CommandGroup, processCommand } from "./terminal/draw.ts";
import { holdNotes } from "./terminal/failure.ts";

const upgrade = processCommand({
  path: "db upgrade",
  about: "Upgrade the database of an older Keyhole for this version. There is no way back but a backup.",
  examples: ["keyhole db upgrade", "DATABASE_URL=postgres://keyhole_owner@db/keyhole keyhole db upgrade"],
  right: "operator",
  inputs: {},
  action: async (context) => {
    const { tables, roles } = await holdNotes(context, async (say) => {
      const installation = await openInstallation(readConfig(context.env), say, { upgrade: true });
      const admin = adminContextOf(installation, operator(actorOf(context.env)));
      return { ...installation, roles: await renewGrants(admin).finally(() => admin.close()) };
    });
    const { from, to } = tables;
    const done = from < to ? upgradedMessage(tables) : `The database is up to date: version ${to}.`;
    const renewed = roles.map(({ role }) => role).join(", ");
    const sentence = renewed === "" ? done : `${done}\nThese roles have the rights that they need: ${renewed}.`;
    await answer(context, { from, to, roles }, sentence);
  },
});

const { about = "", rows } = database;

export const databaseCommands: CommandGroup = { about, rows: [upgrade, check, ...rows] };
