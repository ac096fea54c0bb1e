import { Refused } from "../../core/refused.ts";
import type { Right } from "../../serve/access/rights.ts";
import type { AdminContext } from "./context.ts";
import type { Given, Inputs } from "./inputs.ts";
import type { Outcome } from "./outcome.ts";
import { applying, idsIn, type Plan } from "./plan.ts";

/*
 * What people do with an installation is a row. The command line, its help, the door over SSH, the sender over SSH,
 * completion and the answers to most forms of the dashboard are drawn from it.
 */

/**
 * One thing that people do.
 *
 * @example
 * const rename = operation({
 *   path: "project rename",
 *   about: "Give a project another slug.",
 *   examples: ["keyhole project rename acme/web shop"],
 *   right: rightTo("project.rename"),
 *   asks: "needs --yes",
 *   inputs: { project, slug: input("<slug>", "the new slug") },
 *   plan: async (admin, { project, slug }) => {
 *     const { seen, apply } = await planRename(admin, project, { slug });
 *     return {
 *       deed: `rename project ${project} to ${slug}`,
 *       seen,
 *       document: { project, slug },
 *       apply: async () => done(await apply(), `Renamed project ${project} to ${slug}.`),
 *     };
 *   },
 * });
 */
export type Operation<I extends Inputs = Inputs> = Immediate<I> | Planned<I>;

/** An operation that does at once what it is told. */
export type Immediate<I extends Inputs = Inputs> = OperationRow<I> & {
  readonly plan?: never;
  readonly asks?: never;
  run(admin: AdminContext, given: Given<I>, person: Interaction): Promise<Outcome>;
};

/**
 * An operation that says first what it would do: before it asks, on a page, and for `--dry-run`. Its plan is found out
 * again in the transaction that makes the change. It refuses everything that may refuse the operation.
 */
export type Planned<I extends Inputs = Inputs, P extends Plan = Plan> = OperationRow<I> & {
  plan(admin: AdminContext, given: Given<I>, person: Interaction): Promise<P>;
  readonly run?: never;
  /** One transaction is not enough: `apply` of the plan that was shown makes the change, and judges what has changed. */
  readonly isLong?: true;
};

type OperationRow<I extends Inputs> = Words<I> & {
  /** Whether it begins an installation if there is none. */
  readonly begins?: true;
  /** Refuses words that no installation is needed to judge. Commands run it, forms do not. */
  check?(given: Given<I>): unknown;
  /** For a long one, what its progress is called: such as `Resealing` and `projects`. */
  readonly progress?: readonly [doing: string, what: string];
};

/** What the help of a command says, and what it takes. */
export type Words<I extends Inputs = Inputs> = {
  /** The words of its command, such as `var set`. */
  readonly path: string;
  /** One sentence, or two. */
  readonly about: string;
  readonly examples: readonly [string, ...string[]];
  /**
   * The right that it takes somewhere, or any one of several: it comes through the door over SSH. `operator`: only
   * somebody at the machine of the installation. The functions that it calls check the rights where it acts.
   */
  readonly right: "operator" | "anybody" | Right | readonly Right[];
  /**
   * Whether it asks before it does what cannot be undone. If nobody can be asked, it needs `--yes`, unless it asks only
   * if it can: a revocation must never hang or fail because nobody answers.
   */
  readonly asks?: "needs --yes" | "if it can";
  /** Whether a person reads what the plan shows before they type a value. */
  readonly showsFirst?: true;
  readonly inputs: I;
};

/** What an operation gets of the process that it runs in. */
export type Interaction = {
  /** The settings of the process. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Tells how far a long operation is. */
  readonly report: (done: number, total?: number) => void;
};

/** A row of the table. It is a function so that the types of its inputs and of its plan are inferred. */
export function operation<const I extends Inputs, P extends Plan>(row: Planned<I, P>): Planned<I, P>;
export function operation<const I extends Inputs>(row: Immediate<I>): Immediate<I>;
export function operation(row: Operation): Operation {
  return row;
}

/** The operations whose first word is the same, and a sentence about them, unless that word is an operation itself. */
export type Operations = { readonly about?: string; readonly rows: readonly Operation[] };

/**
 * Does what somebody agreed to.
 * @param plan - as it was shown
 * @param shown - what they saw of it; of what nobody was asked about, the ids alone count
 */
export function carryOutShown<I extends Inputs>(
  admin: AdminContext,
  row: Planned<I>,
  given: Given<I>,
  person: Interaction,
  plan: Plan,
): Promise<Outcome> {
  if (row.isLong) return plan.apply();
  const again = (admin: AdminContext) => row.plan(admin, given, person);
  if (plan.deed === undefined && !row.showsFirst) return applying(admin, again, idsIn(plan.seen));
  return applying(admin, (admin) => again(admin).catch(sinceShown), plan.seen);
}

/** What refuses a plan that was shown has come about since. */
function sinceShown(error: unknown): never {
  if (!(error instanceof Refused) || !["not_found", "invalid", "exists", "bound"].includes(error.kind)) throw error;
  throw new Refused("conflict", `${error.message} That was not so when it was shown.`, { cause: error });
}
