import { CommanderError, type CommandUnknownOpts } from "@commander-js/extra-typings";
import { description } from "../package.json";
import { doorOf, judgeCommand, leadsThrough } from "./cli/door.ts";
import { frame, refuseMangled } from "./cli/terminal/command.ts";
import { type CommandGroup, commandFor } from "./cli/terminal/draw.ts";
import { complain, toProblem } from "./cli/terminal/failure.ts";
import { fitted, write } from "./cli/terminal/terminal.ts";
import { type CommandContext, noun } from "./cli/terminal/verb.ts";
import { configProblem } from "./core/problem.ts";
import { inheritedDescriptors } from "./core/settings/children.ts";
import { unknownSettings } from "./core/settings/unknown-settings.ts";
import { jsonLine, visibleLines } from "./core/visible.ts";
import { kindOperations } from "./kinds/people.ts";

type Load = () => Promise<(context: CommandContext) => CommandUnknownOpts>;

/**
 * The commands, under their headings in the help. Each is loaded only if it is used: `key list` does not load the
 * server, and `version` loads no database driver.
 */
const groups: Readonly<Record<string, Readonly<Record<string, Load>>>> = {
  "People, in the database:": {
    org: drawn(async () => (await import("./people/projects/organization-operations.ts")).organizations),
    project: drawn(async () => (await import("./people/projects/operations.ts")).projects),
    ...Object.fromEntries(Object.entries(kindOperations).map(([word, load]) => [word, drawn(load)])),
    // With two commands more, which do not end with an outcome.
    var: drawn(async () => (await import("./cli/variables.ts")).variableCommands),
    key: drawn(async () => (await import("./people/keys/operations.ts")).keys),
    trust: drawn(async () => (await import("./people/keys/trust-operations.ts")).trusts),
    request: drawn(async () => (await import("./people/requests/operations.ts")).requests),
    find: drawn(async () => (await import("./people/projects/find-operations.ts")).finds),
    leaked: drawn(async () => (await import("./people/leaks/operations.ts")).leaks),
    reuse: drawn(async () => (await import("./people/leaks/operations.ts")).reuses),
    access: drawn(async () => (await import("./people/keys/access-operations.ts")).access),
    expiring: drawn(async () => (await import("./people/keys/access-operations.ts")).expiring),
    history: drawn(async () => (await import("./people/history/operations.ts")).history),
    rollback: drawn(async () => (await import("./people/history/operations.ts")).rollbacks),
    undo: drawn(async () => (await import("./people/history/operations.ts")).undos),
    audit: drawn(async () => (await import("./cli/audit.ts")).audit),
    whoami: drawn(async () => (await import("./people/persons/operations.ts")).self),
  },
  "Machines, over the API:": {
    run: async () => (await import("./cli/run.ts")).runCommand,
    pull: drawn(async () => (await import("./cli/pull.ts")).pull),
    files: drawn(async () => (await import("./cli/files.ts")).files),
    compose: async () => (await import("./cli/compose.ts")).composeCommand,
    mcp: drawn(async () => (await import("./cli/mcp.ts")).mcp),
    manifest: drawn(async () => (await import("./cli/manifest.ts")).manifest),
  },
  "Operators:": {
    serve: async () => (await import("./cli/serve.ts")).serveCommand,
    notary: async () => (await import("./cli/notary.ts")).notaryCommand,
    witness: async () => (await import("./cli/witness.ts")).witnessCommand,
    demo: async () => (await import("./cli/demo.ts")).demoCommand,
    health: drawn(async () => (await import("./cli/health.ts")).health),
    backup: drawn(async () => (await import("./cli/backup.ts")).backups),
    restore: drawn(async () => (await import("./cli/backup.ts")).restores),
    export: drawn(async () => (await import("./cli/export.ts")).exporting),
    rotate: drawn(async () => (await import("./people/rotation/operations.ts")).rotations),
    door: drawn(async () => doorOf(enter)),
    person: drawn(async () => (await import("./people/persons/operations.ts")).persons),
    db: drawn(async () => (await import("./cli/database.ts")).databaseCommands),
    dashboard: drawn(async () => (await import("./cli/dashboard.ts")).dashboards),
    explain: drawn(async () => (await import("./cli/explain.ts")).explain),
    openapi: drawn(async () => (await import("./cli/openapi.ts")).openapi),
    completion: drawn(async () => (await import("./cli/completion.ts")).completionOf(buildProgram)),
    version: drawn(async () => (await import("./cli/version.ts")).versions),
  },
};

