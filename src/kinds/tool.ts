import type { Environment } from "../core/names.ts";
import type { KindDescriptor } from "../sets/kind.ts";
import type { Reading } from "../sets/lookup.ts";

/** A tool for agents that lists the items of a kind in an environment. It opens nothing. */
export type ListTool = {
  readonly name: string;
  readonly description: string;
  readonly descriptor: KindDescriptor;
  /** @throws Fault as the endpoint that reads the same */
  readonly list: (reading: Reading, project: string, environment: Environment) => Promise<object>;
};
