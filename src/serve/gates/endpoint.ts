import type { TSchema } from "typebox";
import type { FaultCode } from "../../core/fault.ts";
import type { Environment } from "../../core/names.ts";
import type { KindDescriptor } from "../sets/kind.ts";
import type { Reading } from "../sets/lookup.ts";
import type { Admission } from "./admit.ts";
import type { ApiParts } from "./api-parts.ts";
import type { Exchange } from "./exchange.ts";
import type { QuerySchema } from "./query.ts";

/** A GET of the API. */
export type Endpoint = {
  /** Below the API's root, such as `/projects/{slug}/variables`. */
  readonly path: string;
  /** Gates 2 to 10, in the order of its lines. @param slug - of the path; empty if it has none */
  readonly get: (parts: ApiParts, exchange: Exchange, token: string | undefined, slug: string) => Promise<Response>;
  /** How long an answer may take; 5 s unless it says otherwise. */
  readonly timeoutMs?: number;
  /** For a read with values that is not conditional. */
  readonly admission: Admission;
  readonly query: QuerySchema;
};

/** What the description of the API says of an endpoint. */
export type EndpointDescription = {
  readonly id: string;
  readonly summary: string;
  readonly description: string;
  /** The schemas of the answer by name. The last is the answer, and refers to the others. */
  readonly answers: Readonly<Record<string, TSchema>>;
  /** Codes in addition to those that follow from the parameters and from what the key needs. */
  readonly refusals?: readonly FaultCode[];
  readonly example: unknown;
};

/** A tool for agents that lists the items of a kind in an environment. It opens nothing. */
export type ListTool = {
  readonly description: string;
  readonly descriptor: KindDescriptor;
  /** The body of the metadata read. */
  readonly list: (
    reading: Reading,
    place: { readonly project: string; readonly environment: Environment },
  ) => Promise<{ readonly body: string }>;
};
