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
  readonly form: ForForms;

  constructor(kind: RefusedKind, message: string, options: ErrorOptions & ForForms = {}) {
    super(message, options);
    this.kind = kind;
    this.form = options;
  }
}

/** The field of a form that is wrong, and what somebody would have to have seen to do it all the same, if they may. */
type ForForms = { readonly field?: string; readonly unlessSeen?: Readonly<Record<string, number>> };

/** The message of a `conflict`. @throws whatever else it is */
export function conflictOf(error: unknown): string {
  if (error instanceof Refused && error.kind === "conflict") return error.message;
  throw error;
}

/**
 * This host or its database cannot do it. The message is for operators: it may name folders, hosts and settings. Anybody
 * else is told {@link forPersons} in its place, whichever door they came by (`people/desk/failure.ts`).
 */
export class HostRefused extends Refused {
  readonly forPersons: string;

  constructor(
    kind: RefusedKind,
    message: string,
    { forPersons = unusable, ...options }: ErrorOptions & { readonly forPersons?: string } = {},
  ) {
    super(kind, message, options);
    this.forPersons = forPersons;
  }
}

/** What somebody who is no operator is told if this host or its database cannot be used. */
export const unusable = "Keyhole cannot be used now: ask an operator, who sees why with `keyhole whoami` on its host.";

/**
 * The result of `work` or, if it is refused for one of these reasons, the result of `otherwise`. What this host cannot do
 * is no refusal of what was asked.
 */
export async function unlessRefused<T, U>(
  work: Promise<T>,
  kinds: readonly RefusedKind[],
  otherwise: (refusal: Refused) => U | Promise<U>,
): Promise<T | U> {
  try {
    return await work;
  } catch (error) {
    const isHosts = error instanceof HostRefused;
    if (error instanceof Refused && !isHosts && kinds.includes(error.kind)) return otherwise(error);
    throw error;
  }
}