function drawn(load: () => Promise<CommandGroup>): Load {
  return async () => {
    const rows = await load();
    return (context) => commandFor(rows, context);
  };
}

/**
 * The tree of commands, before {@link frame}.
 * @param only - the one command to load; if there is no such command, all are loaded
 */
export async function buildProgram(context: CommandContext, only?: string): Promise<CommandUnknownOpts> {
  const program = noun("keyhole", description)
    .option("-V, --version", "show the version")
    .addHelpText("after", context.person === undefined ? rootHelp : codesHelp);
  const isKnown = Object.values(groups).some((commands) => Object.hasOwn(commands, only ?? ""));
  for (const [heading, commands] of Object.entries(groups)) {
    for (const [name, load] of Object.entries(commands)) {
      if (!isKnown || name === only) program.addCommand((await load())(context).helpGroup(heading));
    }
  }
  return program;
}

/** @returns the exit code, after everything is written */
async function main(args: readonly string[]): Promise<number> {
  const inherited = inheritedDescriptors();
  // `write` reports failures. Without a listener, the event would end the process.
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});
  // An error outside any await, such as a lost connection, must not print a stack. The server has its own listeners.
  for (const event of ["uncaughtException", "unhandledRejection"] as const) {
    process.on(event, async (error: unknown) => {
      if (process.listenerCount(event) === 1) process.exit(await fail(error));
    });
  }
  return execute(args, { env: process.env, terminal: process, inherited });
}

/** How the command that runs now fails. @returns its exit code */
let fail: (error: unknown) => Promise<number> = async () => 1;

/** A command was run in place of the one that throws this. */
class CommandEnded extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super();
    this.exitCode = exitCode;
  }
}

/** Runs a command as a person in place of the one that is running. */
async function enter(context: CommandContext, words: readonly string[], person: string): Promise<never> {
  throw new CommandEnded(await execute(words, { ...context, person }));
}

/** Runs a command. @returns its exit code, after everything is written */
export async function execute(
  args: readonly string[],
  { person, env, terminal, inherited }: Omit<CommandContext, "json" | "say" | "flush">,
): Promise<number> {
  const { stdout, stderr } = terminal;
  const own = args.includes("--") ? args.slice(0, args.indexOf("--")) : args;
  const command = own.find((arg) => !arg.startsWith("-"));
  let written: Promise<void> = Promise.resolve();
  const context: CommandContext = {
    person,
    env,
    terminal,
    json: own.includes("--json"),
    say: (text) => {
      const line = `${fitted(visibleLines(text), stderr)}\n`;
      written = written.then(() => write(stderr, line)).catch(() => {}); // if nobody reads stderr, the command continues
    },
    flush: async () => {
      await written;
      await new Promise<void>((resolve) => stderr.write("", () => resolve()));
    },
    inherited,
  };
  fail = async (error) => {
    await written;
    const problem = toProblem(error, { person });
    if (problem.exitCode === 0) return 0; // nobody reads the output
    await complain(context, problem).catch(() => {});
    // Docker Compose shows no stderr.
    if (command === "compose")
      await write(stdout, jsonLine({ type: "error", message: problem.message })).catch(() => {});
    // Codes below 125 belong to the command that `run` runs.
    const isOwn = command === "run" && problem.code !== "command_failed";
    return isOwn ? Math.max(problem.exitCode, 125) : problem.exitCode;
  };
  try {
    refuseMangled(args);
    await run(context, args);
    await written;
    return 0;
  } catch (error) {
    return error instanceof CommandEnded ? error.exitCode : fail(error);
  }
}

