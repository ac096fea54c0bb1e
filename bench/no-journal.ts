import type { Append } from "../src/record/journal.ts";
import type * as journal from "../src/record/store/journal.ts";

// Stands in for `src/record/store/journal.ts` in the program that `--audit-tax` compares with. It keeps nothing, and says that
// it did. Nothing that ships is built from it.

const nothing = () => ({
  append: async (...[, , , condition]: Parameters<Append>): ReturnType<Append> =>
    condition ? { outcome: "refused", unmet: true } : { outcome: "durable" },
  close: async () => {},
});

export const postgresJournal: typeof journal.postgresJournal = nothing;
export const sqliteJournal: typeof journal.sqliteJournal = nothing;
