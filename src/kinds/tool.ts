import type { Environment } from "../core/names.ts";
import type { KindDescriptor } from "../sets/kind.ts";
import type { Reading } from "../sets/lookup.ts";

/** A tool for agents that lists the items of a kind in an environment. It opens nothing. */
export type ListTool = {
  readonly name: string;
  readonly description: string;
  readonly descriptor: KindDescriptor;
  /** The body of the metadata read. */
  readonly list: (
    reading: Reading,
    place: { readonly project: string; readonly environment: Environment },
  ) => Promise<{ readonly body: string }>;
};
