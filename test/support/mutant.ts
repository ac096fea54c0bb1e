/** Which fault of `mutate` is there now, and which of them the program came to. Faulty copies of files import `$m`. */
export const mutants = { active: 0, reached: new Set<number>() };

export function $m(mutant: number): boolean {
  mutants.reached.add(mutant);
  return mutant === mutants.active;
}
