/** A defence, the edit that removes it, and the test that then fails. `bun run proofs` tries each. */
export type Proof = {
  /** One sentence, of which no other proof has the same. */
  readonly promise: string;
  /** Several if a second line of defence must go too. */
  readonly edits: readonly Edit[];
  /** Its file, such as `unit/set` or `integration/keys`, and its title. `…` stands for any part of the title. */
  readonly fails: readonly [file: string, title: string];
  /** SQLite alone unless it says so. */
  readonly on?: "PostgreSQL";
  /** Without the defence the test may wait for ever, and that counts as failing. */
  readonly hangs?: true;
};

/** The file from the root of the repository, a text that stands there exactly once, and what stands in its place. */
export type Edit = readonly [file: string, text: string, put: string];
