/** The processor time that this process takes for the work, in milliseconds. Pauses of the machine are not in it. */
export function cpuMsOf(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
