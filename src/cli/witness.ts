import { hostname } from "node:os";
import { resolve } from "node:path";
import { isLoopback } from "../core/json-request.ts";
import { listening } from "../core/listening.ts";
import { parseHost, parsePort } from "../core/settings/settings.ts";
import { Unfit } from "../core/words/parse.ts";
import { openWitness, startWitness } from "../record/notary/witness-server.ts";
import { encodeWitness, parseVerifier, type Verifier } from "../record/note.ts";
import { boundedOutput, openLog } from "../serve/process/log.ts";
import { harden } from "./harden.ts";
import { type CommandContext, verb } from "./terminal/verb.ts";

/** `keyhole witness`: signs what goes on from what it signed before, on a second machine. */
export function witnessCommand(context: CommandContext) {
  return verb(
    "witness",
    "Witness other machines' logs by tlog-witness: sign each checkpoint that goes on from the one signed before.",
    'keyhole witness --log "$(cat keyhole.pub)"',
  )
    .requiredOption(
      "--log <key...>",
      "the verifier key of an installation, as `audit key` prints it; may be repeated",
      addLog,
    )
    .option("--port <number>", "port to listen on, behind a proxy with TLS (default: 4101)")
    .option("--host <address>", "address to listen on (default: 127.0.0.1)")
    .option("--folder <path>", "where its key and what it signed are kept (default: ./witness)")
    .option("--name <name>", "what a new witness is called in its key (default: the name of this machine)", parseName)
    .action(async ({ log: logs, port = "4101", host = "127.0.0.1", folder = "witness", name }) => {
      const { stdout } = context.terminal;
      const { log, flush } = openLog(boundedOutput(stdout), { pretty: stdout.isTTY, now: Date.now });
      const signer = openWitness(resolve(folder), name, hostname(), context.say);
      harden();
      const address = { host: parseHost("--host", host), port: parsePort("--port", port) };
      const witness = listening(address.host, address.port, "--port", () =>
        startWitness({ ...address, folder: resolve(folder), signer, logs, log, now: Date.now }),
      );
      context.say(`The key of this witness is ${encodeWitness(signer)}`);
      context.say(`Witnessing ${[...new Set(logs.map((one) => one.name))].join(", ")} on ${witness.origin}.`);
      if (!isLoopback(new URL(witness.origin).hostname))
        context.say("WARNING: The witness listens beyond this machine without TLS.");
      await new Promise<void>((end) => {
        for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => end());
      });
      await witness.stop();
      flush();
    });
}

function addLog(text: string, before: readonly Verifier[] = []): readonly Verifier[] {
  const key = parseVerifier(text);
  if (key === undefined) throw new Unfit("is not a verifier key, as `keyhole audit key` prints it.");
  return [...before, key];
}

function parseName(text: string): string {
  if (/^[\w./-]{1,200}$/.test(text)) return text;
  throw new Unfit("must have letters, digits and . / - _ alone.");
}
