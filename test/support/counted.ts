import type { Installation } from "../../src/installation/installation.ts";
import type { DataKey, Keyring } from "../../src/seal/keyring.ts";
import type { Db } from "../../src/store/database.ts";

const begun = new Set<string | symbol>(
  "select selectDistinct insert update delete execute all get run values".split(" "),
);

/** What was done with an installation since it was last asked. */
export type Costs = {
  readonly statements: number;
  /** How often a key was taken that opens or seals values. */
  readonly openings: number;
};

/** An installation that counts the statements of the databases that it opens, and how often it opens values. */
export function counting(installation: Installation): {
  readonly installation: Installation;
  readonly take: () => Costs;
} {
  let [statements, openings] = [0, 0];
  const counted = <T extends object>(db: T): T =>
    new Proxy(db, {
      get: (_, name) => {
        if (begun.has(name)) statements += 1;
        return Reflect.get(db, name) as unknown;
      },
    });
  const open: Installation["open"] = (use) => {
    const database = installation.open(use);
    return {
      ...database,
      db: counted(database.db),
      query: (text, ...rest) => {
        const run = database.query(text, ...rest);
        return (values) => {
          statements += 1;
          return run(values) as never;
        };
      },
      transaction: (work) => database.transaction((db) => work(counted(db as Db))),
    };
  };
  const dataKey = (...asked: Parameters<Keyring["dataKey"]>): DataKey => {
    const key = installation.keyring.dataKey(...asked);
    const subkey = (of: string) => {
      openings += 1;
      return key.subkey(of);
    };
    return { ...key, subkey };
  };
  const keyring = new Proxy(installation.keyring, {
    get: (own, name) => {
      const found = Reflect.get(own, name, own) as unknown;
      return name === "dataKey" ? dataKey : typeof found === "function" ? found.bind(own) : found;
    },
  });
  const take = () => {
    const taken = { statements, openings };
    [statements, openings] = [0, 0];
    return taken;
  };
  return { installation: { ...installation, open, keyring }, take };
}
