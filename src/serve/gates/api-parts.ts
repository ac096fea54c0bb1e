import type { AddressRange } from "../../core/addresses.ts";
import type { FaultCode } from "../../core/fault.ts";
import type { Log } from "../../core/log.ts";
import type { Journal } from "../../record/journal.ts";
import type { ReadSource } from "../sets/lookup.ts";
import type { Gatekeeper } from "./admit.ts";
import type { Exchange } from "./exchange.ts";

/** All that the API needs from outside, built by `serve/process/compose.ts`. */
export type ApiParts = {
  readonly gate: Gatekeeper;
  readonly source: ReadSource;
  readonly etagKey: Uint8Array;
  readonly journal: Pick<Journal, "record"> & Partial<Pick<Journal, "recordIf">>;
  /** Writes one event to the log; must return at once and never throw. */
  readonly log: Log;
  /** Counts each answer; must return at once and never throw. Without it and `trace` nothing is timed. */
  readonly meter?: Measure | undefined;
  /** The same for traces; returns the trace's id for the log. */
  readonly trace?: ((...done: Parameters<Measure>) => string) | undefined;
  /** `POST /mcp`; undefined unless it is turned on. It is loaded only then. */
  readonly mcp?: McpEndpoint | undefined;
  /** The proxies that may say who asks. */
  readonly proxies?: readonly AddressRange[] | undefined;
  /** Whether answers close their connections, because the server is about to stop. */
  readonly draining: () => boolean;
  /** Conditional reads that wait for a change. */
  readonly waits: {
    readonly answer: (
      parts: ApiParts,
      exchange: Exchange,
      judge: (parts: ApiParts) => Promise<Response>,
    ) => Promise<Response>;
  };
};

/** Answers one message of the Model Context Protocol. */
export type McpEndpoint = (
  parts: ApiParts,
  exchange: Exchange,
  token: string | undefined,
  request: Request,
) => Promise<Response>;

/** Takes one answered request. @param endedAtMs - monotonic milliseconds */
export type Measure = (exchange: Exchange, status: number, code: FaultCode | undefined, endedAtMs: number) => void;
