/** Variables as writes and renders take them. */
export function entriesOf(values: Readonly<Record<string, string>>): { name: string; value: string }[] {
  return Object.entries(values).map(([name, value]) => ({ name, value }));
}
