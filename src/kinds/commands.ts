/** The command of each kind, loaded only if it is used. */
export const kindCommands = {
  var: async () => (await import("./variables/command.ts")).varCommand,
  account: async () => (await import("./accounts/command.ts")).accountCommand,
  file: async () => (await import("./files/command.ts")).fileCommand,
};
