import type { Right } from "../access/rights.ts";
import type { AdminContext } from "./context.ts";
import type { Given, Inputs } from "./inputs.ts";
import type { Facts, Outcome } from "./outcome.ts";

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
 *   right: "write",
 *   asks: "needs --yes",
 *   inputs: { project, slug: input("<slug>", "the new slug") },
 *   run: async (admin, { project, slug }, { agree }) => {
 *     await agree(`rename project ${project} to ${slug}`);
 *     return done(await renameProject(admin, project, { slug }), `Renamed project ${project} to ${slug}.`);
 *   },
 * });
 */
export type Operation<I extends Inputs = Inputs> = Words<I> & {
  /** Whether it begins an installation if there is none. */
  readonly begins?: true;
  /** Refuses words that no installation is needed to judge. Commands run it, forms do not. */
  check?(given: Given<I>): unknown;
  /** For a long one, what its progress is called: such as `Resealing` and `projects`. */
  readonly progress?: readonly [doing: string, what: string];
  run(admin: AdminContext, given: Given<I>, person: Interaction): Promise<Outcome>;
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
   * Whether it asks before it does what cannot be undone. Where nobody can be asked, it needs `--yes`, or it goes on: a
   * revocation must never hang or fail because nobody answers.
   */
  readonly asks?: "needs --yes" | "goes on";
  /** Whether a person reads what {@link Interaction.show} shows before they type a value. */
  readonly showsFirst?: true;
  readonly inputs: I;
};

/** How an operation speaks with the person for whom it runs: on a terminal, or at a form. */
export type Interaction = {
  /** The settings of the process. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /**
   * Asks whether to go on. Call it after everything that may refuse the operation.
   * @param deed - what it will do, such as `delete project acme/web`
   * @throws Problem unless the answer is yes
   */
  readonly agree: (deed: string) => Promise<void>;
  /** Shows something before the operation goes on. */
  readonly show: (facts: Facts, warnings: readonly string[]) => Promise<void>;
  /** Tells how far a long operation is. */
  readonly report: (done: number, total?: number) => void;
};

/** A row of the table. It is a function so that the types of its inputs are inferred. */
export function operation<const I extends Inputs>(row: Operation<I>): Operation<I> {
  return row;
}

/** The operations whose first word is the same, and a sentence about them, unless that word is an operation itself. */
export type Operations = { readonly about?: string; readonly rows: readonly Operation[] };