async function run(context: CommandContext, args: readonly string[]): Promise<void> {
  const at = args.findIndex((arg) => !arg.startsWith("-"));
  const options = at === -1 ? args : args.slice(0, at);
  if (options.includes("-V") || options.includes("--version")) {
    return (await import("./cli/version.ts")).sayVersion(context);
  }
  // `keyhole help key create` and `keyhole -h key create` are `keyhole key create --help`.
  const isHelp = (arg: string | undefined) => arg === "-h" || arg === "--help";
  const words = args.slice(options.length + (args[at] === "help" ? 1 : 0));
  const wantsHelp = args[at] === "help" || options.some(isHelp);
  const asked = wantsHelp ? [...options.filter((option) => !isHelp(option)), ...words, "--help"] : args;
  const name = asked.find((arg) => !arg.startsWith("-"));
  const program = await buildProgram(context, name);
  program.hook("preAction", async (_, command) => {
    judgeSettings(context, command);
    // People's commands run on the host that it names, in place of this process.
    const host = context.env["KEYHOLE_SSH"];
    if (context.person !== undefined) return judgeCommand(command);
    if (host === undefined) return;
    const { isLocal, sendOverSsh } = await import("./cli/over-ssh.ts");
    if (!isLocal(command)) throw new CommandEnded(await sendOverSsh(context, host, command));
  });
  let help = "";
  const showHelp = (text: string) => {
    help += text;
  };
  frame(program, showHelp, context.person === undefined ? undefined : leadsThrough);
  try {
    await program.parseAsync(asked, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    await write(context.terminal.stdout, context.json ? jsonLine({ help }) : help);
  }
}

/** Settings of Bun that load code, or open a debugger. */
const othersRuntime = ["BUN_OPTIONS", "BUN_INSPECT", "BUN_INSPECT_CONNECT_TO", "BUN_INSPECT_PRELOAD"];

/**
 * What a job sets for its own programs must not make this one another. A long-lived process goes on without what a
 * misspelt setting should turn on, so it does not start.
 */
function judgeSettings({ env, person, say }: CommandContext, command: CommandUnknownOpts): void {
  if (person !== undefined) return; // the door has judged it
  const another = othersRuntime.find((name) => env[name]);
  if (another !== undefined) {
    const advice = `Start it as \`env -u ${another} keyhole …\`, and give a program its own after --, as env ${another}=….`;
    throw configProblem(`${another} is set, with which Keyhole's own runtime would run other code. ${advice}`);
  }
  const isServer = ["serve", "notary", "witness", "dashboard", "door"].includes(command.name());
  if (isServer && env["NODE_TLS_REJECT_UNAUTHORIZED"] === "0") {
    const advice = "Unset it; NODE_EXTRA_CA_CERTS may name a file with an authority of your own.";
    throw configProblem(`NODE_TLS_REJECT_UNAUTHORIZED is 0, with which any certificate would do. ${advice}`);
  }
  for (const sentence of unknownSettings(env)) {
    if (isServer) throw configProblem(sentence);
    say(`WARNING: ${sentence}`);
  }
}

const codesHelp = `
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not authorized, 4 not found,
5 refused by a limit or bound, 6 unavailable.
"keyhole COMMAND --help" explains a command.`;

const rootHelp = `
Examples:
  keyhole serve
  keyhole var set acme/web production DATABASE_URL

Settings (environment):
  KEYHOLE_DATA      folder of the embedded database and its root key
                    (default: ./.keyhole)
  DATABASE_URL      PostgreSQL, in place of the embedded database
  KEYHOLE_ROOT_KEY  root key, 32 bytes in base64; or KEYHOLE_ROOT_KEY_FILE, a
                    file that holds it; or KEYHOLE_ROOT_KEY_COMMAND, a command
                    that prints it
  KEYHOLE_ACTOR     who runs the command, for the audit (default: the account
                    and host, user@host)
  KEYHOLE_SSH       user@host: people's commands run there, behind its door
  KEYHOLE_URL       the server that run, pull, files pull and mcp ask, with
                    KEYHOLE_API_KEY or KEYHOLE_OIDC
  HOST, PORT        where serve listens; health and metrics: KEYHOLE_OPS_HOST
                    and KEYHOLE_OPS_PORT
docs/configuration.md has all of them.
${codesHelp}`;

if (import.meta.main) process.exit(await main(process.argv.slice(2)));
