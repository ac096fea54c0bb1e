import { Problem } from "../core/problem.ts";
import { type Clock, realClock } from "./wire.ts";

/** Looks for changes again and again, and tells people why it cannot. */
export class Watch<T> {
  /** Tells people what is going on. */
  readonly say: (line: string) => void;
  readonly #everyMs: number;
  readonly #look: () => Promise<T | undefined>;
  readonly #clock: Clock;
  /** What the last look failed with; empty if it did not fail. */
  #failure = "";

  /**
   * @param look - returns what changed, or undefined
   * @param say - called once for a failure that repeats
   */
  constructor(
    everyMs: number,
    look: () => Promise<T | undefined>,
    say: (line: string) => void,
    clock: Clock = realClock,
  ) {
    this.#everyMs = everyMs;
    this.#look = look;
    this.say = say;
    this.#clock = clock;
  }

  /** Resolves to the next change. A look that fails changes nothing. Never rejects. */
  async next(): Promise<T> {
    for (;;) {
      // Up to a tenth is added, so that many that were started together do not ask together.
      await this.#clock.sleep(Math.ceil(this.#everyMs * (1 + this.#clock.random() / 10)));
      const found = await this.#tryToLook();
      if (found !== undefined) return found;
    }
  }

  async #tryToLook(): Promise<T | undefined> {
    try {
      const found = await this.#look();
      if (this.#failure !== "") this.say("The command is watched again.");
      this.#failure = "";
      return found;
    } catch (error) {
      const failure = messageOf(error);
      if (failure !== this.#failure) this.say(`Not watched for now, and the command runs on: ${failure}`);
      this.#failure = failure;
      return undefined;
    }
  }
}

/** The message of the client's own Problem, without its hint about `--wait`. Others may quote what they failed on. */
function messageOf(error: unknown): string {
  if (!(error instanceof Problem)) return "an error inside Keyhole. Please report it.";
  return error.cause instanceof Problem ? error.cause.message : error.message;
}
