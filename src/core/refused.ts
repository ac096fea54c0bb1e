/** Why a command was refused; decides the exit code. */
export type RefusedKind = "invalid" | "ambiguous" | "not_found" | "exists" | "conflict" | "bound" | "unavailable";

/** A command was refused and changed nothing. The message is one sentence for the person who typed it. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly kind: RefusedKind;

  constructor(kind: RefusedKind, message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}
