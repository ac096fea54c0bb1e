import type { Operations } from "../desk/operation.ts";

/** The operations of each kind by their first word, loaded only if they are used. */
export const kindOperations: Readonly<Record<string, () => Promise<Operations>>> = {
  var: async () => (await import("./variables/operations.ts")).variableOperations,
  account: async () => (await import("./accounts/operations.ts")).accountOperations,
  file: async () => (await import("./files/operations.ts")).fileOperations,
};
