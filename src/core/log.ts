/** Writes one event to the log; members that are undefined are left out. Returns at once and never throws. */
export type Log = (event: Readonly<Record<string, unknown>>) => void;
