/** Why a person's command was refused: it decides the exit code (CONTRACT, command line). */
export type RefusedKind = "invalid" | "ambiguous" | "not_found" | "exists" | "conflict" | "bound" | "unavailable";

/** A command that was refused and changed nothing. The message is one sentence for the person who typed it. */
export class Refused extends Error {
  override readonly name = "Refused";
  readonly kind: RefusedKind;

  constructor(kind: RefusedKind, message: string) {
    super(message);
    this.kind = kind;
  }
}
