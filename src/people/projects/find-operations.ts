import { exits, Problem } from "../../core/problem.ts";
import { counted } from "../../core/words/text.ts";
import { input, ofOrganization, wide } from "../desk/inputs.ts";
import { type Operations, operation } from "../desk/operation.ts";
import { type Columns, list } from "../desk/outcome.ts";
import { shortKeyIds } from "../keys/keys.ts";
import { shortRequestIds } from "../requests/requests.ts";
import { find, type Hit, type SearchResult, whatIs } from "./find.ts";

export const findNames = operation({
  path: "find",
  about:
    "Find names by a part of them, in all that you may see: of variables, accounts, files, projects, keys, trusts, requests and persons. Of the first three, notes are searched, too.",
  examples: ["keyhole find stripe", "keyhole find warehouse --org acme"],
  right: ["see", "keys", "decide"],
  inputs: {
    part: input(
      "<part>",
      "a part of the name or the note, in any case; other words may be of the project or the environment",
    ),
    organization: ofOrganization("names"),
    wide,
  },
  run: async (admin, { part, organization }) => {
    const found = await find(admin, part, organization);
    const [shortKey, shortRequest] = [await shortKeyIds(admin), await shortRequestIds(admin)];
    const columns: Columns<Hit> = {
      PROJECT: ({ organization, project }) => [organization ?? "-", project].filter(Boolean).join("/"),
      NAME: ({ name }) => ({ name }),
      ENVIRONMENTS: ({ environments }) => environments?.join(",") ?? "-",
      WHAT: whatIs,
      ID: ({ type, id = "-" }) => (type === "request" ? shortRequest(id) : shortKey(id)),
      ...(found.found.some(({ note }) => note) && { NOTE: ({ note }) => ({ name: note ?? null }) }),
    };
    const none = `Nothing that you may see has ${JSON.stringify(part)} in its name or its note.`;
    const { warnings } = found;
    const unread = `${counted(found.unread, "set was", "sets were")} not searched.`;
    const ends = found.unread === 0 ? {} : { ends: new Problem(exits.unavailable, "unread", unread) };
    const document = { found: found.found, count: found.count, warnings };
    return { ...list(found.found, columns, none), document, warnings, sentence: moreThan(found), ...ends };
  },
});

/** Says that there are more hits than an answer has. */
function moreThan({ found, count }: SearchResult): string {
  if (found.length === count) return "";
  return `These are ${found.length} of ${count.toLocaleString("en")}: give more of the name to see the others.`;
}

export const finds: Operations = { rows: [findNames] };
