/* Loaded before the program with `bun --preload`: moves its clock by CLOCK_MOVED_MS. The database's stays as it is. */

const movedMs = Number(process.env["CLOCK_MOVED_MS"] ?? 0);
const RealDate = Date;

globalThis.Date = class extends RealDate {
  constructor(...given: readonly unknown[]) {
    super(...((given.length === 0 ? [RealDate.now() + movedMs] : given) as [number]));
  }
  static override now(): number {
    return RealDate.now() + movedMs;
  }
} as DateConstructor;
