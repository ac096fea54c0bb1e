/** Why a change was refused. A command makes an exit code of it. */
export type RefusedKind =
  | "invalid"
  | "ambiguous"
  | "not_found"
  | "forbidden"
  | "stale"
  | "exists"
  | "conflict"
  | "bound"
  | "unavailable";

/** What a person asked for was refused, and nothing was changed. The message says why, and is theirs to read. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly kind: RefusedKind;

  constructor(kind: RefusedKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}
