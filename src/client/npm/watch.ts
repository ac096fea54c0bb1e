import type { Selection } from "./answers.ts";

/** The values of variables by name. The same object until one of them changes. */
export type Values = Readonly<Record<string, string>>;

/** How a watch follows changes. */
export type FollowOptions = Selection & {
  /**
   * How often it asks a server that does not wait, in milliseconds; up to a tenth is added. At least 1,000. Default:
   * 30,000.
   */
  readonly everyMs?: number | undefined;
  /** How old the last successful look may be before `current()` throws; `Infinity` for ever. Default: 300,000. */
  readonly staleMsMax?: number | undefined;
};

/** Variables that are followed. It keeps the process running until it is closed. */
export type VariablesWatch = {
  /**
   * The values as the last look found them; it asks nobody.
   * @throws KeyholeError `not_ready` before the first look; `too_old` if the last successful look is too long ago; the
   * server's own refusal from the moment that it refuses the key, or the project is gone; `closed`
   */
  readonly current: () => Values;
  /** Resolves to the first values, or rejects if the first look fails. The watch goes on looking. */
  readonly ready: Promise<Values>;
  /**
   * Calls back when a value is new, changed or gone. The client logs nothing, so what the listener throws is dropped.
   * @returns stops calling
   */
  readonly onChange: (listener: (values: Values) => void) => () => void;
  /** Since when the values may be out of date, in epoch milliseconds; undefined while looks succeed. */
  readonly staleSince: number | undefined;
  /** Ends the watch, and forgets the values. */
  readonly close: () => void;
};
